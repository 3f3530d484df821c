package capacity_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/capacity"
)

// A faulty plant is a queue whose server misbehaves.
type faulty struct {
	*mm1
	diesAfter int64   // requests; 0 never
	limit     float64 // requests/s that are let in, by a bucket of 20; 0 for no limit
	tokens    float64
	filled    float64 // s, when
	turned    map[int]bool
}

func (f *faulty) Burst(ctx context.Context, n int) (capacity.Burst, error) {
	switch {
	case f.diesAfter == 1:
		return capacity.Burst{Asked: n}, nil
	case f.limit > 0:
		b, err := f.mm1.Burst(ctx, n)
		b.Ends, b.Turned = b.Ends[:60], n-60
		return b, err
	}
	return f.mm1.Burst(ctx, n)
}

func (f *faulty) Send(ctx context.Context, n int, rate float64) error {
	if f.limit <= 0 {
		return f.mm1.Send(ctx, n, rate)
	}
	if f.turned == nil {
		f.turned, f.tokens = map[int]bool{}, 20
	}
	for range n {
		if err := f.mm1.Send(ctx, 1, rate); err != nil {
			return err
		}
		f.tokens, f.filled = min(20, f.tokens+(f.at-f.filled)*f.limit), f.at
		if f.tokens < 1 {
			f.turned[len(f.ends)-1] = true
			continue
		}
		f.tokens--
	}
	return nil
}

func (f *faulty) Outcomes() []capacity.Outcome {
	from := f.told
	known := slices.Clone(f.mm1.Outcomes())
	for i := range known {
		if f.diesAfter > 0 && int64(from+i) >= f.diesAfter-1 {
			known[i].Failed, known[i].Missed = true, true
		}
		if f.turned[from+i] {
			known[i].Failed, known[i].Missed, known[i].Turned = true, true, true
		}
	}
	return known
}

func warned(r *capacity.Result, code string) bool {
	for _, w := range r.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// Whatever a system does, a search ends and says why.
func TestEndings(t *testing.T) {
	slow := func(bound float64) *faulty { return &faulty{mm1: newMM1(10, bound, 5)} }
	dead, limited := slow(3), &faulty{mm1: newMM1(40, 3, 5), limit: 5}
	dead.diesAfter = 2000
	silent := slow(3)
	silent.diesAfter = 1
	for _, c := range []struct {
		name   string
		plant  capacity.Plant
		method string
		ending capacity.Ending
		reason string
		warn   string
		low    float64 // of the capacity; 0 for none
		high   float64
	}{
		{"nothing is answered", silent, "", capacity.Unanswered, "none of 1240 requests was answered", "", 0, 0},
		{"no rate holds", slow(.0001), "", capacity.AlwaysMiss, "not met even at", "", 0, 0},
		{"every rate holds", slow(1e9), "", capacity.NeverMissed, "no request missed", "", 7, 11},
		{"it dies", dead, "", capacity.Died, "it answered 3199 requests", "", 0, 0}, // 1200 at once and 1999
		{"it turns away", limited, "", capacity.Found, "budget", "turned_away", 4.2, 5.2},
		{"saturation limits it", newMM1(10, math.Log(100)/.25, 8), "", capacity.Found, "budget", "saturation_limited", 9.3, 10.8},
		{"no rate holds for trials", slow(.0001), capacity.Bisect, capacity.AlwaysMiss, "not met even at", "", 0, 0},
		{"every rate holds for trials", slow(1e9), capacity.Bisect, capacity.NeverMissed, "every rate up to 5.243e+05", "no_interval", 5e5, 6e5}, // 2^19
	} {
		r, err := capacity.Search(context.Background(), c.plant, capacity.Options{Allowed: .01, Method: c.method}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Ending != c.ending || !strings.Contains(r.Reason, c.reason) || c.warn != "" && !warned(r, c.warn) {
			t.Errorf("%s: %s, %s, %+v", c.name, r.Ending, r.Reason, r.Warnings)
		}
		switch {
		case c.low == 0 && c.ending != capacity.Died && r.Capacity != nil:
			t.Errorf("%s: %+v", c.name, r.Capacity)
		case c.low > 0 && (r.Capacity == nil || r.Capacity.RPS < c.low || r.Capacity.RPS > c.high):
			t.Errorf("%s: %+v", c.name, r.Capacity)
		}
	}
}

// A search that was interrupted goes on in another process, from its state as JSON,
// and does not begin again.
func TestSearchGoesOn(t *testing.T) {
	truth := mm1Truth(10, 3, .01)
	state := &capacity.State{}
	for part, after := range []int64{900, 3000, 6000, math.MaxInt64} {
		ctx, cancel := context.WithCancel(context.Background())
		o := capacity.Options{Allowed: .01, Precision: .10, Progress: func(s *capacity.State) {
			if s.Sent > after {
				cancel()
			}
		}}
		before := len(state.Steps)
		r, err := capacity.Search(ctx, newMM1(10, 3, uint64(part)), o, state)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if len(state.Steps) < before {
			t.Errorf("part %d begins again", part)
		}
		if part == 3 {
			if r.Ending != capacity.Found || math.Abs(math.Log(r.Capacity.RPS/truth)) > .10 || r.Held.Requests != r.Budget.Fixed {
				t.Errorf("%s, %+v, %+v, truth %.3f", r.Ending, r.Capacity, r.Held, truth)
			}
			if extra := r.Requests - int64(r.Budget.Total); extra < 200 || extra > 2000 {
				t.Errorf("%d requests more than in one go", extra)
			}
			continue
		}
		if r.Ending != capacity.Interrupted {
			t.Fatalf("part %d: %s", part, r.Ending)
		}
		data, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		state = &capacity.State{}
		if err := json.Unmarshal(data, state); err != nil {
			t.Fatal(err)
		}
	}
}

// What else is spent ends a search with what is known.
func TestSearchStops(t *testing.T) {
	o := capacity.Options{Allowed: .01}
	asked := int64(0)
	o.Progress = func(s *capacity.State) { asked = s.Sent }
	o.Enough = func() string {
		if asked > 10_000 {
			return "1.00 USD was spent, of 1.00"
		}
		return ""
	}
	r, err := capacity.Search(context.Background(), newMM1(10, 3, 1), o, nil)
	if err != nil || r.Ending != capacity.Stopped || r.Reason != "1.00 USD was spent, of 1.00" || r.Capacity == nil || !warned(r, "no_interval") || r.Requests > 10_200 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A step is a plant without chance: every request misses above a rate.
type step struct {
	at, told, n int64
	rate, edge  float64
}

func (s *step) Burst(context.Context, int) (capacity.Burst, error) { return capacity.Burst{}, nil }
func (s *step) Drain(context.Context) error                        { return nil }
func (s *step) Now() capacity.Reading                              { return capacity.Reading{Ns: s.at, Sent: s.n} }

func (s *step) Send(_ context.Context, n int, rate float64) error {
	s.n, s.rate = s.n+int64(n), rate
	s.at += int64(float64(n) / rate * 1e9)
	return nil
}

func (s *step) Outcomes() []capacity.Outcome {
	all := make([]capacity.Outcome, s.n-s.told)
	for i := range all {
		all[i].Missed = s.rate > s.edge
	}
	s.told = s.n
	return all
}

// From 1/s on, 25/s is below the sixth doubling; the bracket from 16 to 32 is as
// narrow as 4 % after five halvings: 2^(1/32) is 1.022.
func TestBisection(t *testing.T) {
	r, err := capacity.Search(context.Background(), &step{edge: 25}, capacity.Options{Method: capacity.Bisect, Allowed: .01, TrialRequests: 50}, nil)
	if err != nil || r.Ending != capacity.Found || len(r.Search) != 11 || r.Requests != 550 {
		t.Fatalf("%+v, %v", r, err)
	}
	if c := r.Capacity; math.Abs(math.Log(c.RPS/25)) > math.Ln2/64 || c.Low != nil || *c.Attainment != 1 {
		t.Errorf("%+v", c)
	}
	// A promise to wait 8 s that 50 requests a trial cannot break.
	r, err = capacity.Search(context.Background(), &step{edge: 25}, capacity.Options{Method: capacity.Bisect, Allowed: .01, TrialRequests: 50, Patience: 8 * time.Second}, nil)
	if err != nil || !warned(r, "short") {
		t.Errorf("%+v, %v", r, err)
	}
}

// The numbers are those of the law, worked by hand.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		allowed, precision float64
		want               capacity.Budget
	}{
		// 18.4/(.0025·.01·21.2076) = 34,705
		{.01, .05, capacity.Budget{Probe: 1200, Warmup: 700, Search: 19_800, Fixed: 14_905, Total: 36_605}},
		{.01, .10, capacity.Budget{Probe: 1200, Warmup: 700, Search: 5000, Fixed: 3676, Total: 10_576}},
		{.10, .05, capacity.Budget{Probe: 1200, Warmup: 700, Search: 7900, Fixed: 5982, Total: 15_782}},
		{.10, .25, capacity.Budget{Probe: 150, Warmup: 200, Search: 900, Fixed: 600, Total: 1850}},
	} {
		o, err := capacity.Options{Allowed: c.allowed, Precision: c.precision}.Filled()
		if err != nil || o.Budget() != c.want {
			t.Errorf("%g to %g: %+v, %v", c.allowed, c.precision, o.Budget(), err)
		}
	}
	if n := capacity.LengthFloor(8*time.Second, 13.4); n != 2252 {
		t.Errorf("8 s at 13.4/s: %d", n)
	}
	for _, o := range []capacity.Options{{}, {Allowed: 1}, {Allowed: .01, Precision: 2}, {Allowed: .01, Method: "guess"}, {Allowed: .01, TrialRequests: 3}, {Allowed: .01, Start: -1}} {
		if _, err := o.Filled(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
