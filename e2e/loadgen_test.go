package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/metrics"
	"fermata/recording"
)

// A played run is one of MLPerf's LoadGen, with what it said of its samples.
type played struct {
	Scenario      string `json:"scenario"`
	MinQueries    int64  `json:"min_queries"`
	MinDurationMs int64  `json:"min_duration_ms"`
	Tokens        bool   `json:"tokens"`
	BoundMs       int64  `json:"bound_ms"`
	Samples       []struct {
		Query     int64 `json:"query"`
		DueNs     int64 `json:"due_ns"`
		LatencyNs int64 `json:"latency_ns"`
		TTFTNs    int64 `json:"ttft_ns"`
		Tokens    int32 `json:"tokens"`
	} `json:"samples"`
	Said map[string]any `json:"said"`
}

// MLPerf's own LoadGen and our judgement of the same samples: percentiles,
// estimates, rates, each rule, and the verdict.
func TestLoadGen(t *testing.T) {
	if os.Getenv("FERMATA_LOADGEN") == "" {
		t.Skip("not run: this test needs MLPerf's LoadGen; `make e2e-loadgen` installs it and runs this")
	}
	root := os.Getenv("LOADGEN")
	if root == "" {
		root = ".cache/loadgen"
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root)
	}
	if _, err := os.Stat(root + "/ok"); err != nil {
		t.Skip("not run: mlcommons-loadgen could not be installed, as ./e2e/loadgen.sh install said")
	}
	c := exec.CommandContext(t.Context(), "./loadgen.sh", "run")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("running LoadGen: %v", err)
	}
	var all []played
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("reading what LoadGen said: %v", err)
	}
	if len(all) < 20 {
		t.Fatalf("%d runs", len(all))
	}
	verdicts, compared := map[string]int{}, 0
	for i := range all {
		p := &all[i]
		t.Run(fmt.Sprintf("%d/%s/%d", i, p.Scenario, len(p.Samples)), func(t *testing.T) {
			h := &held{T: t, m: p.judged(t), said: p.Said}
			p.compare(h)
			verdicts[p.Scenario+" "+h.m.Verdict]++
			compared += h.figures
		})
	}
	t.Logf("%d runs, %d figures and rules compared, %v", len(all), compared, verdicts)
}

var scenarios = map[string]string{
	"SingleStream": metrics.SingleStreamScenario, "MultiStream": metrics.MultiStreamScenario,
	"Server": metrics.ServerScenario, "Offline": metrics.OfflineScenario,
}

// judged is our judgement of LoadGen's samples.
func (p *played) judged(t *testing.T) *metrics.MLPerf {
	t.Helper()
	var s recording.Slice
	for i, q := range p.Samples {
		tr := recording.Trace{
			Index: int64(i), Session: strconv.FormatInt(q.Query, 10), Phase: recording.Measured, Due: q.DueNs, Sent: recording.Some(q.DueNs),
			End: recording.Some(q.DueNs + q.LatencyNs), Outcome: recording.OK,
		}
		tr.DeltaNs, tr.Tokens = []int64{q.TTFTNs, q.LatencyNs - q.TTFTNs}, []int32{1, q.Tokens - 1}
		tr.Output.Used = recording.Some(q.Tokens)
		s = append(s, tr)
	}
	o := metrics.MLPerfOptions{Scenario: scenarios[p.Scenario], MinQueries: p.MinQueries, MinDuration: time.Duration(p.MinDurationMs) * time.Millisecond}
	if bound := time.Duration(p.BoundMs) * time.Millisecond; p.Scenario == "Server" && p.Tokens {
		o.TTFT, o.TPOT = bound, bound
	} else if p.Scenario == "Server" {
		o.Latency = bound
	}
	meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1e12)}
	r, err := metrics.Evaluate(s, meta, nil, metrics.Options{MLPerf: o})
	if err != nil {
		t.Fatal(err)
	}
	return r.MLPerf
}

// A held judgement is held against what LoadGen said.
type held struct {
	*testing.T
	m       *metrics.MLPerf
	said    map[string]any
	figures int
}

func (p *played) compare(h *held) {
	h.verdict("result_validity", h.m.Verdict)
	h.rule("result_min_duration_met", "min_duration")
	h.rule("result_min_queries_met", "min_queries")
	h.rule("early_stopping_met", "early_stopping")
	switch p.Scenario {
	case "SingleStream":
		h.percentile("latency", "result_90.00_percentile_latency_ns")
		h.estimates("latency", "early_stopping_result")
	case "MultiStream":
		h.percentile("latency", "result_99.00_percentile_per_query_latency_ns")
		h.estimates("latency", "early_stopping_result")
	case "Server":
		h.rule("result_perf_constraints_met", "ttft_p99", "tpot_p99", "latency_p99")
		h.percentile("latency", "result_99.00_percentile_latency_ns")
		h.rate("result_scheduled_samples_per_sec", h.m.ScheduledRPS)
		h.rate("result_completed_samples_per_sec", h.m.SamplesPerS)
		if p.Tokens {
			h.percentile("ttft", "result_first_token_99.00_percentile_latency_ns")
			h.percentile("tpot", "result_time_per_output_token_99.00_percentile_ns")
			h.rate("result_completed_tokens_per_second", h.m.TokensPerS)
		}
	case "Offline":
		h.percentile("latency", "result_99.00_percentile_latency_ns")
		h.rate("result_samples_per_second", h.m.SamplesPerS)
		h.rate("result_tokens_per_second", h.m.TokensPerS)
	}
}

func (h *held) verdict(key, ours string) {
	h.figures++
	if h.said[key] != ours {
		h.Errorf("LoadGen says %v, we %s: %+v", h.said[key], ours, h.m.Rules)
	}
}

// rule holds one of LoadGen's against ours of these names, all of which are to be
// met; those that begin so belong to it.
func (h *held) rule(key string, names ...string) {
	h.figures++
	met := true
	for _, r := range h.m.Rules {
		for _, name := range names {
			if strings.HasPrefix(r.Rule, name) {
				met = met && r.Met
			}
		}
	}
	if h.said[key] != met {
		h.Errorf("%s: LoadGen says %v, we %v: %+v", key, h.said[key], met, h.m.Rules)
	}
}

func (h *held) percentile(metric, key string) {
	h.figures++
	for _, p := range h.m.Percentiles {
		if p.Metric == metric {
			if v, ok := h.said[key].(float64); !ok || p.Value == nil || int64(v) != *p.Value {
				h.Errorf("%s: LoadGen says %v, we %v of rank %d of %d", key, h.said[key], *p.Value, p.Rank, p.N)
			}
			return
		}
	}
	h.Errorf("we have no percentile of %s", metric)
}

var (
	estimated = regexp.MustCompile(`Early stopping ([0-9.]+)th percentile estimate: (-?[0-9]+)`)
	discards  = regexp.MustCompile(`Would discard ([0-9]+) highest latency queries`)
)

// estimates are as many as LoadGen's, and the same.
func (h *held) estimates(metric, key string) {
	h.figures++
	text, _ := h.said[key].(string)
	var theirs, ours []string
	for _, m := range estimated.FindAllStringSubmatch(text, -1) {
		theirs = append(theirs, "p"+strings.TrimSuffix(m[1], ".0")+" "+m[2])
	}
	discarded := discards.FindStringSubmatch(text)
	for i, e := range h.m.Estimates {
		if e.Metric != metric {
			continue
		}
		ours = append(ours, fmt.Sprintf("p%g %d", 100*e.P, *e.Value))
		if first := len(ours) == 1; first && (discarded == nil || discarded[1] != strconv.FormatInt(h.m.Estimates[i].Discarded, 10)) {
			h.Errorf("%s: LoadGen discards %v, we %d", metric, discarded, e.Discarded)
		}
	}
	if strings.Join(theirs, ", ") != strings.Join(ours, ", ") {
		h.Errorf("%s: LoadGen says %q, we %q", metric, theirs, ours)
	}
}

// rate is the same to the six digits that LoadGen gives.
func (h *held) rate(key string, ours *float64) {
	h.figures++
	v, ok := h.said[key].(float64)
	if !ok || ours == nil || math.Abs(*ours-v) > 1e-5*v {
		h.Errorf("%s: LoadGen says %v, we %v", key, h.said[key], ours)
	}
}
