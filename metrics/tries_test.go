package metrics

import (
	"math"
	"strings"
	"testing"

	"fermata/recording"
)

func TestTries(t *testing.T) {
	first, second := failedTrace(0, recording.HTTPError), steadyTrace(0, 5, 200_000_000, 20_000_000)
	second.Try, second.Due = 1, 50_000_000
	r := evaluate(t, recording.Slice{first, second, failedTrace(1, recording.Refused)}, recording.Meta{}, Options{})
	if r.Load.Measured != 2 || r.Outcomes["ok"] != 1 || r.Outcomes["refused"] != 1 || *r.Metrics.TTFTDue.Max < 250e6 || *r.Metrics.TTFTDue.Max > 250e6 {
		t.Errorf("%+v, %v", r.Load, r.Outcomes)
	}
	if !strings.Contains(codes(r), "retried") || r.Load.Retried != 1 || r.Load.EarlierTries != 1 {
		t.Errorf("warnings %s, %+v", codes(r), r.Load)
	}
}

// A request of three tries is one of one request, late by its first try alone;
// tries of the warm-up count nowhere.
func TestThreeTries(t *testing.T) {
	first, second, third := failedTrace(3, recording.HTTPError), failedTrace(3, recording.StreamCut), steadyTrace(3, 5, 200_000_000, 20_000_000)
	first.Sent, second.Sent, third.Sent = recording.Some[int64](2e6), recording.Some[int64](500e6), recording.Some[int64](1500e6)
	first.Due, second.Due, third.Due = 0, 0, 0
	second.Try, third.Try = 1, 2
	warm, again := failedTrace(1, recording.Refused), failedTrace(1, recording.Refused)
	warm.Phase, again.Phase, again.Try = recording.Warmup, recording.Warmup, 1
	r := evaluate(t, recording.Slice{warm, again, first, second, third}, recording.Meta{}, Options{})
	if l := r.Load; l.Measured != 1 || l.Sent != 1 || l.Retried != 1 || l.EarlierTries != 2 || r.Outcomes["ok"] != 1 {
		t.Errorf("%+v, %v", r.Load, r.Outcomes)
	}
	if l := r.Load; l.InFlightMax != 1 {
		t.Errorf("%d in flight", l.InFlightMax)
	}
	if d := r.Load.Lateness; d == nil || d.N != 1 || int64(*d.Max) != 2e6 {
		t.Errorf("lateness %+v, want that of the first try, 2 ms", d)
	}
}

// Both tries of a request are load: 300 ms and 280 ms of a window of a second.
func TestTriesInFlight(t *testing.T) {
	first, second := failedTrace(0, recording.Timeout), steadyTrace(0, 5, 200_000_000, 20_000_000)
	first.Due, first.Sent, first.End = 0, recording.Some[int64](0), recording.Some[int64](300e6)
	second.Try, second.Due, second.Sent, second.End = 1, 0, recording.Some[int64](400e6), recording.Some[int64](680e6)
	for _, scale := range []float64{1, 10} {
		r := evaluate(t, recording.Slice{first, second}, recording.Meta{
			TimeScale: scale, WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](1e9),
		}, Options{})
		if m := r.Load.InFlightMean; m == nil || math.Abs(*m-0.58) > 1e-9 || r.Load.InFlightMax != 1 {
			t.Errorf("time scale %g: %v in flight on average, at most %d; want 0.58 and 1", scale, m, r.Load.InFlightMax)
		}
	}
}
