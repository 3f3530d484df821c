package report

import (
	"fmt"
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

// beside is the page of several results.
func beside(rs []*metrics.Result) *page {
	names, legends := columnNames(rs)
	return besideNamed(rs, names, legends)
}

// besideNamed is beside with short names of the runs for columns, and full ones.
func besideNamed(rs []*metrics.Result, names, legends []string) *page {
	var differ, agree, few []comparison
	var alone []string
	for _, c := range comparisons(rs) {
		switch {
		case c.runs < 2:
			alone = append(alone, c.label)
		case c.tooFew():
			few = append(few, c)
		case c.differs():
			differ = append(differ, c)
		default:
			agree = append(agree, c)
		}
	}
	p := &page{verdict: fact{text: headline(rs, differ, agree, few), tone: term.Strong}}
	p.add(runsBlock(rs, names, legends))
	for i, r := range rs {
		b := targets(r)
		if b.table != nil {
			b.title = "Targets of " + names[i]
			p.add(b)
		}
	}
	for i, r := range rs {
		if b := mlperf(r.MLPerf); b.title != "" {
			b.title += " of " + names[i]
			p.add(b)
		}
	}
	for i, r := range rs {
		if b := costs(r); b.title != "" {
			b.title += " of " + names[i]
			p.add(b)
		}
	}
	said, noted := split(together(rs, names))
	p.add(block{title: "Warnings", warnings: said})
	p.add(blindSpotsOf(rs, names))
	p.add(block{title: "These tell the runs apart", table: contrastTable(differ, names)})
	p.add(block{title: "These do not", table: contrastTable(agree, names)})
	p.add(block{title: "Too few requests to tell", table: contrastTable(few, names)})
	p.add(block{
		title: "One figure a run", table: figureTable(rs, names),
		notes: append(contrastLegend(rs, slices.Concat(differ, agree, few), alone), blurredRuns(rs, names)...),
	})
	for i, r := range rs {
		if len(r.Failures) > 0 {
			b := outcomes(r)
			b.title = "Outcomes of " + names[i]
			p.add(b)
		}
	}
	p.add(notes(noted))
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
	b.notes = b.table.markNotes()
	for _, k := range labelsDiffer(rs) {
		var values []string
		for i, r := range rs {
			values = append(values, names[i]+": "+orNone(term.Plain(r.Run.Labels[k])))
		}
		b.fact(term.Plain(k), strings.Join(values, " · "))
	}
	return b
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
		for _, f := range asStated(r) {
			key := "F " + gapName(f)
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
	for _, d := range dists {
		if d != nil {
			c.runs++
		}
	}
	c.sober()
	return append(all, c)
}

// contrastTable has a row a metric for two runs, and a row a statistic for more.
func contrastTable(cs []comparison, names []string) *table {
	t := &table{columns: []column{{head: "metric", left: true}}}
	// Most pages fit 80 cells without the ratio of the tails; means need more.
	heads := func(prefix, name, ratio string, drop, dropRatio int) {
		for i, n := range names {
			if i == 0 {
				n = strings.TrimSpace(prefix + " " + n)
			}
			t.columns = append(t.columns, column{head: n, name: name, drop: drop})
		}
		if drop < dropRatio {
			name = "ratio of " + name
		}
		t.columns = append(t.columns, column{head: ratio, name: name, drop: dropRatio})
	}
	if len(names) == 2 {
		heads("p50", "medians", "ratio", 0, 1)
		t.columns = append(t.columns, column{head: "tail"})
		heads("", "tails", "ratio", 0, 2)
		heads("mean", "means", "ratio", 3, 3)
		for _, c := range cs {
			row := append([]cell{text(c.label)}, c.median.cells(c.unit)...)
			row = append(row, cell{text: c.tail.name, tone: term.Faint})
			row = append(append(row, c.tail.cells(c.unit)...), c.mean.cells(c.unit)...)
			t.rows = append(t.rows, row)
		}
		return t.withoutEmptyRatios()
	}
	t.columns = append(t.columns, column{head: "", left: true})
	heads("", "", "largest/smallest", 0, 0)
	for _, c := range cs {
		t.rows = append(t.rows,
			append([]cell{text(c.label), text(c.median.name)}, c.median.cells(c.unit)...),
			append([]cell{text(""), text(c.tail.name)}, c.tail.cells(c.unit)...))
	}
	return t.withoutEmptyRatios()
}

// withoutEmptyRatios leaves out the ratios of a table that makes no comparison.
func (t *table) withoutEmptyRatios() *table {
	for c := len(t.columns) - 1; c > 0; c-- {
		if !t.columns[c].left {
			t.dropIfEmpty(c)
		}
	}
	return t
}

// blurredRuns names the medians of each run that stamps make uncertain.
func blurredRuns(rs []*metrics.Result, names []string) []string {
	var parts []string
	for i, r := range rs {
		if found := blurred(namedOf(&r.Metrics, timing)); len(found) > 0 {
			parts = append(parts, "in "+names[i]+" "+strings.Join(found, ", "))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{noteBlurred + strings.Join(parts, "; ")}
}

// contrastLegend explains the marks of the tables; alone are the metrics that
// fewer than two runs have.
func contrastLegend(rs []*metrics.Result, cs []comparison, alone []string) []string {
	notes := []string{fmt.Sprintf("= within %g %% (a single max or min: %g %%); × second to first run",
		math.Round((near-1)*100), math.Round((nearExtreme-1)*100))}
	if len(rs) > 2 {
		notes[0] = strings.Replace(notes[0], "second to first run", "largest to smallest", 1)
	} else {
		notes[0] += "; means have no interval and are not judged"
	}
	seen, takes := map[string]bool{}, int64(0)
	for i := range cs {
		seen["mute"] = seen["mute"] || cs[i].tooFew()
		for _, c := range []contrast{cs[i].median, cs[i].tail} {
			seen["≈"] = seen["≈"] || c.overlap
			seen["max"] = seen["max"] || c.extreme()
			for _, r := range c.readings {
				seen[r.status] = true
				takes = max(takes, r.takes)
			}
		}
	}
	if takes > 0 {
		notes = append(notes, noteFew+": it takes about "+term.Count(takes)+" requests")
	}
	for _, n := range []struct{ mark, text string }{
		{"≈", "≈ the intervals overlap: the difference may be chance"},
		{"max", "max or min stands where a run has too few requests for the percentile; where medians agree, it tells no runs apart"},
		{"mute", "there is no ratio where a run has too few requests to be compared"},
		{statusAssumed, "intervals by the bursts that the runs saw: how near the load is to saturation is not known"},
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
