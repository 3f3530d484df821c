package schedule

import (
	"math"
	"slices"
	"testing"
	"time"
)

func dueMs(t *testing.T, o Options, n int) []float64 {
	t.Helper()
	s := mustNew(t, o, 1)
	var due []float64
	for range n {
		a, _ := s.Next(0)
		due = append(due, float64(a.Due)/1e6)
	}
	return due
}

// Even gaps make the inverse of the rate's integral visible: request k is due
// when the integral is k.
func TestPlannedRatesByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want []float64 // ms
	}{
		// 10 requests in [0, 1 s); the eleventh finds a rate of 0 until 2 s.
		{
			"steps",
			Options{Steps: []Step{{10, time.Second}, {0, time.Second}, {2, 2 * time.Second}, {Rate: 5}}, Requests: 1},
			[]float64{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 2000, 2500, 3000, 3500, 4000, 4200, 4400},
		},
		// The rate changes in the middle of a gap: half of it at 1/s, half at 10/s.
		{"a gap over a seam", Options{Steps: []Step{{1, 1500 * time.Millisecond}, {Rate: 10}}, Requests: 1}, []float64{0, 1000, 1550, 1650}},
		// The integral is t²/10 up to 10 s, then 10 + 2(t - 10).
		{
			"ramp from 0",
			Options{Ramp: &Ramp{0, 2, 10 * time.Second}},
			[]float64{0, 3162.277660, 4472.135955, 5477.225575, 6324.555320, 7071.067812, 7745.966692, 8366.600265, 8944.271910, 9486.832981, 10000, 10500, 11000},
		},
		// 4t - 0.75t² up to 2 s, where it is 5; then 5 + (t - 2).
		{
			"falling ramp",
			Options{Ramp: &Ramp{4, 1, 2 * time.Second}},
			[]float64{0, (4 - math.Sqrt(13)) / 1.5e-3, (4 - math.Sqrt(10)) / 1.5e-3, (4 - math.Sqrt(7)) / 1.5e-3, (4 - 2) / 1.5e-3, 2000, 3000},
		},
	} {
		c.o.Kind = Constant
		got := dueMs(t, c.o, len(c.want))
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 2e-6 }) {
			t.Errorf("%s: due at %v ms,\nwant %v", c.name, got, c.want)
		}
	}
}

// A Poisson process of changing rate has independent Poisson counts in disjoint
// stretches, whose means are the integral of the rate. Over R schedules the sum
// of the counts of a stretch of mean m is within z√(Rm); with B stretches,
// Σ(count-m)²/m has mean RB and variance RΣ(2+1/m); and the products of
// neighbours' (count-m)/√m have mean 0 and variance 1.
func TestPlannedPoissonIsExact(t *testing.T) {
	const schedules = 400
	second := time.Second
	for _, c := range []struct {
		name  string
		o     Options
		edges []float64 // s
		means []float64
	}{
		{
			"ramp",
			Options{Ramp: &Ramp{0, 20, 100 * second}},
			[]float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110},
			[]float64{10, 30, 50, 70, 90, 110, 130, 150, 170, 190, 200}, // (20/200)(b²-a²), then 20/s
		},
		{
			"steps",
			Options{Steps: []Step{{5, 20 * second}, {0, 10 * second}, {40, 5 * second}, {1, 10 * second}}},
			[]float64{0, 5, 20, 30, 31, 35, 45, 60},
			[]float64{25, 75, 0, 40, 160, 10, 15},
		},
	} {
		total := make([]float64, len(c.means))
		var squares, products, variance float64
		for seed := range uint64(schedules) {
			s := mustNew(t, c.o, seed)
			count := make([]float64, len(c.means))
			for {
				a, _ := s.Next(0)
				i, on := slices.BinarySearch(c.edges, float64(a.Due)/1e9)
				if !on {
					i--
				}
				if i >= len(count) {
					break
				}
				count[i]++
			}
			for i, m := range c.means {
				total[i] += count[i]
				if m > 0 {
					squares += (count[i] - m) * (count[i] - m) / m
				}
				if i > 0 && m*c.means[i-1] > 0 {
					products += (count[i] - m) * (count[i-1] - c.means[i-1]) / math.Sqrt(m*c.means[i-1])
				}
			}
		}
		stretches, neighbours := 0.0, 0.0
		for i, m := range c.means {
			if math.Abs(total[i]-schedules*m) > z*math.Sqrt(schedules*m) {
				t.Errorf("%s: %v requests from %v to %v s in all, want %v ± %v", c.name, total[i], c.edges[i], c.edges[i+1], schedules*m, z*math.Sqrt(schedules*m))
			}
			if m > 0 {
				stretches++
				variance += schedules * (2 + 1/m)
			}
			if i > 0 && m*c.means[i-1] > 0 {
				neighbours++
			}
		}
		if want := schedules * stretches; math.Abs(squares-want) > z*math.Sqrt(variance) {
			t.Errorf("%s: the counts' squares add up to %v, want %v ± %v", c.name, squares, want, z*math.Sqrt(variance))
		}
		if bound := z * math.Sqrt(schedules*neighbours); math.Abs(products) > bound {
			t.Errorf("%s: neighbouring counts correlate: %v, bound %v", c.name, products, bound)
		}
	}
}

// countVariance is that of the count over t seconds of a Poisson process whose
// rate has the autocovariance c: mean·t + 2∫(t-s)c(s)ds, by Simpson's rule.
func countVariance(mean, t float64, c func(float64) float64) float64 {
	const steps = 2000
	h, sum := t/steps, 0.0
	for i := range steps + 1 {
		w := 2.0 + 2*float64(i%2)
		if i == 0 || i == steps {
			w = 1
		}
		s := h * float64(i)
		sum += w * (t - s) * c(s)
	}
	return mean*t + 2*sum*h/3
}

// Counts of many schedules over the same windows from time zero are independent
// draws of the count of a stationary process. Their mean has sd √(v/R), their
// variance sd √((μ4-v²)/R) with the fourth central moment as it is found.
func TestBurstsDisperse(t *testing.T) {
	const schedules = 20_000
	o := Options{Rate: 2, Burst: &Burst{Rate: 40, Every: 10 * time.Second, For: time.Second}}
	// A tenth of the time bursts: 2·0.9 + 40·0.1 = 5.8/s; left at 1/9 and 1/s.
	const mean, change = 5.8, 1 + 1.0/9
	covariance := func(s float64) float64 { return 0.9 * 0.1 * 38 * 38 * math.Exp(-change*s) }
	windows := []float64{0.2, 1, 5, 15}
	counts := make([][]float64, len(windows))
	for seed := range uint64(schedules) {
		s := mustNew(t, o, seed)
		n := 0.0
		for i, w := 0, 0.0; i < len(windows); n++ {
			a, _ := s.Next(0)
			for w = float64(a.Due) / 1e9; i < len(windows) && w > windows[i]; i++ {
				counts[i] = append(counts[i], n)
			}
		}
	}
	s := mustNew(t, o, 1)
	for i, w := range windows {
		variance := countVariance(mean, w, covariance)
		if got := s.askedDispersion(int64(w*1e9), 0); math.Abs(got-variance/(mean*w)) > 1e-9*got {
			t.Errorf("asked dispersion over %v s is %v, want %v", w, got, variance/(mean*w))
		}
		var m, second, fourth float64
		for _, n := range counts[i] {
			m += n / schedules
		}
		for _, n := range counts[i] {
			second += (n - m) * (n - m) / schedules
			fourth += math.Pow(n-m, 4) / schedules
		}
		if bound := z * math.Sqrt(variance/schedules); math.Abs(m-mean*w) > bound {
			t.Errorf("%v requests in %v s, want %v ± %v", m, w, mean*w, bound)
		}
		if bound := z * math.Sqrt((fourth-second*second)/schedules); math.Abs(second-variance) > bound {
			t.Errorf("the variance of the count over %v s is %v, want %v ± %v", w, second, variance, bound)
		}
	}
}

// The gap from one request to the next has the moments j!·φ·M⁻ʲ·1, where M is
// the matrix of leaving a state or having a request, and φ the states as
// requests find them. Sampled moments are held against the means of 200 batches
// of 5,000 gaps, far longer than a burst: |t| of 199 degrees exceeds 5.1 with
// probability 8e-7.
func TestBurstsHaveTheirGaps(t *testing.T) {
	o := Options{Rate: 2, Burst: &Burst{Rate: 40, Every: 10 * time.Second, For: time.Second}}
	s := mustNew(t, o, 3)
	// M = [[2 + 1/9, -1/9], [-1, 40 + 1]], φ = (0.9·2, 0.1·40)/5.8.
	a, b, c, d := 2+1.0/9, -1.0/9, -1.0, 41.0
	det := a*d - b*c
	solve := func(x, y float64) (float64, float64) { return (d*x - b*y) / det, (a*y - c*x) / det }
	x1, y1 := solve(1, 1)
	x2, y2 := solve(x1, y1)
	first := (1.8*x1 + 4*y1) / 5.8
	second := 2 * (1.8*x2 + 4*y2) / 5.8
	mean, cv, ok := s.Asked()
	if !ok || math.Abs(mean/1e9-first) > 1e-12 || math.Abs(first-1/5.8) > 1e-12 || math.Abs(cv-math.Sqrt(second/(first*first)-1)) > 1e-9 {
		t.Errorf("asked mean %v ns and CV %v, %v; want %v s and %v", mean, cv, ok, first, math.Sqrt(second/(first*first)-1))
	}
	const batches, batch = 200, 5000
	last := int64(0)
	for j, want := range []float64{first, second} {
		var m, squares float64
		for range batches {
			sum := 0.0
			for range batch {
				a, _ := s.Next(0)
				sum += math.Pow(float64(a.Due-last)/1e9, float64(j+1)) / batch
				last = a.Due
			}
			m += sum / batches
			squares += sum * sum / batches
		}
		if bound := 5.1 * math.Sqrt((squares-m*m)/(batches-1)); math.Abs(m-want) > bound {
			t.Errorf("moment %d of the gaps is %v, want %v ± %v", j+1, m, want, bound)
		}
	}
	if mustNew(t, Options{Rate: 2, Burstiness: 2, Burst: o.Burst}, 3).Realised([]int64{0, 5}).Asked != nil {
		t.Error("bursts of gamma gaps have no known moments")
	}
}

// With a plan nothing is left out: measured requests are those of the plan.
func TestPlansSetTheMeasuredPhase(t *testing.T) {
	for _, c := range []struct {
		o          Options
		start, end int64 // ms
		text       string
	}{
		{Options{Ramp: &Ramp{1, 9, 10 * time.Second}}, 0, 10_000, "none"},
		{Options{Ramp: &Ramp{1, 9, 10 * time.Second}, Warmup: "4s"}, 4000, 10_000, "4s"},
		{Options{Steps: []Step{{3, 5 * time.Second}, {7, 6 * time.Second}}, Warmup: "10%"}, 1000, 11_000, "1s (10 %)"},
		{Options{Steps: []Step{{3, 5 * time.Second}, {Rate: 7}}, Duration: 9 * time.Second}, 0, 9000, "none"},
	} {
		s := mustNew(t, c.o, 1)
		for a, ok := s.Next(0); a.Phase != Drain; a, ok = s.Next(0) {
			if want := a.Due >= c.start*ms; !ok || want != (a.Phase == Measured) {
				t.Errorf("%+v: %+v", c.o, a)
			}
		}
		if start, end, known := s.Window(); start != c.start*ms || end != c.end*ms || !known || s.WarmupText() != c.text {
			t.Errorf("%+v: window [%d, %d) %v, warm-up %s", c.o, start, end, known, s.WarmupText())
		}
	}
}

// Times beyond what 64 bits hold stay at the last one.
func TestTimesSaturate(t *testing.T) {
	s := mustNew(t, Options{Kind: Constant, Rate: rateMin, Requests: 1}, 1)
	last := int64(0)
	for range 10_000 { // 10⁶ s each: 10¹⁰ s in all
		a, _ := s.Next(0)
		if a.Due < last {
			t.Fatalf("due at %d after %d", a.Due, last)
		}
		last = a.Due
	}
	if last != 9e18 {
		t.Errorf("due at %d", last)
	}
}
