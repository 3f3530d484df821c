package report

import (
	"fmt"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// partLabels are the parts of a time to first token as people read them.
var partLabels = map[string]string{"lateness": "lateness", "earlier_tries": "earlier tries", "network": "network", "scheduling_delay": "sched. delay", "prefill": "prefill"}

// partLabel is that of one of p's parts: what a curve takes for the network holds all
// that does not grow with the prompt.
func partLabel(p *metrics.TTFTParts, part string) string {
	if p.Source == estimated && part == "network" {
		return partLabels[part] + " and overhead"
	}
	return partLabels[part]
}

// partWidth is how many cells a whole time to first token takes.
const partWidth = 32

// stacked is the mean time to first token, taken apart: each part begins where the
// one before ends.
func stacked(p *metrics.TTFTParts) block {
	if p == nil || len(p.Parts) == 0 {
		return block{}
	}
	b := block{title: "Mean TTFT, stacked: as the server says"}
	if p.Source == estimated {
		b.title = "Mean TTFT, stacked: estimated"
	}
	t := &table{columns: []column{{head: "part", left: true}, {head: "mean"}, {head: "share"}}}
	banded := false
	for _, part := range p.Parts {
		banded = banded || part.LowNs != nil
	}
	if banded {
		t.columns = append(t.columns, column{head: "[band]", left: true})
	}
	t.columns = append(t.columns, column{head: "", name: "stack", left: true, drop: 1})
	before := int64(0)
	for _, part := range p.Parts {
		cells := []cell{text(partLabel(p, part.Part)), text(term.Duration(float64(part.MeanNs))), text(term.Percent(shareOf(part.MeanNs, p.MeanNs)))}
		if banded {
			cells = append(cells, cell{text: bandText(part.LowNs, part.HighNs), tone: term.Faint})
		}
		cells = append(cells, text(bar(before, part.MeanNs, p.MeanNs)))
		t.rows = append(t.rows, cells)
		before += part.MeanNs
	}
	b.table = t
	b.notes = append(b.notes, fmt.Sprintf("together %s, the mean of %s requests", term.Duration(float64(p.MeanNs)), term.Count(p.N)))
	if c := p.Curve; c != nil {
		b.notes = append(b.notes, "estimated: prefill and network are those of the curve in "+term.Plain(c.Text)+" ("+term.Plain(c.Source)+"), the delay is what it leaves")
	}
	var edges []string
	for _, d := range p.Delay {
		if d.Low != nil && d.High != nil {
			edges = append(edges, fmt.Sprintf("%s %s %s", percentile(d.P), term.Duration(d.Value), interval("ns", d.Low, d.High)))
		}
	}
	if len(edges) > 0 {
		b.notes = append(b.notes, "sched. delay by the edges of the curve's band: "+strings.Join(edges, ", "))
	}
	return b
}

func shareOf(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// bar draws a part behind what came before it.
func bar(before, part, whole int64) string {
	from := int(partWidth*shareOf(max(before, 0), whole) + 0.5)
	to := int(partWidth*shareOf(max(before+part, 0), whole) + 0.5)
	from, to = min(max(from, 0), partWidth), min(max(to, 0), partWidth)
	if to <= from {
		return ""
	}
	return strings.Repeat("·", from) + strings.Repeat("█", to-from)
}

func bandText(low, high *int64) string {
	if low == nil || high == nil {
		return ""
	}
	l, h := float64(*low), float64(*high)
	return interval("ns", &l, &h)
}
