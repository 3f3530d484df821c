package experiment

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"fermata/recording"
)

// played runs the settings against a server that answers at once, and gives the
// recording's rows.
func played(t *testing.T, settings map[string]string) []recording.Trace {
	t.Helper()
	_, rows, _ := ran(t, "{ttft: 1ms, gap: 1ms, per_chunk: 200, tokens: max}", settings)
	return rows
}

func table(t *testing.T, name string, rows int) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "workload", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1 : rows+1]
}

func number(t *testing.T, text string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// A published trace is played row for row: its moments (divided by the speed-up,
// to the ns), its prompts and its answers, as the server counts them.
func TestPublishedTraceIsPlayed(t *testing.T) {
	const rows, speedup = 150, 40
	want := table(t, "azure_2023_conv.csv", rows)
	got := played(t, map[string]string{
		"workload.dataset":  filepath.Join("..", "workload", "testdata", "azure_2023_conv.csv"),
		"schedule.speedup":  strconv.Itoa(speedup),
		"schedule.requests": strconv.Itoa(rows),
	})
	measured := 0
	for i, tr := range got {
		if tr.Phase != recording.Measured {
			continue
		}
		measured++
		at := func(row int) time.Time {
			when, err := time.Parse("2006-01-02 15:04:05.0000000", want[row][0])
			if err != nil {
				t.Fatal(err)
			}
			return when
		}
		// Truncated or rounded: half a ns either way is not the point.
		if due := int64(at(i).Sub(at(0))) / speedup; tr.Due < due || tr.Due > due+1 {
			t.Errorf("row %d is due at %d ns, want %d", i, tr.Due, due)
		}
		if tr.Outcome != recording.OK || tr.Prompt.Reported.V != number(t, want[i][1]) || tr.Output.Reported.V != number(t, want[i][2]) {
			t.Errorf("row %d: %s, %d prompt and %d answer tokens, want %s and %s", i, tr.Outcome, tr.Prompt.Reported.V, tr.Output.Reported.V, want[i][1], want[i][2])
		}
	}
	if measured != rows {
		t.Errorf("%d rows were measured, want %d", measured, rows)
	}
}

// Lengths without moments come at the rate that is asked for, pair by pair.
func TestPublishedLengthsArePlayed(t *testing.T) {
	const rows = 80
	want := table(t, "sharegpt_lengths.csv", rows)
	got := played(t, map[string]string{
		"workload.dataset": filepath.Join("..", "workload", "testdata", "sharegpt_lengths.csv"),
		"schedule.rate":    "100", "schedule.requests": strconv.Itoa(rows), "schedule.warmup": "0", "schedule.drain": "quiet", "seed": "5",
	})
	if len(got) != rows {
		t.Fatalf("%d requests, want %d", len(got), rows)
	}
	for i, tr := range got {
		if tr.Outcome != recording.OK || tr.Prompt.Reported.V != number(t, want[i][0]) || tr.Output.Reported.V != number(t, want[i][1]) {
			t.Errorf("request %d: %s, %d prompt and %d answer tokens, want %s and %s", i, tr.Outcome, tr.Prompt.Reported.V, tr.Output.Reported.V, want[i][0], want[i][1])
		}
	}
}
