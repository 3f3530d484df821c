package compare

import (
	"math"

	"fermata/internal/stats"
	"fermata/metrics"
)

const (
	batches         = 20 // of requests, over all runs of a side
	fewestBatches   = 5
	fewestInBatch   = 10
	tausInBatch     = 5 // correlation times that a batch must hold
	fewestBeyond    = 5 // values beyond a percentile, in each run
	smallestMeasure = 1e-12
)

// entry tests one measure.
func (m *match) entry(x *Measure) Entry {
	e := Entry{Metric: x.Metric, Stat: x.Stat, Objective: x.Objective, Run: m.b.Name, Unit: x.Unit}
	switch why := m.withheld(x); {
	case why == Unlike: // values of two kinds have no one unit
		e.Why, e.Unit = why, ""
	case why != "":
		v := m.values(x)
		if e.state(v, x.Ratios && v.positive()); e.Why == "" {
			e.Why = why
		}
	case m.fewest() >= FewestRuns:
		m.byRuns(&e, x)
	case x.Each != nil && x.Percentile <= 0:
		m.byBatches(&e, x)
	default:
		e.state(m.values(x), false)
		if e.Why == "" {
			e.Why = TooFewRuns
		}
	}
	return e
}

// withheld is why a measure is not tested of these systems, whatever its values are.
func (m *match) withheld(x *Measure) string {
	if x.Withheld == nil {
		return ""
	}
	var all []*metrics.Result
	for _, s := range []*System{m.a, m.b} {
		for i := range s.Runs {
			all = append(all, s.Runs[i].Result)
		}
	}
	return x.Withheld(all)
}

// values are the statistics of the runs of both sides, those of pairs at equal
// places; without those that are absent.
func (m *match) values(x *Measure) (v sides) {
	if m.paired() {
		for _, p := range m.pairs {
			if a, b := x.Of(p.a.Result), x.Of(p.b.Result); a != nil && b != nil {
				v.a, v.b = append(v.a, *a), append(v.b, *b)
			}
		}
		return v
	}
	of := func(s *System) (all []float64) {
		for i := range s.Runs {
			if one := x.Of(s.Runs[i].Result); one != nil {
				all = append(all, *one)
			}
		}
		return all
	}
	return sides{of(m.a), of(m.b)}
}

// sides are values of the first system and of the further one.
type sides struct{ a, b []float64 }

// positive says that logarithms of all values exist.
func (v sides) positive() bool {
	for _, s := range [][]float64{v.a, v.b} {
		for _, x := range s {
			if !(x > smallestMeasure) {
				return false
			}
		}
	}
	return true
}

func (v sides) logs() sides {
	of := func(s []float64) []float64 {
		out := make([]float64, len(s))
		for i, x := range s {
			out[i] = math.Log(x)
		}
		return out
	}
	return sides{of(v.a), of(v.b)}
}

// state writes what both sides are: their means, geometric ones where they are
// compared by ratios, and the difference.
func (e *Entry) state(v sides, logs bool) {
	if len(v.a) == 0 || len(v.b) == 0 {
		e.Why = Absent
		if len(v.a) > 0 {
			a := mean(v.a)
			e.A = &a
		}
		if len(v.b) > 0 {
			b := mean(v.b)
			e.B = &b
		}
		return
	}
	if logs {
		v = v.logs()
	}
	a, b := mean(v.a), mean(v.b)
	if logs {
		a, b = math.Exp(a), math.Exp(b)
	}
	d := b - a
	e.A, e.B, e.Difference = &a, &b, &d
	if math.Abs(a) > smallestMeasure && e.ofRatios() {
		e.Relative = &Ratio{Difference: d / a}
	}
}

// ofRatios says that shares of A have a meaning: not those of shares.
func (e *Entry) ofRatios() bool { return e.Unit != shareUnit }

const shareUnit = "share"

// byRuns is the t test over runs, paired where they are pairs (statistics of runs
// are the values), of logarithms where the measure has ratios.
func (m *match) byRuns(e *Entry, x *Measure) {
	v := m.values(x)
	logs := x.Ratios && v.positive()
	e.state(v, logs)
	switch {
	case e.Why != "":
		return
	case min(len(v.a), len(v.b)) < FewestRuns:
		e.Why = TooFewRuns
		return
	case insufficient(m.a, x) || insufficient(m.b, x):
		e.Why = Insufficient
		return
	case m.beyond(x) < fewestBeyond:
		e.Why = TooFewRequests
		return
	}
	if logs {
		v = v.logs()
	}
	e.Method = Runs
	if m.paired() {
		e.Method = PairedRuns
	}
	e.test(v, m.paired(), logs)
}

// insufficient says that half of a system's runs, or more, do not have the requests
// for a statistic: its mean over them then is no better known. Of a figure near the
// limit, single runs say so by chance.
func insufficient(s *System, x *Measure) bool {
	if x.Insufficient == nil {
		return false
	}
	few := 0
	for i := range s.Runs {
		few += b2i(x.Insufficient(s.Runs[i].Result))
	}
	return 2*few >= len(s.Runs)
}

// beyond is the fewest values beyond the percentile in any run.
func (m *match) beyond(x *Measure) float64 {
	least := math.Inf(1)
	if x.Percentile <= 0 {
		return least
	}
	tail := min(x.Percentile, 1-x.Percentile)
	for _, s := range []*System{m.a, m.b} {
		for i := range s.Runs {
			least = min(least, tail*float64(len(s.Runs[i].Requests))+smallestMeasure)
		}
	}
	return least
}

// test is the t test of values at equal places, or of two samples.
func (e *Entry) test(v sides, paired, logs bool) {
	var r stats.Paired
	var ok bool
	if paired {
		d := make([]float64, len(v.a))
		for i := range d {
			d[i] = v.b[i] - v.a[i]
		}
		r, ok = stats.PairedT(d)
		if ratio, known := stats.VarianceRatio(v.a, v.b); known {
			e.VarianceRatio = &ratio
		}
	} else {
		r, ok = stats.WelchT(v.a, v.b)
	}
	if !ok {
		e.Why = TooFewRuns
		return
	}
	low, high, mde := r.Low, r.High, r.Detects
	if logs {
		low, high, mde = *e.A*math.Expm1(low), *e.A*math.Expm1(high), *e.A*math.Expm1(mde)
	}
	e.N, e.P, e.Low, e.High, e.MDE = r.N, &r.P, &low, &high, &mde
	if e.Relative != nil {
		of := func(v float64) *float64 {
			share := v / math.Abs(*e.A)
			return &share
		}
		e.Relative.Low, e.Relative.High, e.Relative.MDE = of(low), of(high), of(mde)
	}
}

// byBatches is the t test over batches of requests in the order of their due
// times: of differences of requests where runs are pairs.
func (m *match) byBatches(e *Entry, x *Measure) {
	runs := m.series(x)
	var v sides
	for i := range runs {
		v.a, v.b = append(v.a, runs[i].a...), append(v.b, runs[i].b...)
	}
	if e.state(v, false); e.Why != "" {
		return
	}
	n, why := m.batchCount(runs)
	if e.Why = why; why != "" {
		return
	}
	var of sides
	for i := range runs {
		k := n/len(runs) + b2i(i < n%len(runs))
		of.a, of.b = append(of.a, means(runs[i].a, k)...), append(of.b, means(runs[i].b, k)...)
	}
	e.Method = Batches
	if m.paired() {
		e.Method = PairedBatches
	}
	e.test(of, m.paired(), false)
}

// batchCount is how many batches there are over all runs: 20, or fewer where each
// would be shorter than five correlation times. Why says why there are none.
func (m *match) batchCount(runs []sides) (n int, why string) {
	n = batches
	shortest := math.MaxInt
	for i := range runs {
		shortest = min(shortest, len(runs[i].a), len(runs[i].b))
	}
	if shortest*len(runs) < batches*fewestInBatch {
		return 0, TooFewRequests
	}
	for i := range runs {
		held := float64(shortest) / (tausInBatch * runs[i].tau(m.paired()))
		n = min(n, int(held)*len(runs))
	}
	if n < fewestBatches {
		return 0, Bursts
	}
	return n, ""
}

// series are the values of requests, by pairs of runs; without pairs, of the runs
// of both sides as they come.
func (m *match) series(x *Measure) []sides {
	if !m.paired() {
		of := func(r *Run) (v []float64) {
			for i := range r.Requests {
				if one, ok := x.Each(&r.Requests[i]); ok {
					v = append(v, one)
				}
			}
			return v
		}
		all := make([]sides, m.fewest())
		for i := range m.a.Runs {
			at := min(i, len(all)-1)
			all[at].a = append(all[at].a, of(&m.a.Runs[i])...)
		}
		for i := range m.b.Runs {
			at := min(i, len(all)-1)
			all[at].b = append(all[at].b, of(&m.b.Runs[i])...)
		}
		return all
	}
	var all []sides
	for _, p := range m.pairs {
		var v sides
		for _, w := range p.which {
			a, hasA := x.Each(w.a)
			b, hasB := x.Each(w.b)
			if hasA && hasB {
				v.a, v.b = append(v.a, a), append(v.b, b)
			}
		}
		all = append(all, v)
	}
	return all
}

// tau is the correlation time of the differences, or the longer one of both sides.
func (v sides) tau(paired bool) float64 {
	if !paired {
		return stats.TauOfSeries(v.a, false).Or(stats.TauOfSeries(v.b, false)).V
	}
	d := make([]float64, len(v.a))
	for i := range d {
		d[i] = v.b[i] - v.a[i]
	}
	return stats.TauOfSeries(d, false).V
}

// means are those of n batches of equal length; what is left over goes into the
// first ones.
func means(x []float64, n int) []float64 {
	out := make([]float64, n)
	size, more := len(x)/n, len(x)%n
	for i := range out {
		end := size + b2i(i < more)
		out[i], x = mean(x[:end]), x[end:]
	}
	return out
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
