package schedule

import (
	"math"
	"math/rand/v2"
)

// moments are the due times of a schedule without an end, ascending. now is
// the time since time zero, for those that depend on it.
type moments interface {
	next(now int64) int64
}

// atOnce is due at time zero, always.
type atOnce struct{}

func (atOnce) next(int64) int64 { return 0 }

// whenFree is due when a user of a closed loop is free: now.
type whenFree struct{}

func (whenFree) next(now int64) int64 { return now }

// gaps draw the times between requests in units of their mean, so that the
// rate may change under way. A kind of open loop is a kind of gaps.
type gaps interface {
	next() float64
}

// exponential gaps make a Poisson process. They are drawn by inversion from 53
// random bits: nothing is capped (Etalon caps at 3 means, which raises the rate
// by 5.24 %) and nothing rescaled to hit the rate. The first gap is drawn too.
type exponential struct{ rand *rand.Rand }

func (e exponential) next() float64 { return -math.Log(1 - e.rand.Float64()) }

// even gaps put request k at exactly k: the first has no gap.
type even struct{ begun bool }

func (e *even) next() float64 {
	if !e.begun {
		e.begun = true
		return 0
	}
	return 1
}

// An open loop does not wait for answers: its due times depend on the gaps and
// the rate alone.
type open struct {
	gaps gaps
	rate float64 // requests a second
	unit float64 // sum of the gaps so far
	due  int64   // of the latest request, ns

	// The rate holds from here on. Due times are computed from this point and
	// not from each other, so that rounding never accumulates.
	fromUnit float64
	fromDue  int64
}

func (o *open) next(int64) int64 {
	o.unit += o.gaps.next()
	o.due = o.fromDue + int64(math.Round((o.unit-o.fromUnit)*1e9/o.rate))
	return o.due
}

func (o *open) setRate(rate float64) {
	o.fromUnit, o.fromDue, o.rate = o.unit, o.due, rate
}
