package workload

import (
	"cmp"
	"slices"
	"sort"

	"fermata/internal/packed"
)

// A grouping puts rows of one session together: they are the turns of a
// conversation. It keeps a number a row, from the first row that has a session.
type grouping struct {
	of     packed.Column // number of the session of each row
	n      int32         // sessions so far
	names  map[string]int32
	talks  bool    // some session has two rows
	starts []int32 // of conversations, among the rows in the order of asking; nil where nobody converses
}

// begin numbers the rows before the first that has a session.
func (g *grouping) begin(rows int) {
	for g.of.Len() < rows {
		g.of.Add(int64(g.n))
		g.n++
	}
}

// add takes a row in, of which there were so many before; without a session it
// stands for itself.
func (g *grouping) add(rows int, session string) {
	if session == "" && g.of.Len() == 0 {
		return
	}
	g.begin(rows)
	number, known := g.names[session]
	if session == "" || !known {
		number = g.n
		g.n++
	}
	if session != "" && !known {
		if g.names == nil {
			g.names = map[string]int32{}
		}
		g.names[session] = number
	}
	g.talks = g.talks || known && session != ""
	g.of.Add(int64(number))
}

// follow takes a row in that is the next turn of the row before it.
func (g *grouping) follow(rows int) {
	g.begin(rows)
	g.of.Add(g.of.At(rows - 1))
	g.talks = true
}

// group orders the rows by conversation: conversations by their first row, those
// of a trace by its time; turns as they stand in the file.
func (t *table) group() {
	g := &t.grouping
	talks := g.talks
	defer func() { g.of, g.names = packed.Column{}, nil }()
	if !talks {
		return
	}
	g.begin(t.rows())
	firsts := make([]int32, 0, g.n) // rows
	sizes := make([]int32, g.n)
	for i := range t.rows() {
		number := g.of.At(i)
		if sizes[number] == 0 {
			firsts = append(firsts, int32(i))
		}
		sizes[number]++
	}
	if t.due.Len() > 0 {
		slices.SortStableFunc(firsts, func(a, b int32) int { return cmp.Compare(t.due.At(int(a)), t.due.At(int(b))) })
	}
	next := make([]int32, g.n) // place of each session's next row
	g.starts = make([]int32, len(firsts))
	at := int32(0)
	for k, row := range firsts {
		number := g.of.At(int(row))
		g.starts[k], next[number] = at, at
		at += sizes[number]
	}
	t.order = make([]int32, t.rows())
	for i := range t.rows() {
		number := g.of.At(i)
		t.order[next[number]] = int32(i)
		next[number]++
	}
}

// span is where conversation k stands among the rows in the order of asking.
func (t *table) span(k int) (begin, end int) {
	if k+1 < len(t.starts) {
		return int(t.starts[k]), int(t.starts[k+1])
	}
	return int(t.starts[k]), t.rows()
}

// conversationOf is the conversation of the row that is asked i-th.
func (t *table) conversationOf(i int) int {
	return sort.Search(len(t.starts), func(k int) bool { return int(t.starts[k]) > i }) - 1
}
