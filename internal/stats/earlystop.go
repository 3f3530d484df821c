package stats

import (
	"math"
	"sort"
)

// MLPerf's query counts and early stopping, as its rules and its LoadGen have
// them (mlcommons/inference_policies, inference_rules.adoc, "Early Stopping
// Criterion"; mlcommons/inference, loadgen/early_stopping.cc).

// QueryCount is how many queries a percentile p takes by MLPerf's formula, so that
// the share beyond it is known to a twentieth of itself with confidence c:
// N = z²·p(1-p)/m², m = (1-p)/20, z = |Φ⁻¹((1-c)/2)|. It holds for independent
// queries.
func QueryCount(p, c float64) float64 { return QueryCountAt(p, c, (1-p)/20) }

// QueryCountAt is QueryCount for any margin m of the share.
func QueryCountAt(p, c, m float64) float64 {
	z := Normal((1 - c) / 2)
	return z * z * p * (1 - p) / (m * m)
}

// queryBlock is what MLPerf rounds query counts up to.
const queryBlock = 1 << 13

// RoundedQueries is a query count as MLPerf's table has it, rounded to the nearest
// number, and the multiple of 2¹³ that is at least the count itself.
func RoundedQueries(n float64) (nearest, blocks int64) {
	return int64(math.Round(n)), int64(math.Ceil(n/queryBlock)) * queryBlock
}

// MinQueries is the fewest queries that pass MLPerf's early stopping when over of
// them were over the latency: n(t) = h(t) + t, h(t) the least h at which
// P(Bin(h+t, 1-p) <= t) = I_p(h, t+1) is below 1 - c.
func MinQueries(over int64, p, c float64) int64 {
	fails := func(h int64) bool { return Beta(p, float64(h), float64(over)+1) >= 1-c }
	bad, good := int64(0), int64(1)
	for fails(good) {
		bad, good = good, 2*good
	}
	for good-bad > 1 {
		if mid := bad + (good-bad)/2; fails(mid) {
			bad = mid
		} else {
			good = mid
		}
	}
	return over + good
}

// AllowedOver is how many of n queries may be over the latency for them to pass
// early stopping; ok is false where n is too few to pass at all.
func AllowedOver(n int64, p, c float64) (over int64, ok bool) {
	if n < MinQueries(0, p, c) {
		return 0, false
	}
	return int64(sort.Search(int(n), func(t int) bool { return MinQueries(int64(t)+1, p, c) > n })), true
}

// EarlyStoppingRank is the rank, from 1, of the latency that LoadGen estimates a
// percentile by in its single- and multi-stream scenarios: the t-th largest, t the
// most over-latency queries that n would allow, 1 at least. It is one rank more
// careful than the upper confidence bound. ok is false where there is no estimate.
func EarlyStoppingRank(n int64, p, c float64) (rank int64, ok bool) {
	t, ok := AllowedOver(n, p, c)
	if !ok || t < 1 {
		return 0, false
	}
	return n - t + 1, true
}

// LoadGenRank is the rank, from 1, that LoadGen calls the percentile p of n
// latencies: ⌊n·p⌋ + 1 by a truncated product of floats. Everywhere else it is
// Rank.
func LoadGenRank(n int64, p float64) int64 { return min(int64(float64(n)*p)+1, n) }
