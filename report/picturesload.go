package report

import (
	"fmt"
	"slices"

	"fermata/internal/chart"
	"fermata/internal/term"
	"fermata/metrics"
)

// The points of a rate over time: as many as leave each four requests on average,
// within these.
const (
	fewestRates = 12
	mostRates   = 60
	perRate     = 4
)

// loadSection is the load over time.
func (h *htmlPage) loadSection() section {
	s := section{ID: "load", Title: "The load over time"}
	h.each(&s, h.ratesOverTime)
	if p := h.inFlight(); p != nil {
		s.Pictures = append(s.Pictures, *p)
	}
	return s
}

// coarser are slots of times as many of their stretches.
func coarser(slots []metrics.Slot, times int) []metrics.Slot {
	var all []metrics.Slot
	for i, s := range slots {
		if i%times == 0 {
			all = append(all, metrics.Slot{})
		}
		one := &all[len(all)-1]
		one.Due += s.Due
		one.Sent += s.Sent
		one.Finished += s.Finished
		one.Failed += s.Failed
		one.Stopped += s.Stopped
		one.Tokens += s.Tokens
		one.InFlight, one.InFlightMost = s.InFlight, max(one.InFlightMost, s.InFlightMost)
	}
	return all
}

// ratesOverTime are requests offered, sent and finished a second.
func (h *htmlPage) ratesOverTime(i int) *picture {
	portrait := h.runs[i].Portrait
	if portrait == nil || len(portrait.Slots) == 0 {
		return nil
	}
	points := min(max(int(portrait.Requests)/perRate, fewestRates), mostRates)
	times := (len(portrait.Slots) + points - 1) / points
	slots, width := coarser(portrait.Slots, times), float64(portrait.SlotNs)*float64(times)
	title := "Offered, achieved, finished"
	if len(h.runs) > 1 {
		title += ": " + h.titles[i]
	}
	p := &picture{
		ID: fmt.Sprintf("load-%d", i), Title: title, Hover: "x", Wide: true,
		Lead:    fmt.Sprintf("Requests a second of every phase, in stretches of %s.", term.Duration(width)),
		columns: []string{"rate", "from (s)", "requests/s", "output tokens/s"},
	}
	plot := chart.Plot{Height: 240, X: sinceStart(width * float64(len(slots))), Y: chart.Axis{Label: "requests/s", Min: 0, Format: numberTick}}
	plot.Marks = append(plot.Marks, phases(h.runs[i].Result, plot.X.Max)...)
	most := 0.0
	for k, rate := range []struct {
		class, name, key string
		maybe            bool // drawn only where there are any
		of               func(metrics.Slot) int64
	}{
		{"s0", "offered", "offered: due", false, func(s metrics.Slot) int64 { return s.Due }},
		{"s2", "achieved", "achieved: sent", false, func(s metrics.Slot) int64 { return s.Sent }},
		{"s1", "finished", "finished", false, func(s metrics.Slot) int64 { return s.Finished }},
		{"s7", "failed", "failed", true, func(s metrics.Slot) int64 { return s.Failed }},
		{"s6", "cut by us", cutByUs, true, func(s metrics.Slot) int64 { return s.Stopped }},
	} {
		line := chart.Line{Class: rate.class}
		sum := int64(0)
		for j, s := range slots {
			v := float64(rate.of(s)) * 1e9 / width
			sum += rate.of(s)
			x := width * (float64(j) + 0.5)
			line.X, line.Y = append(line.X, x), append(line.Y, v)
			most = max(most, v)
			p.row(k, x, v, rate.name, inS(width*float64(j)), plainNumber(v), plainNumber(float64(s.Tokens)*1e9/width))
		}
		if rate.maybe && sum == 0 {
			p.rows = p.rows[:len(p.rows)-len(slots)]
			continue
		}
		p.Legend = append(p.Legend, legendKey{rate.class, rate.key})
		plot.Marks = append(plot.Marks, line)
	}
	plot.Y.Max = chart.Ceil(most)
	p.Name = title + " over " + term.Duration(plot.X.Max) + "; " + loadText(h.runs[i].Result)
	p.draw(plot)
	return p
}

// phases shade what was not measured.
func phases(r *metrics.Result, end float64) []chart.Mark {
	var marks []chart.Mark
	from, to := float64(r.Window.StartNs), float64(r.Window.EndNs)
	if from > 0 {
		marks = append(marks, chart.Shade{Class: "warmup", To: min(from, end), Label: "warm-up", Bottom: true})
	}
	if to > from && to < end {
		label := ""
		if end-to > end/12 {
			label = "drain"
		}
		marks = append(marks, chart.Shade{Class: "warmup", From: to, To: end, Label: label})
	}
	return marks
}

// inFlight is how many requests were under way.
func (h *htmlPage) inFlight() *picture {
	p := &picture{
		ID: "in-flight", Title: "Requests under way", Hover: "x", Wide: true,
		Lead:    "Sent and not ended: the most at once in each stretch of " + h.stretches() + ". Where it keeps growing there is no steady state, and latencies depend on how long the run was.",
		columns: []string{"run", "from (s)", "most at once", "at its end"},
	}
	plot := chart.Plot{Height: 200, X: sinceStart(0), Y: chart.Axis{Label: "requests", Min: 0, Format: countTick, Whole: true}}
	var most float64
	for i := range h.runs {
		portrait := h.runs[i].Portrait
		if portrait == nil {
			continue
		}
		line := chart.Line{Class: seriesClass(i), Step: true}
		for k, s := range portrait.Slots {
			from, high := float64(portrait.SlotNs)*float64(k), float64(s.InFlightMost)
			line.X, line.Y = append(line.X, from), append(line.Y, high)
			most = max(most, high)
			p.row(i, from+float64(portrait.SlotNs)/2, high, h.names[i], inS(from), fmt.Sprint(s.InFlightMost), fmt.Sprint(s.InFlight))
		}
		if n := len(portrait.Slots); n > 0 { // the last stretch has a width too
			end := float64(portrait.SlotNs) * float64(n)
			line.X, line.Y = append(line.X, end), append(line.Y, line.Y[n-1])
			plot.X.Max = max(plot.X.Max, end)
		}
		plot.Marks = append(plot.Marks, line)
		p.Name += fmt.Sprintf("; %s: at most %s", h.names[i], term.Count(h.runs[i].Result.Load.InFlightMax))
	}
	if len(p.rows) == 0 {
		return nil
	}
	if len(h.runs) == 1 {
		plot.Marks = append(phases(h.runs[0].Result, plot.X.Max), plot.Marks...)
	}
	plot.Y.Max = chart.Ceil(most)
	p.Name = "Requests under way over time" + p.Name
	p.Legend = h.keysOf(func(r *Portrayed) bool { return r.Portrait != nil })
	p.draw(plot)
	return p
}

// stretches is how long those of the runs' slots are.
func (h *htmlPage) stretches() string {
	var all []string
	for i := range h.runs {
		if p := h.runs[i].Portrait; p != nil {
			all = append(all, term.Duration(float64(p.SlotNs)))
		}
	}
	slices.Sort(all)
	return listed(slices.Compact(all))
}

// A bunching is one way in which tokens come together.
type bunching struct {
	id, title, lead, column, shared string
	counts                          func(*metrics.Portrait) []int64
	share                           func(*metrics.Result) *float64
}

var bunchings = []bunching{
	{
		"tokens-per-event", "Tokens an event", "Where an event brings several tokens, gaps within it are 0 and the median gap says little.",
		"tokens", "of decode tokens came in the event of the token before",
		func(p *metrics.Portrait) []int64 { return p.TokensPerEvent }, func(r *metrics.Result) *float64 { return r.SameEventShare },
	},
	{
		"events-per-read", "Events a socket read", "Events that one read of the socket brought had become readable together: a proxy, the network or this machine bunched them.",
		"events", "of decode tokens came in the read of the token before",
		func(p *metrics.Portrait) []int64 { return p.EventsPerRead }, func(r *metrics.Result) *float64 { return r.SameReadShare },
	},
}

// bunchSection is how tokens came over the wire.
func (h *htmlPage) bunchSection() section {
	s := section{ID: "bunching", Title: "How tokens came"}
	for i := range bunchings {
		if p := h.bunches(&bunchings[i]); p != nil {
			s.Pictures = append(s.Pictures, *p)
		}
	}
	return s
}

func (h *htmlPage) bunches(c *bunching) *picture {
	p := &picture{ID: c.id, Title: c.title, Lead: c.lead, Hover: "x", columns: []string{"run", c.column, "count", "share"}}
	plot := chart.Plot{X: chart.Axis{Label: c.column, Ticks: []chart.Tick{}}, Y: chart.Axis{Label: "share", Min: 0, Max: 1, Format: percentTick}}
	fewest, widest, most := 1, 1, 0
	width := 0.84 / float64(len(h.runs))
	for i := range h.runs {
		if h.runs[i].Portrait == nil {
			continue
		}
		counts := c.counts(h.runs[i].Portrait)
		most = len(counts) - 1
		var total int64
		for _, n := range counts {
			total += n
		}
		for k, n := range counts {
			if n == 0 {
				continue
			}
			fewest, widest = min(fewest, k), max(widest, k)
			share := float64(n) / float64(total)
			from := float64(k) - 0.42 + width*float64(i)
			plot.Marks = append(plot.Marks, chart.Bar{Class: seriesClass(i), From: from, To: from + width*0.94, Y1: share})
			p.row(0, from+width/2, share, h.names[i], orMore(k, most), fmt.Sprint(n), plainNumber(share))
		}
		if v := c.share(h.runs[i].Result); v != nil {
			p.Name += fmt.Sprintf("; %s: %s %s", h.names[i], term.Percent(*v), c.shared)
			if *v > 0 {
				p.Notes = append(p.Notes, h.titles[i]+": "+term.Percent(*v)+" "+c.shared)
			}
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.X.Min, plot.X.Max = float64(fewest)-0.5, float64(widest)+0.5
	for k := fewest; k <= widest; k++ {
		plot.X.Ticks = append(plot.X.Ticks, chart.Tick{At: float64(k), Label: orMore(k, most)})
	}
	p.Name = c.title + p.Name
	p.Legend = h.keysOf(func(r *Portrayed) bool { return r.Portrait != nil })
	p.draw(plot)
	return p
}

// orMore writes a number, of which the last stands for more.
func orMore(k, most int) string {
	if k == most {
		return fmt.Sprint(k, "+")
	}
	return fmt.Sprint(k)
}
