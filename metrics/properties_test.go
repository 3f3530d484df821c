package metrics

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"fermata/deadline"
	"fermata/recording"
)

// tokenTimes draws ascending times whose gaps are bunched, steady, long or any.
var tokenTimes = rapid.Custom(func(t *rapid.T) []int64 {
	steady := rapid.Int64Range(1, 50).Draw(t, "steady")
	gap := rapid.OneOf(
		rapid.Just(steady), rapid.Just(int64(0)), rapid.Int64Range(0, 3*steady), rapid.Int64Range(0, 100*steady),
		rapid.Map(rapid.Int64Range(0, 1000), func(v int64) int64 { return v * 1_000_003 }))
	gaps := rapid.SliceOfN(gap, 1, 60).Draw(t, "gaps")
	for i := 1; i < len(gaps); i++ {
		gaps[i] += gaps[i-1]
	}
	return gaps
})

// searched is D_d* by plain bisection on the definition.
func searched(good func(gap int64) bool) (int64, bool) {
	lo, hi := int64(0), int64(1)<<50 // (lo, hi]
	if !good(hi) {
		return 0, false
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; good(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

func TestSmallestGapIsThatOfBisection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := tokenTimes.Draw(t, "times")
		d := rapid.OneOf(rapid.Int64Range(0, 2*times[0]+10), rapid.Int64Range(0, 2*times[len(times)-1]+10)).Draw(t, "deadline")
		want, wantOK := int64(0), false
		if len(times) > 1 {
			want, wantOK = searched(func(gap int64) bool {
				s, _ := PlayDecode(times, gap)
				return s.AtLeast(9, 10)
			})
		}
		if got, ok := SmallestGap(times); got != want || ok != wantOK {
			t.Fatalf("decode: %d, %v, want %d, %v", got, ok, want, wantOK)
		}
		want, wantOK = searched(func(gap int64) bool {
			s, _ := PlayFirst(times, d, gap)
			return s.AtLeast(9, 10)
		})
		if got, ok := SmallestGapFirst(times, d); got != want || ok != wantOK {
			t.Fatalf("first token at %d: %d, %v, want %d, %v", d, got, ok, want, wantOK)
		}
	})
}

// A day's pause in an answer of a million tokens needs more than 64 bits.
func TestLongAnswersDoNotOverflow(t *testing.T) {
	const day = 86_400_000_000_000
	times := make([]int64, 1_000_000)
	for i := 1; i < len(times); i++ {
		times[i] = 1000 * day
	}
	if even, ok := EvenGap(times); !ok || even != 1000*day {
		t.Errorf("even gap %d", even)
	}
	// The late token may miss 999998/9 = 111110 deadlines: the gap goes into the wait
	// fewer than 111111 times.
	gap, ok := SmallestGap(times)
	if want := int64(1000*day/111_111 + 1); !ok || gap != want {
		t.Errorf("smallest gap %d, want %d", gap, want)
	}
	if s := Play(times, 0, longestNs); s.Met != 1_000_000-1 && s.Missed != 1 {
		t.Errorf("%+v", s)
	}
}

func TestPlaybackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := tokenTimes.Draw(t, "times")
		gap := rapid.Int64Range(1, 2*times[len(times)-1]+2).Draw(t, "gap")
		more := gap + rapid.Int64Range(0, gap).Draw(t, "more")
		d := rapid.Int64Range(0, times[len(times)-1]+1).Draw(t, "deadline")

		// Total stall is the greatest lateness against the first token's clock.
		s := Stall(times, gap)
		var worst int64
		for i, at := range times {
			worst = max(worst, at-times[0]-int64(i)*gap)
		}
		if s.TotalNs != worst || s.LongestNs > s.TotalNs || (s.Count == 0) != (s.First < 0) {
			t.Fatalf("%+v, greatest lateness %d", s, worst)
		}
		// No stall from the even gap on, one below it.
		if even, ok := EvenGap(times); ok {
			if Stall(times, even).Count != 0 || even > 0 && Stall(times, even-1).Count == 0 {
				t.Fatalf("even gap %d: %+v", even, Stall(times, even))
			}
		}
		// Every token is met or misses once and once more a gap of lateness.
		slow, _ := PlayFirst(times, d, gap)
		fast, _ := PlayFirst(times, d, more)
		if slow.Met < 0 || slow.Met+slow.Missed < int64(len(times)) {
			t.Fatalf("%+v of %d tokens", slow, len(times))
		}
		// F never falls as the gap grows, nor as the deadline does.
		if fast.Met < slow.Met || fast.Missed > slow.Missed {
			t.Fatalf("gap %d: %+v, gap %d: %+v", gap, slow, more, fast)
		}
		if later, _ := PlayFirst(times, d+1, gap); later.Met < slow.Met || later.Missed > slow.Missed {
			t.Fatalf("deadline %d: %+v, one more: %+v", d, slow, later)
		}
	})
}

// anyTrace draws a request of any phase and fate.
var anyTrace = rapid.Custom(func(t *rapid.T) recording.Trace {
	tr := recording.Trace{
		Phase:   rapid.SampledFrom([]recording.Phase{recording.Measured, recording.Measured, recording.Warmup, recording.Drain}).Draw(t, "phase"),
		Outcome: rapid.SampledFrom([]recording.Outcome{recording.OK, recording.OK, recording.OK, recording.StreamCut, recording.HTTPError}).Draw(t, "outcome"),
		Due:     rapid.Int64Range(0, 1_000_000).Draw(t, "due"),
	}
	tr.Sent = recording.Some(tr.Due + rapid.Int64Range(0, 1000).Draw(t, "late"))
	n := rapid.IntRange(0, 12).Draw(t, "arrivals")
	if tr.Outcome == recording.HTTPError {
		n = 0
	}
	single := rapid.Bool().Draw(t, "single")
	total, at := int32(0), tr.Due
	for i := range n {
		k := int32(1)
		if !single {
			k = rapid.Int32Range(0, 3).Draw(t, "tokens")
		}
		gap := rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64Range(0, 60_000_000)).Draw(t, "gap")
		if i == 0 {
			gap += 1000 // no token before the request was sent
		}
		tr.DeltaNs, tr.Tokens = append(tr.DeltaNs, gap), append(tr.Tokens, k)
		tr.Read = append(tr.Read, int32(i/2))
		tr.StampErrorNs = append(tr.StampErrorNs, rapid.Int64Range(0, 4000).Draw(t, "error"))
		tr.Channel = append(tr.Channel, rapid.Int8Range(0, 1).Draw(t, "channel"))
		total, at = total+k, at+gap
	}
	tr.End = recording.Some(at + 10)
	if n > 0 {
		tr.Prompt.Used = recording.Some(rapid.Int32Range(1, 1000).Draw(t, "prompt"))
		tr.Output.Used = recording.Some(total)
	}
	return tr
})

// With so few values kept that everything is counted in buckets and comes a
// second time, the result is the same, stamp ends and intervals of pooled gaps
// aside: those are then good to a part in 4096 and in 256, outwards.
func TestStreamingEqualsMemory(t *testing.T) {
	deadlines, err := deadline.Parse("linear:1ms,10us")
	if err != nil {
		t.Fatal(err)
	}
	var slo []Objective
	for _, s := range []string{
		"ttft<=2ms@p90", "tbt<=1ms@p50", "tbt_event<=1ms", "tbt.p90<=1ms and e2e<=50ms @50%", "fluidity>=0.9 gap=1ms @p50",
		"fluidity.decode>=0.5 gap=3us @p50", "stall.longest<=1ms@p90", "error<=50%",
	} {
		o, err := ParseObjective(s)
		if err != nil {
			t.Fatal(err)
		}
		slo = append(slo, o)
	}
	rapid.Check(t, func(t *rapid.T) {
		traces := recording.Slice(rapid.SliceOfN(anyTrace, 0, 40).Draw(t, "traces"))
		slices.SortFunc(traces, func(a, b recording.Trace) int { return int(a.Due - b.Due) })
		for i := range traces {
			traces[i].Index = int64(i)
		}
		meta := recording.Meta{WindowStart: recording.Some[int64](100_000), WindowEnd: recording.Some[int64](900_000)}
		opt := Options{Deadlines: deadlines, SLO: slo, TargetGapsNs: []int64{1000, 1_000_000}, PaceNs: 3000}
		whole, err := Evaluate(traces, meta, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.keepAtMost = rapid.IntRange(1, 5).Draw(t, "kept")
		streamed, err := Evaluate(traces, meta, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		checkStampEnds(t, whole, streamed)
		checkPooledEnds(t, whole, streamed)
		if d := cmp.Diff(whole, streamed); d != "" {
			t.Fatal(d)
		}
		if _, err := json.Marshal(whole); err != nil {
			t.Fatal(err)
		}
	})
}

// checkStampEnds compares stamp ends within their tolerance and then drops them.
func checkStampEnds(t *rapid.T, exact, rough *Result) {
	for _, p := range [][2]*Dist{
		{exact.Metrics.TTFTDue, rough.Metrics.TTFTDue},
		{exact.Metrics.TTFTSent, rough.Metrics.TTFTSent},
		{exact.Metrics.TTFTAnswer, rough.Metrics.TTFTAnswer},
		{exact.Metrics.TBT, rough.Metrics.TBT},
		{exact.Metrics.TBTEvent, rough.Metrics.TBTEvent},
		{exact.Metrics.GapLongest, rough.Metrics.GapLongest},
		{exact.Metrics.TPOT, rough.Metrics.TPOT},
		{exact.Metrics.TokenPace, rough.Metrics.TokenPace},
		{exact.Metrics.EvenGap, rough.Metrics.EvenGap},
		{exact.Metrics.NormalizedLatency, rough.Metrics.NormalizedLatency},
		{exact.Metrics.E2E, rough.Metrics.E2E},
	} {
		if p[0] == nil || p[1] == nil {
			continue
		}
		for i := range p[0].Quantiles {
			a, b := &p[0].Quantiles[i], &p[1].Quantiles[i]
			if (a.StampLow == nil) != (b.StampLow == nil) {
				t.Fatalf("stamp ends of one only: %+v, %+v", a, b)
			}
			if a.StampLow == nil {
				continue
			}
			if *a.StampLow > a.Value || *a.StampHigh < a.Value {
				t.Fatalf("%v is not within %v to %v", a.Value, *a.StampLow, *a.StampHigh)
			}
			if *b.StampLow > *a.StampLow || *b.StampLow < *a.StampLow*(1-1./4096)-1 || *b.StampHigh < *a.StampHigh || *b.StampHigh > *a.StampHigh*(1+1./4096)+1 {
				t.Fatalf("stamp ends %v to %v, exactly %v to %v", *b.StampLow, *b.StampHigh, *a.StampLow, *a.StampHigh)
			}
			a.StampLow, a.StampHigh, b.StampLow, b.StampHigh = nil, nil, nil, nil
		}
	}
}

// checkPooledEnds compares the ends of intervals of pooled gaps within their
// tolerance and then drops them: which ranks they have is known only when the gaps
// have come a second time.
func checkPooledEnds(t *rapid.T, exact, rough *Result) {
	check := func(a, b **float64, down, up float64) {
		if (*a == nil) != (*b == nil) {
			t.Fatalf("an end of one only: %v, %v", *a, *b)
		}
		if *a == nil {
			return
		}
		slack := max(1, **a/256)
		if **b < **a-down*slack || **b > **a+up*slack {
			t.Fatalf("an end at %v, exactly %v", **b, **a)
		}
		*a, *b = nil, nil
	}
	for _, p := range [][2]*Dist{{exact.Metrics.TBT, rough.Metrics.TBT}, {exact.Metrics.TBTEvent, rough.Metrics.TBTEvent}} {
		if p[0] == nil || p[1] == nil {
			continue
		}
		for i := range p[0].Quantiles {
			a, b := &p[0].Quantiles[i], &p[1].Quantiles[i]
			check(&a.Low, &b.Low, 1, 0)
			check(&a.High, &b.High, 0, 1)
		}
	}
	for i := range exact.SLO {
		a, b := &exact.SLO[i], &rough.SLO[i]
		if strings.HasPrefix(a.Objective, "tbt<") || strings.HasPrefix(a.Objective, "tbt_event<") {
			check(&a.Low, &b.Low, 1, 0)
			check(&a.High, &b.High, 0, 1)
		}
	}
}

// Judging one more request of a kind that was seen before takes no memory but
// for the values that are kept.
func TestNoMemoryForARequest(t *testing.T) {
	times := make([]int64, 200)
	for i := range times {
		times[i] = int64(200_000_000 + i*20_000_000 + i%7*1_000_000)
	}
	trace := recording.Trace{Phase: recording.Measured, Outcome: recording.OK}
	for i := range times {
		gap := times[i]
		if i > 0 {
			gap -= times[i-1]
		}
		trace.DeltaNs, trace.Tokens = append(trace.DeltaNs, gap), append(trace.Tokens, 1+int32(i%2))
	}
	opt := Options{Deadlines: &deadline.Deadlines{}}
	opt.Deadlines, _ = deadline.Parse("fixed:250ms")
	var a answer
	sink := int64(0)
	allocs := testing.AllocsPerRun(100, func() {
		if err := a.read(&trace, &opt); err != nil {
			t.Fatal(err)
		}
		for _, variant := range []string{Decode, FirstToken} {
			for _, gap := range []int64{25_000_000, 50_000_000, 100_000_000} {
				s, _ := a.score(variant, gap)
				sink += s.Missed
			}
			g, _ := a.smallestGap(variant)
			sink += g
		}
		even, _ := EvenGap(a.times)
		sink += even + a.stalling(defaultPaceNs).TotalNs
	})
	if allocs > 0 {
		t.Errorf("%v allocations a request", allocs)
	}
	if testing.Verbose() {
		fmt.Fprintln(t.Output(), "sum", sink)
	}
}
