package schedule

import (
	"math"
	"slices"
	"testing"
)

func mustNew(t *testing.T, o Options, seed uint64) *Schedule {
	t.Helper()
	s, err := New(o, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// z and ks are bounds that a right generator passes with probability 1 - 1e-6.
const z = 4.8916 // of a standard normal, two-sided
var ks = math.Sqrt(math.Log(2e6) / 2)

// An exponential gap of mean 1 has variance 1 and fourth central moment 9. Over
// n gaps the mean is normal with sd 1/√n; the sample variance with sd
// √((9-1)/n); the share above a cap c, p = exp(-c), with √(p(1-p)/n); the
// correlation of neighbours with 1/√n; and √n times the largest distance of the
// empirical from the true distribution exceeds x with probability 2exp(-2x²)
// (Kolmogorov), so x = √(ln(2·10⁶)/2). Rounding to ns is 10⁻⁶ of a gap here.
func TestPoissonIsExponential(t *testing.T) {
	const n, rate = 1_000_000, 1000.0
	for _, seed := range []uint64{0, 1, 2029} {
		s := mustNew(t, Options{Rate: rate, Requests: n - 1, Warmup: "0", Drain: "load"}, seed)
		x := make([]float64, n)
		last := int64(0)
		for i := range x {
			a, _ := s.Next(0)
			x[i], last = float64(a.Due-last)*rate/1e9, a.Due
		}
		if x[0] <= 0 {
			t.Errorf("seed %d: the first gap is %v, and must be drawn", seed, x[0])
		}
		var sum, squares, neighbours float64
		above := 0
		for i, v := range x {
			sum += v
			squares += (v - 1) * (v - 1)
			if i > 0 {
				neighbours += (v - 1) * (x[i-1] - 1)
			}
			if v > 3 {
				above++
			}
		}
		mean := sum / n
		variance := (squares - n*(mean-1)*(mean-1)) / (n - 1)
		within := func(what string, got, want, sd float64) {
			t.Helper()
			if math.Abs(got-want) > z*sd {
				t.Errorf("seed %d: %s is %v, want %v ± %v", seed, what, got, want, z*sd)
			}
		}
		root := math.Sqrt(n)
		within("mean", mean, 1, 1/root)
		within("variance", variance, 1, math.Sqrt(8)/root)
		within("correlation of neighbours", neighbours/n, 0, 1/root)
		p := math.Exp(-3)
		within("share above 3 means", float64(above)/n, p, math.Sqrt(p*(1-p))/root)

		// n-1 requests from 0 to the due time of the n-th.
		start, end, known := s.Window()
		if start != 0 || end != last || !known {
			t.Errorf("seed %d: window [%d, %d) %v, want [0, %d)", seed, start, end, known, last)
		}
		within("realised rate", (n-1)/(float64(end-start)/1e9)/rate, 1, 1/root)

		slices.Sort(x)
		var d float64
		for i, v := range x {
			f := 1 - math.Exp(-v)
			d = max(d, f-float64(i)/n, float64(i+1)/n-f)
		}
		if d*root > ks {
			t.Errorf("seed %d: Kolmogorov-Smirnov statistic √n·D is %v, bound %v", seed, d*root, ks)
		}
	}
}

func TestPoissonIsReproducible(t *testing.T) {
	due := func(seed uint64, rate float64) []int64 {
		s := mustNew(t, Options{Rate: rate, Requests: 1000}, seed)
		var d []int64
		for range 1000 {
			a, _ := s.Next(0)
			d = append(d, a.Due)
		}
		return d
	}
	a := due(7, 100)
	if !slices.Equal(a, due(7, 100)) {
		t.Error("the same seed gave other times")
	}
	if slices.Equal(a, due(8, 100)) {
		t.Error("another seed gave the same times")
	}
	// The gaps are the same in units of their mean, whatever the rate.
	for i, d := range due(7, 200) {
		if diff := a[i] - 2*d; diff < -2 || diff > 2 {
			t.Fatalf("request %d: due at %d at 100/s and at %d at 200/s", i, a[i], d)
		}
	}
}

// Request k of rate r is due at k/r, to the nearest ns, however large k is.
func TestConstantIsExact(t *testing.T) {
	for _, rate := range []int64{1, 3, 7, 1000, 30_000} {
		s := mustNew(t, Options{Kind: Constant, Rate: float64(rate), Requests: 1}, 1)
		for k := range int64(400_000) {
			a, ok := s.Next(0)
			want := (2*k*1_000_000_000 + rate) / (2 * rate) // half up, in integers
			if !ok || a.Due != want || a.Index != k {
				t.Fatalf("rate %d: request %d is due at %d with index %d, want %d", rate, k, a.Due, a.Index, want)
			}
		}
	}
}
