package metrics

import (
	"math"
	"strings"
	"testing"

	"fermata/recording"
)

// Requests by hand: one of four tokens at 50, 60, 90 and 100 ns, the same cut off,
// and one that never left.
func TestPredicate(t *testing.T) {
	good := recording.Trace{Outcome: recording.OK, Check: recording.Pass}
	good.DeltaNs, good.Tokens = []int64{50, 10, 30, 10}, []int32{1, 1, 1, 1}
	cut, unsent := good, recording.Trace{Outcome: recording.NotSent}
	cut.Outcome = recording.StreamCut
	for _, c := range []struct {
		objective  string
		scale      float64
		met        bool
		allowed    float64
		first, end int64
	}{
		{"ttft<=50ns", 1, true, .01, 50, math.MaxInt64},
		{"ttft<=50ns", 2, false, .01, 25, math.MaxInt64},
		{"ttft<=100ns", 2, true, .01, 50, math.MaxInt64},
		{"ttft<=49ns @p90", 0, false, .1, 49, math.MaxInt64},
		{"ttft<=60ns and e2e<=99ns @99.9%", 1, false, .001, 60, 99},
		{"ttft<=200ns and e2e<=100ns", 1, true, .01, 100, 100},
		{"tbt.max<=30ns", 1, true, .01, math.MaxInt64, math.MaxInt64},
		{"tbt.max<=29ns", 1, false, .01, math.MaxInt64, math.MaxInt64},
		{"fluidity>=0.5 gap=10ns", 1, false, .01, math.MaxInt64, math.MaxInt64}, // 60 met, 90 late by 20: 3 missed, 100 met: 2 of 5
		{"fluidity>=0.4 gap=10ns", 1, true, .01, math.MaxInt64, math.MaxInt64},
		{"error<=5%", 1, true, .05, math.MaxInt64, math.MaxInt64},
		{"schema>=99.5%", 1, true, .005, math.MaxInt64, math.MaxInt64},
	} {
		o, err := ParseObjective(c.objective)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPredicate(o, Options{}, c.scale)
		if err != nil {
			t.Fatal(err)
		}
		if met, _, err := p.Met(&good); err != nil || met != c.met {
			t.Errorf("%s at scale %g: %v %v", c.objective, c.scale, met, err)
		}
		for _, failed := range []*recording.Trace{&cut, &unsent} {
			if met, _, err := p.Met(failed); err != nil || met {
				t.Errorf("%s is met by a request that failed (%s), %v", c.objective, failed.Outcome, err)
			}
		}
		if got := p.Allowed(); math.Abs(got-c.allowed) > 1e-15 {
			t.Errorf("%s lets %g miss", c.objective, got)
		}
		if first, end := p.Patience(); first != c.first || end != c.end {
			t.Errorf("%s waits %d and %d", c.objective, first, end)
		}
	}
	for _, c := range []struct {
		objective    string
		ns           int64
		met, decided bool
	}{{"ttft<=50ns", 25, true, true}, {"ttft<=50ns", 26, false, true}, {"ttft<=50ns and tpot<=9ns", 1, false, false}} {
		o, err := ParseObjective(c.objective)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPredicate(o, Options{}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if met, decided := p.MetFirst(c.ns); met != c.met || decided != c.decided {
			t.Errorf("%s at twice %d ns: %v %v", c.objective, c.ns, met, decided)
		}
	}
	pooled, err := ParseObjective("tbt<=1ms@p99")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPredicate(pooled, Options{}, 1); err == nil || !strings.Contains(err.Error(), "write tbt.p99 or tbt.max") {
		t.Errorf("%v", err)
	}
	broken := good
	broken.Tokens = nil
	o, _ := ParseObjective("ttft<=1s")
	p, err := NewPredicate(o, Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Met(&broken); err == nil {
		t.Error("arrivals without token counts were judged")
	}
}
