package schedule

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestRealisedByHand(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	for _, c := range []struct {
		name string
		due  []int64
		want Gaps
	}{
		{"none", nil, Gaps{}},
		{"one request", []int64{5}, Gaps{}},
		{"one gap", []int64{5, 9}, Gaps{N: 1, MeanNs: 4}},
		{"two gaps", []int64{30, 0, 10}, Gaps{N: 2, MeanNs: 15, CV: math.Sqrt(50) / 15}},
		{"all at once", make([]int64, 50), Gaps{N: 49}},
		{"even", []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Gaps{N: 16, MeanNs: 1, WindowNs: 4, Windows: 4}},
		// Windows (0, 4], (4, 8], (8, 12], (12, 16] hold 8, 0, 0 and 8: a variance of
		// 64/3 over a mean of 4. Gaps: 14 of 0, 1 and 15; their squares add up to
		// 226, so that the variance is (226 - 16)/15.
		{
			"clumps",
			[]int64{0, 1, 1, 1, 1, 1, 1, 1, 1, 16, 16, 16, 16, 16, 16, 16, 16},
			Gaps{N: 16, MeanNs: 1, CV: math.Sqrt(14), Dispersion: 64.0 / 12, WindowNs: 4, Windows: 4},
		},
	} {
		g := Realised(c.due)
		if g.N != c.want.N || g.WindowNs != c.want.WindowNs || g.Windows != c.want.Windows || g.Asked != nil ||
			!near(g.MeanNs, c.want.MeanNs) || !near(g.CV, c.want.CV) || !near(g.Dispersion, c.want.Dispersion) {
			t.Errorf("%s: %+v, want %+v", c.name, g, c.want)
		}
	}
	// One gap of ln 2 means: half of the gaps are shorter, all that came or none.
	if d := fromExponential([]int64{0, 693147181}, 1e9); math.Abs(d-0.5) > 1e-9 {
		t.Errorf("distance %v, want 0.5", d)
	}
}

func take(t *testing.T, o Options, n int) (*Schedule, []int64) {
	s := mustNew(t, o, 4)
	due := make([]int64, n)
	for i := range due {
		a, _ := s.Next(0)
		due[i] = a.Due
	}
	return s, due
}

// The index of w windows of a Poisson process is a χ² with w-1 degrees over
// them; by Wilson and Hilferty its cube root is normal with mean 1-v and
// variance v, v = 2/(9(w-1)).
func TestRealisedPoisson(t *testing.T) {
	const n = 90_000
	s, due := take(t, Options{Rate: 100}, n+1)
	g := s.Realised(due)
	if g.N != n || g.Windows != 300 || g.Asked == nil || g.Asked.Distance == nil {
		t.Fatalf("%+v", g)
	}
	v := 2.0 / (9 * 299)
	if got := math.Abs(math.Cbrt(g.Dispersion) - (1 - v)); got > z*math.Sqrt(v) {
		t.Errorf("index of dispersion %v", g.Dispersion)
	}
	if d := *g.Asked.Distance * math.Sqrt(n); d > ks {
		t.Errorf("Kolmogorov-Smirnov statistic √n·D is %v, bound %v", d, ks)
	}
	if got := math.Abs(g.CV - 1); got > z/math.Sqrt(n) {
		t.Errorf("CV %v", g.CV)
	}
	// Twice the rate is seen: every gap is half of what was asked, and the largest
	// distance of 1-exp(-2x) from 1-exp(-x) is 1/4.
	_, fast := take(t, Options{Rate: 200}, n+1)
	if d := *s.Realised(fast).Asked.Distance; math.Abs(d-0.25)*math.Sqrt(n) > ks {
		t.Errorf("at twice the rate the distance is %v, want 0.25", d)
	}
	slices.Reverse(due)
	if again := s.Realised(due); again.CV != g.CV || *again.Asked.Distance != *g.Asked.Distance {
		t.Errorf("in another order %+v, was %+v", again, g)
	}
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		o        Options
		mean, cv float64
		ok       bool
	}{
		{Options{Rate: 4}, 250e6, 1, true},
		{Options{Kind: Constant, Rate: 4}, 250e6, 0, true},
		{Options{Rate: 4, Burstiness: 0.25}, 250e6, 2, true},
		{Options{Rate: 4, Shape: 0.5}, 250e6, math.Sqrt(5), true}, // Γ(5)/Γ(3)² - 1 = 5
		{Options{Ramp: &Ramp{1, 2, time.Second}}, 0, 0, false},
		{Options{Steps: []Step{{1, time.Second}}}, 0, 0, false},
		{Options{Concurrency: 1}, 0, 0, false},
		{Options{Kind: All}, 0, 0, false},
	} {
		mean, cv, ok := mustNew(t, c.o, 1).Asked()
		if ok != c.ok || math.Abs(mean-c.mean) > 1e-6 || math.Abs(cv-c.cv) > 1e-12 {
			t.Errorf("%+v: %v, %v, %v", c.o, mean, cv, ok)
		}
	}
	given, err := timed(Options{}, []Arrival{{Due: 1}, {Due: 4}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if g := given.Realised([]int64{1, 4}); g.N != 1 || g.Asked != nil {
		t.Errorf("%+v", g)
	}
}

func TestGapsForPeople(t *testing.T) {
	d := 0.0123
	for _, c := range []struct {
		g    Gaps
		want string
	}{
		{Gaps{}, "no gaps: fewer than two requests"},
		{Gaps{N: 1, MeanNs: 4e9}, "1 gap, mean 4s"},
		{
			Gaps{N: 2500, MeanNs: 251.23456e6, CV: 1.01234, Dispersion: 0.98765, WindowNs: 12_561_728_000, Windows: 50, Asked: &Asked{MeanNs: 250e6, CV: 1, Dispersion: 1, Distance: &d}},
			"2500 gaps, mean 251ms (asked 250ms), coefficient of variation 1.01 (asked 1), index of dispersion over 12.6s 0.988 (asked 1), distance from exponential 0.012 (5 % of such runs exceed 0.027)",
		},
	} {
		if got := c.g.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Smirnov's table of the limiting distribution (Annals of Mathematical Statistics
// 19, 1948), 1 - L(λ), with the usual critical values to more digits; and exact
// critical values for small samples (Massey 1951).
func TestKolmogorov(t *testing.T) {
	for _, c := range []struct{ lambda, p float64 }{
		{0.5, 0.963945}, {0.827574, 0.5}, {1, 0.270000}, {1.223848, 0.1}, {1.358099, 0.05}, {1.627624, 0.01}, {2, 0.000671},
	} {
		const n = 1_000_000_000_000 // where the correction for few values is gone
		if got := kolmogorov(c.lambda/1e6, n); math.Abs(got-c.p) > 2e-5 {
			t.Errorf("λ %g: %g, want %g", c.lambda, got, c.p)
		}
	}
	for _, c := range []struct {
		n int
		d float64
	}{{10, 0.409}, {20, 0.294}, {35, 0.224}} { // exceeded by 5 %
		if got := kolmogorov(c.d, c.n); math.Abs(got-0.05) > 0.003 {
			t.Errorf("n %d, D %g: %g, want 0.05", c.n, c.d, got)
		}
	}
	if got := kolmogorov(0, 50); math.Abs(got-1) > 1e-12 {
		t.Errorf("no distance: %g", got)
	}
}
