package wire

const (
	spinNs  = 60_000    // left to a spin, as a sleep wakes up late by about this much
	sliceNs = 5_000_000 // longest sleep, so that stopping is noticed
)

// WaitUntil returns at the time at of the clock, or earlier if stop says so. It
// belongs on a goroutine that is locked to its thread.
func (c Clock) WaitUntil(at int64, stop func() bool) {
	for {
		left := at - c.Now()
		switch {
		case left <= 0 || stop():
			return
		case left > spinNs:
			nap(min(left-spinNs, sliceNs))
		}
	}
}
