package metrics

import (
	"math"
	"strings"
	"testing"

	"fermata/recording"
)

// lagSamples are seconds whose reads were late by the given times.
func lagSamples(seconds int, ns ...int64) []recording.Sample {
	var all []recording.Sample
	for i := range seconds {
		var h recording.Histogram
		for _, v := range ns {
			h.Add(v)
		}
		all = append(all, recording.Sample{TimeNs: int64(i+1) * 1e9, ReadLagBuckets: h.Buckets, ReadLagCounts: h.Counts})
	}
	return all
}

func times(n int, v int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func evaluateWith(t *testing.T, samples []recording.Sample, gap int64) *Result {
	t.Helper()
	var s recording.Slice
	for i := range int64(100) {
		s = append(s, steadyTrace(i, 5, 200_000_000, gap))
	}
	meta := recording.Meta{WindowStart: recording.Some[int64](1e9), WindowEnd: recording.Some[int64](4e9)}
	r, err := Evaluate(s, meta, samples, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Read lag is judged at the highest percentile that there are reads for, against
// 100 ms or two median gaps.
func TestReadLag(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		name  string
		lag   []recording.Sample
		gap   int64
		bound bool
	}{
		{"quick", lagSamples(10, times(100, 20_000)...), 20 * ms, false},
		{"one of a hundred slow", lagSamples(10, append(times(99, 20_000), 500*ms)...), 20 * ms, false},
		{"two of a hundred slow", lagSamples(10, append(times(98, 20_000), 110*ms, 110*ms)...), 20 * ms, true},
		{"two of a hundred nearly", lagSamples(10, append(times(98, 20_000), 90*ms, 90*ms)...), 20 * ms, false},
		{"slow, but so are the tokens", lagSamples(10, append(times(98, 20_000), 110*ms, 110*ms)...), 60 * ms, false},
		{"slower than slow tokens", lagSamples(10, append(times(98, 20_000), 130*ms, 130*ms)...), 60 * ms, true},
		{"too few reads to say", lagSamples(1, append(times(48, 20_000), 500*ms, 500*ms)...), 20 * ms, false},
	} {
		r := evaluateWith(t, c.lag, c.gap)
		if r.Health.ClientBound != c.bound {
			t.Errorf("%s: client-bound %v because of %q", c.name, r.Health.ClientBound, r.Health.Reasons)
		}
		if c.bound && !strings.Contains(r.Health.Reasons[0], "sockets were read late: percentile 99") {
			t.Errorf("%s: %q", c.name, r.Health.Reasons)
		}
	}
	d := evaluateWith(t, lagSamples(10, append(times(98, 20_000), 110*ms, 110*ms)...), 20*ms).Health.ReadLag
	if v, _ := d.of(0.5); d.N != 1000 || v < 20_000 || v > 20_000*(1+recording.HistogramError) {
		t.Errorf("median of 20 µs: %v of %d", v, d.N)
	}
	if v, _ := d.of(0.99); v < 110*ms || v > 110*ms*(1+recording.HistogramError) || d.Quantiles[0].Rule != "histogram" {
		t.Errorf("p99 of 110 ms: %v", v)
	}
}

// Where the kernel does not stamp, the canary is judged; a busy processor is no
// reason once somebody knows how late reads were.
func TestCanaryIsJudged(t *testing.T) {
	turn := func(all []recording.Sample) []recording.Sample {
		for i := range all {
			s := &all[i]
			s.CanaryBuckets, s.CanaryCounts, s.ReadLagBuckets, s.ReadLagCounts = s.ReadLagBuckets, s.ReadLagCounts, nil, nil
			s.CPU, s.Cores = 1.95, 2
		}
		return all
	}
	quick := evaluateWith(t, turn(lagSamples(10, times(100, 300_000)...)), 20_000_000)
	if h := quick.Health; h.ClientBound || h.ReadLag != nil || h.Canary == nil || !strings.Contains(codes(quick), "user_stamps") || !strings.Contains(codes(quick), "client_busy") {
		t.Errorf("%+v, warnings %s", h, codes(quick))
	}
	late := evaluateWith(t, turn(lagSamples(10, times(100, 300_000_000)...)), 20_000_000)
	if h := late.Health; !h.ClientBound || !strings.Contains(h.Reasons[0], "a canary stream shows") {
		t.Errorf("%+v", h)
	}
}

// What seconds say is summed up; figures that nobody told are absent.
func TestInstrumentFigures(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	f := func(v float64) *float64 { return &v }
	samples := []recording.Sample{
		{Reads: n(90), ReadsLeft: n(9), GCCycles: n(2), LoopTurnNs: n(400), CPUPressure: f(0.2), ClockStepNs: n(-5)},
		{Reads: n(10), ReadsLeft: n(1), GCCycles: n(1), LoopTurnNs: n(900), CPUPressure: f(0.1), ClockStepNs: n(3)},
		{},
	}
	h := evaluateWith(t, samples, 20_000_000).Health
	if math.Abs(*h.ReadsLeftShare-0.1) > 1e-12 || *h.GCCycles != 3 || *h.LoopTurnMax != 900 || math.Abs(*h.CPUPressureMax-0.2) > 1e-12 || *h.ClockStepMax != 5 {
		t.Errorf("left %v, collections %v, turn %v, pressure %v, step %v", *h.ReadsLeftShare, *h.GCCycles, *h.LoopTurnMax, *h.CPUPressureMax, *h.ClockStepMax)
	}
	old := evaluateWith(t, []recording.Sample{{CPU: 0.1}}, 20_000_000).Health
	if old.ReadsLeftShare != nil || old.GCCycles != nil || old.LoopTurnMax != nil || old.CPUPressureMax != nil || old.ClockStepMax != nil || old.ReadLag != nil || old.Canary != nil {
		t.Errorf("an older recording: %+v", old)
	}
	stepped := evaluateWith(t, []recording.Sample{{ClockStepNs: n(-2_000_000)}}, 20_000_000)
	if !strings.Contains(codes(stepped), "clock_step") {
		t.Errorf("warnings %s", codes(stepped))
	}
}

// The server's figures are those of the window; its counters grow from the last
// look before it.
func TestServerFigures(t *testing.T) {
	name := "vllm"
	at := func(ns int64, running, preempted, queries, hits float64, flight int64) recording.Sample {
		return recording.Sample{
			TimeNs: ns + 5e8, InFlight: flight, Server: &name, ServerTimeNs: &ns, ServerRunning: &running,
			ServerPreemptions: &preempted, ServerPrefixQueries: &queries, ServerPrefixHits: &hits,
		}
	}
	samples := []recording.Sample{
		at(0, 9, 100, 1000, 900, 9),
		at(999_999_999, 9, 101, 2000, 1000, 9), // the last look before the window
		at(1_000_000_000, 2, 101, 2100, 1000, 3),
		at(2_000_000_000, 4, 103, 2400, 1300, 5),
		at(2_000_000_000, 4, 103, 2400, 1300, 50), // the same answer once more
		{TimeNs: 3e9},                          // nothing came
		at(3_900_000_000, 3, 1, 100, 50, 4),    // it began anew
		at(4_000_000_000, 8, 7, 7000, 7000, 8), // the window is over; what it counted up to here was
	}
	s := evaluateWith(t, samples, 20_000_000).Server
	if s == nil || s.Names != "vllm" || s.Seconds != 3 {
		t.Fatalf("%+v", s)
	}
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("%s: %v, want %g", what, got, want)
		}
	}
	near("running", s.RunningMean, 3)
	near("running at most", s.RunningMax, 4)
	near("in flight", &s.InFlightMean, 4)
	near("in flight at most", &s.InFlightMax, 5)
	near("preemptions", s.Preemptions, 2+1+6)
	near("prefix hits", s.PrefixHitShare, float64(300+50+6950)/float64(100+300+100+6900))
	if s.WaitingMean != nil || s.KVUsageMax != nil {
		t.Errorf("nobody told: %+v", s)
	}
	if s := evaluateWith(t, lagSamples(3, 5), 20_000_000).Server; s != nil {
		t.Errorf("no server told anything: %+v", s)
	}
}

// Few exact arrivals warn and make no run client-bound; those of an answer's last
// read are left out.
func TestExactShare(t *testing.T) {
	var s recording.Slice
	for i := range int64(100) {
		tr := steadyTrace(i, 10, 200_000_000, 20_000_000)
		tr.Read, tr.StampErrorNs = make([]int32, 10), make([]int64, 10)
		for k := range 10 {
			tr.Read[k], tr.StampErrorNs[k] = int32(k+1), 50_000
		}
		tr.Read[8], tr.Read[9] = 9, 9 // the last two came together, with the end
		tr.StampErrorNs[8], tr.StampErrorNs[9] = 20_000_000, 20_000_000
		if i < 20 {
			tr.StampErrorNs[3] = 30_000_000
		}
		s = append(s, tr)
	}
	r := evaluate(t, s, recording.Meta{}, Options{})
	if want := 780.0 / 800; math.Abs(*r.Health.ExactShare-want) > 1e-12 || r.Health.ClientBound || !strings.Contains(codes(r), "exact_share") {
		t.Errorf("exact share %v, want %v; client-bound %v; warnings %s", *r.Health.ExactShare, want, r.Health.ClientBound, codes(r))
	}
	if d := r.Health.BoundedWidth; d.N != 220 || *d.Min < 20e6 || *d.Max > 30e6 || r.Health.BoundWidth.N != 1000 {
		t.Errorf("bounds of the others: %+v", d)
	}
}
