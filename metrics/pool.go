package metrics

import (
	"slices"

	"fermata/internal/stats"
)

// A pool is what a series of many values a request keeps by request, since it is
// the request that is drawn at random, not the value. It counts the values at or
// below a bound near each percentile. The bound is an end of the bucket that holds
// the percentile, which is known when the first pass ends; what follows from the
// counts is known only when all values have come again, unless they are kept.
type pool struct {
	clusters stats.Clusters
	asks     []ask
	ps       []int   // percentiles, in thousandths
	bounds   []int64 // of each
	effects  []float64
	settled  bool
}

// sparseFrom is the percentile, in thousandths, from which on a hundredth of the
// values spreads over many buckets.
const sparseFrom = 950

// An ask is somebody's wish for a percentile of the values and of as many more as
// never ended.
type ask struct {
	p     int
	never int64
}

func (c *pool) clone() *pool {
	d := *c
	d.clusters.Sizes = slices.Clone(c.clusters.Sizes)
	return &d
}

// size takes the number of a request's values.
func (c *pool) size(n int) { c.clusters.Sizes = append(c.clusters.Sizes, uint32(n)) }

// count takes a request's values once more, for two bounds at a time. The sign of a
// difference counts, for no branch to be guessed wrong.
func (c *pool) count(vs []int64) {
	for i := 0; i < len(c.bounds); i += 2 {
		j := min(i+1, len(c.bounds)-1)
		beyondI, beyondJ := c.bounds[i]+1, c.bounds[j]+1
		var belowI, belowJ uint64
		for _, v := range vs {
			belowI += uint64(v-beyondI) >> 63
			belowJ += uint64(v-beyondJ) >> 63
		}
		c.clusters.Below[i] = append(c.clusters.Below[i], uint32(belowI))
		if j > i {
			c.clusters.Below[j] = append(c.clusters.Below[j], uint32(belowJ))
		}
	}
}

// seek chooses the bounds and the ranks that help to tell the ends of intervals.
// again says that all values must come once more.
func (c *pool) seek(s *series) (ranks []int64, again bool) {
	n := s.n()
	if n == 0 {
		c.settled, s.tau = true, stats.Independent
		return nil, false
	}
	c.ps = slices.Clone(s.percentiles())
	for _, a := range c.asks {
		c.ps = append(c.ps, a.p)
		ranks = append(ranks, stats.Rank(n+a.never, a.p))
	}
	slices.Sort(c.ps)
	c.ps = slices.Compact(c.ps)
	at := make([]int64, len(c.ps))
	for i, p := range c.ps {
		at[i] = stats.Rank(n, p)
	}
	for i, b := range s.ints.Buckets(at...) {
		c.bounds = append(c.bounds, parting(b, at[i], n))
		// Where values are sparse, an interval may end in a bucket far from here. It does
		// not go farther than if a request were worth one value.
		if c.ps[i] >= sparseFrom {
			low, high := stats.OrderInterval(n, c.ps[i], float64(s.requests))
			ranks = append(ranks, low, high)
		}
	}
	c.clusters.Below = make([][]uint32, len(c.ps))
	kept, ok := s.ints.Kept()
	if !ok {
		return ranks, true
	}
	for _, size := range c.clusters.Sizes {
		c.count(kept[:size])
		kept = kept[size:]
	}
	c.settle(s)
	for _, p := range s.percentiles() {
		low, high := s.interval(ask{p: p})
		ranks = append(ranks, low, high)
	}
	for _, a := range c.asks {
		low, high := s.interval(a)
		ranks = append(ranks, low, high)
	}
	return ranks, false
}

// parting is the end of a bucket that parts the values about where the rank does,
// with some on either side, if there is one.
func parting(b stats.Bucket, rank, n int64) int64 {
	upTo := b.Before + b.In
	if b.Before > 0 && (upTo == n || rank-b.Before < upTo-rank) {
		return b.Lo - 1
	}
	return b.Hi
}

// settle works out what the counts say.
func (c *pool) settle(s *series) {
	if c.settled {
		return
	}
	c.settled, s.tau = true, stats.Independent
	for i, p := range c.ps {
		effect, tau := c.clusters.Effect(i, s.dep.closed)
		c.effects = append(c.effects, effect)
		if slices.Contains(stats.UpperTail, p) {
			s.tau = s.tau.Or(tau)
		}
	}
	if !s.own || s.dep.batch {
		s.tau = s.dep.of(s.tau)
	}
	c.clusters = stats.Clusters{}
}

// effect is the design effect near the percentile p.
func (c *pool) effect(p int) float64 {
	if i := slices.Index(c.ps, p); i >= 0 {
		return c.effects[i]
	}
	return 1
}
