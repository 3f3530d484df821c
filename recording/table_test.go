package recording_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/recording"
)

type note struct {
	Page  int64   `parquet:"page"`
	Words []int64 `parquet:"words,list"`
	Mark  *int32  `parquet:"mark,optional"`
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.parquet")
	table, err := recording.CreateTable[note](path)
	if err != nil {
		t.Fatal(err)
	}
	mark := int32(7)
	want := make([]note, 1000)
	for i := range want {
		want[i].Page = int64(i)
		for w := range i % 4 {
			want[i].Words = append(want[i].Words, int64(i*w))
		}
		if i%3 == 0 {
			want[i].Mark = &mark
		}
	}
	if err := table.Write(want[:300]...); err != nil {
		t.Fatal(err)
	}
	for _, row := range want[300:] {
		if err := table.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the table has its name before it is whole")
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	i := 0
	for got, err := range recording.ReadTable[note](path) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Words) == 0 {
			got.Words = nil
		}
		if d := cmp.Diff(want[i], *got); d != "" {
			t.Fatalf("row %d (-want +got):\n%s", i, d)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d rows, want %d", i, len(want))
	}
}

func TestTableDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.parquet")
	if err := os.WriteFile(path, []byte("PAR1 is not enough"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "x"} {
		n := 0
		for _, err := range recording.ReadTable[note](name) {
			if n++; err == nil {
				t.Errorf("%s: a row instead of an error", name)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d errors, want 1", name, n)
		}
	}
}
