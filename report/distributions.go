package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// A measure is one distribution of metrics.Metrics: its key in result.json and
// what people read.
type measure struct {
	key, label string
	group      group
	of         func(*metrics.Metrics) *metrics.Dist
}

// A group is a table of the page.
type group int

const (
	timing   group = iota // durations, lower is better
	freezing              // stalls at the reading pace
	speed                 // higher is better
	sizes                 // tokens and events
)

// measures are all distributions, in the order in which they are read: the way
// to the first token, the gaps, the whole answer.
var measures = []measure{
	{"ttft_due", "TTFT (due)", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TTFTDue }},
	{"ttft_sent", "TTFT (sent)", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TTFTSent }},
	{"ttft_server", "TTFT (server)", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TTFTServer }},
	{"ttft_answer", "TTFT (answer)", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TTFTAnswer }},
	{"network", "network", timing, func(m *metrics.Metrics) *metrics.Dist { return m.Network }},
	{"server_queue", "server queue", timing, func(m *metrics.Metrics) *metrics.Dist { return m.ServerQueue }},
	{"prefill", "prefill", timing, func(m *metrics.Metrics) *metrics.Dist { return m.Prefill }},
	{"scheduling_delay", "sched. delay", timing, func(m *metrics.Metrics) *metrics.Dist { return m.SchedulingDelay }},
	{"tbt", "TBT", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TBT }},
	{"tbt_event", "TBT per event", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TBTEvent }},
	{"tpot", "TPOT", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TPOT }},
	{"token_pace", "token pace", timing, func(m *metrics.Metrics) *metrics.Dist { return m.TokenPace }},
	{"normalized_latency", "norm. latency", timing, func(m *metrics.Metrics) *metrics.Dist { return m.NormalizedLatency }},
	{"e2e", "end to end", timing, func(m *metrics.Metrics) *metrics.Dist { return m.E2E }},
	{"stream_end", "stream end", timing, func(m *metrics.Metrics) *metrics.Dist { return m.StreamEnd }},
	{"gap_longest", "longest silence", timing, func(m *metrics.Metrics) *metrics.Dist { return m.GapLongest }},
	{"even_gap", "even gap", timing, func(m *metrics.Metrics) *metrics.Dist { return m.EvenGap }},
	{"tps", "tokens/s", speed, func(m *metrics.Metrics) *metrics.Dist { return m.TPS }},
	{"stall_longest", "longest stall", freezing, func(m *metrics.Metrics) *metrics.Dist { return m.StallLongest }},
	{"stall_total", "total stall", freezing, func(m *metrics.Metrics) *metrics.Dist { return m.StallTotal }},
	{"stalls_per_request", "stalls a request", freezing, func(m *metrics.Metrics) *metrics.Dist { return m.StallsPerRequest }},
	{"stall_position_first", "first stall, token", freezing, func(m *metrics.Metrics) *metrics.Dist { return m.StallPosition }},
	{"tokens_per_event", "tokens an event", sizes, func(m *metrics.Metrics) *metrics.Dist { return m.TokensPerEvent }},
	{"events_per_read", "events a read", sizes, func(m *metrics.Metrics) *metrics.Dist { return m.EventsPerRead }},
	{"prompt_tokens", "prompt tokens", sizes, func(m *metrics.Metrics) *metrics.Dist { return m.PromptTokens }},
	{"output_tokens", "output tokens", sizes, func(m *metrics.Metrics) *metrics.Dist { return m.OutputTokens }},
}

// The statuses of a quantile and how they are marked.
const (
	statusAssumed      = "assumed"
	statusOpen         = "open"
	statusInsufficient = "insufficient"
)

var marks = map[string]string{statusAssumed: "~", statusOpen: "?", statusInsufficient: "*"}

// at is the quantile p of d, or nil.
func at(d *metrics.Dist, p float64) *metrics.Quantile {
	if d == nil {
		return nil
	}
	for i := range d.Quantiles {
		if math.Abs(d.Quantiles[i].P-p) < 1e-9 {
			return &d.Quantiles[i]
		}
	}
	return nil
}

// claimed is the quantile p of d where there were enough requests to state it.
func claimed(d *metrics.Dist, p float64) *metrics.Quantile {
	if q := at(d, p); q != nil && q.Status != statusInsufficient {
		return q
	}
	return nil
}

// amount writes a value in its unit, as people read it.
func amount(unit string, v float64) string {
	switch unit {
	case "ns":
		return term.Duration(v)
	case "share":
		return term.Percent(v)
	case "index":
		return term.Index(v)
	default:
		return term.Number(v, true)
	}
}

func amountOrNone(unit string, v *float64) string {
	if v == nil {
		return term.None
	}
	return amount(unit, *v)
}

// interval writes [low, high] in one unit, or nothing where neither is known.
func interval(unit string, low, high *float64) string {
	switch {
	case low == nil && high == nil:
		return ""
	case unit == "ns":
		return term.Interval(low, high)
	}
	return "[" + amountOrNone(unit, low) + ", " + amountOrNone(unit, high) + "]"
}

func quantileCell(unit string, d *metrics.Dist, p float64) cell {
	q := at(d, p)
	if q == nil {
		return cell{text: term.None, tone: term.Faint}
	}
	c := cell{text: amount(unit, q.Value), mark: marks[q.Status]}
	switch q.Status {
	case statusOpen:
		c.tone = term.Care
	case statusInsufficient:
		c.tone = term.Faint
	}
	return c
}

func intervalCell(unit string, d *metrics.Dist, p float64) cell {
	q := claimed(d, p)
	if q == nil {
		return cell{}
	}
	return cell{text: interval(unit, q.Low, q.High), tone: term.Faint}
}

// A stat is a column of distributions.
type stat struct {
	p        float64 // a quantile; 0 for the others
	name     string
	drop     int
	interval int // drop of the quantile's interval; 0 has none
}

// The columns, for what is better lower and what is better higher: there the
// low percentiles are the bad ones. Where room is short, an interval goes before
// the figures that people look for by name.
var (
	lowerStats = []stat{
		{p: 0.5, interval: 9},
		{p: 0.9, interval: 8},
		{p: 0.95, drop: 2},
		{p: 0.99, interval: 3},
		{p: 0.999, drop: 6},
		{name: "mean", drop: 1},
		{name: "sd", drop: 7},
		{name: "max"},
	}
	higherStats = []stat{
		{p: 0.5, interval: 9},
		{p: 0.1, interval: 8},
		{p: 0.05, drop: 2},
		{p: 0.01, interval: 3},
		{name: "mean", drop: 1},
		{name: "sd", drop: 7},
		{name: "min"},
	}
	sizeStats = []stat{{p: 0.5}, {p: 0.9}, {p: 0.99}, {name: "mean"}, {name: "min"}, {name: "max"}}
)

// estimated is the source of what no server said.
const estimated = "estimated"

// A named is a distribution with the label and unit that it is shown under.
type named struct {
	label, unit string
	dist        *metrics.Dist
}

// namedOf are the distributions of one group that r has.
func namedOf(m *metrics.Metrics, g group) []named {
	var rows []named
	for _, x := range measures {
		if d := x.of(m); x.group == g && d != nil {
			label := x.label
			if d.Source == estimated {
				label += " (est.)"
			}
			rows = append(rows, named{label, d.Unit, d})
		}
	}
	return rows
}

// percentile writes 0.99 as p99 and 0.999 as p99.9.
func percentile(p float64) string {
	return fmt.Sprintf("p%g", math.Round(p*1e5)/1e3)
}

// distTable is a table of distributions under the given columns.
func distTable(first string, rows []named, stats []stat) *table {
	t := &table{columns: []column{{head: first, left: true}}}
	missing := slices.ContainsFunc(rows, func(n named) bool { return n.dist.Missing > 0 })
	var intervals []int
	for _, s := range stats {
		if s.p > 0 {
			t.columns = append(t.columns, column{head: percentile(s.p), drop: s.drop})
			if s.interval > 0 {
				head := "[" + level(rows) + "]"
				intervals = append(intervals, len(t.columns))
				t.columns = append(t.columns, column{head: head, name: percentile(s.p) + " " + head, left: true, drop: s.interval})
			}
			continue
		}
		t.columns = append(t.columns, column{head: s.name, drop: s.drop})
	}
	t.columns = append(t.columns, column{head: "n"})
	if missing {
		t.columns = append(t.columns, column{head: "miss"})
	}
	for _, n := range rows {
		cells := []cell{text(n.label)}
		for _, s := range stats {
			if s.p > 0 {
				cells = append(cells, quantileCell(n.unit, n.dist, s.p))
				if s.interval > 0 {
					cells = append(cells, intervalCell(n.unit, n.dist, s.p))
				}
				continue
			}
			cells = append(cells, text(amountOrNone(n.unit, plain(n.dist, s.name))))
		}
		cells = append(cells, text(term.ShortCount(n.dist.N)))
		if missing {
			cells = append(cells, missingCell(n.dist.Missing))
		}
		t.rows = append(t.rows, cells)
	}
	for _, c := range slices.Backward(intervals) {
		t.dropIfEmpty(c)
	}
	return t
}

func missingCell(n int64) cell {
	c := cell{text: term.ShortCount(n), tone: term.Care}
	if n == 0 {
		c.tone = term.Faint
	}
	return c
}

// plain is a statistic of d that is no quantile.
func plain(d *metrics.Dist, name string) *float64 {
	if d == nil {
		return nil
	}
	switch name {
	case "mean":
		return d.Mean
	case "sd":
		return d.SD
	case "min":
		return d.Min
	default:
		return d.Max
	}
}

// markNotes explains the marks of t's figures, those that it has.
func (t *table) markNotes() []string {
	var notes []string
	for _, m := range []struct{ mark, note string }{
		{marks[statusAssumed], noteAssumed},
		{marks[statusOpen], noteOpen},
		{marks[statusInsufficient], noteFew + ", or no steady state: no verdict rests on it"},
	} {
		if slices.ContainsFunc(t.rows, func(r []cell) bool {
			return slices.ContainsFunc(r, func(c cell) bool { return c.mark == m.mark })
		}) {
			notes = append(notes, m.note)
		}
	}
	return notes
}

// level is the confidence level of the intervals: 95 %.
func level(rows []named) string {
	for _, n := range rows {
		if n.dist.Level > 0 {
			return fmt.Sprintf("%g %%", math.Round(n.dist.Level*1e5)/1e3)
		}
	}
	return "95 %"
}

// A shown is a table's rows with the statistics that they are shown by.
type shown struct {
	rows  []named
	stats []stat
}

// legend explains the marks of all tables of a page.
func legend(tables ...shown) []string {
	var notes []string
	seen, drifts := map[string]bool{}, false
	var ps []float64
	takes, had := map[float64]int64{}, int64(0)
	for _, t := range tables {
		for _, s := range t.stats {
			for _, n := range t.rows {
				q := at(n.dist, s.p)
				if s.p <= 0 || q == nil {
					continue
				}
				seen[q.Status] = true
				if q.Status == statusInsufficient && needed(n.dist, q) <= n.dist.NRequests {
					drifts = true // nothing else is lacking
				} else if q.Status == statusInsufficient {
					if !slices.Contains(ps, s.p) {
						ps = append(ps, s.p)
					}
					takes[s.p] = max(takes[s.p], needed(n.dist, q))
					had = max(had, n.dist.NRequests)
				}
			}
		}
	}
	if seen[statusAssumed] {
		notes = append(notes, noteAssumed)
	}
	if seen[statusOpen] {
		notes = append(notes, noteOpen)
	}
	if drifts {
		notes = append(notes, noteDrift)
	}
	if len(ps) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s (had %s)", noteFew, needs(ps, takes), term.Count(had)))
	}
	return notes
}

// needs says which percentiles take how many requests: "p5 and p95 take about
// 100 requests, p99 about 500".
func needs(ps []float64, takes map[float64]int64) string {
	slices.SortFunc(ps, func(a, b float64) int { return cmp.Or(cmp.Compare(takes[a], takes[b]), cmp.Compare(a, b)) })
	var parts []string
	for len(ps) > 0 {
		var group []string
		need := takes[ps[0]]
		for len(ps) > 0 && takes[ps[0]] == need {
			group, ps = append(group, percentile(ps[0])), ps[1:]
		}
		s := listed(group)
		switch {
		case len(parts) > 0:
			s += " about " + term.Count(need)
		case len(group) > 1:
			s += " take about " + term.Count(need) + " requests"
		default:
			s += " takes about " + term.Count(need) + " requests"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// listed writes "a", "a and b", "a, b and c".
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

const (
	noteAssumed = "~ interval by the bursts that this run saw: how near the load is to saturation is not known"
	noteFew     = "* too few requests to state it"
	noteDrift   = "* not to be stated: the run has no steady state, and a longer one would have other percentiles"
	noteOpen    = "? interval open at one end: more requests would close it"
)

// needed is how many requests would make an insufficient quantile one that can
// be stated: 50 times the correlation time of requests, and five effective
// samples beyond it (metrics' rule for the status).
func needed(d *metrics.Dist, q *metrics.Quantile) int64 {
	tau := 1.0
	if q.Tau != nil {
		tau = max(tau, *q.Tau)
	}
	beyond := tau * 5 / min(q.P, 1-q.P)
	if q.NEff > 0 && d.NRequests > 0 {
		beyond = float64(d.NRequests) / q.NEff * 5 / min(q.P, 1-q.P)
	}
	// 5/(1 - 0.99) is a hair above 500 in floating point.
	return int64(math.Ceil(max(50*tau, beyond) - 1e-6))
}
