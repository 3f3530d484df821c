package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fermata/spec"
)

// The demo shows what it says it does: played in virtual time, all its blind
// spots are found, so that only a machine that cannot offer the load can break them.
func TestDemoInVirtualTime(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "demo.csv"), demoTrace, 0o644); err != nil {
		t.Fatal(err)
	}
	var runs []*Done
	for _, system := range demoSchedulers {
		text := fmt.Sprintf(demoSystem, system.scheduler, system.name) + "workload: {file: demo.csv}\n"
		s, err := spec.ReadSim(filepath.Join(dir, "demo.yaml"), []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		done, err := Simulate(t.Context(), s, Options{Out: filepath.Join(dir, system.name)})
		if err != nil {
			t.Fatal(err)
		}
		if end := done.Result.Simulation.EndNs; end > 150e9 {
			t.Errorf("%s: %d s of simulated time", system.name, end/1e9)
		}
		runs = append(runs, done)
	}
	table, err := DemoTable(runs, "test")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range table.BlindSpots {
		found = append(found, s.Run+" "+s.Code)
	}
	if want := []string{"prefill-first stall_hidden", "prefill-first p95_inverts"}; !slices.Equal(found, want) {
		t.Errorf("it finds %q, want %q", found, want)
	}
	for _, c := range []struct {
		name        string
		least, most float64
	}{
		{"normalized_latency.p50", 0.9, 1.15}, // the averages agree
		{"tbt.p50", 0.9, 1.1},
		{"gap_longest.max", 30, 60}, // the longest silence does not
	} {
		a, _, okA := table.Value("stall-free", c.name)
		b, _, okB := table.Value("prefill-first", c.name)
		if !okA || !okB || b/a < c.least || b/a > c.most {
			t.Errorf("%s: %g and %g", c.name, a, b)
		}
	}
}
