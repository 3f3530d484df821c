package report

import (
	"maps"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// targets sets several targets of one run side by side, a row each.
func targets(r *metrics.Result) block {
	if len(r.Targets) == 0 {
		return block{}
	}
	b := block{title: "Targets", table: &table{columns: []column{
		{head: "target", left: true},
		{head: "requests"},
		{head: "ok"},
		{head: "TTFT p50"},
		{head: "p90", name: "TTFT p90", drop: 1},
		{head: "p99", name: "TTFT p99"},
		{head: "TBT p50", drop: 2},
		{head: "p99", name: "TBT p99"},
		{head: "TPOT p50"},
		{head: "silence p99", name: "longest silence p99", drop: 3},
		{head: "objectives", left: true, flex: true},
	}}}
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		t := r.Targets[name]
		measured := int64(0)
		for _, n := range t.Outcomes {
			measured += n
		}
		good := text(term.Count(t.Outcomes[outcomeOK]))
		if t.Outcomes[outcomeOK] < measured {
			good.tone = term.Bad
		}
		m := &t.Metrics
		b.table.rows = append(b.table.rows, []cell{
			text(term.Plain(name)), text(term.Count(measured)), good,
			quantileCell("ns", m.TTFTDue, 0.5), quantileCell("ns", m.TTFTDue, 0.9), quantileCell("ns", m.TTFTDue, 0.99),
			quantileCell("ns", m.TBT, 0.5), quantileCell("ns", m.TBT, 0.99), quantileCell("ns", m.TPOT, 0.5),
			quantileCell("ns", m.GapLongest, 0.99), verdicts(t.SLO),
		})
	}
	b.notes = b.table.markNotes()
	return b
}

// verdicts are those of all objectives, in their order.
func verdicts(slo []metrics.Verdict) cell {
	if len(slo) == 0 {
		return text(term.None)
	}
	c := cell{tone: term.Good}
	var words []string
	for _, v := range slo {
		words = append(words, v.Verdict)
		if v.Verdict == metrics.Missed || v.Verdict == metrics.Open && c.tone == term.Good {
			c.tone = verdictTones[v.Verdict]
		}
	}
	c.text = strings.Join(words, ", ")
	return c
}
