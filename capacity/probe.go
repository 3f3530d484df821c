package capacity

import (
	"context"
	"math"
)

const (
	climbRequests = 40 // of each step of a climb
	climbSteps    = 20
	turnedMost    = .10 // share that a server may turn away before its limit is what counts
)

// probe finds the saturation, which scales the search: by a burst and, where that
// says nothing, by doubling the rate until the server no longer follows.
func (s *search) probe(ctx context.Context) error {
	b, err := s.plant.Burst(ctx, s.opt.Budget().Probe)
	if err != nil {
		return err
	}
	t := s.state
	answered := len(b.Ends)
	t.Sent, t.Answered = t.Sent+int64(b.Asked), t.Answered+int64(answered)
	t.Failed, t.Turned = t.Failed+int64(b.Asked-answered), t.Turned+int64(b.Turned)
	p := &Probe{Asked: b.Asked, Answered: answered, Turned: b.Turned}
	rps, ok := ServedRate(b.Ends)
	if ok && float64(b.Turned) > turnedMost*float64(b.Asked) {
		// Who lets a few in at once and turns all others away answers those few as
		// fast as it likes: that is no rate it can keep up.
		if ok, err = s.follows(ctx, rps/2); err != nil {
			return err
		}
	}
	if !ok {
		p.Climbed = true
		if rps, err = s.climb(ctx); err != nil {
			return err
		}
	}
	p.RPS = rps
	t.Probe = p
	return s.between(ctx)
}

// follows says whether no more than half of a block is turned away at a rate.
func (s *search) follows(ctx context.Context, rate float64) (bool, error) {
	known, _, err := s.trial(ctx, block, rate)
	if err != nil {
		return false, err
	}
	turned := 0
	for _, o := range known {
		if o.Turned {
			turned++
		}
	}
	return 2*turned <= len(known), nil
}

// trial asks for n at a rate from empty to empty.
func (s *search) trial(ctx context.Context, n int, rate float64) (known []Outcome, realised float64, err error) {
	if realised, err = s.send(ctx, n, rate); err != nil {
		return nil, 0, err
	}
	if err := s.plant.Drain(ctx); err != nil {
		return nil, 0, err
	}
	return s.collect(), realised, nil
}

// climb doubles the rate until a tenth fails or a queue is left behind, and gives
// the rate of answers there.
func (s *search) climb(ctx context.Context) (rps float64, err error) {
	rate := s.opt.Start
	for step := range climbSteps {
		before := s.plant.Now()
		realised, err := s.send(ctx, climbRequests, rate)
		if err != nil {
			return 0, err
		}
		queue := s.plant.Now().Backlog
		if err := s.plant.Drain(ctx); err != nil {
			return 0, err
		}
		good := 0
		for _, o := range s.collect() {
			if !o.Failed {
				good++
			}
		}
		if step == 0 && good == 0 && s.state.Turned == 0 {
			return 0, s.end(Unanswered, "none of %d requests was answered", s.state.Sent)
		}
		took := float64(s.plant.Now().Ns-before.Ns) / 1e9
		if rps = realised * float64(good) / climbRequests; took > 0 && queue > climbRequests/2 {
			rps = max(float64(good)/took, rate/2) // it followed at half the rate
		}
		if good < climbRequests*9/10 || queue > climbRequests/2 {
			return math.Max(rps, s.opt.Start/lowestLoad), nil
		}
		rate *= 2
		if err := s.between(ctx); err != nil {
			return 0, err
		}
	}
	return rps, nil
}
