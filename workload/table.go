package workload

import (
	"cmp"
	"slices"
)

// A column holds a value a row in pieces that never move, so that growing takes
// no second copy.
type column[T any] struct {
	pieces [][]T
	n      int
}

const pieceLen = 1 << 14

func (c *column[T]) add(v T) {
	if c.n%pieceLen == 0 {
		c.pieces = append(c.pieces, make([]T, 0, pieceLen))
	}
	last := len(c.pieces) - 1
	c.pieces[last] = append(c.pieces[last], v)
	c.n++
}

func (c *column[T]) at(i int) T { return c.pieces[i/pieceLen][i%pieceLen] }

// A place is where an element stands in its file: offset and size.
type place uint64

func placeOf(e element) place { return place(uint64(e.offset)<<24 | uint64(len(e.data))) }

func (p place) offset() int64 { return int64(p >> 24) }
func (p place) size() int     { return int(p & elementMax) }

// A table knows of each row what is needed to choose and to time it: up to 24
// bytes a row, and no text.
type table struct {
	lengths column[pair]  // as given, or estimated from text
	due     column[int64] // ns; only where rows have times
	places  column[place] // only where a row is read again when it is asked
	order   []int32       // of rows by time, or by conversation; nil where they stand in that order

	parts column[uint16] // where a row is one turn of an element of the file: which
	grouping
}

func (t *table) rows() int { return t.lengths.n }

// row is the number of the row that is asked i-th.
func (t *table) row(i int) int {
	if t.order != nil {
		return int(t.order[i])
	}
	return i
}

// sort puts rows in the order of their times, equal times as in the file.
func (t *table) sort() {
	sorted := true
	for i := 1; i < t.due.n && sorted; i++ {
		sorted = t.due.at(i-1) <= t.due.at(i)
	}
	if sorted {
		return
	}
	t.order = make([]int32, t.due.n)
	for i := range t.order {
		t.order[i] = int32(i)
	}
	slices.SortStableFunc(t.order, func(a, b int32) int { return cmp.Compare(t.due.at(int(a)), t.due.at(int(b))) })
}

// times are the due times in order; of conversations, those of their first turns.
func (t *table) times() []int64 {
	if t.starts != nil {
		due := make([]int64, len(t.starts))
		for k, begin := range t.starts {
			due[k] = t.due.at(t.row(int(begin)))
		}
		return due
	}
	due := make([]int64, t.due.n)
	for i := range due {
		due[i] = t.due.at(t.row(i))
	}
	return due
}
