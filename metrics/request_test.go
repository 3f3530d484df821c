package metrics

import (
	"testing"

	"fermata/recording"
)

// Three requests by hand: a good one of three tokens, one that was cut after its
// first, and one that never left.
func TestRequests(t *testing.T) {
	of := func(index int64, outcome recording.Outcome, gaps ...int64) recording.Trace {
		one := recording.Trace{Index: index, Phase: recording.Measured, Due: index * 100, Outcome: outcome}
		for range gaps {
			one.Tokens = append(one.Tokens, 1)
		}
		one.DeltaNs = gaps
		one.Output.Intended, one.Prompt.Used = recording.Some(int32(3)), recording.Some(int32(10))
		return one
	}
	warm := of(0, recording.OK, 5, 5)
	warm.Phase = recording.Warmup
	src := recording.Slice{warm, of(1, recording.OK, 50, 10, 30), of(2, recording.StreamCut, 70, 90), of(3, recording.NotSent)}
	var slo []Objective
	for _, text := range []string{"ttft<=60ns and tbt.max<=30ns", "error<=1%", "tbt<=1ms@p99"} {
		o, err := ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		slo = append(slo, o)
	}
	all, err := Requests(src, recording.Meta{TimeScale: 2}, Options{SLO: slo})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d requests, %v", len(all), err)
	}
	a, b, c := all[0], all[1], all[2] // times are twice as long in simulated time
	if a.Index != 1 || !a.Good || a.TTFT != recording.Some(int64(100)) || a.E2E != recording.Some(int64(180)) ||
		a.TPOT != recording.Some(int64(40)) || a.GapLongest != recording.Some(int64(60)) || a.Intended.Output.V != 3 || a.Due != 200 {
		t.Errorf("%+v", a)
	}
	if b.Good || b.TTFT.V != 140 || b.TPOT.OK || b.E2E.OK || b.GapLongest.V != 180 {
		t.Errorf("%+v", b)
	}
	if c.Good || c.TTFT.OK || c.GapLongest.OK {
		t.Errorf("%+v", c)
	}
	if a.Met[0] || a.Met[1] || !b.Met[1] || b.Met[0] {
		t.Errorf("met %v %v", a.Met, b.Met)
	}
	once, err := Requests(src, recording.Meta{}, Options{SLO: slo})
	if err != nil || !once[0].Met[0] {
		t.Errorf("50 and 30 ns are within 60 and 30: %v %v", once, err)
	}
	if slo[2].ByRequest() || !slo[0].ByRequest() || !slo[1].LessIsBetter() || slo[0].LessIsBetter() {
		t.Error("which objectives are about requests")
	}
}
