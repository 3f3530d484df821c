package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fermata/internal/chart"
	"fermata/internal/term"
	"fermata/metrics"
)

// A rung is a run at its load.
type rung struct {
	run     int
	offered float64
}

// ladders are runs against the same target at several loads, by load; nil where no
// target was offered more than one.
func (h *htmlPage) ladders() [][]rung {
	if h.sweep != nil {
		return h.sweep.ladders()
	}
	var keys []string
	of := map[string][]rung{}
	for i := range h.runs {
		r := h.runs[i].Result
		rate := r.Load.OfferedRPS
		if rate == nil {
			rate = r.Load.AchievedRPS
		}
		if rate == nil {
			continue
		}
		key := r.Run.Target + "\x00" + r.Run.Model
		if of[key] == nil {
			keys = append(keys, key)
		}
		of[key] = append(of[key], rung{i, *rate})
	}
	var all [][]rung
	for _, k := range keys {
		l := of[k]
		slices.SortStableFunc(l, func(a, b rung) int { return cmp.Compare(a.offered, b.offered) })
		if len(l) > 1 && l[len(l)-1].offered > l[0].offered*near {
			all = append(all, l)
		}
	}
	return all
}

// frontierSection is throughput against the latency that it was had at, and what of
// it was good.
func (h *htmlPage) frontierSection() section {
	s := section{ID: "frontier", Title: "Throughput and what it cost"}
	ladders := h.ladders()
	if len(ladders) == 0 {
		return s
	}
	for _, c := range []struct {
		id, title string
		of        func(*metrics.Metrics) *metrics.Dist
	}{
		{"frontier-ttft", "Throughput against time to first token", func(m *metrics.Metrics) *metrics.Dist { return m.TTFTDue }},
		{"frontier-tbt", "Throughput against time between tokens", func(m *metrics.Metrics) *metrics.Dist { return m.TBT }},
	} {
		if p := h.frontier(c.id, c.title, ladders, c.of); p != nil {
			s.Pictures = append(s.Pictures, *p)
		}
	}
	if p := h.goodputFrontier(ladders); p != nil {
		s.Pictures = append(s.Pictures, *p)
	}
	return s
}

func (h *htmlPage) frontier(id, title string, ladders [][]rung, of func(*metrics.Metrics) *metrics.Dist) *picture {
	p := &picture{
		ID: id, Title: title, Hover: "xy",
		Lead:    "One point a run, joined by rising load: the thick line at the median, the thin one at the 99th percentile with its 95 % interval.",
		columns: []string{"run", h.loadColumn(), "output tokens/s", "p50 (ms)", "p99 (ms)", "p99 low (ms)", "p99 high (ms)"},
	}
	plot := chart.Plot{X: chart.Axis{Label: "output tokens/s of finished requests", Min: 0, Format: rateTick}, Y: logTimes()}
	least, most := math.Inf(1), 0.0
	var few []string
	for k, ladder := range ladders {
		mid, tail := chart.Line{Class: "thick " + seriesClass(k)}, chart.Line{Class: "thin " + seriesClass(k)}
		var whiskers []chart.Mark
		for _, g := range ladder {
			r := h.runs[g.run].Result
			rate, q50, q99 := r.Throughput.OutputTokensPerSFinished, at(of(&r.Metrics), 0.5), at(of(&r.Metrics), 0.99)
			if rate == nil || q50 == nil || q99 == nil {
				continue // no throughput without its latency
			}
			for _, q := range []*metrics.Quantile{q50, q99} {
				if q.Status == statusInsufficient {
					few = append(few, percentile(q.P)+" of "+h.names[g.run])
				}
			}
			mid.X, mid.Y = append(mid.X, *rate), append(mid.Y, max(q50.Value, 1))
			tail.X, tail.Y = append(tail.X, *rate), append(tail.Y, max(q99.Value, 1))
			least, most = min(least, max(q50.Value, 1)), max(most, q99.Value)
			plot.X.Max = max(plot.X.Max, *rate)
			var low, high *float64
			if q99.Status != statusInsufficient {
				low, high = q99.Low, q99.High
			}
			if low != nil && high != nil {
				whiskers = append(whiskers, chart.Interval{Class: seriesClass(k), At: *rate, Low: max(*low, 1), High: *high})
				most = max(most, *high)
			}
			p.row(0, *rate, max(q50.Value, 1), h.titles[g.run], plainNumber(g.offered), plainNumber(*rate), inMs(q50.Value), inMs(q99.Value), msOrNone(low), msOrNone(high))
		}
		plot.Marks = append(append(plot.Marks, whiskers...), tail, mid, chart.Dots{Class: seriesClass(k), X: mid.X, Y: mid.Y, Radius: 3}, chart.Dots{Class: seriesClass(k), X: tail.X, Y: tail.Y})
		if len(ladders) > 1 {
			p.Legend = append(p.Legend, legendKey{seriesClass(k), h.ladderName(ladder)})
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.Marks = append(plot.Marks, h.kneeRule(func(p *SweepPoint) *float64 { return p.TokensPerS })...)
	plot.X.Max = chart.Ceil(plot.X.Max)
	plot.Y.Min, plot.Y.Max = bounds(least, most)
	if len(few) > 0 {
		p.Notes = append(p.Notes, "Seen, but of too few requests to be stated: "+listed(few)+".")
	}
	p.Name = fmt.Sprintf("%s, %d runs", title, len(p.rows))
	p.draw(plot)
	return p
}

// ladderName says whose loads these are.
func (h *htmlPage) ladderName(ladder []rung) string {
	switch {
	case h.sweep == nil:
		r := h.runs[ladder[0].run].Result
		return joined(" · ", term.Plain(r.Run.Target), term.Plain(r.Run.Model))
	case h.sweep.Points[ladder[0].run].Value == nil:
		return "everything at once"
	case h.sweep.users():
		return "by rising number of users"
	}
	return "by rising rate"
}

// loadColumn is what the loads are called in tables of data.
func (h *htmlPage) loadColumn() string {
	if h.sweep.users() {
		return "users"
	}
	return "offered requests/s"
}

// goodputFrontier is how many requests a second were good at each load.
func (h *htmlPage) goodputFrontier(ladders [][]rung) *picture {
	p := &picture{
		ID: "frontier-goodput", Title: "Goodput against load", Hover: "xy",
		Lead:    "Requests a second that met every objective, of those offered. On the grey line all were good.",
		columns: []string{"run", "objective", h.loadColumn(), "good requests/s", "share good", "TTFT p99 (ms)", "TBT p99 (ms)"},
	}
	users := h.sweep.users()
	if users {
		p.Lead = "Requests a second that met every objective, by the number of users."
	}
	plot := chart.Plot{X: chart.Axis{Label: h.loadColumn(), Min: 0, Format: numberTick}, Y: chart.Axis{Label: "good requests/s", Min: 0, Format: numberTick}}
	for k, ladder := range ladders {
		line := chart.Line{Class: "thick " + seriesClass(k)}
		for _, g := range ladder {
			r := h.runs[g.run].Result
			n := len(r.Goodput)
			if n == 0 || r.Goodput[n-1].RequestsS == nil || r.Goodput[n-1].Share == nil {
				continue
			}
			if h.sweep != nil && h.sweep.Points[g.run].Value == nil {
				continue // everything at once is no load to read a goodput at
			}
			good := r.Goodput[n-1] // of all objectives where there are several
			ttft, tbt := at(r.Metrics.TTFTDue, 0.99), at(r.Metrics.TBT, 0.99)
			if ttft == nil || tbt == nil {
				continue
			}
			line.X, line.Y = append(line.X, g.offered), append(line.Y, *good.RequestsS)
			plot.X.Max, plot.Y.Max = max(plot.X.Max, g.offered), max(plot.Y.Max, *good.RequestsS)
			p.row(0, g.offered, *good.RequestsS, h.titles[g.run], term.Plain(good.Objective), plainNumber(g.offered), plainNumber(*good.RequestsS), plainNumber(*good.Share), inMs(ttft.Value), inMs(tbt.Value))
		}
		plot.Marks = append(plot.Marks, line, chart.Dots{Class: seriesClass(k), X: line.X, Y: line.Y, Radius: 3})
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.Marks = append(plot.Marks, h.kneeRule(h.sweep.load)...)
	plot.X.Max = chart.Ceil(plot.X.Max)
	if users {
		plot.Y.Max = chart.Ceil(plot.Y.Max * 1.08)
	} else {
		plot.Y.Max = plot.X.Max
		plot.Marks = append([]chart.Mark{chart.Line{Class: "ideal", X: []float64{0, plot.X.Max}, Y: []float64{0, plot.Y.Max}}}, plot.Marks...)
	}
	p.Name = fmt.Sprintf("Goodput against load, %d runs", len(p.rows))
	p.draw(plot)
	return p
}

// boxSection sets runs side by side as boxes.
func (h *htmlPage) boxSection() section {
	s := section{ID: "boxes", Title: "Runs side by side"}
	if len(h.runs) < 2 {
		return s
	}
	caveat := ""
	if !h.alike() {
		caveat = "Descriptive, not controlled for length or mix: the runs did not ask for the same prompts and answers."
	}
	for _, c := range curves {
		p := &picture{
			ID: "box-" + c.id, Title: c.title, Hover: "x",
			Lead:    "Box: the middle half, with the median. Whiskers: from the 1st to the 99th percentile.",
			columns: []string{"run", "p1 (ms)", "p25 (ms)", "p50 (ms)", "p75 (ms)", "p99 (ms)", "values"},
		}
		plot := chart.Plot{X: chart.Axis{Min: -0.5, Max: float64(len(h.runs)) - 0.5, Ticks: []chart.Tick{}}, Y: logTimes()}
		least, most := math.Inf(1), 0.0
		for i := range h.runs {
			if h.runs[i].Portrait == nil {
				continue
			}
			curve := c.curve(h.runs[i].Portrait)
			if len(curve.Points) == 0 {
				continue
			}
			var q [5]float64
			cells := []string{h.titles[i]}
			for k, share := range []float64{0.01, 0.25, 0.5, 0.75, 0.99} {
				v, _ := curve.Quantile(share)
				q[k] = max(float64(v), 1)
				cells = append(cells, inMs(float64(v)))
			}
			if q[1] > 1 { // of a bunch the low percentiles are 0
				least = min(least, max(q[0], q[1]/100))
			} else {
				least = min(least, max(q[2]/100, 1))
			}
			most = max(most, q[4])
			plot.Marks = append(plot.Marks, chart.Box{Class: seriesClass(i), At: float64(i), Width: 0.6, Low: q[0], Q1: q[1], Median: q[2], Q3: q[3], High: q[4]})
			p.row(i, float64(i), q[2], append(cells, fmt.Sprint(curve.N))...)
			p.Name += fmt.Sprintf("; %s: median %s", h.names[i], term.Duration(q[2]))
		}
		for i, n := range h.names {
			plot.X.Ticks = append(plot.X.Ticks, chart.Tick{At: float64(i), Label: n})
		}
		if len(p.rows) == 0 {
			continue
		}
		plot.Y.Min, plot.Y.Max = bounds(least, most)
		p.Name = c.title + ", boxes" + p.Name
		if caveat != "" {
			p.Notes = append(p.Notes, caveat)
		}
		p.draw(plot)
		s.Pictures = append(s.Pictures, *p)
	}
	return s
}

// alike says that all runs asked for prompts and answers of the same lengths.
func (h *htmlPage) alike() bool {
	first := &h.runs[0].Result.Metrics
	for i := range h.runs[1:] {
		m := &h.runs[i+1].Result.Metrics
		if !sameSizes(first.PromptTokens, m.PromptTokens) || !sameSizes(first.OutputTokens, m.OutputTokens) {
			return false
		}
	}
	return true
}

func sameSizes(a, b *metrics.Dist) bool {
	if a == nil || b == nil || a.N != b.N || a.Mean == nil || b.Mean == nil {
		return false
	}
	return math.Abs(*a.Mean-*b.Mean) <= 1e-9*math.Abs(*a.Mean) && slices.EqualFunc(a.Quantiles, b.Quantiles, func(x, y metrics.Quantile) bool {
		return math.Abs(x.Value-y.Value) < 0.5
	})
}
