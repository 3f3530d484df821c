package stats

import "math"

// Beta is the regularised incomplete beta function I_x(a, b), for a and b above
// 0, to about 1e-13 of its value. For whole numbers, P(B >= k) = I_p(k, n-k+1)
// with B ~ Bin(n, p); that is what it is for, also where n and k are not whole.
//
// The continued fraction is that of A. DiDonato and A. Morris, "Algorithm 708:
// Significant digit computation of the incomplete beta function ratios" (1992);
// the factor before it is a binomial probability in Loader's saddle-point form, so
// that little is lost where a and b are in the millions.
func Beta(x, a, b float64) float64 {
	switch {
	case !(a > 0) || !(b > 0) || math.IsNaN(x):
		return math.NaN()
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // the fraction converges fast on this side only
		return 1 - tailOf(1-x, x, b, a)
	}
	return tailOf(x, 1-x, a, b)
}

// tailOf is I_x(a, b) where x, with y = 1 - x, is below the mean: the power terms
// x^a·y^b/B(a, b) over the continued fraction.
func tailOf(x, y, a, b float64) float64 {
	return a * b / (a + b) * binomial(a+b, a, x, y) / fraction(x, y, a, b)
}

// fraction is the continued fraction of I_x(a, b), by Lentz's method. None of its
// terms is a difference of near numbers.
func fraction(x, y, a, b float64) float64 {
	start := a*y - b*x + 1
	h := a * start / (a + 1)
	c, d := h, 0.0
	for m := 1.0; m < 1e7; m++ {
		by := a + 2*m - 1
		num := (a + m - 1) * (a + b + m - 1) / by * (m * (b - m) / by) * x * x
		den := m + m*(b-m)*x/by + (a+m)*(start+m*(2-x))/(a+2*m+1)
		d = 1 / (den + num*d)
		c = den + num/c
		h *= c * d
		if math.Abs(c*d-1) < 4e-16 {
			break
		}
	}
	return h
}

// betaDensity is x^(a-1)·y^(b-1)/B(a, b), y = 1 - x.
func betaDensity(x, y, a, b float64) float64 {
	return a * b / (a + b) * binomial(a+b, a, x, y) / (x * y)
}

// binomial is x^k·y^(n-k)·Γ(n+1)/(Γ(k+1)·Γ(n-k+1)), y = 1 - x: for whole k and n
// the probability of k out of n. After C. Loader, "Fast and accurate computation
// of binomial probabilities" (2000): deviances instead of differences of large
// logarithms.
func binomial(n, k, x, y float64) float64 {
	switch {
	case k <= 0:
		return math.Exp(n * logOf(y, x))
	case k >= n:
		return math.Exp(n * logOf(x, y))
	}
	l := stirlingError(n) - stirlingError(k) - stirlingError(n-k) - deviance(k, n*x) - deviance(n-k, n*y)
	return math.Exp(l) * math.Sqrt(n/(2*math.Pi*k*(n-k)))
}

// logOf is log x by whichever of x and y = 1 - x is smaller.
func logOf(x, y float64) float64 {
	if y < x {
		return math.Log1p(-y)
	}
	return math.Log(x)
}

// stirlingError is log Γ(n+1) less Stirling's formula.
func stirlingError(n float64) float64 {
	if n < 16 {
		l, _ := math.Lgamma(n + 1)
		return l - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	s := n * n
	return (1./12 - (1./360-(1./1260-(1./1680-1./1188/s)/s)/s)/s) / n
}

// deviance is x·log(x/m) + m - x, by its series where x is near m.
func deviance(x, m float64) float64 {
	if math.Abs(x-m) >= 0.1*(x+m) {
		return x*math.Log(x/m) + m - x
	}
	v := (x - m) / (x + m)
	s := (x - m) * v
	e := 2 * x * v
	for j := 3.0; ; j += 2 {
		e *= v * v
		s += e / j
		if math.Abs(e) <= 1e-17*math.Abs(s) {
			return s
		}
	}
}

// BetaInverse is the x at which I_x(a, b) is p.
func BetaInverse(p, a, b float64) float64 {
	switch {
	case !(a > 0) || !(b > 0) || math.IsNaN(p):
		return math.NaN()
	case p <= 0:
		return 0
	case p >= 1:
		return 1
	case b == 1:
		return math.Exp(math.Log(p) / a)
	case a == 1:
		return -math.Expm1(math.Log1p(-p) / b)
	}
	mean := a / (a + b)
	sd := math.Sqrt(mean * (1 - mean) / (a + b + 1))
	guess := mean + Normal(p)*sd
	if guess <= mean/20 || guess >= 1-(1-mean)/20 {
		guess = mean
	}
	return solve(0, 1, guess, func(x float64) (f, slope float64) {
		return Beta(x, a, b) - p, betaDensity(x, 1-x, a, b)
	})
}

// solve finds the root of a rising f between lo and hi by Newton's method, and
// by halving where that leaves the bracket.
func solve(lo, hi, x float64, f func(float64) (v, slope float64)) float64 {
	for range 200 {
		v, slope := f(x)
		if v < 0 {
			lo = x
		} else {
			hi = x
		}
		next := x - v/slope
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-x) <= 1e-15*math.Abs(x) {
			return next
		}
		x = next
	}
	return x
}

// Normal is the quantile p of the standard normal distribution.
func Normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
