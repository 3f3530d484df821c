package recording

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// A groupReader reads the traces of a row group.
type groupReader struct {
	scalars  []*scalarColumn
	notes    *notesColumn
	delta    *listColumn[int64]
	tokens   *listColumn[int32]
	read     *listColumn[int32]
	stampErr *listColumn[int64]
	channel  *listColumn[int8]
	bytes    *listColumn[int32]
}

// listLeaf finds the elements of a column of lists, whatever its writer called
// them.
func listLeaf(file *parquet.File, name string) (parquet.LeafColumn, bool) {
	for _, path := range file.Schema().Columns() {
		if path[0] == name {
			leaf, ok := file.Schema().Lookup(path...)
			return leaf, ok && leaf.MaxRepetitionLevel == 1
		}
	}
	return parquet.LeafColumn{}, false
}

func list[T int8 | int32 | int64](file *parquet.File, group parquet.RowGroup, wanted bool, name string) *listColumn[T] {
	leaf, ok := listLeaf(file, name)
	if !wanted || !ok {
		return nil
	}
	return openList[T](name, group.ColumnChunks()[leaf.ColumnIndex], leaf.MaxDefinitionLevel)
}

func openGroup(file *parquet.File, group parquet.RowGroup, want Columns) *groupReader {
	g := &groupReader{}
	for name, set := range scalarFields {
		if leaf, ok := file.Schema().Lookup(name); ok {
			g.scalars = append(g.scalars, openScalar(name, group.ColumnChunks()[leaf.ColumnIndex], set))
		}
	}
	if leaf, ok := listLeaf(file, "notes"); ok {
		g.notes = &notesColumn{name: "notes", pages: group.ColumnChunks()[leaf.ColumnIndex].Pages()}
	}
	g.delta = list[int64](file, group, want&Times != 0, "delta_ns")
	g.tokens = list[int32](file, group, want&Times != 0, "tokens")
	g.read = list[int32](file, group, want&Reads != 0, "read")
	g.stampErr = list[int64](file, group, want&Errors != 0, "stamp_error_ns")
	g.channel = list[int8](file, group, want&Channels != 0, "channel")
	g.bytes = list[int32](file, group, want&Bytes != 0, "text_bytes")
	return g
}

func (g *groupReader) close() {
	for _, c := range g.scalars {
		c.close()
	}
	if g.notes != nil {
		g.notes.close()
	}
	for _, c := range []*listColumn[int32]{g.tokens, g.read, g.bytes} {
		if c != nil {
			c.close()
		}
	}
	for _, c := range []*listColumn[int64]{g.delta, g.stampErr} {
		if c != nil {
			c.close()
		}
	}
	if g.channel != nil {
		g.channel.close()
	}
}

// readGroup hands the traces of a row group to yield; more is false once it has
// enough.
func readGroup(file *parquet.File, group parquet.RowGroup, want Columns, rows []Trace, buf []parquet.Value, yield func(Trace) bool) (more bool, err error) {
	var g *groupReader
	if err := guarded(func() error {
		g = openGroup(file, group, want)
		return nil
	}); err != nil {
		return false, err
	}
	defer g.close()
	for left := group.NumRows(); left > 0; {
		batch := rows[:min(left, int64(len(rows)))]
		if err := guarded(func() error { return g.fill(batch, buf) }); err != nil {
			return false, err
		}
		for i := range batch {
			if err := g.lists(&batch[i]); err != nil {
				return false, err
			}
			if !yield(batch[i]) {
				return false, nil
			}
		}
		left -= int64(len(batch))
	}
	return true, nil
}

// fill reads everything but the lists of arrivals.
func (g *groupReader) fill(rows []Trace, buf []parquet.Value) error {
	clear(rows)
	for _, c := range g.scalars {
		if err := c.fill(rows, buf); err != nil {
			return err
		}
	}
	if g.notes != nil {
		return g.notes.fill(rows)
	}
	return nil
}

// lists reads the wanted lists of the next row.
func (g *groupReader) lists(t *Trace) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errColumn, p)
		}
	}()
	return errors.Join(
		next(g.delta, &t.DeltaNs, g.delta, t),
		next(g.tokens, &t.Tokens, g.delta, t),
		next(g.read, &t.Read, g.delta, t),
		next(g.stampErr, &t.StampErrorNs, g.delta, t),
		next(g.channel, &t.Channel, g.delta, t),
		next(g.bytes, &t.TextBytes, g.delta, t))
}

// next reads one list into a field of t; all are as long as delta_ns.
func next[T int8 | int32 | int64](c *listColumn[T], field *[]T, delta *listColumn[int64], t *Trace) error {
	if c == nil {
		return nil
	}
	v, err := c.next()
	if err != nil {
		return err
	}
	if *field = v; delta != nil && len(v) != len(t.DeltaNs) {
		return fmt.Errorf("%w: request %d has %d values in %s and %d in delta_ns", errColumn, t.Index, len(v), c.name, len(t.DeltaNs))
	}
	return nil
}
