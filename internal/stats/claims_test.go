package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// MLPerf's Table IV and the multiples of 2^13 that its rules ask for.
func TestQueryCounts(t *testing.T) {
	for _, c := range []struct {
		p, exact        float64
		nearest, blocks int64
	}{
		{.90, 23_885.63, 23_886, 24_576},
		{.95, 50_425.21, 50_425, 57_344},
		{.97, 85_811.33, 85_811, 90_112},
		{.99, 262_741.91, 262_742, 270_336},
		{.999, 2_651_304.68, 2_651_305, 2_654_208},
	} {
		n := QueryCount(c.p, 0.99)
		nearest, blocks := RoundedQueries(n)
		if math.Abs(n-c.exact) > 0.006 || nearest != c.nearest || blocks != c.blocks {
			t.Errorf("p%v: %.2f, %d, %d; want %+v", 100*c.p, n, nearest, blocks, c)
		}
	}
}

// n(t), t = 0, 1, 2, …, checked elsewhere against LoadGen's own routine.
func TestMinQueries(t *testing.T) {
	for p, want := range map[float64][]int64{
		.5:   {7, 11, 14, 17, 19, 22, 25, 27, 30, 33, 35, 38, 40, 42, 45, 47, 50, 52, 54, 57, 59},
		.9:   {44, 64, 81, 97, 113, 127, 142, 156, 170, 183, 197, 210, 223, 236, 249, 262, 275, 287, 300, 312, 325},
		.95:  {90, 130, 165, 198, 229, 259, 288, 316, 344, 371, 398, 425, 451, 478, 504, 529, 555, 580, 606, 631, 656},
		.97:  {152, 219, 277, 332, 383, 433, 482, 529, 576, 622, 667, 712, 756, 800, 843, 886, 929, 971, 1014, 1056, 1097},
		.99:  {459, 662, 838, 1001, 1157, 1307, 1453, 1596, 1736, 1874, 2010, 2144, 2277, 2409, 2539, 2669, 2798, 2925, 3052, 3179, 3304},
		.999: {4603, 6636, 8403, 10042, 11601, 13105, 14567, 15996, 17398, 18779, 20140, 21485, 22816, 24134, 25441, 26738, 28025, 29304, 30575, 31839, 33097},
	} {
		for over, n := range want {
			if got := MinQueries(int64(over), p, 0.99); got != n {
				t.Errorf("p%v, %d over: %d, want %d", 100*p, over, got, n)
			}
		}
	}
	for _, c := range []struct {
		over int64
		p    float64
		want int64
	}{
		{50, .9, 681},
		{77, .9, 989},
		{78, .9, 1000},
		{100, .9, 1246},
		{500, .9, 5518},
		{2600, .9, 27150},
		{50, .99, 6898},
		{77, .99, 9989},
		{100, .99, 12571},
		{500, .99, 55427},
		{1000, .99, 107569},
		{2600, .99, 272051},
		{1, .75, 24},
		{1, .8, 31},
		{1, .9999, 66381},
	} {
		if got := MinQueries(c.over, c.p, 0.99); got != c.want {
			t.Errorf("p%v, %d over: %d, want %d", 100*c.p, c.over, got, c.want)
		}
	}
}

func TestAllowedOver(t *testing.T) {
	ns := []int64{100, 200, 300, 500, 662, 1000, 2000, 3000, 5000, 10_000, 24_576, 50_000, 100_000, 270_336}
	for p, want := range map[float64][]int64{
		.9:  {3, 10, 18, 34, 48, 78, 168, 261, 450, 930, 2348, 4844, 9779, 26_670},
		.99: {-1, -1, -1, 0, 1, 2, 9, 17, 33, 77, 209, 448, 927, 2583},
	} {
		for i, n := range ns {
			got, ok := AllowedOver(n, p, 0.99)
			if ok != (want[i] >= 0) || ok && got != want[i] {
				t.Errorf("p%v of %d: %d, %v; want %d", 100*p, n, got, ok, want[i])
			}
		}
	}
}

// 10,000 queries of p99: 77 over are allowed, 76 discarded, the estimate is the
// value of rank 9924; 662 give the maximum, 661 none.
func TestRanksOfLoadGen(t *testing.T) {
	for _, c := range []struct{ n, want int64 }{{10_000, 9924}, {662, 662}, {661, 0}, {459, 0}, {24_576, 24_368}, {270_336, 267_754}} {
		if got, ok := EarlyStoppingRank(c.n, .99, .99); got != c.want || ok != (c.want > 0) {
			t.Errorf("%d: %d, want %d", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		n    int64
		p    float64
		want int64
	}{{100, .99, 100}, {1000, .99, 991}, {100, .9, 91}, {10, .5, 6}, {1, .99, 1}, {101, .99, 100}} {
		if got := LoadGenRank(c.n, c.p); got != c.want {
			t.Errorf("p%v of %d: rank %d, want %d", 100*c.p, c.n, got, c.want)
		}
	}
}

func TestAlwaysValid(t *testing.T) {
	for _, c := range []struct{ q0, ratio, start, perMiss float64 }{
		{.01, 2, 914, 138.6},
		{.1, 2, 85.2, 13.82},
		{.01, 1.5, 1370, 121.6},
		{.1, 1.5, 126.6, 12.15},
	} {
		r := AlwaysValid(c.q0, c.ratio, 0.01)
		if math.Abs(r.Start-c.start) > 6e-4*c.start || math.Abs(r.PerMiss-c.perMiss) > 6e-4*c.perMiss {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	r := AlwaysValid(.01, 2, .01)
	if got := r.Needs(3, 10); got != int64(math.Ceil(10*r.Start+3*r.PerMiss)) || got < 9550 || got > 9570 {
		t.Errorf("3 misses at tau 10: %d", got)
	}
	// The exact chance of ever passing within 100,000 requests at the limit itself:
	// dynamic programming over the number of misses. Nominal 1 %.
	if got := everPasses(r, .01, 30_000); got > 0.01 || got < 0.008 {
		t.Errorf("passes wrongly with chance %v", got)
	}
	// A true share of .5 % passes by 3000 requests with chance .64, by 10,000 .99.
	for n, want := range map[int]float64{3000: .64, 10_000: .99} {
		if got := everPasses(r, .005, n); math.Abs(got-want) > 0.006 {
			t.Errorf(".5 %% of misses: %v by %d, want %v", got, n, want)
		}
	}
}

// everPasses is the chance that the rule passes within n requests of which each
// misses with chance q.
func everPasses(r PassRule, q float64, n int) (passed float64) {
	most := int(float64(n)*q+10*math.Sqrt(float64(n)*q)) + 60
	left := make([]float64, most+1) // chance of so many misses without having passed
	left[0] = 1
	for i := 1; i <= n; i++ {
		for k := most; k > 0; k-- {
			left[k] = left[k]*(1-q) + left[k-1]*q
		}
		left[0] *= 1 - q
		for k := 0; k <= most && r.Needs(int64(k), 1) <= int64(i); k++ {
			passed += left[k]
			left[k] = 0
		}
	}
	return passed
}

// The law's own figures: 14,500/rho² for p99 to 5 %, 5800 for p90, 64,000 for
// p99.9; the oracle's 17,300 and 15,900 at .908 and .973 of saturation.
func TestCapacityRequests(t *testing.T) {
	for _, c := range []struct{ q0, rho, want float64 }{{.01, 1, 14_500}, {.1, 1, 5800}, {.001, 1, 64_400}, {.01, .908, 17_570}, {.01, .973, 15_300}} {
		if got := CapacityRequests(.05, c.q0, c.rho, .95); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%+v: %.0f", c, got)
		}
	}
	for _, c := range []struct{ delta, q0, want float64 }{{.05, .01, 34_700}, {.05, .05, 16_400}, {.05, .1, 13_900}, {.1, .01, 8700}, {.1, .1, 8000}, {.25, .01, 1500}, {.11, .001, 31_900}} {
		if got := SearchRequests(c.delta, c.q0); math.Abs(got-c.want) > 0.005*c.want {
			t.Errorf("%+v: %.0f", c, got)
		}
	}
}

// The values are scipy 1.17's stats.t.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ t, df, want float64 }{
		{0, 5, .5},
		{2.2621571627409915, 9, .975},
		{-1, 1, .25},
		{3.5, 4, 0.9875519182698886},
		{-12, 9, 3.8499431114928265e-07},
	} {
		if got := Student(c.t, c.df); math.Abs(got-c.want) > 1e-12+1e-10*min(c.want, 1-c.want) {
			t.Errorf("Student(%v, %v) = %v, want %v", c.t, c.df, got, c.want)
		}
	}
	for df, want := range map[float64]float64{1: 12.706204736432095, 9: 2.2621571627409915, 19: 2.093024054408263, 1000: 1.9623390808264078} {
		if got := StudentQuantile(.975, df); math.Abs(got-want) > 1e-10*want {
			t.Errorf("t(.975, %v) = %v, want %v", df, got, want)
		}
		if got := StudentQuantile(.025, df); math.Abs(got+want) > 1e-10*want {
			t.Errorf("t(.025, %v) = %v, want %v", df, got, -want)
		}
	}
}

// Student's own example (1908): hours of sleep gained by ten patients with one
// drug over another: mean 1.58, sd 1.23, t = 4.06, p = .0028.
func TestPairedT(t *testing.T) {
	one := []float64{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2}
	two := []float64{1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	d := make([]float64, len(one))
	for i := range d {
		d[i] = two[i] - one[i]
	}
	r, ok := PairedT(d)
	if !ok || r.N != 10 || math.Abs(r.Mean-1.58) > 1e-12 || math.Abs(r.SD-1.229995) > 1e-6 || math.Abs(r.P-0.00283289) > 1e-7 ||
		math.Abs(r.Low-0.7001142) > 1e-6 || math.Abs(r.High-2.4598858) > 1e-6 || math.Abs(r.Detects-2.8*1.229995/math.Sqrt(10)) > 1e-5 {
		t.Errorf("%+v", r)
	}
	// var one + var two over var of the differences: 3.2006 + 4.009 over 1.5129.
	if ratio, ok := VarianceRatio(one, two); !ok || math.Abs(ratio-4.765) > 0.001 {
		t.Errorf("variance ratio %v", ratio)
	}
	if _, ok := PairedT(d[:1]); ok {
		t.Error("one pair has no spread")
	}
	if r, _ := PairedT([]float64{0, 0, 0}); r.P < 1 {
		t.Errorf("no difference: %+v", r)
	}
	if r, _ := PairedT([]float64{2, 2, 2}); r.P > 0 || r.Low < 2 {
		t.Errorf("the same difference each time: %+v", r)
	}
	if n := PairsFor(1.23, Detectable(1.23, 10)); math.Abs(n-10) > 1e-9 {
		t.Errorf("%v pairs, want the 10 that it came from", n)
	}
}

// The paired t test holds its level: of 4000 experiments without a difference,
// 5 % ± 4 standard errors find one.
func TestPairedTHoldsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	found := 0
	for range 4000 {
		d := make([]float64, 10)
		for i := range d {
			d[i] = rng.NormFloat64()
		}
		if r, _ := PairedT(d); r.P < 0.05 {
			found++
		}
	}
	if found < 145 || found > 255 {
		t.Errorf("%d of 4000", found)
	}
}

// The example of R's p.adjust(method = "holm").
func TestHolm(t *testing.T) {
	got := Holm([]float64{.01, .04, .03, .005, .5})
	for i, want := range []float64{.04, .09, .09, .025, .5} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%v", got)
		}
	}
	if got := Holm([]float64{.9, .8}); got[0] < 1 || got[1] < 1 || len(Holm(nil)) > 0 {
		t.Errorf("%v", got)
	}
}

// A queue that grows by rho - 1 a request is found, one in steady state is not.
func TestDrift(t *testing.T) {
	flagged := func(rho float64, n int) (k int) {
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, uint64(1000*rho)))
			if d, ok := DriftOf(inSystem(rng, rho, n+500)[500:]); ok && d.Unsteady() {
				k++
			}
		}
		return k
	}
	for _, c := range []struct {
		rho         float64
		n           int
		least, most int
	}{{.5, 1000, 0, 2}, {.7, 1000, 0, 4}, {.8, 8000, 0, 2}, {1.12, 4000, 85, 100}, {1.35, 1000, 97, 100}} {
		if got := flagged(c.rho, c.n); got < c.least || got > c.most {
			t.Errorf("%d of 100 runs of %d at %v of saturation are flagged, want %d … %d", got, c.n, c.rho, c.least, c.most)
		}
	}
	up := make([]float64, 100)
	for i := range up {
		up[i] = 3 + 0.5*float64(i)
	}
	d, ok := DriftOf(up)
	if !ok || math.Abs(d.Slope-0.5) > 1e-12 || !d.Unsteady() || math.Abs(d.First-15.25) > 1e-9 || math.Abs(d.Second-40.25) > 1e-9 {
		t.Errorf("a straight line: %+v", d)
	}
	if _, ok := DriftOf(up[:19]); ok {
		t.Error("19 values make no ten batches")
	}
}

// inSystem is the number in an M/M/1 queue that each arrival finds, from empty.
func inSystem(rng *rand.Rand, rho float64, n int) []float64 {
	out := make([]float64, n)
	var ends []float64
	arrival, free := 0.0, 0.0
	for i := range out {
		arrival += rng.ExpFloat64() / rho
		for len(ends) > 0 && ends[0] <= arrival {
			ends = ends[1:]
		}
		out[i] = float64(len(ends))
		free = max(free, arrival) + rng.ExpFloat64()
		ends = append(ends, free)
	}
	return out
}
