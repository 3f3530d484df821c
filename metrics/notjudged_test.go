package metrics

import (
	"math"
	"testing"
	"time"

	"fermata/recording"
)

// An objective about F with the first token is about the answers whose prompts have a
// first-token deadline, and about the failures: banded is valid to 1000 tokens.
func TestNoDeadlineIsNotJudged(t *testing.T) {
	const slo = "fluidity.first>=0.9 gap=25ms @50%"
	run := func(late, good, outside, failed int64, opt Options, text string) *Result {
		var s recording.Slice
		for i := range late + good + outside + failed {
			one := steadyTrace(i, 5, 150e6, 1e6)
			switch {
			case i < late:
				one = steadyTrace(i, 5, 900e6, 1e6)
			case i < late+good:
			case i < late+good+outside:
				one.Prompt.Used = recording.Some[int32](1001)
			default:
				one = failedTrace(i, recording.HTTPError)
			}
			s = append(s, one)
		}
		opt.Deadlines, opt.SLO = banded(t, 200*time.Millisecond), objectivesOf(t, text)
		return evaluate(t, s, recording.Meta{}, opt)
	}
	for _, text := range []string{slo, "fluidity.first>=0.9 gap=25ms @p50", "fluidity.first>=0.9 gap=25ms and ttft<=1s @50%"} {
		for _, failed := range []int64{0, 5} {
			for _, point := range []bool{false, true} {
				r := run(0, 0, 200, failed, Options{PointVerdict: point}, text)
				v, g := r.SLO[0], r.Goodput[0]
				if v.Verdict != Open || v.Share != nil || v.Value != nil || v.NotJudged != 200 || v.Judged == nil || *v.Judged != failed || v.WithoutIt != 0 {
					t.Errorf("%s, none judged, %d failed: %+v", text, failed, v)
				}
				if g.Share != nil || g.RequestsS != nil || g.NotJudged != 200 {
					t.Errorf("%s, none judged, %d failed: %+v", text, failed, g)
				}
			}
		}
		// 1 of 10 judged is late: 0.9, not (9 + 10) of 20.
		r := run(1, 9, 10, 0, Options{}, text)
		v, g := r.SLO[0], r.Goodput[0]
		if v.Share == nil || math.Abs(*v.Share-0.9) > 1e-12 || *v.Judged != 10 || v.NotJudged != 10 {
			t.Errorf("%s, half judged: %+v", text, v)
		}
		if g.Share == nil || math.Abs(*g.Share-0.9) > 1e-12 || g.NotJudged != 10 {
			t.Errorf("%s, half judged: %+v", text, g)
		}
		// Failures miss: 300 of 700 judged are good.
		if v := run(0, 300, 100, 400, Options{PointVerdict: true}, text).SLO[0]; v.Verdict != Missed || math.Abs(*v.Share-3./7) > 1e-12 {
			t.Errorf("%s with failures: %+v", text, v)
		}
	}
	// Decode asks for no deadline.
	if v := run(0, 0, 200, 0, Options{PointVerdict: true}, "fluidity.decode>=0.9 gap=25ms @50%").SLO[0]; v.Verdict != Met || v.NotJudged != 0 || v.Judged != nil {
		t.Errorf("decode: %+v", v)
	}
}

func TestPredicateWithoutDeadline(t *testing.T) {
	p, err := NewPredicate(objectivesOf(t, "fluidity.first>=0.9 gap=25ms and ttft<=1s")[0], Options{Deadlines: banded(t, 0)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	in, out, bad := steadyTrace(0, 5, 100e6, 1e6), steadyTrace(1, 5, 100e6, 1e6), failedTrace(2, recording.HTTPError)
	out.Prompt.Used = recording.Some[int32](1001)
	for i, c := range []struct {
		t           *recording.Trace
		met, judged bool
	}{{&in, true, true}, {&out, false, false}, {&bad, false, true}} {
		if met, judged, err := p.Met(c.t); err != nil || met != c.met || judged != c.judged {
			t.Errorf("%d: met %v, judged %v, %v", i, met, judged, err)
		}
	}
}
