package workload

import (
	"cmp"
	"slices"

	"fermata/internal/packed"
)

// A place is where an element stands in its file: offset and size.
type place uint64

func placeOf(e element) place { return placed(e.offset, len(e.data)) }

func placed(offset int64, size int) place { return place(uint64(offset)<<24 | uint64(size)) }

func (p place) offset() int64 { return int64(p >> 24) }
func (p place) size() int     { return int(p & elementMax) }

// A table knows of each row what is needed to choose and to time it: a few bytes
// a row, and no text.
type table struct {
	lengths lengths       // as given, or estimated from text
	due     packed.Column // ns; only where rows have times
	places  places        // only where a row is read again when it is asked
	order   []int32       // of rows by time, or by conversation; nil where they stand in that order

	parts packed.Column // where a row is one turn of an element of the file: which
	grouping
}

// lengths are those of rows.
type lengths struct{ input, output packed.Column }

func (l *lengths) add(p pair) {
	l.input.Add(int64(p.input))
	l.output.Add(int64(p.output))
}

func (l *lengths) at(i int) pair { return pair{int32(l.input.At(i)), int32(l.output.At(i))} }

// reader gives the lengths of row i; it is for one goroutine.
func (l *lengths) reader() func(i int) pair {
	input, output := l.input.Reader(), l.output.Reader()
	return func(i int) pair { return pair{int32(input.At(i)), int32(output.At(i))} }
}

// places are those of rows.
type places struct {
	offset, size packed.Column
}

func (c *places) add(p place) {
	c.offset.Add(p.offset())
	c.size.Add(int64(p.size()))
}

func (c *places) at(i int) place { return placed(c.offset.At(i), int(c.size.At(i))) }

func (t *table) rows() int { return t.lengths.input.Len() }

// row is the number of the row that is asked i-th.
func (t *table) row(i int) int {
	if t.order != nil {
		return int(t.order[i])
	}
	return i
}

// sort puts rows in the order of their times, equal times as in the file.
func (t *table) sort() {
	n, sorted := t.due.Len(), true
	reader := t.due.Reader()
	for i, before := 1, reader.At(0); i < n && sorted; i++ {
		at := reader.At(i)
		sorted, before = before <= at, at
	}
	if sorted {
		return
	}
	due := make([]int64, n) // looked at often
	t.order = make([]int32, n)
	for i := range t.order {
		due[i], t.order[i] = reader.At(i), int32(i)
	}
	slices.SortStableFunc(t.order, func(a, b int32) int { return cmp.Compare(due[a], due[b]) })
}

// timed is how many due times there are: one a row, or one a conversation.
func (t *table) timed() int {
	if t.starts != nil && t.due.Len() > 0 {
		return len(t.starts)
	}
	return t.due.Len()
}

// times gives due time i in order; of conversations, that of its first turn. The
// function is for one goroutine.
func (t *table) times() func(i int) int64 {
	due := t.due.Reader()
	return func(i int) int64 {
		if t.starts != nil {
			i = int(t.starts[i])
		}
		return due.At(t.row(i))
	}
}
