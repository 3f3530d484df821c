package report

import (
	"fmt"
	"math"

	"fermata/internal/chart"
	"fermata/internal/stats"
	"fermata/internal/term"
	"fermata/metrics"
)

// What shares a distribution's picture shows at most.
const (
	lowestShown  = 0.0008
	highestShown = 0.9995
)

// A curveOf names a distribution of a portrait.
type curveOf struct {
	id, title, lead, column string
	curve                   func(*metrics.Portrait) *metrics.Curve
	dist                    func(*metrics.Metrics) *metrics.Dist
}

var curves = []curveOf{
	{
		"ttft", "Time to first token", "From the moment a request was due. What a reader waits before anything appears.", "TTFT",
		func(p *metrics.Portrait) *metrics.Curve { return &p.TTFT }, func(m *metrics.Metrics) *metrics.Dist { return m.TTFTDue },
	},
	{
		"scheduling-delay", "Scheduling delay", "The part of it that a request spent waiting for its turn.", "scheduling delay",
		func(p *metrics.Portrait) *metrics.Curve { return &p.SchedulingDelay }, func(m *metrics.Metrics) *metrics.Dist { return m.SchedulingDelay },
	},
	{
		"tbt", "Time between tokens", "Of all gaps of all answers: a long answer counts more, and a freeze is one gap among thousands.", "TBT",
		func(p *metrics.Portrait) *metrics.Curve { return &p.TBT }, func(m *metrics.Metrics) *metrics.Dist { return m.TBT },
	},
	{
		"tpot", "Time per output token", "An answer's average gap: a freeze is spread over all of its tokens.", "TPOT",
		func(p *metrics.Portrait) *metrics.Curve { return &p.TPOT }, func(m *metrics.Metrics) *metrics.Dist { return m.TPOT },
	},
	{
		"normalized-latency", "Normalized latency", "End to end over tokens: a wait before a long answer all but vanishes in it.", "normalized latency",
		func(p *metrics.Portrait) *metrics.Curve { return &p.NormalizedLatency }, func(m *metrics.Metrics) *metrics.Dist { return m.NormalizedLatency },
	},
	{
		"silence", "Longest silence in an answer", "The longest gap between arrivals of each answer: what averages hide.", "longest silence",
		func(p *metrics.Portrait) *metrics.Curve { return &p.GapLongest }, func(m *metrics.Metrics) *metrics.Dist { return m.GapLongest },
	},
}

// distributionSection has a picture a metric, a curve a run.
func (h *htmlPage) distributionSection() section {
	s := section{ID: "distributions", Title: "How the times are spread"}
	for _, c := range curves {
		if p := h.distribution(c); p != nil {
			s.Pictures = append(s.Pictures, *p)
		}
	}
	if p := h.parts(); p != nil {
		s.Pictures = append(s.Pictures, *p)
	}
	return s
}

// partClasses are the colours of the parts of a time to first token, those of the
// rows of requests where they are the same.
var partClasses = map[string]string{"lateness": "s7", "earlier_tries": "s3", "network": "s6", "scheduling_delay": "queue", "prefill": "prefill"}

// parts are what the mean time to first token consists of, stacked.
func (h *htmlPage) parts() *picture {
	p := &picture{
		ID: "ttft-parts", Title: "Mean time to first token, stacked", Hover: "xy",
		Lead:    "Lateness is this machine's; earlier tries are those that failed, with the pauses after them; waiting and prefill are the server's, as it says itself, or estimated by a measured curve.",
		columns: []string{"run", "part", "mean (ms)", "source"},
	}
	plot := chart.Plot{X: chart.Axis{Min: -0.5, Max: float64(len(h.runs)) - 0.5, Ticks: []chart.Tick{}}, Y: chart.Axis{Min: 0, Format: timeTick}}
	seen := map[string]bool{}
	for i := range h.runs {
		plot.X.Ticks = append(plot.X.Ticks, chart.Tick{At: float64(i), Label: h.names[i]})
		all := h.runs[i].Result.TTFTParts
		if all == nil {
			continue
		}
		before := 0.0
		for _, part := range all.Parts {
			mean := float64(part.MeanNs)
			label, class := partLabel(all, part.Part), partClasses[part.Part]
			if top := before + max(mean, 0); top > before {
				plot.Marks = append(plot.Marks, chart.Bar{Class: class, From: float64(i) - 0.3, To: float64(i) + 0.3, Y0: before, Y1: top})
			}
			p.row(0, float64(i), before+max(mean, 0)/2, h.names[i], label, inMs(mean), all.Source)
			if !seen[label] {
				seen[label] = true
				p.Legend = append(p.Legend, legendKey{"fill " + class, label})
			}
			before += max(mean, 0)
		}
		plot.Y.Max = max(plot.Y.Max, before)
		p.Name += fmt.Sprintf("; %s: %s of %s requests, %s", h.names[i], term.Duration(float64(all.MeanNs)), term.Count(all.N), all.Source)
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.Y.Max = chart.Ceil(plot.Y.Max)
	p.Name = "Mean time to first token, stacked" + p.Name
	p.draw(plot)
	return p
}

func (h *htmlPage) distribution(c curveOf) *picture {
	p := &picture{ID: "cdf-" + c.id, Title: c.title, Lead: c.lead, Hover: "x", columns: []string{"run", c.column + " (ms)", "share at or below", "low", "high"}}
	plot := chart.Plot{X: logTimes(), Y: shareAxis()}
	least, most := math.Inf(1), 0.0
	for i := range h.runs {
		if h.runs[i].Portrait == nil {
			continue
		}
		curve, d := c.curve(h.runs[i].Portrait), c.dist(&h.runs[i].Result.Metrics)
		if len(curve.Points) == 0 {
			continue
		}
		first := max(float64(curve.Points[0].Value), 1) // there the share rises from 0
		line := chart.Line{Class: seriesClass(i), Step: true, X: []float64{first}, Y: []float64{0}}
		band := chart.Band{Class: seriesClass(i), Step: true}
		for _, point := range curve.Points {
			x := max(float64(point.Value), 1)
			n := effective(d, point.Share)
			low, high := stats.ClopperPearson(point.Share*n, n)
			line.X, line.Y = append(line.X, x), append(line.Y, point.Share)
			band.X, band.Low, band.High = append(band.X, x), append(band.Low, low), append(band.High, high)
			p.row(i, x, point.Share, h.names[i], inMs(float64(point.Value)), plainNumber(point.Share), plainNumber(low), plainNumber(high))
			if point.Share >= lowestShown && point.Value > 0 {
				least = min(least, x)
			}
			most = max(most, x)
		}
		plot.Marks = append(plot.Marks, band, line)
		if len(curve.Points) == 1 {
			p.Notes = append(p.Notes, oneValue(h.titles[i], curve))
		}
		if d != nil && d.Source == estimated {
			p.Notes = append(p.Notes, h.titles[i]+": estimated, as what a measured prefill curve leaves of the time to first token; below 0 counts as 0.")
		}
		if d != nil {
			p.Name += fmt.Sprintf("; %s: %s", h.names[i], quantilesText(d, 0.5, 0.99))
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.X.Min, plot.X.Max = bounds(least, most)
	p.Name = c.title + ", distribution" + p.Name
	p.Legend = h.keysOf(func(r *Portrayed) bool { return r.Portrait != nil && len(c.curve(r.Portrait).Points) > 0 })
	p.Legend = append(p.Legend, legendKey{"band", "95 % interval of each share"})
	p.draw(plot)
	return p
}

// oneValue says what a curve of one point says.
func oneValue(title string, c *metrics.Curve) string {
	value := term.Duration(float64(c.Points[0].Value))
	if c.N == 1 {
		return title + ": one value, " + value
	}
	return title + ": all " + term.Count(c.N) + " values are about " + value
}

// logTimes is an axis of times; its ends come later.
func logTimes() chart.Axis { return chart.Axis{Scale: chart.Log, Format: timeTick} }

// shareAxis is one of shares whose ends are wide.
func shareAxis() chart.Axis {
	return chart.Axis{Label: "share at or below (ends stretched)", Scale: chart.Probability, Min: lowestShown, Max: highestShown, Format: percentTick}
}

// bounds are the ends of a logarithmic axis that holds both values.
func bounds(least, most float64) (lo, hi float64) {
	if !(least > 0) || math.IsInf(least, 0) {
		least = 1
	}
	most = max(most, least)
	if most < least*1.5 {
		return least / 1.25, most * 1.25
	}
	return least / 1.08, most * 1.08
}

// missRates is the distribution of the shares of missed deadlines: at every target
// gap for one run, at the middle one for several.
func (h *htmlPage) missRates() *picture {
	p := &picture{
		ID: "cdf-misses", Title: "Missed deadlines", Hover: "x",
		Lead:    "Of each answer, the share of token deadlines missed: 1 − F, decode only. A failed request missed all.",
		columns: []string{"run", "target gap (ms)", "share missed", "share of requests at or below"},
	}
	// Where all answers missed none, or all, the curve is one step: it stands free of the edges.
	plot := chart.Plot{X: chart.Axis{Label: "share of deadlines missed", Min: -0.02, Max: 1.02, Format: percentTick}, Y: shareAxis()}
	for i := range h.runs {
		portrait := h.runs[i].Portrait
		if portrait == nil {
			continue
		}
		for k := range portrait.Misses {
			m, at := &portrait.Misses[k], i
			if len(h.runs) == 1 {
				at = k
			} else if k != len(portrait.Misses)/2 {
				continue
			}
			if len(m.Curve.Points) == 0 {
				continue
			}
			name := "gap " + term.Bound(m.TargetGapNs)
			if len(h.runs) > 1 {
				name = h.titles[i] + ", " + name
			}
			line := chart.Line{Class: seriesClass(at), Step: true, X: []float64{0, 0}, Y: []float64{0, m.Curve.At(0)}}
			for _, point := range m.Curve.Points {
				x := float64(point.Value) / 1e6
				line.X, line.Y = append(line.X, x), append(line.Y, point.Share)
				p.row(at, x, point.Share, h.names[i], inMs(float64(m.TargetGapNs)), plainNumber(min(x, 1)), plainNumber(point.Share))
			}
			plot.Marks = append(plot.Marks, line)
			p.Legend = append(p.Legend, legendKey{seriesClass(at), name})
			p.Name += fmt.Sprintf("; %s: %s of requests missed none", name, term.Percent(m.Curve.At(0)))
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	p.Name = "Share of deadlines missed, distribution" + p.Name
	p.draw(plot)
	return p
}

// fluiditySection is F against the target gap, and the three rates.
func (h *htmlPage) fluiditySection() section {
	s := section{ID: "fluidity", Title: "Fluidity"}
	for _, p := range []*picture{h.rateBars(), h.missRates(), h.againstGap()} {
		if p != nil {
			s.Pictures = append(s.Pictures, *p)
		}
	}
	return s
}

func (h *htmlPage) againstGap() *picture {
	p := &picture{
		ID: "fluidity-gap", Title: "Fluidity against the target gap", Hover: "x", Wide: true,
		Lead:    "At a generous gap nobody waits. Thick: the mean index F. Thin: the share of requests with F ≥ 0.9. Where that reaches 99 % stands D_d*, and its inverse is the fluid rate.",
		columns: []string{"run", "target gap (ms)", "mean F", "lowest tenth of F", "share with F ≥ 0.9"},
	}
	plot := chart.Plot{Height: 300, X: logTimes(), Y: chart.Axis{Label: "index, share", Min: 0, Max: 1, Format: numberTick}}
	plot.X.Label = "target gap"
	least, most := math.Inf(1), 0.0
	for i := range h.runs {
		portrait := h.runs[i].Portrait
		if portrait == nil || len(portrait.Fluid) == 0 {
			continue
		}
		mean := chart.Line{Class: "thick " + seriesClass(i)}
		fluent := chart.Line{Class: "thin " + seriesClass(i)}
		for _, g := range portrait.Fluid {
			x, share := float64(g.TargetGapNs), portrait.Fluent.At(g.TargetGapNs)
			mean.X, mean.Y = append(mean.X, x), append(mean.Y, g.Mean)
			fluent.X, fluent.Y = append(fluent.X, x), append(fluent.Y, share)
			p.row(i, x, g.Mean, h.names[i], inMs(x), plainNumber(g.Mean), plainNumber(g.Low), plainNumber(share))
			least, most = min(least, x), max(most, x)
		}
		plot.Marks = append(plot.Marks, fluent, mean)
		name := h.names[i] + ": no feasible gap"
		for k := range h.runs[i].Result.FluidRate {
			f := &h.runs[i].Result.FluidRate[k]
			if f.Variant == metrics.Decode && f.Feasible && f.GapNs != nil {
				at := float64(*f.GapNs)
				least, most = min(least, at), max(most, at)
				label := "D_d* " + term.Duration(at)
				name = h.names[i] + ": " + label
				if len(h.runs) > 1 {
					label = h.names[i] + " " + label
				}
				plot.Marks = append(plot.Marks, chart.Rule{Class: seriesClass(i), At: at, Label: label, Level: i + 2})
			}
		}
		p.Name += "; " + name
	}
	if len(p.rows) == 0 {
		return nil
	}
	for k, g := range targetGaps(h.runs[0].Result) {
		plot.Marks = append(plot.Marks, chart.Rule{Class: "target", At: float64(g), Label: term.Bound(g), Level: k % 2})
	}
	plot.X.Min, plot.X.Max = bounds(least, most)
	p.Name = "Fluidity index against target gap" + p.Name
	p.Legend = h.keysOf(func(r *Portrayed) bool { return r.Portrait != nil && len(r.Portrait.Fluid) > 0 })
	p.draw(plot)
	return p
}

// targetGaps are the gaps that a result judges F at, decode.
func targetGaps(r *metrics.Result) []int64 {
	var all []int64
	for i := range r.Fluidity {
		if f := &r.Fluidity[i]; f.Variant == metrics.Decode {
			all = append(all, f.TargetGapNs)
		}
	}
	return all
}

// rateBars are the three rates of a recording side by side.
func (h *htmlPage) rateBars() *picture {
	p := &picture{
		ID: "rates", Title: "Three rates of the same answers", Hover: "x",
		Lead:    "How many tokens a second a reader may count on, by the median TPOT, by the 99th percentile of gaps, and by fluidity.",
		columns: []string{"run", "rate", "tokens a second"},
	}
	names := []string{"1/median TPOT", "1/p99 TBT", "fluid, 1/D_d*"}
	plot := chart.Plot{X: chart.Axis{Min: 0, Max: 3}, Y: chart.Axis{Label: "tokens/s", Min: 0, Format: numberTick}}
	for k, n := range names {
		plot.X.Ticks = append(plot.X.Ticks, chart.Tick{At: float64(k) + 0.5, Label: n})
	}
	most := 0.0
	width := 0.8 / float64(len(h.runs))
	for i := range h.runs {
		r := h.runs[i].Result.Rates
		for k, v := range []*float64{r.TPOT, r.TailTBT, r.Fluid} {
			if v == nil || math.IsInf(*v, 0) {
				continue
			}
			most = max(most, *v)
			from := float64(k) + 0.1 + width*float64(i)
			label := ""
			if len(h.runs) <= 3 {
				label = term.Number(*v, false)
			}
			plot.Marks = append(plot.Marks, chart.Bar{Class: seriesClass(i), From: from, To: from + width*0.92, Y1: *v, Label: label})
			p.row(0, from+width/2, *v, h.names[i], names[k], plainNumber(*v))
			p.Name += fmt.Sprintf("; %s %s: %s tokens/s", h.names[i], names[k], term.Number(*v, false))
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.Y.Max = chart.Ceil(most * 1.08)
	p.Name = "Three rates side by side" + p.Name
	p.Legend = h.keysOf(func(*Portrayed) bool { return true })
	p.draw(plot)
	return p
}
