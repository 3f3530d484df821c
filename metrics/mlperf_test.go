package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/recording"
)

// queries are n good answers of two tokens, due gap apart: the i-th has its first
// token after first(i) and its second a time per token later.
func queries(n int, gap int64, first func(i int) int64, tpot int64) recording.Slice {
	var s recording.Slice
	for i := range n {
		t := steadyTrace(int64(i), 2, first(i), tpot)
		t.Due = int64(i) * gap
		t.Sent, t.End = recording.Some(t.Due), recording.Some(t.Due+first(i)+tpot)
		s = append(s, t)
	}
	return s
}

// inMs is 1, 2, 3 … ms, in an order that is not theirs.
func inMs(n int) func(int) int64 {
	return func(i int) int64 { return int64(i*7%n+1) * 1e6 }
}

// mlperfOf judges a recording from time zero on, whose measured phase is known.
func mlperfOf(t *testing.T, s recording.Slice, o MLPerfOptions) *MLPerf {
	t.Helper()
	meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1e12)}
	whole := evaluate(t, s, meta, Options{MLPerf: o}).MLPerf
	small := evaluate(t, s, meta, Options{MLPerf: o, keepAtMost: 16}).MLPerf
	if a, b := rulesOf(whole), rulesOf(small); a != b || fmt.Sprint(figuresOf(whole)) != fmt.Sprint(figuresOf(small)) {
		t.Errorf("in two passes: %s %v, in one: %s %v", b, figuresOf(small), a, figuresOf(whole))
	}
	return whole
}

// rulesOf is the verdict with the rules that are not met.
func rulesOf(m *MLPerf) string {
	parts := []string{m.Verdict}
	for _, r := range m.Rules {
		if !r.Met {
			parts = append(parts, r.Rule)
		}
	}
	return strings.Join(parts, " ")
}

func figuresOf(m *MLPerf) (all []string) {
	for _, p := range m.Percentiles {
		all = append(all, fmt.Sprintf("%s p%g rank %d", p.Metric, 100*p.P, p.Rank))
		if p.Value != nil {
			all = append(all, strconv.FormatInt(*p.Value, 10))
		}
	}
	for _, e := range m.Estimates {
		all = append(all, fmt.Sprintf("%s p%g estimate %d", e.Metric, 100*e.P, e.Rank))
		if e.Value != nil {
			all = append(all, strconv.FormatInt(*e.Value, 10))
		}
	}
	return all
}

// A thousand times of 1 … 1000 ms: the 99th percentile of LoadGen's rank is 991 ms,
// and two of a thousand may be over (n(2) = 838, n(3) = 1001).
func TestMLPerfServer(t *testing.T) {
	const n = 1000
	s := queries(n, 1e6, inMs(n), 20e6)
	const lasted = 999 * time.Millisecond // the last one is due then
	for _, c := range []struct {
		name string
		o    MLPerfOptions
		want string
	}{
		{"far below", MLPerfOptions{TTFT: 2 * time.Second, TPOT: 40 * time.Millisecond}, "VALID"},
		{"two over", MLPerfOptions{TTFT: 998 * time.Millisecond, TPOT: 20 * time.Millisecond}, "VALID"},
		{"three over", MLPerfOptions{TTFT: 997 * time.Millisecond, TPOT: 20 * time.Millisecond}, "INVALID early_stopping_ttft"},
		{"the percentile itself", MLPerfOptions{TTFT: 991 * time.Millisecond, TPOT: 20 * time.Millisecond}, "INVALID early_stopping_ttft"},
		{"a ns below it", MLPerfOptions{TTFT: 991*time.Millisecond - 1, TPOT: 20 * time.Millisecond}, "INVALID ttft_p99 early_stopping_ttft"},
		{"all over", MLPerfOptions{TTFT: 2 * time.Second, TPOT: 20*time.Millisecond - 1}, "INVALID tpot_p99 early_stopping_tpot"},
		{"both", MLPerfOptions{TTFT: time.Millisecond, TPOT: time.Millisecond}, "INVALID ttft_p99 tpot_p99 early_stopping_ttft early_stopping_tpot"},
		{"end to end", MLPerfOptions{Latency: 1018 * time.Millisecond}, "VALID"}, // 1019 and 1020 ms are over
		{"end to end, three over", MLPerfOptions{Latency: 1017 * time.Millisecond}, "INVALID early_stopping_latency"},
		{"as long as it must", MLPerfOptions{Benchmark: "llama2-70b", MinDuration: lasted}, "VALID"},
		{"too short", MLPerfOptions{Benchmark: "llama2-70b", MinDuration: lasted + 1}, "INVALID min_duration"},
		{"as many as it must", MLPerfOptions{Benchmark: "llama2-70b", MinQueries: n}, "VALID"},
		{"too few", MLPerfOptions{Benchmark: "llama2-70b", MinQueries: n + 1}, "INVALID min_queries"},
		{"otherwise", MLPerfOptions{Benchmark: "llama2-70b", Otherwise: "gaps were constant"}, "INVALID issue"},
		{"the benchmark's own", MLPerfOptions{Benchmark: "llama3.1-8b", Scenario: InteractiveScenario}, "INVALID ttft_p99 early_stopping_ttft"},
	} {
		o := c.o
		if o.Scenario == "" {
			o.Scenario = ServerScenario
		}
		if o.MinDuration == 0 {
			o.MinDuration = time.Millisecond
		}
		m := mlperfOf(t, s, o)
		if got := rulesOf(m); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := strings.Join(figuresOf(m), ", "); got != "latency p99 rank 991, 1011000000, ttft p99 rank 991, 991000000, tpot p99 rank 991, 20000000" {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	// Index 999 is due at 999 ms and has its answer after 999·7 mod 1000 + 1 = 994 ms
	// and one token of 20: at 2.013 s.
	m := mlperfOf(t, s, MLPerfOptions{Scenario: ServerScenario, Benchmark: "llama2-70b"})
	for _, c := range []struct {
		name string
		got  *float64
		want float64
	}{
		{"scheduled", m.ScheduledRPS, 999 / .999},
		{"samples", m.SamplesPerS, 999 / 2.013},
		{"tokens", m.TokensPerS, 2000 / 2.013},
		{"attainment", m.Attainment.Share, 1},
	} {
		if c.got == nil || math.Abs(*c.got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Limits are judged apart: each may be missed by others, and jointly more miss.
func TestMLPerfLimitsAreApart(t *testing.T) {
	s := queries(1000, 1e6, func(int) int64 { return 100e6 }, 10e6)
	for i := range 2 {
		s[i].DeltaNs = []int64{3e9, 10e6}       // too late
		s[500+i].DeltaNs = []int64{100e6, 50e6} // too slow
	}
	m := mlperfOf(t, s, MLPerfOptions{Scenario: ServerScenario, TTFT: time.Second, TPOT: 20 * time.Millisecond, MinDuration: time.Millisecond})
	if m.Verdict != Valid || m.Attainment == nil || math.Abs(*m.Attainment.Share-0.996) > 1e-12 {
		t.Errorf("%s, attainment %+v; want VALID with 0.996", rulesOf(m), m.Attainment)
	}
	if got := m.Attainment.Objective; got != "ttft<=1s and tpot<=20ms @99%" {
		t.Errorf("objective %q", got)
	}
}

// A failed request is over every limit, and the run is none of MLPerf's.
func TestMLPerfFailures(t *testing.T) {
	s := queries(1000, 1e6, func(int) int64 { return 100e6 }, 10e6)
	for i := range 11 {
		due := s[i*50].Due
		s[i*50] = failedTrace(int64(i*50), recording.Timeout)
		s[i*50].Due = due
	}
	m := mlperfOf(t, s, MLPerfOptions{Scenario: ServerScenario, TTFT: time.Second, TPOT: time.Second, MinDuration: time.Millisecond})
	if got := rulesOf(m); got != "INVALID complete ttft_p99 tpot_p99 early_stopping_ttft early_stopping_tpot" {
		t.Error(got)
	}
	for _, p := range m.Percentiles { // ranks 990 … 1000 are theirs
		if p.Value != nil {
			t.Errorf("%s has a percentile of %d", p.Metric, *p.Value)
		}
	}
}

// An answer of one token has no time per token: LoadGen's is below every limit.
func TestMLPerfOneToken(t *testing.T) {
	s := queries(700, 1e6, func(int) int64 { return 100e6 }, 10e6)
	for i := range 400 {
		one := steadyTrace(int64(i), 1, 100e6, 0)
		one.Due = s[i].Due
		s[i] = one
	}
	o := MLPerfOptions{Scenario: ServerScenario, TTFT: time.Second, TPOT: 5 * time.Millisecond, MinDuration: time.Millisecond}
	m := mlperfOf(t, s, o)
	if *m.Percentiles[2].Over != 300 || *m.Percentiles[2].Value != 10e6 {
		t.Errorf("%d over, %d ns", *m.Percentiles[2].Over, *m.Percentiles[2].Value)
	}
	for _, d := range m.Differences {
		if d.Code == "one_token" {
			if !strings.HasPrefix(d.Text, "400 answers") {
				t.Error(d.Text)
			}
			return
		}
	}
	t.Error("nothing says that answers have one token")
}

// 300 queries allow 18 over p90 (n(18) = 300): the estimate is the 18th largest, and
// 17 are discarded. 63 are too few for any.
func TestMLPerfSingleStream(t *testing.T) {
	o := MLPerfOptions{Scenario: SingleStreamScenario, MinDuration: time.Millisecond, MinQueries: 10}
	m := mlperfOf(t, queries(300, 2e9, inMs(300), 5e6), o)
	want := "latency p90 rank 271, 276000000, ttft p90 rank 271, 271000000, tpot p90 rank 271, 5000000, " +
		"latency p90 estimate 283, 288000000, ttft p90 estimate 283, 283000000, tpot p90 estimate 283, 5000000"
	if got := strings.Join(figuresOf(m), ", "); got != want || m.Verdict != Valid || m.Estimates[0].Discarded != 17 {
		t.Errorf("%s: %s, want %s", rulesOf(m), got, want)
	}
	if m = mlperfOf(t, queries(64, 2e9, inMs(64), 5e6), o); m.Verdict != Valid || *m.Estimates[0].Value != 69e6 {
		t.Errorf("64 queries: %s, %v", rulesOf(m), figuresOf(m))
	}
	if m = mlperfOf(t, queries(63, 2e9, inMs(63), 5e6), o); rulesOf(m) != "INVALID early_stopping" || len(m.Estimates) != 0 {
		t.Errorf("63 queries: %s, %v", rulesOf(m), figuresOf(m))
	}
	if m = mlperfOf(t, queries(662, 2e9, inMs(661), 5e6), o); *m.Estimates[1].Value != 666e6 || m.Estimates[1].P < 0.99 {
		t.Errorf("662 queries: %v", figuresOf(m))
	}
}

// A query is as slow as its slowest request; 662 of them are the least for an
// estimate of p99, which is their maximum.
func TestMLPerfMultiStream(t *testing.T) {
	make2 := func(n int) recording.Slice {
		var s recording.Slice
		for i, q := range queries(n, 2e9, inMs(n), 5e6) {
			other := q.Clone()
			q.Index, other.Index = int64(2*i), int64(2*i+1)
			q.Session = strconv.Itoa(i)
			other.Session = q.Session
			slower := &q
			if i%2 == 1 {
				slower = &other
			}
			slower.DeltaNs = []int64{slower.DeltaNs[0] + 1e9, 5e6}
			s = append(s, q, other)
		}
		return s
	}
	o := MLPerfOptions{Scenario: MultiStreamScenario, MinDuration: time.Millisecond}
	m := mlperfOf(t, make2(662), o)
	if m.Verdict != Valid || m.Queries != 662 || m.Requests != 1324 || *m.Estimates[0].Value != 1667e6 || m.Estimates[0].Rank != 662 {
		t.Errorf("%s, %d queries of %d requests, %v", rulesOf(m), m.Queries, m.Requests, figuresOf(m))
	}
	if p := m.Percentiles[0]; p.Rank != 656 || *p.Value != 1661e6 { // ⌊655.38⌋ + 1
		t.Errorf("rank %d, %d", p.Rank, *p.Value)
	}
	if m = mlperfOf(t, make2(661), o); rulesOf(m) != "INVALID min_queries early_stopping" || m.Percentiles[0].N != 661 {
		t.Errorf("%s, %v", rulesOf(m), figuresOf(m))
	}
}

// Offline: everything over the longest latency.
func TestMLPerfOffline(t *testing.T) {
	s := queries(400, 0, inMs(400), 100e6)
	m := mlperfOf(t, s, MLPerfOptions{Scenario: OfflineScenario, MinDuration: 500 * time.Millisecond, MinQueries: 400})
	if m.Verdict != Valid || math.Abs(*m.SamplesPerS-800) > 1e-9 || math.Abs(*m.TokensPerS-1600) > 1e-9 || m.ScheduledRPS != nil {
		t.Errorf("%s: %v samples/s, %v tokens/s", rulesOf(m), *m.SamplesPerS, *m.TokensPerS)
	}
	if m = mlperfOf(t, s, MLPerfOptions{Scenario: OfflineScenario}); rulesOf(m) != "INVALID min_duration min_queries" {
		t.Error(rulesOf(m))
	}
}

func TestMLPerfLosses(t *testing.T) {
	of := func(scenario string, o MLPerfOptions, s recording.Slice) *Result {
		o.Scenario, o.MinDuration, o.MinQueries = scenario, time.Millisecond, 1
		return evaluate(t, s, recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1e12)}, Options{MLPerf: o})
	}
	offline := of(OfflineScenario, MLPerfOptions{}, queries(400, 0, inMs(400), 100e6)) // 800 samples/s, 1600 tokens/s
	server := of(ServerScenario, MLPerfOptions{TTFT: time.Second, TPOT: time.Second}, queries(1001, 2e6, func(int) int64 { return 400e6 }, 100e6))
	MLPerfLosses([]*Result{server, offline})
	l := server.MLPerf.Loss // 1000 in 2 + .5 s, 2002 tokens
	if l == nil || math.Abs(*l.Samples-.5) > 1e-12 || math.Abs(*l.Tokens-(1-800.8/1600)) > 1e-12 || !l.Valid || offline.MLPerf.Loss != nil {
		t.Errorf("%+v", l)
	}
	server.MLPerf.Loss, server.Run.Model = nil, "another"
	if MLPerfLosses([]*Result{server, offline}); server.MLPerf.Loss != nil {
		t.Error("two models are compared")
	}
}

// No request, and all failed, get a verdict too.
func TestMLPerfOfNothing(t *testing.T) {
	for _, scenario := range Scenarios() {
		o := MLPerfOptions{Scenario: scenario, Benchmark: "llama2-70b"}
		if m := mlperfOf(t, nil, o); m.Verdict != Invalid || m.Requests != 0 {
			t.Errorf("%s of nothing: %s", scenario, rulesOf(m))
		}
		if m := mlperfOf(t, recording.Slice{failedTrace(0, recording.Timeout)}, o); m.Verdict != Invalid || m.SamplesPerS != nil || m.TokensPerS != nil {
			t.Errorf("%s of one failed: %s", scenario, rulesOf(m))
		}
	}
}

func TestMLPerfOptionsCheck(t *testing.T) {
	for _, c := range []struct {
		o    MLPerfOptions
		want string
	}{
		{MLPerfOptions{}, ""},
		{MLPerfOptions{Scenario: OfflineScenario, Benchmark: "llama2-70b"}, ""},
		{MLPerfOptions{Scenario: ServerScenario, TTFT: 1}, ""},
		{MLPerfOptions{Scenario: "serve"}, "scenario: must be one of single-stream, multi-stream, server, offline, interactive"},
		{MLPerfOptions{Scenario: ServerScenario}, "scenario: is server, which bounds latencies: give benchmark"},
		{MLPerfOptions{Scenario: InteractiveScenario, Benchmark: "mixtral-8x7b"}, "benchmark: mixtral-8x7b has no limits in scenario interactive"},
		{MLPerfOptions{Scenario: ServerScenario, Benchmark: "llama"}, "benchmark: must be one of deepseek-r1, "},
		{MLPerfOptions{Scenario: OfflineScenario, TTFT: 1}, "scenario: is offline, which bounds no latency"},
		{MLPerfOptions{Benchmark: "llama2-70b"}, "benchmark: belongs to a scenario"},
		{MLPerfOptions{MinQueries: 3}, "min_queries: belongs to a scenario"},
		{MLPerfOptions{Scenario: OfflineScenario, MinQueries: -3}, "min_queries: must be 1 or more"},
		{MLPerfOptions{Scenario: OfflineScenario, MinDuration: -3}, "min_duration: must be more than 0"},
	} {
		got := ""
		for _, p := range c.o.Check() {
			got += p.Path + ": " + p.Text + "\n"
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
}

// Table 1.2 of the rules.
func TestMLPerfLimits(t *testing.T) {
	for _, c := range []struct {
		benchmark    string
		server, fast string
	}{
		{"llama2-70b", "ttft<=2s and tpot<=200ms", "ttft<=450ms and tpot<=40ms"},
		{"mixtral-8x7b", "ttft<=2s and tpot<=200ms", ""},
		{"llama3.1-405b", "ttft<=6s and tpot<=175ms", "ttft<=4.5s and tpot<=80ms"},
		{"llama3.1-8b", "ttft<=2s and tpot<=100ms", "ttft<=500ms and tpot<=30ms"},
		{"deepseek-r1", "ttft<=2s and tpot<=80ms", "ttft<=1.5s and tpot<=15ms"},
		{"gpt-oss-120b", "ttft<=3s and tpot<=80ms", "ttft<=2s and tpot<=15ms"},
		{"qwen3-vl-235b", "e2e<=12s", "e2e<=1.5s"},
	} {
		for scenario, want := range map[string]string{ServerScenario: c.server, InteractiveScenario: c.fast} {
			m := mlperf{o: MLPerfOptions{Scenario: scenario, Benchmark: c.benchmark}.Filled()}
			if want != "" {
				want += " @99%"
			}
			if got := m.objective(); got != want {
				t.Errorf("%s, %s: %q, want %q", c.benchmark, scenario, got, want)
			}
		}
	}
}

// A figure beside its bound is as long as it takes to see on which side it stands.
func TestFigureBesideItsBound(t *testing.T) {
	for _, c := range []struct {
		ns, bound int64
		want      string
	}{
		{82_904_301, 100_000_000, "82.9ms"},
		{82_904_301, 82_904_565, "82.904301ms"},
		{100_000_001, 100_000_000, "100.000001ms"},
		{2_000_000_000, 2_000_000_000, "2s"},
	} {
		if got := besideBound(c.ns, c.bound); got != c.want {
			t.Errorf("%d beside %d: %s, want %s", c.ns, c.bound, got, c.want)
		}
	}
}
