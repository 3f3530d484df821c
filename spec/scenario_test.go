package spec

import (
	"strings"
	"testing"
	"time"

	"fermata/internal/conf"
	"fermata/schedule"
)

// A scenario is a preset over the schedule, of what was not given.
func TestScenarios(t *testing.T) {
	const least = 10 * time.Minute
	for _, c := range []struct {
		flags string
		want  schedule.Options
	}{
		{"mlperf.scenario=single-stream", schedule.Options{Kind: "closed", Concurrency: 1, Requests: 100, AtLeast: least}},
		{"mlperf.scenario=multi-stream", schedule.Options{Kind: "closed", Concurrency: 1, Streams: 8, Requests: 8 * 662, AtLeast: least}},
		{"mlperf.scenario=multi-stream schedule.streams=4 mlperf.min_queries=10", schedule.Options{Kind: "closed", Concurrency: 1, Streams: 4, Requests: 40, AtLeast: least}},
		{"mlperf.scenario=server mlperf.benchmark=llama2-70b schedule.rate=4", schedule.Options{Kind: "poisson", Rate: 4, Requests: 100, AtLeast: least}},
		{"mlperf.scenario=interactive mlperf.ttft=1s schedule.rate=4 mlperf.min_duration=5s", schedule.Options{Kind: "poisson", Rate: 4, Requests: 100, AtLeast: 5 * time.Second}},
		{"mlperf.scenario=server mlperf.ttft=1s schedule.rate=4 schedule.requests=7", schedule.Options{Kind: "poisson", Rate: 4, Requests: 7}},
		{"mlperf.scenario=server mlperf.ttft=1s schedule.rate=4 schedule.duration=7s", schedule.Options{Kind: "poisson", Rate: 4, Duration: 7 * time.Second}},
		{"mlperf.scenario=offline", schedule.Options{Kind: "all", Requests: 24_576}},
		{"mlperf.scenario=offline schedule.rate=100", schedule.Options{Kind: "all", Requests: 66_000}},
		{"mlperf.scenario=offline schedule.rate=100 mlperf.min_duration=10s mlperf.min_queries=100", schedule.Options{Kind: "all", Requests: 1100}},
	} {
		r := read(t, "target: {url: 'http://h:1'}\n", settings(t, c.flags)...)
		c.want.Warmup, c.want.Drain = "0", "quiet"
		got := r.Schedule
		if got.Kind != c.want.Kind || got.Concurrency != c.want.Concurrency || got.Streams != c.want.Streams || got.Requests != c.want.Requests ||
			got.AtLeast != c.want.AtLeast || got.Duration != c.want.Duration || got.Rate < c.want.Rate || got.Rate > c.want.Rate ||
			got.Warmup != "0" || got.Drain != "quiet" {
			t.Errorf("%s: %+v, want %+v", c.flags, got, c.want)
		}
		judge, err := r.Judge()
		if err != nil || judge.MLPerf.Scenario == "" || judge.MLPerf.Otherwise != "" {
			t.Errorf("%s: judged by %+v, %v", c.flags, judge.MLPerf, err)
		}
		back, err := Read("saved.yaml", r.YAML(), nil)
		if err != nil || string(back.YAML()) != string(r.YAML()) {
			t.Errorf("%s: saved and read again: %v\n%s", c.flags, err, r.YAML())
		}
	}
}

func settings(t *testing.T, text string) (sets []conf.Setting) {
	t.Helper()
	for _, s := range strings.Fields(text) {
		set, err := Set(s)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	return sets
}

func TestWrongScenarios(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"schedule.rate=4 mlperf.scenario=sever", `mlperf.scenario: must be one of single-stream, multi-stream, server, offline, interactive, not "sever"`},
		{"mlperf.scenario=server schedule.rate=4", "mlperf.scenario: is server, which bounds latencies: give benchmark"},
		{"mlperf.scenario=server mlperf.ttft=1s", "schedule.rate: must be given"},
		{"mlperf.scenario=server mlperf.ttft=1s schedule.rate=4 schedule.warmup=10", "schedule.warmup: must be 0, as every query counts, in scenario server"},
		{"mlperf.scenario=server mlperf.ttft=1s schedule.kind=constant schedule.rate=4", "schedule.kind: must be poisson, not constant, in scenario server"},
		{"mlperf.scenario=server mlperf.ttft=1s schedule.rate=4 load.max_in_flight=4", "load.max_in_flight: cannot be given"},
		{"mlperf.scenario=single-stream schedule.concurrency=4", "schedule.concurrency: must be 1, not 4"},
		{"mlperf.scenario=single-stream schedule.rate=4", "schedule.rate: cannot be given: in a closed loop the answers set the rate"},
		{"mlperf.scenario=single-stream workload.turns=3", "workload.turns: cannot be given"},
		{"mlperf.scenario=offline schedule.rate=4 mlperf.ttft=1s", "mlperf.scenario: is offline, which bounds no latency"},
		{"schedule.rate=4 mlperf.benchmark=llama2-70b", "mlperf.benchmark: belongs to a scenario"},
		{"mlperf.scenario=offline mlperf.min_queries=0", "mlperf.min_queries: must be more than 0"},
	} {
		_, err := Read("run.yaml", []byte("target: {url: 'http://h:1'}\n"), settings(t, c.flags))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %s", c.flags, err, c.want)
		}
	}
}

// A file's rate is no scenario's that asks one by one.
func TestScenarioOverFile(t *testing.T) {
	if r := read(t, base, settings(t, "mlperf.scenario=single-stream")...); r.Schedule.Kind != schedule.Closed || r.Schedule.Rate > 0 {
		t.Errorf("%+v", r.Schedule)
	}
}

// A recording of any load may be judged by a scenario; what was different is told.
func TestOtherwise(t *testing.T) {
	for _, c := range []struct{ file, scenario, want string }{
		{"schedule: {rate: 4, warmup: 0, drain: quiet}", "server", ""},
		{"schedule: {rate: 4, requests: 100}", "server", "schedule.warmup must be 0, as every query counts; schedule.drain must be quiet"},
		{"schedule: {concurrency: 3, warmup: 0, drain: quiet}", "single-stream", "schedule.concurrency must be 1, not 3"},
		{"schedule: {kind: all}", "server", "schedule.kind must be poisson, not all"},
	} {
		saved := read(t, "target: {url: 'http://h:1'}\n"+c.file+"\n").YAML()
		r, err := Again("run.yaml", saved, settings(t, "mlperf.scenario="+c.scenario+" mlperf.benchmark=llama2-70b"))
		if err != nil {
			t.Fatal(err)
		}
		if judge, err := r.Judge(); err != nil || judge.MLPerf.Otherwise != c.want {
			t.Errorf("%s as %s: %q, %v; want %q", c.file, c.scenario, judge.MLPerf.Otherwise, err, c.want)
		}
	}
	r, err := Again("", nil, settings(t, "mlperf.scenario=offline"))
	if err != nil {
		t.Fatal(err)
	}
	if judge, _ := r.Judge(); judge.MLPerf.Otherwise != "the recording does not say how it was offered" {
		t.Errorf("%q", judge.MLPerf.Otherwise)
	}
}
