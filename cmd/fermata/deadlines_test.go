package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fermata/metrics"
	"fermata/recording"
)

// answerOf writes a recording of one answer, a prompt of 100 tokens, with tokens at
// these gaps in ms, the first from the due time.
func answerOf(t testing.TB, path string, gaps ...int64) {
	t.Helper()
	tr := recording.Trace{Phase: recording.Measured, Sent: recording.Some[int64](0), Outcome: recording.OK, FinishReason: "length"}
	var end int64
	for i, g := range gaps {
		tr.DeltaNs, tr.Tokens, tr.Read = append(tr.DeltaNs, g*1e6), append(tr.Tokens, 1), append(tr.Read, int32(i))
		tr.StampErrorNs, tr.Channel, tr.TextBytes = append(tr.StampErrorNs, 0), append(tr.Channel, 0), append(tr.TextBytes, 4)
		end += g * 1e6
	}
	tr.ArrivalSource = recording.ArrivalAssumed
	tr.End, tr.Prompt.Used, tr.Output.Used = recording.Some(end), recording.Some[int32](100), recording.Some(int32(len(gaps)))
	meta := recording.Meta{Tool: "test", TimeScale: 1, WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1e9), WindowWhy: "test"}
	if err := recording.WriteParquet(path, meta, recording.Slice{tr}.Traces(recording.AllColumns)); err != nil {
		t.Fatal(err)
	}
}

// steady is n gaps of so many ms and one of 150, after others.
func steady(gap int64, n int, before ...int64) []int64 {
	for range n {
		before = append(before, gap)
	}
	return append(before, 150)
}

// reported judges a recording by the command line.
func reported(t testing.TB, dir string, args ...string) metrics.Result {
	t.Helper()
	code, out, errs := fermata(t, dir, append([]string{"report", "-o", "json"}, args...)...)
	var r metrics.Result
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	return r
}

// The example of the paper: ten tokens 10 ms apart and an eleventh after 150 ms,
// beside ten 100 ms apart and the same, at a target gap of 100 ms. Met and missed
// were counted by hand from its algorithm 1.
func TestWorkedTables(t *testing.T) {
	dir := t.TempDir()
	type want struct{ met, missed int64 }
	check := func(name string, gaps []int64, deadlines string, variant string, w want) {
		t.Helper()
		answerOf(t, filepath.Join(dir, "one.parquet"), gaps...)
		r := reported(t, dir, "one.parquet", "--target-gap", "100ms", "--deadlines", deadlines)
		for _, f := range r.Fluidity {
			if f.Variant == variant && f.Carry == "unlimited" && (f.Edge == "" || f.Edge == "fit") {
				if f.Met != w.met || f.Missed != w.missed {
					t.Errorf("%s, %s: %d met, %d missed, want %+v", name, deadlines, f.Met, f.Missed, w)
				}
				return
			}
		}
		t.Errorf("%s, %s: no entry", name, deadlines)
	}
	// Decode only: the first token is the anchor of eleven gaps.
	check("A", steady(10, 10, 300), "fixed:1s", "decode", want{11, 0})
	check("B", steady(100, 10, 300), "fixed:1s", "decode", want{10, 1})

	// The first of the ten is the answer's first token. A file with slack says the
	// same as a form.
	file := "schema: fermata.deadlines/1\nshape: linear\ncurve: {a: %s, b: 1ms}\nslack: %s\n"
	for name, text := range map[string]string{"100.yaml": fmt.Sprintf(file, "0", "0s"), "300.yaml": fmt.Sprintf(file, "50ms", "150ms")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		deadlines []string
		b         want
	}{{[]string{"fixed:100ms", "100.yaml"}, want{10, 1}}, {[]string{"fixed:300ms", "300.yaml"}, want{11, 0}}} {
		for _, d := range c.deadlines {
			check("A", steady(10, 10), d, "first_token", want{11, 0})
			check("B", steady(100, 10), d, "first_token", c.b)
		}
	}

	// A realistic first token before the eleven gaps, D_p = 300 ms.
	for _, c := range []struct {
		ttft int64
		a, b want
	}{
		{250, want{12, 0}, want{12, 0}},
		{300, want{12, 0}, want{11, 1}},
		{310, want{11, 1}, want{10, 2}},
		{400, want{11, 2}, want{10, 3}},
		{650, want{11, 4}, want{10, 5}},
	} {
		for _, d := range []string{"fixed:300ms", "300.yaml"} {
			check(fmt.Sprint("A after ", c.ttft), steady(10, 10, c.ttft), d, "first_token", c.a)
			check(fmt.Sprint("B after ", c.ttft), steady(100, 10, c.ttft), d, "first_token", c.b)
		}
	}

	// Without starting anew after a miss, twenty more tokens in time would miss too.
	more := steady(100, 10, 300)
	for range 20 {
		more = append(more, 100)
	}
	check("B and twenty more", more, "fixed:300ms", "decode", want{30, 1})
}
