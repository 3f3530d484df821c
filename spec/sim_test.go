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

// A 0 that somebody wrote is no default: it is told where it stands, also under
// the name of vLLM's flag and from a setting; where it means something it counts.
func TestSimSpecZeros(t *testing.T) {
	text := `tp: 0
max_model_len: 0
replicas: 0
max_num_seqs: 0
memory: {fraction: 0, block_size: 0, reserved_gib: 0, watermark: 0}
scheduler: {policy: stall-free, chunk: 256}
disaggregation: {prefill: 0, decode: 0}
noise: 0
schedule: {rate: 1}
`
	_, err := ReadSim("s.yaml", []byte(text), []conf.Setting{{Path: "scheduler.chunk", Value: "0", From: "--grid chunk=0"}})
	if err == nil {
		t.Fatal("it reads")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"s.yaml:1:5: tp: must be more than 0", "s.yaml:2:16: max_model_len: must", "s.yaml:3:11: replicas: must", "s.yaml:4:15: max_num_seqs: must",
		"s.yaml:5:20: memory.fraction: must", "s.yaml:5:35: memory.block_size: must", "s.yaml:6:21: scheduler.policy: is always prefill-first", "s.yaml:7:27: disaggregation.prefill: must", "s.yaml:7:38: disaggregation.decode: must",
		"--grid chunk=0: scheduler.chunk: must be more than 0",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is to begin with %s:\n%s", i+1, want, err)
		}
	}
	if len(lines) != 10 {
		t.Errorf("%d lines:\n%s", len(lines), err)
	}
	s, err := ReadSim("s.yaml", []byte("memory: {reserved_gib: 0, watermark: 0}\nnoise: 0\nschedule: {rate: 1}\n"), nil)
	if err != nil || s.Memory.ReservedGiB == nil || *s.Memory.ReservedGiB > 0 || s.Memory.Watermark == nil {
		t.Errorf("%v: %+v", err, s)
	}
	if again, err := ReadSim("s.yaml", s.YAML(), nil); err != nil || again.Memory.ReservedGiB == nil {
		t.Errorf("%v: it is lost on the way:\n%s", err, s.YAML())
	}
}

// What excludes each other is told with all else that is wrong; what changes
// nothing is taken.
func TestSimSpecExclusions(t *testing.T) {
	_, err := ReadSim("s.yaml", []byte("model: Yi-34B\ntp: 3\nreplicas: 2\ndisaggregation: {prefill: 1}\nadmit: full\nschedule: {rate: 1}\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "s.yaml:2:5: tp: must divide") || !strings.Contains(err.Error(), "s.yaml:3:11: replicas: and disaggregation exclude each other: remove replicas") || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v", err)
	}
	for _, text := range []string{
		"scheduler: {policy: prefill-first}\nadmit: full\nschedule: {rate: 1}\n",
		"cost: {flat: {itl: 1ms}}\nmemory: {tokens: 9000, fraction: 0.8}\nhost: ideal\nschedule: {rate: 1}\n",
	} {
		if _, err := ReadSim("s.yaml", []byte(text), nil); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// A spec that is kept in another folder names the same files, and what a
// recording holds does not depend on where it is.
func TestSimSpecMoves(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"specs/data", "runs/one", "runs/two"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rows := "arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,5\n"
	for name, text := range map[string]string{"w.csv": rows, "lengths.txt": "5\n6\n"} {
		if err := os.WriteFile(filepath.Join(top, "specs", "data", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(top, "specs", "s.yaml")
	for key, text := range map[string]string{
		"dataset: ../../specs/data/w.csv": "workload: {file: data/w.csv}\n",
		"file: ../../specs/data/w.csv":    "schedule: {kind: data/w.csv}\n",
	} {
		s, err := ReadSim(file, []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		one, err := s.YAMLIn(filepath.Join(top, "runs", "one"))
		if err != nil || !strings.Contains(string(one), key) {
			t.Fatalf("%v: no %s in\n%s", err, key, one)
		}
		if two, err := s.YAMLIn(filepath.Join(top, "runs", "two")); err != nil || string(two) != string(one) {
			t.Errorf("%v: elsewhere it is\n%s", err, two)
		}
		again, err := ReadSim(filepath.Join(top, "runs", "one", "run.yaml"), one, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again.Workload.Dataset != s.Workload.Dataset || again.Schedule.File != s.Schedule.File {
			t.Errorf("it reads %s %s, and again %s %s", s.Workload.Dataset, s.Schedule.File, again.Workload.Dataset, again.Schedule.File)
		}
		anywhere, err := s.YAMLIn("")
		if err != nil || !strings.Contains(string(anywhere), filepath.Join(top, "specs", "data", "w.csv")) {
			t.Errorf("%v: %s", err, anywhere)
		}
		if strings.Contains(string(s.YAML()), top) || !strings.Contains(string(s.YAML()), ": data/w.csv") {
			t.Errorf("a recording holds\n%s", s.YAML())
		}
	}
}
