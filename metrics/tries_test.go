package metrics

import (
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
	if d := r.Load.Lateness; d == nil || d.N != 1 || int64(*d.Max) != 2e6 {
		t.Errorf("lateness %+v, want that of the first try, 2 ms", d)
	}
}
