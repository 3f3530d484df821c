package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/metrics"
	"fermata/recording"
)

// The server fails every second request. All end well: what was tried again is
// told, and its time to first token counts from the first due time.
func TestRetriesAreTold(t *testing.T) {
	t.Parallel()
	done, rows, _ := ran(t, "{ttft: 2ms, gap: 1ms, tokens: max, fail: {every: 2, status: 503}}", map[string]string{
		"load.retries": "2", "schedule.kind": "all", "schedule.requests": "3", "workload.input": "12", "workload.output": "3", "seed": "5",
	})
	r := done.Result
	if r.Outcomes["ok"] != 3 || len(r.Outcomes) != 1 || r.Load.Measured != 3 || r.Load.Sent != 3 || r.Load.Retried != 1 || r.Load.EarlierTries != 2 || len(rows) != 5 {
		t.Fatalf("%d rows, outcomes %v, %+v", len(rows), r.Outcomes, r.Load)
	}
	var first, end, late int64 // of the request that was tried again, from its due time
	for i, tr := range rows {
		if tr.Try == 0 {
			late = max(late, tr.Sent.V-tr.Due)
		} else if rows[i-1].Index != tr.Index || rows[i-1].Try != tr.Try-1 || rows[i-1].Due != tr.Due || rows[i-1].Outcome != recording.HTTPError {
			t.Errorf("try %d of request %d follows %+v", tr.Try, tr.Index, rows[i-1])
		}
		if tr.Try == 2 {
			first, end = tr.FirstByte.V-tr.Due, tr.End.V-tr.Due
		}
	}
	// Two waits of at least three quarters of 0.5 s and of 1 s.
	if max := r.Metrics.TTFTDue.Max; max == nil || int64(*max) < first || int64(*max) > end || first < 1_125_000_000 {
		t.Errorf("the longest time to first token is %v ns, by the rows between %d and %d", max, first, end)
	}
	if max := r.Load.Lateness.Max; max == nil || int64(*max) != late {
		t.Errorf("lateness is up to %v ns, by first tries %d", max, late)
	}
	told := false
	for _, w := range r.Warnings {
		told = told || w.Code == "retried"
	}
	if !told {
		t.Errorf("warnings %+v", r.Warnings)
	}
}

// What a run cost is told from the recording: as many tokens as its rows have.
func TestSpentIsTold(t *testing.T) {
	t.Parallel()
	done, rows, _ := ran(t, "{ttft: 2ms, gap: 1ms, tokens: max, fail: {every: 3, status: 503}}", map[string]string{
		"load.retries": "0", "schedule.kind": "closed", "schedule.concurrency": "1", "schedule.requests": "900", "workload.input": "12", "workload.output": "3",
		"schedule.warmup": "4", "load.max_cost": "0.00025", "load.stop_if_failed": "90%", "seed": "5",
		"prices": `{currency: EUR, date: 2026-08-01, source: x, tokens: {input_per_million: "0.50", output_per_million: "1.50"}}`,
	})
	ok, prompts, answers := 0, int32(0), int32(0)
	for _, tr := range rows {
		if tr.Outcome == recording.OK {
			ok, prompts, answers = ok+1, prompts+tr.Prompt.Used.V, answers+tr.Output.Used.V
		}
	}
	// 12 · 0.5 + 3 · 1.5 = 10.5 millionths each, of which 23 are 241.5.
	if ok != 23 || prompts != 23*12 || answers != 23*3 {
		t.Errorf("%d ok of %d, %d and %d tokens", ok, len(rows), prompts, answers)
	}
	s := done.Result.Load.Spent
	if s == nil || s.Amount != "0.0002415" || s.Currency != "EUR" || s.Most != "0.00025" || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	if !done.End.Closed {
		t.Errorf("%+v", done.End)
	}
}

// What became of the data set stands in the result: five rows of which one is
// broken and one too long are asked three and a half times.
func TestDataSetIsTold(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte("prompt_tokens,output_tokens\n10,3\n20,3\nmany,3\n30,3\n900,3\n0,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, _, _ := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", map[string]string{
		"workload.dataset": file, "workload.skip_bad": "true", "workload.max_input": "100",
		"schedule.kind": "all", "schedule.requests": "10", "seed": "5",
	})
	want := &metrics.DataSet{
		Rows: 3, Rounds: 3, Unreadable: 1, Empty: 1,
		FirstUnreadable: `line 4: prompt_tokens must be a whole number of tokens up to 16777216, not "many"`,
		Filters:         &metrics.Filters{Rows: 4, Kept: 3, Dropped: map[string]int64{"max_input": 1}, InputBefore: 20, InputAfter: 20, OutputBefore: 3, OutputAfter: 3},
	}
	again, err := Judge(done.Dir, nil, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*metrics.Result{done.Result, again} {
		if d := cmp.Diff(want, r.DataSet); d != "" {
			t.Error(d)
		}
		codes := ""
		for _, w := range r.Warnings {
			codes += w.Code + " "
		}
		if !strings.Contains(codes, "data_repeated data_skipped") {
			t.Error(codes)
		}
	}
}

// Rounds through a data set are those of the requests that were due, however far
// ahead of them bodies were made.
func TestRoundsAreOfWhatWasDue(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte("prompt_tokens,output_tokens\n"+strings.Repeat("10,3\n", 12)), 0o600); err != nil {
		t.Fatal(err)
	}
	done, rows, _ := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", map[string]string{
		"workload.dataset": file, "schedule.rate": "100", "schedule.requests": "30", "schedule.warmup": "0", "schedule.drain": "quiet",
	})
	if d := done.Result.DataSet; len(rows) != 30 || d == nil || d.Rounds != 2 {
		t.Errorf("%d requests of 12 rows: %+v", len(rows), d)
	}
}
