package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// nameLimit is the longest name of a run that stands above columns; a longer one
// makes letters of all.
const nameLimit = 10

// SideBySide writes several results as Terminal does: one column a run, the
// metrics that tell the runs apart before those that do not, with ratios.
func SideBySide(w io.Writer, results []*metrics.Result, o TerminalOptions) error {
	if len(results) == 0 {
		return errNoResults
	}
	return drawTerminal(w, beside(results), o)
}

// beside is the page of several results.
func beside(rs []*metrics.Result) *page {
	names, legends := columnNames(rs)
	var differ, agree []comparison
	var alone []string
	for _, c := range comparisons(rs) {
		switch {
		case c.differs():
			differ = append(differ, c)
		case c.median.shared() < 2 && c.tail.shared() < 2:
			alone = append(alone, c.label)
		default:
			agree = append(agree, c)
		}
	}
	p := &page{verdict: fact{text: headline(rs, differ, agree), tone: term.Strong}}
	p.add(runsBlock(rs, names, legends))
	for _, b := range warningBlocks(rs, names) {
		p.add(b)
	}
	p.add(block{title: "These tell the runs apart", table: contrastTable(differ, names)})
	p.add(block{title: "These do not", table: contrastTable(agree, names)})
	p.add(block{title: "One figure a run", table: figureTable(rs, names), notes: contrastLegend(rs, slices.Concat(differ, agree), alone)})
	for i, r := range rs {
		if len(r.Failures) > 0 {
			b := outcomes(r)
			b.title = "Outcomes of " + names[i]
			p.add(b)
		}
	}
	return p
}

// columnNames are short names for runs; legends are their full names.
func columnNames(rs []*metrics.Result) (names, legends []string) {
	long := false
	for i, r := range rs {
		name := term.Plain(r.Run.Name)
		if name == "" {
			name = term.Plain(r.Run.Target)
		}
		if name == "" {
			name = fmt.Sprintf("run %d", i+1)
		}
		long = long || term.Cells(name) > nameLimit || slices.Contains(legends, name)
		legends = append(legends, name)
	}
	if !long {
		return legends, legends
	}
	for i := range rs {
		if i < 26 {
			names = append(names, string(rune('A'+i)))
		} else {
			names = append(names, fmt.Sprintf("#%d", i+1))
		}
	}
	return names, legends
}

// headline is the first line: how many metrics see a difference, and which sees
// the greatest.
func headline(rs []*metrics.Result, differ, agree []comparison) string {
	s := fmt.Sprintf("%d runs %s: ", len(rs), sameLoad(rs))
	switch {
	case len(differ) == 0:
		return s + fmt.Sprintf("no metric of %d tells them apart.", len(agree))
	default:
		s += fmt.Sprintf("%d of %d metrics tell them apart", len(differ), len(differ)+len(agree))
	}
	var label string
	var most contrast
	for _, c := range differ {
		for _, x := range []contrast{c.median, c.tail} {
			if x.differs && x.ratio > 0 && !math.IsInf(x.ratio, 0) &&
				(label == "" || math.Abs(math.Log(x.ratio)) > math.Abs(math.Log(most.ratio))) {
				label, most = c.label, x
			}
		}
	}
	if label != "" {
		s += fmt.Sprintf(", most of all %s (%s %s)", label, most.name, ratioText(most.ratio))
	}
	return s + "."
}

func sameLoad(rs []*metrics.Result) string {
	var rates []string
	low, high := math.Inf(1), 0.0
	for _, r := range rs {
		v := r.Load.OfferedRPS
		if v == nil {
			v = r.Load.AchievedRPS
		}
		if v == nil {
			return "side by side"
		}
		low, high = min(low, *v), max(high, *v)
		rates = append(rates, term.Number(*v, false))
	}
	if high <= low*near {
		return "under the same load"
	}
	return "under different loads (" + strings.Join(rates, ", ") + " requests/s)"
}

func runsBlock(rs []*metrics.Result, names, legends []string) block {
	b := block{title: "Runs", table: &table{columns: []column{
		{head: "run", left: true},
		{head: "offered/s"},
		{head: "achieved/s"},
		{head: "ok"},
		{head: "failed"},
		{head: "lateness p99", drop: 1},
		{head: "window"},
		{head: "target", left: true, flex: true},
	}}}
	for i, r := range rs {
		v := verdict(r)
		b.facts = append(b.facts, fact{names[i], v.text, v.tone})
		bad := text(term.Count(failed(r)))
		if failed(r) > 0 {
			bad.tone = term.Bad
		}
		target := joined(" · ", term.Plain(r.Run.Target), term.Plain(r.Run.Model))
		if legends[i] != names[i] && legends[i] != term.Plain(r.Run.Target) {
			target = joined(" · ", legends[i], target)
		}
		rate := func(v *float64) cell {
			if v == nil {
				return text(term.None)
			}
			return text(term.Number(*v, false))
		}
		b.table.rows = append(b.table.rows, []cell{
			text(names[i]), rate(r.Load.OfferedRPS), rate(r.Load.AchievedRPS),
			text(term.Count(r.Outcomes[outcomeOK])), bad, quantileCell("ns", r.Load.Lateness, 0.99),
			text(term.Duration(float64(r.Window.EndNs - r.Window.StartNs))), text(orNone(target)),
		})
	}
	for _, k := range labelsDiffer(rs) {
		var values []string
		for i, r := range rs {
			values = append(values, names[i]+": "+orNone(term.Plain(r.Run.Labels[k])))
		}
		b.fact(term.Plain(k), strings.Join(values, " · "))
	}
	return b
}

// warningBlocks state once what every run warns of, then the rest run by run.
func warningBlocks(rs []*metrics.Result, names []string) []block {
	common := block{title: "Warnings of every run"}
	own := make([]block, len(rs))
	for i, r := range rs {
		own[i].title = "Warnings of " + names[i]
		for _, w := range warnings(r) {
			everywhere := !slices.ContainsFunc(rs, func(o *metrics.Result) bool { return !slices.Contains(warnings(o), w) })
			switch {
			case !everywhere:
				own[i].warnings = append(own[i].warnings, w)
			case i == 0:
				common.warnings = append(common.warnings, w)
			}
		}
	}
	return append([]block{common}, own...)
}

// gapName is a target gap with its variant, decode only where none is named.
func gapName(f *metrics.Fluidity) string {
	name := term.Bound(f.TargetGapNs)
	if f.Variant != "decode" || f.Edge != "" {
		name += ", " + fluidityName(f)
	}
	return name
}

// comparisons are all distributions that any run has, in the order of a page.
func comparisons(rs []*metrics.Result) []comparison {
	var all []comparison
	for _, x := range measures {
		dists := make([]*metrics.Dist, len(rs))
		for i, r := range rs {
			dists[i] = x.of(&r.Metrics)
		}
		all = appendComparison(all, x.label, "", dists)
	}
	var keys []string
	found := map[string][]*metrics.Dist{}
	for i, r := range rs {
		for j := range r.Fluidity {
			f := &r.Fluidity[j]
			key := "F at " + gapName(f)
			if found[key] == nil {
				found[key] = make([]*metrics.Dist, len(rs))
				keys = append(keys, key)
			}
			found[key][i] = f.Index
		}
	}
	for _, key := range keys {
		all = appendComparison(all, key, "index", found[key])
	}
	return all
}

func appendComparison(all []comparison, label, unit string, dists []*metrics.Dist) []comparison {
	i := slices.IndexFunc(dists, func(d *metrics.Dist) bool { return d != nil })
	if i < 0 {
		return all
	}
	if unit == "" {
		unit = dists[i].Unit
	}
	p, extreme := 0.99, "max"
	if dists[i].Better == "higher" {
		p, extreme = 0.01, "min"
	}
	c := comparison{
		label: label, unit: unit,
		median: quantileContrast(dists, 0.5), tail: quantileContrast(dists, p), mean: plainContrast(dists, "mean"),
	}
	// A tail that not every run can state says less than the extremes.
	if slices.ContainsFunc(c.tail.readings, func(r reading) bool { return r.value == nil }) {
		c.tail = plainContrast(dists, extreme)
	}
	return append(all, c)
}

// contrastTable has a row a metric for two runs, and a row a statistic for more.
func contrastTable(cs []comparison, names []string) *table {
	t := &table{columns: []column{{head: "metric", left: true}}}
	// Columns fit 80 cells without the ratio of the medians; means need more.
	heads := func(prefix, ratio string, drop, dropRatio int) {
		for i, n := range names {
			if i == 0 {
				n = strings.TrimSpace(prefix + " " + n)
			}
			t.columns = append(t.columns, column{head: n, drop: drop})
		}
		t.columns = append(t.columns, column{head: ratio, drop: dropRatio})
	}
	if len(names) == 2 {
		heads("p50", "ratio", 0, 1)
		t.columns = append(t.columns, column{head: "tail"})
		heads("", "ratio", 0, 0)
		heads("mean", "ratio", 2, 2)
		for _, c := range cs {
			row := append([]cell{text(c.label)}, c.median.cells(c.unit)...)
			row = append(row, cell{text: c.tail.name, tone: term.Faint})
			row = append(append(row, c.tail.cells(c.unit)...), c.mean.cells(c.unit)...)
			t.rows = append(t.rows, row)
		}
		return t
	}
	t.columns = append(t.columns, column{head: "", left: true})
	heads("", "largest/smallest", 0, 0)
	for _, c := range cs {
		t.rows = append(t.rows,
			append([]cell{text(c.label), text(c.median.name)}, c.median.cells(c.unit)...),
			append([]cell{text(""), text(c.tail.name)}, c.tail.cells(c.unit)...))
	}
	return t
}

// contrastLegend explains the marks of the tables; alone are the metrics that
// fewer than two runs have.
func contrastLegend(rs []*metrics.Result, cs []comparison, alone []string) []string {
	notes := []string{fmt.Sprintf("= within %g %% (a single max or min: %g %%); × second to first run",
		math.Round((near-1)*100), math.Round((nearExtreme-1)*100))}
	if len(rs) > 2 {
		notes[0] = strings.Replace(notes[0], "second to first run", "largest to smallest", 1)
	}
	seen := map[string]bool{}
	for i := range cs {
		for _, c := range []contrast{cs[i].median, cs[i].tail} {
			seen["≈"] = seen["≈"] || c.overlap
			seen["max"] = seen["max"] || c.name == "max" || c.name == "min"
			for _, r := range c.readings {
				seen[r.status] = true
			}
		}
	}
	for _, n := range []struct{ mark, text string }{
		{"≈", "≈ the intervals overlap: the difference may be chance"},
		{"max", "max or min stands where a run has too few requests for the percentile"},
		{statusAssumed, "intervals as if requests were independent: how near the load is to saturation is not known"},
	} {
		if seen[n.mark] {
			notes = append(notes, n.text)
		}
	}
	if len(alone) > 0 {
		notes = append(notes, "only one run has: "+strings.Join(alone, ", "))
	}
	return notes
}

// figureTable compares what each run has one figure of.
func figureTable(rs []*metrics.Result, names []string) *table {
	t := &table{columns: []column{{head: "figure", left: true}}}
	for _, n := range names {
		t.columns = append(t.columns, column{head: n})
	}
	t.columns = append(t.columns, column{head: "ratio"})
	order, found := []string{}, map[string][]*float64{}
	units := map[string]string{}
	for i, r := range rs {
		for _, f := range figures(r) {
			if found[f.label] == nil {
				found[f.label] = make([]*float64, len(rs))
				order = append(order, f.label)
				units[f.label] = f.unit
			}
			found[f.label][i] = f.value
		}
	}
	for _, label := range order {
		c := contrast{}
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
}

func figures(r *metrics.Result) []figure {
	var fs []figure
	add := func(label, unit string, v *float64) {
		if v != nil {
			fs = append(fs, figure{label, unit, v})
		}
	}
	if r.Load.Measured > 0 {
		ok := float64(r.Outcomes[outcomeOK]) / float64(r.Load.Measured)
		add("requests ok", "share", &ok)
	}
	if r.Stalls != nil {
		add("answers that froze at "+paceText(r.Stalls.PaceNs), "share", &r.Stalls.Share)
	}
	for i := range r.Fluidity {
		f := &r.Fluidity[i]
		add("F ≥ 0.9 at "+gapName(f), "share", f.ShareAtLeast0_9)
	}
	add("1/median TPOT, tokens/s", "", r.Rates.TPOT)
	add("1/p99 TBT, tokens/s", "", r.Rates.TailTBT)
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		if f.Feasible {
			add("fluid rate, tokens/s, "+variantName(f.Variant), "", f.TokensPS)
		}
	}
	add("finished, requests/s", "", r.Throughput.RequestsPerS)
	add("finished, output tokens/s", "", r.Throughput.OutputTokensPerSFinished)
	add("arrived, output tokens/s", "", r.Throughput.OutputTokensPerSArrived)
	add("same event as the token before", "share", r.SameEventShare)
	add("same read as the token before", "share", r.SameReadShare)
	for i := range r.Goodput {
		g := &r.Goodput[i]
		add("good: "+term.Plain(g.Objective), "share", &g.Share)
	}
	return fs
}

// labelsDiffer lists the labels that are not the same in all runs.
func labelsDiffer(rs []*metrics.Result) []string {
	all := map[string]bool{}
	for _, r := range rs {
		for k := range r.Run.Labels {
			all[k] = true
		}
	}
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(rs, func(r *metrics.Result) bool { return r.Run.Labels[k] != rs[0].Run.Labels[k] }) {
			keys = append(keys, k)
		}
	}
	return keys
}
