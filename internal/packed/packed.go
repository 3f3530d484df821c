// Package packed keeps long columns of whole numbers and of texts in a few bytes each.
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
	r := c.Reader()
	return r.At(i)
}

// Reader reads c from its beginning.
func (c *Column) Reader() Reader { return Reader{c: c} }

// A Reader reads a column by steps: the value after the one read last takes one,
// any other as many as Column.At. It is for one goroutine. Column.Reader makes one.
type Reader struct {
	c    *Column
	i    int // of the value read last
	v    int64
	rest []byte // what follows it; nil before the first
}

// At is value i, from 0.
func (r *Reader) At(i int) int64 {
	if r.rest == nil || i < r.i || i/run != r.i/run {
		s := r.c.runs[i/run]
		r.i, r.v, r.rest = i-i%run, s.first, r.c.chunks[s.chunk][s.at:]
	}
	for ; r.i < i; r.i++ {
		d, n := binary.Varint(r.rest)
		r.v, r.rest = r.v+d, r.rest[n:]
	}
	return r.v
}

// Texts is a sequence of texts that only grows: a few bytes each beside its own,
// and one where it equals the one before. The zero value is empty. Reading is as of
// a Column.
type Texts struct {
	places Column // chunk and offset
	last   string
	chunks [][]byte
}

// Len is how many texts there are.
func (t *Texts) Len() int { return t.places.Len() }

// Add appends a text.
func (t *Texts) Add(s string) {
	if t.Len() > 0 && s == t.last {
		t.places.Add(t.places.last)
		return
	}
	size := binary.MaxVarintLen64 + len(s)
	if k := len(t.chunks) - 1; k < 0 || len(t.chunks[k])+size > cap(t.chunks[k]) {
		t.chunks = append(t.chunks, make([]byte, 0, max(chunk, size)))
	}
	k := len(t.chunks) - 1
	t.places.Add(int64(k)<<32 | int64(len(t.chunks[k])))
	t.chunks[k] = append(binary.AppendUvarint(t.chunks[k], uint64(len(s))), s...)
	t.last = s
}

// At is text i, from 0.
func (t *Texts) At(i int) string {
	place := t.places.At(i)
	b := t.chunks[place>>32][place&(1<<32-1):]
	size, n := binary.Uvarint(b)
	return string(b[n : n+int(size)])
}
