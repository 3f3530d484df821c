package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"fermata/capacity"
	"fermata/cost"
	"fermata/internal/term"
)

// WriteCapacity writes what searches found, one for each objective and seed, as format
// says, one of DocumentFormats. As JSON one of them is an object, several are an array.
func WriteCapacity(format string, w io.Writer, all []*capacity.Result, o TerminalOptions) error {
	if len(all) == 0 {
		return errNoResults
	}
	var document any = all
	if len(all) == 1 {
		document = all[0]
	}
	return writeDocument("the capacity", format, w, document, func() *page { return capacityPage(all) }, o)
}

func capacityPage(all []*capacity.Result) *page {
	if len(all) > 1 {
		return capacitiesPage(all)
	}
	r := all[0]
	p := &page{verdict: capacityVerdict(r)}
	b := block{title: "Capacity", warnings: r.Warnings}
	b.fact("system", term.Plain(r.Target))
	b.fact("objective", term.Plain(r.Objective)+fmt.Sprintf(" (%s of requests may miss; failures do)", share(r.Allowed)))
	if c := r.Capacity; c != nil {
		b.fact("rate", rateText(c.RPS)+" requests/s"+betweenText(c.Low, c.High)+ofSaturation(r))
		b.fact("attainment", attainmentText(r))
		if c.TokensPerS != nil {
			b.fact("tokens", term.Number(*c.TokensPerS, false)+" output tokens/s at that rate")
		}
	}
	if r.SaturationRPS != nil {
		b.fact("saturation", rateText(*r.SaturationRPS)+" requests/s"+probeText(r.Probe))
	}
	b.fact("a million", promiseText(r.Cost))
	b.fact("search", searchText(r))
	b.fact("ended", term.Plain(r.Reason))
	p.add(b)
	p.add(capacityPicture(r))
	p.add(capacitySteps(r))
	return p
}

// capacityVerdict is the first line.
func capacityVerdict(r *capacity.Result) fact {
	f := fact{tone: term.Good}
	switch c := r.Capacity; {
	case r.Ending == capacity.Found && c != nil:
		f.text = fmt.Sprintf("Capacity %s requests/s%s: up to there %s holds", rateText(c.RPS), betweenText(c.Low, c.High), term.Plain(r.Objective))
		if r.Rough {
			f.text += " (rough)"
		}
		if r.Saturated {
			f.tone = term.Care
			f.text += ", limited by saturation"
		}
	case r.Ending == capacity.NeverMissed && c != nil:
		f.tone = term.Care
		f.text = fmt.Sprintf("Capacity is at least %s requests/s: nothing missed %s", rateText(c.RPS), term.Plain(r.Objective))
	default:
		f.tone = term.Bad
		f.text = "No capacity: " + term.Plain(r.Reason)
	}
	return f
}

func rateText(v float64) string { return fmt.Sprintf("%.4g", v) }

func betweenText(low, high *float64) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf(" (%s–%s)", rateText(*low), rateText(*high))
	case low != nil:
		return fmt.Sprintf(" (%s or more)", rateText(*low))
	}
	return ""
}

func ofSaturation(r *capacity.Result) string {
	if r.SaturationRPS == nil {
		return ""
	}
	return fmt.Sprintf(", %.2f of saturation", r.Capacity.RPS/(*r.SaturationRPS))
}

func attainmentText(r *capacity.Result) string {
	c := r.Capacity
	if c.Attainment == nil {
		return ""
	}
	text := term.Percent(*c.Attainment)
	if c.AttainmentLow != nil && c.AttainmentHigh != nil {
		text += fmt.Sprintf(" (%s–%s)", term.Percent(*c.AttainmentLow), term.Percent(*c.AttainmentHigh))
	}
	if h := r.Held; h != nil {
		text += fmt.Sprintf(" of %s requests at %s requests/s", term.Count(int64(h.Requests)), rateText(heldRate(h)))
		if h.Tau > 1 {
			text += fmt.Sprintf(", of which %.3g in a row are worth one", h.Tau)
		}
	}
	return text
}

// promiseText is what output tokens cost at the capacity, beside offline.
func promiseText(c *cost.AtCapacity) string {
	if c == nil {
		return ""
	}
	text := costText(c.PerMillion, c.Low, c.High, c.Currency) + " for output tokens at the capacity"
	if c.Factor != nil {
		text += fmt.Sprintf(", × %.3g of the %s offline: what the promise costs", *c.Factor, shortMoney(c.Offline))
	}
	return text
}

func heldRate(h *capacity.Held) float64 {
	if h.Realised > 0 {
		return h.Realised
	}
	return h.Rate
}

func probeText(p *capacity.Probe) string {
	switch {
	case p == nil:
		return ""
	case p.Climbed:
		return ", by doubling the rate"
	case p.Guessed:
		return fmt.Sprintf(" or more, the average of %s at once", term.Count(int64(p.Asked)))
	}
	return fmt.Sprintf(", by %s at once", term.Count(int64(p.Asked)))
}

func searchText(r *capacity.Result) string {
	text := fmt.Sprintf("%s, %s requests", r.Method, term.Count(r.Requests))
	if r.DurationNs > 0 {
		text += " in " + term.Duration(float64(r.DurationNs))
	}
	if r.Method == capacity.HTRM {
		text += fmt.Sprintf(", to ±%s", share(r.Precision))
	}
	if r.Seed != nil {
		text += fmt.Sprintf(", seed %d", *r.Seed)
	}
	return text
}

const (
	pictureRows    = 9
	pictureColumns = 64
)

// capacityPicture draws the rate over the search: • where no more than the allowed
// share missed, × where more did, a line at what was found.
func capacityPicture(r *capacity.Result) block {
	if len(r.Search) < 4 {
		return block{}
	}
	columns := min(pictureColumns, len(r.Search))
	rates, missed := make([]float64, columns), make([]bool, columns)
	for i := range columns {
		of := r.Search[i*len(r.Search)/columns : (i+1)*len(r.Search)/columns]
		n, k := 0, 0
		for _, b := range of {
			rates[i] += math.Log(b.Rate) / float64(len(of))
			n, k = n+b.Requests, k+b.Misses
		}
		missed[i] = float64(k) > r.Allowed*float64(n)
	}
	low, high := slices.Min(rates), slices.Max(rates)
	found := math.NaN()
	if r.Capacity != nil {
		found = math.Log(r.Capacity.RPS)
		low, high = min(low, found), max(high, found)
	}
	if high-low < .01 {
		low, high = low-.005, high+.005
	}
	row := func(x float64) int { return int(math.Round((high - x) / (high - low) * (pictureRows - 1))) }
	at := func(k int) float64 { return math.Exp(high - (high-low)*float64(k)/(pictureRows-1)) }
	b := block{title: "Search"}
	for k := range pictureRows {
		line := []rune(strings.Repeat(" ", columns))
		isFound := !math.IsNaN(found) && row(found) == k
		for i := range line {
			switch {
			case row(rates[i]) == k && missed[i]:
				line[i] = '×'
			case row(rates[i]) == k:
				line[i] = '•'
			case isFound:
				line[i] = '─'
			}
		}
		label := ""
		switch {
		case isFound:
			label = rateText(r.Capacity.RPS)
		case k == 0 || k == pictureRows-1:
			label = rateText(at(k))
		}
		b.picture = append(b.picture, term.Right(label, 7)+" ┤"+string(line))
	}
	b.notes = append(b.notes, fmt.Sprintf("requests/s over the requests asked; × where more than %s missed, ─ what was found", share(r.Allowed)))
	return b
}

const mostStepRows = 12

// capacitySteps is the search as a table: every trial, or blocks taken together.
func capacitySteps(r *capacity.Result) block {
	if len(r.Search) == 0 {
		return block{}
	}
	t := &table{columns: []column{{head: "blocks", left: true}, {head: "requests/s"}, {head: "realised", drop: 1}, {head: "outcomes"}, {head: "missed"}, {head: "share"}}}
	if r.Method == capacity.Bisect {
		t.columns[0].head = "trial"
	}
	rows := min(mostStepRows, len(r.Search))
	if r.Method == capacity.Bisect {
		rows = len(r.Search)
	}
	for i := range rows {
		from, to := i*len(r.Search)/rows, (i+1)*len(r.Search)/rows
		low, high, realised, n, k := math.Inf(1), 0.0, 0.0, 0, 0
		for _, b := range r.Search[from:to] {
			low, high = min(low, b.Rate), max(high, b.Rate)
			realised += b.Realised / float64(to-from)
			n, k = n+b.Requests, k+b.Misses
		}
		name, rate := fmt.Sprintf("%d–%d", from+1, to), rateText(low)+"–"+rateText(high)
		if to-from == 1 {
			name, rate = fmt.Sprint(to), rateText(low)
		}
		t.rows = append(t.rows, stepRow(name, rate, rateText(realised), n, k))
	}
	if h := r.Held; h != nil {
		t.rows = append(t.rows, stepRow("held", rateText(h.Rate), rateText(h.Realised), h.Requests, h.Misses))
	}
	return block{table: t}
}

func stepRow(name, rate, realised string, n, k int) []cell {
	missed := term.None
	if n > 0 {
		missed = term.Percent(float64(k) / float64(n))
	}
	return []cell{text(name), text(rate), text(realised), text(term.Count(int64(n))), text(term.Count(int64(k))), text(missed)}
}

// capacitiesPage sets searches beside each other: several objectives, or several
// seeds.
func capacitiesPage(all []*capacity.Result) *page {
	p := &page{verdict: capacitiesVerdict(all)}
	t := &table{columns: []column{
		{head: "objective", left: true, flex: true},
		{head: "seed"},
		{head: "requests/s"},
		{head: "95 %", left: true},
		{head: "of saturation", drop: 2},
		{head: "attainment", drop: 3},
		{head: "tokens/s", drop: 4},
		{head: "asked", drop: 5},
	}}
	requests := int64(0)
	for _, r := range all {
		requests += r.Requests
		row := make([]cell, len(t.columns))
		row[0], row[7] = text(term.Plain(r.Objective)), text(term.Count(r.Requests))
		if r.Seed != nil {
			row[1] = text(fmt.Sprint(*r.Seed))
		}
		if c := r.Capacity; c != nil {
			row[2] = text(rateText(c.RPS))
			row[3] = text(strings.Trim(betweenText(c.Low, c.High), " ()"))
			if r.SaturationRPS != nil {
				row[4] = text(fmt.Sprintf("%.2f", c.RPS/(*r.SaturationRPS)))
			}
			if c.Attainment != nil {
				row[5] = text(term.Percent(*c.Attainment))
			}
			if c.TokensPerS != nil {
				row[6] = text(term.Number(*c.TokensPerS, false))
			}
		} else {
			row[2] = cell{text: "none", tone: term.Bad}
		}
		t.rows = append(t.rows, row)
	}
	b := block{title: "Capacities", table: t}
	b.fact("system", term.Plain(all[0].Target))
	b.fact("searches", fmt.Sprintf("%s, %s requests in all", all[0].Method, term.Count(requests)))
	if b.notes = seedNotes(all); len(b.notes) == 0 {
		b.notes = []string{"objectives differ in what they see: each has a search of its own, with the same arrivals and prompts"}
	}
	p.add(b)
	for _, r := range all {
		own := block{title: term.Plain(r.Objective), warnings: r.Warnings}
		own.fact("a million", promiseText(r.Cost))
		if r.Ending != capacity.Found {
			own.fact("ended", term.Plain(r.Reason))
		}
		if r.Seed != nil && len(own.warnings)+len(own.facts) > 0 {
			own.title += fmt.Sprintf(", seed %d", *r.Seed)
		}
		p.add(own)
	}
	return p
}

func capacitiesVerdict(all []*capacity.Result) fact {
	found := 0
	for _, r := range all {
		if r.Capacity != nil && (r.Ending == capacity.Found || r.Ending == capacity.NeverMissed) {
			found++
		}
	}
	f := fact{text: fmt.Sprintf("%d searches, %d capacities", len(all), found), tone: term.Good}
	if found < len(all) {
		f.tone = term.Bad
	}
	return f
}

// seedNotes sum up an objective over its seeds.
func seedNotes(all []*capacity.Result) []string {
	var notes []string
	for _, of := range byObjective(all) {
		if text := medianOfSeeds(of); text != "" {
			notes = append(notes, term.Plain(of[0].Objective)+": "+text)
		}
	}
	return notes
}

// byObjective are the searches of each objective, in the order of the first.
func byObjective(all []*capacity.Result) [][]*capacity.Result {
	var sorted [][]*capacity.Result
	for _, r := range all {
		i := slices.IndexFunc(sorted, func(of []*capacity.Result) bool { return of[0].Objective == r.Objective })
		if i < 0 {
			i, sorted = len(sorted), append(sorted, nil)
		}
		sorted[i] = append(sorted[i], r)
	}
	return sorted
}

// medianOfSeeds sums up the searches of one objective; empty where fewer than two found
// anything.
func medianOfSeeds(of []*capacity.Result) string {
	var v []float64
	for _, r := range of {
		if r.Capacity != nil {
			v = append(v, r.Capacity.RPS)
		}
	}
	if len(v) < 2 {
		return ""
	}
	slices.Sort(v)
	return fmt.Sprintf("median %s requests/s over %d seeds, from %s to %s", rateText(middle(v)), len(v), rateText(v[0]), rateText(v[len(v)-1]))
}

// capacityHeads are what each objective of several came to.
func capacityHeads(all []*capacity.Result) []fact {
	var heads []fact
	for _, of := range byObjective(all) {
		text := medianOfSeeds(of)
		if text == "" {
			var found []string
			for _, r := range of {
				if c := r.Capacity; c != nil {
					found = append(found, rateText(c.RPS)+" requests/s"+betweenText(c.Low, c.High))
				}
			}
			text = strings.Join(found, ", ")
		}
		tone := capacitiesVerdict(of).tone
		if none := slices.IndexFunc(of, func(r *capacity.Result) bool { return r.Capacity == nil }); none >= 0 {
			text = joined("; ", text, "none: "+term.Plain(of[none].Reason))
		}
		heads = append(heads, fact{term.Plain(of[0].Objective), text, tone})
	}
	return heads
}
