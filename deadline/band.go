package deadline

import "math"

// Of every resample: sweeps from each start, and those from the best.
const (
	resampleShort     = 10
	resampleLong      = 120
	resampleTolerance = 1e-6
)

// resample fits the curve anew to so many draws of whole blocks of time, with
// replacement, and gives their coefficients. intN draws from 0 to n - 1.
func (f *fitted) resample(s *sample, times int, intN func(n int) int) [][]float64 {
	number := map[int64]int{}
	for _, b := range s.block {
		if _, ok := number[b]; !ok {
			number[b] = len(number)
		}
	}
	starts := [][]float64{f.b, quantileCurve(s.p, s.y, f.shape, 1/float64(len(s.y))), quantileCurve(s.p, s.y, f.shape, 0.35)}
	g := newFrontier(s, f.shape, f.noise)
	g.weight = make([]float64, len(s.y))
	all := make([][]float64, 0, times)
	for range times {
		drawn := make([]float64, len(number))
		for range drawn {
			drawn[intN(len(drawn))]++
		}
		for i, b := range s.block {
			g.weight[i] = drawn[number[b]]
		}
		var best *state
		for i, b := range starts {
			st := startState(b, &f.noise)
			if i == 0 { // as the fit ended, with a little of everything
				st.va, st.vm = f.va, f.vm
				for j, v := range f.state.share {
					st.share[j] = 0.9*v + 0.1/float64(components)
				}
			}
			g.climb(st, resampleShort, tolerance)
			if best == nil || st.ll > best.ll {
				best = st
			}
		}
		g.climb(best, resampleLong, resampleTolerance)
		all = append(all, best.b)
	}
	return all
}

// A band is how low and how high the floor may be. When probes thin out towards
// the floor, it may lie as far below the lowest curve as the curve of the lowest
// tenth lies above that: an end point reflected. The upper edge allows for the
// skew of network jitter.
type band struct {
	shape      *shape
	resamples  [][]float64
	env, tenth []float64
	above      float64 // s
	level      float64
}

// leastOfLowest bounds the reflection, over the lowest curve.
const leastOfLowest = 0.3

func newBand(s *sample, f *fitted, resamples [][]float64) *band {
	var p, y []float64
	for i, v := range f.tooFast {
		if v < 0.5 {
			p, y = append(p, s.p[i]), append(y, s.y[i])
		}
	}
	return &band{
		shape: f.shape, resamples: resamples, above: math.Sqrt(f.va), level: bandLevel,
		env: quantileCurve(p, y, f.shape, 1/float64(len(y))), tenth: quantileCurve(p, y, f.shape, 0.10),
	}
}

// at is both ends in seconds.
func (b *band) at(p float64) (low, high float64) {
	v := make([]float64, len(b.resamples))
	for i, r := range b.resamples {
		v[i] = math.Log(math.Max(b.shape.at(r, p), 1e-9))
	}
	v = sorted(v)
	tail := (1 - b.level) / 2
	low, high = math.Exp(quantile(v, tail)), math.Exp(quantile(v, 1-tail))
	env, tenth := b.shape.at(b.env, p), b.shape.at(b.tenth, p)
	reflected := math.Max(env-math.Max(0, tenth-env), leastOfLowest*env)
	return math.Min(low, reflected), high + b.above
}

// halfWidth is half of the band on a log scale: about the relative error that it
// leaves open.
func (b *band) halfWidth(p float64) float64 {
	low, high := b.at(p)
	return math.Log(high/low) / 2
}
