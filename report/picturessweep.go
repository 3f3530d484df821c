package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fermata/internal/chart"
	"fermata/internal/term"
)

// htmlPage is the page of a sweep before its words: its points are the page's runs.
func (s *Sweep) htmlPage() *htmlPage {
	h := &htmlPage{sweep: s}
	for i, r := range s.results {
		h.runs = append(h.runs, Portrayed{Result: r})
		h.names = append(h.names, s.Points[i].Label)
	}
	h.titles = h.names
	h.Sections = filled(h.frontierSection(), section{ID: "promises", Title: "What was promised", Pictures: present(h.attainment(), s.promised(), s.losses())})
	return h
}

// filled are the sections that have a picture.
func filled(all ...section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return len(s.Pictures) == 0 })
}

// present are the pictures that there are.
func present(all ...*picture) []picture {
	var some []picture
	for _, p := range all {
		if p != nil {
			some = append(some, *p)
		}
	}
	return some
}

// ladders are the loads by size, and everything at once by itself.
func (s *Sweep) ladders() [][]rung {
	var loads, offline []rung
	for i, p := range s.Points {
		switch {
		case p.Value != nil:
			loads = append(loads, rung{i, *s.load(&s.Points[i])})
		case p.RequestsPerS != nil:
			offline = append(offline, rung{i, *p.RequestsPerS})
		}
	}
	slices.SortStableFunc(loads, func(a, b rung) int { return cmp.Compare(a.offered, b.offered) })
	return slices.DeleteFunc([][]rung{loads, offline}, func(l []rung) bool { return len(l) == 0 })
}

// load is how large a point's load was: requests a second as they were offered, or
// users; nil of everything at once.
func (s *Sweep) load(p *SweepPoint) *float64 {
	if !s.users() && p.Value != nil && p.OfferedRPS != nil {
		return p.OfferedRPS
	}
	return p.Value
}

// users says that the loads are numbers of users.
func (s *Sweep) users() bool { return s != nil && s.Knob == "concurrency" }

// point is the one of a label; nil without.
func (s *Sweep) point(label string) *SweepPoint {
	for i := range s.Points {
		if label != "" && s.Points[i].Label == label {
			return &s.Points[i]
		}
	}
	return nil
}

// kneeRule is a line at the knee, over what at says of a point; nil without one.
func (h *htmlPage) kneeRule(at func(*SweepPoint) *float64) []chart.Mark {
	if h.sweep == nil || h.sweep.Knee == nil {
		return nil
	}
	p := h.sweep.point(h.sweep.Knee.At)
	if p == nil || at(p) == nil {
		return nil
	}
	return []chart.Mark{chart.Rule{Class: "s7", At: *at(p), Label: "knee: " + p.Label}}
}

// latency is that of a point in words: no throughput stands without it.
func (s *Sweep) latency(p *SweepPoint) string {
	i := slices.IndexFunc(s.Points, func(q SweepPoint) bool { return q.Label == p.Label })
	m := &s.results[i].Metrics
	return "TTFT p99 " + quantileCell("ns", m.TTFTDue, .99).Text() + " · TBT p99 " + quantileCell("ns", m.TBT, .99).Text()
}

// latencyCells are the same as a table of data has them.
func (s *Sweep) latencyCells(p *SweepPoint) []string {
	cells := []string{"", "", ""}
	if p.TTFT != nil && p.TBT != nil {
		cells = []string{inMs(p.TTFT.P99), inMs(p.TBT.P99), p.TTFT.P99Status}
		if p.TBT.P99Status != p.TTFT.P99Status {
			cells[2] += ", " + p.TBT.P99Status
		}
	}
	return cells
}

var latencyColumns = []string{"TTFT p99 (ms)", "TBT p99 (ms)", "status of p99"}

const promiseNotes = "~ and * behind a p99 are explained below the table on top."

// attainment is the share of requests that met each objective, against the load.
func (h *htmlPage) attainment() *picture {
	s := h.sweep
	p := &picture{
		ID: "attainment", Title: "Share that met each objective", Hover: "x", Wide: true,
		Lead:    "A line an objective, with the 95 % interval of each share; failures are among those that did not. Goodput is read off where a line falls below 90 % or 99 %.",
		columns: append([]string{"load", "objective", "share that met it", "low", "high"}, latencyColumns...),
	}
	plot := chart.Plot{Height: 260, X: chart.Axis{Label: h.loadColumn(), Min: 0, Format: numberTick}, Y: chart.Axis{Label: "share of the requests", Max: 1, Format: percentTick}}
	least := 0.9
	for _, share := range []float64{.9, .99} {
		plot.Marks = append(plot.Marks, chart.Rule{Class: "target", At: share, Horizontal: true})
	}
	for k, objective := range s.objectives() {
		line := chart.Line{Class: "thick " + seriesClass(k)}
		var whiskers []chart.Mark
		for _, ladder := range s.ladders() {
			for _, g := range ladder {
				point := &s.Points[g.run]
				share, low, high := point.ShareOf(objective)
				if share == nil || point.Value == nil {
					continue
				}
				line.X, line.Y = append(line.X, g.offered), append(line.Y, *share)
				if least = min(least, *share); low != nil && high != nil {
					least = min(least, *low)
					whiskers = append(whiskers, chart.Interval{Class: seriesClass(k), At: g.offered, Low: *low, High: *high})
				}
				plot.X.Max = max(plot.X.Max, g.offered)
				p.row(k, g.offered, *share, append([]string{point.Label, words(objective), plainNumber(*share), numberOrNone(low), numberOrNone(high)}, s.latencyCells(point)...)...)
			}
		}
		plot.Marks = append(append(plot.Marks, whiskers...), line, chart.Dots{Class: seriesClass(k), X: line.X, Y: line.Y, Radius: 3})
		p.Legend = append(p.Legend, legendKey{seriesClass(k), words(objective)})
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.X.Max = chart.Ceil(plot.X.Max)
	plot.Y.Min = max(0, least-0.1*(1-least))
	p.Name = fmt.Sprintf("Share of the requests that met each objective, %s", counted(len(s.Points), "load"))
	p.draw(plot)
	return p
}

// objectives are those that a point was judged by.
func (s *Sweep) objectives() []string {
	var all []string
	for i := range s.Points {
		for _, one := range s.Points[i].Shares {
			if !slices.Contains(all, one.Objective) {
				all = append(all, one.Objective)
			}
		}
	}
	return all
}

// promised sets the goodput of the objectives side by side: they disagree.
func (s *Sweep) promised() *picture {
	p := &picture{
		ID: "goodput", Title: "Goodput of each objective", Wide: true,
		Lead:    "The highest of the loads at which that share of the requests met the objective. The thin line goes from the highest load that surely holds to the lowest that surely fails: goodput lies between them. It is open where no load surely fails.",
		columns: append([]string{"objective", "share", "requests/s a GPU", "surely", "less than", "tokens/s a GPU", "at"}, latencyColumns...),
		Notes:   []string{promiseNotes},
	}
	var all []lane
	for i, g := range s.Goodput {
		if i == 0 || s.Goodput[i-1].Objective != g.Objective {
			all = append(all, lane{text: words(g.Objective)})
		}
		l := lane{class: seriesClass(i % 2), value: g.RPSPerGPU, low: g.SureRPSPerGPU, high: g.FailsRPSPerGPU, text: "not even the lowest load, at " + wholePercent(g.Share)}
		latency := []string{"", "", ""}
		if at := s.point(g.At); at != nil && g.RPSPerGPU != nil {
			l.text = fmt.Sprintf("%s/s at %s · %s", term.Number(*g.RPSPerGPU, false), wholePercent(g.Share), s.latency(at))
			latency = s.latencyCells(at)
		}
		l.cells = append([]string{words(g.Objective), wholePercent(g.Share), numberOrNone(g.RPSPerGPU), numberOrNone(g.SureRPSPerGPU), numberOrNone(g.FailsRPSPerGPU), numberOrNone(g.TokensPerGPU), g.At}, latency...)
		all = append(all, l)
	}
	return p.drawLanes(chart.Axis{Label: "requests/s a GPU", Format: numberTick}, all)
}

// losses are what promises leave of the tokens that everything at once gives.
func (s *Sweep) losses() *picture {
	i := slices.IndexFunc(s.Points, func(p SweepPoint) bool { return p.Value == nil && p.TokensPerS != nil })
	if i < 0 {
		return nil
	}
	offline := &s.Points[i]
	p := &picture{
		ID: "offline-loss", Title: "What a promise leaves of the offline throughput", Wide: true,
		Lead:    "Output tokens a second with everything at once, and at the highest load that keeps each promise. What is lost makes a token dearer by the factor.",
		columns: append([]string{"promise", "share", "tokens/s a GPU", "lost of offline", "cost over offline"}, latencyColumns...),
		Notes:   []string{promiseNotes},
	}
	per := func(v float64) *float64 { v /= math.Max(1, float64(s.GPUs)); return &v }
	all := []lane{{
		class: "s7", value: per(*offline.TokensPerS), text: fmt.Sprintf("%s tokens/s: everything at once · %s", term.Number(*per(*offline.TokensPerS), false), s.latency(offline)),
		cells: append([]string{"everything at once", "", plainNumber(*per(*offline.TokensPerS)), "", ""}, s.latencyCells(offline)...),
	}}
	for k, g := range s.Goodput {
		at := s.point(g.At)
		if g.Loss == nil || g.CostFactor == nil || g.TokensPerGPU == nil || at == nil {
			continue
		}
		all = append(all, lane{
			class: seriesClass(k % 2), value: g.TokensPerGPU,
			text:  fmt.Sprintf("%s tokens/s: %s of it lost, × %.3g the cost · %s: %s · %s", term.Number(*g.TokensPerGPU, false), term.Percent(*g.Loss), *g.CostFactor, wholePercent(g.Share), words(g.Objective), s.latency(at)),
			cells: append([]string{words(g.Objective), wholePercent(g.Share), plainNumber(*g.TokensPerGPU), plainNumber(*g.Loss), plainNumber(*g.CostFactor)}, s.latencyCells(at)...),
		})
	}
	if len(all) < 2 {
		p.Notes = append(p.Notes, "No load that was tried keeps a promise, so that there is nothing to set beside it.")
	}
	return p.drawLanes(chart.Axis{Label: "output tokens/s a GPU", Format: rateTick}, all)
}
