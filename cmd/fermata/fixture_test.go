package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/metrics"
	"fermata/recording"
)

// A process is the command under way.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	dir  string // where it runs
	out  lines
	err  lines
	code chan int
}

// start runs `fermata args…` as a process of its own in dir; the test ends it if
// it has not ended by then.
func start(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("fermata", args...), dir: dir, code: make(chan int, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := p.cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.code <- -2
			return
		}
		p.code <- p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(sync.OnceFunc(func() { _ = p.cmd.Process.Kill(); <-ended }))
	return p
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and gives the exit code; -1 where a signal ended it.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case c := <-p.code:
		return c
	case <-time.After(3 * time.Minute):
		p.t.Fatalf("it does not end\n%s%s", &p.out, &p.err)
		return -1
	}
}

// await waits until ready says so.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// fermata runs a command to its end.
func fermata(t testing.TB, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, dir, args...)
	code = p.exit()
	return code, p.out.String(), p.err.String()
}

// resultOf reads the result in a run's folder.
func resultOf(t testing.TB, run string) metrics.Result {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r metrics.Result
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// tracesOf reads all traces of a recording.
func tracesOf(t testing.TB, run string) (recording.Meta, []recording.Trace) {
	t.Helper()
	rec, err := recording.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var all []recording.Trace
	for tr := range rec.Traces(recording.AllColumns) {
		all = append(all, tr.Clone())
	}
	if err := rec.Err(); err != nil {
		t.Fatal(err)
	}
	return rec.Meta(), all
}

// contains checks that a text holds all that is wanted.
func contains(t testing.TB, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}
