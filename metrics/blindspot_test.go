package metrics

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"fermata/recording"
)

const ms = 1_000_000

// gapsTrace is an ok answer whose tokens come these gaps apart, after its first.
func gapsTrace(index, ttft int64, gaps ...int64) recording.Trace {
	t := steadyTrace(index, 1, ttft, 0)
	for _, g := range gaps {
		t.DeltaNs, t.Tokens = append(t.DeltaNs, g), append(t.Tokens, 1)
	}
	t.Output.Used = recording.Some(int32(len(t.Tokens)))
	return t
}

// bunchesTrace is an answer of n bunches of k tokens, each one event.
func bunchesTrace(index, ttft int64, n int, k int32, gap int64) recording.Trace {
	t := steadyTrace(index, n, ttft, gap)
	for i := range t.Tokens {
		t.Tokens[i] = k
	}
	t.Output.Used = recording.Some(int32(n) * k)
	return t
}

func found(all []BlindSpot) string {
	var codes []string
	for _, s := range all {
		codes = append(codes, strings.TrimSuffix(s.Code+"@"+s.Against, "@"))
	}
	return strings.Join(codes, " ")
}

func TestFreeze(t *testing.T) {
	repeat := func(n int, v int64) []int64 { return slices.Repeat([]int64{v}, n) }
	with := func(at int, v int64, gaps []int64) []int64 { return slices.Insert(gaps, at, v) }
	var fifties []int64
	for range 8 {
		fifties = append(append(fifties, repeat(49, 200_000)...), 2000*ms)
	}
	var fours []int64
	for i := range 32 {
		fours = append(append(fours, repeat(3, 0)...), []int64{80 * ms, 3000 * ms}[i/31])
	}
	for _, c := range []struct {
		name string
		gaps []int64
		want int64
	}{
		{"a freeze among gaps of 20 ms", with(40, 1500*ms, repeat(58, 20*ms)), 1500 * ms},
		{"the longest of two", with(9, 4000*ms, with(40, 1500*ms, repeat(58, 20*ms))), 4000 * ms},
		{"a second is no freeze", with(40, 1000*ms, repeat(58, 20*ms)), 0},
		{"a nanosecond more is", with(40, 1000*ms+1, repeat(58, 20*ms)), 1000*ms + 1},
		{"a slow answer", repeat(30, 2000*ms), 0},
		{"TPOT tells of a stop in seven gaps", with(3, 5000*ms, repeat(6, 20*ms)), 0},
		{"fifty tokens each two seconds", fifties, 0},
		{"fours, and a stop", append(fours, 0, 0, 0), 3000 * ms},
		{"one gap", repeat(1, 60_000*ms), 0},
		{"no token after the first", nil, 0},
	} {
		trace := gapsTrace(0, 100*ms, c.gaps...)
		if got, ok := Freeze(TokenTimes(&trace, nil)); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d ns, %v; want %d", c.name, got, ok, c.want)
		}
	}
}

// documented says that the docs name the codes and the figures.
func documented(t *testing.T, results ...*Result) {
	t.Helper()
	doc, err := os.ReadFile("../docs/blindspots.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, s := range r.BlindSpots {
			names := []string{s.Code}
			for name := range s.Figures {
				names = append(names, strings.TrimSuffix(name, "_against"))
			}
			for _, name := range names {
				if !strings.Contains(string(doc), "`"+name+"`") {
					t.Errorf("docs/blindspots.md does not name %s of %s", name, s.Code)
				}
			}
		}
	}
}

// Seven of a hundred answers freeze, by themselves or beside a run that does not.
func TestFreezesHideInTPOT(t *testing.T) {
	var steady, freezing recording.Slice
	for i := range int64(100) {
		gaps := slices.Repeat([]int64{20 * ms}, 199)
		steady = append(steady, gapsTrace(i, 200*ms, gaps...))
		if i%15 == 3 {
			gaps[40] = 1500*ms + i*ms
		}
		freezing = append(freezing, gapsTrace(i, 200*ms, gaps...))
	}
	a, b := evaluate(t, freezing, recording.Meta{}, Options{}), evaluate(t, steady, recording.Meta{}, Options{})
	a.Run.Name, b.Run.Name = "freezing", "steady"
	want := []BlindSpot{{
		Code: StallHidden,
		Text: "TPOT is 20 ms at the median and p99 TBT 20 ms; yet 7 % of readers (7 of 100) saw a freeze over 1 s, the longest of 1.593 s",
		Figures: map[string]float64{
			"tpot_p50_ns": 20 * ms, "tbt_p99_ns": 20 * ms, "freeze_over_ns": 1000 * ms, "frozen": 7, "answers": 100, "share_frozen": 0.07, "longest_ns": 1593 * ms,
		},
		Requests: []int64{93, 78, 63, 48, 33, 18, 3},
	}}
	if d := cmp.Diff(want, a.BlindSpots); d != "" {
		t.Error(d)
	}
	if len(b.BlindSpots) > 0 {
		t.Errorf("the steady run: %+v", b.BlindSpots)
	}
	Contrasts([]*Result{b, a})
	Contrasts([]*Result{b, a}) // changes nothing
	documented(t, a, b)
	// 7 of 100 and 0 of 100 are apart (2.9 % and 3.6 % are the ends: they are not).
	if got := found(a.BlindSpots); got != StallHidden || len(b.BlindSpots) > 0 {
		t.Errorf("beside each other: %s; %+v", got, b.BlindSpots)
	}
}

// What comes four at a time is no stall: its p99 TBT is four gaps, and a reader
// hardly waits at one.
func TestBunchesAreNoStalls(t *testing.T) {
	var bunched, single recording.Slice
	for i := range int64(40) {
		bunched = append(bunched, bunchesTrace(i, 200*ms, 32, 4, 80*ms))
		single = append(single, steadyTrace(i, 128, 200*ms, 20*ms))
	}
	gap, _ := searched(func(gap int64) bool {
		s, _ := PlayDecode(TokenTimes(&bunched[0], nil), gap)
		return s.AtLeast(9, 10)
	})
	a, b := evaluate(t, bunched, recording.Meta{}, Options{}), evaluate(t, single, recording.Meta{}, Options{})
	want := map[string]float64{"tbt_p99_ns": 80 * ms, "share_together": 96. / 127, "fluid_gap_ns": float64(gap)}
	if len(a.BlindSpots) != 1 || a.BlindSpots[0].Code != BurstAsStall || !cmp.Equal(a.BlindSpots[0].Figures, want) {
		t.Errorf("%+v, want %v", a.BlindSpots, want)
	}
	if gap > 20*ms {
		t.Errorf("it is fluid at %d ns, later than its tokens come", gap)
	}
	a.Run.Name, b.Run.Name = "bunched", "single"
	Contrasts([]*Result{a, b})
	documented(t, a, b)
	if got := found(a.BlindSpots) + ";" + found(b.BlindSpots); got != "burst_as_stall burst_as_stall@single;" {
		t.Errorf("beside each other: %s", got)
	}
}

// A fifth of the requests waits for half a minute: over 400 tokens, that adds 75 ms
// to each.
func TestNormalizedLatencyHidesWaits(t *testing.T) {
	var waiting, prompt recording.Slice
	for i := range int64(50) {
		prompt = append(prompt, steadyTrace(i, 400, 200*ms, 20*ms))
		ttft := int64(200 * ms)
		if i%5 == 4 {
			ttft = 30_000*ms + i
		}
		waiting = append(waiting, steadyTrace(i, 400, ttft, 20*ms))
	}
	a, b := evaluate(t, waiting, recording.Meta{}, Options{}), evaluate(t, prompt, recording.Meta{}, Options{})
	a.Run.Name, b.Run.Name = "waiting", ""
	Contrasts([]*Result{a, b})
	documented(t, a, b)
	if got := found(a.BlindSpots) + ";" + found(b.BlindSpots); got != "wait_hidden wait_hidden@the other run;" {
		t.Fatal(got)
	}
	text := "normalized latency is 20.4 ms a token at the median, as of an answer that can be read as it comes; yet 20 % of requests waited over 25 s for their first token"
	if got := a.BlindSpots[0]; got.Text != text || !slices.Equal(got.Requests, []int64{49, 44, 39, 34, 29, 24, 19, 14, 9, 4}) {
		t.Errorf("%+v", got)
	}
	text = "normalized latency differs by 0 % (20.4 ms a token at the median, 20.4 ms); yet 20 % of requests waited over 25 s for their first token, against 0 % of those of the other run"
	if got := a.BlindSpots[1].Text; got != text {
		t.Error(got)
	}
	// A reader of 3 tokens a second or less does not take this for an answer to read.
	slow := evaluate(t, waiting, recording.Meta{}, Options{PaceNs: 10 * ms})
	if got := found(slow.BlindSpots); got != "" {
		t.Errorf("at 100 tokens/s: %s", got)
	}
}

// The figures of a real engine that computed three prompts whole, or in parts:
// p99 TBT calls the one with a silence of 34 s twenty times better.
func TestP99Inverts(t *testing.T) {
	var whole, parts recording.Slice
	for i := range int64(4) {
		gaps := slices.Repeat([]int64{32 * ms}, 399)
		gaps[60], gaps[120], gaps[200] = 4600*ms, 13_500*ms, 34_342*ms+i
		whole = append(whole, gapsTrace(i, 500*ms, gaps...))
		gaps = slices.Repeat([]int64{37 * ms}, 399)
		for k := range 26 {
			gaps[60+12*k] = 1950 * ms
		}
		parts = append(parts, gapsTrace(i, 500*ms, gaps...))
	}
	a, b := evaluate(t, whole, recording.Meta{}, Options{}), evaluate(t, parts, recording.Meta{}, Options{})
	a.Run.Name, b.Run.Name = "whole", "parts"
	Contrasts([]*Result{a, b})
	documented(t, a, b)
	i := slices.IndexFunc(a.BlindSpots, func(s BlindSpot) bool { return s.Code == P99Inverts })
	if i < 0 || strings.Contains(found(b.BlindSpots), "inverts") {
		t.Fatalf("%s; %s", found(a.BlindSpots), found(b.BlindSpots))
	}
	text := "p99 TBT calls this run better than parts, 32 ms against 1.95 s, and TPOT differs by 0.95 % (163 ms at the median, 162 ms); yet its longest silence in an answer is 34.34 s against 1.95 s (p95 over answers 34.34 s against 1.95 s), and 100 % of its readers saw a freeze over 1 s"
	if got := a.BlindSpots[i]; got.Text != text || !slices.Equal(got.Requests, []int64{3, 2, 1, 0}) || got.Against != "parts" {
		t.Errorf("%+v", got)
	}
	// Another load is another question.
	a.Load.Arrivals, b.Load.Arrivals = &Arrivals{MeanNs: 1000 * ms}, &Arrivals{MeanNs: 2000 * ms}
	Contrasts([]*Result{a, b})
	if got := found(a.BlindSpots); strings.Contains(got, "@") {
		t.Errorf("under another load: %s", got)
	}
}

// drawSteady draws a run whose answers come evenly, give or take a quarter of the
// gap, without waits of seconds.
func drawSteady(t *rapid.T, name string) recording.Slice {
	gap := rapid.Int64Range(100_000, 300*ms).Draw(t, name+" gap")
	jitter := rapid.SampledFrom([]int64{0, 20, 4}).Draw(t, name+" jitter") // of the gap: none, a twentieth, a quarter
	var all recording.Slice
	for i := range rapid.IntRange(1, 12).Draw(t, name+" requests") {
		n := rapid.IntRange(1, 120).Draw(t, "tokens")
		gaps := make([]int64, n-1)
		for k := range gaps {
			gaps[k] = gap
			if jitter > 0 {
				gaps[k] += rapid.Int64Range(-gap/jitter, gap/jitter).Draw(t, "more")
			}
		}
		all = append(all, gapsTrace(int64(i), rapid.Int64Range(1, 4900*ms).Draw(t, "ttft"), gaps...))
	}
	return all
}

func TestSteadyRunsHaveNoBlindSpots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var results []*Result
		for _, name := range []string{"a", "b"} {
			r, err := Evaluate(drawSteady(t, name), recording.Meta{}, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		Contrasts(results)
		for _, r := range results {
			if len(r.BlindSpots) > 0 {
				t.Fatalf("%+v", r.BlindSpots)
			}
		}
	})
}

// The list of the worst is the head of a stable sort.
func TestWorst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w worst
		var all []ranked
		for i, v := range rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "values") {
			w.add(v, int64(i))
			all = append(all, ranked{v, int64(i)})
		}
		slices.SortStableFunc(all, func(a, b ranked) int { return int(b.value - a.value) })
		if all = all[:min(len(all), mostIndices)]; fmt.Sprint(all) != fmt.Sprint(w.all) {
			t.Fatalf("%v, want %v", w.all, all)
		}
	})
}
