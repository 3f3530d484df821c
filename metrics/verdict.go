package metrics

import (
	"math"
	"slices"

	"fermata/internal/stats"
	"fermata/recording"
)

// The verdicts on an objective.
const (
	Met    = "met"
	Missed = "missed"
	Open   = "open" // the interval spans the bound
)

// absent stands among the values of a term for an answer that has none and so
// meets it.
const (
	absent      = math.MinInt64
	absentIndex = 2.0 // above any fluidity index
)

// A judged is one objective with what is known about it.
type judged struct {
	Objective
	values  *stats.Order  // of a single term, failed requests as never
	indexes *stats.Floats // of a single fluidity term, failed requests as 0
	again   bool
	gaps    *gaps // of a pooled term

	requests, unjudged, failed  int64 // that are judged; good ones that no term can judge; the failed of the former
	met, goodput, goodputTokens int64 // requests; those and their tokens that count as goodput
	withoutIt                   int64
	metIn                       []int64 // requests, in each view of first-token deadlines
	passed                      int64   // a check
	checked                     bool

	figures [][]float32 // of each term, one a request, the larger the worse
	flags   []bool      // of several terms, whether all held; of the run's, whether a request was good
	dep     *dependence // after seek
	tau     stats.Tau   // after seek
}

// objectives judges the run's objectives.
type objectives struct {
	opt              *Options
	list             []*judged
	requests, failed int64
	every            bool  // the last answer met all that have one
	all, allTokens   int64 // goodput under every objective that has one
	unjudged         int64 // requests that one of those does not judge
}

func newObjectives(opt Options, g *gaps) *objectives {
	o := &objectives{opt: &opt}
	for _, s := range opt.SLO {
		j := &judged{Objective: s, checked: opt.Check != "", figures: make([][]float32, len(s.Terms))}
		t := s.Terms[0]
		switch {
		case len(s.Terms) > 1 || t.ofRun():
		case t.pooled():
			j.gaps = g
		case t.Name == "fluidity":
			j.indexes = stats.NewFloats(opt.keep(keepRequests))
		default:
			j.values = &stats.Order{Limit: opt.keep(keepRequests)}
		}
		if len(opt.views) > 1 && slices.ContainsFunc(s.Terms, func(t Term) bool { return t.viewed(&opt) }) {
			j.metIn = make([]int64, len(opt.views))
		}
		o.list = append(o.list, j)
	}
	return o
}

// unknown says that there is nothing to judge by: no request, or none but failed
// ones beside good ones that no term can judge.
func (j *judged) unknown() bool {
	return j.requests == 0 || j.unjudged > 0 && j.requests == j.failed
}

// pool is the gaps that a pooled term is about.
func (j *judged) pool() *series {
	switch {
	case j.gaps == nil:
		return nil
	case j.Terms[0].Name == "tbt":
		return j.gaps.tbt
	}
	return j.gaps.event
}

func (j *judged) hasGoodput() bool { return !j.Terms[0].ofRun() && !j.Terms[0].pooled() }

func (o *objectives) see(a *answer) {
	o.every = true
	if len(o.list) == 0 {
		return
	}
	if !a.second {
		o.requests++
		if !a.good {
			o.failed++
		}
	}
	every, known, tokens := true, true, int64(a.used.V)
	fine := a.good && a.passes(o.opt.Check) && !a.slow(o.opt.SlowNs)
	for _, j := range o.list {
		if !j.knows(a, o.opt) {
			known = false
			if !a.second {
				j.unjudged++
			}
			continue
		}
		j.value(a, o.opt)
		if !a.second {
			j.requests++
			if !a.good {
				j.failed++
			}
		}
		if a.second || !j.hasGoodput() {
			j.check(a)
			continue
		}
		met := j.count(a, o.opt)
		if met && fine {
			j.goodput++
			j.goodputTokens += tokens
		}
		every = every && met
	}
	o.every = every
	if !a.second && !known {
		o.unjudged++
	}
	if !a.second && every && known && fine {
		o.all++
		o.allTokens += tokens
	}
}

func (j *judged) check(a *answer) {
	if a.second {
		return
	}
	j.checked = j.checked || a.t.Check != ""
	passed := a.good && a.t.Check == recording.Pass
	if passed {
		j.passed++
	}
	if j.Terms[0].ofRun() {
		j.flags = append(j.flags, passed || a.good && j.Terms[0].Name != "schema")
	}
}

// count says whether the request meets every term, and counts it. A failed one is
// the worst in each.
func (j *judged) count(a *answer, opt *Options) bool {
	all, lacks, others := a.good, false, a.good
	for i, t := range j.Terms {
		met, has, figure := false, true, math.Inf(1)
		if a.good {
			met, has, figure = t.judge(a, opt)
		}
		all, lacks = all && met, lacks || !has
		others = others && (met || t.viewed(opt))
		j.figures[i] = grown(j.figures[i], figure)
	}
	if len(j.Terms) > 1 {
		j.flags = append(j.flags, all)
	}
	for i := range j.metIn {
		if others && !slices.ContainsFunc(j.Terms, func(t Term) bool { return t.viewed(opt) && !t.holdsIn(a, i) }) {
			j.metIn[i]++
		}
	}
	if lacks {
		j.withoutIt++
	}
	if all {
		j.met++
	}
	return all
}

// value takes the figure of a single term in.
func (j *judged) value(a *answer, opt *Options) {
	t := j.Terms[0]
	switch {
	case a.second && !j.again:
	case j.indexes != nil:
		f := absentIndex
		if s, ok := a.score(t.variant(opt), t.GapNs); ok {
			f = s.Index()
		}
		if a.second {
			j.indexes.Again(f)
		} else {
			j.indexes.Add(f)
		}
	case j.values != nil:
		v := int64(never)
		if a.good {
			var ok bool
			if v, ok = t.value(a, opt.PaceNs); !ok {
				v = absent
			}
		}
		if a.second {
			j.values.Again(v)
		} else {
			j.values.Add(v)
		}
	}
}

// settle finds the correlation time: of the term's own figure; the longest of all
// terms and of whether they held where there are several.
func (j *judged) settle(d *dependence) {
	j.dep = d
	j.tau = stats.TauOfFlags(j.flags, d.closed)
	for _, f := range j.figures {
		j.tau = j.tau.Or(stats.TauOf(f, stats.UpperTail, d.closed))
	}
	j.tau = d.of(j.tau)
	j.figures, j.flags = nil, nil
}

// ranks are those of the objective's percentile and of its interval, from the
// best value on.
func (j *judged) ranks(n int64) (at, low, high int64) {
	low, high = j.dep.ranks(n, j.Share, float64(n)/j.tau.V)
	return stats.Rank(n, j.Share), low, high
}

// share is k of n with its interval.
func (j *judged) share(k, n int64) (share, low, high float64) {
	low, high = j.dep.share(k, n, float64(n)/j.tau.V)
	return float64(k) / float64(n), low, high
}

// rests writes how many values the interval rests on.
func (j *judged) rests(v *Verdict, n int64) {
	tau, nEff := j.tau.V, float64(n)/j.tau.V
	v.Tau, v.NEff = &tau, &nEff
}

// ask says which percentiles of the pooled gaps are wanted. It comes before they
// are sought.
func (o *objectives) ask() {
	for _, j := range o.list {
		if s := j.pool(); s != nil {
			s.pool.asks = append(s.pool.asks, o.asked(j))
		}
	}
}

// asked is the percentile of the pooled gaps, each failed request adding one that
// never ended.
func (o *objectives) asked(j *judged) ask { return ask{p: j.Share, never: o.failed} }

func (o *objectives) seek() (want recording.Columns) {
	for _, j := range o.list {
		j.settle(o.opt.dependence)
		at, low, high := j.ranks(j.requests)
		switch {
		case j.values != nil:
			j.again = j.values.Seek(at, low, high)
		case j.indexes != nil:
			up := func(r int64) int64 { return j.requests + 1 - r }
			j.again = j.indexes.Seek(up(at), up(low), up(high))
		}
		if j.again {
			want |= recording.Times
		}
	}
	return want
}

func (o *objectives) result(r *Result, _ int64) {
	for _, j := range o.list {
		switch {
		case j.Terms[0].ofRun():
			r.SLO = append(r.SLO, o.ofRun(j))
		case j.gaps != nil:
			r.SLO = append(r.SLO, o.ofPool(j))
		default:
			r.SLO = append(r.SLO, o.ofRequests(j))
		}
	}
}

// compare is the verdict on a figure whose interval is [best, worst] in the
// order of its badness; within says whether a value keeps the bound.
func (o *objectives) compare(at, best, worst *float64, within func(float64) bool) string {
	switch {
	case o.opt.PointVerdict && at != nil && within(*at), worst != nil && within(*worst) && !o.opt.PointVerdict:
		return Met
	case o.opt.PointVerdict, best != nil && !within(*best):
		return Missed
	}
	return Open
}

// ofRequests judges a share of requests, or a percentile of them.
func (o *objectives) ofRequests(j *judged) Verdict {
	v := Verdict{Objective: j.Text, WithoutIt: j.withoutIt, NotJudged: j.unjudged, Verdict: Open, Status: insufficient}
	n := j.requests
	if j.unjudged > 0 {
		v.Judged = &n
	}
	if j.unknown() {
		return v
	}
	share, low, high := j.share(j.met, n)
	v.Share, v.ShareLow, v.ShareHigh = &share, &low, &high
	j.rests(&v, n)
	v.Verdict, v.Status = o.onShare(j, j.met), o.shareStatus(j)
	if j.values != nil || j.indexes != nil {
		verdict, closed := o.percentile(j, &v)
		if j.Percentile {
			v.Status = o.opt.dependence.status(n, j.tau.V, *v.NEff, j.Share, closed)
			v.Verdict = o.unless(v.Status, verdict)
		}
	}
	o.seenOtherwise(j, &v)
	return v
}

// unless is the verdict on a percentile, or open where an objective would be met by
// a figure that cannot be stated. One that is missed even at the better end of the
// interval is missed by the share of what kept the bound.
func (o *objectives) unless(status, verdict string) string {
	if status == insufficient && verdict == Met && !o.opt.PointVerdict {
		return Open
	}
	return verdict
}

// shareStatus is that of a share, whose interval has both ends and needs no number
// of values beyond it.
func (o *objectives) shareStatus(j *judged) string {
	if d := o.opt.dependence; !d.short(j.requests, j.tau.V) {
		return d.trust()
	}
	return insufficient
}

// onShare is the verdict where so many requests met the terms.
func (o *objectives) onShare(j *judged, met int64) string {
	n, asked := j.requests, float64(j.Share)/1000
	_, low, high := j.share(met, n)
	switch {
	case o.opt.PointVerdict && met*1000 >= int64(j.Share)*n, !o.opt.PointVerdict && low >= asked:
		return Met
	case o.opt.PointVerdict, high < asked:
		return Missed
	}
	return Open
}

// onRank is the verdict on a percentile where so many requests kept the bound:
// the value of a rank does if as many do.
func (o *objectives) onRank(j *judged, met int64) string {
	at, low, high := j.ranks(j.requests)
	switch {
	case o.opt.PointVerdict && met >= at, !o.opt.PointVerdict && high > 0 && met >= high:
		return o.unless(o.opt.dependence.status(j.requests, j.tau.V, float64(j.requests)/j.tau.V, j.Share, true), Met)
	case o.opt.PointVerdict, low > 0 && met < low:
		return Missed
	}
	return Open
}

// seenOtherwise judges with the other views of first-token deadlines too. A
// verdict that one of them changes is not established, unless points are to
// judge.
func (o *objectives) seenOtherwise(j *judged, v *Verdict) {
	stands := v.Verdict
	for i, met := range j.metIn {
		w := o.opt.views[i]
		seen := VerdictView{Edge: string(w.edge), SlackNs: w.slack, Verdict: o.onShare(j, met), Share: float64(met) / float64(j.requests)}
		if j.indexes != nil && j.Percentile {
			seen.Verdict = o.onRank(j, met)
		}
		v.Views = append(v.Views, seen)
		if seen.Verdict != stands && !o.opt.PointVerdict {
			v.Verdict = Open
		}
	}
}

// percentile fills in the value of a single term and judges by it. Failed
// requests come last, answers without the figure first.
func (o *objectives) percentile(j *judged, v *Verdict) (verdict string, closed bool) {
	t := j.Terms[0]
	at, low, high := j.ranks(j.requests)
	if j.indexes != nil {
		v.Unit = "1"
		bound := float64(t.Num) / float64(t.Den)
		pick := func(rank int64) *float64 {
			if rank == 0 {
				return nil
			}
			f, ok := j.indexes.At(j.requests + 1 - rank)
			if f > 1 { // absentIndex
				f = math.Inf(1)
			}
			return some(f, ok)
		}
		value, best, worst := pick(at), pick(low), pick(high)
		verdict = o.compare(value, best, worst, func(f float64) bool { return f >= bound })
		v.Value, v.Low, v.High = finite(value), finite(worst), finite(best)
		return verdict, best != nil && worst != nil
	}
	v.Unit = "ns"
	pick := func(rank int64) *float64 {
		x, ok := j.values.At(rank)
		return some(extended(x), ok)
	}
	value, best, worst := pick(at), pick(low), pick(high)
	verdict = o.compare(value, best, worst, func(x float64) bool { return x <= float64(t.AtNs) })
	v.Value, v.Low, v.High = finite(value), finite(best), finite(worst)
	return verdict, v.Low != nil && v.High != nil
}

// extended is a value with its infinities.
func extended(v int64) float64 {
	switch v {
	case never:
		return math.Inf(1)
	case absent:
		return math.Inf(-1)
	}
	return float64(v)
}

// finite is v, or nil where it is no number that anyone measured.
func finite(v *float64) *float64 {
	if v == nil || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// ofPool judges the pooled gaps of all requests; each failed one adds a gap that
// never ended.
func (o *objectives) ofPool(j *judged) Verdict {
	t := j.Terms[0]
	v := Verdict{Objective: j.Text, Verdict: Open, Unit: "ns", Status: insufficient}
	pool := j.pool()
	n := pool.n() + o.failed
	if n == 0 {
		return v
	}
	pool.pool.settle(pool)
	asked := o.asked(j)
	low, high := pool.interval(asked)
	value, _ := pool.endsOrNever(stats.Rank(n, j.Share))
	best, _ := pool.endsOrNever(low)
	_, worst := pool.endsOrNever(high)
	tau, nEff := pool.tau.V, pool.nEff(asked)
	v.Tau, v.NEff = &tau, &nEff
	v.Value, v.Low, v.High = finite(value), finite(best), finite(worst)
	v.Status = o.opt.dependence.status(o.requests, tau, nEff, j.Share, v.Low != nil && v.High != nil)
	v.Verdict = o.unless(v.Status, o.compare(value, best, worst, func(x float64) bool { return x <= float64(t.AtNs) }))
	return v
}

// ofRun judges the share of failed requests, or of those that passed their check.
func (o *objectives) ofRun(j *judged) Verdict {
	t := j.Terms[0]
	v := Verdict{Objective: j.Text, Verdict: Open, Status: insufficient}
	n, k := o.requests, o.failed
	if t.Name == "schema" {
		k = j.passed
	}
	if n == 0 || t.Name == "schema" && !j.checked {
		return v
	}
	share, low, high := j.share(k, n)
	v.Share, v.ShareLow, v.ShareHigh = &share, &low, &high
	j.rests(&v, n)
	bound := float64(t.Num) / float64(t.Den)
	best, worst, within := low, high, func(x float64) bool { return x <= bound }
	if t.Name == "schema" {
		best, worst, within = high, low, func(x float64) bool { return x >= bound }
	}
	v.Verdict = o.compare(&share, &best, &worst, within)
	v.Status = o.shareStatus(j)
	return v
}
