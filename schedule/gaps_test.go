package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// raw are the raw moments of a distribution of mean 1, from the first on.
type raw [4]float64

func gammaMoments(k float64) raw {
	return raw{1, (k + 1) / k, (k + 1) * (k + 2) / (k * k), (k + 1) * (k + 2) * (k + 3) / (k * k * k)}
}

func weibullMoments(k float64) raw {
	var m raw
	for j := range m {
		n := float64(j + 1)
		m[j] = math.Gamma(1+n/k) / math.Pow(math.Gamma(1+1/k), n)
	}
	return m
}

// spread is the coefficient of variation and the standard deviation of its
// estimate from n values. By the delta method, with skewness g and excess
// kurtosis e, that is cv·√(((e+2)/4 - g·cv + cv²)/n); 1/√n for the exponential.
func (m raw) spread(n float64) (cv, sd float64) {
	variance := m[1] - 1
	cv = math.Sqrt(variance)
	third := m[2] - 3*m[1] + 2
	fourth := m[3] - 4*m[2] + 6*m[1] - 3
	g, e := third/(variance*cv), fourth/(variance*variance)-3
	return cv, cv * math.Sqrt(((e+2)/4-g*cv+variance)/n)
}

func TestGapsHaveTheirMoments(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct {
		o Options
		m raw
	}{
		{Options{Kind: Gamma, Burstiness: 0.25}, gammaMoments(0.25)},
		{Options{Kind: Gamma, Burstiness: 1}, gammaMoments(1)},
		{Options{Burstiness: 9}, gammaMoments(9)},
		{Options{Kind: Weibull, Shape: 0.6}, weibullMoments(0.6)},
		{Options{Shape: 3}, weibullMoments(3)},
	} {
		name := fmt.Sprintf("burstiness %v, shape %v", c.o.Burstiness, c.o.Shape)
		c.o.Rate, c.o.Warmup = 1000, "0"
		s := mustNew(t, c.o, 5)
		due := make([]int64, n+1)
		for i := range n {
			a, _ := s.Next(0)
			due[i+1] = a.Due // the first gap is from time zero
		}
		g := s.Realised(due)
		cv, sd := c.m.spread(n)
		if math.Abs(g.MeanNs/1e6-1) > z*cv/math.Sqrt(n) {
			t.Errorf("%s: mean gap %v ns, want 1e6 ± %v", name, g.MeanNs, 1e6*z*cv/math.Sqrt(n))
		}
		if math.Abs(g.CV-cv) > z*sd {
			t.Errorf("%s: coefficient of variation %v, want %v ± %v", name, g.CV, cv, z*sd)
		}
		if a := g.Asked; a == nil || math.Abs(a.CV-cv) > 1e-9 || math.Abs(a.MeanNs-1e6) > 1e-3 || math.Abs(a.Dispersion-cv*cv) > 1e-9 || a.Distance != nil {
			t.Errorf("%s: asked %+v, want CV %v", name, a, cv)
		}
		// In windows of about 1,000 requests a renewal process has an index of CV²,
		// within 1 % here, and the index from w windows is that of a χ² with w - 1.
		if bound := z*math.Sqrt(2/float64(g.Windows-1)) + 0.01; g.Windows != 1000 || math.Abs(g.Dispersion/(cv*cv)-1) > bound {
			t.Errorf("%s: index of dispersion %v over %d windows, want %v within %v of it", name, g.Dispersion, g.Windows, cv*cv, bound)
		}
	}
}

// Distribution functions that have a closed form, against what is drawn.
func TestGapsHaveTheirDistribution(t *testing.T) {
	const n = 200_000
	root := math.Sqrt(n)
	weibullShare := func(k float64) func(float64) float64 {
		return func(x float64) float64 { return -math.Expm1(-math.Pow(x*math.Gamma(1+1/k), k)) }
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		gaps  gaps
		share func(x float64) float64
	}{
		{"gamma 0.5", gamma{r, 0.5}, func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) }}, // half a χ² of one degree
		{"gamma 1", gamma{r, 1}, func(x float64) float64 { return -math.Expm1(-x) }},
		{"gamma 2", gamma{r, 2}, func(x float64) float64 { return 1 - math.Exp(-2*x)*(1+2*x) }},
		{"gamma 4", gamma{r, 4}, func(x float64) float64 { return 1 - math.Exp(-4*x)*(1+4*x+8*x*x+32*x*x*x/3) }},
		{"weibull 0.5", weibull{r, 0.5}, weibullShare(0.5)},
		{"weibull 1", weibull{r, 1}, func(x float64) float64 { return -math.Expm1(-x) }},
		{"weibull 2", weibull{r, 2}, weibullShare(2)},
	} {
		x := make([]float64, n)
		neighbours := 0.0
		for i := range x {
			x[i] = c.gaps.next()
			if i > 0 {
				neighbours += (x[i] - 1) * (x[i-1] - 1)
			}
		}
		variance := c.gaps.cv() * c.gaps.cv()
		if got := neighbours / variance / n; math.Abs(got) > z/root {
			t.Errorf("%s: neighbours correlate by %v, bound %v", c.name, got, z/root)
		}
		slices.Sort(x)
		var d float64
		for i, v := range x {
			f := c.share(v)
			d = max(d, f-float64(i)/n, float64(i+1)/n-f)
		}
		if d*root > ks {
			t.Errorf("%s: Kolmogorov-Smirnov statistic √n·D is %v, bound %v", c.name, d*root, ks)
		}
	}
}

// shapes are schedules of every way in which times are drawn.
var shapes = []Options{
	{Rate: 50},
	{Kind: Constant, Rate: 50},
	{Rate: 50, Burstiness: 0.25},
	{Rate: 50, Shape: 0.6},
	{Rate: 20, Burst: &Burst{Rate: 300, Every: 10 * time.Second, For: time.Second}},
	{Rate: 20, Burstiness: 0.5, Burst: &Burst{Rate: 300, Every: 10 * time.Second, For: time.Second}},
	{Ramp: &Ramp{To: 100, Over: 20 * time.Second}},
	{Kind: Constant, Ramp: &Ramp{From: 90, To: 10, Over: 20 * time.Second}},
	{Steps: []Step{{Rate: 30, For: 3 * time.Second}, {For: time.Second}, {Rate: 80, For: 10 * time.Second}}},
	{Shape: 2, Steps: []Step{{Rate: 30, For: 3 * time.Second}, {Rate: 80}}, Duration: 9 * time.Second},
}

// The same seed gives the same schedule, whoever else draws at the same time.
func TestSchedulesAreReproducible(t *testing.T) {
	draw := func(o Options, seed uint64) []Arrival {
		s, err := New(o, seed)
		if err != nil {
			t.Error(err)
			return nil
		}
		all := make([]Arrival, 3000)
		for i := range all {
			all[i], _ = s.Next(0)
		}
		return all
	}
	want := make([][]Arrival, len(shapes))
	for i, o := range shapes {
		want[i] = draw(o, 11)
		if other := draw(o, 12); o.Kind != Constant && slices.Equal(want[i], other) {
			t.Errorf("%+v: another seed gave the same times", o)
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		var all sync.WaitGroup
		for i, o := range shapes {
			for range 2 {
				all.Go(func() {
					if !slices.Equal(want[i], draw(o, 11)) {
						t.Errorf("GOMAXPROCS %d, %+v: the same seed gave other times", procs, o)
					}
				})
			}
		}
		all.Wait()
	}
}
