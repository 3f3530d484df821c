package stats

import (
	"cmp"
	"math"
	"slices"
)

// Student is the chance that a variable of Student's t distribution is at most t.
func Student(t, df float64) float64 {
	if math.IsInf(t, 0) {
		return (1 + math.Copysign(1, t)) / 2
	}
	beyond := Beta(df/(df+t*t), df/2, 0.5) / 2
	if t > 0 {
		return 1 - beyond
	}
	return beyond
}

// StudentQuantile is the quantile p of Student's t distribution.
func StudentQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -StudentQuantile(1-p, df)
	}
	x := BetaInverse(2*(1-p), df/2, 0.5)
	return math.Sqrt(df * (1 - x) / x)
}

// A Paired is what differences of pairs say of their mean.
type Paired struct {
	N         int
	Mean, SD  float64 // of the differences; SD over n - 1
	Low, High float64 // 95 % interval of the mean, t with n - 1 degrees of freedom
	P         float64 // two-sided p value of the mean being 0
	Detects   float64 // least difference found in 80 % of such experiments: 2.8 standard errors
}

// detectable is z(.975) + z(.8), to the digits in which it is usually quoted.
const detectable = 2.8

// PairedT is the paired t test of the differences; ok is false for fewer than two.
// Differences that are all the same have an interval of no width, and P is 1
// where they are 0 and 0 elsewhere.
func PairedT(differences []float64) (r Paired, ok bool) {
	n := len(differences)
	if n < 2 {
		return r, false
	}
	mean, squares := meanOf(differences), 0.0
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	r = Paired{N: n, Mean: mean, SD: math.Sqrt(squares / float64(n-1)), P: 1}
	error1, df := r.SD/math.Sqrt(float64(n)), float64(n-1)
	half := StudentQuantile((1+Level)/2, df) * error1
	r.Low, r.High, r.Detects = mean-half, mean+half, detectable*error1
	if mean > 0 || mean < 0 {
		r.P = 2 * Student(-math.Abs(mean)/error1, df)
	}
	return r, true
}

// VarianceRatio is how much smaller the variance of a difference is for pairs than
// for the same runs unpaired: (var a + var b)/var(a - b). ok is false where the
// differences do not vary, or there are fewer than two.
func VarianceRatio(a, b []float64) (ratio float64, ok bool) {
	if len(a) != len(b) || len(a) < 2 {
		return 0, false
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	square := func(x []float64) (s float64) {
		mean := meanOf(x)
		for _, v := range x {
			s += (v - mean) * (v - mean)
		}
		return s
	}
	if v := square(d); v > 0 {
		return (square(a) + square(b)) / v, true
	}
	return 0, false
}

// Detectable is the least difference that n pairs find in 80 % of cases at a level
// of 5 %, where pilot pairs gave standard deviation sd of their differences.
func Detectable(sd float64, n float64) float64 { return detectable * sd / math.Sqrt(n) }

// PairsFor is how many pairs find a difference in 80 % of cases at a level of 5 %.
func PairsFor(sd, difference float64) float64 {
	r := detectable * sd / difference
	return r * r
}

// Holm adjusts the p values of a family (S. Holm, 1979), so that the chance of any
// false finding among them is at most the level that they are compared with.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	adjusted, most := make([]float64, len(ps)), 0.0
	for k, i := range order {
		most = max(most, min(1, ps[i]*float64(len(ps)-k)))
		adjusted[i] = most
	}
	return adjusted
}
