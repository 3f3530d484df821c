package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

// scenario is a run by MLPerf's rules, and the offline one that it is compared with.
func scenario() (server, offline *metrics.Result) {
	server, offline = bare(), bare()
	server.Run.Name, offline.Run.Name = "server", "offline"
	for _, r := range []*metrics.Result{server, offline} {
		r.Load.Measured, r.Outcomes = 1000, map[string]int64{"ok": 1000}
		r.Load.OfferedRPS, r.Load.AchievedRPS = ptr(4.0), ptr(4.0)
	}
	server.MLPerf = &metrics.MLPerf{
		Scenario: "server", Benchmark: "llama2-70b", Verdict: metrics.Invalid, Queries: 1000, Requests: 1000,
		Rules: []metrics.MLPerfRule{
			{Rule: "issue", Met: true, Text: "Poisson arrivals, however many are under way"},
			{Rule: "min_duration", Asked: ptr(int64(600e9)), Seen: ptr(int64(250e9)), Unit: "ns", Text: "the last query was due after 4m10s, 10m at least"},
			{Rule: "ttft_p99", Met: true, Asked: ptr(int64(2e9)), Seen: ptr(int64(2e9)), Unit: "ns", Text: "p99 is 2s, at most 2s"},
		},
		Percentiles: []metrics.MLPerfPercentile{
			{Metric: "latency", P: 0.99, N: 1000, Rank: 991},
			{Metric: "ttft", P: 0.99, N: 1000, Rank: 991, Value: ptr(int64(2e9)), Bound: ptr(int64(2e9)), Over: ptr(int64(3))},
		},
		Estimates:    []metrics.MLPerfEstimate{{Metric: "latency", P: 0.9, Rank: 923, Discarded: 77, Value: ptr(int64(1.5e9))}},
		ScheduledRPS: ptr(4.01), SamplesPerS: ptr(3.9), TokensPerS: ptr(390.0),
		Attainment: &metrics.Verdict{
			Objective: "ttft<=2s and tpot<=200ms @99%", Verdict: "open", Share: ptr(0.992), ShareLow: ptr(0.98), ShareHigh: ptr(0.998), Status: "assumed",
		},
		Differences: []metrics.MLPerfDifference{{Code: "rank", Text: "percentiles here are of LoadGen's rank ⌊np⌋ + 1 = 991 of 1000; elsewhere of rank ⌈np⌉ = 990"}},
	}
	offline.MLPerf = &metrics.MLPerf{
		Scenario: "offline", Benchmark: "llama2-70b", Verdict: metrics.Valid, Queries: 1000, Requests: 1000,
		Rules:       []metrics.MLPerfRule{{Rule: "issue", Met: true, Text: "all requests at once"}},
		Percentiles: []metrics.MLPerfPercentile{}, Estimates: []metrics.MLPerfEstimate{}, Differences: []metrics.MLPerfDifference{},
		SamplesPerS: ptr(6.0), TokensPerS: ptr(650.0),
	}
	return server, offline
}

// The verdict and every rule stand on the page of one run and of several; nothing
// sums them up.
func TestMLPerfPages(t *testing.T) {
	server, offline := scenario()
	both := []*metrics.Result{offline, server}
	metrics.MLPerfLosses(both)
	for _, c := range []struct {
		format  string
		results []*metrics.Result
		want    []string
	}{
		{"terminal", []*metrics.Result{server}, []string{
			"Measured: 1,000 of 1,000 requests ok (100%). MLPerf server: INVALID.", "MLPerf server, llama2-70b (LoadGen's rules and ranks)",
			"missed      min_duration: the last query was due after 4m10s, 10m at least", "met         ttft_p99: p99 is 2s, at most 2s",
			"latency p99 is that of a failed request (rank 991 of 1,000)", "ttft p99 2.00 s (rank 991 of 1,000) · 3 over 2.00 s",
			"latency p90 1.50 s · the 77 highest are discarded", "3.90 samples/s · 390 output tokens/s",
			"35.0% of the samples/s and 40.0% of the tokens/s of the offline run offline, though not both runs are valid", "ttft<=2s and tpot<=200ms @99% · 99.2% [98.0%, 99.8%] of requests",
			"LoadGen's rank ⌊np⌋ + 1 = 991 of 1000",
		}},
		{"terminal", both, []string{"MLPerf offline: VALID.", "MLPerf server: INVALID.", "(LoadGen's rules and ranks) of offline", "(LoadGen's rules and ranks) of server"}},
		{"markdown", both, []string{"MLPerf server, llama2-70b", "min_duration: the last"}},
		{"csv", both, []string{
			"server,mlperf/min_duration,ns,seen,,250000000000,,,,,missed", "server,mlperf/ttft,ns,quantile,0.99,2000000000",
			"server,mlperf/latency,ns,estimate,0.9,1500000000", "offline,mlperf,requests/s,samples,,6,,,,,VALID",
		}},
		{"json", both, []string{`"verdict": "INVALID"`, `"bound_ns": 2000000000`, `"against": "offline"`}},
	} {
		var b bytes.Buffer
		if err := Write(c.format, &b, c.results, TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s of %d: no %q in\n%s", c.format, len(c.results), want, b.String())
			}
		}
		if c.format == "json" {
			if err := ResultDocument.Validate(b.Bytes()); err != nil {
				t.Error(err)
			}
		}
	}
}
