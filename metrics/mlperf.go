package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/internal/stats"
	"fermata/recording"
)

// percentile is that which LoadGen judges the scenario by.
func (o *MLPerfOptions) percentile() float64 {
	if o.Scenario == SingleStreamScenario {
		return 0.9
	}
	return 0.99
}

// mlperfConfidence is that of early stopping, which LoadGen fixes.
const mlperfConfidence = 0.99

// An mlperfTime is one of the times that LoadGen judges.
type mlperfTime struct {
	name   string
	values stats.Order // of each query; failed ones as never
	bound  int64       // ns; 0 is none
	over   int64       // values above it
	again  bool
}

func (m *mlperfTime) add(v int64, second bool) {
	switch {
	case second && m.again:
		m.values.Again(v)
	case !second:
		m.values.Add(v)
		if m.bound > 0 && v > m.bound {
			m.over++
		}
	}
}

// mlperf judges as MLPerf's LoadGen does.
type mlperf struct {
	opt   *Options
	o     MLPerfOptions
	start int64 // of the measured phase; from the first due time where it is not known
	known bool

	latency, ttft, tpot mlperfTime
	ours                *objectives // the same limits jointly; nil where there are none

	requests, failed, single, queries int64 // single: good answers of one token
	tokens                            int64
	first, lastDue, lastEnd, longest  int64 // due times and end of the last query, ns; latency
	session                           string
	worst                             int64 // of the query under way
	open                              bool  // there is one
}

func newMLPerf(opt Options, start int64, known bool) *mlperf {
	m := &mlperf{opt: &opt, o: opt.MLPerf.Filled(), start: start, known: known}
	for _, t := range []struct {
		*mlperfTime
		name  string
		bound time.Duration
	}{{&m.latency, "latency", m.o.Latency}, {&m.ttft, "ttft", m.o.TTFT}, {&m.tpot, "tpot", m.o.TPOT}} {
		t.mlperfTime.name, t.mlperfTime.bound = t.name, int64(t.bound)
		t.values.Limit = opt.keep(keepRequests)
	}
	if text := m.objective(); text != "" {
		if joint, err := ParseObjective(text); err == nil {
			opt.SLO = []Objective{joint}
			m.ours = newObjectives(opt, nil)
		}
	}
	return m
}

// objective is the limits as an objective of ours: all of them for the same
// request.
func (m *mlperf) objective() string {
	var terms []string
	for _, t := range []struct {
		name  string
		bound time.Duration
	}{{"ttft", m.o.TTFT}, {"tpot", m.o.TPOT}, {"e2e", m.o.Latency}} {
		if t.bound > 0 {
			terms = append(terms, t.name+"<="+conf.Duration(t.bound))
		}
	}
	if terms == nil {
		return ""
	}
	return strings.Join(terms, " and ") + " @99%"
}

func (m *mlperf) see(a *answer) {
	if m.ours != nil {
		m.ours.see(a)
	}
	latency, ttft, tpot := int64(never), int64(never), int64(never)
	if a.good {
		latency, _ = a.e2e()
		ttft, _ = a.ttft()
		// Of one token there is none: LoadGen divides by -1, and what comes out is
		// below every bound.
		tpot, _ = a.tpot()
	}
	m.ttft.add(ttft, a.second)
	m.tpot.add(tpot, a.second)
	if m.o.Scenario != MultiStreamScenario || !m.open || a.t.Session == "" || a.t.Session != m.session {
		m.endQuery(a.second)
		m.session, m.open, m.worst = strings.Clone(a.t.Session), true, 0
		m.queries++
	}
	m.worst = max(m.worst, latency)
	if a.second {
		return
	}
	if m.requests == 0 {
		m.first = a.t.Due
	}
	m.requests++
	end := a.t.End.Or(a.t.Due)
	if a.good {
		m.tokens += int64(a.used.V)
		m.longest = max(m.longest, latency)
		end = a.t.Due + latency
		if a.used.V < 2 {
			m.single++
		}
	} else {
		m.failed++
	}
	if a.t.Due > m.lastDue || m.requests == 1 { // of a query of several, when all have ended
		m.lastEnd = 0
	}
	m.lastDue, m.lastEnd = a.t.Due, max(m.lastEnd, end)
}

// endQuery takes the latency of the query under way in: that of its slowest
// request.
func (m *mlperf) endQuery(second bool) {
	if m.open {
		m.latency.add(m.worst, second)
	}
	m.open = false
}

func (m *mlperf) seek() (want recording.Columns) {
	m.endQuery(false)
	if m.ours != nil {
		want |= m.ours.seek()
	}
	for _, t := range m.times() {
		t.again = t.values.Seek(m.ranks(t.values.N())...)
		if t.again {
			want |= recording.Times
		}
	}
	return want
}

// times are those that count in the scenario.
func (m *mlperf) times() []*mlperfTime { return []*mlperfTime{&m.latency, &m.ttft, &m.tpot} }

// estimated are the percentiles that are estimated by early stopping. In
// single-stream LoadGen adds the 99th.
func (m *mlperf) estimated() []float64 {
	switch m.o.Scenario {
	case SingleStreamScenario:
		return []float64{0.9, 0.99}
	case MultiStreamScenario:
		return []float64{0.99}
	}
	return nil
}

// ranks are those that are shown of n values.
func (m *mlperf) ranks(n int64) []int64 {
	if n == 0 {
		return nil
	}
	ranks := []int64{stats.LoadGenRank(n, m.o.percentile())}
	for _, p := range m.estimated() {
		if r, ok := stats.EarlyStoppingRank(n, p, mlperfConfidence); ok {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (m *mlperf) result(r *Result, _ int64) {
	m.endQuery(true)
	o := &m.o
	p := &MLPerf{
		Scenario: o.Scenario, Benchmark: o.Benchmark, Queries: m.latency.values.N(), Requests: m.requests,
		Percentiles: []MLPerfPercentile{}, Estimates: []MLPerfEstimate{},
	}
	if m.known {
		m.first = m.start
	}
	if m.requests > 0 {
		m.figures(p)
		m.rates(p)
	}
	p.Rules = m.rules(p, r.Run.Interrupted)
	p.Verdict = Valid
	if slices.ContainsFunc(p.Rules, func(r MLPerfRule) bool { return !r.Met }) {
		p.Verdict = Invalid
	}
	if m.ours != nil && m.requests > 0 {
		v := m.ours.ofRequests(m.ours.list[0])
		p.Attainment = &v
	}
	p.Differences = m.differences()
	r.MLPerf = p
}

// figures are the percentiles of LoadGen's rank, and its estimates.
func (m *mlperf) figures(p *MLPerf) {
	for _, t := range m.times() {
		n, at := t.values.N(), m.o.percentile()
		one := MLPerfPercentile{Metric: t.name, P: at, N: n, Rank: stats.LoadGenRank(n, at)}
		if v, ok := t.values.At(one.Rank); ok && v < never {
			one.Value = &v
		}
		if t.bound > 0 {
			bound, over := t.bound, t.over
			one.Bound, one.Over = &bound, &over
		}
		p.Percentiles = append(p.Percentiles, one)
		for _, at := range m.estimated() {
			rank, ok := stats.EarlyStoppingRank(n, at, mlperfConfidence)
			if !ok {
				continue
			}
			e := MLPerfEstimate{Metric: t.name, P: at, Rank: rank, Discarded: n - rank}
			if v, ok := t.values.At(rank); ok && v < never {
				e.Value = &v
			}
			p.Estimates = append(p.Estimates, e)
		}
	}
}

// rates are those that LoadGen submits: in server scenarios over the time until the
// query that was issued last had its answer, offline over the longest latency.
func (m *mlperf) rates(p *MLPerf) {
	over, count := m.lastEnd-m.first, float64(m.requests-1)
	switch {
	case m.o.Scenario == OfflineScenario:
		over, count = m.longest, float64(m.requests)
	case m.o.bounded():
		if due := m.lastDue - m.first; due > 0 {
			p.ScheduledRPS = perSecond(count, due)
		}
	default:
		return
	}
	if over > 0 && m.failed == 0 { // LoadGen knows no query that is never completed
		p.SamplesPerS, p.TokensPerS = perSecond(count, over), perSecond(float64(m.tokens), over)
	}
}

// differences name where this block and ours part.
func (m *mlperf) differences() []MLPerfDifference {
	all := []MLPerfDifference{}
	add := func(code, text string) { all = append(all, MLPerfDifference{code, text}) }
	if n, p := m.latency.values.N(), m.o.percentile(); n > 0 {
		add("rank", fmt.Sprintf("percentiles here are of LoadGen's rank ⌊np⌋ + 1 = %d of %d; elsewhere of rank ⌈np⌉ = %d", stats.LoadGenRank(n, p), n, stats.RankAt(n, p)))
	}
	if m.o.bounded() {
		add("equality", "a percentile that equals its limit passes here, as in LoadGen, which fails what is above (>); MLPerf's submission checker fails equality too")
		if m.o.TTFT > 0 && m.o.TPOT > 0 {
			add("joint", "two limits are judged apart here, so that up to 1 % of the requests may miss each; our attainment counts the requests that keep both")
		}
		add("drain", "rates here run until the query that was issued last has its answer, ramp-up and drain included; ours are over the measured phase")
		add("dependence", "early stopping takes queries for independent; our interval counts bursts")
	}
	if m.single > 0 {
		add("one_token", fmt.Sprintf("%d answers have one token at most, and so no time per output token: here they keep every limit, as in LoadGen, which logs each as an error; our metrics leave them out and say how many", m.single))
	}
	return all
}

// MLPerfLosses writes into every server and interactive result how much less it
// gave than the offline one of the same model and benchmark among them.
func MLPerfLosses(results []*Result) {
	var offline *Result
	for _, r := range results {
		if r.MLPerf != nil && r.MLPerf.Scenario == OfflineScenario {
			offline = r
		}
	}
	for _, r := range results {
		if r.MLPerf == nil || offline == nil || r.MLPerf.Scenario != ServerScenario && r.MLPerf.Scenario != InteractiveScenario ||
			r.Run.Model != offline.Run.Model || r.MLPerf.Benchmark != offline.MLPerf.Benchmark {
			continue
		}
		a, b := r.MLPerf, offline.MLPerf
		r.MLPerf.Loss = &MLPerfLoss{
			Against: offline.Run.Name, Samples: loss(a.SamplesPerS, b.SamplesPerS), Tokens: loss(a.TokensPerS, b.TokensPerS),
			Valid: a.Verdict == Valid && b.Verdict == Valid,
		}
	}
}

func loss(of, from *float64) *float64 {
	if of == nil || from == nil || !(*from > 0) || math.IsInf(*of, 0) {
		return nil
	}
	v := 1 - *of / *from
	return &v
}
