package report

import (
	"math"
	"slices"

	"fermata/metrics"
)

func ptr[T any](v T) *T { return &v }

// dist is a distribution of values with the rank ceil(np) percentiles that
// metrics gives, made-up intervals of 10 % and the status rule of design: fewer
// than five values beyond a percentile are insufficient.
func dist(unit, better string, missing int64, values ...float64) *metrics.Dist {
	slices.Sort(values)
	n := float64(len(values))
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += (v - sum/n) * (v - sum/n)
	}
	d := &metrics.Dist{
		Unit: unit, N: int64(n), NRequests: int64(n), Missing: missing, Level: 0.95, Better: better,
		Mean: ptr(sum / n), SD: ptr(math.Sqrt(squares / (n - 1))), Min: ptr(values[0]), Max: ptr(values[len(values)-1]),
	}
	ps := []float64{0.5, 0.9, 0.95, 0.99, 0.999}
	if better == "higher" {
		ps = []float64{0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99}
	}
	for _, p := range ps {
		v := values[int(math.Ceil(n*p-1e-9))-1]
		q := metrics.Quantile{
			P: p, Value: v, Low: ptr(v * 0.95), High: ptr(v * 1.05), Tau: ptr(1.0), NEff: n,
			Rule: "order statistics", Status: "assumed",
		}
		if n*min(p, 1-p) < 5-1e-9 {
			q.Status, q.Low, q.High = "insufficient", nil, nil
		} else if p > 0.98 {
			q.Status, q.High = "open", nil
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	return d
}

// spread is n values from a to b in equal steps.
func spread(n int, a, b float64) []float64 {
	var v []float64
	for i := range n {
		v = append(v, math.Round(a+(b-a)*float64(i)/float64(max(1, n-1))))
	}
	return v
}

const ms = 1e6

// sample is a result as a server with or without freezes would give it: 600
// measured requests, 588 of them ok.
func sample(name string, freezes bool) *metrics.Result {
	tbt := spread(12_000, 19*ms, 22*ms)
	silence := spread(588, 22*ms, 26*ms)
	stalled := int64(0)
	tail := 24.1 * ms
	fluid := spread(600, 1, 1)
	if freezes {
		for i := range 240 {
			tbt[i*50] = 900 * ms
		}
		silence = append(spread(300, 24*ms, 27*ms), spread(288, 700*ms, 1500*ms)...)
		stalled, tail = 288, 900*ms
		for i := range 300 {
			fluid[i] = 0.88
		}
	}
	for i := range 12 {
		fluid[i] = 0
	}
	r := &metrics.Result{
		Schema: "fermata.result/1",
		Tool:   metrics.Tool{Name: "fermata", Version: "v0.1.0"},
		Run: metrics.Run{
			Name: name, Target: "http://127.0.0.1:8000/v1", Model: "tiny-135m", Seed: ptr(uint64(7)),
			Labels: map[string]string{"server": "llama.cpp b6000", "schedule": "poisson"},
		},
		Window: metrics.Window{StartNs: 6e9, EndNs: 156e9, Why: "600 measured requests", TimeScale: 1},
		Load: metrics.Load{
			OfferedRPS: ptr(4.0), AchievedRPS: ptr(3.99), Sent: 599, Measured: 600, InFlightMax: 14,
			InFlightMean: ptr(5.21), Lateness: dist("ns", "lower", 1, spread(599, 30e3, 210e3)...),
		},
		Outcomes: map[string]int64{"ok": 588, "http_error": 9, "timeout": 2, "not_sent": 1},
		Failures: []metrics.Failure{
			{Outcome: "http_error", FailedAt: "headers", HTTPStatus: 503, Count: 9, Error: "503 Service Unavailable: queue full"},
			{Outcome: "timeout", FailedAt: "mid_stream", Count: 2, Tokens: 37, Error: "no token for 60 s"},
			{Outcome: "not_sent", Count: 1},
		},
		FinishReasons: map[string]int64{"length": 500, "stop": 88},
		Metrics: metrics.Metrics{
			TTFTDue:           dist("ns", "lower", 10, spread(590, 45*ms, 320*ms)...),
			TTFTSent:          dist("ns", "lower", 10, spread(590, 44.9*ms, 319.8*ms)...),
			TBT:               dist("ns", "lower", 10, tbt...),
			TPOT:              dist("ns", "lower", 12, spread(588, 19.8*ms, 21.4*ms)...),
			TokenPace:         dist("ns", "lower", 12, spread(588, 20*ms, 21.5*ms)...),
			NormalizedLatency: dist("ns", "lower", 12, spread(588, 22*ms, 29*ms)...),
			E2E:               dist("ns", "lower", 12, spread(588, 1200*ms, 2900*ms)...),
			GapLongest:        dist("ns", "lower", 10, silence...),
			EvenGap:           dist("ns", "lower", 12, spread(588, 20*ms, 21.9*ms)...),
			TPS:               dist("tokens/s", "higher", 12, spread(588, 47, 53)...),
			StallLongest:      dist("ns", "lower", 12, spread(588, 0, float64(stalled)*5*ms)...),
			StallsPerRequest:  dist("1", "lower", 12, spread(588, 0, float64(stalled)/288)...),
			TokensPerEvent:    dist("tokens", "", 10, spread(11_000, 1, 4)...),
			OutputTokens:      dist("tokens", "", 10, spread(588, 60, 120)...),
		},
		Stalls:  &metrics.Stalls{PaceNs: 166_666_667, RequestsWithAny: stalled, Share: float64(stalled) / 588},
		Freezes: &metrics.Freezes{OverNs: 1e9, Answers: 588},
		Worst:   map[string][]int64{"wait": {5, 3}},
		Throughput: metrics.Throughput{
			RequestsPerS: ptr(3.92), OutputTokensPerSFinished: ptr(352.8),
			OutputTokensPerSArrived: ptr(353.1), InputTokensPerS: ptr(2007.0),
		},
		FluidRate: []metrics.FluidRate{
			{
				Variant: "decode", GapNs: ptr(int64(20_833_334)), TokensPS: ptr(1e9 / 20_833_334), Share: 0.99, Index: 0.9, Feasible: true,
				Low: ptr(44.0), High: ptr(49.0),
			},
			{Variant: "first_token", Share: 0.99, Index: 0.9},
		},
		Rates: metrics.Rates{TPOT: ptr(48.5), TailTBT: ptr(1e9 / tail), Fluid: ptr(48.0)},
		Goodput: []metrics.Goodput{{
			Objective: "ttft<=500ms and tbt.p99<=50ms @99%", RequestsS: ptr(3.7), TokensS: ptr(333.0),
			Share: ptr(0.925), ShareLow: ptr(0.9), ShareHigh: ptr(0.944),
		}},
		SLO: []metrics.Verdict{
			{Objective: "ttft<=500ms @p90", Verdict: "met", Value: ptr(292e6), Low: ptr(280e6), High: ptr(301e6), Unit: "ns", Status: "assumed"},
			{Objective: "tbt<=50ms @p99", Verdict: "met", Value: ptr(tail), Low: ptr(tail * 0.95), High: ptr(tail * 1.05), Unit: "ns", WithoutIt: 2, Status: "assumed"},
		},
		SameEventShare: ptr(0.031), SameReadShare: ptr(0.12), TogetherShare: ptr(0.034),
		Health: metrics.Health{
			ExactShare: ptr(0.9996), BoundWidth: dist("ns", "lower", 0, spread(500, 20e3, 90e3)...),
			ReadLag: dist("ns", "lower", 0, spread(5000, 2e3, 60e3)...), CPUMax: ptr(0.21), GCPauseMax: ptr(int64(180_000)),
			ReadsLeftShare: ptr(0.0004), CPUPressureMax: ptr(0.12), GCCycles: ptr(int64(7)), ClockStepMax: ptr(int64(900)),
		},
		Server: &metrics.Server{
			Names: "vllm", Seconds: 148, RunningMean: ptr(4.4), RunningMax: ptr(8.0), WaitingMean: ptr(0.1), WaitingMax: ptr(2.0),
			KVUsageMean: ptr(0.31), KVUsageMax: ptr(0.52), Preemptions: ptr(3.0), PrefixHitShare: ptr(0.25),
			InFlightMean: 4.5, InFlightMax: 10,
		},
		Warnings: []metrics.Warning{{
			Code: "usage_shared",
			Text: "in 212 answers one event brought several tokens, and the server did not say how many: they were shared out by bytes of text",
			Help: "ask the server for token ids or logprobs if gaps within such events matter",
		}},
	}
	if freezes {
		r.Metrics.StallPosition = dist("tokens", "", 0, spread(288, 40, 60)...)
		r.SLO[1].Verdict = "missed"
		r.Freezes.RequestsWithAny, r.Freezes.Share, r.Freezes.LongestNs = 144, 144./588, ptr(int64(1500*ms))
		r.BlindSpots = []metrics.BlindSpot{{
			Code: metrics.StallHidden, Text: "TPOT is 20.6 ms at the median; yet 24 % of readers (144 of 588) saw a freeze over 1 s, the longest of 1.5 s",
			Figures: map[string]float64{"tpot_p50_ns": 20.6 * ms, "share_frozen": 144. / 588}, Requests: []int64{17, 4, 230, 231, 99, 8},
		}}
		r.Worst["freeze"] = r.BlindSpots[0].Requests
		r.FluidRate[0] = metrics.FluidRate{Variant: "decode", GapNs: ptr(int64(310 * ms)), TokensPS: ptr(1e9 / (310 * ms)), Share: 0.99, Index: 0.9, Feasible: true}
		r.Rates.Fluid = ptr(1e9 / (310 * ms))
	}
	good := 0
	for _, f := range fluid {
		if f >= 0.9 {
			good++
		}
	}
	r.Metrics.TTFTDue.Over = []metrics.Over{
		{Value: 1e9, Share: 0, ShareWithMissing: 10.0 / 600, High: ptr(0.006), Low: ptr(0.0)},
		{Value: 5e9, Share: 0, ShareWithMissing: 10.0 / 600, High: ptr(0.006), Low: ptr(0.0)},
	}
	r.Metrics.GapLongest.Over = []metrics.Over{{
		Value: 1e9, Share: float64(stalled) / 588 / 2, ShareWithMissing: (float64(stalled)/2 + 10) / 600,
		Low: ptr(float64(stalled) / 600 / 2.2), High: ptr(float64(stalled) / 600 / 1.8),
	}, {Value: 5e9}}
	for _, gap := range []int64{25e6, 100e6} {
		r.Fluidity = append(r.Fluidity, metrics.Fluidity{
			Variant: "decode", TargetGapNs: gap, Carry: "unlimited",
			Index: dist("1", "higher", 0, slices.Clone(fluid)...), ShareAtLeast0_9: ptr(float64(good) / 600), Met: 51_000, Missed: 1000,
		})
	}
	r.Fluidity = append(r.Fluidity, metrics.Fluidity{
		Variant: "first_token", TargetGapNs: 100e6, Carry: "unlimited",
		Deadline: &metrics.Deadline{Shape: "fixed", Text: "fixed:300ms", Source: "given"}, SlackNs: ptr(int64(0)),
		Index: dist("1", "higher", 0, slices.Clone(fluid)...), ShareAtLeast0_9: ptr(float64(good) / 600), Met: 51_500, Missed: 1100,
	})
	return r
}
