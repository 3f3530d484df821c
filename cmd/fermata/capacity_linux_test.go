package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fermata/capacity"
	"fermata/internal/calm"
	"fermata/recording"
)

// searchable takes four requests at a time, 50 ms each: 80/s.
const searchable = "cost: {flat: {ttft: 2ms, itl: 16ms}}\nscheduler: {max_num_seqs: 4}\n"

// searching is a search that has set its rate a few times.
func searching(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	p := start(t, dir, args...)
	await(t, "the third block", func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, "cap", "search.json"))
		return strings.Count(string(data), `"realised"`) >= 3
	})
	return p
}

// found is what the search in dir/cap has come to.
func found(t testing.TB, dir string) *capacity.Result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "cap", "capacity.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r capacity.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// ^C ends a search with exit code 130; a kill -9 ends another. What either recorded is
// kept, and the same command goes on to the end.
func TestInterruptedSearch(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]syscall.Signal{"interrupt": syscall.SIGINT, "kill": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				dir := t.TempDir()
				server := newScripted(t, searchable)
				args := []string{"capacity", server.URL, "--input", "16", "--output", "3", "--slo", "ttft<=2s @p90", "--precision", "25%", "--out", "cap"}
				p := searching(t, dir, args...)
				p.signal(how)
				code := p.exit()
				if how == syscall.SIGINT {
					if r := found(t, dir); code != exitInterrupted || r.Ending != capacity.Interrupted {
						t.Errorf("exit code %d, ending %s\n%s", code, r.Ending, &p.err)
					}
					contains(t, p.err.String(), "stopping: waiting up to 30 s for answers", "the same command goes on from --out cap")
					if meta, traces := tracesOf(t, filepath.Join(dir, "cap")); meta.Interrupted == "" || len(traces) < 300 {
						t.Errorf("%d rows, interrupted %q", len(traces), meta.Interrupted)
					}
				}
				again := start(t, dir, append(args, "--quiet")...)
				if code := again.exit(); code != exitFine && code != exitUnclear {
					t.Errorf("exit code %d of the second sitting\n%s", code, &again.err)
				}
				r := found(t, dir)
				if r.Ending != capacity.Found && r.Ending != capacity.NeverMissed || r.Held == nil || r.Held.Requests != r.Budget.Fixed || len(r.Search) < 9 {
					t.Errorf("%s after %d blocks, held %+v\n%s", r.Ending, len(r.Search), r.Held, &again.err)
				}
				if _, traces := tracesOf(t, filepath.Join(dir, "cap", "before-1")); len(traces) < 300 {
					t.Errorf("%d rows of the first sitting", len(traces))
				}
				measured := 0
				_, traces := tracesOf(t, filepath.Join(dir, "cap"))
				for _, tr := range traces {
					if tr.Phase == recording.Measured {
						measured++
					}
				}
				if measured != r.Budget.Fixed {
					t.Errorf("%d rows are measured, of %d held", measured, r.Budget.Fixed)
				}
			})
		})
	}
}

// A machine that is held up on purpose finds the rate that it can ask, and says so.
func TestThrottledSearch(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		dir := t.TempDir()
		server := newScripted(t, "models: {a: {ttft: 10ms, gap: 1ms, tokens: 2}}")
		p := start(t, dir, "capacity", server.URL, "--model", "a", "--input", "16", "--output", "2", "--slo", "ttft<=60s @p90", "--precision", "25%",
			"--max-in-flight", "100", "--out", "cap", "--quiet")
		var one unix.CPUSet
		one.Set(0)
		_ = unix.SchedSetaffinity(p.cmd.Process.Pid, &one)
		over, held := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(held)
			for {
				_ = p.cmd.Process.Signal(syscall.SIGSTOP)
				time.Sleep(160 * time.Millisecond)
				_ = p.cmd.Process.Signal(syscall.SIGCONT)
				select {
				case <-over:
					return
				case <-time.After(40 * time.Millisecond):
				}
			}
		}()
		code := p.exit()
		close(over)
		<-held
		r := found(t, dir)
		if code != exitUnclear || !r.ClientBound {
			t.Errorf("exit code %d, client-bound %v: %s\n%s", code, r.ClientBound, r.Reason, &p.err)
		}
		contains(t, p.out.String(), "[client_bound] this machine was the bottleneck")
		if _, traces := tracesOf(t, filepath.Join(dir, "cap")); int64(len(traces)) < int64(r.Held.Requests) {
			t.Errorf("%d rows", len(traces))
		}
	})
}
