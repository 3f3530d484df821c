package metrics

import (
	"fmt"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/internal/stats"
)

// rules are LoadGen's, and before them what it takes for granted.
func (m *mlperf) rules(p *MLPerf, interrupted string) []MLPerfRule {
	o := &m.o
	issued := MLPerfRule{Rule: "issue", Met: o.Otherwise == "", Text: issueRules[o.Scenario]}
	if o.Otherwise != "" {
		issued.Text += "; but " + o.Otherwise
	}
	whole := MLPerfRule{Rule: "complete", Met: m.failed == 0 && interrupted == "" && m.requests > 0, Text: "every request has its answer"}
	switch {
	case m.requests == 0:
		whole.Text = "no request was measured"
	case m.failed > 0:
		whole.Text = fmt.Sprintf("%d of %d requests failed, and count as over every limit", m.failed, m.requests)
	}
	if interrupted != "" {
		whole.Text += "; the run was cut short"
	}
	lasted, what := m.lastDue-m.first, "the last query was issued after"
	switch {
	case o.bounded():
		what = "the last query was due after"
	case o.Scenario == OfflineScenario:
		lasted, what = m.longest, "the longest latency is"
	}
	if m.requests == 0 {
		lasted = 0
	}
	least, asked := int64(o.MinDuration), o.MinQueries
	rules := []MLPerfRule{
		issued, whole,
		{
			Rule: "min_duration", Met: lasted >= least, Asked: &least, Seen: &lasted, Unit: "ns",
			Text: fmt.Sprintf("%s %s, %s at least", what, brief(lasted), conf.Duration(o.MinDuration)),
		},
		{
			Rule: "min_queries", Met: p.Queries >= asked, Asked: &asked, Seen: &p.Queries, Unit: "queries",
			Text: fmt.Sprintf("%d queries, %d at least", p.Queries, asked),
		},
	}
	for _, t := range m.times() {
		if t.bound > 0 {
			rules = append(rules, m.bound(t))
		}
	}
	for _, t := range m.times() {
		if t.bound > 0 {
			rules = append(rules, m.stopped(t))
		}
	}
	if len(m.estimated()) > 0 {
		rules = append(rules, m.enough())
	}
	return rules
}

// Missed says that a percentile is over its limit, and all other rules are met but
// early stopping, which then cannot be.
func (p *MLPerf) Missed() bool {
	over := false
	for _, r := range p.Rules {
		switch {
		case r.Met:
		case strings.HasSuffix(r.Rule, "_p99"):
			over = true
		case !strings.HasPrefix(r.Rule, "early_stopping"):
			return false
		}
	}
	return over
}

// issueRules say what the load of a scenario is.
var issueRules = map[string]string{
	SingleStreamScenario: "one request at a time, the next when the one before has ended",
	MultiStreamScenario:  "one query of several requests at a time, the next when all of them have ended",
	ServerScenario:       "Poisson arrivals, however many are under way",
	InteractiveScenario:  "Poisson arrivals, however many are under way",
	OfflineScenario:      "all requests at once",
}

// bound is the rule that the percentile is within its limit: LoadGen fails what
// is above it.
func (m *mlperf) bound(t *mlperfTime) MLPerfRule {
	n, at := t.values.N(), m.o.percentile()
	asked := t.bound
	rule := MLPerfRule{Rule: t.name + "_p99", Asked: &asked, Unit: "ns"}
	v, ok := t.values.At(stats.LoadGenRank(n, at))
	switch {
	case n == 0 || !ok:
		rule.Text = "there is no percentile"
	case v >= never:
		rule.Text = fmt.Sprintf("p%g is that of a failed request, at most %s", 100*at, conf.Duration(time.Duration(t.bound)))
	default:
		rule.Seen, rule.Met = &v, v <= t.bound
		rule.Text = fmt.Sprintf("p%g is %s, at most %s", 100*at, besideBound(v, t.bound), conf.Duration(time.Duration(t.bound)))
	}
	return rule
}

// stopped is the early-stopping test: so few of so many are over the limit that
// the share within it is the percentile at least, with a confidence of 99 %.
func (m *mlperf) stopped(t *mlperfTime) MLPerfRule {
	n, over := t.values.N(), t.over
	rule := MLPerfRule{Rule: "early_stopping_" + t.name, Seen: &n, Unit: "queries"}
	need := stats.MinQueries(over, m.o.percentile(), mlperfConfidence)
	rule.Asked, rule.Met = &need, n >= need
	rule.Text = fmt.Sprintf("%d of %d are over the limit, for which %d queries are needed", over, n, need)
	return rule
}

// enough is the rule that there are queries enough to estimate the percentile by
// early stopping.
func (m *mlperf) enough() MLPerfRule {
	n, at := m.latency.values.N(), m.o.percentile()
	need := stats.MinQueries(1, at, mlperfConfidence)
	return MLPerfRule{
		Rule: "early_stopping", Met: n >= need, Asked: &need, Seen: &n, Unit: "queries",
		Text: fmt.Sprintf("%d queries, %d at least for an estimate of p%g", n, need, 100*at),
	}
}

// brief is a time for people, to four digits.
func brief(ns int64) string { return conf.Duration(briefly(ns)) }

// besideBound is brief where that stands on the same side of a bound which is no
// longer itself; else it is the whole number.
func besideBound(ns, bound int64) string {
	if short := int64(briefly(ns)); int64(briefly(bound)) == bound && (short <= bound) == (ns <= bound) {
		return brief(ns)
	}
	return conf.Duration(time.Duration(ns))
}

func briefly(ns int64) time.Duration {
	digits := time.Duration(1)
	for d := time.Duration(ns); d/digits >= 10_000; {
		digits *= 10
	}
	return time.Duration(ns).Round(digits)
}
