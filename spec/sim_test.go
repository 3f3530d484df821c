package spec

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fermata/internal/conf"
	"fermata/sim"
)

// The simulator's page tells of every key.
func TestSimulatorPageHasEveryKey(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "simulator.md"))
	if err != nil {
		t.Fatal(err)
	}
	prose := strings.ReplaceAll(string(page), "```", "\n")
	code := strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(prose, -1), " ")
	words := regexp.MustCompile(`[a-z0-9_]+`).FindAllString(code, -1)
	for _, of := range []any{
		sim.Options{},
		sim.Aliases{},
		sim.Scheduler{},
		sim.Memory{},
		sim.Speculation{},
		sim.Disaggregation{},
		sim.Efficiency{},
		sim.Hiccup{},
		sim.Host{},
		sim.Flat{},
		StudyClaim{},
		StudySystem{},
	} {
		for _, key := range conf.Keys(of) {
			last := key[strings.LastIndexByte(key, '.')+1:]
			if last != "roofline" && !slices.Contains(words, last) && !strings.Contains(string(page), last+": ") {
				t.Errorf("docs/simulator.md does not tell of %s", key)
			}
		}
	}
}

// What a recording keeps of a spec can be read again and says the same.
func TestSimSpecRoundTrips(t *testing.T) {
	text := `
name: x
cost: kernels
host: "2024-tp1"
noise: 0.05
memory: {fraction: 0.8, block_size: 32}
scheduler: {policy: stall-free, chunk: 256}
speculation: {gamma: 4, alpha: 0.7}
gpu: H200
workload: {input: 100, output: 10}
schedule: {rate: 2, requests: 10}
slo: ["ttft<=1s"]
`
	first, err := ReadSim("s.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSim("s.yaml", first.YAML(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.YAML())
	}
	if string(again.YAML()) != string(first.YAML()) {
		t.Errorf("it reads\n%s\nand again\n%s", first.YAML(), again.YAML())
	}
	run, err := Again("run.yaml", first.YAML(), nil)
	if err != nil || run.Simulated != "Llama-3-8B, H200, stall-free 256, speculation γ 4 α 0.7" || len(run.SLO) != 1 || run.Seed != 1 {
		t.Errorf("%v: %+v", err, run)
	}
}

// Names of vLLM's flags mean keys of the spec; short names of --grid and --set do too.
func TestNamesOfSimKeys(t *testing.T) {
	s, err := ReadSim("s.yaml", []byte("tensor_parallel_size: 2\ngpu_memory_utilization: 0.7\nmax_num_seqs: 9\nschedule: {rate: 1}\n"), nil)
	if err != nil || s.TP != 2 || s.Scheduler.MaxNumSeqs != 9 || s.Memory.Fraction < .69 || s.Memory.Fraction > .71 {
		t.Errorf("%v: %+v", err, s)
	}
	for short, want := range map[string]string{
		"chunk": "scheduler.chunk", "rate": "schedule.rate", "fraction": "memory.fraction", "gamma": "speculation.gamma",
		"tp": "tp", "noise": "noise", "scheduler.chunk": "scheduler.chunk", "nothing": "nothing", "max_num_seqs": "scheduler.max_num_seqs",
	} {
		if got := SimKey(short); got != want {
			t.Errorf("%s means %s, want %s", short, got, want)
		}
	}
}
