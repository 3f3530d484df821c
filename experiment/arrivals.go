package experiment

import (
	"fmt"
	"math"
	"strings"
	"time"

	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/spec"
	"fermata/workload"
)

// arrivals are how the measured requests of a recording came, beside what its
// schedule draws from; nil in a closed loop, where answers decide, and where
// there is nothing to say.
func arrivals(src recording.Source, meta recording.Meta, s *spec.Run) (*metrics.Arrivals, error) {
	if s.Schedule.Kind == schedule.Closed || s.Schedule.Kind == schedule.All {
		return nil, nil
	}
	var due, sent []int64
	for t := range src.Traces(0) {
		if t.Phase == recording.Measured && t.Try == 0 && t.Turn == 0 { // later turns follow answers
			due = append(due, simulated(t.Due, meta.TimeScale))
			if t.Sent.OK {
				sent = append(sent, simulated(t.Sent.V, meta.TimeScale))
			}
		}
	}
	if err := src.Err(); err != nil || len(due) < 3 {
		return nil, err
	}
	realised := schedule.Realised
	if s.Schedule.File == "" { // given times are drawn from nothing
		if plan, err := schedule.New(s.Schedule, s.Seed); err == nil {
			realised = plan.Realised
		}
	}
	g := realised(due)
	a := &metrics.Arrivals{Gaps: int64(g.N), MeanNs: int64(math.Round(g.MeanNs)), CV: g.CV}
	if g.Windows > 1 {
		a.Dispersion, a.WindowNs = &g.Dispersion, g.WindowNs
	}
	if g.Asked != nil {
		mean := int64(math.Round(g.Asked.MeanNs))
		a.AskedMeanNs, a.AskedCV, a.KS, a.KSP = &mean, &g.Asked.CV, g.Asked.Distance, g.Asked.Chance
		if g.Windows > 1 {
			a.AskedDispersion = &g.Asked.Dispersion
		}
	}
	if len(sent) >= 3 {
		g := realised(sent)
		a.Sent = &metrics.Sendings{MeanNs: int64(math.Round(g.MeanNs)), CV: g.CV}
		if g.Asked != nil {
			a.Sent.KS, a.Sent.KSP = g.Asked.Distance, g.Asked.Chance
		}
	}
	return a, nil
}

// simulated is a recorded time in the time that is judged.
func simulated(ns int64, scale float64) int64 {
	if scale <= 0 || same(scale, 1) {
		return ns
	}
	return int64(math.Round(float64(ns) * scale))
}

// DescribeWorkload opens what a run would ask and summarises its first requests, see
// workload.Describe.
func DescribeWorkload(s *spec.Run, requests int) (*workload.Workload, workload.Summary, error) {
	defer readFrugally()()
	w, err := workload.Open(s.Workload, s.Seed)
	if err != nil {
		return nil, workload.Summary{}, err
	}
	summary, err := workload.Describe(w, requests)
	return w, summary, err
}

// describedMost is how many arrivals show what a schedule comes to.
const describedMost = 10_000

// DescribeSchedule says in lines when a run would ask, from its first arrivals, and
// at which rate in each tenth of their time; empty where answers decide, or all are
// due at once.
func DescribeSchedule(s *spec.Run, w *workload.Workload) (string, error) {
	if s.Schedule.Kind == schedule.Closed || s.Schedule.Kind == schedule.All {
		return "", nil
	}
	plan, err := openSchedule(s, w)
	if err != nil {
		return "", err
	}
	var due []int64
	for len(due) < describedMost {
		at, ok := plan.Next(0)
		if !ok || at.Phase == schedule.Drain {
			break
		}
		due = append(due, at.Due)
	}
	if len(due) < 2 {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s, warm-up %s\n  %s\n", s.Schedule.Kind, plan.WarmupText(), plan.Realised(due))
	span := due[len(due)-1]
	if span == 0 {
		return b.String(), nil
	}
	const parts = 10
	var counts [parts]int64
	for _, at := range due {
		counts[min(at*parts/(span+1), parts-1)]++
	}
	for i, n := range counts {
		from := time.Duration(span / parts * int64(i)).Round(time.Millisecond)
		fmt.Fprintf(&b, "  from %-10s %8.4g a second\n", from, float64(n)/(float64(span)/parts/1e9))
	}
	return b.String(), nil
}
