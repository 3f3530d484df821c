package spec

import (
	"math"
	"os"
	"path/filepath"
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
	if err != nil || math.Abs(r.Judging.Saturation-21.875) > 1e-12 {
		t.Fatalf("%v %v", r, err)
	}
	if strings.Contains(string(r.YAML()), good) {
		t.Error("the run file names the file, which may be gone when it is played again")
	}
	if r, err = Again("f", run, set(good)); err != nil || math.Abs(r.Judging.Saturation-21.875) > 1e-12 {
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
