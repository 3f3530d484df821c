package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"fermata/compare"
	"fermata/internal/term"
	"fermata/metrics"
)

// WriteComparison writes c as format says, one of ComparisonFormats; the options matter
// to "terminal" alone.
func WriteComparison(format string, w io.Writer, c *compare.Comparison, o TerminalOptions) error {
	if err := ComparisonFormats.Check(format); err != nil {
		return err
	}
	if format != "csv" {
		return writeDocument("the comparison", format, w, c, func() *page { return versus(c) }, o)
	}
	if err := comparisonCSV(w, c); err != nil {
		return fmt.Errorf("writing the comparison as CSV: %w", err)
	}
	return nil
}

// comparisonColumns is the header of a comparison's CSV, a contract with people's
// scripts.
var comparisonColumns = []string{
	"run", "metric", "stat", "objective", "unit", "a", "b", "difference", "low", "high",
	"p", "p_adjusted", "variance_ratio", "mde", "resolved", "better", "why", "method", "n",
}

func comparisonCSV(w io.Writer, c *compare.Comparison) error {
	out := csv.NewWriter(w)
	out.Write(comparisonColumns) // errors are kept by the writer
	for _, e := range c.Metrics {
		out.Write([]string{
			e.Run, e.Metric, e.Stat, e.Objective, e.Unit, number(e.A), number(e.B), number(e.Difference), number(e.Low), number(e.High),
			number(e.P), number(e.PAdjusted), number(e.VarianceRatio), number(e.MDE),
			strconv.FormatBool(e.Resolved), e.Better, e.Why, e.Method, strconv.Itoa(e.N),
		})
	}
	out.Flush()
	return out.Error()
}

// versus is the page of a comparison.
func versus(c *compare.Comparison) *page {
	p := &page{verdict: versusHeadline(c)}
	names := sideNames(c)
	p.add(sidesBlock(c, names))
	p.add(block{title: "Warnings", warnings: c.Warnings})
	if len(c.Systems) > 0 && len(c.Systems[0].Costs) > 0 {
		p.add(costsBeside(c, names))
	}
	for i := 1; i < len(c.Systems); i++ {
		of := func(name string) string { return name + " of " + names[i] + " against " + names[0] }
		if len(c.Systems) == 2 {
			of = func(name string) string { return name }
		}
		run := c.Systems[i].Name
		p.add(entriesBlock(of("Differences"), c, run, names[0], names[i]))
		p.add(versusBlindSpots(of(blindSpotsTitle), c, run, names))
		p.add(shiftsBlock(of("Who moved, request by request"), c, run))
		p.add(pairingBlock(of("Requests in both"), c, run, names[0], names[i]))
	}
	return p
}

// sideNames are short names: a system's own, or letters where any is long.
func sideNames(c *compare.Comparison) []string {
	var rs []*metrics.Result
	for _, s := range c.Systems {
		rs = append(rs, &metrics.Result{Run: metrics.Run{Name: s.Name}})
	}
	names, _ := columnNames(rs)
	return names
}

// comparedNames are names of the runs of a comparison by their systems, as its tables
// have them, and what else tells them apart: their folders, and labels that differ.
func comparedNames(c *compare.Comparison, rs []*metrics.Result) (names, legends []string) {
	short, labels := sideNames(c), labelsDiffer(rs)
	for i, s := range c.Systems {
		for k := range s.Runs {
			name, legend := short[i], ""
			switch {
			case len(s.Runs) > 1:
				name, legend = fmt.Sprintf("%s %d", name, k+1), term.Plain(s.Runs[k])
			case name != term.Plain(s.Name):
				legend = term.Plain(s.Name)
			}
			if at := len(names); at < len(rs) {
				for _, label := range labels {
					legend = joined(" · ", legend, prefixed(term.Plain(label)+"=", term.Plain(rs[at].Run.Labels[label])))
				}
			}
			names, legends = append(names, name), append(legends, legend)
		}
	}
	return names, legends
}

func versusHeadline(c *compare.Comparison) fact {
	if c.Refused != "" {
		return fact{text: "not compared: " + term.Plain(c.Refused), tone: term.Bad}
	}
	names := sideNames(c)
	var parts []string
	tone := term.Strong
	for i, s := range c.Systems[1:] {
		var found, worse, better, all int
		most := ""
		depth := 0.0
		for k := range c.Metrics {
			e := &c.Metrics[k]
			if e.Run != s.Name {
				continue
			}
			all++
			if !e.Resolved {
				continue
			}
			found++
			switch e.Better {
			case "a":
				worse++
				tone = term.Care
			case "b":
				better++
			}
			if e.Relative != nil && math.Abs(e.Relative.Difference) > depth {
				depth, most = math.Abs(e.Relative.Difference), entryLabel(e)+" "+signedShare(e.Relative.Difference)
			}
		}
		name := names[i+1]
		switch {
		case found == 0:
			parts = append(parts, fmt.Sprintf("%s against %s: no difference is resolved in %s", name, names[0], counted(all, "figure")))
		default:
			text := fmt.Sprintf("%s against %s: better in %d and worse in %d of %s", name, names[0], better, worse, counted(all, "figure"))
			if most != "" {
				text += ", most of all " + most
			}
			parts = append(parts, text)
		}
	}
	return fact{text: strings.Join(parts, "; "), tone: tone}
}

func sidesBlock(c *compare.Comparison, names []string) block {
	b := block{title: "Systems", table: &table{columns: []column{
		{head: "", left: true}, {head: "runs"}, {head: "requests"}, {head: "ok"}, {head: "seeds", left: true, drop: 1}, {head: "target", left: true, flex: true},
	}}}
	for i, s := range c.Systems {
		var seeds []string
		for k, v := range s.Seeds {
			if k == 3 && len(s.Seeds) > 4 {
				seeds = append(seeds[:2], "…", fmt.Sprint(s.Seeds[len(s.Seeds)-1]))
				break
			}
			seeds = append(seeds, fmt.Sprint(v))
		}
		target := joined(" · ", term.Plain(s.Target), term.Plain(s.Model))
		if names[i] != term.Plain(s.Name) {
			target = joined(" · ", term.Plain(s.Name), target)
		}
		b.table.rows = append(b.table.rows, []cell{
			text(names[i]), text(term.Count(int64(len(s.Runs)))), text(term.Count(s.Requests)), text(term.Count(s.OK)),
			text(strings.Join(seeds, " ")), text(orNone(target)),
		})
	}
	return b
}

// entryLabel is a metric with its statistic, as tables have them.
func entryLabel(e *compare.Entry) string {
	label := e.Metric
	if i := slices.IndexFunc(measures, func(m measure) bool { return m.key == e.Metric }); i >= 0 {
		label = measures[i].label
	}
	switch {
	case e.Objective != "":
		return "objective " + strings.TrimPrefix(e.Metric, "slo")
	case e.Metric == "failed_share":
		return "failed"
	case e.Metric == "output_tokens_per_s":
		return "output tokens/s"
	case e.Metric == costMetric:
		return joined(" ", orText(term.Plain(e.Unit), "cost of"), costLabels[e.Stat])
	case e.Stat == "":
		return label
	}
	return label + " " + e.Stat
}

// costLabels are what figures of money are called among people.
var costLabels = map[string]string{"per_million": "a million", "per_million_good": "a million good", perAnswer: "1k good answers"}

// perAnswer is the statistic whose amounts have few digits that are not 0: pages tell
// that of 1,000.
const perAnswer = "per_good_request"

// signedShare is +2.13% of a ratio.
func signedShare(v float64) string { return signed(100*v) + "%" }

// signed has a sign and three digits, two of them decimals at most: 0.004 % of a
// time is nothing to anybody.
func signed(v float64) string {
	sign := "+"
	if v < 0 {
		sign = "−"
	}
	decimals := 2
	switch v = math.Abs(v); {
	case v < 0.005:
		return "0"
	case v >= 99.95:
		decimals = 0
	case v >= 9.995:
		decimals = 1
	}
	return sign + strconv.FormatFloat(v, 'f', decimals, 64)
}

// leastShare is what can be found, in per cent.
func leastShare(v float64) string {
	if v > 0 && 100*v < 0.005 {
		return "<0.01"
	}
	return strings.TrimPrefix(signed(100*v), "+")
}

// signedPoints is a difference of shares in percentage points.
func signedPoints(v float64) string { return strings.TrimSuffix(signedShare(v), "%") }

// entryDifference is the difference and its interval as people read it: of shares
// in percentage points, of all else in per cent of A.
func entryDifference(e *compare.Entry) (difference, interval, mde string) {
	difference, mde = term.None, term.None
	ends := func(low, high *float64, as func(float64) string) string {
		if low == nil || high == nil {
			return ""
		}
		return strings.TrimSuffix(as(*low), "%") + "…" + as(*high)
	}
	switch {
	case e.Difference == nil:
	case e.Relative != nil:
		difference, interval = signedShare(e.Relative.Difference), ends(e.Relative.Low, e.Relative.High, signedShare)
		if e.Relative.MDE != nil {
			mde = leastShare(*e.Relative.MDE) + "%"
		}
	default:
		difference, interval = signedPoints(*e.Difference)+" pt", ends(e.Low, e.High, signedPoints)
		if e.Unit != "share" {
			difference, interval = term.Number(*e.Difference, true), ends(e.Low, e.High, func(v float64) string { return term.Number(v, true) })
		}
		if e.MDE != nil {
			if mde = leastShare(*e.MDE) + " pt"; e.Unit != "share" {
				mde = term.Number(*e.MDE, true)
			}
		}
	}
	return difference, interval, mde
}

var whyUnresolved = []struct{ why, text string }{
	{compare.Chance, "the difference may be chance; what would have been found in 80 % of such comparisons stands under “finds”"},
	{compare.TooFewRuns, "fewer than 5 runs a side: percentiles, rates and costs of single runs have no error to compare with"},
	{compare.TooFewRequests, "too few requests: a mean or share of single runs takes 200, a percentile 5 values beyond it in each run"},
	{compare.Insufficient, "(*) half of the runs of a side, or more, have too few requests to state it, or no steady state: `fermata report` of one says what it takes, and no verdict rests on it"},
	{compare.Bursts, "requests hang together over so long that fewer than 5 batches are worth anything: it takes longer runs, or 5 a side"},
	{compare.Absent, "one of the systems does not have it"},
	{compare.Unlike, "the costs are of other kinds: another currency, other tokens, another basis, or another meaning of good; each stands under Cost"},
	{compare.OfLoad, "by the hour it is the cost of the load that was offered, which somebody chose: give --capacity, or compare loads that are there at once (--schedule all)"},
	{compare.OfSearch, "it is the cost at a capacity, and the chance in that is of its search, not of these runs"},
}

func entriesBlock(title string, c *compare.Comparison, run, a, b string) block {
	t := &table{columns: []column{
		{head: "", left: true},
		{head: a, name: "values"},
		{head: b, name: "values"},
		{head: "change"},
		{head: "95 % interval", left: true},
		{head: "finds", drop: 1, name: "least difference found"},
		{head: "p", drop: 2, name: "adjusted p"},
		{head: "pairing", drop: 3, name: "variance ratio of pairing"},
		{head: "", left: true},
	}}
	out := block{title: title, table: t}
	for i := range c.Metrics {
		e := &c.Metrics[i]
		if e.Run != run {
			continue
		}
		d, in, mde := entryDifference(e)
		p, ratio, verdict := term.None, term.None, cell{text: "not resolved", tone: term.Faint}
		if e.PAdjusted != nil {
			p = chanceText(*e.PAdjusted)
		}
		if e.VarianceRatio != nil {
			ratio = "×" + term.Number(*e.VarianceRatio, false)
		}
		switch e.Better {
		case "a":
			verdict = cell{text: "worse", tone: term.Bad}
		case "b":
			verdict = cell{text: "better", tone: term.Good}
		default:
			if e.Resolved {
				verdict = cell{text: "differs", tone: term.Care}
			}
		}
		of := func(v *float64) cell {
			c := text(amountOrNone(e.Unit, v))
			if e.Metric == costMetric && v != nil {
				c = text(moneyText(*v))
				if e.Stat == perAnswer {
					c = text(moneyText(1000 * *v))
				}
			}
			if e.Why == compare.Insufficient {
				c.mark, c.tone = marks[statusInsufficient], term.Faint
			}
			return c
		}
		t.rows = append(t.rows, []cell{
			text(entryLabel(e)), of(e.A), of(e.B), text(d), text(in), text(mde), text(p), text(ratio), verdict,
		})
	}
	for i := range c.Metrics {
		if e := &c.Metrics[i]; e.Run == run && e.Objective != "" {
			out.fact(entryLabel(e), term.Plain(e.Objective))
		}
	}
	out.notes = entryNotes(c, run)
	return out
}

func chanceText(p float64) string {
	if p < 0.001 {
		return "<.001"
	}
	return fmt.Sprintf("%.3f", p)
}

var methodTexts = map[string]string{
	compare.PairedRuns: "paired t test over runs", compare.Runs: "t test over runs (Welch), without pairs",
	compare.PairedBatches: "paired t test over batches of requests", compare.Batches: "t test over batches of requests a side (Welch), without pairs",
}

// entryNotes say how it was tested and why differences are not resolved.
func entryNotes(c *compare.Comparison, run string) []string {
	var notes, methods []string
	of := map[string][]string{}
	tested := 0
	for i := range c.Metrics {
		e := &c.Metrics[i]
		if e.PAdjusted != nil {
			tested++
		}
		if e.Run != run {
			continue
		}
		if m := methodTexts[e.Method]; m != "" && !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
		if e.Why != "" {
			of[e.Why] = append(of[e.Why], entryLabel(e))
		}
	}
	if len(methods) > 0 {
		family := fmt.Sprintf("after Holm's correction for %d questions", tested)
		if tested == 1 {
			family = "of one question"
		}
		notes = append(notes, fmt.Sprintf("%s; worse and better at 5 %% %s", strings.Join(methods, ", "), family))
	}
	for _, w := range whyUnresolved {
		if names := of[w.why]; len(names) > 0 {
			if w.why != compare.Chance {
				notes = append(notes, "not resolved "+strings.Join(names, ", ")+": "+w.text)
				continue
			}
			notes = append(notes, "not resolved does not mean equal: "+w.text)
		}
	}
	return notes
}

// shiftsBlock has a row a group of requests, and of each time how it moved.
func shiftsBlock(title string, c *compare.Comparison, run string) block {
	t := &table{columns: []column{{head: "requests", left: true}, {head: "n"}}}
	var kinds []string
	for _, s := range c.Shifts {
		if s.Run == run && !slices.Contains(kinds, s.Metric) {
			kinds = append(kinds, s.Metric)
		}
	}
	for _, k := range kinds {
		label := entryLabel(&compare.Entry{Metric: k})
		drop := 0
		if k == "tpot" {
			drop = 1
		}
		t.columns = append(t.columns, column{head: label, drop: drop}, column{head: "worse", drop: drop, name: label + " worse"})
	}
	row, group := []cell(nil), ""
	for _, s := range c.Shifts {
		if s.Run != run {
			continue
		}
		if key := fmt.Sprint(s.By, s.From); key != group {
			group = key
			name := fmt.Sprintf("prompt %s–%s", term.Count(s.From), term.Count(s.To))
			if s.By == compare.ByPosition {
				name = fmt.Sprintf("place %s–%s", term.Count(s.From+1), term.Count(s.To+1))
			}
			row = []cell{text(name), text(term.Count(s.N))}
			for range kinds {
				row = append(row, text(term.None), text(term.None))
			}
			t.rows = append(t.rows, row)
		}
		at := 2 + 2*slices.Index(kinds, s.Metric)
		sign := "+"
		if s.Median < 0 {
			sign = "−"
		}
		row[at] = text(sign + term.Duration(math.Abs(float64(s.Median))))
		row[at+1] = text(term.Percent(s.Worse))
		if s.Worse > 0.5 {
			row[at+1].tone = term.Care
		}
	}
	b := block{title: title, table: t}
	if len(t.rows) > 0 {
		b.notes = []string{"medians of the differences of single requests; worse is the share that took over 5 % longer; no intervals: this says where to look"}
	}
	return b
}

func pairingBlock(title string, c *compare.Comparison, run, a, b string) block {
	out := block{title: title}
	for _, p := range c.Pairings {
		if p.Run != run || p.Pairs == 0 {
			continue
		}
		out.fact("pairs", fmt.Sprintf("%s of runs, %s requests in both", term.Count(int64(p.Pairs)), term.Count(p.Requests)))
		if p.OnlyAFailed+p.OnlyBFailed+p.BothFailed > 0 {
			out.fact("failed", fmt.Sprintf("only in %s %s, only in %s %s, in both %s", a, term.Count(p.OnlyAFailed), b, term.Count(p.OnlyBFailed), term.Count(p.BothFailed)))
		}
		if len(p.Worst) == 0 {
			continue
		}
		t := &table{columns: []column{{head: "worsened most"}, {head: "pair"}, {head: "prompt"}, {head: "e2e in " + a}, {head: "e2e in " + b}}}
		for _, w := range p.Worst {
			prompt := term.None
			if w.PromptTokens != nil {
				prompt = term.Count(int64(*w.PromptTokens))
			}
			t.rows = append(t.rows, []cell{
				text("request " + fmt.Sprint(w.Index)), text(term.Count(int64(w.Pair + 1))), text(prompt), text(term.Duration(float64(w.A))), text(term.Duration(float64(w.B))),
			})
		}
		out.table = t
	}
	return out
}
