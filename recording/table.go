package recording

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"
)

// A row group of a table holds at most this many rows, which are narrow.
const tableRows = 1 << 17

// A Table writes rows of one type to a Parquet file: anything beside requests
// that lasts. Columns are T's fields with parquet tags. The file appears under
// its name once it is whole. CreateTable makes one.
type Table[T any] struct {
	path string
	file *parquetFile[T]
}

// CreateTable begins a table.
func CreateTable[T any](path string) (*Table[T], error) {
	f, err := createParquet[T](path+".tmp", tableRows, pageSize)
	if err != nil {
		return nil, fmt.Errorf("recording: writing a table: %w", err)
	}
	return &Table[T]{path, f}, nil
}

// Write adds rows. It keeps nothing of them.
func (t *Table[T]) Write(rows ...T) error {
	if _, err := t.file.w.Write(rows); err != nil {
		return fmt.Errorf("recording: writing %s: %w", t.path, err)
	}
	return nil
}

// Close completes the file.
func (t *Table[T]) Close() error {
	if err := t.file.close(); err != nil {
		return fmt.Errorf("recording: writing %s: %w", t.path, err)
	}
	return os.Rename(t.path+".tmp", t.path)
}

// Drop gives the file up.
func (t *Table[T]) Drop() error { return ignoreClosed(t.file.drop()) }

// ReadTable reads a table, a row after another. A row is valid until the next.
func ReadTable[T any](path string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("recording: reading a table: %w", err))
			return
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil {
			_, err = parquet.OpenFile(f, info.Size()) // the reader below panics on what is not Parquet
		}
		if err != nil {
			yield(nil, fmt.Errorf("recording: reading %s: %w", path, err))
			return
		}
		r := parquet.NewGenericReader[T](f)
		defer r.Close()
		rows := make([]T, 256)
		for {
			n, err := r.Read(rows)
			for i := range rows[:n] {
				if !yield(&rows[i], nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("recording: reading %s: %w", path, err))
				return
			}
		}
	}
}
