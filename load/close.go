package load

import (
	"time"

	"fermata/recording"
	"fermata/schedule"
)

// Enough says under way that the measured phase may end. *metrics.Watch is one.
type Enough interface {
	See(t *recording.Trace)      // a measured request that has ended, told from any goroutine
	Look() (why string, ok bool) // asked once a second by one goroutine
}

const (
	lookEvery = time.Second
	// closeIn is how far ahead the phase ends: what is due before may be on its way
	// to be sent.
	closeIn = 100 * time.Millisecond
)

// A closing is the end of the measured phase ahead of the schedule's own.
type closing struct {
	at  int64
	why string
}

// closeWhenEnough ends the measured phase once enough is known.
func (r *run) closeWhenEnough(over <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if why, ok := r.Enough.Look(); ok {
			r.ending.Lock()
			r.closed.CompareAndSwap(nil, &closing{r.clock.Now() + int64(closeIn+r.transport.Lead()), "enough is known: " + why})
			r.ending.Unlock()
			return
		}
	}
}

// closedBy says that the measured phase was ended by then (ns since time zero).
func (r *run) closedBy(at int64) bool {
	c := r.closed.Load()
	return c != nil && at >= c.at
}

// rephase moves an arrival to the drain that is due after the measured phase was
// ended. The schedule, which may have been asked long ago, does not know of that. Nor
// may an end come from a clock that was read before: however long the machine stood
// still in between, requests would have been placed after it.
func (r *run) rephase(at *schedule.Arrival) {
	r.ending.Lock()
	defer r.ending.Unlock()
	if at.Phase == schedule.Measured && r.closedBy(at.Due) {
		at.Phase = schedule.Drain
	}
}
