package capacity_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"fermata/capacity"
)

// A partly judged plant is a queue of whose answers only every so many can be judged.
type partlyJudged struct {
	*mm1
	every int // 0 for none
}

func (p *partlyJudged) Outcomes() []capacity.Outcome {
	from := p.told
	known := slices.Clone(p.mm1.Outcomes())
	for i := range known {
		if p.every == 0 || (from+i)%p.every > 0 {
			known[i].Missed, known[i].Unjudged = false, true
		}
	}
	return known
}

// Answers that cannot be judged neither meet the objective nor miss it.
func TestAnswersThatAreNotJudged(t *testing.T) {
	for _, o := range []capacity.Options{{}, {Method: capacity.Bisect}, {Method: capacity.Bisect, TrialRequests: 20}} {
		o.Allowed = .01
		state := &capacity.State{}
		r, err := capacity.Search(context.Background(), &partlyJudged{mm1: newMM1(10, 3, 5)}, o, state)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ending != capacity.NoneJudged || r.Capacity != nil || !strings.Contains(r.Reason, "first-token deadline") || !warned(r, "not_judged") {
			t.Errorf("%q in trials of %d, none judged: %s, %s, %+v", o.Method, o.TrialRequests, r.Ending, r.Reason, r.Capacity)
		}
	}
	state := &capacity.State{}
	r, err := capacity.Search(context.Background(), &partlyJudged{mm1: newMM1(10, 3, 5), every: 2}, capacity.Options{Allowed: .01}, state)
	if err != nil {
		t.Fatal(err)
	}
	f := &state.Fixed
	if total := f.Requests + f.Unjudged; r.Ending != capacity.Found || f.Requests < total/2-1 || f.Requests > total/2+1 || len(f.Ahead) != f.Requests || !warned(r, "not_judged") {
		t.Errorf("half judged: %s, %d judged and %d not, %+v", r.Ending, f.Requests, f.Unjudged, r.Warnings)
	}
	if truth := mm1Truth(10, 3, .01); r.Capacity.RPS < .8*truth || r.Capacity.RPS > 1.2*truth {
		t.Errorf("half judged: %g requests/s, in truth %g", r.Capacity.RPS, truth)
	}
}
