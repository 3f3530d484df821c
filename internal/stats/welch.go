package stats

import "math"

// WelchT is what two independent samples say of mean(b) - mean(a), without taking
// their variances for equal (B. Welch, 1947); ok is false where one has fewer than
// two values. Low, High, P and Detects are as of PairedT, SD is that of a
// difference, N the smaller sample.
func WelchT(a, b []float64) (r Paired, ok bool) {
	if len(a) < 2 || len(b) < 2 {
		return r, false
	}
	va, vb := varianceOf(a)/float64(len(a)), varianceOf(b)/float64(len(b))
	r = Paired{N: min(len(a), len(b)), Mean: meanOf(b) - meanOf(a), P: 1}
	error2 := va + vb
	r.SD = math.Sqrt(error2 * float64(r.N))
	r.Low, r.High = r.Mean, r.Mean
	moved := r.Mean > 0 || r.Mean < 0
	if !(error2 > 0) {
		if moved {
			r.P = 0
		}
		return r, true
	}
	// Satterthwaite's degrees of freedom.
	df := error2 * error2 / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	half := StudentQuantile((1+Level)/2, df) * math.Sqrt(error2)
	r.Low, r.High, r.Detects = r.Mean-half, r.Mean+half, detectable*math.Sqrt(error2)
	if moved {
		r.P = 2 * Student(-math.Abs(r.Mean)/math.Sqrt(error2), df)
	}
	return r, true
}

// varianceOf is over n - 1.
func varianceOf(x []float64) (v float64) {
	mean := meanOf(x)
	for _, one := range x {
		v += (one - mean) * (one - mean)
	}
	return v / float64(len(x)-1)
}
