package capacity

import (
	"context"
	"math"
)

// bisect is the search of Etalon and of DistServe's simulator: a trial of fixed
// length a rate, each from an empty system; the rate doubles until one fails (or
// halves until one passes), and the bracket is then halved. One noisy trial decides
// each step for good: it is here for comparison.
func (s *search) bisect(ctx context.Context) error {
	t := s.state
	t.Phase = searching
	if len(t.Steps) == 0 {
		t.LnRPS = math.Log(s.opt.Start)
	}
	for len(t.Steps) < mostTrials {
		if t.Low != nil && t.High != nil {
			if *t.High-*t.Low <= math.Log1p(bracketOfAim*s.opt.Precision) {
				t.Phase, t.Ending = done, Found
				return errEnded
			}
			t.LnRPS = (*t.Low + *t.High) / 2
		}
		rate := math.Exp(t.LnRPS)
		before := s.plant.Now()
		known, realised, err := s.trial(ctx, s.opt.TrialRequests, rate)
		if err != nil {
			return err
		}
		f := &t.Fixed
		f.Tokens += s.plant.Now().Tokens - before.Tokens
		f.Sent += len(known)
		step := Step{Rate: rate, Realised: realised}
		for _, o := range known {
			if !o.Unjudged {
				step.Requests++
			}
			if o.Missed {
				step.Misses++
			}
		}
		t.Steps = append(t.Steps, step)
		if err := s.judgeable(); err != nil {
			return err
		}
		if step.Requests > 0 { // one without a judged answer has no verdict
			t.bracket(float64(step.Misses) <= s.opt.Allowed*float64(step.Requests))
		}
		if err := s.alive(ctx); err != nil {
			return err
		}
		if t.Low == nil && len(t.Steps) >= mostTrials/2 {
			return s.end(AlwaysMiss, "the objective is not met even at %.4g requests/s, after %d trials", rate, len(t.Steps))
		}
		if t.High == nil && len(t.Steps) >= mostTrials/2 {
			return s.end(NeverMissed, "the objective was met at every rate up to %.4g requests/s, in %d trials", rate, len(t.Steps))
		}
		if err := s.between(ctx); err != nil {
			return err
		}
	}
	return s.end(Unsettled, "%d trials were not enough for the bracket to close", mostTrials)
}

// bracket takes the verdict of a trial at the rate that was next, and sets another.
func (s *State) bracket(passed bool) {
	x := s.LnRPS
	if passed {
		s.Low = &x
	} else {
		s.High = &x
	}
	switch {
	case s.High == nil:
		s.LnRPS = x + math.Ln2
	case s.Low == nil:
		s.LnRPS = x - math.Ln2
	}
}
