package metrics

import (
	"maps"
	"slices"
	"sync"

	"fermata/recording"
)

// A Glance says under way about how a run goes, over all requests that have ended,
// whatever their phase. It is for people who watch and for nothing else: percentiles
// are those of buckets 3 % wide, and what is still under way is missing. See is for
// any goroutine.
type Glance struct {
	gaps      []int64
	scale     scale
	ttft, tbt recording.LiveHistogram

	mu       sync.Mutex
	ended    int64
	scored   int64   // requests that have F
	fluid    []int64 // of those with F >= 0.9, a target gap each
	failures map[string]int64
	times    []int64
	ttfts    recording.Histogram // taken so far
	tbts     recording.Histogram
}

// NewGlance judges at the target gaps of the options. timeScale is how many
// simulated seconds pass in one; 0 or 1 where time is not simulated.
func NewGlance(opt Options, timeScale float64) (*Glance, error) {
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	return &Glance{gaps: opt.TargetGapsNs, scale: scale(timeScale), fluid: make([]int64, len(opt.TargetGapsNs)), failures: map[string]int64{}}, nil
}

// See takes in a request that has ended.
func (g *Glance) See(t *recording.Trace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended++
	g.times = TokenTimes(t, g.times[:0])
	times := g.times
	for i := range times {
		times[i] = g.scale.ns(times[i])
		if i == 0 {
			g.ttft.Add(times[i])
		} else {
			g.tbt.Add(times[i] - times[i-1])
		}
	}
	if t.Outcome != recording.OK {
		g.failures[string(t.Outcome)]++
		g.scored++ // F = 0
		return
	}
	if len(times) < 2 {
		return
	}
	g.scored++
	for i, gap := range g.gaps {
		if s, ok := PlayDecode(times, gap); ok && s.AtLeast(9, 10) {
			g.fluid[i]++
		}
	}
}

// A Glimpse is what a Glance says at a moment. Times are in ns.
type Glimpse struct {
	Ended     int64
	TTFT, TBT []int64 // p50, p90 and p99; empty where there is none
	Fluid     []FluidSoFar
	Failures  map[string]int64
}

// FluidSoFar is the share of requests with F >= 0.9 at a target gap, decode only.
type FluidSoFar struct {
	GapNs int64
	Share float64
}

// Now is how things stand.
func (g *Glance) Now() Glimpse {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ttfts.Merge(g.ttft.Take())
	g.tbts.Merge(g.tbt.Take())
	now := Glimpse{Ended: g.ended, TTFT: threeOf(&g.ttfts), TBT: threeOf(&g.tbts), Failures: maps.Clone(g.failures)}
	for i, gap := range g.gaps {
		if g.scored > 0 {
			now.Fluid = append(now.Fluid, FluidSoFar{gap, float64(g.fluid[i]) / float64(g.scored)})
		}
	}
	return now
}

// threeOf are the median, p90 and p99.
func threeOf(h *recording.Histogram) []int64 {
	var all []int64
	for _, p := range []int64{500, 900, 990} {
		if v, ok := h.At((h.N()*p + 999) / 1000); ok {
			all = append(all, v)
		}
	}
	return slices.Clip(all)
}
