package experiment

import (
	"cmp"
	"slices"

	"fermata/cost"
	"fermata/report"
)

// goodputShares are those of DistServe.
var goodputShares = []float64{.9, .99}

// understand writes what the loads of a sweep come to together.
func understand(s *report.Sweep) {
	markFrontier(s.Points)
	s.Knee = knee(s.Points)
	var names []string
	for i := range s.Points {
		for _, one := range s.Points[i].Shares {
			if !slices.Contains(names, one.Objective) {
				names = append(names, one.Objective)
			}
		}
	}
	offline := slices.IndexFunc(s.Points, func(p report.SweepPoint) bool { return p.Value == nil })
	for _, name := range names {
		for _, share := range goodputShares {
			g := goodputAt(s.Points, s.GPUs, name, share)
			if i := slices.IndexFunc(s.Points, func(p report.SweepPoint) bool { return p.Label == g.At }); i >= 0 && offline >= 0 {
				lost(&g, s.Points[i].TokensPerS, s.Points[offline].TokensPerS)
			}
			s.Goodput = append(s.Goodput, g)
		}
	}
}

// markFrontier marks the points that no other one dominates.
func markFrontier(points []report.SweepPoint) {
	known := func(p *report.SweepPoint) bool { return p.TokensPerS != nil && p.TTFT != nil && p.TBT != nil }
	for i := range points {
		p := &points[i]
		p.Frontier = known(p)
		for k := range points {
			q := &points[k]
			if i == k || !p.Frontier || !known(q) {
				continue
			}
			noWorse := *q.TokensPerS >= *p.TokensPerS && q.TTFT.P99 <= p.TTFT.P99 && q.TBT.P99 <= p.TBT.P99
			better := *q.TokensPerS > *p.TokensPerS || q.TTFT.P99 < p.TTFT.P99 || q.TBT.P99 < p.TBT.P99
			p.Frontier = !(noWorse && better)
		}
	}
}

// fewestForKnee is how many loads it takes for one to lie between others.
const fewestForKnee = 3

// knee is the load of most power, which is throughput over mean response time
// (Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in
// computer communications", ICC 1979): of M/M/1 half the saturation rate.
func knee(points []report.SweepPoint) *report.SweepKnee {
	var loads []*report.SweepPoint
	for i := range points {
		p := &points[i]
		if p.Value == nil || p.RequestsPerS == nil || p.E2E == nil || !(p.E2E.Mean > 0) {
			continue
		}
		power := *p.RequestsPerS / (p.E2E.Mean / 1e9)
		p.Power = &power
		loads = append(loads, p)
	}
	if len(loads) < fewestForKnee {
		return nil
	}
	slices.SortFunc(loads, func(a, b *report.SweepPoint) int { return cmp.Compare(*a.Value, *b.Value) })
	best := 0
	for i, p := range loads {
		if *p.Power > *loads[best].Power {
			best = i
		}
	}
	return &report.SweepKnee{At: loads[best].Label, Rule: "kleinrock_power", End: best == 0 || best == len(loads)-1}
}

// goodputAt is the highest load at which the share of requests meets the
// objective, going up to the first that fails: one that holds above may be luck.
func goodputAt(points []report.SweepPoint, gpus int, objective string, share float64) report.SweepGoodput {
	g := report.SweepGoodput{Objective: objective, Share: share}
	var loads []*report.SweepPoint
	for i := range points {
		if points[i].Value != nil {
			loads = append(loads, &points[i])
		}
	}
	slices.SortFunc(loads, func(a, b *report.SweepPoint) int { return cmp.Compare(*a.Value, *b.Value) })
	holds, sure := true, true
	for _, p := range loads {
		rate := p.OfferedRPS
		if rate == nil {
			rate = p.RequestsPerS
		}
		met, low, high := p.ShareOf(objective)
		if rate == nil || met == nil {
			continue
		}
		per := func(v *float64) *float64 {
			if v == nil {
				return nil
			}
			x := *v / float64(gpus)
			return &x
		}
		if holds = holds && p.Steady && *met >= share; holds {
			g.At, g.RPSPerGPU, g.TokensPerGPU = p.Label, per(rate), per(p.TokensPerS)
		}
		if sure = sure && p.Steady && low != nil && *low >= share; sure {
			g.SureRPSPerGPU = per(rate)
		}
		if g.FailsRPSPerGPU == nil && (high != nil && *high < share || !p.Steady) {
			g.FailsRPSPerGPU = per(rate)
		}
	}
	return g
}

// lost is what a promise costs beside everything at once.
func lost(g *report.SweepGoodput, kept, offline *float64) {
	if kept == nil || offline == nil || !(*offline > 0) || !(*kept > 0) {
		return
	}
	loss, factor := 1 - *kept / *offline, cost.Promise(*offline, *kept)
	g.Loss, g.CostFactor = &loss, &factor
}
