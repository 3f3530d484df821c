package stats

import "math"

// Level is that of every interval here unless another is asked for: two-sided,
// 2.5 % on either side.
const Level = 0.95

// OrderInterval gives the ranks of the two order statistics between which the
// percentile p (in thousandths) of whatever n values come from lies with 95 %
// confidence: P(X(low) <= q < X(high)). low is 0 where there is no lower end,
// high 0 where there is no upper end. The values are worth nEff independent ones,
// which need not be whole; n itself where they are independent.
func OrderInterval(n int64, thousandths int, nEff float64) (low, high int64) {
	return OrderIntervalAt(n, float64(thousandths)/1000, nEff, Level)
}

// OrderIntervalAt is OrderInterval for any percentile 0 < p < 1 and level.
//
// With B ~ Bin(n, p), P(X(l) <= q < X(u)) = P(l <= B <= u-1), and P(B >= k) is
// I_p(k, n-k+1), which does not ask for whole numbers: l is the last k at which
// P(B < k), u the first at which P(B >= k) is no more than half of what the level
// leaves. Among n values of which nEff count, they become ⌊n·l/nEff⌋ and
// ⌈n·u/nEff⌉.
func OrderIntervalAt(n int64, p, nEff, level float64) (low, high int64) {
	nEff = min(nEff, float64(n))
	if !(nEff > 0) {
		return 0, 0
	}
	half := (1 - level) / 2
	spread := float64(n) / nEff
	if !(nEff*math.Log1p(-p) > math.Log(half)) { // (1-p)^nEff
		k := quantileRank(nEff, p, 1-half)
		low = int64(k*spread + roundUp)
	}
	if !(nEff*math.Log(p) > math.Log(half)) { // p^nEff
		k := quantileRank(nEff, p, half)
		high = int64(math.Ceil(k*spread - roundUp))
	}
	if high > n {
		high = 0
	}
	return low, high
}

// roundUp is what a rank may be off its whole number by the precision of
// floating point.
const roundUp = 1e-7

// quantileRank is the k at which P(B >= k) = I_p(k, n-k+1) is what is asked for:
// it falls from 1 to p^n as k grows from 0 to n.
func quantileRank(n, p, want float64) float64 {
	sd := math.Sqrt(n * p * (1 - p))
	// Half a step beyond the normal quantile, which counts whole numbers.
	guess := n*p + 0.5 - Normal(want)*sd
	return solve(0, n, min(max(guess, n*1e-9), n), func(k float64) (f, slope float64) {
		// A step of k moves I by about the probability of k - 1/2.
		at := max(k-0.5, 0)
		return want - Beta(p, k, n-k+1), binomial(n, min(at, n), p, 1-p)
	})
}

// ClopperPearson is the exact 95 % interval of a share of which k of n were
// seen: the ends at which k or more, k or fewer, would come in 2.5 % of cases.
// k and n need not be whole: of correlated values, both are taken over tau.
func ClopperPearson(k, n float64) (low, high float64) {
	return ClopperPearsonAt(k, n, Level)
}

// ClopperPearsonAt is ClopperPearson at any level.
func ClopperPearsonAt(k, n, level float64) (low, high float64) {
	if !(n > 0) {
		return 0, 1
	}
	half := (1 - level) / 2
	low, high = 0, 1
	if k > 0 {
		low = BetaInverse(half, k, n-k+1)
	}
	if k < n {
		high = BetaInverse(1-half, k+1, n-k)
	}
	return low, high
}

// What a percentile takes to be stated.
const (
	Correlated = 50 // correlation times that a run must be long, in requests
	Beyond     = 5  // independent values on the thinner side of it
)

// Sufficient says that a percentile, in thousandths, of so many requests that are
// worth nEff independent values can be stated at all, if its interval has its ends.
func Sufficient(requests int64, tau, nEff float64, thousandths int) bool {
	return float64(requests) >= Correlated*tau && nEff*float64(min(thousandths, 1000-thousandths)) >= Beyond*1000*(1-1e-12)
}

// SmallestClosed is how many independent values the percentile 0 < p < 1 needs
// for its interval to have an upper end: the least n with p^n at most half of what
// the level leaves.
func SmallestClosed(p, level float64) int64 {
	return int64(math.Ceil(math.Log((1-level)/2)/math.Log(p) - roundUp))
}
