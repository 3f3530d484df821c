package metrics

import (
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
	ExpectStop   bool  // a finish by length is a truncation, not the plan
	SlowNs       int64 // answers that took longer are slow; 0 where not declared
	PointVerdict bool  // judge objectives by the point, not the interval
}
