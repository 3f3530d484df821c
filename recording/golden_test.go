package recording

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenTraces are those of testdata/recording-1.parquet.
func goldenTraces() Slice {
	full, bare, zero := fullTrace(), bareTrace(), zeroTrace()
	full.Turns = Maybe[int32]{} // the column came later
	ok := Trace{
		Index: 10, Phase: Drain, Due: 2_000, Sent: Some[int64](2_010), FirstByte: Some[int64](2_900), End: Some[int64](4_000),
		Outcome: OK, HTTPStatus: 200, FinishReason: "stop",
		Arrivals: Arrivals{
			DeltaNs: []int64{1_000, 500}, Tokens: []int32{1, 1}, Read: []int32{1, 2}, StampErrorNs: []int64{0, 0},
			Channel: []int8{0, 0}, TextBytes: []int32{4, 4},
		}, ArrivalSource: ArrivalAssumed,
	}
	return Slice{full, bare, zero, ok}
}

var update = flag.Bool("update", false, "write golden files that are missing; a recording of a released format is never rewritten")

// Recordings of the first released format read for ever.
func TestGoldenParquet(t *testing.T) {
	path := filepath.Join("testdata", "recording-1.parquet")
	if _, err := os.Stat(path); *update && errors.Is(err, fs.ErrNotExist) {
		must(t, WriteParquet(path, fullMeta(), goldenTraces().Traces(AllColumns)))
	}
	meta, got := readAll(t, path)
	if d := cmp.Diff(fullMeta(), meta); d != "" {
		t.Errorf("meta (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Trace(goldenTraces()), got, equateEmpty); d != "" {
		t.Errorf("traces (-want +got):\n%s", d)
	}
}

// The segment that docs/journal.md takes apart byte by byte is what a recorder
// writes.
func TestGoldenSegment(t *testing.T) {
	dir := t.TempDir()
	run := [16]byte{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff}
	r, err := create(dir, Meta{
		Schema: SchemaName, RunYAML: "seed: 1\n", Tool: "fermata 1", ZeroWallNs: Some[int64](1_700_000_000_000_000_000),
		TimeScale: 1, Labels: map[string]string{"model": "m"},
	},
		journalOptions{size: 4096, run: run, clocks: func() (int64, int64) { return 1_700_000_000_000_000_000, 1_000 }})
	must(t, err)
	tr := Trace{Index: 300, Phase: Measured, Due: 1_000_000_000, Prompt: Count{Intended: Some[int32](512)}, Output: Count{Intended: Some[int32](128)}}
	must(t, r.Begin(&tr))
	must(t, r.Sent(300, 0, 1_000_050_000, Some[int64](1_000_030_000)))
	must(t, r.FirstByte(300, 0, 1_180_000_000))
	must(t, r.Arrive(300, 0, Arrival{At: 1_180_000_000, StampErrorNs: 50_000, Tokens: -1, Read: 1}))
	must(t, r.Arrive(300, 0, Arrival{At: 1_200_000_000, StampErrorNs: 50_000, Tokens: -1, Read: 2, TextBytes: 5, Text: true}))
	must(t, r.Arrive(300, 0, Arrival{At: 1_220_000_000, StampErrorNs: 50_000, Tokens: 2, Read: 3, TextBytes: 9, Channel: ChannelReasoning, Text: true}))
	tr.Outcome, tr.HTTPStatus, tr.FinishReason, tr.End = OK, 200, "stop", Some[int64](1_220_100_000)
	tr.Output.Reported = Some[int32](3)
	tr.Output.Settle(false)
	tr.Arrivals = Arrivals{
		DeltaNs: []int64{200_000_000, 20_000_000}, Tokens: []int32{1, 2}, Read: []int32{2, 3},
		StampErrorNs: []int64{50_000, 50_000}, Channel: []int8{0, 1}, TextBytes: []int32{5, 9},
	}
	must(t, r.End(&tr))
	must(t, r.Text(300, 0, "Hi", "Hello", ""))
	must(t, r.Sample(Sample{TimeNs: 1_000_000_000, Due: 1, Sent: 1, InFlight: 1, Tokens: 3, CPU: 0.5, CoresFree: 1.5}))
	must(t, r.Abandon())
	got, err := os.ReadFile(filepath.Join(dir, journalFolder, segmentName(0)))
	must(t, err)

	doc, err := os.ReadFile(filepath.Join("..", "docs", "journal.md"))
	must(t, err)
	_, example, _ := strings.Cut(string(doc), "```hex\n")
	example, _, _ = strings.Cut(example, "```")
	var want []byte
	for line := range strings.Lines(example) {
		line, _, _ = strings.Cut(line, "|")
		b, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
		if err != nil {
			t.Fatalf("docs/journal.md: %q: %v", line, err)
		}
		want = append(want, b...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the segment is\n%s\nand docs/journal.md says\n%s", hex.Dump(got), hex.Dump(want))
	}
}
