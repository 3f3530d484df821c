package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
)

// MLPerf's scenarios (mlcommons/inference, loadgen; mlcommons/inference_policies,
// inference_rules.adoc). Interactive is server with tighter limits.
const (
	SingleStreamScenario = "single-stream" // one request at a time
	MultiStreamScenario  = "multi-stream"  // one query of several requests at a time
	ServerScenario       = "server"        // Poisson
	OfflineScenario      = "offline"       // all at once
	InteractiveScenario  = "interactive"
)

// Scenarios are all of them.
func Scenarios() []string {
	return []string{SingleStreamScenario, MultiStreamScenario, ServerScenario, OfflineScenario, InteractiveScenario}
}

// MLPerfOptions say by which of MLPerf's scenarios a recording is judged too. The
// zero value is none.
type MLPerfOptions struct {
	Scenario    string        `yaml:"scenario"`     // single-stream, multi-stream, server, offline or interactive
	Benchmark   string        `yaml:"benchmark"`    // whose limits hold, such as llama2-70b
	TTFT        time.Duration `yaml:"ttft"`         // limit of the time to first token; default the benchmark's
	TPOT        time.Duration `yaml:"tpot"`         // limit of the time per output token; default the benchmark's
	Latency     time.Duration `yaml:"latency"`      // limit of the time to the last token; default the benchmark's
	MinDuration time.Duration `yaml:"min_duration"` // default 10 minutes
	MinQueries  int64         `yaml:"min_queries"`  // default 100; 662 of multi-stream, 24,576 of offline

	// Otherwise says how the load was offered otherwise than the scenario asks.
	Otherwise string `yaml:"-"`
}

// limits of a benchmark, at its percentile of 99 %.
type limits struct{ ttft, tpot, latency time.Duration }

func tokens(ttft, tpot time.Duration) limits {
	return limits{ttft: ttft * time.Millisecond, tpot: tpot * time.Millisecond}
}

// benchmarks are the limits of MLPerf Inference for language models, of the server
// scenario and the interactive one. Where rules and mlperf.conf differ (gpt-oss-120b,
// interactive TPOT 20 and 15 ms) it is what LoadGen and the submission checker take.
var benchmarks = []struct {
	name                string
	server, interactive limits
}{
	{"deepseek-r1", tokens(2000, 80), tokens(1500, 15)},
	{"gpt-oss-120b", tokens(3000, 80), tokens(2000, 15)},
	{"llama2-70b", tokens(2000, 200), tokens(450, 40)},
	{"llama3.1-405b", tokens(6000, 175), tokens(4500, 80)},
	{"llama3.1-8b", tokens(2000, 100), tokens(500, 30)},
	{"mixtral-8x7b", tokens(2000, 200), limits{}},
	{"qwen3-vl-235b", limits{latency: 12 * time.Second}, limits{latency: 1500 * time.Millisecond}},
}

// Benchmarks are the names of those whose limits are known.
func Benchmarks() []string {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	return names
}

// limitsOf a benchmark in a scenario; ok is false where it has none.
func limitsOf(benchmark, scenario string) (l limits, ok bool) {
	for _, b := range benchmarks {
		if b.name != benchmark {
			continue
		}
		if l = b.server; scenario == InteractiveScenario {
			l = b.interactive
		}
		return l, l != limits{}
	}
	return l, false
}

// bounded says that the scenario bounds latencies.
func (o *MLPerfOptions) bounded() bool {
	return o.Scenario == ServerScenario || o.Scenario == InteractiveScenario
}

// Filled is o with its defaults written out.
func (o MLPerfOptions) Filled() MLPerfOptions {
	if o.Scenario == "" {
		return o
	}
	o.MinDuration = cmp.Or(o.MinDuration, 10*time.Minute)
	least := int64(100)
	switch o.Scenario {
	case MultiStreamScenario:
		least = 662
	case OfflineScenario:
		least = 24_576
	}
	o.MinQueries = cmp.Or(o.MinQueries, least)
	if l, _ := limitsOf(o.Benchmark, o.Scenario); o.bounded() && o.TTFT == 0 && o.TPOT == 0 && o.Latency == 0 {
		o.TTFT, o.TPOT, o.Latency = l.ttft, l.tpot, l.latency
	}
	return o
}

// Check finds everything that is wrong with o.
func (o *MLPerfOptions) Check() []conf.Problem {
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	for _, d := range []struct {
		path string
		is   time.Duration
	}{{"ttft", o.TTFT}, {"tpot", o.TPOT}, {"latency", o.Latency}, {"min_duration", o.MinDuration}} {
		switch {
		case d.is < 0 || d.is > longestNs:
			wrong(d.path, "must be more than 0 and at most 100 days, not %s", conf.Duration(d.is))
		case d.is > 0 && o.Scenario == "":
			wrong(d.path, "belongs to a scenario, and there is none: give scenario, one of %s", strings.Join(Scenarios(), ", "))
		}
	}
	switch {
	case o.MinQueries < 0:
		wrong("min_queries", "must be 1 or more, not %d", o.MinQueries)
	case o.MinQueries > 0 && o.Scenario == "":
		wrong("min_queries", "belongs to a scenario, and there is none: give scenario, one of %s", strings.Join(Scenarios(), ", "))
	}
	if o.Benchmark != "" && !slices.Contains(Benchmarks(), o.Benchmark) {
		wrong("benchmark", "must be one of %s, not %q; for others give mlperf.ttft and mlperf.tpot", strings.Join(Benchmarks(), ", "), o.Benchmark)
		return found
	}
	own := o.TTFT != 0 || o.TPOT != 0 || o.Latency != 0
	_, known := limitsOf(o.Benchmark, o.Scenario)
	switch {
	case o.Scenario == "" && o.Benchmark != "":
		wrong("benchmark", "belongs to a scenario, and there is none: give scenario, one of %s", strings.Join(Scenarios(), ", "))
	case o.Scenario == "":
	case !slices.Contains(Scenarios(), o.Scenario):
		wrong("scenario", "must be one of %s, not %q", strings.Join(Scenarios(), ", "), o.Scenario)
	case o.bounded() && !own && o.Benchmark == "":
		wrong("scenario", "is %s, which bounds latencies: give benchmark (one of %s), or mlperf.ttft and mlperf.tpot", o.Scenario, strings.Join(Benchmarks(), ", "))
	case o.bounded() && !own && !known:
		wrong("benchmark", "%s has no limits in scenario %s: give mlperf.ttft and mlperf.tpot", o.Benchmark, o.Scenario)
	case !o.bounded() && own:
		wrong("scenario", "is %s, which bounds no latency; limits go with server and interactive", o.Scenario)
	}
	return found
}
