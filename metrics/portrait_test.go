package metrics

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"fermata/recording"
)

// A point of a curve is exact: as many values are at most there as it says, counted
// one by one; and every quantile is within a five-hundredth of the true one.
func TestCurveIsExactAtItsPoints(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var o outline
	var all []int64
	for range 20_000 {
		v := int64(math.Exp(r.NormFloat64()*2) * 1e7)
		if r.IntN(50) == 0 {
			v = 0
		}
		all = append(all, v)
		o.add(v)
	}
	slices.Sort(all)
	c := o.curve(o.n)
	if c.N != 20_000 || len(c.Points) < 100 || len(c.Points) > 300 {
		t.Fatalf("%d values in %d points", c.N, len(c.Points))
	}
	for _, p := range c.Points {
		below, _ := slices.BinarySearch(all, p.Value+1)
		if want := float64(below) / 20_000; math.Abs(p.Share-want) > 1e-12 {
			t.Fatalf("%v of the values are at most %d, want %v", p.Share, p.Value, want)
		}
	}
	if last := c.Points[len(c.Points)-1]; last.Share < 1 || float64(last.Value) > float64(all[len(all)-1])*1.002 {
		t.Errorf("it ends at %+v, the largest is %d", last, all[len(all)-1])
	}
	for _, share := range []float64{0.1, 0.5, 0.9, 0.99} {
		got, ok := c.Quantile(share)
		// the point before may lie a step of the scale below
		from, to := all[int(share*20_000)-1], all[min(19_999, int(math.Ceil((share+0.015)*20_000)))]
		if !ok || got < from || float64(got) > float64(to)*1.002 {
			t.Errorf("quantile %v is %d, want %d to %d", share, got, from, to)
		}
	}
	for _, v := range []int64{0, 1, 511, 512, 513, 1023, 1024, 1025, 1 << 40, 1<<53 + 12345} {
		end := outlineEnd(outlineStep(uint64(v)))
		if end < v || float64(end-v) > float64(v)/512 {
			t.Errorf("%d is in a step that ends at %d", v, end)
		}
		if outlineStep(uint64(end)) != outlineStep(uint64(v)) || outlineStep(uint64(end+1)) == outlineStep(uint64(v)) {
			t.Errorf("%d is not the end of its step", end)
		}
	}
}

// What is kept does not depend on the order, no more than the limit is kept, and
// every index has the same chance: of 200 samples of 50 out of 1,000 each is in ten
// on average, and none is in 30 (17 standard deviations, by a normal bound).
func TestSampled(t *testing.T) {
	times := make([]int, 1000)
	for seed := range uint64(200) {
		up, down := newSampled[int](scatter(seed), 50), newSampled[int](scatter(seed), 50)
		for i := range 1000 {
			up.offer(int64(i), 1, func() int { return i })
			down.offer(int64(999-i), 1, func() int { return 999 - i })
		}
		a, b := up.values(), down.values()
		slices.Sort(a)
		slices.Sort(b)
		if len(a) != 50 || !slices.Equal(a, b) {
			t.Fatalf("seed %d keeps %v up and %v down", seed, a, b)
		}
		for _, i := range a {
			times[i]++
		}
	}
	if most := slices.Max(times); most > 30 {
		t.Errorf("one index is in %d of 200 samples", most)
	}
	heavy := newSampled[int](1, 100)
	for i := range 100 {
		heavy.offer(int64(i), 30, func() int { return i })
	}
	if n := len(heavy.values()); n != 3 {
		t.Errorf("%d values of weight 30 within 100", n)
	}
	one := newSampled[int](1, 10)
	one.offer(7, 1000, func() int { return 7 })
	if v := one.values(); !slices.Equal(v, []int{7}) {
		t.Errorf("a value heavier than the limit: %v", v)
	}
}

// Where a reader waits is as long and as often as Stall says.
func TestStallSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		times := []int64{r.Int64N(1000)}
		for range r.IntN(30) {
			times = append(times, times[len(times)-1]+r.Int64N(200)*r.Int64N(3))
		}
		s := Stall(times, 100)
		spans := StallSpans(times, 100)
		var total, longest int64
		for _, x := range spans {
			total += x.To - x.From
			longest = max(longest, x.To-x.From)
		}
		if len(spans) != int(min(s.Count, mostStalls)) || longest != s.LongestNs || s.Count <= mostStalls && total != s.TotalNs {
			t.Fatalf("%v: %+v, spans %v", times, s, spans)
		}
		if !slices.IsSortedFunc(spans, func(a, b Span) int { return int(a.From - b.From) }) {
			t.Fatalf("%v are not in order", spans)
		}
	}
}

// Slots by hand, and the same counts however often they were merged.
func TestSlots(t *testing.T) {
	s := slots{width: 10}
	outcome := recording.OK
	put := func(due, sent, end int64, good bool, gaps ...int64) {
		tr := recording.Trace{Due: due, Sent: recording.Some(sent), End: recording.Some(end), Outcome: outcome}
		for _, g := range gaps {
			tr.DeltaNs, tr.Tokens = append(tr.DeltaNs, g), append(tr.Tokens, 1)
		}
		s.see(&answer{t: &tr, good: good, first: -1})
	}
	put(0, 1, 35, true, 5, 20, 5)
	put(12, 13, 14, false)
	put(25, 31, 39, true, 10)
	got := slices.Clone(s.finish())
	want := []Slot{
		{Due: 1, Sent: 1, Tokens: 1, InFlight: 1, InFlightMost: 1},
		{Due: 1, Sent: 1, Finished: 1, Failed: 1, InFlight: 1, InFlightMost: 2},
		{Due: 1, Tokens: 1, InFlight: 1, InFlightMost: 1},
		{Sent: 1, Finished: 2, Tokens: 2, InFlight: 0, InFlightMost: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	put(10*mostSlots, 10*mostSlots, 10*mostSlots+5, true)
	if s.width != 20 || s.list[0].Due != 2 || s.list[1].Finished != 2 || len(s.list) > mostSlots {
		t.Errorf("merged: width %d, %+v", s.width, s.list[:2])
	}
	if a, b := s.list[0].InFlightMost, s.list[1].InFlightMost; a != 2 || b != 2 {
		t.Errorf("merged: at most %d and %d under way, want 2 and 2", a, b)
	}
	outcome = recording.TruncatedByUs
	put(10*mostSlots, 10*mostSlots+1, 10*mostSlots+5, false, 1)
	last := s.finish()[mostSlots/2]
	if want := (Slot{Due: 2, Sent: 2, Finished: 1, Stopped: 1, Tokens: 1, InFlightMost: 2}); last != want {
		t.Errorf("with a request that was given up: %+v, want %+v", last, want)
	}
}

// The most requests under way in a slot are those of a count at every moment, for
// requests that come and go within a slot too, and however often slots were merged.
func TestSlotsKeepPeaks(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	s := slots{width: 4}
	const end = 4 * mostSlots * 3
	under := make([]int64, end+100)
	for due := range int64(end) {
		if r.IntN(40) > 0 {
			continue
		}
		for range 1 + r.IntN(10) {
			sent := due + r.Int64N(5)
			ends := sent + 1 + r.Int64N(3)*r.Int64N(25)
			tr := recording.Trace{Due: due, Sent: recording.Some(sent), End: recording.Some(ends), Outcome: recording.OK}
			s.see(&answer{t: &tr, good: true, first: -1})
			for at := sent; at < ends; at++ {
				under[at]++
			}
		}
	}
	list := s.finish()
	if s.width != 16 {
		t.Fatalf("slots of %d, want 16", s.width)
	}
	for i, slot := range list {
		from := int64(i) * s.width
		// Who ends just where a slot begins is still under way at the end of the one before.
		if want := slices.Max(under[max(from-1, 0) : from+s.width]); slot.InFlightMost != want {
			t.Errorf("slot %d: at most %d under way, want %d", i, slot.InFlightMost, want)
		}
	}
}

// portraitSource are good answers of 20 tokens each, a warm-up request, one that
// failed and one with a freeze of 3 s.
func portraitSource(n int) recording.Slice {
	var all recording.Slice
	for i := range n {
		t := recording.Trace{
			Index: int64(i), Phase: recording.Measured, Due: int64(i) * 50e6, Outcome: recording.OK,
			Sent: recording.Some(int64(i)*50e6 + 1000),
		}
		t.Prompt.Used = recording.Some(int32(100 + i))
		for k := range 20 {
			gap := int64(20e6)
			switch {
			case k == 0:
				gap = 200e6 + int64(i)*1e6
			case i == 5 && k == 10:
				gap = 3e9
			}
			t.DeltaNs, t.Tokens, t.Read = append(t.DeltaNs, gap), append(t.Tokens, 1), append(t.Read, int32(k))
		}
		at, _ := t.LastToken()
		t.End = recording.Some(at)
		switch i {
		case 0:
			t.Phase = recording.Warmup
		case 3:
			t.Outcome, t.DeltaNs, t.Tokens, t.Read = recording.HTTPError, nil, nil, nil
			t.End = recording.Some(t.Due + 30e6)
		}
		all = append(all, t)
	}
	return all
}

// A portrait of ten requests by hand.
func TestPortrait(t *testing.T) {
	src := portraitSource(10)
	meta := recording.Meta{TimeScale: 1, WindowStart: recording.Some(int64(50e6)), WindowEnd: recording.Some(int64(500e6))}
	opt := Options{TargetGapsNs: []int64{25e6, 50e6}}
	r, err := Evaluate(src, meta, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Portray(src, meta, r, opt, PortraitOptions{Show: []int64{7}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Requests != 10 || p.Measured != 9 || len(p.Lives) != 10 || len(p.Streams) != 9 {
		t.Fatalf("%d requests, %d measured, %d lives, %d streams", p.Requests, p.Measured, len(p.Lives), len(p.Streams))
	}
	if p.Worst != recording.Some(int64(5)) || p.Latest != recording.Some(int64(9)) || !p.Typical.OK || p.Typical.V == 5 {
		t.Errorf("worst %v, typical %v, latest %v", p.Worst, p.Typical, p.Latest)
	}
	if p.TTFT.N != 8 || p.TBT.N != 8*19 || p.TPOT.N != 8 || p.TBT.At(20.1e6) != 151.0/152 {
		t.Errorf("TTFT %d, TBT %d, TPOT %d values; %v of gaps at most 20.1 ms", p.TTFT.N, p.TBT.N, p.TPOT.N, p.TBT.At(20.1e6))
	}
	// Of nine judged requests seven have a smallest gap of 20 ms, one the freeze's, one failed.
	if got := p.Fluent.At(21e6); math.Abs(got-7.0/9) > 1e-12 || p.Fluent.Points[len(p.Fluent.Points)-1].Share > 8.0/9+1e-12 {
		t.Errorf("%v have F >= 0.9 at 21 ms: %+v", got, p.Fluent.Points)
	}
	if m := p.Misses[0]; m.TargetGapNs != 25e6 || m.Curve.N != 9 || math.Abs(m.Curve.At(0)-7.0/9) > 1e-12 {
		t.Errorf("%+v", m)
	}
	five := p.Lives[5]
	if len(five.Stalls) != 1 || five.Silence != recording.Some(int64(3e9)) || five.First.V != five.Due+205e6 {
		t.Errorf("%+v", five)
	}
	if p.TokensPerEvent[1] != 8*20 || p.EventsPerRead[1] != 8*20 {
		t.Errorf("events %v, reads %v", p.TokensPerEvent, p.EventsPerRead)
	}
	// Play says the same at a gap of the list.
	for _, g := range p.Fluid {
		sum := 0.0
		for i := range src {
			if src[i].Phase != recording.Measured || src[i].Outcome != recording.OK {
				continue
			}
			s, _ := PlayDecode(TokenTimes(&src[i], nil), g.TargetGapNs)
			sum += s.Index()
		}
		if math.Abs(g.Mean-sum/9) > 1e-12 || g.Requests != 9 {
			t.Errorf("F at %d ns is %v of %d, want %v of 9", g.TargetGapNs, g.Mean, g.Requests, sum/9)
		}
	}
	again, err := Portray(src, meta, r, opt, PortraitOptions{Show: []int64{7}})
	if err != nil || !reflect.DeepEqual(p, again) {
		t.Errorf("a second portrait differs (%v)", err)
	}
}

// A portrait does not grow with its recording, and keeps what it is told to.
func TestPortraitIsBounded(t *testing.T) {
	src := portraitSource(3000)
	meta := recording.Meta{TimeScale: 1}
	r, err := Evaluate(src, meta, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Portray(src, meta, r, Options{}, PortraitOptions{Lives: 100, Arrivals: 2000, Show: []int64{1234, 2345}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Lives) != 100 || len(p.Streams) < 90 || len(p.Streams) > 101 || len(p.Slots) > mostSlots {
		t.Errorf("%d lives, %d streams, %d slots", len(p.Lives), len(p.Streams), len(p.Slots))
	}
	for _, index := range []int64{1234, 2345, p.Worst.V, p.Latest.V, p.Typical.V} {
		if !slices.ContainsFunc(p.Streams, func(s Stream) bool { return s.Index == index }) {
			t.Errorf("request %d is not kept", index)
		}
	}
	var due, finished int64
	for _, s := range p.Slots {
		due += s.Due
		finished += s.Finished
	}
	if due != 3000 || finished != 3000 || p.Slots[len(p.Slots)-1].InFlight != 0 {
		t.Errorf("%d due, %d finished, %d left", due, finished, p.Slots[len(p.Slots)-1].InFlight)
	}
	if p.TTFT.N != 2998 {
		t.Errorf("%d first tokens", p.TTFT.N)
	}
}

// A curve covers the values that the metric of its name covers, and has the same
// percentiles within its steps; with what a server tells, and estimated.
func TestCurvesAreTheMetrics(t *testing.T) {
	told := portraitSource(400)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range told {
		told[i].Phase = recording.Measured
		if i == 3 { // cut after a few tokens: it has a first token and gaps, and nothing of a whole answer
			told[i].Outcome = recording.StreamCut
			told[i].DeltaNs, told[i].Tokens, told[i].Read = []int64{3e8, 2e7, 9e7}, []int32{1, 1, 1}, []int32{0, 1, 2}
		}
		for k := range told[i].DeltaNs {
			told[i].DeltaNs[k] = int64(float64(told[i].DeltaNs[k]) * math.Exp(r.NormFloat64()/3))
		}
		told[i].ServerReceived = recording.Some(told[i].Sent.V + 1000)
		told[i].ServerPrefill = recording.Some(told[i].DeltaNs[0] / 4)
		at, _ := told[i].LastToken()
		told[i].End = recording.Some(at)
	}
	guessed := slices.Clone(told)
	for i := range guessed {
		guessed[i].ServerReceived, guessed[i].ServerPrefill = recording.Maybe[int64]{}, recording.Maybe[int64]{}
	}
	for name, src := range map[string]recording.Slice{"told": told, "estimated": guessed} {
		opt := Options{Deadlines: banded(t, 0)}
		res, err := Evaluate(src, recording.Meta{}, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Portray(src, recording.Meta{}, res, opt, PortraitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if res.Metrics.SchedulingDelay == nil || p.SchedulingDelay.N == 0 {
			t.Fatalf("%s: no scheduling delay", name)
		}
		if first := p.Lives[1]; !first.Scheduled.OK || first.Estimated != (name == "estimated") {
			t.Errorf("%s: %+v", name, first)
		}
		for what, pair := range map[string]struct {
			curve *Curve
			dist  *Dist
		}{
			"ttft": {&p.TTFT, res.Metrics.TTFTDue}, "scheduling delay": {&p.SchedulingDelay, res.Metrics.SchedulingDelay}, "tbt": {&p.TBT, res.Metrics.TBT},
			"tpot": {&p.TPOT, res.Metrics.TPOT}, "normalized": {&p.NormalizedLatency, res.Metrics.NormalizedLatency}, "silence": {&p.GapLongest, res.Metrics.GapLongest}, "e2e": {&p.E2E, res.Metrics.E2E},
		} {
			if pair.curve.N != pair.dist.N {
				t.Errorf("%s, %s: the curve has %d values, the metric %d", name, what, pair.curve.N, pair.dist.N)
			}
			for _, q := range pair.dist.Quantiles {
				if q.Value <= 0 {
					continue
				}
				below, at := pair.curve.At(int64(q.Value*0.997)), pair.curve.At(int64(q.Value*1.003))
				if below > q.P+1e-9 || at < q.P-0.015 {
					t.Errorf("%s, %s: p%v is %v, where the curve goes from %v to %v", name, what, q.P, q.Value, below, at)
				}
			}
		}
	}
}
