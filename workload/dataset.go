package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// A dataset is a file of prompts or lengths. Of prompts it keeps only where they
// stand, and reads them again when they are asked.
type dataset struct {
	table
	file    *os.File
	name    string
	shape   string
	parse   func([]byte) (item, error)
	parquet *parquetFile // where the file is Parquet

	hashed    bool  // rows name the blocks of their prompts
	synthetic bool  // no row has text
	estimated int64 // rows whose lengths are estimated from text
	skips     Skips
	filter    filter
	tally     tally
	zero      int64 // of wall-clock times: the first row's
	clock     bool
}

// Skips are rows of a data set that cannot be asked.
type Skips struct {
	Bad      int64  // could not be read
	FirstBad string // the first of them: which line, and why
	Empty    int64  // nothing to ask: conversations without a question, trace rows of requests that failed
}

// openDataset reads a data set through once.
func openDataset(o Options) (*dataset, error) {
	f, err := os.Open(o.Dataset)
	if err != nil {
		return nil, err
	}
	d := &dataset{file: f, name: o.Dataset, filter: newFilter(o), synthetic: true}
	if err := d.read(o); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", o.Dataset, err)
	}
	return d, nil
}

func (d *dataset) read(o Options) error {
	if info, err := d.file.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return errors.New("a data set is read several times, so that it must be a file on disk, not a pipe")
	}
	if err := d.scan(o); err != nil {
		return err
	}
	if d.rows() == 0 {
		return d.nothing()
	}
	if d.due.Len() > 0 {
		d.sort()
	}
	d.group()
	return nil
}

func (d *dataset) nothing() error {
	switch t := &d.tally; {
	case t.rows > 0:
		return fmt.Errorf("the filters leave none of its %d requests; widen %s", t.rows, d.filter.names())
	case d.skips.Bad > 0:
		return fmt.Errorf("none of its %d rows can be read; the first: %s", d.skips.Bad, d.skips.FirstBad)
	case d.skips.Empty > 0:
		return fmt.Errorf("none of its %d rows has anything to ask", d.skips.Empty)
	}
	return errors.New("no prompts in it")
}

// scan finds the container by the first bytes, then takes every row.
func (d *dataset) scan(o Options) error {
	in := bufio.NewReader(d.file)
	head, err := in.Peek(1 << 10)
	if err != nil && err != io.EOF {
		return err
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	switch first := bytes.TrimSpace(head); {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return d.scanParquet(o)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return errors.New("it is compressed; unpack it first")
	case bytes.HasPrefix(first, []byte("[")) && isArray(first[1:]):
		return splitArray(in, d.objects(o))
	case bytes.HasPrefix(first, []byte("{")), objectParsers[o.Format] != nil:
		return splitLines(in, d.objects(o))
	}
	return splitLines(in, d.lines(o))
}

// isArray tells an array of objects by what follows its bracket.
func isArray(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return len(rest) > 0 && (rest[0] == '{' || rest[0] == ']')
}

// objects takes elements that are JSON objects; the first decides the format.
func (d *dataset) objects(o Options) func(element) error {
	var t timing
	d.shape = o.Format
	return func(e element) error {
		if e.err != nil {
			return d.bad(o, e.bad(e.err))
		}
		if d.parse == nil {
			if d.shape == "" {
				if d.shape = objectShape(e.data); o.SkipBad && d.shape == ownJSONL {
					// A first line that is broken decides nothing.
					if _, err := parseOwn(e.data); err != nil {
						d.shape = ""
						return d.bad(o, e.bad(err))
					}
				}
			}
			if d.parse = objectParsers[d.shape]; d.parse == nil {
				return fmt.Errorf("it holds JSON, and %s is a format of CSV files", d.shape)
			}
		}
		it, err := d.parse(e.data)
		if err == nil && d.shape == ownJSONL {
			err = d.checkAttached(it.messages)
		}
		if err != nil {
			return d.bad(o, e.bad(err))
		}
		return d.take(o, &t, it, placeOf(e), e.line)
	}
}

// lines takes the lines of CSV; the header decides the format.
func (d *dataset) lines(o Options) func(element) error {
	var t timing
	var columns csvColumns
	return func(e element) error {
		if columns.shape == nil {
			if e.err != nil {
				return fmt.Errorf("line %d: %w", e.line, e.err)
			}
			var err error
			if columns, err = csvHeader(e.data); err != nil {
				return fmt.Errorf("line %d: %w", e.line, err)
			}
			d.shape, d.clock = columns.shape.name, columns.shape.clock
			if o.Format != "" && o.Format != d.shape {
				return fmt.Errorf("line %d: this is the header of format %s, not of %s", e.line, d.shape, o.Format)
			}
			return nil
		}
		err := e.err
		var it item
		if err == nil {
			it, err = columns.parse(e.data)
		}
		if err != nil {
			return d.bad(o, e.bad(err))
		}
		return d.take(o, &t, it, 0, e.line)
	}
}

// bad counts a row that cannot be read, or ends the reading.
func (d *dataset) bad(o Options, err error) error {
	if !o.SkipBad {
		return err
	}
	d.skips.Bad++
	d.skips.FirstBad = cmp.Or(d.skips.FirstBad, err.Error())
	return nil
}

// timing remembers whether rows have times.
type timing struct {
	line  int64 // of the first row; 0 before it
	timed bool
}

// take adds a row.
func (d *dataset) take(o Options, t *timing, it item, at place, line int64) error {
	switch {
	case t.line == 0:
		t.line, t.timed, d.zero = line, it.timed, it.due
	case it.timed != t.timed:
		with, without := t.line, line
		if it.timed {
			with, without = without, with
		}
		err := fmt.Errorf("line %d has at_s and line %d has none: either all lines have it or none", with, without)
		if o.SkipBad {
			d.skips.Bad++
			d.skips.FirstBad = cmp.Or(d.skips.FirstBad, err.Error())
			return nil
		}
		return err
	}
	if it.empty {
		d.skips.Empty++
		return nil
	}
	if !d.keep(o, it, at) {
		return nil
	}
	d.grouping.add(d.rows()-1, it.session)
	if o.Turns < 2 {
		return nil
	}
	if !d.manyTurns() {
		return fmt.Errorf("turns: the format %s has no conversations; in JSONL of our own, rows of the same session are one", d.shape)
	}
	d.parts.Add(0)
	for i, more := range it.more[:min(len(it.more), o.Turns-1)] {
		if !d.keep(o, more, at) {
			break // what follows answers it
		}
		d.parts.Add(int64(i + 1))
		d.grouping.follow(d.rows() - 1)
	}
	return nil
}

// manyTurns says that an element of the file may be a conversation.
func (d *dataset) manyTurns() bool { return d.shape == shareGPT || d.shape == lmsysChat }

// keep adds a row unless a filter drops it.
func (d *dataset) keep(o Options, it item, at place) bool {
	p := it.lengths()
	if p.output == 0 {
		if n, ok := o.Output.Fixed(); ok {
			p.output = int32(n)
		}
	}
	why := d.filter.why(p)
	if d.filter.any() {
		d.tally.add(p, why)
	}
	if why != passes {
		return false
	}
	if it.text() {
		d.synthetic = false
		if it.promptTokens == 0 || it.outputTokens == 0 && it.estimateOutput > 0 {
			d.estimated++
		}
	}
	d.lengths.add(p)
	if it.timed {
		d.due.Add(it.due)
	}
	if d.hashed = d.hashed || it.hashes != nil; d.parse != nil || d.parquet != nil {
		d.places.add(at)
	}
	return true
}

// item is row k, read again.
func (d *dataset) item(k int) (item, error) {
	it, err := d.element(k)
	if err != nil || d.parts.Len() == 0 || d.parts.At(k) == 0 {
		return it, err
	}
	if part := int(d.parts.At(k)); part <= len(it.more) {
		return it.more[part-1], nil
	}
	return it, fmt.Errorf("%s was changed while it was being used", d.name)
}

// element reads the element of row k again. Rows of lengths alone need no file.
func (d *dataset) element(k int) (item, error) {
	p := d.lengths.at(k)
	switch {
	case d.parquet != nil:
		return d.parquet.item(int64(d.places.at(k)))
	case d.parse == nil:
		return item{promptTokens: p.input, outputTokens: p.output}, nil
	}
	at := d.places.at(k)
	data := make([]byte, at.size())
	if _, err := d.file.ReadAt(data, at.offset()); err != nil {
		return item{}, fmt.Errorf("reading %s again: %w", d.name, err)
	}
	it, err := d.parse(data)
	if err != nil {
		return item{}, fmt.Errorf("%s was changed while it was being used: the row at byte %d: %w", d.name, at.offset(), err)
	}
	return it, nil
}

// times gives due time i in order, from the first row where the file has those of a
// clock on a wall, else from the trace's own zero. The function is for one goroutine.
func (d *dataset) times() func(i int) int64 {
	due := d.table.times()
	if !d.clock {
		return due
	}
	zero := min(d.zero, due(0))
	return func(i int) int64 { return due(i) - zero }
}

// medianInput is the median length of the rows' prompts.
func (d *dataset) medianInput() int32 {
	counts := map[int32]int64{}
	length := d.lengths.reader()
	for i := range d.rows() {
		counts[length(i).input]++
	}
	return int32(median(counts))
}

// readPairs reads the lengths in a file of any format; take is the length that
// every row must have.
func readPairs(name string, take func(pair) int32) ([]pair, error) {
	d, err := openDataset(Options{Dataset: name})
	if err != nil {
		return nil, err
	}
	defer d.file.Close()
	pairs := make([]pair, d.rows())
	for i := range pairs {
		pairs[i] = d.lengths.at(i)
		if take(pairs[i]) == 0 {
			return nil, fmt.Errorf("%s: row %d does not say the length", name, i+1)
		}
	}
	// The order of a file is its own business: the same rows draw the same.
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.output, b.output)) })
	return pairs, nil
}

// list joins names with commas and a last "or".
func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
