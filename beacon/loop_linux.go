package beacon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	leastNap = 30_000      // ns: writes that are due together leave together
	mostNap  = 1_000_000   // ns: how long the loop keeps its processor, and a report may wait
	idleNap  = 100_000_000 // ns: with nothing to send
	together = 64          // writes between looks at the sockets
)

// A conn is one connection of the loop.
type conn struct {
	fd      int
	in      []byte // what has come of the next request
	stamp   int64  // kernel's, of the last read
	pending []byte // what a full socket did not take
	stream  *stream
	closed  bool
}

// A loop is a server on one thread: it sends by the times of a queue, and between
// them looks at the sockets.
type loop struct {
	ledger
	ln      int
	poll    int
	conns   []*conn // by descriptor
	queue   due
	out     []byte
	buf     []byte
	control [128]byte
	asked   chan chan Report
	wait2   bool // the system has epoll_pwait2
}

// serve runs until ctx ends. asked gets a channel for each report that is wanted.
func serve(ctx context.Context, ln *net.TCPListener, asked chan chan Report) error {
	f, err := ln.File()
	if err != nil {
		return fmt.Errorf("beacon: reaching the listening socket: %w", err)
	}
	defer f.Close()
	l := &loop{ln: int(f.Fd()), buf: make([]byte, 64<<10), asked: asked, wait2: true}
	if err := unix.SetNonblock(l.ln, true); err != nil {
		return fmt.Errorf("beacon: preparing the listening socket: %w", err)
	}
	// Connections inherit the wish for stamps, so that no segment comes before it.
	_ = unix.SetsockoptInt(l.ln, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) // without it, times of reading
	// Some systems pace what they send; a beacon's writes leave at once.
	_ = unix.SetsockoptString(l.ln, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	if l.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("beacon: making an epoll set: %w", err)
	}
	defer unix.Close(l.poll)
	if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, l.ln, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.ln)}); err != nil {
		return fmt.Errorf("beacon: watching the listening socket: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()                             // never unlocked: its timer slack goes with it
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // naps that end on time
		done <- l.run(ctx)
	}()
	return <-done
}

func (l *loop) run(ctx context.Context) error {
	defer func() {
		for _, c := range l.conns {
			if c != nil {
				unix.Close(c.fd)
			}
		}
	}()
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		now := wall()
		for range together {
			if len(l.queue) == 0 || l.queue[0].next > now {
				break
			}
			now = l.send(l.queue[0])
		}
		select {
		case answer := <-l.asked:
			answer <- l.report()
		default:
		}
		nap := int64(idleNap)
		if len(l.queue) > 0 {
			nap = l.queue[0].next - now
			if nap > 0 {
				nap = max(nap, leastNap)
			}
		}
		n, err := l.await(events, nap)
		if err != nil {
			return fmt.Errorf("beacon: waiting for sockets: %w", err)
		}
		for i := range events[:n] {
			l.ready(&events[i])
		}
		if len(l.queue) == 0 {
			l.enqueue(l.overdue())
		}
	}
	return nil
}

// await looks at the sockets, for up to nap ns. With streams under way the thread
// keeps its processor: to win one back would take longer than a nap.
func (l *loop) await(events []unix.EpollEvent, nap int64) (int, error) {
	for {
		var n uintptr
		var errno unix.Errno
		set, size := uintptr(unsafe.Pointer(&events[0])), uintptr(len(events))
		switch {
		case nap <= 0:
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // in real time nobody else would ever run here
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.poll), set, size, 0, 0, 8)
		case len(l.queue) == 0:
			n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.poll), set, size, uintptr(nap/1e6), 0, 8)
		case l.wait2:
			ts := unix.NsecToTimespec(min(nap, mostNap))
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.poll), set, size, uintptr(unsafe.Pointer(&ts)), 0, 8)
			if errno == unix.ENOSYS || errno == unix.EPERM {
				l.wait2 = false
				continue
			}
		default:
			ts := unix.NsecToTimespec(min(nap, mostNap/4))
			unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
			n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.poll), set, size, 0, 0, 8)
		}
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			return 0, nil
		default:
			return 0, errno
		}
	}
}

// send makes one write of s and returns the time after it.
func (l *loop) send(s *stream) int64 {
	now := wall()
	if s.left == 0 {
		l.finish(s)
		return wall()
	}
	l.out = s.write(l.out[:0], now)
	if !l.put(s.conn, l.out) {
		l.close(s.conn)
		return wall()
	}
	after := wall()
	if s.wrote(now, after) {
		l.finish(s)
		return wall()
	}
	l.queue.fix(0, s)
	return after
}

// finish ends an answer and takes the next request of its connection.
func (l *loop) finish(s *stream) {
	c := s.conn
	l.queue.remove(s)
	c.stream = nil
	if !l.put(c, s.end()) || !l.take(c) {
		l.close(c)
	}
}

// put writes b, or keeps what the socket does not take. It says whether the
// client is still there.
func (l *loop) put(c *conn, b []byte) bool {
	if len(c.pending) > 0 {
		c.pending = append(c.pending, b...)
		l.stuck++
		return true
	}
	n, errno := write(c.fd, b)
	if errno == unix.EAGAIN {
		n = 0
	} else if errno != 0 {
		return false
	}
	if n < len(b) {
		l.stuck++
		c.pending = append(c.pending, b[n:]...)
		l.watch(c, unix.EPOLLIN|unix.EPOLLOUT)
	}
	return true
}

func write(fd int, b []byte) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

func (l *loop) watch(c *conn, events uint32) {
	_ = unix.EpollCtl(l.poll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// ready takes what a socket has.
func (l *loop) ready(e *unix.EpollEvent) {
	if int(e.Fd) == l.ln {
		l.accept()
		return
	}
	c := l.conns[e.Fd]
	if c == nil {
		return
	}
	ok := true
	if e.Events&unix.EPOLLOUT != 0 {
		var n int
		var errno unix.Errno
		n, errno = write(c.fd, c.pending)
		switch {
		case errno == unix.EAGAIN:
		case errno != 0:
			ok = false
		default:
			if c.pending = c.pending[n:]; len(c.pending) == 0 {
				c.pending = nil
				l.watch(c, unix.EPOLLIN)
			}
		}
	}
	if ok && e.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		ok = l.read(c)
	}
	if !ok {
		l.close(c)
	}
}

func (l *loop) accept() {
	for range 256 {
		fd, _, err := unix.Accept4(l.ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // no more, or no descriptor for it: the client sees that
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		for len(l.conns) <= fd {
			l.conns = append(l.conns, nil)
		}
		l.conns[fd] = &conn{fd: fd}
		l.ledger.conns++
		_ = unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
}

// read takes what has come of a request; false says that the client has left.
func (l *loop) read(c *conn) bool {
	n, stamp, err := l.receive(c.fd)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return true
	}
	if err != nil || n == 0 {
		return false
	}
	c.stamp = stamp
	c.in = append(c.in, l.buf[:n]...)
	return c.stream != nil || l.take(c) // one at a time
}

// receive reads, with the kernel's stamp of what it read.
func (l *loop) receive(fd int) (n int, stamp int64, err error) {
	v := unix.Iovec{Base: &l.buf[0]}
	v.SetLen(len(l.buf))
	h := unix.Msghdr{Iov: &v, Iovlen: 1, Control: &l.control[0]}
	h.SetControllen(len(l.control))
	got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, 0, errno
	}
	stamp = wall()
	messages, err := unix.ParseSocketControlMessage(l.control[:h.Controllen])
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			stamp = (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		}
	}
	return int(got), stamp, err
}

// take begins the answer to a request that has come whole; false closes.
func (l *loop) take(c *conn) bool {
	for c.stream == nil && len(c.in) > 0 {
		a, n, err := parseRequest(c.in)
		if err != nil {
			l.put(c, response("400 Bad Request", strconv.Quote(err.Error())))
			return false
		}
		if n == 0 {
			return true
		}
		if !a.streams() {
			if !l.put(c, a.page()) {
				return false
			}
		} else if p, err := parsePlan(a.query); err != nil {
			if !l.put(c, response("400 Bad Request", `{"error":{"message":`+strconv.Quote(err.Error())+`}}`)) {
				return false
			}
		} else {
			if !l.put(c, append(strconv.AppendInt([]byte(head), c.stamp, 10), "\r\n\r\n"...)) {
				return false
			}
			var ready []*stream
			c.stream, ready = l.begin(c, &a, p, c.stamp)
			l.enqueue(ready)
		}
		if c.in = c.in[n:]; len(c.in) == 0 {
			c.in = nil
		}
	}
	return true
}

func (l *loop) enqueue(ready []*stream) {
	for _, s := range ready {
		if !s.conn.closed {
			l.queue.push(s)
		}
	}
}

func (l *loop) close(c *conn) {
	if s := c.stream; s != nil {
		l.gone(s)
		if s.place < len(l.queue) && l.queue[s.place] == s {
			l.queue.remove(s)
		}
	}
	c.closed = true
	l.conns[c.fd] = nil
	l.ledger.conns--
	unix.Close(c.fd)
}

func wall() int64 { return time.Now().UnixNano() }

func processCPU() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
