package load

import (
	"math"
	"time"

	"fermata/schedule"
)

// A times is a schedule on the run's clock. Where the server's time is simulated
// and so many seconds of it pass in one, what people wrote (rates, think times,
// lengths of phases) is simulated time; everything here is not.
type times struct {
	*schedule.Schedule
	scale float64
}

func timesOf(s *schedule.Schedule, scale float64) times {
	if !(scale > 0) {
		scale = 1
	}
	return times{s, scale}
}

func (t times) one() bool { return math.Abs(t.scale-1) < 1e-12 }

// real is a simulated time on the run's clock.
func (t times) real(ns int64) int64 {
	if t.one() {
		return ns
	}
	return int64(math.Round(float64(ns) / t.scale))
}

// simulated is the other way round.
func (t times) simulated(ns int64) int64 {
	if t.one() {
		return ns
	}
	return int64(math.Round(float64(ns) * t.scale))
}

// length is a stretch of simulated time on the run's clock.
func (t times) length(d time.Duration) time.Duration { return time.Duration(t.real(int64(d))) }

// Next is Schedule.Next.
func (t times) Next(now int64) (schedule.Arrival, bool) {
	a, ok := t.Schedule.Next(t.simulated(now))
	a.Due = t.real(a.Due)
	return a, ok
}

// Settle is Schedule.Settle.
func (t times) Settle(a *schedule.Arrival, stop <-chan struct{}) bool {
	ok := t.Schedule.Settle(a, stop)
	a.Due = t.real(a.Due)
	return ok
}

// Start is Schedule.Start.
func (t times) Start(now int64) (schedule.Arrival, bool) {
	a, ok := t.Schedule.Start(t.simulated(now))
	a.Due = t.real(a.Due)
	return a, ok
}

// Place is Schedule.Place.
func (t times) Place(due int64) (schedule.Phase, bool) { return t.Schedule.Place(t.simulated(due)) }

// Over is Schedule.Over.
func (t times) Over(now int64) bool { return t.Schedule.Over(t.simulated(now)) }

// Window is Schedule.Window. Its end stays behind the due times before it,
// however they are rounded.
func (t times) Window() (start, end int64, known bool) {
	start, end, known = t.Schedule.Window()
	if t.one() {
		return start, end, known
	}
	return t.real(start), int64(math.Ceil(float64(end) / t.scale)), known
}

// Think is Schedule.Think.
func (t times) Think(user int, turn int64) time.Duration {
	return t.length(t.Schedule.Think(user, turn))
}
