package chart

import (
	"html"
	"math"
	"strings"
)

// A Lane is a bar that lies at a height of the vertical axis, from the left edge to
// its value, with a line of text above it that takes what room there is and is cut
// behind that. Low and High are the ends of its interval, NaN where unknown.
type Lane struct {
	Class            string
	At               float64
	Value, Low, High float64 // Value is NaN of a lane of text alone
	Text             string
	Strong           bool // the text is a heading
}

// What a lane takes, in the picture's units.
const (
	LaneHeight = 31

	laneBar   = 9.0
	laneText  = 6.2 // about what a letter takes
	laneAbove = 5   // from the text's baseline to the bar
)

func (l Lane) draw(c *canvas) {
	b := c.box
	middle := c.y(l.At) + laneText
	if finite(l.Value) {
		c.raw(`<rect class="bar `, html.EscapeString(l.Class), `" x="`, num(b.left), `" y="`, num(middle-laneBar/2), `" width="`, num(max(0.5, c.x(l.Value)-b.left)), `" height="`, num(laneBar), `"/>`)
	}
	class, baseline := "value", middle-laneBar/2-laneAbove
	if l.Strong {
		class = "value strong"
	}
	if !finite(l.Value) {
		baseline = middle // it belongs to what comes below
	}
	c.note(class, "start", b.left, baseline, cut(l.Text, int((b.right-b.left)/laneText)))
	low, high := l.Low, l.High
	if math.IsNaN(low) && math.IsNaN(high) || !finite(l.Value) {
		return
	}
	if math.IsNaN(low) {
		low = c.plot.X.Min
	} else {
		c.line("whisker end", c.x(low), middle-3, c.x(low), middle+3)
	}
	if math.IsNaN(high) {
		high = c.plot.X.Max
	} else {
		c.line("whisker end", c.x(high), middle-3, c.x(high), middle+3)
	}
	c.line("whisker end", c.x(low), middle, c.x(high), middle)
}

// cut is text of at most n letters.
func cut(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= n {
		return text
	}
	return strings.TrimRight(string(letters[:max(1, n-1)]), " ") + "…"
}

// A Cross marks points with ×, which tells them from Dots without their colour.
type Cross struct {
	Class string
	X, Y  []float64
}

func (m Cross) draw(c *canvas) {
	const r = 3
	c.raw(`<path class="cross-mark `, html.EscapeString(m.Class), `" d="`)
	for i := range m.X {
		x, y := c.x(m.X[i]), c.y(m.Y[i])
		c.raw("M", num(x-r), " ", num(y-r), "L", num(x+r), " ", num(y+r), "M", num(x-r), " ", num(y+r), "L", num(x+r), " ", num(y-r))
	}
	c.raw(`"/>`)
}

// An Interval is a vertical line from Low to High with ends.
type Interval struct {
	Class     string
	At        float64
	Low, High float64
}

func (m Interval) draw(c *canvas) {
	x, low, high, class := c.x(m.At), c.y(m.Low), c.y(m.High), "whisker "+html.EscapeString(m.Class)
	c.line(class, x, low, x, high)
	c.line(class, x-3, low, x+3, low)
	c.line(class, x-3, high, x+3, high)
}
