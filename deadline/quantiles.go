package deadline

import "math"

// lowQuartiles is for each probe the lower quartile of the times in its group of
// lengths: the size that simple estimators weigh errors against.
func lowQuartiles(p, y []float64) []float64 {
	s := make([]float64, len(y))
	for _, at := range groups(p) {
		q := quantile(sorted(pick(y, at)), 0.25)
		for _, i := range at {
			s[i] = q
		}
	}
	return s
}

// byLength fits a shape to one quantile of each group of lengths, relative errors
// counting alike; tau 0 is the least of each.
func byLength(p, y []float64, s *shape, tau float64) []float64 {
	by := groups(p)
	lengths, times, weights := make([]float64, len(by)), make([]float64, len(by)), make([]float64, len(by))
	for i, at := range by {
		lengths[i], times[i] = mean(pick(p, at)), quantile(sorted(pick(y, at)), tau)
		weights[i] = 1 / (times[i] * times[i])
	}
	return nnls(s.matrix(lengths), s.columns(), times, weights)
}

// quantileCurve is the quantile regression with coefficients of 0 or more and
// relative errors: by majorising steps (Hunter and Lange 2000), each of them an
// nnls.
func quantileCurve(p, y []float64, s *shape, tau float64) []float64 {
	x, k, size := s.matrix(p), s.columns(), lowQuartiles(p, y)
	target, weights := make([]float64, len(y)), make([]float64, len(y))
	b := byLength(p, y, s, tau)
	for _, eps := range []float64{1e-2, 1e-3, 1e-4, 1e-5} {
		for range 150 {
			for i, v := range y {
				d := eps + math.Abs(v-dot(x[i*k:i*k+k], b))/size[i]
				weights[i] = 1 / (d * size[i] * size[i])
				target[i] = v + (2*tau-1)*d*size[i]
			}
			next := nnls(x, k, target, weights)
			change := 0.0
			for j, v := range next {
				change = math.Max(change, math.Abs(v-b[j])/(1e-4+math.Abs(b[j])))
			}
			b = next
			if change < 1e-6 {
				break
			}
		}
	}
	return b
}
