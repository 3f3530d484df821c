package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fermata/spec"
)

// The demo shows what it says it does: played in virtual time, all its claims
// hold, so that only a machine that cannot offer the load can break them.
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
	for _, c := range table.Claims {
		if !c.Holds {
			t.Errorf("%s: %s", c.Text, c.Ours)
		}
	}
}
