package spec

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/internal/conf"
)

// A capacity result may stand in the place of the rate, for a run and for judging
// one again; what is none is refused.
func TestSaturationOfACapacity(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "capacity.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	set := func(value string) []conf.Setting {
		return []conf.Setting{{Path: "judge.saturation", Value: value, From: "--saturation"}}
	}
	run := []byte("target: {url: \"http://127.0.0.1:8000\", model: m}\nschedule: {rate: 4}\n")
	good := file(`{"schema": "fermata.capacity/1", "objective": "ttft<=1s @p99", "saturation_rps": 21.875, "reason": "found"}`)
	r, err := Read("f", run, set(good))
	if err != nil || math.Abs(r.Judging.Saturation.RPS-21.875) > 1e-12 {
		t.Fatalf("%v %v", r, err)
	}
	if strings.Contains(string(r.YAML()), good) {
		t.Error("the run file names the file, which may be gone when it is played again")
	}
	if r, err = Again("f", run, set(good)); err != nil || math.Abs(r.Judging.Saturation.RPS-21.875) > 1e-12 {
		t.Errorf("again: %v", err)
	}
	for value, want := range map[string]string{
		"none.json":                            `judge.saturation: "none.json" is neither a rate in requests a second nor a capacity result that can be read: open none.json`,
		file(`{"schema": "fermata.result/1"}`): `has the schema "fermata.result/1", not fermata.capacity/1`,
		file(`rps: 4`):                         "is no capacity result: ",
		file(`[]`):                             "is no capacity result: ",
		file(`[{"schema": "fermata.capacity/1"}, {}]`):                   "it holds 2 of them; give a file of one",
		file(`{"schema": "fermata.capacity/1"}`):                         "does not say the saturation (saturation_rps)",
		file(`{"schema": "fermata.capacity/1", "saturation_rps": 0}`):    "has a saturation_rps of 0, which is no rate above 0",
		file(`{"schema": "fermata.capacity/1", "saturation_rps": "9"}`):  "is no capacity result: ",
		file(`{"schema": "fermata.capacity/1", "saturation_rps": -1.5}`): "has a saturation_rps of -1.5",
	} {
		if _, err := Read("f", run, set(value)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--saturation: ") {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// A capacity that is doubtful gives a saturation that is not relied on, and the
// run file keeps why, until somebody gives another.
func TestDoubtfulSaturation(t *testing.T) {
	dir := t.TempDir()
	write := func(rest string) string {
		path := filepath.Join(dir, "capacity.json")
		if err := os.WriteFile(path, []byte(`{"schema": "fermata.capacity/1", "saturation_rps": 20`+rest+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := "target: {url: \"http://127.0.0.1:8000\", model: m}\nschedule: {rate: 4}\n"
	for rest, want := range map[string][]string{
		``: nil,
		`, "warnings": [{"code": "turned_away"}]`: nil,
		`, "rough": true`:                         {"rough"},
		`, "client_bound": true`:                  {"client_bound"},
		`, "rough": true, "warnings": [{"code": "outside"}, {"code": "rough"}]`: {"rough", "outside"},
		`, "held": {"drift": {"unsteady": true}}`:                               {"unsteady"},
		`, "warnings": [{"code": "saturation_guessed"}, {"code": "unsteady"}]`:  {"unsteady", "saturation_guessed"},
	} {
		sets := []conf.Setting{{Path: "judge.saturation", Value: write(rest), From: "--saturation"}}
		r, err := Read("f", []byte(run), sets)
		if err != nil {
			t.Fatal(err)
		}
		o, err := r.Judge()
		if err != nil || !slices.Equal(o.Doubts, want) || math.Abs(o.SaturationRPS-20) > 1e-12 {
			t.Errorf("%s: %v of %v, %v", rest, o.Doubts, o.SaturationRPS, err)
		}
		again, err := Again("f", r.YAML(), nil)
		if err != nil || !slices.Equal(again.Judging.Saturation.Doubts, want) || math.Abs(again.Judging.Saturation.RPS-20) > 1e-12 {
			t.Errorf("%s: written and read %+v, %v", rest, again, err)
		}
		again, err = Again("f", r.YAML(), []conf.Setting{{Path: "judge.saturation", Value: "30", From: "--saturation"}})
		if err != nil || again.Judging.Saturation.Doubts != nil || math.Abs(again.Judging.Saturation.RPS-30) > 1e-12 {
			t.Errorf("%s: over it %+v, %v", rest, again, err)
		}
	}
}

// Run files and simulator's specs name a capacity result too; that of a spec lies
// beside it, that of a flag where its giver is.
func TestSaturationOfFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("systems", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, rps := range map[string]string{"capacity.json": "21.875", "systems/capacity.json": "7.5"} {
		if err := os.WriteFile(path, []byte(`{"schema": "fermata.capacity/1", "saturation_rps": `+rps+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flag := []conf.Setting{{Path: "judge.saturation", Value: "capacity.json", From: "--saturation"}}
	run := "target: {url: \"http://127.0.0.1:8000\", model: m}\nschedule: {rate: 4}\n"
	sim := "model: Llama-3-8B\ngpu: H100\nworkload: {input: 8, output: 8}\nschedule: {rate: 4, requests: 20}\n"
	const named = "judge: {saturation: capacity.json}\n"
	ofRun, err := Read("f", []byte(run+named), nil)
	if err != nil || math.Abs(ofRun.Judging.Saturation.RPS-21.875) > 1e-12 {
		t.Errorf("a run file: %+v, %v", ofRun, err)
	}
	for _, c := range []struct {
		text string
		sets []conf.Setting
		want float64
	}{{sim + named, nil, 7.5}, {sim, flag, 21.875}, {sim + named, flag, 21.875}} {
		s, err := ReadSim("systems/one.yaml", []byte(c.text), c.sets)
		if err != nil || math.Abs(s.Judging.Saturation.RPS-c.want) > 1e-12 || strings.Contains(string(s.YAML()), "capacity.json") {
			t.Errorf("%q: %+v, %v, want %v", c.text, s, err, c.want)
			continue
		}
		again, err := Again("run.yaml", s.YAML(), nil)
		if err != nil || math.Abs(again.Judging.Saturation.RPS-c.want) > 1e-12 {
			t.Errorf("%q again: %+v, %v", c.text, again, err)
		}
	}
	if _, err := ReadSim("systems/one.yaml", []byte(sim+"judge: {saturation: none.json}\n"), nil); err == nil || !strings.Contains(err.Error(), "systems/one.yaml:5:21: judge.saturation: ") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A zero is no way to say nothing when a recording is judged again either.
func TestZerosOfJudging(t *testing.T) {
	run := []byte("target: {url: \"http://127.0.0.1:8000\", model: m}\nschedule: {rate: 4}\n")
	sim := []byte("model: Llama-3-8B\ngpu: H100\nworkload: {input: 8, output: 8}\nschedule: {rate: 4}\n")
	for _, path := range []string{"judge.saturation", "judge.pace", "judge.slow", "mlperf.min_queries", "mlperf.min_duration"} {
		for _, data := range [][]byte{run, sim, nil} {
			_, err := Again("f", data, []conf.Setting{{Path: path, Value: "0", From: "a flag"}})
			if err == nil || !strings.Contains(err.Error(), path+": must be more than 0") {
				t.Errorf("%s of 0: %v", path, err)
			}
		}
	}
}
