package metrics

import (
	"fmt"
	"math"
	"slices"

	"fermata/cost"
	"fermata/deadline"
)

// Options say how a recording is judged. The zero value judges at 25, 50 and
// 100 ms, reads at 6 tokens a second and has no first-token deadline.
type Options struct {
	TargetGapsNs []int64             // D_d of the fluidity index; default 25, 50, 100 ms
	PaceNs       int64               // reading pace, ns a token; default 166,666,667 (6 tokens/s)
	OverNs       []int64             // exceedance bounds besides 1, 5, 15, 25 s
	Deadlines    *deadline.Deadlines // first-token deadlines; nil where none were given
	SLO          []Objective
	ExpectStop   bool        // a finish by length is a truncation, not the plan
	SlowNs       int64       // answers that took longer are slow; 0 where not declared
	Check        string      // kind of the check that answers had to pass; empty where none was asked for
	PointVerdict bool        // judge objectives by the point, not the interval
	Cost         *cost.Terms // what the answers cost; nil where nobody said
	Aims         []Aim       // how well percentiles were to be known
	PerMille     []int       // further percentiles of every distribution, in thousandths

	views []view // of Deadlines; settled makes them

	MLPerf MLPerfOptions // by which scenario of MLPerf to judge too

	SaturationRPS float64  // rate from which on requests queue up for ever; 0 where unknown
	Doubts        []string // codes of why that rate is not relied on: it then counts as unknown
	Probed        bool     // that rate comes from a burst before the run
	AllAtOnce     bool     // the load is one batch, which percentiles describe
	ClosedLoop    bool     // users wait for their answers: there is no rate to compare with it

	// dependence is shared by all that judges one recording.
	dependence *dependence

	// keepAtMost bounds how many values any distribution keeps before it counts
	// in buckets; 0 leaves it to the metric. Tests make it tiny.
	keepAtMost int
}

const (
	defaultPaceNs = 166_666_667 // 6 tokens a second
	longestNs     = 1 << 53     // largest gap, pace or bound: 104 days, exact as a float
)

// settled is o with its defaults filled in, or what is wrong with it.
func (o Options) settled() (Options, error) {
	if len(o.TargetGapsNs) == 0 {
		o.TargetGapsNs = []int64{25_000_000, 50_000_000, 100_000_000}
	}
	for _, g := range o.TargetGapsNs {
		if g < 1 || g > longestNs {
			return o, fmt.Errorf("judging a recording: a target gap of %d ns: it must be 1 ns or more, 100 days at most", g)
		}
	}
	var gaps []int64
	for _, g := range o.TargetGapsNs {
		if !slices.Contains(gaps, g) {
			gaps = append(gaps, g)
		}
	}
	o.TargetGapsNs = gaps
	o.views = viewsOf(o.Deadlines)
	if o.PaceNs == 0 {
		o.PaceNs = defaultPaceNs
	}
	if o.PaceNs < 1 || o.PaceNs > longestNs {
		return o, fmt.Errorf("judging a recording: a reading pace of %d ns a token: it must be 1 ns or more, 100 days at most", o.PaceNs)
	}
	if o.SlowNs < 0 {
		return o, fmt.Errorf("judging a recording: slow after %d ns: it must not be negative", o.SlowNs)
	}
	if !(o.SaturationRPS >= 0) || math.IsInf(o.SaturationRPS, 1) {
		return o, fmt.Errorf("judging a recording: a saturation of %v requests/s: it must be a rate above 0", o.SaturationRPS)
	}
	bounds := append([]int64{1e9, 5e9, 15e9, 25e9}, o.OverNs...)
	slices.Sort(bounds)
	o.OverNs = slices.Compact(bounds)
	if o.OverNs[0] < 0 {
		return o, fmt.Errorf("judging a recording: counting values over %d ns: a bound must not be negative", o.OverNs[0])
	}
	for _, s := range o.SLO {
		if len(s.Terms) == 0 {
			return o, fmt.Errorf("judging a recording: an objective without terms; ParseObjective makes whole ones")
		}
		for _, t := range s.Terms {
			if t.Name == "fluidity" && t.Stat == "first" && o.Deadlines == nil {
				return o, fmt.Errorf("judging objective %q: fluidity.first needs first-token deadlines, such as fixed:300ms; without them use fluidity.decode", s.Text)
			}
		}
	}
	return o, nil
}

// keep is how many values a distribution keeps that would keep limit.
func (o Options) keep(limit int) int {
	if o.keepAtMost > 0 {
		return min(limit, o.keepAtMost)
	}
	return limit
}
