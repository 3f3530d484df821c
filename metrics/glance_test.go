package metrics

import (
	"math"
	"slices"
	"testing"

	"fermata/recording"
)

// What people are shown under way is what the report will say, within a bucket.
func TestGlance(t *testing.T) {
	g, err := NewGlance(Options{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if now := g.Now(); now.Ended != 0 || now.TTFT != nil || now.TBT != nil || now.Fluid != nil {
		t.Errorf("before anything has ended: %+v", now)
	}
	var all recording.Slice
	for i := range int64(100) {
		trace := steadyTrace(i, 40, (100+i)*ms, 3*ms+i*20_000)
		if i%10 == 9 {
			trace = failedTrace(i, recording.HTTPError)
		}
		all = append(all, trace)
		g.See(&trace)
		g.Now() // to look changes nothing
	}
	r := evaluate(t, all, recording.Meta{TimeScale: 10}, Options{})
	now := g.Now()
	if now.Ended != 100 || now.Failures["http_error"] != 10 || len(now.Failures) != 1 {
		t.Errorf("%+v", now)
	}
	for i, p := range []float64{.5, .9, .99} {
		for _, x := range []struct {
			name string
			got  []int64
			d    *Dist
		}{{"ttft", now.TTFT, r.Metrics.TTFTDue}, {"tbt", now.TBT, r.Metrics.TBT}} {
			want, _ := x.d.of(p)
			if off := float64(x.got[i])/want - 1; off < 0 || off > recording.HistogramError+1e-9 {
				t.Errorf("%s p%g is %d, the report says %.0f", x.name, 100*p, x.got[i], want)
			}
		}
	}
	for _, f := range now.Fluid {
		i := slices.IndexFunc(r.Fluidity, func(o Fluidity) bool { return o.TargetGapNs == f.GapNs })
		if i < 0 || math.Abs(*r.Fluidity[i].ShareAtLeast0_9-f.Share) > 1e-12 {
			t.Errorf("at %d ns %g are fluid; the report: %+v", f.GapNs, f.Share, r.Fluidity[i])
		}
	}
	if len(now.Fluid) != 3 {
		t.Errorf("%+v", now.Fluid)
	}
}
