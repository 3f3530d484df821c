package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"fermata/internal/seed"
)

// A Schedule gives arrivals one by one, in order of their due times. It is for
// one goroutine. New and NewTimed make one.
type Schedule struct {
	moments moments // nil for given times
	given   Rows
	placing phases // of given times: those that Next has given
	users   int
	streams int64 // of each user; 0 is 1
	think   think
	seed    uint64 // of the run
	burst   *Burst // with base, where there are bursts
	base    float64
	helm    *Helm // where somebody steers
	quiet   bool
	phases  phases
	index   int64 // of the next arrival
	total   int64 // measured requests in all; 0 where nobody knows

	converse bool
	options  Options // of given times
}

// New makes the schedule that o describes, reading its file where it has one.
// The same options and seed give the same due times; the seed is that of the
// run, from which New derives its own.
func New(o Options, runSeed uint64) (*Schedule, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.Filled()
	s := &Schedule{quiet: o.Drain == "quiet", seed: runSeed}
	s.think, _ = parseThink(o.Think) // checked above
	draw := seed.Rand(runSeed, "schedule: gaps")
	switch o.Kind {
	case Poisson:
		s.open(&o, exponential{draw})
	case Gamma:
		s.open(&o, gamma{draw, o.Burstiness})
	case Weibull:
		s.open(&o, weibull{draw, o.Shape})
	case Constant:
		s.open(&o, &even{})
	case Closed:
		s.moments, s.users, s.streams = whenFree{}, o.Concurrency, int64(o.Streams)
	case All:
		s.moments = atOnce{}
	case Given:
		if o.File == "" {
			return nil, errors.New("making a schedule: given times need a file, or a data set with at_s in every line")
		}
		rows, err := readFile(o.File)
		if err != nil {
			return nil, fmt.Errorf("reading the schedule: %w", err)
		}
		return NewTimed(o, rows.given(), runSeed)
	}
	end, err := o.warmupEnd(o.Requests)
	if err != nil {
		return nil, fmt.Errorf("making a schedule: %w", err)
	}
	if s.total = o.Requests; o.AtLeast > 0 {
		s.total = 0
	} else if n := s.streams; n > 1 {
		s.total = (s.total + n - 1) / n * n
	}
	s.phases = newPhases(phases{
		warmup: end, requests: o.Requests, duration: int64(o.Duration), atLeast: int64(o.AtLeast), block: s.streams,
		outside: o.Kind == Closed || o.Kind == All,
	})
	return s, nil
}

// open makes s an open loop.
func (s *Schedule) open(o *Options, g gaps) {
	switch {
	case o.Ramp != nil:
		s.moments = newOpen(g, o.Ramp.plan(), 1, true)
	case len(o.Steps) > 0:
		s.moments = newOpen(g, stepsPlan(o.Steps), 1, true)
	case o.Burst != nil:
		s.burst, s.base = o.Burst, o.Rate
		s.moments = newOpen(g, newBursts(o.Rate, o.Burst, seed.Rand(s.seed, "schedule: bursts")), o.Burst.meanRate(o.Rate), false)
	default:
		s.moments = newOpen(g, &plan{{rate: 1, length: endless}}, o.Rate, false)
	}
}

// Rows are given times, with what stands beside them, in the order of time.
type Rows struct {
	N      int
	At     func(i int) Arrival // asked often, in any order, from one goroutine at a time
	Sized  bool                // some have lengths
	Failed int64               // rows of requests that failed, which are not among them
}

// NewTimed makes a schedule of given times, which are from 0 on. Due, Session and the
// token counts of rows are kept. Of o, Speedup divides the times; Requests, Duration and
// Warmup may leave rows out of the measured phase, and where they say nothing all rows
// are measured. After Requests rows the measured phase ends where the next row is due;
// where the rows run out first, 1 ns after the last, whatever Duration says.
func NewTimed(o Options, rows Rows, runSeed uint64) (*Schedule, error) {
	o.Kind, o.File = Given, ""
	if err := o.check(); err != nil {
		return nil, err
	}
	if rows.N == 0 {
		return nil, errors.New("making a schedule of given times: there are none")
	}
	base := o.Requests
	if base == 0 && o.Duration == 0 {
		base = int64(rows.N)
	}
	end, err := o.warmupEnd(base)
	if err != nil {
		return nil, fmt.Errorf("making a schedule of given times: %w", err)
	}
	s := &Schedule{quiet: true, given: rows, seed: runSeed, options: o}
	s.think, _ = parseThink(o.Think) // checked above
	if o.Speedup != 0 {
		s.given.At = func(i int) Arrival {
			a := rows.At(i)
			a.Due = atSpeed(a.Due, o.Speedup)
			return a
		}
	}
	// Rows are placed once to know how it ends, and again when they are asked for.
	s.placing = newPhases(phases{warmup: end, requests: o.Requests, duration: int64(o.Duration)})
	s.phases = s.placing
	before := int64(0)
	for i := range rows.N {
		due := s.given.At(i).Due
		if due < before {
			return nil, fmt.Errorf("making a schedule of given times: time %d is before 0, or before the one before it", i+1)
		}
		if s.phases.place(due) == Drain {
			break // nor is any later one measured
		}
		before = due
	}
	s.total = s.phases.measured
	if s.total == 0 {
		return nil, fmt.Errorf("making a schedule of given times: none of the %d rows is left to measure (warm-up: %s)", rows.N, end.text)
	}
	if s.phases.now == Measured {
		s.phases.finish()
	}
	return s, nil
}

// atSpeed is a given time, so many times as fast, to the nearest ns.
func atSpeed(due int64, speedup float64) int64 {
	t := math.Round(float64(due) / speedup)
	if !(t < float64(latestNs)) {
		return latestNs
	}
	return int64(t)
}

// Next is the next arrival; false says that there is none. In a closed loop a
// user is due at now (ns since time zero): when the user became free and had
// thought, see Think. Other schedules ignore now and may be asked ahead of time. With drain load they go on for as
// long as they are asked. What a steered one gives is due once Settle says when.
func (s *Schedule) Next(now int64) (Arrival, bool) {
	var a Arrival
	if s.helm != nil {
		a.Index = s.index
		s.index++
		return a, true
	}
	if s.moments != nil {
		a.Due = s.moments.next(now)
		a.Phase = s.phases.place(a.Due)
	} else if s.index < int64(s.given.N) {
		a = s.given.At(int(s.index))
		a.Phase = s.placing.place(a.Due)
	} else {
		return Arrival{}, false
	}
	if a.Phase == Drain && s.quiet {
		return Arrival{}, false
	}
	a.Index = s.index
	s.index++
	a.Session = cmp.Or(s.SessionOf(a.Index), a.Session)
	return a, true
}

// SessionOf is the query that a request belongs to, where queries have several
// streams; empty where they have not.
func (s *Schedule) SessionOf(index int64) string {
	if s.streams <= 1 {
		return ""
	}
	return strconv.FormatInt(index/s.streams, 10)
}

// Over says that by now (ns since time zero) Next has given every measured
// arrival that there will be, so that nobody need wait for users who think.
func (s *Schedule) Over(now int64) bool { return s.phases.allGiven(now) }

// Window is the measured phase [start, end) in ns since time zero. known says
// that both ends are: at once where times set them, or else once Next has been
// asked for the request after the last measured one. A closed loop of so many
// requests, and all at once, never know their end: it is when the last measured
// request has ended, which the load sees. Their start holds from the first
// measured arrival on; before, it may be 0.
func (s *Schedule) Window() (start, end int64, known bool) {
	if s.helm != nil {
		return s.helm.window()
	}
	return s.phases.start, s.phases.end, s.phases.ended
}

// Given are the rows of given times, and how many of them are to be used, up to the
// end of the measured phase; 0 rows for other schedules, and for conversations,
// whose turns decide.
func (s *Schedule) Given() (rows Rows, used int64) {
	if s.converse || s.moments != nil {
		return Rows{}, 0
	}
	return s.given, s.phases.warm + s.phases.measured
}

// WindowWhy says why the measured phase ends where Window says, or where the load
// sees that it does.
func (s *Schedule) WindowWhy() string {
	if s.helm != nil {
		return NextWasDue
	}
	return s.phases.why()
}

// WarmupText is the length of the warm-up for people, such as
// "10 requests (10 %)", "30s" or "none".
func (s *Schedule) WarmupText() string { return s.phases.warmup.text }

// WarmupEnd says what ends the warm-up: so many requests, a time in ns since time
// zero, or whichever comes first. Negative means that this one does not.
func (s *Schedule) WarmupEnd() (requests, at int64) {
	return s.phases.warmup.count, s.phases.warmup.at
}

// Users is the number of users of a closed loop, each of whom has one query
// in flight; 0 for other schedules.
func (s *Schedule) Users() int { return s.users }

// Streams is how many requests make a query: a user of a closed loop sends them at
// once and waits for all of them. They are the arrivals that Next gives one after
// another, and have a session of their own; 1 unless the options say otherwise.
func (s *Schedule) Streams() int { return max(1, int(s.streams)) }

// MeasuredTotal is how many measured requests there will be in all, where that
// is known from the start.
func (s *Schedule) MeasuredTotal() (n int64, known bool) { return s.total, s.total > 0 }
