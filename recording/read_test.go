package recording

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	notParquet := filepath.Join(dir, "not.parquet")
	must(t, os.WriteFile(notParquet, []byte("PAR1 and nothing more"), 0o666))
	other := filepath.Join(dir, "other.parquet")
	must(t, parquet.WriteFile(other, []struct {
		X int64 `parquet:"x"`
	}{{1}}))
	newer := filepath.Join(dir, "newer.parquet")
	must(t, WriteParquet(newer, Meta{Schema: "fermata.recording/2"}, Slice{}.Traces(0)))
	whole := t.TempDir()
	must(t, WriteParquet(filepath.Join(whole, RequestsFile), Meta{}, Slice{}.Traces(0)))
	beside := filepath.Join(whole, "result.json")
	must(t, os.WriteFile(beside, []byte("{}"), 0o666))
	for path, says := range map[string]string{
		beside:                     "no recording, but the folder that it is in: name " + whole,
		filepath.Join(dir, "none"): "there is no folder or file",
		dir:                        "holds no recording",
		notParquet:                 "no Parquet file, or not a whole one",
		other:                      "the column index is missing",
		newer:                      "a newer fermata wrote it",
	} {
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := Recover(path); err == nil {
			t.Errorf("Recover(%s): no error", path)
		}
	}
}

// A file with columns of a later version, and without some of ours, reads: what
// is not known is passed over, what is not there is absent.
func TestOtherColumns(t *testing.T) {
	type row struct {
		Later   string  `parquet:"a_later_column"`
		Index   int32   `parquet:"index"` // narrower than ours
		Due     int64   `parquet:"due_ns"`
		Outcome string  `parquet:"outcome"`
		Delta   []int64 `parquet:"delta_ns,list,optional"`
		Tokens  []int64 `parquet:"tokens,list,optional" parquet-element:",optional"` // wider than ours
		Lists   []int64 `parquet:"later_list,list"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	must(t, parquet.WriteFile(path, []row{{"x", 1, 5, "ok", []int64{7, 8}, []int64{1, 2}, nil}, {"y", 2, 6, "not_sent", nil, nil, []int64{1}}}))
	r, err := Open(path)
	must(t, err)
	defer r.Close()
	if r.Lists() != Times {
		t.Errorf("lists %b, want %b", r.Lists(), Times)
	}
	var got []Trace
	for tr := range r.Traces(AllColumns) {
		got = append(got, tr.Clone())
	}
	must(t, r.Err())
	if len(got) != 2 || got[0].Index != 1 || !slices.Equal(got[0].DeltaNs, []int64{7, 8}) || !slices.Equal(got[0].Tokens, []int32{1, 2}) || got[0].Read != nil {
		t.Fatalf("%+v", got)
	}
	if got[1].Outcome != NotSent || got[1].Len() != 0 || got[1].Sent.OK || got[1].HTTPStatus != 0 {
		t.Errorf("%+v", got[1])
	}
	if m := r.Meta(); m.Schema != "" || m.TimeScale != 1 {
		t.Errorf("meta %+v", m)
	}
	if samples, err := r.Samples(); err != nil || samples != nil {
		t.Errorf("samples %v, %v", samples, err)
	}
}

// Long lists cross pages and row groups, and only what is wanted is read.
func TestTraces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	const requests, tokens = 40, 60_000
	must(t, WriteParquet(path, Meta{}, benchTraces(requests, tokens)))
	r, err := Open(path)
	must(t, err)
	defer r.Close()
	if n := len(r.file.RowGroups()); n != 3 { // 17 requests are just below 2²⁰ arrivals
		t.Errorf("%d row groups, want 3", n)
	}
	for _, want := range []Columns{0, Times, Reads, Times | Errors, Channels | Bytes, AllColumns} {
		next, stop := iter.Pull(benchTraces(requests, tokens))
		n := 0
		for got := range r.Traces(want) {
			w, _ := next()
			n++
			if got.Index != w.Index || got.ResponseID != w.ResponseID || got.End != w.End {
				t.Fatalf("request %d: %+v", w.Index, got)
			}
			check := func(name string, bit Columns, same bool, length int) {
				if want&bit != 0 && !same || want&bit == 0 && length != 0 {
					t.Errorf("columns %05b, request %d: %s has %d values, equal %v", want, w.Index, name, length, same)
				}
			}
			times := Times
			if want != 0 {
				times = AllColumns
			}
			check("delta_ns", times, slices.Equal(got.DeltaNs, w.DeltaNs), len(got.DeltaNs))
			check("tokens", times, slices.Equal(got.Tokens, w.Tokens), len(got.Tokens))
			check("read", Reads, slices.Equal(got.Read, w.Read), len(got.Read))
			check("stamp_error_ns", Errors, slices.Equal(got.StampErrorNs, w.StampErrorNs), len(got.StampErrorNs))
			check("channel", Channels, slices.Equal(got.Channel, w.Channel), len(got.Channel))
			check("text_bytes", Bytes, slices.Equal(got.TextBytes, w.TextBytes), len(got.TextBytes))
		}
		stop()
		if must(t, r.Err()); n != requests {
			t.Errorf("%d traces, want %d", n, requests)
		}
	}
	n := 0
	for range r.Traces(Times) { // a loop may end early
		if n++; n == 3 {
			break
		}
	}
	must(t, r.Err())
}

// A file that is damaged anywhere gives an error or other values, never a panic.
func TestDamagedParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	must(t, WriteParquet(path, Meta{}, benchTraces(20, 50)))
	whole, err := os.ReadFile(path)
	must(t, err)
	failed := 0
	for at := 4; at < len(whole); at += 29 {
		b := slices.Clone(whole)
		b[at] ^= 0x55
		must(t, os.WriteFile(path, b, 0o666))
		r, err := Open(path)
		if err != nil {
			failed++
			continue
		}
		for range r.Traces(AllColumns) {
		}
		if r.Err() != nil {
			failed++
		}
		r.Close()
	}
	if failed == 0 {
		t.Error("no damage was noticed")
	}
}

func TestWriteParquetErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.parquet")
	for name, traces := range map[string]Slice{
		"in order of due time": {{Index: 1, Due: 2}, {Index: 0, Due: 1}},
		"in order":             {{Index: 1, Due: 2, Try: 1}, {Index: 1, Due: 2}},
		"differ in length":     {{Arrivals: Arrivals{DeltaNs: []int64{1}, Tokens: []int32{1}}}},
	} {
		if err := WriteParquet(path, Meta{}, traces.Traces(AllColumns)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names := folder(t, dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
	if err := WriteParquet(filepath.Join(dir, "none", "x"), Meta{}, Slice{}.Traces(0)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// The same traces give the same bytes, as a simulated run promises.
func TestSameBytes(t *testing.T) {
	var files [2][]byte
	for i := range files {
		path := filepath.Join(t.TempDir(), "x.parquet")
		must(t, WriteParquet(path, fullMeta(), goldenTraces().Traces(AllColumns)))
		var err error
		files[i], err = os.ReadFile(path)
		must(t, err)
	}
	if !slices.Equal(files[0], files[1]) {
		t.Error("two files of the same traces differ")
	}
}
