package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/recording"
	"fermata/serve"
)

const (
	kills   = 20
	readers = 50
	// What the server's log shows sent this long before the kill must be in the
	// recording. The recorder keeps what it is told at once; the rest is the way
	// through the network and two busy processes.
	grace = 250 * time.Millisecond
	// Where the machine stood still for this long before a kill, nothing can be
	// said of the recorder: that kill is repeated.
	stillness = 25 * time.Millisecond
)

// Nothing that was received long enough before a kill -9 is lost.
func TestKill(t *testing.T) {
	t.Parallel()
	// Prompt i has i+1 words, which the server counts: its log then tells which
	// request of the schedule it saw, whatever the order in which they came.
	var prompts strings.Builder
	for i := range readers {
		fmt.Fprintf(&prompts, "{\"prompt\": %q}\n", strings.TrimSpace(strings.Repeat("word ", i+1)))
	}
	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(file, []byte(prompts.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	machine := watchMachine(t)
	var total killed
	t.Run("kills", func(t *testing.T) {
		for i := range kills {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for range 5 {
					k := kill(t, t.TempDir(), file)
					if k.ended || len(k.problems) > 0 && machine.still(k.at.Add(-2*grace), k.at) {
						continue
					}
					for _, p := range k.problems {
						t.Error(p)
					}
					total.whole.Add(k.whole.Load())
					total.incomplete.Add(k.incomplete.Load())
					total.arrivals.Add(k.arrivals.Load())
					total.due.Add(k.due.Load())
					return
				}
				t.Skip("this machine stands still too often for this test")
			})
		}
	})
	w, i := total.whole.Load(), total.incomplete.Load()
	t.Logf("%d requests were whole and %d under way, with %d arrivals; %d events had been sent %v or more before", w, i, total.arrivals.Load(), total.due.Load(), grace)
	if w == 0 || i == 0 {
		t.Errorf("%d requests were whole and %d under way: the kills came at the wrong moments", w, i)
	}
}

// A killed run, and what was found of it.
type killed struct {
	at       time.Time // of the kill
	ended    bool      // before it was killed, or all but
	problems []string

	whole, incomplete, arrivals, due atomic.Int64
}

// kill starts a run, kills it at a moment that nobody chose, recovers it and
// compares it with the server's log.
func kill(t testing.TB, dir, prompts string) *killed {
	server := newScripted(t, "models: {a: {ttft: 20ms, gap: 20ms, tokens: 30}}")
	// Half a second of arrivals, answers of 0.6 s each.
	p := start(t, dir, "run", server.URL, "--dataset", prompts, "--output", "30", "--schedule", "constant", "--rate", "100",
		"--requests", fmt.Sprint(readers), "--warmup", "0", "--drain", "quiet", "--out", "run", "--quiet")
	await(t, "the journal", func() bool {
		_, err := os.Stat(filepath.Join(dir, "run", "journal"))
		return err == nil
	})
	before := server.tokens(t)
	await(t, "tokens", func() bool { return server.tokens(t) > before })
	time.Sleep(time.Duration(200+rand.IntN(700)) * time.Millisecond)
	k := &killed{at: time.Now()}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	code := p.exit()
	// A whole recording, of which only the report was still to come, is no work for
	// recover.
	_, err := os.Stat(filepath.Join(dir, "run", "requests.parquet"))
	if k.ended = code != -1 || err == nil; k.ended {
		return k
	}
	server.stop() // completes the log
	recoverRun(t, dir)
	k.compare(t, filepath.Join(dir, "run"), server.truth.String())
	return k
}

// recoverRun finishes the recording, for which `fermata report` asks.
func recoverRun(t testing.TB, dir string) {
	t.Helper()
	code, _, said := fermata(t, dir, "report", "run")
	if code != exitFailed || !strings.Contains(said, "fermata recover run") {
		t.Errorf("report before recover: exit code %d, %s", code, said)
	}
	for _, want := range []string{"recovered ", "run is whole, with "} { // a second time is fine
		if code, _, said = fermata(t, dir, "recover", "run"); code != exitFine || !strings.Contains(said, want) {
			t.Errorf("recover: exit code %d, not %q but %s", code, want, said)
		}
	}
	code, out, said := fermata(t, dir, "report", "run")
	if code == exitFailed || code == exitUsage || out == "" {
		t.Errorf("report after recover: exit code %d, %s", code, said)
	}
	if r := resultOf(t, filepath.Join(dir, "run")); r.Load.Measured == 0 {
		t.Error("the result that recover wrote has no requests")
	}
}

func (k *killed) compare(t testing.TB, run, truth string) {
	meta, traces := tracesOf(t, run)
	seen := map[int64]*recording.Trace{}
	for i := range traces {
		tr := &traces[i]
		seen[tr.Index] = tr
		k.arrivals.Add(int64(tr.Len()))
		if tr.Outcome == recording.Incomplete {
			k.incomplete.Add(1)
		} else {
			k.whole.Add(1)
		}
	}
	for line := range strings.Lines(truth) {
		var told serve.Truth
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			t.Fatal(err)
		}
		if told.Purpose == "" {
			k.check(&told, seen[int64(told.PromptTokens)-1], meta.ZeroWallNs.V)
		}
	}
}

// check compares what was sent for a request with what was recorded of it.
func (k *killed) check(told *serve.Truth, tr *recording.Trace, zero int64) {
	index, limit := told.PromptTokens-1, k.at.Add(-grace).UnixNano()
	problem := func(format string, args ...any) {
		k.problems = append(k.problems, fmt.Sprintf("request %d: ", index)+fmt.Sprintf(format, args...))
	}
	due := 0
	for _, ev := range told.Events {
		if ev.SentNs <= limit {
			due++
		}
	}
	k.due.Add(int64(due))
	switch {
	case tr == nil && told.ReceivedNs <= limit:
		problem("not recorded at all, though received %v before the kill", k.at.Sub(time.Unix(0, told.ReceivedNs)))
	case tr == nil:
	case tr.Len() < due:
		problem("%d arrivals, though %d events had been sent %v before the kill", tr.Len(), due, grace)
	case tr.Len() > len(told.Events):
		problem("%d arrivals of %d events", tr.Len(), len(told.Events))
	default:
		// Nothing arrives before it is sent; clocks may drift a little.
		at := zero + tr.Due
		for i, delta := range tr.DeltaNs {
			if at += delta; at < told.Events[i].SentNs-int64(5*time.Millisecond) {
				problem("arrival %d is %v before its event was sent", i, time.Duration(told.Events[i].SentNs-at))
			}
		}
	}
}

// A machineWatch notes when this process did not run for a while.
type machineWatch struct {
	mu     sync.Mutex
	stills [][2]time.Time
}

func watchMachine(t testing.TB) *machineWatch {
	w := &machineWatch{}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			now := time.Now()
			if now.Sub(last) > stillness {
				w.mu.Lock()
				w.stills = append(w.stills, [2]time.Time{last, now})
				w.mu.Unlock()
			}
			last = now
		}
	}()
	t.Cleanup(func() { close(over); <-done })
	return w
}

func (w *machineWatch) still(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stills {
		if s[0].Before(to) && s[1].After(from) {
			return true
		}
	}
	return false
}
