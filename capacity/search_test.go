package capacity_test

import (
	"context"
	"math"
	"testing"

	"fermata/capacity"
)

// find searches, and gives the error of what was found as ln of its ratio to the
// truth, and whether the interval holds the truth.
func find(t *testing.T, p capacity.Plant, o capacity.Options, truth float64) (r *capacity.Result, off float64, holds bool) {
	t.Helper()
	r, err := capacity.Search(context.Background(), p, o, nil)
	if err != nil || r.Capacity == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	c := r.Capacity
	holds = c.Low != nil && c.High != nil && *c.Low <= truth && truth <= *c.High
	return r, math.Log(c.RPS / truth), holds
}

// mm1Truth is the rate up to which a share of allowed takes longer than bound.
func mm1Truth(mu, bound, allowed float64) float64 { return mu + math.Log(allowed)/bound }

func TestSearchFindsCapacity(t *testing.T) {
	truth := mm1Truth(10, 3, .01)
	r, off, holds := find(t, newMM1(10, 3, 1), capacity.Options{Allowed: .01}, truth)
	if math.Abs(off) > .05 || !holds {
		t.Errorf("%+v where the truth is %.3f", r.Capacity, truth)
	}
	if r.Requests != int64(r.Budget.Total) || r.Ending != capacity.Found {
		t.Errorf("%d requests of %+v, %s", r.Requests, r.Budget, r.Ending)
	}
	if s := *r.SaturationRPS; math.Abs(s-10) > 1 {
		t.Errorf("saturated at %.3f, not 10", s)
	}
}

// The truths are what long runs say; docs/evidence/capacity.md has many searches.
func TestSearchFindsThatOfAServer(t *testing.T) {
	for o, truth := range map[objective]float64{fluid: 9.2, ttft2: 12.17, ttft8: 12.97} {
		r, off, _ := find(t, newBatcher(o, 4), capacity.Options{Allowed: .01, Precision: .10}, truth)
		if math.Abs(off) > .10 {
			t.Errorf("objective %d: %+v where the truth is %.3f", o, r.Capacity, truth)
		}
	}
}
