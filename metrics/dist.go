package metrics

import (
	"math"
	"slices"

	"fermata/internal/stats"
	"fermata/recording"
)

// Which way a metric is better.
const (
	lower   = "lower"
	higher  = "higher"
	neutral = ""
)

// How many values a distribution keeps before it counts in buckets and needs the
// recording a second time: of metrics with one value a request, and of those
// with one a token.
const (
	keepRequests = 1 << 17
	keepTokens   = 1 << 20
)

var (
	percentiles     = []int{500, 900, 950, 990, 999}
	percentilesBoth = []int{10, 50, 100, 500, 900, 950, 990, 999}
)

// A series collects the values of one metric and becomes a Dist.
type series struct {
	unit, better string
	ints         *stats.Ints
	floats       *stats.Floats // instead of ints, where values are not whole
	low, high    *stats.Ends   // what the stamps allow; nil where they do not matter
	requests     int64
	over         []int64
	more         []int // further percentiles, in thousandths
	second       bool  // seek was called
	again        bool  // the values are needed once more

	dep   *dependence
	own   bool      // of the instrument or the workload: no queue makes it wait
	order []float32 // a value a request, in the order of due times
	pool  *pool     // of many values a request whose sums over requests matter
	tau   stats.Tau // after seek
}

func newSeries(opt Options, unit, better string) *series {
	s := &series{unit: unit, better: better, more: opt.PerMille, own: better == neutral, dep: opt.dependence, ints: stats.NewInts(opt.keep(keepRequests))}
	if s.dep == nil {
		s.dep = &dependence{}
	}
	return s
}

func newFloats(opt Options, unit, better string) *series {
	s := newSeries(opt, unit, better)
	s.ints, s.floats = nil, stats.NewFloats(opt.keep(keepRequests))
	return s
}

// instrument makes s one that tells of the measuring side.
func (s *series) instrument() *series {
	s.own = true
	return s
}

// many makes s one of many values a request that are worth one value together.
func (s *series) many(opt Options) *series {
	s.ints = stats.NewInts(opt.keep(keepTokens), s.over...)
	return s
}

// stands takes what stands for all values of a request where it is asked how
// requests hang together.
func (s *series) stands(v float64) {
	if !s.second {
		s.order = grown(s.order, v)
	}
}

// pooled makes s one of many values a request that are worth what their sums over
// requests say.
func (s *series) pooled(opt Options) *series {
	s.many(opt)
	s.pool = &pool{}
	s.ints.Outline = true
	if s.low != nil {
		s.low.Limit, s.high.Limit = opt.keep(keepTokens), opt.keep(keepTokens)
	}
	return s
}

// stamps makes s carry what the stamps allow beside each value.
func (s *series) stamps() *series {
	s.low, s.high = &stats.Ends{Limit: s.ints.Limit}, &stats.Ends{Limit: s.ints.Limit}
	return s
}

// exceeding makes s count the values above the bounds.
func (s *series) exceeding(opt Options) *series {
	s.over = opt.OverNs
	s.ints = stats.NewInts(s.ints.Limit, s.over...)
	return s
}

// clone is a copy of a series of whole numbers that goes its own way.
func (s *series) clone() *series {
	c := *s
	c.ints, c.order = s.ints.Clone(), slices.Clone(s.order)
	if s.pool != nil {
		c.pool = s.pool.clone()
	}
	if s.low != nil {
		c.low, c.high = s.low.Clone(), s.high.Clone()
	}
	return &c
}

// n is how many values came.
func (s *series) n() int64 {
	if s.floats != nil {
		return s.floats.N()
	}
	return s.ints.N()
}

// grown is order with one more value. Room doubles, for it to be copied seldom.
func grown(order []float32, v float64) []float32 {
	if len(order) == cap(order) {
		order = slices.Grow(order, max(64, len(order)))
	}
	return append(order, float32(v))
}

// int takes one request's value.
func (s *series) int(v int64) {
	switch {
	case !s.second:
		s.requests++
		s.order = grown(s.order, float64(v))
		s.ints.Add(v)
	case s.again:
		s.ints.Again(v)
	}
}

// stamped takes one request's value and between which ends the stamps allow it
// to be; below 0 it cannot be. known is false where the stamps say nothing.
func (s *series) stamped(v, lo, hi int64, known bool) {
	s.int(v)
	if known && !s.second {
		s.low.Add(lo)
		s.high.Add(hi)
	}
}

// expects makes room for n values.
func (s *series) expects(n int64) {
	s.ints.Reserve(int(n))
	if s.low != nil {
		s.low.Reserve(int(n))
		s.high.Reserve(int(n))
	}
}

// all takes many values of one request.
func (s *series) all(vs []int64) {
	if len(vs) == 0 {
		return
	}
	switch {
	case !s.second:
		s.requests++
		s.ints.AddAll(vs)
		if s.pool != nil {
			s.pool.size(len(vs))
		}
	case s.again:
		s.ints.AgainAll(vs)
		if s.pool != nil {
			s.pool.count(vs)
		}
	}
}

// run takes the same value times times; the caller counts the request.
func (s *series) run(v, times int64) {
	switch {
	case !s.second:
		s.ints.AddN(v, times)
	case s.again:
		for ; times > 0; times-- {
			s.ints.Again(v)
		}
	}
}

// float takes one request's value that need not be whole.
func (s *series) float(v float64) {
	switch {
	case !s.second:
		s.requests++
		s.order = grown(s.order, v)
		s.floats.Add(v)
	case s.again:
		s.floats.Again(v)
	}
}

func (s *series) percentiles() []int {
	all := percentiles
	if s.better == higher {
		all = percentilesBoth
	}
	if len(s.more) == 0 {
		return all
	}
	all = append(slices.Clone(all), s.more...)
	slices.Sort(all)
	return slices.Compact(all)
}

// tails are the percentiles whose indicators tell the correlation time: both ways
// where low values are the bad ones.
func (s *series) tails() stats.Tails {
	if s.better == higher {
		return stats.BothTails
	}
	return stats.UpperTail
}

// seek ends the first pass and says which columns a second one needs, if any.
func (s *series) seek() recording.Columns {
	if s == nil || s.second {
		return 0
	}
	s.second = true
	var ranks []int64
	counts := false
	if s.pool != nil {
		ranks, counts = s.pool.seek(s)
	} else {
		s.tau = s.dep.taus.Of(s.order, s.tails(), s.dep.closed)
		if !s.own || s.dep.batch {
			s.tau = s.dep.of(s.tau)
		}
		s.order = nil
	}
	var own []int64
	for _, p := range s.percentiles() {
		own = append(own, stats.Rank(s.n(), p))
		if s.pool == nil {
			low, high := s.interval(ask{p: p})
			ranks = append(ranks, low, high)
		}
	}
	if s.low != nil {
		s.low.Seek(own...)
		s.high.Seek(own...)
	}
	ranks = append(ranks, own...)
	if s.floats != nil {
		s.again = s.floats.Seek(ranks...)
	} else {
		s.again = s.ints.Seek(ranks...) || counts
	}
	if s.again {
		return recording.Times
	}
	return 0
}

// interval is between which ranks a percentile lies.
func (s *series) interval(a ask) (low, high int64) {
	return s.dep.ranks(s.n()+a.never, a.p, s.nEff(a))
}

// nEff is how many independent values the values are worth for a percentile.
func (s *series) nEff(a ask) float64 {
	if s.dep.batch {
		return float64(s.n() + a.never)
	}
	if s.pool != nil {
		return float64(s.n()+a.never) / s.pool.effect(a.p) / s.tau.V
	}
	return float64(s.requests) / s.tau.V
}

func seekAll(all ...*series) (want recording.Columns) {
	for _, s := range all {
		want |= s.seek()
	}
	return want
}

// at is the value of a rank.
func (s *series) at(rank int64) (float64, bool) {
	if s.floats != nil {
		return s.floats.At(rank)
	}
	v, ok := s.ints.At(rank)
	return float64(v), ok
}

// dist is the distribution over those of the measured requests that have the
// value; nil where none has.
func (s *series) dist(measured int64) *Dist {
	n := s.n()
	if n == 0 {
		return nil
	}
	if s.pool != nil {
		s.pool.settle(s)
	}
	d := &Dist{
		Unit: s.unit, N: n, NRequests: s.requests, Missing: measured - s.requests,
		Level: stats.Level, Better: s.better,
	}
	d.Mean, d.SD, d.Min, d.Max = s.moments()
	for _, p := range s.percentiles() {
		d.Quantiles = append(d.Quantiles, s.quantile(p))
	}
	for i, bound := range s.over {
		above := s.ints.Above(i)
		d.Over = append(d.Over, s.exceedance(bound, above, n, d.Missing))
	}
	return d
}

func (s *series) moments() (mean, sd, least, most *float64) {
	var m, v, lo, hi float64
	var okMean, okSD bool
	if s.floats != nil {
		m, okMean = s.floats.Mean()
		v, okSD = s.floats.SD()
		lo, hi = s.floats.Min(), s.floats.Max()
	} else {
		m, okMean = s.ints.Mean()
		v, okSD = s.ints.SD()
		lo, hi = float64(s.ints.Min()), float64(s.ints.Max())
	}
	if s.unit == "ns" {
		m, v = math.Round(m), math.Round(v)
	}
	return some(m, okMean), some(v, okSD), &lo, &hi
}

func some(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

func (s *series) quantile(p int) Quantile {
	n, nEff := s.n(), s.nEff(ask{p: p})
	tau := s.tau.V
	q := Quantile{P: float64(p) / 1000, NEff: nEff, Tau: &tau, Rule: s.rule()}
	q.Value, _ = s.at(stats.Rank(n, p))
	low, high := s.interval(ask{p: p})
	q.Low, q.High = s.ends(low, high)
	q.Status = s.dep.status(s.requests, tau, nEff, p, q.Low != nil && q.High != nil)
	// Ends that cover only part of the values would be those of another quantile.
	if s.low != nil && s.low.N() == n {
		lo, _, ok := s.low.At(stats.Rank(n, p))
		q.StampLow = some(float64(lo), ok)
		_, hi, ok := s.high.At(stats.Rank(n, p))
		q.StampHigh = some(float64(hi), ok)
	}
	return q
}

// rule names what the effective count rests on.
func (s *series) rule() string {
	if s.pool != nil && !s.dep.batch {
		return "clusters, " + s.tau.By
	}
	return s.tau.By
}

// ends are the values of two ranks, or what they cannot be beyond.
func (s *series) ends(low, high int64) (lo, hi *float64) {
	if s.floats != nil {
		return some(s.floats.At(low)), some(s.floats.At(high))
	}
	l, _, okLow := s.ints.Within(low)
	_, h, okHigh := s.ints.Within(high)
	return some(float64(l), okLow), some(float64(h), okHigh)
}

// endsOrNever is where the value of a rank lies, with ranks beyond the values those
// of what never ended.
func (s *series) endsOrNever(rank int64) (lo, hi *float64) {
	if rank > s.n() {
		return some(math.Inf(1), true), some(math.Inf(1), true)
	}
	return s.ends(rank, rank)
}

// exceedance is the share of values above a bound.
func (s *series) exceedance(bound, above, n, missing int64) Over {
	low, high := s.dep.share(above, n, float64(n)*s.worth(above))
	return Over{
		Value: float64(bound), Share: float64(above) / float64(n),
		ShareWithMissing: float64(above+missing) / float64(n+missing), Low: &low, High: &high,
	}
}

// worth is the share of values that are independent, for the share of those above
// a bound.
func (s *series) worth(above int64) float64 {
	n := s.n()
	p := int(1000 * (n - above) / n)
	nearest := s.percentiles()[0]
	for _, q := range s.percentiles() {
		if abs(q-p) < abs(nearest-p) {
			nearest = q
		}
	}
	return min(1, s.nEff(ask{p: nearest})/float64(n))
}

func abs(v int) int { return max(v, -v) }

// of is the value of a quantile of d.
func (d *Dist) of(p float64) (float64, bool) {
	if d == nil {
		return 0, false
	}
	for _, q := range d.Quantiles {
		if math.Abs(q.P-p) < 1e-9 {
			return q.Value, true
		}
	}
	return 0, false
}

// perSecond is how many a second count in ns are; nil for no time at all.
func perSecond(count float64, ns int64) *float64 {
	if ns <= 0 {
		return nil
	}
	v := count * 1e9 / float64(ns)
	return &v
}

func perSecondOf(d *Dist, p float64) *float64 {
	v, ok := d.of(p)
	if !ok {
		return nil
	}
	return perSecond(1, int64(v))
}
