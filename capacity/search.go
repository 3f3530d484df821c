package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Constants of HT-RM. They were chosen on simulated servers; docs/capacity.md says
// what they do and docs/evidence/capacity.md what comes of them.
const (
	startLoad     = .85 // of saturation
	gainOffset    = 5
	gainPower     = .7
	leastSlope    = 4
	mostLoad      = .99
	clipUp        = .10 // of one step, of ln rate
	clipDown      = .25
	lowestLoad    = 20  // saturation over it is the lowest rate
	highestOver   = .08 // ln of the highest rate over saturation
	burnIn        = .35 // share of blocks that the average leaves out
	stuckAfter    = 20  // seconds of work that wait while nothing ends
	drainAfter    = 50  // seconds of work that wait
	floorBlocks   = 5   // in a row at the lowest rate that miss
	deadAfter     = 100 // failures in a row
	leastUnjudged = 100 // answers before any that can be judged
	revivals      = 5   // requests that tell a dead server from an overloaded one
)

// A search is one under way.
type search struct {
	plant Plant
	opt   Options
	state *State
	skip  int   // outcomes of this run that are still ignored
	ns    int64 // of the plant's clock, when BusyNs was last counted
}

// Search looks for the highest rate at which no more than the allowed share of
// requests misses, and goes on from a state that was saved. The state is up to date
// however it ends. An error is one of the options, or of the plant; a cancelled
// context is an Ending.
func Search(ctx context.Context, p Plant, o Options, s *State) (*Result, error) {
	o, err := o.Filled()
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = &State{}
	}
	if s.Ending == Interrupted || s.Ending == Stopped {
		s.Ending, s.Why = "", ""
	}
	if s.Ending != "" {
		return o.Result(s), nil
	}
	one := &search{plant: p, opt: o, state: s, ns: p.Now().Ns}
	err = one.run(ctx)
	one.count()
	switch {
	case err == nil:
	case errors.Is(err, errEnded):
	case ctx.Err() != nil:
		s.Ending, s.Why = Interrupted, "it was interrupted"
	default:
		return o.Result(s), fmt.Errorf("searching for capacity: %w", err)
	}
	o.tell(s)
	return o.Result(s), nil
}

// errEnded says that the state has its ending.
var errEnded = errors.New("the search has ended")

func (s *search) end(e Ending, why string, args ...any) error {
	s.state.Ending, s.state.Why = e, fmt.Sprintf(why, args...)
	return errEnded
}

func (o *Options) tell(s *State) {
	if o.Progress != nil {
		o.Progress(s)
	}
}

// between is done between blocks: it shows what is known, and may stop.
func (s *search) between(ctx context.Context) error {
	s.count()
	s.opt.tell(s.state)
	if s.opt.Enough != nil {
		if why := s.opt.Enough(); why != "" {
			return s.end(Stopped, "%s", why)
		}
	}
	return ctx.Err()
}

func (s *search) count() {
	now := s.plant.Now().Ns
	s.state.BusyNs += now - s.ns
	s.ns = now
}

func (s *search) run(ctx context.Context) error {
	if s.opt.Method == Bisect {
		return s.bisect(ctx)
	}
	if s.state.Probe == nil {
		s.state.Phase = probing
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	if s.state.Phase == probing {
		s.state.LnRPS = math.Log(startLoad * s.state.Probe.RPS)
		s.state.Phase = searching
	}
	if s.state.Phase == searching {
		if err := s.approach(ctx); err != nil {
			return err
		}
		s.state.Fixed.LnRPS = s.state.average()
		s.state.Phase = fixed
	}
	if s.state.Phase == fixed {
		if err := s.hold(ctx); err != nil {
			return err
		}
	}
	s.state.Phase, s.state.Ending = done, Found
	return nil
}

// send asks, and counts.
func (s *search) send(ctx context.Context, n int, rate float64) (realised float64, err error) {
	before := s.plant.Now()
	err = s.plant.Send(ctx, n, rate)
	after := s.plant.Now()
	s.state.Sent += after.Sent - before.Sent
	if ns := after.Ns - before.Ns; ns > 0 {
		realised = float64(after.Sent-before.Sent) * 1e9 / float64(ns)
	}
	return realised, err
}

// collect gives what became known without the warm-up's.
func (s *search) collect() []Outcome {
	all := s.plant.Outcomes()
	for i := range all {
		s.note(&all[i])
	}
	if p, ok := s.plant.(Latecomer); ok {
		late := p.Late()
		for i := range late {
			s.ended(&late[i])
		}
	}
	cut := min(s.skip, len(all))
	s.skip -= cut
	return all[cut:]
}

// note counts what became known of a request.
func (s *search) note(o *Outcome) {
	if !o.Open {
		s.ended(o)
	}
	if o.Missed {
		s.state.Misses++
	}
	if o.Unjudged {
		s.state.Unjudged++
	}
}

// ended counts a request that is over.
func (s *search) ended(o *Outcome) {
	t := s.state
	switch {
	case !o.Failed:
		t.Answered++
		t.Dead = 0
	case o.Turned:
		t.Failed++
		t.Turned++
		t.Dead = 0
	default:
		t.Failed++
		t.Dead++
	}
}

// alive finds out whether a server that failed so often in a row is gone, or only
// has more to do than it can: with nothing else under way it would answer one of a
// few.
func (s *search) alive(ctx context.Context) error {
	if s.state.Dead < deadAfter {
		return nil
	}
	if err := s.plant.Drain(ctx); err != nil {
		return err
	}
	s.collect()
	row := s.state.Dead
	if row < deadAfter {
		return nil
	}
	if _, err := s.send(ctx, revivals, math.Exp(s.lowest())); err != nil {
		return err
	}
	if err := s.plant.Drain(ctx); err != nil {
		return err
	}
	s.skip += revivals
	s.collect()
	if s.state.Dead < row+revivals {
		return nil
	}
	if s.state.Answered == 0 {
		return s.end(Unanswered, "none of %d requests was answered", s.state.Sent)
	}
	return s.end(Died, "it died: it answered %d requests, and then none of the last %d", s.state.Answered, s.state.Dead)
}

func (s *search) saturation() float64 { return s.state.Probe.RPS }

func (s *search) lowest() float64 {
	if s.state.Probe == nil || s.state.Probe.RPS <= 0 {
		return math.Log(s.opt.Start)
	}
	return math.Log(s.saturation() / lowestLoad)
}

// work is how many requests take the system so many seconds, three blocks at least
// where drain is meant: slow servers have many under way without a queue.
func (s *search) work(seconds float64, least int64) int64 {
	return max(least, int64(math.Ceil(seconds*s.saturation())))
}

// slope is how steeply logit of the misses' share rises with ln of the rate, by
// heavy traffic: ln(1/q0)·rho/(1−rho), 4 at least.
func (o *Options) slope(load float64) float64 {
	return max(leastSlope, -math.Log(o.Allowed)*load/(1-load))
}

// approach is the search proper: one continuous run whose rate follows the misses.
func (s *search) approach(ctx context.Context) error {
	warm, _ := s.opt.warmups()
	blocks := s.opt.Budget().Search / block
	s.skip = warm
	if _, err := s.send(ctx, warm, math.Exp(s.state.LnRPS)); err != nil {
		return err
	}
	for {
		k := len(s.state.Steps) - s.state.Descent
		if k >= blocks {
			if s.state.met(s.opt.Allowed) {
				return nil
			}
			// It never got down to rates that meet the objective: it begins from here.
			s.state.Descent, k = len(s.state.Steps), 0
		}
		rate := math.Exp(s.state.LnRPS)
		realised, err := s.send(ctx, block, rate)
		if err != nil {
			return err
		}
		known := s.collect()
		step := Step{Rate: rate, Realised: realised}
		for _, o := range known {
			if !o.Unjudged {
				step.Requests++
			}
			if o.Missed {
				step.Misses++
			}
		}
		backlog := s.plant.Now().Backlog
		s.state.LnRPS = s.next(k, blocks, &step, backlog)
		if step.Drained = backlog > s.work(drainAfter, 3*block); step.Drained {
			if err := s.plant.Drain(ctx); err != nil {
				return err
			}
			s.collect() // of a queue that nobody could have met
		}
		s.state.Steps = append(s.state.Steps, step)
		if err := s.judge(ctx, &step); err != nil {
			return err
		}
		if err := s.between(ctx); err != nil {
			return err
		}
	}
}

// met says whether the objective was met in any block of the search proper.
func (s *State) met(allowed float64) bool {
	return slices.ContainsFunc(s.Steps[s.Descent:], func(b Step) bool {
		return b.Requests > 0 && float64(b.Misses) <= allowed*float64(b.Requests)
	})
}

// next is ln of the next rate.
func (s *search) next(k, blocks int, b *Step, backlog int64) float64 {
	x, mu, q0 := s.state.LnRPS, s.saturation(), s.opt.Allowed
	switch {
	case b.Requests > 0:
		y := float64(b.Misses) / float64(b.Requests)
		most := max(.15, 3*q0) * (1 + 2*float64(k)/float64(blocks))
		gain := min(2, float64(b.Requests)/block) / (q0 * s.opt.slope(min(mostLoad, math.Exp(x)/mu)) * math.Pow(float64(k)+gainOffset, gainPower))
		x -= min(max((min(y, most)-q0)*gain, -clipUp), clipDown)
	case backlog > s.work(stuckAfter, block):
		x -= clipUp // nothing ends: as good as missed
	}
	return min(max(x, math.Log(mu/lowestLoad)), math.Log(mu)+highestOver)
}

// judge ends a search that has nothing more to find.
func (s *search) judge(ctx context.Context, b *Step) error {
	if err := s.alive(ctx); err != nil {
		return err
	}
	if err := s.judgeable(); err != nil {
		return err
	}
	missed := b.Requests > 0 && float64(b.Misses) > s.opt.Allowed*float64(b.Requests)
	if missed && b.Rate < s.saturation()/lowestLoad*1.000001 {
		s.state.Floor++
	} else {
		s.state.Floor = 0
	}
	if s.state.Floor < floorBlocks {
		return nil
	}
	if _, ok := s.plant.(Latecomer); ok { // a server that fell silent has missed before it has failed
		if err := s.plant.Drain(ctx); err != nil {
			return err
		}
		s.collect()
		if err := s.alive(ctx); err != nil {
			return err
		}
	}
	return s.end(AlwaysMiss, "the objective is not met even at %.4g requests/s, a twentieth of the saturation of %.4g", b.Rate, s.saturation())
}

// judgeable ends a search none of whose answers can be judged: it would go on for
// ever, with nothing to follow.
func (s *search) judgeable() error {
	t := s.state
	if t.Unjudged < leastUnjudged || slices.ContainsFunc(t.Steps, func(b Step) bool { return b.Requests > 0 }) {
		return nil
	}
	return s.end(NoneJudged, "none of %d answers has a first-token deadline: their prompts are not among the lengths that the deadlines are valid for", t.Unjudged)
}

// average is Polyak and Ruppert's: the mean of ln rate without the beginning.
func (s *State) average() float64 {
	steps := s.Steps[s.Descent:]
	from := int(math.Ceil(burnIn * float64(len(steps))))
	if from >= len(steps) {
		return s.LnRPS
	}
	sum := s.LnRPS // what the last block led to
	for _, b := range steps[from+1:] {
		sum += math.Log(b.Rate)
	}
	return sum / float64(len(steps)-from)
}

// hold is the run at the rate found, which carries the interval.
func (s *search) hold(ctx context.Context) error {
	if err := s.plant.Drain(ctx); err != nil {
		return err
	}
	s.skip = 0
	s.collect() // of the search
	f := &s.state.Fixed
	_, warm := s.opt.warmups()
	s.skip = warm
	at := s.plant.Now()
	rest := s.opt.Budget().Fixed - f.Requests
	defer s.measure(false)
	for left := warm + rest; left > 0; left -= block {
		s.measure(left <= rest)
		_, err := s.send(ctx, min(left, block), math.Exp(f.LnRPS))
		f.SpanNs += s.plant.Now().Ns - at.Ns
		at = f.meter(s.plant, at)
		if err != nil {
			return err
		}
		f.take(s.collect())
		if err := s.alive(ctx); err != nil {
			return err
		}
		if err := s.between(ctx); err != nil {
			return err
		}
	}
	if err := s.plant.Drain(ctx); err != nil {
		return err
	}
	f.take(s.collect())
	f.meter(s.plant, at)
	return s.alive(ctx)
}

func (s *search) measure(on bool) {
	if p, ok := s.plant.(Measurer); ok {
		p.Measure(on)
	}
}

// meter counts what was sent and what came since a reading.
func (f *Fixed) meter(p Plant, since Reading) Reading {
	now := p.Now()
	f.Sent += int(now.Sent - since.Sent)
	f.Tokens += now.Tokens - since.Tokens
	f.Withdrawn += int(now.Withdrawn - since.Withdrawn)
	return now
}

func (f *Fixed) take(known []Outcome) {
	for _, o := range known {
		if o.Unjudged {
			f.Unjudged++
			continue
		}
		if o.Missed {
			f.Misses = append(f.Misses, f.Requests)
		}
		f.Ahead = append(f.Ahead, o.Ahead)
		f.Requests++
	}
}
