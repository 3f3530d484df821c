package stats

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// wander is a queue's workload with whole steps of -up … 1999-up, drawn by a
// congruential generator that any language can repeat.
func wander(n, up int) []float32 {
	s, w := uint64(12345), int64(0)
	out := make([]float32, n)
	for i := range out {
		s = s*6364136223846793005 + 1442695040888963407
		w = max(0, w+int64((s>>33)%2000)-int64(up))
		out[i] = float32(w + int64(i%7))
	}
	return out
}

// The figures are numpy's: FFT for all lags, pairs, cumulative minima.
func TestCorrelationTimes(t *testing.T) {
	for _, c := range []struct {
		n, up            int
		tau              float64
		by               string
		geyer, batches20 float64 // of the values themselves
	}{
		{37, 1100, 2.34771613719, ByGeyer, 3.31914651033, 1},
		{200, 1100, 16.36, ByGeyer, 14.7303823734, 7.03646104781},
		{5000, 1050, 122.7232, ByGeyer, 167.33701346, 131.272361199},
		{5000, 1010, 1064.73905393, ByGeyer, 1207.46880796, 243.133217476},
		{40000, 1003, 3538.94075556, ByGeyer, 5662.8863096, 1899.95932555},
		{3000, 700, 1000, ByGeyer, 1043.99348946, 157.477983774},
	} {
		values := wander(c.n, c.up)
		if got := TauOf(values, UpperTail, false); math.Abs(got.V-c.tau) > 1e-8*c.tau || got.By != c.by {
			t.Errorf("%+v: %+v", c, got)
		}
		x := make([]float64, c.n)
		for i, v := range values {
			x[i] = float64(v)
		}
		if got := TauGeyer(x); math.Abs(got-c.geyer) > 1e-8*c.geyer {
			t.Errorf("%+v: Geyer of the values %v", c, got)
		}
		if got := TauBatches(x, 20); math.Abs(got-c.batches20) > 1e-8*c.batches20 {
			t.Errorf("%+v: batches of the values %v", c, got)
		}
		if got := TauOf(values, UpperTail, true); got.By == ByGeyer {
			t.Errorf("%+v: batch means alone say %+v", c, got)
		}
	}
}

func TestNothingCorrelates(t *testing.T) {
	for name, values := range map[string][]float32{
		"none": nil, "one": {3}, "constant": slices.Repeat([]float32{7}, 500),
	} {
		if got := TauOf(values, UpperTail, false); got != Independent {
			t.Errorf("%s: %+v", name, got)
		}
	}
	inf := float32(math.Inf(1))
	if got := TauOf([]float32{1, inf, 2, inf, -inf, inf, inf, inf}, UpperTail, false); !(got.V >= 1 && got.V < 8) {
		t.Errorf("infinities: %+v", got)
	}
}

// Of independent values, tau is near 1; of values that come in equal runs of k, it
// is near k, and of AR(1) signs (1+r)/(1-r).
func TestCorrelationTimesAreThoseOfTheory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := 200_000
	flags := make([]bool, n)
	for i := range flags {
		flags[i] = rng.Float64() < 0.3
	}
	if got := TauOfFlags(flags, false); got.V > 2 { // batch means of ten scatter by a half
		t.Errorf("independent: %+v", got)
	}
	for i := range flags {
		if i%10 > 0 {
			flags[i] = flags[i-1]
		}
	}
	// For runs that begin at fixed places, the variance of a sum is 10 times that of
	// independent ones, and so is Geyer's sum of autocorrelations.
	if got := TauOfFlags(flags, false); got.V < 9 || got.V > 20 {
		t.Errorf("runs of ten: %+v", got)
	}
	state := false
	for i := range flags {
		if rng.Float64() < 0.05 {
			state = !state
		}
		flags[i] = state
	}
	x := make([]float64, n)
	for i, f := range flags {
		if f {
			x[i] = 1
		}
	}
	// A symmetric two-state chain that turns with probability s has correlation 1-2s.
	if got, want := TauGeyer(x), (1+0.9)/(1-0.9); math.Abs(got-want) > 1 {
		t.Errorf("two states: %v, want about %v", got, want)
	}
}

// Counting bits, going lag by lag and transforming say the same.
func TestWaysToALagAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flags := rapid.SliceOfN(rapid.Bool(), 1, 300).Draw(t, "flags")
		n := len(flags)
		var b bitSeries
		b.flags(flags)
		x := b.floats()
		all := autocovariance(x, n/2)
		mean := meanOf(x)
		for k := range n/2 + 1 {
			want, both := 0.0, 0
			for i := range n - k {
				want += (x[i] - mean) * (x[i+k] - mean)
				if flags[i] && flags[i+k] {
					both++
				}
			}
			if math.Abs(all[k]-want) > 1e-9 || b.products(k) != both {
				t.Fatalf("lag %d: %v and %d, want %v and %d", k, all[k], b.products(k), want, both)
			}
		}
	})
}

func TestFourier(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n <= 64; n *= 2 {
		f := make([]complex128, n)
		for i := range f {
			f[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		}
		want := make([]complex128, n)
		for k := range want {
			for i, v := range f {
				want[k] += v * cmplx.Rect(1, -2*math.Pi*float64(i*k)/float64(n))
			}
		}
		fourier(f)
		for k := range f {
			if cmplx.Abs(f[k]-want[k]) > 1e-12*float64(n) {
				t.Fatalf("%d: term %d is %v, want %v", n, k, f[k], want[k])
			}
		}
	}
}

func TestSelectRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Float32Range(-5, 5), 1, 100).Draw(t, "a")
		for i := range a {
			a[i] = float32(int(a[i])) // with many equal ones
		}
		k := rapid.IntRange(0, len(a)-1).Draw(t, "k")
		sorted := slices.Clone(a)
		slices.Sort(sorted)
		selectRank(a, k)
		if a[k] != sorted[k] {
			t.Fatalf("rank %d is %v, want %v", k, a[k], sorted[k])
		}
		for i, v := range a {
			if i < k && v > a[k] || i > k && v < a[k] {
				t.Fatalf("%v at %d, but %v at %d", v, i, a[k], k)
			}
		}
	})
}

// The relaxation times that the measured correlation times are set against: 21 at
// .69 of saturation, 236 at .908, 2700 at .973.
func TestRelaxation(t *testing.T) {
	for rho, want := range map[float64]float64{0: 2, .5: 8, .69: 20.8, .8: 50, .9: 200, .908: 236.3, .973: 2743, 1: 2e6, 3: 2e6, -1: 2} {
		if got := Relaxation(rho); math.Abs(got.V-want) > 0.001*want || got.By != ByHeavyTraffic {
			t.Errorf("at %v: %+v, want %v", rho, got, want)
		}
	}
	if got := (Tau{3, ByGeyer}).Or(Relaxation(0.5)); got.By != ByHeavyTraffic {
		t.Errorf("%+v", got)
	}
	if got := (Tau{9, ByGeyer}).Or(Relaxation(0.5)); got.By != ByGeyer {
		t.Errorf("%+v", got)
	}
}

// Where all values of a request are alike, a request is worth one value; where
// they are independent, each is worth itself.
func TestClusters(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const requests, size = 20_000, 50
	alike, apart := Clusters{Below: [][]uint32{nil}}, Clusters{Below: [][]uint32{nil}}
	for range requests {
		var all, some uint32
		if rng.Float64() < 0.9 {
			all = size
		}
		for range size {
			if rng.Float64() < 0.9 {
				some++
			}
		}
		alike.Sizes, alike.Below[0] = append(alike.Sizes, size), append(alike.Below[0], all)
		apart.Sizes, apart.Below[0] = append(apart.Sizes, size), append(apart.Below[0], some)
	}
	if effect, tau := alike.Effect(0, false); math.Abs(effect-size) > 1e-6 || tau.V > 3 {
		t.Errorf("alike: %v, %+v", effect, tau)
	}
	// R·var(z)/(n·P·(1-P)) scatters by √(2/R) = 1 %.
	if effect, tau := apart.Effect(0, false); effect > 1.04 || tau.V > 3 {
		t.Errorf("apart: %v, %+v", effect, tau)
	}
	none := Clusters{Sizes: []uint32{4, 4}, Below: [][]uint32{{4, 4}}}
	if effect, tau := none.Effect(0, false); math.Abs(effect-4) > 1e-12 || tau != Independent {
		t.Errorf("nothing above: %v, %+v", effect, tau)
	}
}
