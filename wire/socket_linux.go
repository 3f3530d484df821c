package wire

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of the event loop. All are raw: none blocks (nor does a sleep, of
// which each is short), so that the runtime need not be told, and the loop keeps
// its place among the running goroutines.

func putNative16(b []byte, v uint16) { binary.NativeEndian.PutUint16(b, v) }
func putNative32(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }

// yield lets others on this core run that may.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// openSocket is a new socket, on its way to a; inProgress says that the
// connection is not there yet.
func openSocket(a *address) (fd int, inProgress bool, errno unix.Errno) {
	r, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(a.family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return -1, false, errno
	}
	fd = int(r)
	setOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, r, uintptr(unsafe.Pointer(&a.raw)), uintptr(a.size))
	switch errno {
	case 0:
		return fd, false, 0
	case unix.EINPROGRESS:
		return fd, true, 0
	}
	closeSocket(fd)
	return -1, false, errno
}

func setOption(fd, level, name int, value int32) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return errno
}

func closeSocket(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// watchSocket has the epoll report each change of fd by the number id.
func watchSocket(epoll, fd int, id uint64) unix.Errno {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32))}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	return errno
}

// look asks the epoll what has changed, and does not wait.
func look(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// doze sleeps for at most ns, or until one of the files is readable.
func doze(files []unix.PollFd, ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// A mover is what a loop's sockets are read and written with: one for all.
type mover struct {
	in, out unix.Msghdr
	vector  unix.Iovec
	vectors [2]unix.Iovec
	control [160]byte
}

func newMover() *mover {
	m := &mover{}
	m.in.Iov, m.in.Iovlen = &m.vector, 1
	m.out.Iov = &m.vectors[0]
	return m
}

// receive reads into b, and says when the kernel received the last of it (Unix
// ns; 0: it does not say) and how much is still queued (-1: it does not say).
func (m *mover) receive(fd int, b []byte) (n int, kernelNs int64, queued int, errno unix.Errno) {
	m.vector.Base = &b[0]
	m.vector.SetLen(len(b))
	m.in.Control = &m.control[0]
	for {
		m.in.SetControllen(len(m.control))
		r, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.in)), unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, 0, -1, errno
		}
		kernelNs, queued = readControl(m.control[:m.in.Controllen])
		return int(r), kernelNs, queued, 0
	}
}

// transmitted is when the kernel sent byte number last of a socket (Unix ns); ok
// is false if it has not told yet.
func (m *mover) transmitted(fd int, last uint32) (wallNs int64, ok bool) {
	held := m.in.Iovlen
	m.in.Iovlen = 0
	defer func() { m.in.Iovlen = held }()
	m.in.Control = &m.control[0]
	for {
		m.in.SetControllen(len(m.control))
		_, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.in)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return wallNs, ok
		}
		if number, at, sent := readTransmit(m.control[:m.in.Controllen]); sent && (number == last || number == last+1) && !ok { // it may count from the handshake
			wallNs, ok = at, true // a second one is of bytes sent again
		}
	}
}

// send writes what follows the first done bytes of a and b together.
func (m *mover) send(fd int, a, b []byte, done int) (n int, errno unix.Errno) {
	k := 0
	for _, part := range [2][]byte{a, b} {
		if done >= len(part) {
			done -= len(part)
			continue
		}
		m.vectors[k].Base = &part[done]
		m.vectors[k].SetLen(len(part) - done)
		k, done = k+1, 0
	}
	m.out.SetIovlen(k)
	for {
		r, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.out)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errno != unix.EINTR {
			return int(r), errno
		}
	}
}
