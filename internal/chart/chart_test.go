package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func labels(ts []Tick) string {
	var all []string
	for _, t := range ts {
		all = append(all, t.Label)
	}
	return strings.Join(all, " ")
}

// Ticks stand at round values, by hand.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		wanted float64
		want   string
	}{
		{Axis{Min: 0, Max: 100}, 5, "0 20 40 60 80 100"},
		{Axis{Min: 0, Max: 1}, 5, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{Min: -0.5, Max: 3}, 4, "0 1 2 3"},
		{Axis{Min: 3, Max: 3}, 4, "3"},
		{Axis{Scale: Log, Min: 1, Max: 1e6}, 7, "1 10 100 1000 10000 100000 1e+06"},
		{Axis{Scale: Log, Min: 1, Max: 1e6}, 3, "1 100 10000 1e+06"},
		{Axis{Scale: Log, Min: 10, Max: 1000}, 4, "10 30 100 300 1000"},
		{Axis{Scale: Log, Min: 10, Max: 100}, 4, "10 20 50 100"},
		{Axis{Scale: Log, Min: 41, Max: 59}, 4, "50"},
		{Axis{Scale: Log, Min: 61, Max: 79}, 8, "65 70 75"},
		{Axis{Min: 49, Max: 51, Whole: true}, 4.5, "49 50 51"},
		{Axis{Max: 1, Whole: true}, 5, "0 1"},
		{Axis{Max: 3, Whole: true}, 8, "0 1 2 3"},
		{Axis{Max: 100, Whole: true}, 5, "0 20 40 60 80 100"},
		{Axis{Scale: Log, Min: 1.2, Max: 4.6, Whole: true}, 9, "2 3 4"},
		{Axis{Scale: Log, Min: 0.9, Max: 1000, Whole: true}, 5, "1 10 100 1000"},
		{Axis{Scale: Probability, Min: 0.001, Max: 0.999}, 9, "0.001 0.01 0.1 0.5 0.9 0.99 0.999"},
	} {
		if got := labels(c.axis.ticks(c.wanted)); got != c.want {
			t.Errorf("%+v, %v wanted: %s, want %s", c.axis, c.wanted, got, c.want)
		}
	}
}

func TestCeil(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{{0, 1}, {-3, 1}, {1, 1}, {101, 120}, {250, 250}, {0.037, 0.04}, {998, 1000}} {
		if got := Ceil(c.v); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Ceil(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

// Where values lie: linear, by logarithms, and by the normal distribution's
// quantiles, whose median is in the middle and whose 84.134 % are at one standard
// deviation.
func TestAt(t *testing.T) {
	p := Plot{X: Axis{Scale: Log, Min: 1, Max: 10000}, Y: Axis{Scale: Probability, Min: 0.02275013, Max: 0.97724987}}
	for _, c := range []struct{ x, y, right, down float64 }{
		{1, 0.02275013, 0, 1},
		{100, 0.5, 0.5, 0.5},
		{10, 0.84134475, 0.25, 0.25},
		{1e9, 1, 1, 0}, // beyond the end
		{0, 0, 0, 1},
	} {
		right, down := p.At(c.x, c.y)
		if math.Abs(right-c.right) > 1e-6 || math.Abs(down-c.down) > 1e-6 {
			t.Errorf("At(%v, %v) = %v, %v, want %v, %v", c.x, c.y, right, down, c.right, c.down)
		}
	}
}

func every() Plot {
	return Plot{
		Name: `"<script>" & 'all'`, Width: 400, Height: 300,
		X: Axis{Label: "x <b>", Max: 10}, Y: Axis{Label: "y", Max: 10, Ticks: []Tick{{5, "</text><script>"}}},
		Marks: []Mark{
			Shade{Class: "warmup", From: 0, To: 2, Label: "<i>"},
			Band{Class: "s0", X: []float64{1, 2, 3}, Low: []float64{0, 1, 2}, High: []float64{2, 3, 4}, Step: true},
			Band{Class: "s0"},
			Line{Class: `s1" onload="alert(1)`, X: []float64{1, 2, 3, 4}, Y: []float64{1, math.NaN(), 3, 4}},
			Dots{Class: "s2", X: []float64{5}, Y: []float64{5}},
			Bar{Class: "s3", From: 1, To: 2, Y1: 7, Label: "7 < 8"},
			Box{Class: "s4", At: 6, Width: 1, Low: 1, Q1: 2, Median: 3, Q3: 4, High: 9},
			Spans{Class: "wait", Thickness: 3, Y: []float64{4}, From: []float64{1}, To: []float64{5}},
			Rule{Class: "s5", At: 9.9, Label: "far & right"},
			Rule{Class: "s6", At: 3, Horizontal: true, Label: "h"},
			Lane{Class: `s7"><script>`, At: 5, Value: 4, Low: math.NaN(), High: 6, Text: `<b>"a&b"</b> and so long a name that it cannot stand in the room that there is`},
			Lane{At: 6, Value: math.NaN(), Text: "<i>a heading</i>", Strong: true},
			Cross{Class: "missed", X: []float64{1, 2}, Y: []float64{3, 4}},
			Interval{Class: "s0", At: 4, Low: 1, High: 2},
		},
	}
}

// Every mark is well-formed XML whatever its texts are, nothing in it can run, and
// drawn twice it is the same.
func TestMarksAreWellFormed(t *testing.T) {
	p := every()
	svg := p.SVG("plot")
	if again := p.SVG("plot"); again != svg {
		t.Error("a second drawing differs")
	}
	paths := 0
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "svg", "text", "rect":
		case "path":
			paths++
		default:
			t.Errorf("a %s in the picture", e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
				t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
			if a.Name.Local == "aria-label" && a.Value != p.Name {
				t.Errorf("it is named %q", a.Value)
			}
		}
	}
	if paths < 12 {
		t.Errorf("%d paths of ten marks and two axes", paths)
	}
	if _, above, ok := strings.Cut(svg, `class="note"`); !ok || strings.Contains(above, "<path") || strings.Contains(above, "<rect") {
		t.Error("a mark is drawn over a label")
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Error("a coordinate is not finite")
	}
}

// A distribution function steps: level up to the next value, then up. Two points in
// a square of 100 by hand.
func TestLineSteps(t *testing.T) {
	p := Plot{Width: 100 + 12 + 14 + textWidth, Height: 100 + 10 + 22, X: Axis{Max: 10, Ticks: []Tick{}}, Y: Axis{Max: 10, Ticks: []Tick{{0, "0"}}}}
	p.Marks = []Mark{Line{Class: "a", Step: true, X: []float64{0, 5, 10}, Y: []float64{0, 4, 10}}}
	want := `d="M20.6 110H70.6V70H120.6V10"`
	if svg := p.SVG("plot"); !strings.Contains(svg, want) {
		t.Errorf("no %s in %s", want, svg)
	}
}

// A step of one's own: minutes.
func TestStep(t *testing.T) {
	a := Axis{Max: 200, Step: func(v float64) float64 { return math.Ceil(v/60) * 60 }}
	if got := labels(a.ticks(4)); got != "0 60 120 180" {
		t.Error(got)
	}
}

// A lane by hand in a square of 100: its bar ends at its value, its interval is open
// where an end is unknown, and a text that has no room is cut.
func TestLane(t *testing.T) {
	p := Plot{Width: 100 + 12 + 14, Height: 100 + 10 + 22, X: Axis{Max: 10, Ticks: []Tick{}}, Y: Axis{Max: 10, Ticks: []Tick{}}}
	p.Marks = []Mark{Lane{Class: "a", At: 5, Value: 4, Low: 2, High: math.NaN(), Text: "abcdefghijklmnopqrst"}}
	svg := p.SVG("plot")
	for _, want := range []string{
		`x="14" y="61.7" width="40" height="9"`,
		`d="M34 63.2L34 69.2"`, `d="M34 66.2L114 66.2"`, // from 2 to the axis's end
		">abcdefghijklmno…<", // 100 units are 16 letters
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
	if strings.Contains(svg, `"M114 63`) {
		t.Error("the open end is drawn as an end")
	}
	if got := cut("ab cdef", 4); got != "ab…" {
		t.Error(got)
	}
}
