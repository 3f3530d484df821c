package wire

import "golang.org/x/sys/unix"

// dozeLeast is the shortest sleep that is worth it, ns.
const dozeLeast = 2_000

// rest sleeps until the next sweep, a due time or a note.
func (l *loop) rest() {
	if len(l.behind) > 0 {
		return
	}
	if l.busy == l.aside && len(l.dues) == 0 && !l.closing {
		l.park()
		return
	}
	files := l.files[:1]
	if l.opening > 0 || !l.stamps.receive { // a user's time would be late by the rest
		files = l.files[:2]
	}
	for rested := false; ; {
		now := l.clock.Now()
		until, due := l.began+l.period, int64(1<<62)
		if len(l.dues) > 0 {
			due = l.dues[0].due
		}
		l.expect = max(l.expect, min(until, due))
		left := min(until, due-int64(l.spin)) - now
		if left < dozeLeast {
			if due-now < int64(l.spin)+dozeLeast {
				l.spinOut()
			}
			if l.seat.realtime && !rested { // else nobody else would ever run on this core
				yield()
			}
			return
		}
		if left > 20_000 {
			l.seat.step(now)
		}
		l.asleep.Store(true)
		if !l.posted.Load() {
			doze(files, left)
			rested = true
		}
		l.asleep.Store(false)
		if files[0].Revents != 0 {
			l.hush()
			return
		}
		if l.posted.Load() || len(files) > 1 && files[1].Revents != 0 {
			return
		}
		l.spin.learn(l.clock.Now() - now - left)
	}
}

// spinOut sends the next call when it is due. All but that is done before.
func (l *loop) spinOut() {
	c := l.dues.pop()
	l.ready(c)
	for l.clock.Now() < c.due {
	}
	l.leave(c)
	l.sendDue()
}

// park waits for a note for as long as it takes, or for what comes aside from any
// load, as a goroutine should.
func (l *loop) park() {
	if l.unread {
		l.unread, l.ended, l.woken = false, false, l.began
		l.decoder.wake()
	}
	l.asleep.Store(true)
	files := l.files[:1]
	if l.busy > 0 {
		files = l.files[:2]
	}
	if !l.posted.Load() {
		_, _ = unix.Poll(files, -1) // an early return is followed by a turn
	}
	l.asleep.Store(false)
	l.expect = l.clock.Now() // it was to rest for as long as it did
	l.hush()
	l.sweep() // some kept connections may have been closed meanwhile
}

// hush stops the bell.
func (l *loop) hush() {
	var b [8]byte
	unix.RawSyscall(unix.SYS_READ, uintptr(l.bell), uintptr(bytesAt(b[:])), 8)
}

// A spin is how long before a due time a loop stays awake, ns, as sleeps end late.
// It follows how late that is in all but one of fifty, for a core that spins has
// better things to do; 0 stays 0, which is for the only core.
type spin int64

const (
	spinLeast = 60_000
	spinMost  = 200_000
	spinStep  = 200
)

// learn takes how late a sleep ended.
func (s *spin) learn(late int64) {
	switch {
	case *s == 0:
	case late > int64(*s):
		*s = min(*s+49*spinStep, spinMost)
	default:
		*s = max(*s-spinStep, spinLeast)
	}
}
