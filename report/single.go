package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// single is the page of one result.
func single(r *metrics.Result) *page {
	p := &page{verdict: verdict(r)}
	p.add(whatRan(r))
	said, noted := split(warnings(r))
	p.add(block{title: "Warnings", warnings: said})
	if len(r.SLO) > 0 || len(r.Goodput) > 0 {
		p.add(judgements(r))
	}
	p.add(mlperf(r.MLPerf))
	p.add(targets(r))
	p.add(outcomes(r))
	p.add(blindSpots(r))

	times, freezes, speeds := namedOf(&r.Metrics, timing), namedOf(&r.Metrics, freezing), namedOf(&r.Metrics, speed)
	p.add(block{
		title: "Times", table: distTable("metric", times, lowerStats),
		notes: append(legend(
			shown{times, lowerStats}, shown{speeds, higherStats}, shown{freezes, lowerStats},
			shown{namedOf(&r.Metrics, sizes), sizeStats}, shown{fluidityRows(r), fluidityStats},
		), blurredNote(times)...),
	})
	p.add(stacked(r.TTFTParts))
	p.add(exceedances(r))
	p.add(stalls(r, freezes))
	p.add(fluidity(r))
	p.add(moved(r))
	p.add(rates(r))
	p.add(block{
		title: "Speed of single answers (low percentiles are the slow ones)",
		table: distTable("metric", speeds, higherStats),
	})
	p.add(throughput(r))
	p.add(costs(r))
	p.add(arrivals(r))
	p.add(server(r))
	p.add(instrument(r))
	p.add(notes(noted))
	return p
}

// whatRan says what the numbers are about.
func whatRan(r *metrics.Result) block {
	b := block{title: "Run"}
	b.fact("name", term.Plain(r.Run.Name))
	b.fact("target", joined(" · ", term.Plain(r.Run.Target), prefixed("model ", term.Plain(r.Run.Model))))
	b.fact("simulated", simulationText(r.Simulation))
	b.fact("load", loadText(r))
	if d := r.Load.Lateness; d != nil {
		b.fact("lateness", quantilesText(d, 0.5, 0.99)+" (the sender's own delay)")
	}
	if a := r.Load.Arrivals; a != nil {
		b.fact("arrivals", arrivalsText(a, r.Sessions != nil))
		b.fact("on the wire", sentText(a, r.Sessions != nil))
	}
	b.fact("window", windowText(&r.Window))
	b.fact("data set", datasetText(r.DataSet))
	b.fact("spent", spentText(r.Load.Spent))
	labels := labelTexts(r.Run.Labels)
	if r.Run.Seed != nil {
		labels = append(labels, fmt.Sprintf("seed %d", *r.Run.Seed))
	}
	b.fact("labels", strings.Join(labels, " · "))
	b.fact("interrupted", interruptedText(r))
	return b
}

// labelTexts are the words that a run goes by. Why a transport was taken stands with
// the transport.
func labelTexts(of map[string]string) []string {
	why, told := of["transport_why"]
	_, taken := of["transport"]
	var all []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		text := term.Plain(k) + " " + term.Plain(of[k])
		switch {
		case k == "transport_why" && taken:
			continue
		case k == "transport" && told:
			text += " (" + term.Plain(why) + ")"
		}
		all = append(all, text)
	}
	return all
}

// simulationText says how busy a simulated system was.
func simulationText(s *metrics.Simulation) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("busy %s of the time (prefill alone %s, mixed %s)", term.Percent(s.BusyShare), term.Percent(s.PrefillShare), term.Percent(s.MixedShare))
	memory, evicted := "", ""
	if s.MemoryShare != nil {
		memory = fmt.Sprintf("memory %s full", term.Percent(*s.MemoryShare))
	}
	if s.Evictions > 0 {
		evicted = term.Count(s.Evictions) + " evictions, " + term.Count(s.Recomputed) + " tokens computed again"
	}
	silence := ""
	if g := s.LongestGap; g != nil {
		silence = fmt.Sprintf("longest gap %s, of request %d", term.Duration(float64(g.Ns)), g.Index)
		if g.PrefillIterations > 0 {
			silence += fmt.Sprintf(": %s in %d iterations that only prefilled (%d prompts)", term.Duration(float64(g.PrefillNs)), g.PrefillIterations, g.Prompts)
		}
	}
	return joined(" · ", text, memory, evicted, term.Count(s.Iterations)+" iterations", silence)
}

func loadText(r *metrics.Result) string {
	l := &r.Load
	var rate string
	switch {
	case l.OfferedRPS != nil && l.AchievedRPS != nil:
		rate = "offered " + term.Number(*l.OfferedRPS, false) + " requests/s, achieved " + term.Number(*l.AchievedRPS, false)
	case l.AchievedRPS != nil:
		rate = "achieved " + term.Number(*l.AchievedRPS, false) + " requests/s"
	case l.OfferedRPS != nil:
		rate = "offered " + term.Number(*l.OfferedRPS, false) + " requests/s"
	}
	flight := "in flight at most " + term.Count(l.InFlightMax)
	if l.InFlightMean != nil {
		flight += ", " + term.Number(*l.InFlightMean, false) + " on average"
	}
	retried := ""
	if l.Retried > 0 {
		retried = term.Count(l.Retried) + " of them tried again"
	}
	return joined(" · ", rate, term.Count(l.Sent)+" of "+term.Count(l.Measured)+" measured requests sent", retried, flight)
}

// datasetText is what became of the data set.
func datasetText(d *metrics.DataSet) string {
	if d == nil {
		return ""
	}
	rounds, skipped, empty, filtered := "asked once at most", "", "", ""
	if d.Rounds > 0 {
		rounds = "started over " + term.Count(d.Rounds) + " times"
	}
	if d.Unreadable > 0 {
		skipped = term.Count(d.Unreadable) + " unreadable, skipped"
	}
	if d.Empty > 0 {
		empty = term.Count(d.Empty) + " with nothing to ask"
	}
	if f := d.Filters; f != nil {
		filtered = fmt.Sprintf("filters dropped %s of %s (median prompt %d → %d tokens, median answer %d → %d)",
			term.Count(f.Rows-f.Kept), term.Count(f.Rows), f.InputBefore, f.InputAfter, f.OutputBefore, f.OutputAfter)
	}
	return joined(" · ", term.Count(d.Rows)+" rows, "+rounds, skipped, empty, filtered)
}

// spentText is what the whole run cost.
func spentText(s *metrics.Spent) string {
	if s == nil {
		return ""
	}
	text := s.Amount + " " + term.Plain(s.Currency)
	if s.Most != "" {
		text += " of " + term.Plain(s.Most) + " allowed"
	}
	if s.Unknown > 0 {
		text += " · without the prompts of " + term.Count(s.Unknown) + " requests, whose length nobody told"
	}
	return text
}

func windowText(w *metrics.Window) string {
	s := term.Duration(float64(w.EndNs-w.StartNs)) + " measured"
	if w.StartNs > 0 {
		s += ", after " + term.Duration(float64(w.StartNs)) + " of warm-up"
	} else {
		s += ", without warm-up"
	}
	if scale := w.TimeScale; scale > 0 && (scale < 1 || scale > 1) {
		s += fmt.Sprintf(" · simulated time, ×%g", scale)
	}
	return joined(" · ", s, term.Plain(w.Why))
}

// quantilesText is "p50 1.20 ms · p99 3.40 ms · max 5 ms": prose has no grey, so that
// what cannot be stated is left out of it.
func quantilesText(d *metrics.Dist, ps ...float64) string {
	var parts []string
	for _, p := range ps {
		c := text(term.None)
		if claimed(d, p) != nil {
			c = quantileCell(d.Unit, d, p)
		}
		parts = append(parts, percentile(p)+" "+c.text+c.mark)
	}
	if d.Max != nil {
		parts = append(parts, "max "+amount(d.Unit, *d.Max))
	}
	return strings.Join(parts, " · ")
}

// blurred names the medians and 99th percentiles that the bounds on stamps alone
// make uncertain by more than a tenth.
func blurred(rows []named) []string {
	var parts []string
	for _, n := range rows {
		for _, p := range []float64{0.5, 0.99} {
			q := claimed(n.dist, p)
			if q == nil || q.StampLow == nil || q.StampHigh == nil || *q.StampHigh-*q.StampLow <= q.Value/10 {
				continue
			}
			parts = append(parts, n.label+" "+percentile(p)+" "+interval(n.unit, q.StampLow, q.StampHigh))
		}
	}
	return parts
}

const noteBlurred = "arrivals are stamped too coarsely for these percentiles, which lie somewhere in: "

// blurredNote is what the page of one run says of them.
func blurredNote(rows []named) []string {
	if parts := blurred(rows); len(parts) > 0 {
		return []string{noteBlurred + strings.Join(parts, ", ")}
	}
	return nil
}

// exceedances are the shares above fixed bounds, up to the first bound that
// nothing exceeds.
func exceedances(r *metrics.Result) block {
	b := block{title: "Above a bound"}
	t := &table{columns: []column{
		{head: "metric", left: true}, {head: "above"}, {head: "share"}, {head: "[95 %]", left: true}, {head: "counting missing"},
	}}
	none := map[string][]string{}
	var bounds []string
	for _, x := range measures {
		d := x.of(&r.Metrics)
		if d == nil {
			continue
		}
		if d.Level > 0 {
			t.columns[3].head = "[" + level([]named{{dist: d}}) + "]"
		}
		for i := range d.Over {
			o := &d.Over[i]
			bound := term.Bound(int64(o.Value))
			if o.Share <= 0 {
				if !slices.Contains(bounds, bound) {
					bounds = append(bounds, bound)
				}
				label := x.label
				if d.Missing > 0 {
					label += " (" + term.Count(d.Missing) + " missing)"
				}
				none[bound] = append(none[bound], label)
				break
			}
			t.rows = append(t.rows, []cell{
				text(x.label), text(bound), text(term.Percent(o.Share)),
				{text: interval("share", o.Low, o.High), tone: term.Faint},
				text(term.Percent(o.ShareWithMissing)),
			})
		}
	}
	b.table = t
	for _, bound := range bounds {
		b.notes = append(b.notes, "none above "+bound+": "+strings.Join(none[bound], ", "))
	}
	return b
}

// stalls are freezes at the reading pace.
func stalls(r *metrics.Result, rows []named) block {
	b := block{title: "Stalls", table: distTable("metric", rows, lowerStats)}
	if r.Stalls != nil {
		b.fact("", stallText(r))
	}
	return b
}

// stallText is the sentence about stalls.
func stallText(r *metrics.Result) string {
	s, ok := r.Stalls, r.Outcomes[outcomeOK]
	pace := "at the reading pace of " + paceText(s.PaceNs)
	if s.RequestsWithAny == 0 {
		return "none of " + term.Count(ok) + " answers froze " + pace
	}
	line := fmt.Sprintf("%s of %s answers (%s) froze %s", term.Count(s.RequestsWithAny), term.Count(ok), term.Percent(s.Share), pace)
	if d := r.Metrics.StallLongest; d != nil && d.Max != nil {
		line += ", the longest for " + term.Duration(*d.Max)
	}
	if d := r.Metrics.StallPosition; d != nil && d.Min != nil {
		line += ", the earliest at token " + term.Number(*d.Min, true)
	}
	return line
}

func paceText(ns int64) string {
	if ns <= 0 {
		return "no set speed"
	}
	// A pace is kept as whole ns, so 6 tokens/s comes back as 5.999999988.
	return fmt.Sprintf("%.4g tokens/s", 1e9/float64(ns))
}

func throughput(r *metrics.Result) block {
	t := &r.Throughput
	per := func(v *float64, unit string) string {
		if v == nil {
			return ""
		}
		return term.Number(*v, false) + " " + unit
	}
	b := block{title: "Throughput, under this load and at these latencies"}
	b.fact("finished", joined(" · ", per(t.RequestsPerS, "requests/s"), per(t.OutputTokensPerSFinished, "output tokens/s")))
	b.fact("arrived", per(t.OutputTokensPerSArrived, "output tokens/s"))
	b.fact("prompts", per(t.InputTokensPerS, "input tokens/s"))
	if len(b.facts) == 0 {
		return block{}
	}
	b.fact("load", loadText(r))
	if d := r.Metrics.TTFTDue; d != nil {
		b.fact("TTFT (due)", quantilesText(d, 0.5, 0.99))
	}
	if d := r.Metrics.TBT; d != nil {
		b.fact("TBT", quantilesText(d, 0.5, 0.99))
	}
	return b
}

// arrivals say how tokens came in: alone or in bunches.
func arrivals(r *metrics.Result) block {
	rows := namedOf(&r.Metrics, sizes)
	b := block{title: "Tokens on the way", table: distTable("per request or event", rows, sizeStats)}
	if v := r.SameEventShare; v != nil {
		b.fact("same event", term.Percent(*v)+" of the tokens after the first came in the event of the token before")
	}
	if v := r.SameReadShare; v != nil {
		b.fact("same read", term.Percent(*v)+" in the socket read of the token before")
	}
	return b
}

// joined joins the parts that are not empty.
func joined(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
