package deadline

import (
	"math"
	"slices"
)

// What is needed to say that an endpoint changed its speed while it was probed.
const (
	shiftProbes = 12 // in either third
	shiftFrom   = 0.05
)

// shift fits the curve, scaled, to the first and to the last third of the probes,
// by their blocks of time. Both show one floor unless the endpoint changed, or was
// never quiet in one of them; bootstrap intervals that do not touch say that it is
// not chance. (Halves would mix both speeds in one of them wherever the change
// does not fall into the very middle.)
func (d *Diagnosis) shift(s *sample, f *fitted, intN func(n int) int) {
	order := make([]int, len(s.y))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case s.block[a] < s.block[b]:
			return -1
		case s.block[a] > s.block[b]:
			return 1
		}
		return 0
	})
	third := len(order) / 3
	if third < shiftProbes || s.block[order[0]] == s.block[order[len(order)-1]] {
		return
	}
	var scale, low, high [2]float64
	for i, some := range [][]int{order[:third], order[len(order)-third:]} {
		part := &sample{p: pick(s.p, some), y: pick(s.y, some)}
		for _, at := range some {
			part.block = append(part.block, s.block[at])
			part.gated = append(part.gated, s.gated[at])
		}
		g := fitShape(part, shape{name: "scaled", scaled: func(p float64) float64 { return f.shape.at(f.b, p) }}, f.noise)
		var drawn []float64
		for _, b := range g.resample(part, shiftResamples, intN) {
			drawn = append(drawn, b[0])
		}
		drawn = sorted(drawn)
		scale[i], low[i], high[i] = g.b[0], quantile(drawn, 0.05), quantile(drawn, 0.95)
	}
	if !(scale[0] > 0 && scale[1] > 0) {
		return // times of next to nothing fit no curve, and there is no ratio to it
	}
	d.Shift = scale[1] / scale[0]
	d.shifted = math.Abs(math.Log(d.Shift)) > math.Log1p(shiftFrom) && (low[1] > high[0] || high[1] < low[0])
}

const shiftResamples = 40
