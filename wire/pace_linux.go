package wire

import "golang.org/x/sys/unix"

// nap sleeps for about ns. The runtime's timers are up to a millisecond late in
// an idle process, so that pacing asks the system itself.
func nap(ns int64) {
	ts := unix.NsecToTimespec(ns)
	_ = unix.Nanosleep(&ts, nil) // an early return is followed by a look at the clock
}
