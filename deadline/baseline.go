package deadline

import "fmt"

// The simpler ways to a curve, for comparison.
const (
	LeastSquares = "least-squares" // one request a length, as if the server were idle
	Minimum      = "minimum"       // the least of each length
	Median       = "median"        // quantile regression
	LowQuantile  = "q10"           // quantile regression, the usable fallback up to a load of 0.6
)

// Baseline is the quadratic curve, in ns by tokens, that a simpler estimator makes
// of the same probes. They are there to be compared with Fit, not to be used on
// a server under load.
func Baseline(name string, probes []Probe) (func(tokens float64) float64, error) {
	s, err := sampled(probes, minProbes)
	if err == nil {
		err = s.spread()
	}
	if err != nil {
		return nil, err
	}
	sh := quadraticShape(s.longest())
	var b []float64
	switch name {
	case LeastSquares:
		b = firstOfEach(s, &sh)
	case Minimum:
		b = byLength(s.p, s.y, &sh, 0)
	case Median:
		b = quantileCurve(s.p, s.y, &sh, 0.5)
	case LowQuantile:
		b = quantileCurve(s.p, s.y, &sh, 0.1)
	default:
		return nil, fmt.Errorf("there is no estimator %q: it is one of %v", name, []string{LeastSquares, Minimum, Median, LowQuantile})
	}
	return func(p float64) float64 { return 1e9 * sh.at(b, p) }, nil
}

// firstOfEach is least squares through the first probe of each length, with
// coefficients of either sign.
func firstOfEach(s *sample, sh *shape) []float64 {
	k := sh.columns()
	a := activeSet{a: make([]float64, k*k), c: make([]float64, k), free: make([]bool, k)}
	for j := range a.free {
		a.free[j] = true
	}
	row := make([]float64, k)
	for _, at := range groups(s.p) {
		sh.row(s.p[at[0]], row)
		for j, v := range row {
			a.c[j] += v * s.y[at[0]]
			for l, w := range row {
				a.a[j*k+l] += v * w
			}
		}
	}
	return a.solve()
}
