package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"fermata/internal/chart"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/recording"
)

// A picture is a chart of the page with what is said about it and the table that
// it is drawn from. The table is also what is read when somebody points at it.
type picture struct {
	ID, Title, Lead string
	Name            string // what is to be seen, for those who do not see it
	Hover           string // how the nearest row is found: x in each group, xy or y over all; empty for none
	Wide            bool   // it takes the page's whole width
	Lanes           bool   // its height is that of its lanes, however wide it is
	SVG             []template.HTML
	Legend          []legendKey
	Notes           []string

	columns []string
	rows    []pictureRow
	plot    *chart.Plot // by which rows are placed
}

// A legendKey says what a class of marks is.
type legendKey struct{ Class, Text string }

// A pictureRow is a row of a picture's table.
type pictureRow struct {
	cells []string
	x, y  float64
	group int
}

// What a plot is drawn at: the narrow ones fit a telephone as they are.
const (
	narrowWidth  = 360
	narrowHeight = 250
	wideWidth    = 1080
)

// draw draws the plot as it is, and, where it takes the whole width, a second time
// for narrow screens.
func (p *picture) draw(plot chart.Plot) {
	plot.Name = p.Name
	if !p.Wide {
		plot.Width = narrowWidth
		if !p.Lanes {
			plot.Height = narrowHeight
		}
		p.SVG = append(p.SVG, template.HTML(plot.SVG("plot")))
		p.plot = &plot
		return
	}
	height := plot.Height
	plot.Width = wideWidth
	p.SVG = append(p.SVG, template.HTML(plot.SVG("plot wide")))
	small := plot
	if small.Width = narrowWidth; !p.Lanes {
		small.Height = min(max(narrowHeight, height*0.8), 420)
	}
	p.SVG = append(p.SVG, template.HTML(small.SVG("plot narrow")))
	p.plot = &plot
}

func (p *picture) row(group int, x, y float64, cells ...string) {
	p.rows = append(p.rows, pictureRow{cells, x, y, group})
}

// Rows says how many there are.
func (p *picture) Rows() string {
	if len(p.rows) == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", len(p.rows))
}

// longestPrinted is how many rows of data are printed; more fill pages that nobody reads.
const longestPrinted = 60

// Long says that the data are too many to be printed.
func (p *picture) Long() bool { return len(p.rows) > longestPrinted }

// File is the name of the table as a CSV file.
func (p *picture) File() string { return "fermata-" + p.ID + ".csv" }

// Table is the picture's data. Every row says where it lies in the plot, so that
// pointing at it needs no arithmetic of scales.
func (p *picture) Table() template.HTML {
	var b strings.Builder
	b.WriteString("<table><thead><tr>")
	for _, c := range p.columns {
		b.WriteString(`<th scope="col">` + html.EscapeString(c) + "</th>")
	}
	b.WriteString("</tr></thead><tbody>\n")
	for _, r := range p.rows {
		b.WriteString("<tr")
		if p.plot != nil && p.Hover != "" {
			x, y := p.plot.At(r.x, r.y)
			b.WriteString(` data-p="` + share4(x) + " " + share4(y) + `"`)
			if r.group > 0 {
				b.WriteString(` data-g="` + strconv.Itoa(r.group) + `"`)
			}
		}
		b.WriteString(">")
		for _, c := range r.cells {
			b.WriteString("<td>" + html.EscapeString(c) + "</td>")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table>")
	return template.HTML(b.String())
}

func share4(v float64) string { return trimZeros(strconv.FormatFloat(v, 'f', 4, 64)) }

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Table cells hold plain numbers, so that they are the same as CSV: times in ms or
// s as the column says, without commas.
func inMs(ns float64) string { return trimZeros(strconv.FormatFloat(ns/1e6, 'f', 3, 64)) }
func inS(ns float64) string  { return trimZeros(strconv.FormatFloat(ns/1e9, 'f', 3, 64)) }
func plainNumber(v float64) string {
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func maybeCell[T any](m recording.Maybe[T], write func(T) string) string {
	if !m.OK {
		return ""
	}
	return write(m.V)
}

// timeTick writes a time on an axis.
func timeTick(ns float64) string { return term.Bound(int64(ns + 0.5)) }

// sinceStart is an axis of the run's time.
func sinceStart(end float64) chart.Axis {
	return chart.Axis{Label: "since the start", Min: 0, Max: end, Format: clockTick, Step: clockStep}
}

// clockTick writes a moment of a run in the unit that leaves it whole.
func clockTick(ns float64) string {
	switch s := int64(ns/1e9 + 0.5); {
	case ns < 1e9 || s < 60:
		return timeTick(ns)
	case s%3600 == 0:
		return fmt.Sprintf("%d h", s/3600)
	case s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

// clockStep is the least round step of a clock of at least v ns.
func clockStep(v float64) float64 {
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200} {
		if v > 0.5e9 && v <= s*1e9 {
			return s * 1e9
		}
	}
	if v <= 0.5e9 {
		return chart.Round(v)
	}
	return math.Ceil(v/86400e9) * 86400e9
}

func percentTick(share float64) string { return trimZeros(fmt.Sprintf("%.4f", share*100)) + " %" }

// numberTick writes a number with three decimals, and more where it is so small.
func numberTick(v float64) string {
	decimals := 3
	if v > 0 && v < 0.1 {
		decimals = 2 - int(math.Floor(math.Log10(v)))
	}
	return trimZeros(strconv.FormatFloat(v, 'f', decimals, 64))
}

// rateTick writes a rate of which there may be thousands a second, or less than one.
func rateTick(v float64) string {
	if v < 10 {
		return numberTick(v)
	}
	return countTick(v)
}

func countTick(v float64) string { return term.ShortCount(int64(v + 0.5)) }

// seriesClass is the class of the marks of run i: a colour, and with lines a dash.
func seriesClass(i int) string { return fmt.Sprintf("s%d", i%8) }

// keysOf is the legend of pictures with a series a run.
func (h *htmlPage) keysOf(has func(*Portrayed) bool) []legendKey {
	if len(h.runs) < 2 {
		return nil
	}
	var keys []legendKey
	for i := range h.runs {
		if has(&h.runs[i]) {
			keys = append(keys, legendKey{seriesClass(i), h.titles[i]})
		}
	}
	return keys
}

// effective is how many independent values the share of a distribution rests on:
// as many as the percentile next to it.
func effective(d *metrics.Dist, share float64) float64 {
	if d == nil {
		return 0
	}
	best, n := 2.0, float64(d.N)
	for _, q := range d.Quantiles {
		if off := max(q.P-share, share-q.P); off < best {
			best, n = off, q.NEff
		}
	}
	return min(n, float64(d.N))
}

// mostEach is of how many runs there are pictures of each run by itself.
const mostEach = 4

// each makes a picture of every run, or of the first few.
func (h *htmlPage) each(s *section, draw func(int) *picture) {
	for i := range min(len(h.runs), mostEach) {
		if p := draw(i); p != nil {
			s.Pictures = append(s.Pictures, *p)
		}
	}
	if len(s.Pictures) > 0 && len(h.runs) > mostEach {
		s.Note = fmt.Sprintf("Of %d runs the first %d are drawn by themselves; a page of the others draws those.", len(h.runs), mostEach)
	}
}
