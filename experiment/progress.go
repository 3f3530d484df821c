package experiment

import (
	"time"

	"fermata/load"
	"fermata/schedule"
)

// A Plan is what a run is going to do, for its progress.
type Plan struct {
	Measured int64         // requests; 0 where nobody knows
	Duration time.Duration // of the measured phase; 0 where requests end it
	Warmup   string
	MaxCost  string // that it may cost, in Currency; empty for no bound
	Currency string
	Users    int // of a closed loop, in which nothing is offered at a rate

	endNs          int64 // of the measured phase, where it is known from the start, as with given times; else 0
	warmupRequests int64 // after which the warm-up ends; negative where they do not end it
	warmupNs       int64 // at which it ends, likewise
}

// planOf is what a schedule has planned, whose measured phase may have a length.
func planOf(arrivals *schedule.Schedule, duration time.Duration) Plan {
	p := Plan{Duration: duration, Warmup: arrivals.WarmupText(), Users: arrivals.Users()}
	p.Measured, _ = arrivals.MeasuredTotal()
	p.warmupRequests, p.warmupNs = arrivals.WarmupEnd()
	if _, end, known := arrivals.Window(); known && !arrivals.Converses() {
		p.endNs = end
	}
	return p
}

// A Pace is how fast a run goes at the moment, and how long it will go on.
type Pace struct {
	Offered, Achieved float64 // requests due and sent a second, over the last seconds
	Left              time.Duration
	LeftKnown         bool // Left is an estimate; 0: every measured request is due, and answers are awaited
}

// recent is how far back a pace looks: enough to be steady, few enough to
// follow a ramp.
const recent = 10 * time.Second

// A Progress follows a run. The zero value with its plan is ready.
type Progress struct {
	Plan Plan

	seen     []load.Live
	measured bool
	from     int64 // about when the measured phase began
}

// Take is the pace at a later moment of the run.
func (p *Progress) Take(now load.Live) Pace {
	if n := len(p.seen); n > 0 && now.TimeNs < p.seen[n-1].TimeNs {
		*p = Progress{Plan: p.Plan} // another run
	}
	for len(p.seen) > 0 && now.TimeNs-p.seen[0].TimeNs > int64(recent) {
		p.seen = p.seen[1:]
	}
	then := load.Live{} // time zero
	if len(p.seen) > 0 {
		then = p.seen[0]
	}
	p.seen = append(p.seen, now)
	var pace Pace
	if past := float64(now.TimeNs-then.TimeNs) / 1e9; past > 0 {
		pace.Offered, pace.Achieved = float64(now.Due-then.Due)/past, float64(now.Sent-then.Sent)/past
	}
	if now.MeasuredDue > 0 && !p.measured {
		p.measured, p.from = true, now.TimeNs
		switch {
		case p.Plan.warmupNs >= 0 && p.Plan.warmupNs < now.TimeNs:
			p.from = p.Plan.warmupNs
		case p.Plan.warmupRequests == 0:
			p.from = 0
		}
	}
	pace.Left, pace.LeftKnown = p.left(now, pace.Offered)
	return pace
}

// left estimates how long requests of the measured phase will go on being due.
func (p *Progress) left(now load.Live, rate float64) (time.Duration, bool) {
	if end := p.Plan.endNs; end > 0 {
		return max(0, time.Duration(end-now.TimeNs)), true
	}
	requests := func(n int64) (time.Duration, bool) {
		switch {
		case n <= 0:
			return 0, true
		case rate <= 0:
			return 0, false
		}
		return time.Duration(float64(n) / rate * 1e9), true
	}
	if p.measured {
		if d := p.Plan.Duration; d > 0 {
			return max(0, d-time.Duration(now.TimeNs-p.from)), true
		}
		if p.Plan.Measured <= 0 {
			return 0, false
		}
		return requests(p.Plan.Measured - now.MeasuredDue)
	}
	warm, known := time.Duration(0), false
	if p.Plan.warmupRequests >= 0 {
		warm, known = requests(p.Plan.warmupRequests - now.Due)
	}
	if at := p.Plan.warmupNs; at >= 0 {
		until := max(0, time.Duration(at-now.TimeNs))
		if !known || until < warm {
			warm, known = until, true
		}
	}
	if p.Plan.Duration > 0 {
		return warm + p.Plan.Duration, known
	}
	phase, steady := requests(p.Plan.Measured)
	return warm + phase, known && steady && p.Plan.Measured > 0
}
