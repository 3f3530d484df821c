package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fermata/capacity"
	"fermata/internal/chart"
	"fermata/internal/term"
)

const (
	mostTraced   = 400 // blocks of a search that are drawn one by one
	mostSearches = 12  // that are drawn
	attainedAt   = 12  // rates at which a search's blocks are taken together
)

// capacitySections are the pictures of searches.
func capacitySections(all []*capacity.Result) []section {
	together := section{ID: "capacities", Title: "Capacities side by side"}
	if len(all) > 1 {
		together.Pictures = present(capacityLanes(all))
	}
	sections := []section{together}
	for i, r := range all[:min(len(all), mostSearches)] {
		s := section{ID: fmt.Sprintf("search-%d", i), Title: "The search", Pictures: present(capacityTrace(i, r), capacityAttainment(i, r))}
		if len(all) > 1 {
			s.Title += ": " + searchName(r)
		}
		sections = append(sections, s)
	}
	if len(all) > mostSearches {
		sections[1].Note = fmt.Sprintf("Of %d searches the first %d are drawn by themselves; the others stand in the table on top.", len(all), mostSearches)
	}
	return filled(sections...)
}

func searchName(r *capacity.Result) string {
	name := term.Plain(r.Objective)
	if r.Seed != nil {
		name += fmt.Sprintf(", seed %d", *r.Seed)
	}
	return name
}

// capacityLanes sets the capacities of several objectives or seeds side by side.
func capacityLanes(all []*capacity.Result) *picture {
	p := &picture{
		ID: "capacities", Title: "The capacity of each objective", Wide: true,
		Lead:    "The highest rate at which each objective holds, with its 95 % interval, and the share of requests that met it at the rate that was held.",
		columns: []string{"objective", "seed", "requests/s", "low", "high", "attainment", "output tokens/s", "saturation, requests/s"},
	}
	var lanes []lane
	for _, r := range all {
		seed := ""
		if r.Seed != nil {
			seed = fmt.Sprint(*r.Seed)
		}
		l := lane{class: seriesClass(slices.IndexFunc(all, func(o *capacity.Result) bool { return o.Objective == r.Objective })), text: "none · " + searchName(r)}
		cells := []string{term.Plain(r.Objective), seed, "", "", "", "", "", numberOrNone(r.SaturationRPS)}
		if c := r.Capacity; c != nil {
			l.value, l.low, l.high = &c.RPS, c.Low, c.High
			l.text = rateText(c.RPS) + "/s" + betweenText(c.Low, c.High) + " · " + searchName(r)
			cells = append(cells[:2], plainNumber(c.RPS), numberOrNone(c.Low), numberOrNone(c.High), numberOrNone(c.Attainment), numberOrNone(c.TokensPerS), numberOrNone(r.SaturationRPS))
		}
		l.cells = cells
		lanes = append(lanes, l)
	}
	return p.drawLanes(chart.Axis{Label: "requests/s", Format: numberTick}, lanes)
}

// A traced is some blocks of a search in a row.
type traced struct {
	first, last      int // counted from 1
	asked            int // outcomes until its end
	rate, realised   float64
	requests, misses int
	more             bool // than the allowed share missed
}

// trace is the search in at most mostTraced pieces.
func trace(r *capacity.Result) []traced {
	n := min(len(r.Search), mostTraced)
	asked := 0
	all := make([]traced, 0, n)
	for i := range n {
		from, to := i*len(r.Search)/n, (i+1)*len(r.Search)/n
		t := traced{first: from + 1, last: to}
		for _, b := range r.Search[from:to] {
			t.rate += math.Log(b.Rate) / float64(to-from)
			t.realised += b.Realised / float64(to-from)
			t.requests, t.misses = t.requests+b.Requests, t.misses+b.Misses
		}
		t.rate = math.Exp(t.rate)
		asked += t.requests
		t.asked, t.more = asked, float64(t.misses) > r.Allowed*float64(t.requests)
		all = append(all, t)
	}
	return all
}

func (t *traced) name() string {
	if t.first == t.last {
		return fmt.Sprint(t.first)
	}
	return fmt.Sprintf("%d–%d", t.first, t.last)
}

// capacityTrace is the rate over the search.
func capacityTrace(k int, r *capacity.Result) *picture {
	all := trace(r)
	if len(all) == 0 {
		return nil
	}
	p := &picture{
		ID: fmt.Sprintf("trace-%d", k), Title: "The rate over the search", Hover: "x", Wide: true,
		Lead:    fmt.Sprintf("A mark a block of requests: a dot where no more than %s of them missed the objective, a cross where more did.", share(r.Allowed)),
		columns: []string{"blocks", "outcomes so far", "requests/s set", "realised", "outcomes", "missed", "share that met it"},
		Legend:  []legendKey{{"fill s0", "no more missed than may"}, {"missed", "more missed"}},
	}
	if r.Method == capacity.Bisect {
		p.columns[0] = "trial"
		p.Lead = fmt.Sprintf("A mark a trial: a dot where no more than %s of its requests missed the objective, a cross where more did.", share(r.Allowed))
	}
	plot := chart.Plot{Height: 300, X: chart.Axis{Label: "requests whose outcome was known", Min: 0, Format: countTick, Whole: true}, Y: chart.Axis{Label: "requests/s", Format: numberTick}}
	line := chart.Line{Class: "thin s7"}
	held, missed := chart.Dots{Class: "s0"}, chart.Cross{Class: "missed"}
	low, high := math.Inf(1), 0.0
	reach := func(v float64) { low, high = min(low, v), max(high, v) }
	for i := range all {
		t := &all[i]
		x := float64(t.asked)
		line.X, line.Y = append(line.X, x), append(line.Y, t.rate)
		if t.more {
			missed.X, missed.Y = append(missed.X, x), append(missed.Y, t.rate)
		} else {
			held.X, held.Y = append(held.X, x), append(held.Y, t.rate)
		}
		reach(t.rate)
		p.row(0, x, t.rate, tracedCells(t.name(), t.asked, t.rate, t.realised, t.requests, t.misses)...)
		plot.X.Max = x
	}
	if h := r.Held; h != nil {
		end := plot.X.Max + float64(h.Requests)
		plot.Marks = append(plot.Marks, chart.Shade{Class: "warmup", From: plot.X.Max, To: end, Label: "held", Bottom: true}, chart.Line{Class: "thick s0", X: []float64{plot.X.Max, end}, Y: []float64{heldRate(h), heldRate(h)}})
		plot.X.Max = end
		reach(heldRate(h))
		p.row(0, end, heldRate(h), tracedCells("held", int(end), h.Rate, h.Realised, h.Requests, h.Misses)...)
	}
	p.Name = fmt.Sprintf("%s: the rate over %s of a search", searchName(r), counted(len(r.Search), "block"))
	if c := r.Capacity; c != nil {
		reach(c.RPS)
		if c.Low != nil && c.High != nil {
			reach(*c.Low)
			reach(*c.High)
			plot.Marks = append(plot.Marks, chart.Band{Class: "s2", X: []float64{0, plot.X.Max}, Low: []float64{*c.Low, *c.Low}, High: []float64{*c.High, *c.High}})
			p.Legend = append(p.Legend, legendKey{"band s2", "95 % interval of the capacity"})
		}
		plot.Marks = append(plot.Marks, chart.Rule{Class: "s2", At: c.RPS, Horizontal: true, Label: "capacity " + rateText(c.RPS), Start: true})
		p.Name += ", capacity " + rateText(c.RPS) + " requests/s" + betweenText(c.Low, c.High)
	}
	if mu := r.SaturationRPS; mu != nil {
		reach(*mu)
		plot.Marks = append(plot.Marks, chart.Rule{Class: "s7", At: *mu, Horizontal: true, Label: "saturation " + rateText(*mu), Start: true})
	}
	plot.Marks = append(plot.Marks, line, held, missed)
	span := max(high-low, 0.1*high)
	plot.Y.Min, plot.Y.Max = max(0, low-0.06*span), high+0.1*span
	p.draw(plot)
	return p
}

func tracedCells(name string, asked int, rate, realised float64, requests, misses int) []string {
	met, came := "", ""
	if requests > 0 {
		met = plainNumber(1 - float64(misses)/float64(requests))
	}
	if realised > 0 {
		came = plainNumber(realised)
	}
	return []string{name, fmt.Sprint(asked), plainNumber(rate), came, fmt.Sprint(requests), fmt.Sprint(misses), met}
}

// capacityAttainment is the share that met the objective against the rate, blocks at
// about one rate taken together.
func capacityAttainment(k int, r *capacity.Result) *picture {
	p := &picture{
		ID: fmt.Sprintf("attainment-%d", k), Title: "Share that met the objective, by the rate", Hover: "x", Wide: true,
		Lead:    "Blocks at about the same rate are taken together. They have no intervals: requests near each other fare alike. The run at the rate that was held has one, which takes that into account.",
		columns: []string{"blocks", "requests/s, from", "to", "outcomes", "missed", "share that met it", "low", "high"},
	}
	if len(r.Search) == 0 {
		return nil
	}
	steps := slices.Clone(r.Search)
	slices.SortStableFunc(steps, func(a, b capacity.Step) int { return cmp.Compare(a.Rate, b.Rate) })
	plot := chart.Plot{Height: 280, X: chart.Axis{Label: "requests/s", Format: numberTick}, Y: chart.Axis{Label: "share of the requests", Max: 1, Format: percentTick}}
	line := chart.Line{Class: "thin s0"}
	low, high, least := steps[0].Rate, steps[len(steps)-1].Rate, 1-r.Allowed
	for i, n := 0, min(attainedAt, len(steps)); i < n; i++ {
		some := steps[i*len(steps)/n : (i+1)*len(steps)/n]
		asked, misses, rate := 0, 0, 0.0
		for _, b := range some {
			asked, misses, rate = asked+b.Requests, misses+b.Misses, rate+b.Rate/float64(len(some))
		}
		if asked == 0 {
			continue
		}
		met := 1 - float64(misses)/float64(asked)
		line.X, line.Y = append(line.X, rate), append(line.Y, met)
		least = min(least, met)
		p.row(0, rate, met, fmt.Sprint(len(some)), plainNumber(some[0].Rate), plainNumber(some[len(some)-1].Rate), fmt.Sprint(asked), fmt.Sprint(misses), plainNumber(met), "", "")
	}
	p.Legend = []legendKey{{"s0", "blocks of the search"}}
	plot.Marks = append(plot.Marks, chart.Rule{Class: "s7", At: 1 - r.Allowed, Horizontal: true, Label: share(1-r.Allowed) + " is wanted", Start: true}, line, chart.Dots{Class: "s0", X: line.X, Y: line.Y, Radius: 3})
	if c, h := r.Capacity, r.Held; c != nil && h != nil && c.Attainment != nil {
		rate := heldRate(h)
		low, high, least = min(low, rate), max(high, rate), min(least, *c.Attainment)
		if c.AttainmentLow != nil && c.AttainmentHigh != nil {
			least = min(least, *c.AttainmentLow)
			plot.Marks = append(plot.Marks, chart.Interval{Class: "s1", At: rate, Low: *c.AttainmentLow, High: *c.AttainmentHigh})
		}
		plot.Marks = append(plot.Marks, chart.Dots{Class: "s1", X: []float64{rate}, Y: []float64{*c.Attainment}, Radius: 4})
		p.row(1, rate, *c.Attainment, "held", plainNumber(rate), plainNumber(rate), fmt.Sprint(h.Requests), fmt.Sprint(h.Misses), plainNumber(*c.Attainment), numberOrNone(c.AttainmentLow), numberOrNone(c.AttainmentHigh))
		p.Legend = append(p.Legend, legendKey{"fill s1", "the run at the rate held, with its 95 % interval"})
	}
	if len(p.rows) == 0 {
		return nil
	}
	span := max(high-low, 0.05*high)
	plot.X.Min, plot.X.Max = max(0, low-0.05*span), high+0.05*span
	plot.Y.Min = max(0, least-0.05*(1-least)-0.002)
	p.Name = fmt.Sprintf("%s: share that met it at %s", searchName(r), counted(len(p.rows), "rate"))
	p.draw(plot)
	return p
}
