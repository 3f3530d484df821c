package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fermata/internal/calm"
	"fermata/metrics"
)

// A client that is held up on purpose says so, first of all and by its exit code,
// and what it says to know exactly is still right: it has one core and one
// processor of the runtime, and is stopped four fifths of the time.
func TestThrottledClient(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	calm.Try(t, func(t testing.TB) {
		const (
			stopped = 160 * time.Millisecond
			running = 40 * time.Millisecond
		)
		dir := t.TempDir()
		server := newScripted(t, "models: {a: {ttft: 50ms, gap: 20ms, tokens: max}}")
		p := start(t, dir, "run", server.URL, "--rate", "100", "--requests", "300", "--warmup", "0", "--drain", "quiet",
			"--input", "16", "--output", "20", "--out", "run", "--quiet")
		var one unix.CPUSet
		one.Set(0)
		_ = unix.SchedSetaffinity(p.cmd.Process.Pid, &one) // its first thread, which the others may come from
		await(t, "the journal", func() bool {
			_, err := os.Stat(filepath.Join(dir, "run", "journal"))
			return err == nil
		})
		over := make(chan struct{})
		held := make(chan struct{})
		go func() {
			defer close(held)
			for {
				_ = p.cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(stopped)
				_ = p.cmd.Process.Signal(syscall.SIGCONT)
				select {
				case <-over:
					return
				case <-time.After(running):
				}
			}
		}()
		code := p.exit()
		close(over)
		<-held
		server.stop() // completes the log
		r := resultOf(t, filepath.Join(dir, "run"))
		if code != exitUnclear || !r.Health.ClientBound {
			t.Errorf("exit code %d, client-bound %v because of %q; lateness %+v", code, r.Health.ClientBound, r.Health.Reasons, r.Load.Lateness)
		}
		if first, _, _ := strings.Cut(p.out.String(), "\n"); !strings.HasPrefix(first, "Client-bound") {
			t.Errorf("the report begins with %q", first)
		}
		if r.Health.ReadLag == nil {
			t.Skip("this system's kernel does not stamp")
		}

		// What the server knows of its sendings, against arrivals with exact stamps.
		off := exactAgainst(t, filepath.Join(dir, "run"), server.truth.String())
		if len(off) < 50 {
			t.Fatalf("%d arrivals have an exact stamp", len(off))
		}
		slices.Sort(off)
		if off[0] < 0 {
			t.Errorf("an arrival is stamped %v before it was sent", -off[0])
		}
		// The server too may be held up between its clock and its write.
		if late := off[len(off)*95/100]; late > 5*time.Millisecond {
			t.Errorf("one of twenty exact arrivals is stamped %v after its sending; the client was stopped for %v at a time", late, stopped)
		}
		t.Logf("%d exact arrivals: stamped %v after their sending at the median, %v at p95, %v at most", len(off), off[len(off)/2], off[len(off)*95/100], off[len(off)-1])
	})
}

// A client that was not run for a while, stopped or on a machine that was, looked at no
// socket meanwhile, though the loop had nothing to do when it was stopped.
func TestStoppedClient(t *testing.T) {
	const stopped = 1500 * time.Millisecond
	dir := t.TempDir()
	server := newScripted(t, "models: {a: {ttft: 10ms, gap: 100ms, tokens: max}}")
	p := start(t, dir, "run", server.URL, "--transport", "fast", "--schedule", "constant", "--rate", "20", "--requests", "60", "--warmup", "0", "--drain", "quiet",
		"--input", "16", "--output", "30", "--out", "run", "--quiet")
	await(t, "tokens", func() bool { return server.tokens(t) > 20 })
	p.signal(syscall.SIGSTOP)
	time.Sleep(stopped)
	p.signal(syscall.SIGCONT)
	code := p.exit()
	r := resultOf(t, filepath.Join(dir, "run"))
	if r.Health.LoopTurnMax == nil {
		t.Fatalf("exit code %d, and no longest turn: %s", code, p.err.String())
	}
	if longest := time.Duration(*r.Health.LoopTurnMax); longest < stopped*9/10 || longest > time.Minute {
		t.Errorf("stopped for %v, and the longest turn took %v", stopped, longest)
	}
}

// exactAgainst is how long after its sending, by the server's log, each arrival
// was stamped whose stamp is exact.
func exactAgainst(t testing.TB, run, truth string) []time.Duration {
	t.Helper()
	type answer struct {
		ID     string
		Events []struct {
			SentNs int64 `json:"sent_ns"`
		}
	}
	sent := map[string]answer{}
	for line := range strings.Lines(truth) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		sent[a.ID] = a
	}
	meta, traces := tracesOf(t, run)
	var off []time.Duration
	for i := range traces {
		tr := &traces[i]
		said := sent[tr.ResponseID].Events
		if len(said) != tr.Len() {
			continue // cut off
		}
		at := meta.ZeroWallNs.V + tr.Due
		for k, gap := range tr.DeltaNs {
			at += gap
			if tr.StampErrorNs[k] <= int64(time.Millisecond) {
				off = append(off, time.Duration(at-said[k].SentNs))
			}
		}
	}
	return off
}

// A server that sends eight tokens in one segment makes no client look slow: all
// eight arrived at once, and are known to have.
func TestBunchingServerIsNoSlowClient(t *testing.T) {
	const bunch, bunches = 8, 6
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range bunches {
			time.Sleep(100 * time.Millisecond)
			var b strings.Builder
			for range bunch {
				b.WriteString("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n")
			}
			if i == bunches-1 {
				b.WriteString("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
			}
			_, _ = w.Write([]byte(b.String()))
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	for _, transport := range []string{"fast", "compatible"} {
		t.Run(transport, func(t *testing.T) {
			calm.Try(t, func(t testing.TB) {
				var r metrics.Result
				for try := range 3 { // a busy machine may be late for reasons of its own
					dir := t.TempDir()
					code, _, said := fermata(t, dir, "run", server.URL, "--model", "m", "--transport", transport, "--rate", "20", "--requests", "40",
						"--warmup", "0", "--drain", "quiet", "--input", "16", "--output", fmt.Sprint(bunch*bunches), "--out", "run", "--quiet")
					r = resultOf(t, filepath.Join(dir, "run"))
					if r.Health.ReadLag == nil {
						t.Skip("this system's kernel does not stamp")
					}
					share := r.Health.ExactShare
					if code == exitFine && !r.Health.ClientBound && share != nil && *share >= 0.95 {
						if m := r.Metrics.EventsPerRead; m == nil || *m.Mean < bunch-1 {
							t.Errorf("events a read: %+v; the server sent %d at once", m, bunch)
						}
						return
					}
					t.Logf("try %d: exit code %d, exact share %v, client-bound because of %q\n%s", try, code, *share, r.Health.Reasons, said)
				}
				t.Error("not once in three tries did the client know when the bunches came")
			})
		})
	}
}
