package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fermata/internal/coverage"
	"fermata/internal/stats"
	"fermata/recording"
)

// queue is a recording of an M/M/1 queue with service times of 100 ms on average:
// a request's first token comes when its service ends, and it has ten in all.
func queue(n int, load float64) (recording.Slice, []float32) {
	rng := rand.New(rand.NewPCG(9, 9))
	times := coverage.MM1(load).Run(n, 3)
	var s recording.Slice
	due := int64(0)
	for i, v := range times {
		due += int64(rng.ExpFloat64() * 1e8 / load)
		ttft := int64(float64(v) * 1e8)
		times[i] = float32(ttft)
		tr := steadyTrace(int64(i), 10, ttft, 20_000_000)
		tr.Due = due
		tr.Sent, tr.End = recording.Some(due), recording.Some(due+ttft+200_000_000)
		s = append(s, tr)
	}
	return s, times
}

func quantileOf(t *testing.T, d *Dist, p float64) Quantile {
	t.Helper()
	for _, q := range d.Quantiles {
		if math.Abs(q.P-p) < 1e-9 {
			return q
		}
	}
	t.Fatalf("no p%v", 100*p)
	return Quantile{}
}

// What stands beside a percentile is what the estimators say of the latencies in
// the order of due times, and the relaxation time where the load is known.
func TestIntervalsCountBursts(t *testing.T) {
	const n = 6000
	s, times := queue(n, .8)
	own := stats.TauOf(times, stats.UpperTail, false)
	batches := stats.TauOf(times, stats.UpperTail, true)
	if own.V < 10 || batches.V >= own.V && own.By == stats.ByGeyer {
		t.Fatalf("tau %+v, by batches %+v", own, batches)
	}
	slices.Sort(times)
	objective, _ := ParseObjective("ttft<=2s @80%")
	for _, c := range []struct {
		name   string
		opt    Options
		tau    stats.Tau
		status string
	}{
		{"unknown", Options{}, own, "assumed"},
		{"known", Options{SaturationRPS: 10}, own.Or(stats.Relaxation(.8)), "ok"},
		{"doubtful", Options{SaturationRPS: 10, Doubts: []string{"rough"}}, own, "assumed"},
		{"closed", Options{ClosedLoop: true}, batches, "assumed"},
		{"closed, and a saturation", Options{ClosedLoop: true, SaturationRPS: 10}, batches, "assumed"},
	} {
		c.opt.SLO = []Objective{objective}
		meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](n / 8 * 1e9)} // 8 a second of the 10 that it serves
		r := evaluate(t, s, meta, c.opt)
		q := quantileOf(t, r.Metrics.TTFTDue, .5)
		if math.Abs(*q.Tau-c.tau.V) > 1e-9*c.tau.V || q.Rule != c.tau.By || math.Abs(q.NEff-n/c.tau.V) > 1e-6 || q.Status != c.status {
			t.Errorf("%s: tau %v by %s, n_eff %v, %s; want %+v", c.name, *q.Tau, q.Rule, q.NEff, q.Status, c.tau)
		}
		low, high := stats.OrderInterval(n, 500, n/c.tau.V)
		if math.Abs(*q.Low-float64(times[low-1])) > 16 || math.Abs(*q.High-float64(times[high-1])) > 16 { // float32
			t.Errorf("%s: %v to %v", c.name, *q.Low, *q.High)
		}
		v := r.SLO[0]
		shareLow, shareHigh := stats.ClopperPearson(*v.Share**v.NEff, *v.NEff)
		if math.Abs(*v.Tau-c.tau.V) > 1e-9*c.tau.V || math.Abs(*v.ShareLow-shareLow) > 1e-12 || math.Abs(*v.ShareHigh-shareHigh) > 1e-12 || v.Status != c.status {
			t.Errorf("%s: %+v", c.name, v)
		}
		if known := r.Load.OfSaturation != nil; known != (c.status == "ok") || known && math.Abs(*r.Load.OfSaturation-.8) > 1e-12 {
			t.Errorf("%s: %+v", c.name, r.Load)
		}
		if doubted := strings.Contains(codes(r), "saturation_doubtful"); doubted != (c.opt.Doubts != nil) {
			t.Errorf("%s: %s", c.name, codes(r))
		}
		if assumed := strings.Contains(codes(r), "assumed_intervals"); assumed != (c.status == "assumed") {
			t.Errorf("%s: %s", c.name, codes(r))
		}
	}
}

// An insufficient percentile meets nothing; a bound that hardly any request kept is
// missed all the same.
func TestNoVerdictOnAnInsufficientPercentile(t *testing.T) {
	s, _ := queue(60, .5)
	for text, want := range map[string]string{"ttft<=60s@p99": Open, "ttft<=60s@p90": Open, "ttft<=60s@90%": Met, "ttft<=1ns@p99": Missed, "tbt<=60s@p99": Open} {
		if v := evaluate(t, s, recording.Meta{}, Options{SLO: objectivesOf(t, text)}).SLO[0]; v.Verdict != want || strings.Contains(text, "@p") && v.Status != "insufficient" {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// A load at the saturation has no percentiles, however long the run.
func TestSaturated(t *testing.T) {
	s, _ := queue(2000, .8)
	meta := recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some[int64](200e9)}
	r := evaluate(t, s, meta, Options{SaturationRPS: 10})
	if q := quantileOf(t, r.Metrics.TTFTDue, .5); q.Status != "insufficient" || !strings.Contains(codes(r), "saturated") {
		t.Errorf("%+v, %s", q, codes(r))
	}
}

// Requests that come faster than they are answered: growth instead of percentiles.
func TestDrift(t *testing.T) {
	run := func(gap int64) *Result {
		var s recording.Slice
		rng := rand.New(rand.NewPCG(4, 4))
		free := int64(0)
		for i := range int64(3000) {
			due := i * gap
			free = max(free, due) + int64(rng.ExpFloat64()*1e8)
			tr := steadyTrace(i, 2, free-due, 1_000_000)
			tr.Due = due
			tr.Sent, tr.End = recording.Some(due), recording.Some(free)
			s = append(s, tr)
		}
		return evaluate(t, s, recording.Meta{WindowStart: recording.Some[int64](0), WindowEnd: recording.Some(3000 * gap)}, Options{})
	}
	// 12.5 a second of the 10 that are served: each finds 1 - 10/12.5 = 0.2 more, and
	// waits 20 ms longer, 0.25 s a second.
	r := run(80_000_000)
	d := r.Load.Drift
	if d == nil || !d.Unsteady || d.Requests != 2500 || math.Abs(d.PerRequest-.2) > .03 || math.Abs(*d.PerS-2.5) > .4 || math.Abs(*d.TTFTNsPerS-.25e9) > .04e9 {
		t.Fatalf("%+v", d)
	}
	for _, q := range r.Metrics.TTFTDue.Quantiles {
		if q.Status != "insufficient" {
			t.Errorf("%+v", q)
		}
	}
	if c := codes(r); !strings.Contains(c, "drift") || strings.Contains(c, "backlog") {
		t.Error(c)
	}
	r = run(200_000_000)
	if d := r.Load.Drift; d == nil || d.Unsteady || strings.Contains(codes(r), "drift") {
		t.Errorf("half the load: %+v, %s", d, codes(r))
	}
}

// A request whose gaps are all alike is worth one gap, one whose gaps have nothing
// to do with each other all of them; and so it is where the gaps come twice.
func TestPooledGapsCountByRequest(t *testing.T) {
	const requests, tokens = 400, 41
	for _, keep := range []int{0, 50} {
		for _, alike := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(1, 8))
			var s recording.Slice
			for i := range int64(requests) {
				tr := steadyTrace(i, tokens, 200_000_000, 20_000_000)
				gap := 10_000_000 + rng.Int64N(20_000_000)
				for k := range tr.DeltaNs[1:] {
					if !alike {
						gap = 10_000_000 + rng.Int64N(20_000_000)
					}
					tr.DeltaNs[k+1] = gap
				}
				s = append(s, tr)
			}
			d := evaluate(t, s, recording.Meta{}, Options{keepAtMost: keep}).Metrics.TBT
			q := quantileOf(t, d, .9)
			want := float64(requests * (tokens - 1))
			if alike {
				want = requests
			}
			if worth := q.NEff * *q.Tau; math.Abs(worth-want) > .15*want || d.N != requests*(tokens-1) || d.NRequests != requests || !strings.HasPrefix(q.Rule, "clusters, ") {
				t.Errorf("alike %v, kept %d: worth %.0f gaps, want about %.0f: %+v", alike, keep, worth, want, q)
			}
			// The same ranks, to the bucket's width where the gaps came twice.
			low, high := stats.OrderInterval(d.N, 900, q.NEff)
			var all []int64
			for _, tr := range s {
				all = append(all, tr.DeltaNs[1:]...)
			}
			slices.Sort(all)
			l, h := float64(all[low-1]), float64(all[high-1])
			if *q.Low > l || *q.Low < l*(1-1./256) || *q.High < h || *q.High > h*(1+1./256) || keep == 0 && (*q.Low < l || *q.High > h) {
				t.Errorf("alike %v, kept %d: %v to %v, want %v to %v", alike, keep, *q.Low, *q.High, l, h)
			}
		}
	}
}

// A batch of 40 whose answers come one after another is all there is: its median is
// the twentieth, known exactly, and no verdict on it is open.
func TestABatchIsDescribed(t *testing.T) {
	const n = 40
	var s recording.Slice
	for i := range int64(n) {
		t := steadyTrace(i, 2, (i+1)*1e8, 1e6)
		t.Sent, t.End = recording.Some[int64](0), recording.Some((i+1)*1e8+1e6)
		s = append(s, t)
	}
	var slo []Objective
	for _, text := range []string{"ttft<=2s@p50", "ttft<=1.9s@p50", "ttft<=3s @75%", "ttft<=3s @76%", "tbt<=1ms@p99"} {
		o, err := ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		slo = append(slo, o)
	}
	r := evaluate(t, s, recording.Meta{}, Options{AllAtOnce: true, SLO: slo})
	q := quantileOf(t, r.Metrics.TTFTDue, .5)
	if q.Status != "ok" || q.Rule != "population" || q.Value != 2e9 || *q.Low != 2e9 || *q.High != 2e9 || q.NEff != n || *q.Tau != 1 {
		t.Errorf("%+v, from %v to %v", q, *q.Low, *q.High)
	}
	for i, want := range []string{Met, Missed, Met, Missed, Met} {
		if v := r.SLO[i]; v.Verdict != want || v.Status != "ok" {
			t.Errorf("%s: %s, %s", v.Objective, v.Verdict, v.Status)
		}
	}
	if q := quantileOf(t, r.Metrics.TBT, .99); q.Status != "ok" || q.Rule != "population" || *q.Low != 1e6 || *q.High != 1e6 {
		t.Errorf("pooled: %+v", q)
	}
	for _, o := range r.Metrics.TTFTDue.Over {
		if o.Share != *o.Low || o.Share != *o.High {
			t.Errorf("over %v: %v from %v to %v", o.Value, o.Share, *o.Low, *o.High)
		}
	}
}
