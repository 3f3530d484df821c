package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
)

// A run that would go on for minutes: answers of 100 ms, 50 a second.
// Those of the other model stop in the middle for ever.
const endless = `models:
  a: {ttft: 50ms, gap: 10ms, tokens: 6}
  stalls: {ttft: 20ms, gap: 10ms, tokens: 6, fail: {kind: stall, after: 3}}
`

// longRun starts such a run and returns once some answers have been asked for.
func longRun(t testing.TB, model string, more ...string) (p *process, server *scripted, run string) {
	t.Helper()
	server = newScripted(t, endless)
	dir := t.TempDir()
	prompts := filepath.Join(dir, "prompts.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt": "hello there"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, append([]string{
		"run", server.URL, "--model", model, "--rate", "50", "--requests", "100000", "--warmup", "0",
		"--dataset", prompts, "--out", "run",
	}, more...)...)
	run = filepath.Join(dir, "run")
	return p, server, run
}

// begun waits until a run has recorded a few tokens of the server's.
func begun(t testing.TB, server *scripted, run string) {
	t.Helper()
	await(t, "the journal", func() bool {
		_, err := os.Stat(filepath.Join(run, "journal"))
		return err == nil
	})
	before := server.tokens(t)
	await(t, "tokens", func() bool { return server.tokens(t) > before+20 })
	time.Sleep(200 * time.Millisecond) // their way through two busy processes
}

// intact checks that everything is in the recording and that it can be reported.
func intact(t testing.TB, run string) []recording.Trace {
	t.Helper()
	for _, name := range []string{"run.yaml", "requests.parquet", "series.parquet", "result.json"} {
		if _, err := os.Stat(filepath.Join(run, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "journal")); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
	meta, traces := tracesOf(t, run)
	if meta.Interrupted == "" {
		t.Error("the recording does not say that it was interrupted")
	}
	_, out, _ := fermata(t, filepath.Dir(run), "report", "run")
	contains(t, out, "Partial: the run was")
	return traces
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	p, server, run := longRun(t, "a", "-o", "json")
	begun(t, server, run)
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, not 130\n%s", code, &p.err)
	}
	contains(t, p.err.String(), "stopping: waiting up to 30 s for answers; ^C again cuts them", "recorded in run")
	var r struct {
		Run      struct{ Interrupted string }
		Outcomes map[string]int
		Load     struct{ Measured, Sent int }
	}
	if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil {
		t.Fatalf("standard output is not the partial report: %v\n%s", err, &p.out)
	}
	if r.Run.Interrupted == "" || r.Load.Measured == 0 {
		t.Errorf("%+v", r)
	}
	// Whatever was under way was awaited: every request that left has its answer.
	traces := intact(t, run)
	if len(traces) != r.Load.Measured || r.Outcomes["ok"] != r.Load.Sent {
		t.Errorf("%d traces, %+v", len(traces), r)
	}
	for _, tr := range traces {
		if tr.Outcome != recording.OK && tr.Outcome != recording.NotSent {
			t.Errorf("request %d ended as %s", tr.Index, tr.Outcome)
		}
	}
}

// The second ^C cuts answers at once, and so do SIGTERM and SIGHUP: a stalled server does
// not hold the report up.
func TestCut(t *testing.T) {
	// Under nohup a hangup is ignored, by children too: unless it is caught here,
	// which no child inherits.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
	for name, cut := range map[string]func(testing.TB, *process){
		"interrupt twice": func(t testing.TB, p *process) {
			p.signal(os.Interrupt)
			await(t, "the notice", func() bool { return strings.Contains(p.err.String(), "^C again cuts them") })
			p.signal(os.Interrupt)
		},
		"terminate": func(_ testing.TB, p *process) { p.signal(syscall.SIGTERM) },
		"hang up":   func(_ testing.TB, p *process) { p.signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				p, server, run := longRun(t, "stalls")
				begun(t, server, run)
				from := time.Now()
				cut(t, p)
				if code := p.exit(); code != exitInterrupted {
					t.Errorf("exit code %d, not 130\n%s", code, &p.err)
				}
				if took := time.Since(from); took > 20*time.Second {
					t.Errorf("it took %v to cut", took)
				}
				contains(t, p.out.String(), "Partial: the run was")
				for by, text := range map[string]string{"terminate": "terminated (SIGTERM)", "hang up": "hung up (SIGHUP)"} {
					if told := strings.Contains(p.out.String(), text); told != (name == by) || told && strings.Contains(p.out.String(), "^C") {
						t.Errorf("what ended it is not told:\n%s", &p.out)
					}
				}
				began := 0
				for _, tr := range intact(t, run) {
					if tr.Outcome != recording.TruncatedByUs && tr.Outcome != recording.NotSent {
						t.Errorf("request %d ended as %s", tr.Index, tr.Outcome)
					}
					if tr.Outcome == recording.TruncatedByUs && tr.Len() > 0 {
						began++
					}
				}
				if began == 0 {
					t.Error("no answer that was cut kept its tokens")
				}
			})
		})
	}
}

// While nothing is measured yet there is nothing to wait for.
func TestInterruptPreparation(t *testing.T) {
	t.Parallel()
	address, release, err := boundOnly()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	dir := t.TempDir()
	p := start(t, dir, "run", "http://"+address, "--rate", "1", "--wait-ready", "10m")
	await(t, "the notice", func() bool { return strings.Contains(p.err.String(), "waiting up to 10m") })
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d, not 130", code)
	}
	contains(t, p.err.String(), "fermata: interrupted before anything was measured")
	if _, err := os.Stat(filepath.Join(dir, "runs")); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
}
