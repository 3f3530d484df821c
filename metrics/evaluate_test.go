package metrics

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"fermata/deadline"
	"fermata/recording"
)

// steadyTrace is a measured request, due at a second's fraction, whose answer has
// n tokens a gap apart.
func steadyTrace(index int64, n int, ttft, gap int64) recording.Trace {
	t := recording.Trace{
		Index: index, Phase: recording.Measured, Due: index * 100_000_000,
		Outcome: recording.OK, FinishReason: "length",
	}
	t.Sent = recording.Some(t.Due)
	t.Prompt.Used, t.Output.Used = recording.Some[int32](100), recording.Some(int32(n))
	for i := range n {
		d := gap
		if i == 0 {
			d = ttft
		}
		t.DeltaNs, t.Tokens = append(t.DeltaNs, d), append(t.Tokens, 1)
	}
	t.End = recording.Some(t.Due + ttft + int64(n-1)*gap)
	return t
}

func failedTrace(index int64, outcome recording.Outcome) recording.Trace {
	t := recording.Trace{Index: index, Phase: recording.Measured, Due: index * 100_000_000, Outcome: outcome, FailedAt: recording.AtHeaders, Error: "it went wrong"}
	t.Sent, t.End = recording.Some(t.Due), recording.Some(t.Due+1000)
	if outcome == recording.HTTPError {
		t.HTTPStatus = 503
	}
	return t
}

func objectivesOf(t *testing.T, texts ...string) (out []Objective) {
	t.Helper()
	for _, s := range texts {
		o, err := ParseObjective(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func evaluate(t *testing.T, s recording.Slice, meta recording.Meta, opt Options) *Result {
	t.Helper()
	r, err := Evaluate(s, meta, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codes(r *Result) string {
	var c []string
	for _, w := range r.Warnings {
		c = append(c, w.Code)
	}
	return strings.Join(c, " ")
}

// Half of the answers are 503: nothing is dropped from any denominator.
func TestHalfFail(t *testing.T) {
	var s recording.Slice
	for i := range int64(1000) {
		if i%2 == 0 {
			s = append(s, failedTrace(i, recording.HTTPError))
		} else {
			s = append(s, steadyTrace(i, 20, 200_000_000, 20_000_000))
		}
	}
	meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](100e9)}
	r := evaluate(t, s, meta, Options{SLO: objectivesOf(t, "ttft<=1s", "tbt<=1s@p99", "error<=1%", "error<=60%", "ttft<=1s @40%", "ttft<=1s@p50")})
	if f := r.Failures; len(f) != 1 || f[0] != (Failure{"http_error", "headers", 503, 500, 0, "it went wrong"}) {
		t.Errorf("failures %+v", f)
	}
	if d := r.Metrics.TTFTDue; d.N != 500 || d.Missing != 500 || math.Abs(d.Over[0].ShareWithMissing-0.5) > 0 || d.Over[0].Share > 0 {
		t.Errorf("ttft %+v", d)
	}
	verdicts := ""
	for _, v := range r.SLO {
		verdicts += v.Verdict + " "
	}
	// Of 9500 gaps and 500 that never ended, the 99th percentile is one that never
	// did. The share that answered is 0.5, which 0.4 lies below and 0.5 within.
	if verdicts != "missed missed missed met met open " {
		t.Errorf("verdicts %s", verdicts)
	}
	if v := r.SLO[0]; math.Abs(*v.Share-0.5) > 0 || v.Value != nil {
		t.Errorf("%+v", v)
	}
	if v := r.SLO[5]; v.Value == nil || *v.Value > 200e6 || v.High != nil || *v.Low < 200e6 {
		t.Errorf("%+v", v)
	}
	if g := r.Goodput[0]; math.Abs(*g.Share-0.5) > 0 || math.Abs(*g.RequestsS-5) > 1e-12 || math.Abs(*g.TokensS-100) > 1e-9 {
		t.Errorf("goodput %+v", g)
	}
	for _, f := range r.Fluidity {
		if f.Index.N != 1000 || *f.ShareAtLeast0_9 > 0.5 || f.Met != 500*19 {
			t.Errorf("fluidity %+v", f)
		}
	}
	if f := r.FluidRate[0]; f.Feasible || f.GapNs != nil || f.TokensPS != nil || f.High != nil {
		t.Errorf("fluid rate %+v", f)
	}
	if got := codes(r); !strings.HasPrefix(got, "failures ") {
		t.Errorf("warnings %s", got)
	}
	s = append(s, failedTrace(1000, recording.Timeout))
	if r := evaluate(t, s, meta, Options{}); !strings.HasPrefix(codes(r), "not_a_measurement failures") || !strings.HasPrefix(r.Warnings[0].Text, "This is not a measurement of the server's speed") {
		t.Errorf("warnings %s: %+v", codes(r), r.Warnings[0])
	}
	if r := evaluate(t, s[:300], recording.Meta{Interrupted: "too many requests failed"}, Options{}); !strings.HasPrefix(codes(r), "not_a_measurement failures interrupted") {
		t.Errorf("warnings %s", codes(r))
	}
	if r := evaluate(t, s[:1], meta, Options{}); !strings.HasPrefix(codes(r), "not_a_measurement no_success") {
		t.Errorf("warnings %s", codes(r))
	}
}

// With expect: stop a finish by length is a failure of its own class.
func TestExpectStop(t *testing.T) {
	s := recording.Slice{steadyTrace(0, 20, 200_000_000, 20_000_000), steadyTrace(1, 20, 200_000_000, 20_000_000)}
	s[1].FinishReason, s[0].HTTPStatus = "stop", 200
	r := evaluate(t, s, recording.Meta{}, Options{ExpectStop: true, SLO: objectivesOf(t, "ttft<=1s")})
	if r.Outcomes["truncated"] != 1 || r.Outcomes["ok"] != 1 || len(r.Failures) != 1 || r.Failures[0].Outcome != "truncated" || r.Failures[0].Tokens != 20 {
		t.Errorf("outcomes %v, failures %+v", r.Outcomes, r.Failures)
	}
	if r.Metrics.TTFTDue.N != 2 || r.Metrics.TPOT.N != 1 || *r.SLO[0].Share > 0.5 || *r.Fluidity[0].Index.Min > 0 || r.Fluidity[0].Met != 19 {
		t.Errorf("ttft %d, tpot %d, share %v", r.Metrics.TTFTDue.N, r.Metrics.TPOT.N, *r.SLO[0].Share)
	}
	if !strings.Contains(codes(r), "truncated") {
		t.Errorf("warnings %s", codes(r))
	}
	if r := evaluate(t, s, recording.Meta{}, Options{}); r.Outcomes["ok"] != 2 || strings.Contains(codes(r), "truncated") {
		t.Errorf("without it: %v, %s", r.Outcomes, codes(r))
	}
}

func TestUsageDiffers(t *testing.T) {
	tr := steadyTrace(0, 11, 200_000_000, 20_000_000)
	tr.Output.Used, tr.Output.Reported = recording.Some[int32](21), recording.Some[int32](21)
	r := evaluate(t, recording.Slice{tr}, recording.Meta{}, Options{})
	m := r.Metrics
	near(t, "tpot", *m.TPOT.Min, 10e6, 0)
	near(t, "token pace", *m.TokenPace.Min, 20e6, 0)
	near(t, "normalized latency", *m.NormalizedLatency.Min, 19_047_619, 0)
	near(t, "gaps", float64(m.TBT.N), 10, 0)
	if w := r.Warnings[0]; w.Code != "usage_differs" || !strings.Contains(w.Text, "21 reported, 11 arrived") {
		t.Errorf("%+v", w)
	}
}

// Throughput takes every phase: whole requests by their last token, tokens by
// themselves. In flight counts every phase too.
func TestWindow(t *testing.T) {
	var s recording.Slice
	for i, phase := range []recording.Phase{recording.Warmup, recording.Measured, recording.Measured, recording.Drain} {
		tr := steadyTrace(int64(i), 11, 100_000_000, 10_000_000) // due at i·100 ms, tokens from 100 to 200 ms after it
		tr.Phase = phase
		s = append(s, tr)
	}
	meta := recording.Meta{WindowStart: recording.Some[int64](100e6), WindowEnd: recording.Some[int64](300e6), WindowWhy: "the next request was due"}
	r := evaluate(t, s, meta, Options{})
	// The warm-up request ends at 200 ms, the first measured one at 300 ms, which
	// is outside. Tokens in [100, 300): 11 + 10; the second measured one begins at 300.
	want := func(name string, got *float64, v float64) {
		t.Helper()
		if got == nil || math.Abs(*got-v) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
	want("requests", r.Throughput.RequestsPerS, 5)
	want("finished tokens", r.Throughput.OutputTokensPerSFinished, 55)
	want("arrived tokens", r.Throughput.OutputTokensPerSArrived, 105)
	want("input", r.Throughput.InputTokensPerS, 500)
	want("offered", r.Load.OfferedRPS, 10)
	want("achieved", r.Load.AchievedRPS, 10)
	want("in flight", r.Load.InFlightMean, 2) // two at any time
	if r.Load.InFlightMax != 2 || r.Load.Measured != 2 || r.Load.Sent != 2 || r.Window.Why != "the next request was due" {
		t.Errorf("%+v", r.Load)
	}

	// Ten times as fast: the same recording at a tenth of the times.
	fast := recording.Slice{}
	for _, tr := range s {
		tr = tr.Clone()
		tr.Due, tr.Sent.V, tr.End.V = tr.Due/10, tr.Sent.V/10, tr.End.V/10
		for j := range tr.DeltaNs {
			tr.DeltaNs[j] /= 10
			tr.StampErrorNs = append(tr.StampErrorNs, 1000)
		}
		fast = append(fast, tr)
	}
	meta.WindowStart.V, meta.WindowEnd.V, meta.TimeScale = 10e6, 30e6, 10
	r = evaluate(t, fast, meta, Options{})
	want("scaled arrived tokens", r.Throughput.OutputTokensPerSArrived, 105)
	want("scaled tpot", r.Metrics.TPOT.Max, 10e6)
	want("scaled bound", r.Health.BoundWidth.Max, 10_000)
	want("scale", &r.Window.TimeScale, 10)
}

func TestServerTimes(t *testing.T) {
	tr := steadyTrace(0, 5, 200_000_000, 20_000_000)
	tr.Sent = recording.Some[int64](5_000_000)
	tr.ServerReceived, tr.ServerQueue, tr.ServerPrefill = recording.Some[int64](6_000_000), recording.Some[int64](90_000_000), recording.Some[int64](80_000_000)
	tr.Channel = []int8{recording.ChannelReasoning, recording.ChannelReasoning, 0, 0, 0}
	m := evaluate(t, recording.Slice{tr}, recording.Meta{}, Options{}).Metrics
	for name, c := range map[string]struct {
		d    *Dist
		want float64
	}{
		"ttft_sent": {m.TTFTSent, 195e6}, "ttft_server": {m.TTFTServer, 194e6}, "network": {m.Network, 1e6}, "server_queue": {m.ServerQueue, 90e6},
		"prefill": {m.Prefill, 80e6}, "scheduling_delay": {m.SchedulingDelay, 114e6}, "ttft_answer": {m.TTFTAnswer, 240e6}, "stream_end": {m.StreamEnd, 280e6},
	} {
		if c.d == nil || math.Abs(*c.d.Min-c.want) > 0 {
			t.Errorf("%s: %+v, want %v", name, c.d, c.want)
		}
	}
}

func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		requests  int64
		tau, nEff float64
		p         int
		closed    bool
		load      float64
		want      string
	}{
		{49, 1, 49, 500, true, 0, "insufficient"},
		{50, 1, 50, 500, true, 0, "assumed"},
		{50, 1, 50, 900, true, 0, "assumed"},
		{50, 1, 50, 950, true, 0, "insufficient"},
		{500, 1, 500, 990, true, 0, "assumed"},
		{499, 1, 499, 990, true, 0, "insufficient"},
		{600, 1, 600, 990, false, 0, "open"},
		{600, 1, 600, 990, false, .5, "open"},
		{10, 1, 1e6, 500, true, 0, "insufficient"},
		{500, 10, 50, 500, true, 0, "assumed"},
		{499, 10, 49.9, 500, true, 0, "insufficient"},
		{4999, 10, 499.9, 990, true, 0, "insufficient"},
		{5000, 10, 500, 990, true, 0, "assumed"},
		{5000, 10, 500, 990, true, .5, "ok"},
		{500, 10, 49, 10, true, .5, "insufficient"},
	} {
		d := &dependence{load: c.load}
		if got := d.status(c.requests, c.tau, c.nEff, c.p, c.closed); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	d := &dependence{load: .5, drifts: true}
	if got := d.status(1e6, 1, 1e6, 500, true); got != "insufficient" {
		t.Errorf("a run without a steady state: %s", got)
	}
}

func TestHealth(t *testing.T) {
	var s recording.Slice
	for i := range int64(100) {
		s = append(s, steadyTrace(i, 5, 200_000_000, 20_000_000))
	}
	if h := evaluate(t, s, recording.Meta{}, Options{}).Health; h.ClientBound || h.Reasons == nil {
		t.Errorf("%+v", h)
	}
	late := append(recording.Slice{}, s...)
	for i := range late[:6] {
		if late[i].Sent.V += 11_000_000; i != 4 {
			continue
		}
		if h := evaluate(t, late, recording.Meta{}, Options{}).Health; h.ClientBound {
			t.Errorf("five of a hundred late, so not at p95, the highest percentile of 100: %+v", h)
		}
	}
	if h := evaluate(t, late, recording.Meta{}, Options{}).Health; !h.ClientBound || !strings.Contains(h.Reasons[0], "percentile 95 of lateness is 11 ms") {
		t.Errorf("%+v", h)
	}
	refused := append(recording.Slice{}, s...)
	for i := range refused[:50] {
		refused[i] = recording.Trace{Index: int64(i), Due: refused[i].Due, Phase: recording.Measured, Outcome: recording.Refused, FailedAt: recording.AtConnect}
	}
	if h := evaluate(t, refused, recording.Meta{}, Options{}).Health; h.ClientBound {
		t.Errorf("the server refused, we did not fail: %+v", h)
	}
	unsent := append(recording.Slice{}, s...)
	for i := range unsent[:6] {
		unsent[i] = recording.Trace{Index: int64(i), Due: unsent[i].Due, Phase: recording.Measured, Outcome: recording.NotSent}
	}
	if h := evaluate(t, unsent, recording.Meta{}, Options{}).Health; !h.ClientBound {
		t.Errorf("%+v", h)
	}
	if h := evaluate(t, unsent, recording.Meta{Interrupted: "interrupted"}, Options{}).Health; h.ClientBound {
		t.Errorf("interrupted: %+v", h)
	}
	busy := []recording.Sample{{CPU: 1.9, CoresFree: 0.1, GCPauseNs: 5, Waiting: 3}, {CPU: 0.1, CoresFree: 1.9}}
	r, err := Evaluate(s, recording.Meta{}, busy, Options{})
	if err != nil || !r.Health.ClientBound || *r.Health.CPUMax < 1.9 || *r.Health.GCPauseMax != 5 || !strings.Contains(codes(r), "waited") {
		t.Errorf("%+v, %v", r.Health, err)
	}
	idle := []recording.Sample{{CPU: 0.3, CoresFree: 0}, {CPU: 0.3, CoresFree: -1}}
	if r, _ := Evaluate(s, recording.Meta{}, idle, Options{}); r.Health.ClientBound {
		t.Errorf("someone else's load: %+v", r.Health)
	}
}

func TestWarnings(t *testing.T) {
	base := func() recording.Trace { return steadyTrace(0, 20, 200_000_000, 20_000_000) }
	for code, change := range map[string]func(*recording.Trace){
		"no_done":      func(t *recording.Trace) { t.Notes = []string{recording.NoteNoDone} },
		"gzip":         func(t *recording.Trace) { t.Notes = []string{recording.NoteGzip} },
		"many_choices": func(t *recording.Trace) { t.Notes = []string{recording.NoteManyChoices} },
		"usage_shared": func(t *recording.Trace) { t.ArrivalSource = recording.ArrivalShared },
		"bunched":      func(t *recording.Trace) { t.Tokens[3], t.Output.Used.V = 3, 22 },
		"stamp_bound":  func(t *recording.Trace) { t.StampErrorNs = slicesOf(20, 3_000_000) },
		"prompt_length": func(t *recording.Trace) {
			t.Prompt.Intended, t.Prompt.Reported = recording.Some[int32](1000), recording.Some[int32](1031)
		},
		"output_length": func(t *recording.Trace) { t.Output.Intended = recording.Some[int32](21) },
	} {
		quiet, loud := base(), base()
		change(&loud)
		if got := codes(evaluate(t, recording.Slice{loud}, recording.Meta{}, Options{})); !strings.Contains(got, code) {
			t.Errorf("%s is not among %s", code, got)
		}
		if got := codes(evaluate(t, recording.Slice{quiet}, recording.Meta{}, Options{})); got != "few_requests" {
			t.Errorf("a quiet answer gives %s", got)
		}
	}
	small := base()
	small.Prompt.Intended, small.Prompt.Reported = recording.Some[int32](1000), recording.Some[int32](1030)
	if got := codes(evaluate(t, recording.Slice{small}, recording.Meta{}, Options{})); got != "few_requests" {
		t.Errorf("3 %% off: %s", got)
	}
}

func slicesOf(n int, v int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// Slow and wrong answers are no goodput, though they may keep the objective.
func TestSlowAndChecked(t *testing.T) {
	s := recording.Slice{steadyTrace(0, 5, 200_000_000, 20_000_000), steadyTrace(1, 5, 200_000_000, 20_000_000), steadyTrace(2, 50, 200_000_000, 20_000_000)}
	s[0].Check, s[1].Check, s[2].Check = "pass", "fail", "pass"
	r := evaluate(t, s, recording.Meta{}, Options{SlowNs: 1e9, SLO: objectivesOf(t, "ttft<=1s", "schema>=99%", "e2e<=2s")})
	if g := r.Goodput; len(g) != 3 || *g[0].Share > 0.34 || g[2].Objective != "all" || *g[2].Share > 0.34 {
		t.Errorf("goodput %+v", g)
	}
	if math.Abs(*r.SLO[0].Share-1) > 0 || math.Abs(*r.SLO[1].Share-2./3) > 1e-12 {
		t.Errorf("slo %+v", r.SLO)
	}
}

type brokenSource struct{ recording.Slice }

func (brokenSource) Err() error { return errors.New("the disk is gone") }

func (b brokenSource) Traces(c recording.Columns) iter.Seq[recording.Trace] { return b.Slice.Traces(c) }

func TestEvaluateErrors(t *testing.T) {
	d, _ := deadline.Parse("fixed:1s")
	bad := steadyTrace(7, 3, 100, 10)
	bad.DeltaNs[1] = -5
	uneven := steadyTrace(8, 3, 100, 10)
	uneven.Tokens = uneven.Tokens[:2]
	for _, c := range []struct {
		src  recording.Source
		opt  Options
		says string
	}{
		{recording.Slice{}, Options{TargetGapsNs: []int64{0}}, "target gap of 0 ns"},
		{recording.Slice{}, Options{PaceNs: -1}, "pace"},
		{recording.Slice{}, Options{SlowNs: -1}, "slow"},
		{recording.Slice{}, Options{OverNs: []int64{-3}}, "over -3 ns"},
		{recording.Slice{}, Options{SLO: []Objective{{}}}, "without terms"},
		{recording.Slice{}, Options{SLO: objectivesOf(t, "fluidity.first>=0.9 gap=25ms")}, "first-token deadlines"},
		{brokenSource{}, Options{}, "the disk is gone"},
		{recording.Slice{bad}, Options{}, "request 7: arrival 1"},
		{recording.Slice{uneven}, Options{Deadlines: d}, "request 8: 3 arrivals"},
	} {
		if _, err := Evaluate(c.src, recording.Meta{}, nil, c.opt); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want something about %q", err, c.says)
		}
	}
	// Nothing at all is no error: the result says that there is nothing.
	r := evaluate(t, nil, recording.Meta{}, Options{Deadlines: d, SLO: objectivesOf(t, "ttft<=1s@p99", "tbt<=1s", "error<=1%", "fluidity>=0.9 gap=1ms")})
	for _, v := range r.SLO {
		if v.Verdict != Open {
			t.Errorf("%+v", v)
		}
	}
}

// Requests that come faster than they are answered make a queue that grows.
func TestBacklog(t *testing.T) {
	window := recording.Meta{WindowStart: recording.Some(int64(0)), WindowEnd: recording.Some(int64(10e9))}
	run := func(lasting func(due int64) int64) *Result {
		var s recording.Slice
		for i := range int64(200) { // 20 a second
			tr := steadyTrace(i, 5, 200_000_000, 20_000_000)
			tr.Due, tr.Sent = i*50_000_000, recording.Some(i*50_000_000)
			tr.End = recording.Some(tr.Due + lasting(tr.Due))
			s = append(s, tr)
		}
		return evaluate(t, s, window, Options{})
	}
	if r := run(func(int64) int64 { return 2e9 }); strings.Contains(codes(r), "backlog") {
		t.Error("40 under way throughout are no backlog")
	}
	// Answered at half the rate: the n-th ends at n/10 s; 50 and 100 are under way.
	r := run(func(due int64) int64 { return due + 100_000_000 })
	if !strings.Contains(codes(r), "backlog") {
		t.Errorf("warnings: %s", codes(r))
	}
	for _, w := range r.Warnings {
		if w.Code == "backlog" && !strings.Contains(w.Text, ": 51 were under way in the middle of the measured phase, 101 at its end") {
			t.Error(w.Text)
		}
	}
}

// What a user cuts off says nothing about the server.
func TestCutByUser(t *testing.T) {
	var s recording.Slice
	for i := range int64(4) {
		s = append(s, recording.Trace{Index: i, Due: i, Sent: recording.Some(i), Phase: recording.Measured, Outcome: recording.TruncatedByUs})
	}
	if c := codes(evaluate(t, s, recording.Meta{Interrupted: "interrupted"}, Options{})); strings.Contains(c, "not_a_measurement") || strings.Contains(c, "no_success") || !strings.Contains(c, "interrupted") {
		t.Errorf("warnings: %s", c)
	}
	for i := range s {
		s[i].Outcome = recording.StreamCut
	}
	if c := codes(evaluate(t, s, recording.Meta{Interrupted: "interrupted"}, Options{})); !strings.Contains(c, "not_a_measurement") {
		t.Errorf("warnings: %s", c)
	}
}

// What cannot be is refused by name of the request, not judged.
func TestImpossibleTraces(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*recording.Trace)
		want  string
	}{
		"tokens":   {func(tr *recording.Trace) { tr.Tokens[1] = 1 << 30 }, "arrival 1 is said to have brought 1073741824 tokens"},
		"negative": {func(tr *recording.Trace) { tr.Tokens[1] = -1 }, "arrival 1 is said to have brought -1 tokens"},
		"span":     {func(tr *recording.Trace) { tr.DeltaNs[1], tr.DeltaNs[2] = 1<<62, 1<<62 }, "its arrivals span over 100 days"},
		"count":    {func(tr *recording.Trace) { tr.Output.Used = recording.Some(int32(-4)) }, "its token counts are negative"},
		"phase":    {func(tr *recording.Trace) { tr.Phase = "lunch" }, `its phase is "lunch"`},
	} {
		tr := steadyTrace(7, 5, 200_000_000, 20_000_000)
		c.spoil(&tr)
		if _, err := Evaluate(recording.Slice{tr}, recording.Meta{}, nil, Options{}); err == nil || !strings.Contains(err.Error(), "request 7: "+c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr := steadyTrace(7, 5, 200_000_000, 20_000_000)
	tr.Phase = "" // a file of others
	if r := evaluate(t, recording.Slice{tr}, recording.Meta{}, Options{}); r.Load.Measured != 1 {
		t.Errorf("%d measured", r.Load.Measured)
	}
}

// Of an answer that was cut off, no event counts as one of an answer.
func TestBunchesAreOfAnswers(t *testing.T) {
	good, cut := steadyTrace(0, 5, 200_000_000, 20_000_000), steadyTrace(1, 5, 200_000_000, 20_000_000)
	cut.Outcome = recording.StreamCut
	r := evaluate(t, recording.Slice{good, cut}, recording.Meta{}, Options{})
	if d := r.Metrics.TokensPerEvent; d.N != 5 || d.NRequests != 1 {
		t.Errorf("tokens per event of %d arrivals in %d requests", d.N, d.NRequests)
	}
	if r.Metrics.TBT.N != 8 {
		t.Errorf("%d gaps, those of the answer that was cut off included", r.Metrics.TBT.N)
	}
}
