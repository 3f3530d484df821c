package stats

import "math"

// Level is that of every interval here: two-sided, 2.5 % on either side.
const Level = 0.95

const tail = (1 - Level) / 2

// OrderInterval gives the ranks of the two order statistics between which the
// percentile p (in thousandths) of whatever n independent values come from lies
// with 95 % confidence: P(X(low) <= q < X(high)). low is 0 where there is no
// lower end, high 0 where there is no upper end.
func OrderInterval(n int64, thousandths int) (low, high int64) {
	if n <= 0 {
		return 0, 0
	}
	p := float64(thousandths) / 1000
	low = binomialQuantile(n, p, tail)
	high = 1 + binomialQuantile(n, p, 1-tail)
	if high > n {
		high = 0
	}
	return low, high
}

// binomialQuantile is the least k with P(B <= k) >= target, B ~ Bin(n, p). It
// walks from the mode, where the probability is known to full precision.
func binomialQuantile(n int64, p, target float64) int64 {
	k := min(int64(float64(n+1)*p), n)
	odds := p / (1 - p)
	at := binomialPMF(n, k, p)
	cdf := 0.0
	for j, w := k, at; w > 0 && (w > cdf*1e-17 || j == k); j-- {
		cdf += w
		w *= float64(j) / (float64(n-j+1) * odds)
	}
	for cdf < target && k < n {
		at *= float64(n-k) / float64(k+1) * odds
		k++
		cdf += at
	}
	for k > 0 && cdf-at >= target {
		cdf -= at
		at *= float64(k) / (float64(n-k+1) * odds)
		k--
	}
	return k
}

// ClopperPearson is the exact 95 % interval of a share of which k of n were
// seen: the ends at which k or more, k or fewer, would come in 2.5 % of cases.
func ClopperPearson(k, n int64) (low, high float64) {
	low, high = 0, 1
	if n <= 0 {
		return low, high
	}
	seen := float64(k) / float64(n)
	spread := 2 * math.Sqrt(seen*(1-seen)/float64(n))
	switch {
	case k == n:
		low = math.Exp(math.Log(tail) / float64(n))
	case k > 0:
		low = solve(0, seen, max(seen-spread, seen/20), func(p float64) (f, slope float64) {
			pmf := binomialPMF(n, k, p)
			return pmf*upwards(n, k, p) - tail, pmf * float64(k) / p
		})
	}
	switch {
	case k == 0:
		high = -math.Expm1(math.Log(tail) / float64(n))
	case k < n:
		high = solve(seen, 1, min(seen+spread, 1-(1-seen)/20), func(p float64) (f, slope float64) {
			pmf := binomialPMF(n, k, p)
			return tail - pmf*downwards(n, k, p), pmf * float64(n-k) / (1 - p)
		})
	}
	return low, high
}

// solve finds the root of a rising f between lo and hi by Newton's method, and
// by halving where that leaves the bracket.
func solve(lo, hi, p float64, f func(float64) (v, slope float64)) float64 {
	for range 200 {
		v, slope := f(p)
		if v < 0 {
			lo = p
		} else {
			hi = p
		}
		next := p - v/slope
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-p) <= 1e-15*p {
			return next
		}
		p = next
	}
	return p
}

// upwards is P(B >= k)/P(B = k) for p < k/n, where the terms only shrink.
func upwards(n, k int64, p float64) float64 {
	odds := p / (1 - p)
	sum, w := 0.0, 1.0
	for j := k; w > sum*1e-17; j++ {
		sum += w
		w *= float64(n-j) / float64(j+1) * odds
	}
	return sum
}

// downwards is P(B <= k)/P(B = k) for p > k/n, where the terms only shrink.
func downwards(n, k int64, p float64) float64 {
	odds := p / (1 - p)
	sum, w := 0.0, 1.0
	for j := k; w > sum*1e-17; j-- {
		sum += w
		w *= float64(j) / (float64(n-j+1) * odds)
	}
	return sum
}

// binomialPMF is P(B = k), after C. Loader, "Fast and accurate computation of
// binomial probabilities" (2000): deviances instead of differences of large
// logarithms.
func binomialPMF(n, k int64, p float64) float64 {
	x, m, q := float64(k), float64(n), 1-p
	switch k {
	case 0:
		return math.Exp(m * math.Log1p(-p))
	case n:
		return math.Exp(m * math.Log(p))
	}
	l := stirlingError(m) - stirlingError(x) - stirlingError(m-x) - deviance(x, m*p) - deviance(m-x, m*q)
	return math.Exp(l) * math.Sqrt(m/(2*math.Pi*x*(m-x)))
}

// stirlingError is log n! less Stirling's formula.
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
