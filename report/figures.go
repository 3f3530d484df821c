package report

import (
	"fermata/internal/term"
	"fermata/metrics"
)

// figureTable compares what each run has one figure of; there is no ratio where
// a figure rests on too few requests.
func figureTable(rs []*metrics.Result, names []string) *table {
	t := &table{columns: []column{{head: "figure", left: true}}}
	for _, n := range names {
		t.columns = append(t.columns, column{head: n})
	}
	t.columns = append(t.columns, column{head: "ratio"})
	order, found := []string{}, map[string][]*float64{}
	units, shaky := map[string]string{}, map[string]bool{}
	for i, r := range rs {
		for _, f := range figures(r) {
			if found[f.label] == nil {
				found[f.label] = make([]*float64, len(rs))
				order = append(order, f.label)
				units[f.label] = f.unit
			}
			found[f.label][i] = f.value
			shaky[f.label] = shaky[f.label] || f.shaky
		}
	}
	for _, label := range order {
		c := contrast{mute: shaky[label]}
		for _, v := range found[label] {
			c.readings = append(c.readings, reading{value: v})
		}
		c.judge(near)
		t.rows = append(t.rows, append([]cell{text(label)}, c.cells(units[label])...))
	}
	return t
}

type figure struct {
	label, unit string
	value       *float64
	shaky       bool // it rests on too few requests to be compared
}

func figures(r *metrics.Result) []figure {
	var fs []figure
	add := func(label, unit string, v *float64) {
		if v != nil {
			fs = append(fs, figure{label: label, unit: unit, value: v})
		}
	}
	// resting adds a figure that stands or falls with a quantile.
	resting := func(d *metrics.Dist, p float64, label, unit string, v *float64) {
		if v != nil {
			fs = append(fs, figure{label, unit, v, d != nil && claimed(d, p) == nil})
		}
	}
	if r.Load.Measured > 0 {
		ok := float64(r.Outcomes[outcomeOK]) / float64(r.Load.Measured)
		add("requests ok", "share", &ok)
	}
	if r.Checks != nil {
		add("answers that passed their check", "share", &r.Checks.Share)
	}
	if r.Slow != nil && r.Load.Measured > 0 {
		slow := float64(*r.Slow) / float64(r.Load.Measured)
		add("slow answers", "share", &slow)
	}
	if r.Stalls != nil {
		resting(r.Metrics.StallLongest, 0.5, "answers that froze at "+paceText(r.Stalls.PaceNs), "share", &r.Stalls.Share)
	}
	for _, f := range asStated(r) {
		resting(f.Index, 0.5, "F ≥ 0.9 at "+gapName(f), "share", f.ShareAtLeast0_9)
	}
	resting(r.Metrics.TPOT, 0.5, "1/median TPOT, tokens/s", "", r.Rates.TPOT)
	resting(r.Metrics.TBT, 0.99, "1/p99 TBT, tokens/s", "", r.Rates.TailTBT)
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		if f.Feasible {
			resting(r.Metrics.TBT, 0.5, "fluid rate, tokens/s, "+variantName(f.Variant), "", f.TokensPS)
		}
	}
	add("finished, requests/s", "", r.Throughput.RequestsPerS)
	add("finished, output tokens/s", "", r.Throughput.OutputTokensPerSFinished)
	add("arrived, output tokens/s", "", r.Throughput.OutputTokensPerSArrived)
	add("same event as the token before", "share", r.SameEventShare)
	add("same read as the token before", "share", r.SameReadShare)
	for i := range r.Goodput {
		g := &r.Goodput[i]
		add("good: "+term.Plain(g.Objective), "share", g.Share)
	}
	return fs
}
