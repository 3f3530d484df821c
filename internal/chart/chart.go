// Package chart draws still pictures as SVG: axes, lines, bands, dots, bars, boxes,
// spans. It knows no metric. The same plot gives the same bytes; colours come from
// classes that the page's style sheet fills in, so that a picture follows it from
// light to dark and onto paper. All text is escaped.
package chart

import (
	"html"
	"math"
	"strconv"
	"strings"
)

// A Plot is a picture with one horizontal and one vertical axis.
type Plot struct {
	Name          string // what it shows, for those who do not see it
	Width, Height float64
	X, Y          Axis
	Marks         []Mark // the first is the lowest
}

// A Mark is something drawn in the rectangle between the axes.
type Mark interface{ draw(c *canvas) }

// textWidth is about what a digit takes of the style sheet's 12 px.
const textWidth = 6.6

// box is the rectangle between the axes.
type box struct{ left, top, right, bottom float64 }

func (p *Plot) box() box {
	widest := 0
	for _, t := range p.Y.ticks(p.Height / 40) {
		widest = max(widest, len([]rune(t.Label)))
	}
	b := box{left: 14 + textWidth*float64(widest), top: 22, right: p.Width - 12, bottom: p.Height - 38}
	if p.Y.Label == "" {
		b.top = 10
	}
	if p.X.Label == "" {
		b.bottom = p.Height - 22
	}
	return b
}

// At is where a point lies in the rectangle between the axes, as shares of its
// width from the left and of its height from the top.
func (p *Plot) At(x, y float64) (right, down float64) {
	return clamp(p.X.at(x)), clamp(1 - p.Y.at(y))
}

func clamp(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, v))
}

// SVG is the picture as an element of that class. Its data-box says where the
// rectangle between the axes lies: left, top, width and height in its own units.
func (p *Plot) SVG(class string) string {
	c := &canvas{plot: p, box: p.box()}
	b := c.box
	c.raw(`<svg class="`, html.EscapeString(class), `" viewBox="0 0 `, num(p.Width), " ", num(p.Height),
		`" role="img" aria-label="`, html.EscapeString(p.Name), `" data-box="`, num(b.left), " ", num(b.top), " ", num(b.right-b.left), " ", num(b.bottom-b.top), `">`)
	c.axes()
	for _, m := range p.Marks {
		m.draw(c)
	}
	c.raw(c.notes.String(), "</svg>")
	return c.out.String()
}

// A canvas is a picture being drawn.
type canvas struct {
	plot *Plot
	box  box
	out  strings.Builder

	notes strings.Builder // above all marks, so that no line crosses a word
}

func (c *canvas) raw(parts ...string) {
	for _, p := range parts {
		c.out.WriteString(p)
	}
}

// x is where a value lies from the left; what the axis does not hold lies on its
// edge.
func (c *canvas) x(v float64) float64 {
	return c.box.left + clamp(c.plot.X.at(v))*(c.box.right-c.box.left)
}

// y is where a value lies from the top.
func (c *canvas) y(v float64) float64 {
	return c.box.bottom - clamp(c.plot.Y.at(v))*(c.box.bottom-c.box.top)
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.raw(`<path class="`, class, `" d="M`, num(x1), " ", num(y1), "L", num(x2), " ", num(y2), `"/>`)
}

func (c *canvas) text(class, anchor string, x, y float64, s string) {
	c.raw(textElement(class, anchor, x, y, s))
}

// note is text that belongs to a mark.
func (c *canvas) note(class, anchor string, x, y float64, s string) {
	c.notes.WriteString(textElement(class, anchor, x, y, s))
}

func textElement(class, anchor string, x, y float64, s string) string {
	return `<text class="` + class + `" text-anchor="` + anchor + `" x="` + num(x) + `" y="` + num(y) + `">` + html.EscapeString(s) + "</text>"
}

func (c *canvas) axes() {
	b, p := c.box, c.plot
	for _, t := range p.Y.ticks(p.Height / 40) {
		y := c.y(t.At)
		c.line("grid", b.left, y, b.right, y)
		c.text("tick", "end", b.left-6, y+4, t.Label)
	}
	free := math.Inf(-1)
	for _, t := range p.X.ticks(p.Width / 80) {
		x := c.x(t.At)
		if p.X.Ticks == nil {
			c.line("grid", x, b.top, x, b.bottom)
		}
		half := textWidth * float64(len([]rune(t.Label))) / 2
		middle := min(max(x, half+1), p.Width-half-1)
		if middle-half < free {
			continue // it would stand in the one before
		}
		free = middle + half + textWidth
		c.text("tick", "middle", middle, b.bottom+16, t.Label)
	}
	c.line("axis", b.left, b.bottom, b.right, b.bottom)
	if p.Y.Label != "" {
		c.text("label", "start", 2, 12, p.Y.Label)
	}
	if p.X.Label != "" {
		c.text("label", "end", b.right, p.Height-4, p.X.Label)
	}
}

// num writes a coordinate with one decimal at most.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if s = strings.TrimSuffix(s, ".0"); s == "-0" {
		return "0"
	}
	return s
}
