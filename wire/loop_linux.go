package wire

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	sweepLeast  = 100_000    // ns between sweeps, at least …
	sweepMost   = 1_000_000  // … and at most
	measured    = 16_000_000 // ns over which the gap between reads is averaged
	decodeMost  = 10_000_000 // ns that the decoder may be behind before it is woken
	notesKept   = 1024
	sendsAtOnce = 32
	readsAtOnce = 8
)

// A loop is one goroutine that moves the bytes of its connections. Its methods run
// on that but for start, post and close.
//
// A turn takes notes, sends what is due, reads every socket that has something,
// and rests until the next sweep or due time. It rests although sockets may become
// readable: the kernel stamps what arrives, so that reading every millisecond
// costs a fifth of waking for each event and loses nothing.
type loop struct {
	clock   Clock
	stamps  stamps
	meter   *meter
	longest atomic.Int64 // turn, ns, since somebody asked
	opened  atomic.Int64 // connections, ever
	turns   atomic.Int64 // ever
	seat    seat
	epoll   int
	bell    int // rings the loop out of a rest
	files   [2]unix.PollFd
	active  atomic.Int64 // calls

	mu     sync.Mutex
	notes  []note
	posted atomic.Bool
	asleep atomic.Bool

	move    *mover
	log     *spool
	decoder *decoder
	done    chan struct{}

	taken   []note
	dues    dues
	links   []*link
	vacant  []*link
	pools   map[*peer]*pool
	behind  []*link // with data left in the socket
	unsure  []*call // sent, but the kernel has not said when
	busy    int     // links with a call
	aside   int     // of them, those of calls that are no part of a load
	opening int     // of them, connecting
	halted  int64   // what is due later is withdrawn; 0: not halted
	closing bool
	spin    spin
	events  [256]unix.EpollEvent

	turned  int64 // the turn began …
	expect  int64 // … and was to begin
	began   int64 // the sweep
	swept   int64 // when the last complete sweep but this began
	ahead   int64 // of the wall clock before ours, at the sweep
	period  int64 // between sweeps
	reads   int   // since counted
	counted int64
	unread  bool // something was logged since the decoder was woken
	ended   bool // a call ended since then
	woken   int64
}

// A note is what others tell a loop.
type note struct {
	what notice
	call *call
	err  error
}

type notice uint8

const (
	startCall notice = iota
	cutCall
	haltAll
	closeLoop
)

func newLoop(clock Clock, s stamps, m *meter) (*loop, error) {
	l := &loop{clock: clock, stamps: s, meter: m, move: newMover(), log: newSpool(), pools: map[*peer]*pool{}, done: make(chan struct{}), period: sweepMost}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.epoll)
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	l.files = [2]unix.PollFd{{Fd: int32(l.bell), Events: unix.POLLIN}, {Fd: int32(l.epoll), Events: unix.POLLIN}}
	if runtime.NumCPU() > 1 {
		l.spin = spinLeast
	}
	l.decoder = newDecoder(l)
	if l.decoder.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		unix.Close(l.epoll)
		unix.Close(l.bell)
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	return l, nil
}

// start runs the loop and its decoder until close.
func (l *loop) start() {
	go l.decoder.run()
	go func() {
		defer close(l.done)
		l.run()
		l.seat.leave()
		l.decoder.over.Store(true)
		l.decoder.wake()
	}()
}

// close ends the loop and what is left of its calls.
func (l *loop) close() {
	l.post(note{what: closeLoop})
	<-l.done
	<-l.decoder.done
	l.shut()
}

// shut gives the loop's files back.
func (l *loop) shut() {
	unix.Close(l.epoll)
	unix.Close(l.bell)
	unix.Close(l.decoder.bell)
}

// post leaves a note, and wakes the loop if it rests.
func (l *loop) post(n note) {
	l.mu.Lock()
	l.notes = append(l.notes, n)
	l.posted.Store(true)
	l.mu.Unlock()
	if l.asleep.Swap(false) {
		one := [8]byte{1}
		_, _ = unix.Write(l.bell, one[:])
	}
}

func (l *loop) run() {
	l.expect = l.clock.Now()
	for !l.closing || l.busy > 0 {
		l.seat.take()
		l.turned = l.clock.Now()
		if l.posted.Load() {
			l.takeNotes()
		}
		l.sendDue()
		l.sweep()
		l.publish()
		l.count()
		l.rest()
	}
	for _, k := range l.links {
		if k.fd >= 0 {
			l.drop(k)
		}
	}
	l.publish()
}

// count notes how long a turn took, from when it was to begin: a loop that nobody
// ran when its rest was over looked at no socket either.
func (l *loop) count() {
	l.turns.Add(1)
	now := l.clock.Now()
	turn := now - min(l.turned, l.expect)
	if turn > l.longest.Load() {
		l.longest.Store(turn)
	}
	l.expect = now
}

func (l *loop) takeNotes() {
	l.mu.Lock()
	l.taken, l.notes = l.notes, l.taken[:0]
	l.posted.Store(false)
	l.mu.Unlock()
	for i, n := range l.taken {
		switch n.what {
		case startCall:
			l.dues.push(n.call)
		case cutCall:
			l.cut(n.call, n.err)
		case haltAll:
			l.halted = l.clock.Now()
		case closeLoop:
			l.closing = true
			for len(l.dues) > 0 {
				l.cut(l.dues[0], net.ErrClosed)
			}
			for _, k := range l.links {
				if k.call != nil {
					l.fail(k.call, net.ErrClosed)
				}
			}
		}
		l.taken[i] = note{}
	}
	if cap(l.taken) > notesKept {
		l.taken = nil // ten thousand that began together
	}
	if l.halted > 0 {
		l.withdraw()
	}
}

// withdraw takes back what was neither due when it was handed over nor when the
// run was halted.
func (l *loop) withdraw() {
	for i := 0; i < len(l.dues); {
		c := l.dues[i]
		if !l.tooEarly(c) {
			i++
			continue
		}
		l.takeBack(c) // what takes its place is looked at next, or is due sooner than what was
	}
}

// tooEarly says that a call that waits for its due time never becomes due.
func (l *loop) tooEarly(c *call) bool { return l.halted > 0 && c.due > max(l.halted, c.made) }

func (l *loop) takeBack(c *call) {
	l.dues.remove(c)
	c.result = Result{End: l.clock.Now(), Err: ErrWithdrawn}
	c.slot = l.decoder.slots.take(c)
	l.finish(c)
}

// sendDue begins the calls whose time has come.
func (l *loop) sendDue() {
	for range sendsAtOnce {
		if len(l.dues) == 0 || l.dues[0].due > l.clock.Now() {
			return
		}
		l.begin(l.dues.pop())
	}
}

// sweep reads every socket that has something.
func (l *loop) sweep() {
	t, together := l.clock.both()
	l.began = l.clock.At(t)
	if together || l.ahead == 0 { // else the clocks are as far apart as they were
		l.ahead = t.UnixNano() - l.began
	}
	waiting := l.behind
	l.behind = l.behind[len(l.behind):]
	for _, k := range waiting {
		if k.behind && k.call != nil {
			l.hear(k, true)
		}
	}
	for {
		n := look(l.epoll, l.events[:])
		for i := range l.events[:n] {
			ev := &l.events[i]
			id := uint64(uint32(ev.Fd)) | uint64(uint32(ev.Pad))<<32
			if k := l.links[uint32(id)]; k.id == id && k.fd >= 0 {
				l.serve(k, ev.Events)
			}
			if i&3 == 3 {
				l.sendDue()
			}
		}
		if n < len(l.events) {
			break
		}
	}
	l.swept = l.began
	if len(l.unsure) > 0 {
		l.askAgain()
	}
	if l.began-l.counted > measured {
		l.pace()
	}
}

// pace chooses how often to sweep: four times in the gap between the reads of one
// stream, on average.
func (l *loop) pace() {
	l.period = sweepMost
	if l.reads > 0 {
		l.period = min(sweepMost, max(sweepLeast, (l.began-l.counted)*int64(l.busy)/int64(l.reads)/4))
	}
	l.reads, l.counted = 0, l.began
}

// publish shows the decoder what was logged, and wakes it where something ended or
// it has slept long enough.
func (l *loop) publish() {
	if !l.unread {
		return
	}
	l.log.publish()
	if now := l.began; l.ended || now-l.woken > decodeMost {
		l.unread, l.ended, l.woken = false, false, now
		l.decoder.wake()
	}
}

// begin sends a call that is due.
func (l *loop) begin(c *call) {
	l.ready(c)
	l.leave(c)
}

// ready gives a call its place in the log and a kept connection, if there is one.
func (l *loop) ready(c *call) {
	l.enter(c)
	if c.result.Err != nil {
		return
	}
	if k := l.takeKept(c.to); k != nil {
		k.call, c.link, c.state = c, k, sending
		l.engage(c, 1)
	}
}

// leave sends a call that is ready: on its kept connection, else on a new one.
func (l *loop) leave(c *call) {
	switch {
	case c.result.Err != nil:
		l.fail(c, c.result.Err)
	case c.link != nil:
		l.push(c.link)
	default:
		l.connect(c, 0)
	}
}

// engage counts links that have got a call, or lost it.
func (l *loop) engage(c *call, by int) {
	if l.busy += by; c.aside {
		l.aside += by
	}
}

// serve looks after a connection of which the epoll reported something.
func (l *loop) serve(k *link, events uint32) {
	c := k.call
	gone := events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	if c == nil { // a kept one: it has nothing to say but that it is closed
		if events&unix.EPOLLIN != 0 || gone {
			l.drop(k)
		} else if events&unix.EPOLLERR != 0 {
			_, _ = l.move.transmitted(k.fd, 0) // a stamp that nobody waits for any more
		}
		return
	}
	if c.wrote < c.length && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		l.push(k)
		if k.call != c {
			return
		}
	}
	if events&unix.EPOLLIN != 0 || gone {
		l.hear(k, gone)
	}
}

// push sends what the socket takes.
func (l *loop) push(k *link) {
	c := k.call
	for c.wrote < c.length {
		before := l.clock.Now()
		n, errno := l.move.send(k.fd, c.head, c.body, c.wrote)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0 && k.stood == 0:
			l.tryNext(c, errno)
			return
		case errno != 0:
			l.sendFailed(k, &net.OpError{Op: "write", Net: "tcp", Addr: k.peer.addrs[k.addr].net, Err: os.NewSyscallError("sendmsg", errno)})
			return
		}
		if k.stood == 0 {
			k.stood, k.lo = before, before
			l.opening--
			c.state, c.result.Connected = sending, some(before)
		}
		c.wrote, c.last, k.sent = c.wrote+n, before, k.sent+uint32(n)
	}
	if c.state == sending {
		c.state = hearing
	}
	if !k.kept { // else they may have to go out once more
		c.head, c.body = nil, nil
	}
	if !l.tellSent(c, false) {
		l.unsure = append(l.unsure, c)
	}
}

// sendFailed hears out what a server said before it stopped listening.
func (l *loop) sendFailed(k *link, err error) {
	c := k.call
	if l.anew(c) {
		return
	}
	c.result.Err = err // unless it answers all the same
	l.hear(k, true)
	if k.call == c { // nothing more to hear, and it has not ended
		l.fail(c, err)
	}
}
