package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/serve"
	"fermata/spec"
)

// talked runs conversations against a server that fails every fifth request.
func talked(t testing.TB, settings map[string]string) (*Done, []recording.Trace, []string) {
	t.Helper()
	return ran(t, "{ttft: 2ms, gap: 1ms, tokens: max, fail: {every: 5}}", settings)
}

// ran is a run against a server whose model m answers as model says: its result,
// its rows and what it said.
func ran(t testing.TB, model string, settings map[string]string) (*Done, []recording.Trace, []string) {
	t.Helper()
	engine, err := serve.NewScript("test.yaml", []byte("models: {m: "+model+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve.New(engine, serve.Options{}).Serve(ctx, ln) }()
	defer func() { stop(); <-served }()
	sets := []conf.Setting{{Path: "target.url", Value: "http://" + ln.Addr().String()}, {Path: "target.model", Value: "m"}}
	for path, value := range settings {
		sets = append(sets, conf.Setting{Path: path, Value: value})
	}
	s, err := spec.Read("", nil, sets)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	var said []string
	done, err := Run(t.Context(), s, Options{Out: dir, Version: "test", Say: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var rows []recording.Trace
	for tr := range rec.Traces(0) {
		rows = append(rows, tr.Clone())
	}
	return done, rows, said
}

// Sessions follow from the recording alone, and N requests are N measured turns.
func TestSessionsAreCounted(t *testing.T) {
	for _, settings := range []map[string]string{
		{"schedule.rate": "60", "schedule.drain": "quiet"},
		{"schedule.concurrency": "3", "schedule.think": "exponential:2ms"},
	} {
		settings["workload.turns"], settings["workload.input"], settings["workload.output"] = "4", "12", "3"
		settings["schedule.requests"], settings["schedule.warmup"] = "40", "8"
		done, rows, _ := talked(t, settings)
		want, failed := metrics.Sessions{}, int64(0)
		seen := map[string]int32{}
		for _, tr := range rows {
			if tr.Turns != recording.Some[int32](4) || tr.Turn != seen[tr.Session] {
				t.Errorf("request %d is turn %d of %v, want turn %d", tr.Index, tr.Turn, tr.Turns, seen[tr.Session])
			}
			if seen[tr.Session]++; tr.Phase != recording.Measured {
				continue
			}
			if tr.Turn == 0 {
				want.Started++
			}
			if tr.Outcome == recording.HTTPError {
				failed++ // about every fifth; which ones depends on who comes first
			}
			if tr.Outcome == recording.HTTPError && tr.Turn < 3 {
				want.EndedEarly++
				want.TurnsUnsent += 3 - int64(tr.Turn)
			}
		}
		r := done.Result
		if d := cmp.Diff(&want, r.Sessions); d != "" || want.EndedEarly == 0 || r.Load.Measured != 40 || r.Outcomes["http_error"] != failed {
			t.Errorf("%v: %d measured, outcomes %v; sessions: %s", settings, r.Load.Measured, r.Outcomes, d)
		}
		again, err := Judge(done.Dir, nil, "test")
		if err != nil || !cmp.Equal(again.Sessions, r.Sessions) {
			t.Errorf("judged again: %+v (%v)", again.Sessions, err)
		}
	}
}

// The arrivals that are told beside those that were asked for are those of
// conversations.
func TestRateIsOfConversations(t *testing.T) {
	done, _, said := talked(t, map[string]string{
		"schedule.rate": "50", "schedule.kind": "constant", "schedule.requests": "30", "schedule.warmup": "0",
		"workload.turns": "2", "workload.input": "12", "workload.output": "3",
	})
	a := done.Result.Load.Arrivals
	if a == nil || a.AskedMeanNs == nil || *a.AskedMeanNs != 20_000_000 || a.MeanNs != 20_000_000 {
		t.Errorf("arrivals %+v, want one every 20 ms", a)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "50 conversations a second of 2 turns each are 100 requests a second") {
		t.Errorf("it said:\n%s", text)
	}
}

func TestThinkWithoutConversations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Read("", nil, []conf.Setting{
		{Path: "target.url", Value: "http://127.0.0.1:1"},
		{Path: "workload.dataset", Value: file},
		{Path: "schedule.rate", Value: "1"},
		{Path: "schedule.think", Value: "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), s, Options{Out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "this run has neither") {
		t.Errorf("%v", err)
	}
}

// Conversations at given times come once: where turns fail, fewer are measured
// than were planned, and the run says so.
func TestGivenConversationsThatFail(t *testing.T) {
	var rows strings.Builder
	for i := range 10 {
		for turn := range 3 {
			fmt.Fprintf(&rows, `{"at_s":%g,"session":"s%d","prompt":"turn %d"}`+"\n", float64(i)/100, i, turn)
		}
	}
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	done, traces, said := talked(t, map[string]string{"workload.dataset": file, "workload.output": "2", "schedule.think": "3ms"})
	s := done.Result.Sessions
	if s == nil || s.Started != 10 || s.TurnsUnsent != 30-int64(len(traces)) || s.EndedEarly == 0 || done.Result.Load.Measured != int64(len(traces)) {
		t.Fatalf("%d requests, sessions %+v", len(traces), s)
	}
	var last int64
	for _, tr := range traces {
		last = max(last, tr.Due)
	}
	if end := done.Result.Window.EndNs; end != last+1 {
		t.Errorf("the window ends at %d, the last turn was due at %d", end, last)
	}
	want := fmt.Sprintf("%d of 30 requests were measured: no more conversations came", len(traces))
	if text := strings.Join(said, "\n"); !strings.Contains(text, want) || !strings.Contains(text, "10 conversations of 30 turns in all") {
		t.Errorf("it said:\n%s", text)
	}
}

// A share of the requests are turns of conversations, the others stand alone and
// are no sessions.
func TestShareOfSessions(t *testing.T) {
	t.Parallel()
	done, rows, said := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", map[string]string{
		"schedule.rate": "400", "schedule.requests": "600", "schedule.drain": "quiet", "schedule.warmup": "0", "schedule.think": "1ms",
		"workload.turns": "3", "workload.session_share": "0.3", "workload.input": "12", "workload.output": "3", "seed": "4",
	})
	alone, firsts, turns := 0, int64(0), 0
	for _, tr := range rows {
		switch {
		case tr.Session == "" && tr.Turn == 0 && !tr.Turns.OK:
			alone++
		case tr.Session != "" && tr.Turns == recording.Some[int32](3):
			turns++
			if tr.Turn == 0 {
				firsts++
			}
		default:
			t.Errorf("request %d: turn %d of %v of %q", tr.Index, tr.Turn, tr.Turns, tr.Session)
		}
	}
	// One of eight arrivals begins a conversation, eight in each block of 64: to one
	// block. How many turns came before the end is for the machine to say.
	if off := firsts*8 - firsts - int64(alone); off < -64 || off > 64 || turns < int(firsts) {
		t.Errorf("%d began with %d turns, %d alone", firsts, turns, alone)
	}
	if s := done.Result.Sessions; s == nil || s.Started != firsts || s.EndedEarly != 0 {
		t.Errorf("%+v, %d began", s, firsts)
	}
	if !strings.Contains(strings.Join(said, "\n"), "400 arrivals a second that bring 1.25 requests each are 500 requests a second") {
		t.Errorf("said %q", said)
	}
}

// A pause of 0 is no pause, whatever the schedule says of others.
func TestNoPauseIsNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "talk.jsonl")
	text := `{"session":"a","prompt":"one","output_tokens":3}
{"session":"a","prompt":"two","output_tokens":3,"think_s":0}
{"session":"a","prompt":"three","output_tokens":3}
{"session":"a","prompt":"four","output_tokens":3,"think_s":0.05}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, rows, _ := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", map[string]string{
		"schedule.kind": "all", "schedule.requests": "4", "schedule.think": "300ms", "workload.dataset": file,
	})
	if len(rows) != 4 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range []int64{0, 300e6, 50e6} {
		if pause := rows[i+1].Due - rows[i].End.V; pause != want {
			t.Errorf("turn %d was due %d ns after the answer before, want %d", i+1, pause, want)
		}
	}
}
