package report

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

const (
	defaultWidth  = 100
	narrowest     = 60
	noteIndent    = "  "
	keyWidthLimit = 16 // longer keys stand on a line of their own
	flexWanted    = 48 // cells that a wrapped column should have before others join …
	flexLeast     = 16 // … and has at least
)

// Terminal writes results for a person at a terminal: what can be claimed in the
// first line, then what was run, warnings, and the numbers. Several results are
// set side by side.
func Terminal(w io.Writer, results []*metrics.Result, o TerminalOptions) error {
	p, err := pageOf(results)
	if err != nil {
		return err
	}
	return drawTerminal(w, p, o)
}

func drawTerminal(w io.Writer, p *page, o TerminalOptions) error {
	s := screen{width: o.Width, colour: o.Colour}
	if s.width == 0 {
		s.width = defaultWidth
	}
	s.width = max(s.width, narrowest)
	for _, line := range term.Wrap(p.verdict.text, s.width) {
		s.line(term.Paint(line, p.verdict.tone, s.colour))
	}
	for _, b := range p.blocks {
		s.line("")
		s.block(&b)
	}
	if len(s.hidden) > 0 {
		s.line("")
		s.faint("A terminal "+term.Count(int64(s.whole))+" columns wide also shows: "+strings.Join(s.hidden, ", "), "")
	}
	_, err := w.Write(s.out.Bytes())
	return err
}

// pageOf is the page of one result, or of several side by side.
func pageOf(results []*metrics.Result) (*page, error) {
	switch len(results) {
	case 0:
		return nil, errNoResults
	case 1:
		return single(results[0]), nil
	default:
		return beside(results), nil
	}
}

// A screen is drawn line by line.
type screen struct {
	out    bytes.Buffer
	width  int
	colour bool

	hidden []string // columns left out for want of width
	whole  int      // the width at which none is
}

func (s *screen) line(text string) {
	s.out.WriteString(strings.TrimRight(text, " "))
	s.out.WriteByte('\n')
}

func (s *screen) block(b *block) {
	if b.title != "" {
		s.line(term.Paint(b.title, term.Strong, s.colour))
	}
	s.facts(b.facts)
	for _, w := range b.warnings {
		s.warning(w)
	}
	if b.table != nil {
		s.table(b.table)
	}
	for _, line := range b.picture {
		s.line(noteIndent + term.Cut(line, s.width-len(noteIndent)))
	}
	for _, note := range b.notes {
		s.faint(note, noteIndent)
	}
}

func (s *screen) faint(text, indent string) {
	for _, line := range term.Wrap(text, s.width-len(indent)) {
		s.line(indent + term.Paint(line, term.Faint, s.colour))
	}
}

// facts draws keys in one column and texts, wrapped, in the next.
func (s *screen) facts(facts []fact) {
	keys := 0
	for _, f := range facts {
		if n := term.Cells(f.key); n <= keyWidthLimit {
			keys = max(keys, n)
		}
	}
	indent := strings.Repeat(" ", keys+4)
	if keys == 0 {
		indent = noteIndent
	}
	for _, f := range facts {
		first := noteIndent + term.Paint(f.key, toneOr(f.tone, term.Faint), s.colour)
		if term.Cells(f.key) > keyWidthLimit {
			s.line(first)
			first = ""
		}
		for i, line := range term.Wrap(f.text, s.width-len(indent)) {
			if i == 0 {
				s.line(term.Left(first, len(indent)) + line)
			} else {
				s.line(indent + line)
			}
		}
	}
}

func (s *screen) warning(w metrics.Warning) {
	code := term.Plain(w.Code)
	lead := "! "
	if code != "" {
		lead += "[" + code + "] "
	}
	for i, line := range term.Wrap(lead+term.Plain(w.Text), s.width-4) {
		if i > 0 {
			line = "  " + line
		}
		s.line(noteIndent + term.Paint(line, term.Care, s.colour))
	}
	for i, line := range term.Wrap(term.Plain(w.Help), s.width-6) {
		arrow := "  "
		if i == 0 {
			arrow = "→ "
		}
		s.line("    " + arrow + line)
	}
}

func toneOr(t, other term.Tone) term.Tone {
	if t == term.Normal {
		return other
	}
	return t
}

// table draws the columns that fit; a flexible one takes as many lines as its
// text needs.
func (s *screen) table(t *table) {
	shown, widths := s.fit(t)
	heads := make([]cell, len(t.columns))
	for i, c := range t.columns {
		heads[i] = text(c.head)
	}
	for _, line := range s.rowLines(t, heads, shown, widths) {
		s.line(term.Paint(strings.TrimRight(line, " "), term.Faint, s.colour))
	}
	for _, r := range t.rows {
		for _, line := range s.rowLines(t, r, shown, widths) {
			s.line(line)
		}
	}
}

func (s *screen) rowLines(t *table, cells []cell, shown, widths []int) []string {
	height := 1
	folded := map[int][]string{}
	for i, c := range shown {
		if t.columns[c].flex {
			folded[c] = term.Fold(cells[c].text, widths[i])
			height = max(height, len(folded[c]))
		}
	}
	var lines []string
	for k := range height {
		var b strings.Builder
		b.WriteString(noteIndent)
		for i, c := range shown {
			x, col := cells[c], t.columns[c]
			if i > 0 {
				b.WriteString(t.gap(shown[i-1]))
			}
			switch {
			case col.flex && k < len(folded[c]):
				x.text = folded[c][k]
			case k > 0 || col.flex:
				x = cell{}
			}
			painted := term.Paint(x.text+x.mark, x.tone, s.colour)
			switch {
			case col.left:
				painted = term.Left(painted, widths[i])
			case t.marked(c) && x.mark == "":
				// The mark has a place of its own, so that digits stay in line.
				painted = term.Right(painted, widths[i]-1) + " "
			default:
				painted = term.Right(painted, widths[i])
			}
			b.WriteString(painted)
		}
		lines = append(lines, b.String())
	}
	return lines
}

// fit chooses the columns to show and their widths: those that always stand,
// then the others, the least dispensable first, as long as they fit. It keeps
// account of what it left out.
func (s *screen) fit(t *table) (shown, widths []int) {
	show := make([]bool, len(t.columns))
	total, whole, last, flex := 0, 0, 0, -1
	if end := len(t.columns) - 1; end >= 0 {
		total = len(noteIndent) - len(t.gap(end)) // the indent is that gap, and wider than one with marks in it
		whole = total
	}
	for level := 0; level <= last; level++ {
		more := 0
		for c, col := range t.columns {
			last = max(last, col.drop)
			if col.drop != level {
				continue
			}
			w := t.width(c)
			if col.flex {
				flex, w = c, min(w, flexWanted)
			}
			more += w + len(t.gap(c)) // the gap of the last column pays for the indent
		}
		whole += more
		if level > 0 && total+more > s.width {
			continue
		}
		total += more
		for c, col := range t.columns {
			show[c] = show[c] || col.drop == level
		}
	}
	for c, col := range t.columns {
		if !show[c] {
			if name := col.fullName(); !slices.Contains(s.hidden, name) {
				s.hidden = append(s.hidden, name)
			}
			s.whole = max(s.whole, whole)
			continue
		}
		w := t.width(c)
		if c == flex {
			room := s.width - (total - min(w, flexWanted))
			w = min(w, max(room, flexLeast))
		}
		shown, widths = append(shown, c), append(widths, w)
	}
	return shown, widths
}

// gap is what separates column c from the next: a mark stands in it.
func (t *table) gap(c int) string {
	if t.marked(c) {
		return " "
	}
	return "  "
}

// width is the width of column c, its marks included.
func (t *table) width(c int) int {
	mark := 0
	if t.marked(c) {
		mark = 1
	}
	n := term.Cells(t.columns[c].head) + mark
	for _, r := range t.rows {
		n = max(n, term.Cells(r[c].text)+mark)
	}
	return n
}

func (t *table) marked(c int) bool {
	for _, r := range t.rows {
		if r[c].mark != "" {
			return !t.columns[c].left
		}
	}
	return false
}
