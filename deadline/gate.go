package deadline

import "slices"

// A Gate says after which canaries a long prompt is sent. A canary is a short
// prompt sent at a random time: where it meets no queue, a long one sent at once
// will mostly meet none either, so that few tokens buy many undelayed probes.
// Some long prompts go through whatever the canary met. The zero value lets them
// pass after canaries of the fastest 30 %, and 20 % of the others, from the fifth
// canary on.
type Gate struct {
	Fastest  float64 // share of the canaries after which the gate is open
	Free     float64 // share that passes a closed gate
	Canaries int     // that must be known before
}

func (g Gate) filled() Gate {
	if g.Fastest == 0 {
		g.Fastest = 0.3
	}
	if g.Free == 0 {
		g.Free = 0.2
	}
	if g.Canaries == 0 {
		g.Canaries = 5
	}
	return g
}

// Passes is the share of canaries that a long prompt follows, where waits are as
// good as independent.
func (g Gate) Passes() float64 {
	g = g.filled()
	return 1 - (1-g.Fastest)*(1-g.Free)
}

// Open says whether a long prompt follows the last of the canaries, whose TTFTs
// in ns are in the order in which they were sent; draw is uniform in [0, 1).
// gated says that it does because the canary was fast: such a probe says nothing
// of how long others wait (see Probe).
func (g Gate) Open(canariesNs []int64, draw float64) (open, gated bool) {
	g = g.filled()
	n := len(canariesNs)
	if n < g.Canaries {
		return false, false
	}
	if draw < g.Free {
		return true, false
	}
	v := make([]float64, n)
	for i, ns := range canariesNs {
		v[i] = float64(ns)
	}
	slices.Sort(v)
	open = float64(canariesNs[n-1]) <= quantile(v, g.Fastest)
	return open, open
}
