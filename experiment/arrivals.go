package experiment

import (
	"math"

	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/spec"
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
	if plan, err := schedule.New(s.Schedule, s.Seed); err == nil { // not from a file that is gone
		realised = plan.Realised
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
