package report

import (
	"slices"

	"fermata/internal/term"
	"fermata/metrics"
)

// A page is what a report says, before it is known how it will look: the
// terminal and Markdown both draw it.
type page struct {
	verdict fact // the first line: what can be claimed at all
	blocks  []block
}

// A block is a part of a page under a title, in the order of its fields.
type block struct {
	title    string
	facts    []fact
	warnings []metrics.Warning
	table    *table
	picture  []string // lines as they are
	notes    []string
}

// A fact is one line of text under a key.
type fact struct {
	key, text string
	tone      term.Tone // of the key
}

// A table has one header and rows of equal length.
type table struct {
	columns []column
	rows    [][]cell
}

// A column of a table.
type column struct {
	head string
	name string // where the head alone says too little
	left bool   // text, aligned left; numbers are aligned right
	drop int    // left out on narrow terminals, the highest first; 0 stays
	flex bool   // wrapped to what room is left
}

// A cell of a table: its text and what stands right behind it, such as ~.
type cell struct {
	text, mark string
	tone       term.Tone
}

func text(s string) cell { return cell{text: s} }

// fullName is what column c is called away from its table.
func (c *column) fullName() string {
	if c.name != "" {
		return c.name
	}
	return c.head
}

// dropIfEmpty removes column c where no row has anything in it.
func (t *table) dropIfEmpty(c int) {
	if slices.ContainsFunc(t.rows, func(r []cell) bool { return r[c].text != "" }) {
		return
	}
	t.columns = slices.Delete(t.columns, c, c+1)
	for i, r := range t.rows {
		t.rows[i] = slices.Delete(r, c, c+1)
	}
}

// add appends a block unless it says nothing.
func (p *page) add(b block) {
	if b.table != nil && len(b.table.rows) == 0 {
		b.table = nil
	}
	if len(b.facts) > 0 || len(b.warnings) > 0 || b.table != nil || len(b.picture) > 0 || len(b.notes) > 0 {
		p.blocks = append(p.blocks, b)
	}
}

// fact appends a fact unless its text is empty.
func (b *block) fact(key, text string) {
	if text != "" {
		b.facts = append(b.facts, fact{key: key, text: text})
	}
}
