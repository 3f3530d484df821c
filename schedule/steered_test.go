package schedule

import (
	"math"
	"testing"
	"time"
)

// steered takes n arrivals of a steered schedule.
func steered(t *testing.T, s *Schedule, n int) []Arrival {
	t.Helper()
	var all []Arrival
	for range n {
		a, ok := s.Next(0)
		if !ok || !s.Settle(&a, nil) {
			t.Fatalf("arrival %d: there is none", len(all))
		}
		all = append(all, a)
	}
	return all
}

func mustSteer(t *testing.T, o Options, legs ...Leg) (*Schedule, *Helm) {
	t.Helper()
	s, h, err := NewSteered(o, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range legs {
		if err := h.Go(l); err != nil {
			t.Fatal(err)
		}
	}
	return s, h
}

// Each gap is that of the seed, of mean 1, divided by the rate of its own leg: the
// requests and gaps of two searches with one seed are the same, however they steer.
func TestSteeredGapsAreThoseOfTheSeed(t *testing.T) {
	for _, kind := range []string{Poisson, Gamma, Weibull} {
		o := Options{Kind: kind, Burstiness: map[string]float64{Gamma: .25}[kind], Shape: map[string]float64{Weibull: .7}[kind]}
		plain := o
		plain.Rate, plain.Requests = 1e-3, 1e6 // a gap of 1 is 1000 s: rounding shows nothing
		unit := mustNew(t, plain, 7)
		legs := []Leg{{100, 4, Warmup, 0}, {1, 250, Warmup, 0}, {37, .02, Warmup, 0}, {62, 13.7, Measured, 0}}
		s, _ := mustSteer(t, o, legs...)
		got := steered(t, s, 200)
		var before, unitBefore int64
		for i, leg := 0, 0; i < 200; i++ {
			u, _ := unit.Next(0)
			want := float64(u.Due-unitBefore) / 1e12 / legs[leg].Rate * 1e9
			if gap := float64(got[i].Due - before); math.Abs(gap-want) > 1.01 { // either end rounded
				t.Errorf("%s: gap %d is %.0f ns, %.3f drawn", kind, i, gap, want)
			}
			if got[i].Index != int64(i) || got[i].Phase != legs[leg].Phase {
				t.Errorf("%s: %d: %+v", kind, i, got[i])
			}
			before, unitBefore = got[i].Due, u.Due
			if legs[leg].Requests--; legs[leg].Requests == 0 {
				leg++
			}
		}
	}
}

// Even gaps are those of the rate of each leg, to the nearest ns.
func TestSteeredConstant(t *testing.T) {
	s, _ := mustSteer(t, Options{Kind: Constant}, Leg{Requests: 4, Rate: 10}, Leg{Requests: 2, Rate: 100}, Leg{Requests: 3, Rate: 2})
	want := []int64{0, 100, 200, 300, 310, 320, 820, 1320, 1820}
	for i, a := range steered(t, s, len(want)) {
		if a.Due != want[i]*1_000_000 {
			t.Errorf("request %d is due at %d ns, want %d ms", i, a.Due, want[i])
		}
	}
}

// After a pause the first gap counts from where it goes on, and is the one that
// would have come without.
func TestSteeredPause(t *testing.T) {
	through, _ := mustSteer(t, Options{}, Leg{Requests: 20, Rate: 10, Phase: Warmup})
	paused, h := mustSteer(t, Options{}, Leg{Requests: 10, Rate: 10, Phase: Warmup})
	a, b := steered(t, through, 20), steered(t, paused, 10)
	resume := b[9].Due + int64(90*time.Second)
	if err := h.Go(Leg{Requests: 10, Rate: 10, Phase: Warmup, NotBefore: resume}); err != nil {
		t.Fatal(err)
	}
	b = append(b, steered(t, paused, 10)...)
	shift := resume - a[9].Due
	for i := range a {
		want := a[i].Due
		if i >= 10 {
			want += shift
		}
		if d := b[i].Due - want; d < -1 || d > 1 {
			t.Errorf("%d is due at %d, want %d", i, b[i].Due, want)
		}
	}
	// A moment that has passed moves nothing.
	late, h := mustSteer(t, Options{}, Leg{Requests: 10, Rate: 10, Phase: Warmup}, Leg{Requests: 10, Rate: 10, Phase: Warmup, NotBefore: 1})
	h.End()
	for i, x := range steered(t, late, 20) {
		if d := x.Due - a[i].Due; d < -1 || d > 1 {
			t.Errorf("%d is due at %d, want %d", i, x.Due, a[i].Due)
		}
	}
	if x, _ := late.Next(0); late.Settle(&x, nil) {
		t.Error("there is an arrival after the end")
	}
}

// Whoever waits for a leg goes on when there is one, and gives up when told to.
func TestSteeredWaits(t *testing.T) {
	s, h := mustSteer(t, Options{})
	got := make(chan Arrival)
	go func() {
		a, _ := s.Next(0)
		s.Settle(&a, nil)
		got <- a
	}()
	select {
	case a := <-got:
		t.Fatalf("%+v without a leg", a)
	case <-time.After(20 * time.Millisecond):
	}
	if err := h.Go(Leg{Requests: 1, Rate: 5, Phase: Measured}); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.Due <= 0 || a.Phase != Measured {
		t.Errorf("%+v", a)
	}
	stop := make(chan struct{})
	close(stop)
	if a, _ := s.Next(0); s.Settle(&a, stop) {
		t.Error("it did not give up")
	}
}

// The measured phase is half-open: from its first request to where the next one is
// due, or 1 ns after its last where there is none.
func TestSteeredWindow(t *testing.T) {
	warm, fixed := Leg{Requests: 5, Rate: 10, Phase: Warmup}, Leg{Requests: 8, Rate: 10, Phase: Measured}
	goesOn, _ := mustSteer(t, Options{}, warm, fixed, Leg{Rate: 10, Phase: Drain})
	all := steered(t, goesOn, 13)
	if _, _, known := goesOn.Window(); known {
		t.Error("the end is known before the next request")
	}
	all = append(all, steered(t, goesOn, 40)...)
	if start, end, known := goesOn.Window(); start != all[5].Due || end != all[13].Due || !known || all[52].Phase != Drain {
		t.Errorf("[%d, %d) %v", start, end, known)
	}
	s, h := mustSteer(t, Options{}, warm, fixed)
	h.End()
	all = steered(t, s, 13)
	if start, end, known := s.Window(); start != all[5].Due || end != all[12].Due+1 || !known {
		t.Errorf("[%d, %d) %v", start, end, known)
	}
	if _, known := s.MeasuredTotal(); known || !s.Steered() {
		t.Error("a steered schedule knows how many requests it will have")
	}
}

func TestSteeredMistakes(t *testing.T) {
	for _, o := range []Options{{Kind: Closed, Concurrency: 2}, {Kind: All}, {Ramp: &Ramp{1, 2, time.Second}}, {Burst: &Burst{4, time.Second, time.Millisecond}}, {Kind: Gamma}} {
		if _, _, err := NewSteered(o, 1); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	_, h := mustSteer(t, Options{Rate: 3, Requests: 5})
	for _, l := range []Leg{{Rate: 0}, {Rate: math.NaN()}, {Rate: 1e9}, {Rate: 1, Requests: -1}} {
		if h.Go(l) == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}
