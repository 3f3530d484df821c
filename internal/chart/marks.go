package chart

import (
	"html"
	"math"
)

// A Line joins points. Values that are not finite interrupt it, and it ends where the
// horizontal axis does.
type Line struct {
	Class string
	X, Y  []float64
	Step  bool // it keeps its height up to the next point, as a distribution function does
}

func (l Line) draw(c *canvas) {
	c.raw(`<path class="line `, html.EscapeString(l.Class), `" d="`)
	up := true
	for i := range l.X {
		if !finite(l.X[i]) || !finite(l.Y[i]) {
			up = true
			continue
		}
		if !up && c.plot.X.at(l.X[i]) > 1+1e-9 {
			break
		}
		x, y := num(c.x(l.X[i])), num(c.y(l.Y[i]))
		switch {
		case up:
			c.raw("M", x, " ", y)
		case l.Step:
			c.raw("H", x, "V", y)
		default:
			c.raw("L", x, " ", y)
		}
		up = false
	}
	c.raw(`"/>`)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// A Band fills what lies between Low and High.
type Band struct {
	Class     string
	X         []float64
	Low, High []float64
	Step      bool
}

func (b Band) draw(c *canvas) {
	if len(b.X) == 0 {
		return
	}
	c.raw(`<path class="band `, html.EscapeString(b.Class), `" d="`)
	for i := range b.X {
		x, y := num(c.x(b.X[i])), num(c.y(b.High[i]))
		switch {
		case i == 0:
			c.raw("M", x, " ", y)
		case b.Step:
			c.raw("H", x, "V", y)
		default:
			c.raw("L", x, " ", y)
		}
	}
	for i := len(b.X) - 1; i >= 0; i-- {
		x, y := num(c.x(b.X[i])), num(c.y(b.Low[i]))
		if b.Step && i < len(b.X)-1 {
			c.raw("V", y, "H", x)
			continue
		}
		c.raw("L", x, " ", y)
	}
	c.raw(`Z"/>`)
}

// Dots are points that nothing joins.
type Dots struct {
	Class  string
	X, Y   []float64
	Radius float64 // 0 is 2.5
}

func (d Dots) draw(c *canvas) {
	r := d.Radius
	if r <= 0 {
		r = 2.5
	}
	// One path of circles is a third of as many elements.
	c.raw(`<path class="dots `, html.EscapeString(d.Class), `" d="`)
	for i := range d.X {
		c.raw("M", num(c.x(d.X[i])-r), " ", num(c.y(d.Y[i])), "a", num(r), " ", num(r), " 0 1 0 ", num(2*r), " 0a", num(r), " ", num(r), " 0 1 0 ", num(-2*r), " 0")
	}
	c.raw(`"/>`)
}

// A Bar is a rectangle between two values of each axis.
type Bar struct {
	Class            string
	From, To, Y0, Y1 float64
	Label            string // above it
}

func (b Bar) draw(c *canvas) {
	x1, x2, y1, y2 := c.x(b.From), c.x(b.To), c.y(b.Y1), c.y(b.Y0)
	c.raw(`<rect class="bar `, html.EscapeString(b.Class), `" x="`, num(x1), `" y="`, num(y1), `" width="`, num(max(0, x2-x1)), `" height="`, num(max(0, y2-y1)), `"/>`)
	if b.Label != "" {
		c.note("value", "middle", (x1+x2)/2, max(y1-4, 10), b.Label)
	}
}

// A Box is five numbers of a distribution at a place of the horizontal axis:
// whiskers from Low to High, a box from Q1 to Q3, a line at Median.
type Box struct {
	Class                     string
	At, Width                 float64
	Low, Q1, Median, Q3, High float64
}

func (b Box) draw(c *canvas) {
	left, mid, right := c.x(b.At-b.Width/2), c.x(b.At), c.x(b.At+b.Width/2)
	class := html.EscapeString(b.Class)
	c.line("whisker "+class, mid, c.y(b.Low), mid, c.y(b.Q1))
	c.line("whisker "+class, mid, c.y(b.Q3), mid, c.y(b.High))
	for _, end := range []float64{b.Low, b.High} {
		c.line("whisker "+class, (left+mid)/2, c.y(end), (mid+right)/2, c.y(end))
	}
	c.raw(`<rect class="box `, class, `" x="`, num(left), `" y="`, num(c.y(b.Q3)), `" width="`, num(right-left), `" height="`, num(max(1, c.y(b.Q1)-c.y(b.Q3))), `"/>`)
	c.line("median "+class, left, c.y(b.Median), right, c.y(b.Median))
}

// Spans are stretches of the horizontal axis at heights of the vertical one, all
// alike.
type Spans struct {
	Class     string
	Thickness float64 // in the picture's units
	Y         []float64
	From, To  []float64
}

func (s Spans) draw(c *canvas) {
	if len(s.Y) == 0 {
		return
	}
	c.raw(`<path class="span `, html.EscapeString(s.Class), `" stroke-width="`, num(s.Thickness), `" d="`)
	for i := range s.Y {
		x1, x2 := c.x(s.From[i]), c.x(s.To[i])
		c.raw("M", num(x1), " ", num(c.y(s.Y[i])), "H", num(max(x2, x1+0.4)))
	}
	c.raw(`"/>`)
}

// A Rule is a line across at a value of the horizontal axis, or of the vertical
// one.
type Rule struct {
	Class      string
	At         float64
	Horizontal bool
	Label      string
	Start      bool // of a horizontal one, the label stands at its beginning
	Level      int  // how many lines of text its label stands below the top
}

func (r Rule) draw(c *canvas) {
	b, class := c.box, html.EscapeString(r.Class)
	if r.Horizontal {
		y := c.y(r.At)
		c.line("rule "+class, b.left, y, b.right, y)
		if r.Start {
			c.note("note", "start", b.left+4, y-4, r.Label)
		} else {
			c.note("note", "end", b.right-4, y-4, r.Label)
		}
		return
	}
	x := c.x(r.At)
	c.line("rule "+class, x, b.top, x, b.bottom)
	if r.Label == "" {
		return
	}
	anchor, at := "start", x+4
	if at+textWidth*float64(len([]rune(r.Label))) > b.right {
		anchor, at = "end", x-4
	}
	c.note("note", anchor, at, b.top+11+14*float64(r.Level), r.Label)
}

// A Shade tints a stretch of the horizontal axis. Its label stands at the top, or at
// the bottom.
type Shade struct {
	Class    string
	From, To float64
	Label    string
	Bottom   bool
}

func (s Shade) draw(c *canvas) {
	x1, x2 := c.x(s.From), c.x(s.To)
	c.raw(`<rect class="shade `, html.EscapeString(s.Class), `" x="`, num(x1), `" y="`, num(c.box.top), `" width="`, num(max(0, x2-x1)), `" height="`, num(c.box.bottom-c.box.top), `"/>`)
	if s.Label != "" {
		y := c.box.top + 11
		if s.Bottom {
			y = c.box.bottom - 5
		}
		c.note("note", "start", x1+3, y, s.Label)
	}
}
