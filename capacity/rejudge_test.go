package capacity

import (
	"math"
	"strings"
	"testing"
)

// 1,000 requests at 10/s of a system that serves 20/s: half loaded, logit of the
// misses rises by 4 a unit of ln rate, and 8 requests in a row are worth one. With 100
// misses, evenly spread, the rate is the capacity of a p90; with 130 it is
// 10·exp(−(logit(130.8/1008) − logit(.1))/4) = 9.290992; 400 are too many to say.
func TestRejudged(t *testing.T) {
	s := &State{
		Phase: done, Ending: Found, Probe: &Probe{RPS: 20}, Steps: []Step{{Rate: 8}, {Rate: 14}},
		Fixed: Fixed{LnRPS: math.Log(10), Requests: 1000},
	}
	o, err := Options{Allowed: .1}.Filled()
	if err != nil {
		t.Fatal(err)
	}
	for misses, want := range map[int]float64{100: 10, 130: 9.290992, 400: 0} {
		f := Fixed{LnRPS: math.Log(10), Requests: 1000, Sent: 1000, Tokens: 50_000}
		for i := range misses {
			f.Misses = append(f.Misses, i*1000/misses)
		}
		r := o.Rejudged(s, f)
		if want == 0 {
			if r.Ending != NotBracketed || r.Capacity != nil || !strings.Contains(r.Reason, "too far below") || r.Held.Misses != misses {
				t.Errorf("%d misses: %s, %+v", misses, r.Ending, r.Capacity)
			}
			continue
		}
		c := r.Capacity
		if c == nil || math.Abs(c.RPS-want) > 1e-6 || *c.Low > c.RPS || *c.High < c.RPS || math.Abs(*c.TokensPerS-50*c.RPS) > 1e-9 || math.Abs(*c.Attainment-1+float64(misses)/1000) > 1e-12 {
			t.Errorf("%d misses: %+v, want %v", misses, c, want)
		}
	}
	// At a rate that the search never asked nothing is told.
	s.Steps = []Step{{Rate: 11}, {Rate: 14}}
	if r := o.Rejudged(s, Fixed{LnRPS: math.Log(10), Requests: 1000, Misses: make([]int, 0)}); r.Ending != NotBracketed {
		t.Errorf("%s", r.Ending)
	}
}
