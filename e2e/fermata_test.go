package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/metrics"
	"fermata/recording"
)

// binary is the tool as make builds it.
const binary = root + "/bin/fermata"

// exitUnclear says that the measurement can't carry the claim, as on a machine
// that was too busy: the one reason to try again.
const exitUnclear = 4

// A ran is a finished process of the tool.
type ran struct {
	code           int
	stdout, stderr string
}

func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%s is not there: run this by `make e2e-real`, which builds it", binary)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, binary, args...)
	c.Stdout, c.Stderr = &out, &errs
	dieWithUs(c)
	return c, &out, &errs
}

func fermata(t *testing.T, args ...string) ran {
	t.Helper()
	c, out, errs := command(t, args...)
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("fermata %s: %v", strings.Join(args, " "), err)
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// A measurement is a run against the engine with all that both sides say of it.
type measurement struct {
	dir    string
	stdout string
	said   string // standard error
	result *metrics.Result
	raw    []byte // of result.json
	traces []recording.Trace
	meta   recording.Meta
	server counters // what the engine booked for it
}

// measure runs fermata against the engine; its exit code must be 0. Code 4 is
// tried once more.
func (e *engine) measure(t *testing.T, url string, args ...string) measurement {
	t.Helper()
	for try := 1; ; try++ {
		dir := filepath.Join(t.TempDir(), "run")
		before := e.counters(t)
		r := fermata(t, append([]string{"run", url, "--quiet", "-o", "json", "--out", dir}, args...)...)
		if r.code == exitUnclear && try == 1 {
			t.Logf("exit code 4, once more; it said:\n%s%s", r.stderr, r.stdout)
			continue
		}
		if r.code != 0 {
			t.Fatalf("exit code %d; it said:\n%s%s", r.code, r.stderr, r.stdout)
		}
		m := readRun(t, dir)
		m.stdout, m.said, m.server = r.stdout, r.stderr, e.counters(t).minus(before)
		return m
	}
}

// readRun reads the folder of a run back.
func readRun(t *testing.T, dir string) measurement {
	t.Helper()
	m := measurement{dir: dir, result: new(metrics.Result)}
	var err error
	if m.raw, err = os.ReadFile(filepath.Join(dir, "result.json")); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(m.raw, m.result); err != nil {
		t.Fatalf("result.json: %v", err)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	m.meta = rec.Meta()
	for trace := range rec.Traces(recording.AllColumns) {
		m.traces = append(m.traces, trace.Clone())
	}
	if err := rec.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}
