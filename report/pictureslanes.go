package report

import (
	"math"

	"fermata/internal/chart"
	"fermata/internal/term"
)

// A lane is a bar with its interval and with what it stands for in words, which hold
// its value; a heading has no value.
type lane struct {
	class, text string
	value       *float64
	low, high   *float64 // nil where unknown
	cells       []string // its row of the data; nil of a heading
}

// mostLanes is how many are drawn; the data have all.
const mostLanes = 60

// drawLanes draws the lanes from the top down, over an axis from 0. It is nil without any.
func (p *picture) drawLanes(axis chart.Axis, all []lane) *picture {
	shown := all
	if len(all) > mostLanes {
		shown = all[:mostLanes]
		p.Notes = append(p.Notes, "The first "+term.Count(mostLanes)+" are drawn; the data below have all.")
	}
	n := float64(len(shown))
	plot := chart.Plot{X: axis, Y: chart.Axis{Min: -0.5, Max: n - 0.5, Ticks: []chart.Tick{}}}
	plot.Height = chart.LaneHeight*n + 48
	end := func(v *float64) float64 {
		if v == nil || math.IsInf(*v, 0) {
			return math.NaN()
		}
		return *v
	}
	for _, l := range shown {
		for _, v := range []*float64{l.value, l.low, l.high} {
			if x := end(v); x > plot.X.Max {
				plot.X.Max = x
			}
		}
	}
	plot.X.Max = chart.Ceil(plot.X.Max)
	for i, l := range all {
		at := n - 1 - float64(i)
		if i < len(shown) {
			plot.Marks = append(plot.Marks, chart.Lane{Class: l.class, At: at, Value: end(l.value), Low: end(l.low), High: end(l.high), Text: l.text, Strong: l.cells == nil})
		}
		if l.cells != nil {
			x := 0.0
			if l.value != nil {
				x = *l.value
			}
			p.row(0, x, max(at, -0.5), l.cells...)
			if len(p.Name) < 2000 {
				p.Name += "; " + l.text
			}
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	p.Lanes, p.Hover = true, "y"
	p.Name = p.Title + p.Name
	p.draw(plot)
	return p
}

// numberOrNone writes a figure of a table of data.
func numberOrNone(v *float64) string {
	if v == nil {
		return ""
	}
	return plainNumber(*v)
}

// msOrNone writes ns of a table of data.
func msOrNone(v *float64) string {
	if v == nil {
		return ""
	}
	return inMs(*v)
}
