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

// minRequests is below which no quantile is more than insufficient.
const minRequests = 50

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
	extra        []int64 // further ranks that someone asks for
	more         []int   // further percentiles, in thousandths
	second       bool    // seek was called
	again        bool    // the values are needed once more
}

func newSeries(opt Options, unit, better string) *series {
	return &series{unit: unit, better: better, more: opt.PerMille, ints: stats.NewInts(opt.keep(keepRequests))}
}

func newFloats(opt Options, unit, better string) *series {
	return &series{unit: unit, better: better, more: opt.PerMille, floats: stats.NewFloats(opt.keep(keepRequests))}
}

// pooled makes s one of many values a request.
func (s *series) pooled(opt Options) *series {
	s.ints = stats.NewInts(opt.keep(keepTokens), s.over...)
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
	c.ints, c.extra = s.ints.Clone(), slices.Clone(s.extra)
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

// int takes one request's value.
func (s *series) int(v int64) {
	switch {
	case !s.second:
		s.requests++
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

// all takes many values of one request.
func (s *series) all(vs []int64) {
	if len(vs) == 0 {
		return
	}
	switch {
	case !s.second:
		s.requests++
		s.ints.AddAll(vs)
	case s.again:
		s.ints.AgainAll(vs)
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

// seek ends the first pass and says which columns a second one needs, if any.
func (s *series) seek() recording.Columns {
	if s == nil || s.second {
		return 0
	}
	s.second = true
	ranks := slices.Clone(s.extra)
	for _, p := range s.percentiles() {
		low, high := stats.OrderInterval(s.n(), p, float64(s.n()))
		ranks = append(ranks, stats.Rank(s.n(), p), low, high)
	}
	if s.floats != nil {
		s.again = s.floats.Seek(ranks...)
	} else {
		s.again = s.ints.Seek(ranks...)
	}
	if s.again {
		return recording.Times
	}
	return 0
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
	d := &Dist{
		Unit: s.unit, N: n, NRequests: s.requests, Missing: measured - s.requests,
		Level: stats.Level, Better: s.better,
	}
	d.Mean, d.SD, d.Min, d.Max = s.moments()
	for _, p := range s.percentiles() {
		d.Quantiles = append(d.Quantiles, s.quantile(p))
	}
	for i, bound := range s.over {
		d.Over = append(d.Over, exceedance(bound, s.ints.Above(i), n, d.Missing))
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
	n := s.n()
	q := Quantile{P: float64(p) / 1000, NEff: float64(n), Rule: "order-statistic"}
	q.Value, _ = s.at(stats.Rank(n, p))
	low, high := stats.OrderInterval(n, p, float64(n))
	q.Low, q.High = some(s.at(low)), some(s.at(high))
	q.Status = status(s.requests, n, p, q.Low != nil && q.High != nil)
	// Ends that cover only part of the values would be those of another quantile.
	if s.low != nil && s.low.N() == n {
		lo, _, ok := s.low.At(stats.Rank(n, p))
		q.StampLow = some(float64(lo), ok)
		_, hi, ok := s.high.At(stats.Rank(n, p))
		q.StampHigh = some(float64(hi), ok)
	}
	return q
}

// status says how far an interval can be trusted, with tau taken as 1 and the
// load's ratio to saturation unknown.
func status(requests, n int64, p int, closed bool) string {
	switch {
	case requests < minRequests || n*int64(min(p, 1000-p)) < 5*1000:
		return "insufficient"
	case !closed:
		return "open"
	}
	return "assumed"
}

// exceedance is the share of values above a bound.
func exceedance(bound, above, n, missing int64) Over {
	low, high := stats.ClopperPearson(float64(above), float64(n))
	return Over{
		Value: float64(bound), Share: float64(above) / float64(n),
		ShareWithMissing: float64(above+missing) / float64(n+missing), Low: &low, High: &high,
	}
}

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
