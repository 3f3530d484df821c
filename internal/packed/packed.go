// Package packed keeps long columns of whole numbers in a few bytes each.
package packed

import "encoding/binary"

const (
	// run is how many values are coded as differences from the one before: more
	// take less memory and longer to find one.
	run     = 64
	chunk   = 1 << 16 // bytes that are allocated at a time, and never move
	longest = run * binary.MaxVarintLen64
)

// A Column is a sequence of int64 that only grows. Values near the one before
// take few bytes: 1 up to a difference of 63, 2 up to 8,191, 5 up to 17 seconds in
// nanoseconds. The zero value is empty. Reading is for any goroutine once nothing
// is added any more.
type Column struct {
	n      int
	last   int64
	chunks [][]byte
	runs   []start
}

// A start is where a run begins.
type start struct {
	first int64 // its first value
	chunk int32
	at    int32
}

// Len is how many values there are.
func (c *Column) Len() int { return c.n }

// Add appends a value.
func (c *Column) Add(v int64) {
	if c.n%run == 0 {
		if k := len(c.chunks) - 1; k < 0 || len(c.chunks[k])+longest > chunk {
			c.chunks = append(c.chunks, make([]byte, 0, chunk))
		}
		k := len(c.chunks) - 1
		c.runs = append(c.runs, start{v, int32(k), int32(len(c.chunks[k]))})
	} else {
		k := len(c.chunks) - 1
		c.chunks[k] = binary.AppendVarint(c.chunks[k], v-c.last) // wraps around, and back
	}
	c.last = v
	c.n++
}

// At is value i, from 0.
func (c *Column) At(i int) int64 {
	s := c.runs[i/run]
	v, b := s.first, c.chunks[s.chunk][s.at:]
	for range i % run {
		d, n := binary.Varint(b)
		v, b = v+d, b[n:]
	}
	return v
}
