package experiment

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
	"fermata/serve"
	"fermata/spec"
)

// demoTrace is a minute and a half of examples/workloads/yi34b_0p7qps_16k_workload.csv:
// 60 requests, among them a clump of long prompts while others are being answered.
//
//go:embed demo.csv
var demoTrace []byte

// Both systems of the demo are Yi-34B on two H100, as served in 2024. Their
// medians of TBT and of normalized latency agree; one of them stops answering
// everybody while prompts come in.
const demoSystem = `
model: Yi-34B
tp: 2
host: "2024"
memory: {fraction: 0.80}
scheduler: %s
serve: {model: %s}
`

// demoScale is how many simulated seconds pass in one.
const demoScale = 10

var demoSchedulers = []struct{ name, scheduler string }{
	{"stall-free", "{policy: stall-free, max_num_seqs: 128, chunk: 1536}"},
	{"prefill-first", "{policy: prefill-first, max_num_seqs: 128, max_num_batched_tokens: 16384}"},
}

// Demo offers one trace to two simulated systems behind ports of their own, ten
// times as fast as the clock.
func Demo(ctx context.Context, o Options) ([]*Done, error) {
	o.fill()
	if o.Out == "" {
		o.Out = filepath.Join("runs", time.Now().Format("20060102-150405")+"-demo")
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, fmt.Errorf("making the demo's folder: %w", err)
	}
	trace := filepath.Join(o.Out, "workload.csv")
	if err := os.WriteFile(trace, demoTrace, 0o644); err != nil {
		return nil, fmt.Errorf("writing the demo's trace: %w", err)
	}
	var runs []*Done
	for _, system := range demoSchedulers {
		o.Step("%s: 60 requests in 98 s of simulated time, ten times as fast", system.name)
		done, err := demoRun(ctx, system.name, fmt.Sprintf(demoSystem, system.scheduler, system.name), trace, o)
		if err != nil {
			return nil, err
		}
		runs = append(runs, done)
		if done.End.Interrupted != "" {
			break
		}
	}
	return runs, nil
}

// demoRun offers the trace to one system.
func demoRun(ctx context.Context, name, system, trace string, o Options) (*Done, error) {
	engine, err := serve.NewSim("demo.yaml", []byte(system), serve.SimOptions{TimeScale: demoScale})
	if err != nil {
		return nil, fmt.Errorf("the demo's system: %w", err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve.New(engine, serve.Options{}).Serve(serving, ln) }()
	defer func() { stop(); <-served }()
	s, err := spec.Read("", nil, []conf.Setting{
		{Path: "target.url", Value: "http://" + ln.Addr().String()},
		{Path: "target.model", Value: name},
		{Path: "name", Value: name},
		{Path: "workload.dataset", Value: trace},
		{Path: "load.time_scale", Value: fmt.Sprint(demoScale)},
		{Path: "seed", Value: "1"}, // the same prompts for both
	})
	if err != nil {
		return nil, err
	}
	o.Out, o.Quick = filepath.Join(o.Out, name), true
	return Run(ctx, s, o)
}

// demoStudy is what the demo shows: the averages, beside what they hide.
var demoStudy = spec.Study{
	Title: "One trace, two schedulers of the same GPUs",
	Statistics: []string{
		"normalized_latency.p50", "tpot.p50", "tbt.p50", "tbt.p95", "tbt.p99", "gap_longest.p50", "gap_longest.max", "stall_longest.max", "rates.fluid",
	},
	Caveat: "60 requests of one trace: this is what happened, not yet what could be claimed of either scheduler. `fermata report` on both recordings shows all metrics with their intervals; `fermata study examples/tbt-crossing.yaml` plays 1,000 requests.",
}

// DemoTable sets the demo's two runs side by side, with the blind spots that show
// there: nobody told it what to find.
func DemoTable(runs []*Done, version string) (*report.Study, error) {
	statistics, err := parseStatistics("demo", demoStudy.Statistics)
	if err != nil {
		return nil, err
	}
	out := report.NewStudy(version, demoStudy.Title)
	out.Caveat = demoStudy.Caveat
	busy := false
	var results [][]*metrics.Result
	for i, r := range runs {
		name := demoSchedulers[i].name
		results = append(results, []*metrics.Result{r.Result})
		out.Add(name, nil, statistics, results[i])
		out.Points[i].System = "Yi-34B, 2 × H100, " + name
		if r.Result.Health.ClientBound && !busy {
			busy = true
			out.Caveat = "This machine was too busy to offer the load in time, so these numbers hold its own delays too: run the demo again when it is idle. " + out.Caveat
		}
	}
	out.BlindSpots = blindSpotsOf(out.Points, results)
	return out, nil
}
