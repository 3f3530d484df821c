package wire

import (
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A seat is the thread that a loop's goroutine sits on. The goroutine is not
// locked to it: the runtime makes every goroutine step aside after 10 ms, and a
// locked one comes back only when another thread has run to hand it over, which on
// a busy machine takes a while. One that is not locked goes on at once on the thread
// that it has, unless that has other work: then it may find itself on another one.
type seat struct {
	thread   int
	before   *unix.SchedAttr // of the thread, put back when the loop leaves it
	realtime bool            // its threads go before all others'

	used    int64 // processor time of the thread when last looked at
	timed   atomic.Int64
	stepped int64 // when the goroutine last stepped aside
}

// stepEvery is how often a loop steps aside by itself, ns: when it has nothing to do
// rather than when the runtime says so.
const stepEvery = 4_000_000

// take makes sure that the thread is one that runs soon after it wakes, and counts
// what the loop has used.
func (s *seat) take() {
	id, _, _ := unix.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	used := threadTime()
	if int(id) == s.thread {
		s.timed.Add(used - s.used)
	} else {
		s.move(int(id))
	}
	s.used = used
}

// move settles on another thread. Sleeps are 50 µs longer by default, and a short
// slice lets a thread go first among threads that compute (Linux 6.12 and later).
func (s *seat) move(id int) {
	s.leave()
	s.thread = id
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	// A real-time thread is left at its priority: above its own process's others it
	// could wait for one of them for ever, as the runtime's locks spin.
	s.realtime = attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR
	if attr.Policy != unix.SCHED_NORMAL {
		return
	}
	before := *attr
	attr.Runtime = 100_000
	if unix.SchedSetAttr(0, attr, 0) == nil {
		s.before = &before
	}
}

// leave gives the thread back as it was.
func (s *seat) leave() {
	if s.before != nil {
		_ = unix.SchedSetAttr(s.thread, s.before, 0) // it may have ended
		s.before = nil
	}
	s.thread = 0
}

// step has the goroutine step aside at a time when it does not matter, so that it
// need not when it does.
func (s *seat) step(now int64) {
	if now-s.stepped > stepEvery {
		s.stepped = now
		runtime.Gosched()
	}
}

// threadTime is the processor time that the calling thread has used, ns.
func threadTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // asks the kernel, which does not block
	return ts.Nano()
}

// warmThreads has the runtime make threads before they are needed: each is made as
// the thread that it is made from, and that should not be a loop's.
func warmThreads(n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 2_000_000}, nil) })
	}
	all.Wait()
}
