package recording

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// sortMemory is how many bytes of records are sorted in memory before they
// spill into a file.
const sortMemory = 32 << 20

// sortBlock is the least size of a block of memory for records: what is full is never
// copied into something larger.
const sortBlock = 256 << 10

// An order is where a record belongs: by due time, then index, then try.
type order struct {
	due, index int64
	try        int32
}

func (a order) compare(b order) int {
	return firstNonZero(cmp.Compare(a.due, b.due), cmp.Compare(a.index, b.index), cmp.Compare(a.try, b.try))
}

func firstNonZero(list ...int) int {
	for _, v := range list {
		if v != 0 {
			return v
		}
	}
	return 0
}

// A sorter brings any number of records into order: sorted runs in files of its
// folder, merged at the end, so that memory stays flat.
type sorter struct {
	dir, name string
	limit     int
	scratch   []byte
	blocks    [][]byte
	at        int // of the block that is being filled
	size      int // of records
	records   []record
	runs      []string
}

type record struct {
	order
	b []byte // in a block
}

func newSorter(dir, name string, limit int) *sorter {
	return &sorter{dir: dir, name: name, limit: limit}
}

// add takes a record that fill appends to an empty buffer.
func (s *sorter) add(o order, fill func(b []byte) []byte) error {
	s.scratch = fill(s.scratch[:0])
	s.records = append(s.records, record{o, s.keep(s.scratch)})
	if s.size += len(s.scratch); s.size < s.limit {
		return nil
	}
	return s.spill()
}

// keep copies b into a block.
func (s *sorter) keep(b []byte) []byte {
	if s.at < len(s.blocks) && cap(s.blocks[s.at])-len(s.blocks[s.at]) < len(b) {
		s.at++
	}
	if s.at == len(s.blocks) {
		s.blocks = append(s.blocks, nil)
	}
	if cap(s.blocks[s.at]) < len(b) {
		s.blocks[s.at] = make([]byte, 0, max(len(b), sortBlock))
	}
	block := &s.blocks[s.at]
	from := len(*block)
	*block = append(*block, b...)
	return (*block)[from:]
}

func (s *sorter) sort() {
	slices.SortStableFunc(s.records, func(a, b record) int { return a.compare(b.order) })
}

func (s *sorter) spill() error {
	s.sort()
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%04d.run", s.name, len(s.runs)))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<18)
	var head []byte
	for _, r := range s.records {
		head = appendInt(appendInt(head[:0], r.due), r.index)
		head = appendUint(appendInt(head, int64(r.try)), uint64(len(r.b)))
		if _, err := w.Write(head); err != nil {
			return err
		}
		if _, err := w.Write(r.b); err != nil {
			return err
		}
	}
	s.runs = append(s.runs, path)
	for i := range s.blocks {
		s.blocks[i] = s.blocks[i][:0]
	}
	s.at, s.size, s.records = 0, 0, s.records[:0]
	return w.Flush()
}

// each visits all records in order. They are valid until visit returns.
func (s *sorter) each(visit func(b []byte) error) error {
	if len(s.runs) == 0 {
		s.sort()
		for _, r := range s.records {
			if err := visit(r.b); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.blocks, s.records = nil, nil
	var merge runHeap
	defer func() {
		for _, r := range merge {
			r.f.Close()
		}
	}()
	for i, path := range s.runs {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		r := &run{f: f, r: bufio.NewReaderSize(f, 1<<16), age: i}
		merge = append(merge, r)
		if err := r.next(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	merge = slices.DeleteFunc(merge, func(r *run) bool {
		if r.done {
			r.f.Close()
		}
		return r.done
	})
	heap.Init(&merge)
	for len(merge) > 0 {
		r := merge[0]
		if err := visit(r.b); err != nil {
			return err
		}
		switch err := r.next(); {
		case errors.Is(err, io.EOF):
			r.f.Close()
			heap.Pop(&merge)
		case err != nil:
			return err
		default:
			heap.Fix(&merge, 0)
		}
	}
	return nil
}

// A run is a sorted file that is being merged.
type run struct {
	f    *os.File
	r    *bufio.Reader
	age  int // runs hold equal records in the order of their making
	at   order
	b    []byte
	done bool
}

// next reads the next record; io.EOF after the last.
func (r *run) next() error {
	due, err := binary.ReadVarint(r.r)
	if err != nil {
		r.done = errors.Is(err, io.EOF)
		return err
	}
	index, err := binary.ReadVarint(r.r)
	if err != nil {
		return torn(err)
	}
	try, err := binary.ReadVarint(r.r)
	if err != nil {
		return torn(err)
	}
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return torn(err)
	}
	r.at = order{due, index, int32(try)}
	r.b = slices.Grow(r.b[:0], int(n))[:n]
	_, err = io.ReadFull(r.r, r.b)
	return torn(err)
}

// torn keeps the end of a file in the middle of a record from looking like the
// end of the run.
func torn(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

type runHeap []*run

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	return firstNonZero(h[i].at.compare(h[j].at), h[i].age-h[j].age) < 0
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
