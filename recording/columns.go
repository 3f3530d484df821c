package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

var errColumn = errors.New("the file is damaged")

// A listColumn reads a column of lists in one row group, page by page. Pages are
// decoded at once, and a row is a piece of its page wherever it can be.
type listColumn[T int8 | int32 | int64] struct {
	name     string
	pages    parquet.Pages
	page     parquet.Page
	maxDef   byte
	rep, def []byte
	values   []T // of the page, without those that are not there
	level    int // place of the next row in rep and def
	value    int // and in values
	whole    []T // holds the values of a page, where they need converting
	carry    []T // holds a row that may go on in the next page
	dict     []T
}

func openList[T int8 | int32 | int64](name string, chunk parquet.ColumnChunk, maxDef int) *listColumn[T] {
	return &listColumn[T]{name: name, pages: chunk.Pages(), maxDef: byte(maxDef)}
}

func (c *listColumn[T]) close() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	c.pages.Close()
}

// next is the list of the next row, valid until the call after.
func (c *listColumn[T]) next() ([]T, error) {
	if c.level == len(c.rep) {
		if err := c.load(); err != nil {
			return nil, c.fail(err)
		}
	}
	row, err := c.piece()
	if err != nil || c.level < len(c.rep) {
		return row, err
	}
	// The last row of a page may go on in the next one.
	c.carry = append(c.carry[:0], row...)
	for c.level == len(c.rep) {
		err := c.load()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.fail(err)
		}
		if c.rep[0] == 0 {
			break
		}
		row, err := c.piece()
		if err != nil {
			return nil, err
		}
		c.carry = append(c.carry, row...)
	}
	return c.carry, nil
}

// piece is the part of a row that stands in the current page.
func (c *listColumn[T]) piece() ([]T, error) {
	n := bytes.IndexByte(c.rep[c.level+1:], 0) + 1
	if n == 0 {
		n = len(c.rep) - c.level
	}
	def := c.def[c.level : c.level+n]
	c.level += n
	if n == 1 && def[0] != c.maxDef {
		return nil, nil // an empty list
	}
	if bytes.Count(def, []byte{c.maxDef}) != n || c.value+n > len(c.values) {
		return nil, c.fail(errors.New("a list has an element that is null"))
	}
	c.value += n
	return c.values[c.value-n : c.value : c.value], nil
}

func (c *listColumn[T]) fail(err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("it has fewer rows than the others")
	}
	return fmt.Errorf("%w: column %s: %w", errColumn, c.name, err)
}

// load goes on to the next page that has values.
func (c *listColumn[T]) load() error {
	for {
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		c.rep, c.def, c.level, c.value = nil, nil, 0, 0
		page, err := c.pages.ReadPage()
		if err != nil {
			return err
		}
		c.page, c.rep, c.def = page, page.RepetitionLevels(), page.DefinitionLevels()
		if len(c.rep) != len(c.def) {
			return errors.New("its levels do not match")
		}
		if len(c.rep) > 0 {
			return c.decode(page)
		}
	}
}

// decode finds the values of a page.
func (c *listColumn[T]) decode(page parquet.Page) error {
	data := page.Data()
	if d := page.Dictionary(); d != nil {
		if err := c.lookUp(d, data.Int32()); err != nil {
			return err
		}
		c.values = c.whole
		return nil
	}
	values, shared, err := typed(data, c.whole[:0])
	c.values = values
	if err == nil && !shared {
		c.whole = values
	}
	return err
}

// lookUp fills whole with the values that indexes name.
func (c *listColumn[T]) lookUp(d parquet.Dictionary, indexes []int32) error {
	if c.dict == nil {
		values, shared, err := typed(d.Page().Data(), c.dict)
		if err != nil {
			return err
		}
		if shared {
			values = append([]T{}, values...)
		}
		c.dict = values
	}
	if cap(c.whole) < len(indexes) {
		c.whole = make([]T, len(indexes))
	}
	c.whole = c.whole[:len(indexes)]
	for i, at := range indexes {
		if uint32(at) >= uint32(len(c.dict)) {
			return errors.New("an index is outside of its dictionary")
		}
		c.whole[i] = c.dict[at]
	}
	return nil
}

// typed gives the values of a page as T: the page's own memory where the types
// agree, else converted and appended to buf.
func typed[T int8 | int32 | int64](data encoding.Values, buf []T) (values []T, shared bool, err error) {
	switch data.Kind() {
	case encoding.Int64:
		if same, ok := any(data.Int64()).([]T); ok {
			return same, true, nil
		}
		for _, v := range data.Int64() {
			buf = append(buf, T(v))
		}
	case encoding.Int32:
		if same, ok := any(data.Int32()).([]T); ok {
			return same, true, nil
		}
		for _, v := range data.Int32() {
			buf = append(buf, T(v))
		}
	default:
		return nil, false, fmt.Errorf("it holds %v instead of integers", data.Kind())
	}
	return buf, false, nil
}

// A scalarColumn reads a flat column, a page's values at a time.
type scalarColumn struct {
	name   string
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	set    func(t *Trace, v parquet.Value, last *string)
	last   string // the string before, which most often is the same again
}

func openScalar(name string, chunk parquet.ColumnChunk, set func(*Trace, parquet.Value, *string)) *scalarColumn {
	return &scalarColumn{name: name, pages: chunk.Pages(), set: set}
}

func (c *scalarColumn) close() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	c.pages.Close()
}

// fill sets the column's field in all rows; buf is as long as rows.
func (c *scalarColumn) fill(rows []Trace, buf []parquet.Value) error {
	for done := 0; done < len(rows); {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				err = errors.New("it has fewer rows than the others")
			}
			if err != nil {
				return fmt.Errorf("%w: column %s: %w", errColumn, c.name, err)
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(buf[:len(rows)-done])
		for i, v := range buf[:n] {
			if !v.IsNull() {
				c.set(&rows[done+i], v, &c.last)
			}
		}
		done += n
		if errors.Is(err, io.EOF) {
			parquet.Release(c.page)
			c.page, c.values, err = nil, nil, nil
		}
		if err != nil {
			return fmt.Errorf("%w: column %s: %w", errColumn, c.name, err)
		}
	}
	return nil
}

// integer is the value of an integer column of any width.
func integer(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// text is the value of a string column; it shares memory with the one before
// where they are equal.
func text(v parquet.Value, last *string) string {
	if b := v.ByteArray(); string(b) != *last {
		*last = string(b)
	}
	return *last
}

// The setters of a kind of field each.
func setWide(field func(*Trace) *int64) func(*Trace, parquet.Value, *string) {
	return func(t *Trace, v parquet.Value, _ *string) { *field(t) = integer(v) }
}

func setNarrow(field func(*Trace) *int32) func(*Trace, parquet.Value, *string) {
	return func(t *Trace, v parquet.Value, _ *string) { *field(t) = int32(integer(v)) }
}

func setMaybeWide(field func(*Trace) *Maybe[int64]) func(*Trace, parquet.Value, *string) {
	return func(t *Trace, v parquet.Value, _ *string) { *field(t) = Some(integer(v)) }
}

func setMaybeNarrow(field func(*Trace) *Maybe[int32]) func(*Trace, parquet.Value, *string) {
	return func(t *Trace, v parquet.Value, _ *string) { *field(t) = Some(int32(integer(v))) }
}

func setText[T ~string](field func(*Trace) *T) func(*Trace, parquet.Value, *string) {
	return func(t *Trace, v parquet.Value, last *string) { *field(t) = T(text(v, last)) }
}

// scalarFields says where the value of each flat column belongs.
var scalarFields = map[string]func(*Trace, parquet.Value, *string){
	"index":                  setWide(func(t *Trace) *int64 { return &t.Index }),
	"try":                    setNarrow(func(t *Trace) *int32 { return &t.Try }),
	"session":                setText(func(t *Trace) *string { return &t.Session }),
	"turn":                   setNarrow(func(t *Trace) *int32 { return &t.Turn }),
	"turns":                  setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Turns }),
	"phase":                  setText(func(t *Trace) *Phase { return &t.Phase }),
	"agent":                  setText(func(t *Trace) *string { return &t.Agent }),
	"target":                 setText(func(t *Trace) *string { return &t.Target }),
	"due_ns":                 setWide(func(t *Trace) *int64 { return &t.Due }),
	"sent_ns":                setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.Sent }),
	"connected_ns":           setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.Connected }),
	"first_byte_ns":          setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.FirstByte }),
	"end_ns":                 setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.End }),
	"outcome":                setText(func(t *Trace) *Outcome { return &t.Outcome }),
	"failed_at":              setText(func(t *Trace) *Step { return &t.FailedAt }),
	"http_status":            setNarrow(func(t *Trace) *int32 { return &t.HTTPStatus }),
	"error":                  setText(func(t *Trace) *string { return &t.Error }),
	"finish_reason":          setText(func(t *Trace) *string { return &t.FinishReason }),
	"response_id":            setText(func(t *Trace) *string { return &t.ResponseID }),
	"prompt_tokens":          setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Prompt.Used }),
	"output_tokens":          setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Output.Used }),
	"cached_tokens":          setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Cached }),
	"reasoning_tokens":       setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Reasoning }),
	"prompt_tokens_intended": setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Prompt.Intended }),
	"prompt_tokens_reported": setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Prompt.Reported }),
	"prompt_tokens_counted":  setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Prompt.Counted }),
	"output_tokens_intended": setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Output.Intended }),
	"output_tokens_reported": setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Output.Reported }),
	"output_tokens_counted":  setMaybeNarrow(func(t *Trace) *Maybe[int32] { return &t.Output.Counted }),
	"prompt_tokens_source":   setText(func(t *Trace) *string { return &t.Prompt.Source }),
	"output_tokens_source":   setText(func(t *Trace) *string { return &t.Output.Source }),
	"server_received_ns":     setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.ServerReceived }),
	"server_queue_ns":        setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.ServerQueue }),
	"server_prefill_ns":      setMaybeWide(func(t *Trace) *Maybe[int64] { return &t.ServerPrefill }),
	"slow":                   func(t *Trace, v parquet.Value, _ *string) { t.Slow = Some(v.Boolean()) },
	"check":                  setText(func(t *Trace) *string { return &t.Check }),
	"check_detail":           setText(func(t *Trace) *string { return &t.CheckDetail }),
	"arrival_tokens_source":  setText(func(t *Trace) *string { return &t.ArrivalSource }),
}

// A notesColumn reads the lists of texts. They are short and mostly empty.
type notesColumn struct {
	name   string
	pages  parquet.Pages
	page   parquet.Page
	values []parquet.Value // of the page
	at     int
}

func (c *notesColumn) close() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	c.pages.Close()
}

func (c *notesColumn) load() error {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	n := int(page.NumValues())
	c.page, c.at = page, 0
	c.values = append(c.values[:0], make([]parquet.Value, n)...)
	n, err = page.Values().ReadValues(c.values)
	c.values = c.values[:n]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func (c *notesColumn) fill(rows []Trace) error {
	for i := range rows {
		for first := true; ; first = false {
			for c.at == len(c.values) {
				err := c.load()
				if errors.Is(err, io.EOF) && !first {
					return nil
				}
				if err != nil {
					return fmt.Errorf("%w: column %s: %w", errColumn, c.name, err)
				}
			}
			v := c.values[c.at]
			if v.RepetitionLevel() == 0 && !first {
				break
			}
			if c.at++; !v.IsNull() {
				rows[i].Notes = append(rows[i].Notes, string(v.ByteArray()))
			}
		}
	}
	return nil
}
