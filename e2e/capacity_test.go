package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/capacity"
	"fermata/recording"
)

// mostSearch is how long the rough search of a real engine may take.
const mostSearch = 10 * time.Minute

// A rough search of the engine, which has a core to itself, ends with a statement and
// an interval, and what it held at a fixed rate is the measured phase of a whole
// recording. It takes minutes of a machine that has nothing else to do.
func TestCapacityOfAnEngine(t *testing.T) {
	if os.Getenv("FERMATA_E2E_CAPACITY") == "" {
		t.Skip("not run: this test takes minutes; `make e2e-capacity` runs it")
	}
	e := startEngineAt(t, []int{0})
	dir := filepath.Join(t.TempDir(), "search")
	ctx, cancel := context.WithTimeout(t.Context(), mostSearch)
	defer cancel()
	began := time.Now()
	c := exec.CommandContext(ctx, binary, "capacity", e.url, "--input", "16", "--output", "8", "--slo", "ttft<=2s @p90", "--precision", "25%", "--seed", "1", "--out", dir)
	dieWithUs(c)
	said, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitUnclear) {
		t.Fatalf("it ended with %v after %s; it said:\n%s", err, time.Since(began).Round(time.Second), said)
	}
	t.Logf("after %s, exit code %d:\n%s", time.Since(began).Round(time.Second), c.ProcessState.ExitCode(), said)
	if !strings.Contains(string(said), "Capacity ") {
		t.Error("it made no statement")
	}
	data, err := os.ReadFile(filepath.Join(dir, "capacity.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r capacity.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	k := r.Capacity
	if r.Ending != capacity.Found && r.Ending != capacity.NeverMissed || k == nil || k.Low == nil || k.High == nil || *k.Low > k.RPS || k.RPS > *k.High || !r.Rough {
		t.Fatalf("%s: %s, %+v", r.Ending, r.Reason, k)
	}
	if exit != nil && !r.ClientBound {
		t.Error("exit code 4 without a reason")
	}
	m := readRun(t, dir)
	measured := 0
	for _, tr := range m.traces {
		if tr.Phase == recording.Measured {
			measured++
		}
	}
	if measured != r.Budget.Fixed || measured != r.Held.Requests || m.result.Load.Measured != int64(measured) {
		t.Errorf("%d rows are measured, %d requests were held of %d", measured, r.Held.Requests, r.Budget.Fixed)
	}
}
