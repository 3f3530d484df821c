package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Files of other writers are read right or refused, never read wrong.
func TestForeignFiles(t *testing.T) {
	type whole struct {
		Index   int64  `parquet:"index"`
		Due     int64  `parquet:"due_ns"`
		Outcome string `parquet:"outcome"`
	}
	type broken struct {
		Index   int64   `parquet:"index"`
		Due     float64 `parquet:"due_ns"`
		Outcome string  `parquet:"outcome"`
	}
	path := filepath.Join(t.TempDir(), RequestsFile)
	open := func() error {
		r, err := Open(path)
		if err == nil {
			err = r.Close()
		}
		return err
	}
	write(t, path, []whole{{1, 2, "ok"}})
	if err := open(); err != nil {
		t.Error(err)
	}
	write(t, path, []broken{{1, 2, "ok"}})
	if err := open(); err == nil || !strings.Contains(err.Error(), "its column due_ns is of type DOUBLE") {
		t.Error(err)
	}
	write(t, path, []whole{{1, 2, "ok"}}, parquet.Compression(&parquet.Lz4Raw))
	if err := open(); err == nil || !strings.Contains(err.Error(), "LZ4") {
		t.Error(err)
	}
}

func write[T any](t *testing.T, path string, rows []T, o ...parquet.WriterOption) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](f, o...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
