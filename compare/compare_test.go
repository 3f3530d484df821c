package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"fermata/metrics"
	"fermata/recording"
)

// run is a run of n requests whose time to first token is ttft(i) ns; a negative
// one is a failure. Its mean is that of those that have one.
func run(name string, seed uint64, n int, ttft func(i int) int64) Run {
	r := Run{Name: name, Load: []Fact{{"schedule.rate", "4"}}, Result: &metrics.Result{
		Run: metrics.Run{Seed: &seed}, Outcomes: map[string]int64{}, Window: metrics.Window{TimeScale: 1},
	}}
	r.Result.Load.Measured = int64(n)
	sum, good := 0.0, int64(0)
	for i := range n {
		v := ttft(i)
		one := metrics.Request{Index: int64(i), Due: int64(i) * 1e9, Prompt: recording.Some(int32(100 + i%10))}
		if v >= 0 {
			if name == "b" { // or equal times would be one recording
				one.GapLongest = recording.Some(int64(1))
			}
			one.Good, one.TTFT, one.E2E = true, recording.Some(v), recording.Some(2*v)
			sum += float64(v)
			good++
		}
		r.Requests = append(r.Requests, one)
	}
	if r.Result.Outcomes["ok"] = good; good > 0 {
		mean := sum / float64(good)
		r.Result.Metrics.TTFTDue = &metrics.Dist{Unit: "ns", Mean: &mean}
	}
	return r
}

var (
	meanTTFT = Measure{
		Metric: "ttft_due", Stat: "mean", Unit: "ns", Better: "lower", Ratios: true,
		Of: func(r *metrics.Result) *float64 {
			if r.Metrics.TTFTDue == nil {
				return nil
			}
			return r.Metrics.TTFTDue.Mean
		},
		Each: func(r *metrics.Request) (float64, bool) { return float64(r.TTFT.V), r.TTFT.OK },
	}
	failures = Measure{
		Metric: "failed_share", Unit: "share", Better: "lower",
		Of: func(r *metrics.Result) *float64 {
			v := 1 - float64(r.Outcomes["ok"])/float64(r.Load.Measured)
			return &v
		},
		Each: func(r *metrics.Request) (float64, bool) {
			if r.Good {
				return 0, true
			}
			return 1, true
		},
	}
)

func percentile99(m Measure) Measure {
	m.Stat, m.Percentile, m.Each = "p99", 0.99, nil
	return m
}

func steady(v int64) func(int) int64 { return func(int) int64 { return v } }

func near(t *testing.T, what string, got *float64, want, within float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > within {
		t.Errorf("%s is %v, not %g", what, value(got), want)
	}
}

func value(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func must(t *testing.T, systems []System, measures ...Measure) *Comparison {
	t.Helper()
	c, err := Compare(systems, measures)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Student's sleep data (published with R) as logarithms of the runs' means: R's
// t.test(b, a, paired = TRUE) has mean 1.58, p = 0.002833 and the interval
// 0.7001142 … 2.4598858; (var a + var b)/var(b - a) = 7.2098/1.5129 by hand.
func TestPairedRuns(t *testing.T) {
	a := []float64{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2}
	b := []float64{1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	systems := []System{{Name: "a"}, {Name: "b"}}
	for i := range a {
		of := func(v float64) func(int) int64 { return steady(int64(math.Exp(v) * 1e9)) }
		systems[0].Runs = append(systems[0].Runs, run("a", uint64(i), 10, of(a[i])))
		systems[1].Runs = append(systems[1].Runs, run("b", uint64(9-i), 10, of(b[9-i]))) // in another order
	}
	c := must(t, systems, meanTTFT, failures)
	e := c.Metrics[0]
	if e.Method != PairedRuns || e.N != 10 || !e.Resolved || e.Better != "a" || !c.Worse() {
		t.Errorf("%+v", e)
	}
	ga := math.Exp(.75) * 1e9 // the mean of a is 0.75, that of b 2.33
	near(t, "a", e.A, ga, 10)
	near(t, "b", e.B, math.Exp(2.33)*1e9, 10)
	near(t, "difference", e.Difference, *e.B-*e.A, 0)
	near(t, "p", e.P, .002833, 1e-6)
	near(t, "adjusted p", e.PAdjusted, 2*.002833, 2e-6) // the other of the two questions has p = 1
	near(t, "low", e.Low, ga*math.Expm1(.7001142), ga*1e-6)
	near(t, "high", e.High, ga*math.Expm1(2.4598858), ga*1e-5)
	near(t, "variance ratio", e.VarianceRatio, (3.200556+4.009)/1.512889, 1e-4)
	near(t, "relative", &e.Relative.Difference, math.Expm1(1.58), 1e-6)
	if f := c.Metrics[1]; f.Resolved || f.Why != Chance || f.Relative != nil || f.Better != "" {
		t.Errorf("equal shares: %+v", f)
	}
}

// Other seeds are no pairs: Welch's test of the same data has p = 0.07939.
func TestRunsWithoutPairs(t *testing.T) {
	a := []float64{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2}
	b := []float64{1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	systems := []System{{Name: "a"}, {Name: "b"}}
	for i := range a {
		systems[0].Runs = append(systems[0].Runs, run("a", uint64(i), 10, steady(int64(math.Exp(a[i])*1e9))))
		systems[1].Runs = append(systems[1].Runs, run("b", uint64(i+100), 10, steady(int64(math.Exp(b[i])*1e9))))
	}
	c := must(t, systems, meanTTFT)
	e := c.Metrics[0]
	near(t, "p", e.P, .07939, 5e-6)
	if e.Method != Runs || e.Resolved || e.VarianceRatio != nil || !has(c, "unpaired") {
		t.Errorf("%+v %+v", e, c.Warnings)
	}
}

func has(c *Comparison, code string) bool {
	for _, w := range c.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// One pair of 405 requests: means and shares by 20 batches of the differences, of
// which five hold one more; percentiles not at all. Every request takes 1 ms
// longer, give or take what batches average out.
func TestPairedBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	base := make([]int64, 405)
	for i := range base {
		base[i] = 100e6 + r.Int64N(50e6)
	}
	jitter := rand.New(rand.NewPCG(3, 4))
	a := run("a", 1, len(base), func(i int) int64 { return base[i] })
	b := run("b", 1, len(base), func(i int) int64 { return base[i] + 1e6 + jitter.Int64N(2001) - 1000 })
	c := must(t, []System{{"a", []Run{a}}, {"b", []Run{b}}}, meanTTFT, failures, percentile99(meanTTFT))
	e := c.Metrics[0]
	if e.Method != PairedBatches || e.N != 20 || !e.Resolved || e.Better != "a" || !has(c, "few_runs") {
		t.Errorf("%+v", e)
	}
	near(t, "difference", e.Difference, 1e6, 200)
	if !(*e.Low < 1e6 && *e.High > 1e6 && *e.High-*e.Low < 300) {
		t.Errorf("interval %g … %g", *e.Low, *e.High)
	}
	if !(*e.VarianceRatio > 1e6) { // 14 ms against 0.6 µs
		t.Errorf("variance ratio %g", *e.VarianceRatio)
	}
	if p := c.Metrics[2]; p.Resolved || p.Why != TooFewRuns || p.A == nil || p.P != nil {
		t.Errorf("p99 of one pair: %+v", p)
	}
	if p := c.Pairings[0]; p.Pairs != 1 || p.Requests != 405 || len(p.Worst) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestMeansOfBatches(t *testing.T) {
	got := means([]float64{1, 2, 3, 4, 5, 6, 7}, 3)
	for i, want := range []float64{2, 4.5, 6.5} {
		near(t, "mean", &got[i], want, 1e-12)
	}
}

// Differences that come in bursts are tested by fewer and longer batches, or not at
// all: alternating hundreds of requests leave no five batches of 400.
func TestBurstsAreNotTested(t *testing.T) {
	a := run("a", 1, 400, steady(1e9))
	b := run("b", 1, 400, func(i int) int64 { return 1e9 + int64(i/100%2)*1e8 })
	c := must(t, []System{{"a", []Run{a}}, {"b", []Run{b}}}, meanTTFT)
	if e := c.Metrics[0]; e.Why != Bursts || e.Resolved {
		t.Errorf("%+v", e)
	}
	var blocks []int64 // eight requests each that move as one: a correlation time of about 8
	for r := rand.New(rand.NewPCG(1, 1)); len(blocks) < 50; {
		blocks = append(blocks, 1e8+r.Int64N(1e8))
	}
	b = run("b", 1, 400, func(i int) int64 { return 1e9 + blocks[i/8] })
	c = must(t, []System{{"a", []Run{a}}, {"b", []Run{b}}}, meanTTFT)
	if e := c.Metrics[0]; e.N < 5 || e.N >= 20 || !e.Resolved {
		t.Errorf("%+v", e)
	}
}

// Who got worse: requests with long prompts, and one most of all.
func TestShifts(t *testing.T) {
	a := run("a", 1, 100, steady(100e6))
	b := run("b", 1, 100, func(i int) int64 {
		switch {
		case i == 57:
			return 300e6
		case i%10 >= 5: // prompts of 105 tokens and more
			return 120e6
		}
		return 101e6
	})
	c := must(t, []System{{"a", []Run{a}}, {"b", []Run{b}}}, meanTTFT)
	if e := c.Metrics[0]; e.Why != TooFewRequests {
		t.Errorf("a hundred requests: %+v", e)
	}
	var prompts, places []Shift
	for _, s := range c.Shifts {
		switch {
		case s.Metric == "ttft_due" && s.By == ByPrompt:
			prompts = append(prompts, s)
		case s.Metric == "ttft_due":
			places = append(places, s)
		}
	}
	if len(prompts) != 4 || prompts[0].Worse > 0 || prompts[0].Median != 1e6 || prompts[3].Worse < 1 || prompts[3].Median != 20e6 || prompts[3].To != 109 {
		t.Errorf("by prompt %+v", prompts)
	}
	if len(places) != 5 || places[0].From != 0 || places[0].To != 19 || math.Abs(places[0].Worse-.5) > 0 || places[4].To != 99 {
		t.Errorf("by place %+v", places)
	}
	if w := c.Pairings[0].Worst; len(w) != 5 || w[0].Index != 57 || w[0].B != 600e6 || *w[0].PromptTokens != 107 {
		t.Errorf("worst %+v", w)
	}
}

func TestRefusals(t *testing.T) {
	a, b := run("a", 1, 50, steady(1e9)), run("b", 1, 50, steady(2e9))
	same := run("copy", 1, 50, steady(1e9))
	busy := run("busy", 1, 50, steady(3e9))
	busy.Result.Health = metrics.Health{ClientBound: true, Reasons: []string{"2 of 2 cores were used"}}
	other := run("other", 1, 50, steady(3e9))
	other.Load = []Fact{{"schedule.rate", "8"}}
	here, there := a, a
	here.Path, there.Path = "x", "x"
	bad, worse := run("bad", 1, 50, steady(-1)), run("worse", 1, 50, steady(-1))
	for name, x := range map[string]struct {
		a, b Run
		want string
	}{
		"itself":       {here, there, "does not differ from itself"},
		"a copy":       {a, same, "to the nanosecond"},
		"client-bound": {a, busy, "in busy this machine was the bottleneck, not the server (2 of 2 cores were used)"},
		"another rate": {a, other, "schedule.rate is 4 and 8"},
		"all failed":   {bad, worse, "no request succeeded"},
		"fine":         {a, b, ""},
	} {
		c := must(t, []System{{"a", []Run{x.a}}, {"b", []Run{x.b}}}, meanTTFT)
		if !strings.Contains(c.Refused, x.want) || (x.want == "") != (c.Refused == "") {
			t.Errorf("%s: %q", name, c.Refused)
		}
		if x.want != "" && len(c.Metrics) > 0 {
			t.Errorf("%s: refused, but compared", name)
		}
	}
	if _, err := Compare([]System{{"a", []Run{a}}}, nil); err == nil {
		t.Error("one system was compared")
	}
}

// Where one side answered nothing, failures alone are compared, and found.
func TestOneSideFailed(t *testing.T) {
	c := must(t, []System{{"a", []Run{run("a", 1, 400, steady(1e9))}}, {"b", []Run{run("b", 1, 400, steady(-1))}}}, meanTTFT, failures)
	if e := c.Metrics[0]; e.Why != Absent || e.B != nil || e.Resolved {
		t.Errorf("%+v", e)
	}
	if e := c.Metrics[1]; !e.Resolved || e.Better != "a" {
		t.Errorf("%+v", e)
	}
	if !has(c, "no_answers") || c.Pairings[0].OnlyBFailed != 400 {
		t.Errorf("%+v %+v", c.Warnings, c.Pairings)
	}
}

// What a run says of a saturation that is not relied on, its comparison says too.
func TestDoubtfulSaturation(t *testing.T) {
	for _, code := range []string{"saturation_doubtful", "assumed_intervals"} {
		b := run("b", 2, 20, steady(2e9))
		b.Result.Warnings = []metrics.Warning{{Code: code, Text: "the saturation is not relied on"}}
		c := must(t, []System{{"a", []Run{run("a", 1, 20, steady(1e9))}}, {"b", []Run{b}}}, meanTTFT)
		if got := has(c, "saturation_doubtful"); got != (code == "saturation_doubtful") {
			t.Errorf("%s: %+v", code, c.Warnings)
		}
	}
}

// Five requests say nothing, and that is said.
func TestFiveRequests(t *testing.T) {
	c := must(t, []System{{"a", []Run{run("a", 1, 5, steady(1e9))}}, {"b", []Run{run("b", 1, 5, steady(2e9))}}}, meanTTFT)
	if e := c.Metrics[0]; e.Why != TooFewRequests || e.Resolved || e.A == nil || e.P != nil || c.Worse() {
		t.Errorf("%+v", e)
	}
}

// A percentile wants five values beyond it in every run.
func TestPercentilesOfShortRuns(t *testing.T) {
	for n, want := range map[int]string{499: TooFewRequests, 500: ""} {
		systems := []System{{Name: "a"}, {Name: "b"}}
		for i := range 5 {
			v := int64(1e9 + 1e6*i)
			systems[0].Runs = append(systems[0].Runs, run("a", uint64(i), n, steady(v)))
			systems[1].Runs = append(systems[1].Runs, run("b", uint64(i), n, steady(v*2+int64(i*i))))
		}
		if e := must(t, systems, percentile99(meanTTFT)).Metrics[0]; e.Why != want || e.Resolved != (want == "") {
			t.Errorf("%d requests: %+v", n, e)
		}
	}
}

// Runs of one seed whose requests are others are told so, not to take one seed.
func TestSameSeedOtherRequests(t *testing.T) {
	a, b := run("a", 7, 50, steady(1e9)), run("b", 7, 500, steady(2e9))
	c := must(t, []System{{"a", []Run{a}}, {"b", []Run{b}}}, meanTTFT)
	for _, w := range c.Warnings {
		if w.Code == "unpaired" && strings.Contains(w.Text, "a seed in common, and not the same requests") && !strings.Contains(w.Help, "--seed") {
			return
		}
	}
	t.Errorf("%+v", c.Warnings)
}

// No verdict rests on a percentile that half of a side's runs call insufficient;
// its difference is shown.
func TestInsufficientPercentiles(t *testing.T) {
	for few, want := range map[int]string{0: "", 2: "", 3: Insufficient, 5: Insufficient} {
		systems := []System{{Name: "a"}, {Name: "b"}}
		for i := range 5 {
			v := int64(1e9 + 1e6*i)
			systems[0].Runs = append(systems[0].Runs, run("a", uint64(i), 600, steady(v)))
			systems[1].Runs = append(systems[1].Runs, run("b", uint64(i), 600, steady(v*2+int64(i*i))))
		}
		calls := map[*metrics.Result]bool{}
		for i := range few {
			calls[systems[1].Runs[i].Result] = true
		}
		m := percentile99(meanTTFT)
		m.Insufficient = func(r *metrics.Result) bool { return calls[r] }
		c := must(t, systems, m)
		e := c.Metrics[0]
		if e.Why != want || e.Resolved != (want == "") || c.Worse() != (want == "") || e.Difference == nil || (e.P == nil) != (want != "") {
			t.Errorf("%d runs of 5: %+v", few, e)
		}
		if want != "" && (e.Better != "" || e.Low != nil || e.PAdjusted != nil) {
			t.Errorf("%d runs of 5: %+v", few, e)
		}
	}
}

func TestLabels(t *testing.T) {
	a, b := run("a", 1, 50, steady(1e9)), run("b", 1, 50, steady(2e9))
	systems := []System{{"a", []Run{a}}, {"b", []Run{b}}}
	a.Result.Run.Labels = map[string]string{"transport": "fast"}
	if c := must(t, systems, meanTTFT); !has(c, "labels_missing") {
		t.Error("nothing says what differs")
	}
	a.Result.Run.Labels, b.Result.Run.Labels = map[string]string{"gpu": "H100"}, map[string]string{"gpu": "A100"}
	if c := must(t, systems, meanTTFT); has(c, "labels_missing") {
		t.Error("labels tell them apart")
	}
	a.Result.Run.Labels["engine"] = "1"
	c := must(t, systems, meanTTFT)
	if !has(c, "labels_missing") || !strings.Contains(c.Warnings[len(c.Warnings)-1].Text, "engine (not in b)") {
		t.Errorf("%+v", c.Warnings)
	}
}
