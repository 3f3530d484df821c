package capacity

import (
	"context"
	"math"
)

const (
	mostProbe     = 4 * probeRequests // at once, where fewer fit into one batch
	mostRough     = 8 * roughProbe
	wholeBurst    = .9 // share of a burst that must be answered for a larger one to tell more
	climbRequests = 40 // of each step of a climb
	climbSteps    = 20
	turnedMost    = .10 // share that a server may turn away before its limit is what counts
)

// probe finds the saturation, which scales the search: by bursts, each twice the one
// before until it is several times what the system holds, and, where they say
// nothing, by doubling the rate until the server no longer follows.
func (s *search) probe(ctx context.Context) error {
	b, err := s.burst(ctx, s.opt.Budget().Probe)
	if err != nil {
		return err
	}
	rps, sure := b.Saturation()
	for n := 2 * s.opt.Budget().Probe; !sure && n <= s.opt.mostProbe() && 2*b.Asked >= n && float64(len(b.Ends)) >= wholeBurst*float64(b.Asked); n *= 2 {
		if err := s.between(ctx); err != nil {
			return err
		}
		more, err := s.burst(ctx, n)
		if err != nil {
			return err
		}
		if more.Asked == 0 {
			break // nobody pays for it
		}
		b = more
		rps, sure = b.Saturation()
	}
	ok := rps > 0
	p := &Probe{Asked: b.Asked, Answered: len(b.Ends), Turned: b.Turned, Guessed: ok && !sure}
	if ok && float64(b.Turned) > turnedMost*float64(b.Asked) {
		// Who lets a few in at once and turns all others away answers those few as
		// fast as it likes: that is no rate it can keep up.
		if ok, err = s.follows(ctx, rps/2); err != nil {
			return err
		}
	}
	if !ok {
		p.Climbed, p.Guessed = true, false
		if rps, err = s.climb(ctx); err != nil {
			return err
		}
	}
	p.RPS = rps
	s.state.Probe = p
	return s.between(ctx)
}

// burst asks for n at once, and counts.
func (s *search) burst(ctx context.Context, n int) (Burst, error) {
	b, err := s.plant.Burst(ctx, n)
	t, asked, answered := s.state, int64(b.Asked), int64(len(b.Ends))
	t.Sent, t.Answered = t.Sent+asked, t.Answered+answered
	t.Failed, t.Turned = t.Failed+asked-answered, t.Turned+int64(b.Turned)
	return b, err
}

// mostProbe is how many a burst may ask for, where fewer fit into one batch.
func (o *Options) mostProbe() int {
	if o.Rough() {
		return mostRough
	}
	return mostProbe
}

// MostProbe is how many requests the bursts may ask for in all: each is twice the one
// before, and a budget has the first alone. o is filled in.
func (o *Options) MostProbe() (n int) {
	for one := o.Budget().Probe; one > 0 && one <= o.mostProbe(); one *= 2 {
		n += one
	}
	return n
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
