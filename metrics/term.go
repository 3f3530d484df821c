package metrics

import (
	"math"
	"slices"

	"fermata/internal/stats"
)

// value is a good answer's figure that the term bounds; ok is false where it has
// none. Fluidity has a Score instead.
func (t Term) value(a *answer, pace int64) (v int64, ok bool) {
	switch t.Name {
	case "ttft":
		return a.ttft()
	case "ttft_sent":
		return a.ttftSent()
	case "tpot":
		return a.tpot()
	case "token_pace":
		return a.tokenPace()
	case "normlat":
		return a.normalized()
	case "e2e":
		return a.e2e()
	case "even_gap":
		return EvenGap(a.times)
	case "gap":
		return a.longestGap()
	case "stall":
		if len(a.times) == 0 {
			return 0, false
		}
		if t.Stat == "total" {
			return a.stalling(pace).TotalNs, true
		}
		return a.stalling(pace).LongestNs, true
	case "tbt":
		return t.ofGaps(a, a.gaps)
	case "tbt_event":
		return t.ofGaps(a, a.t.DeltaNs[min(1, len(a.t.DeltaNs)):])
	}
	return 0, false
}

// ofGaps is a percentile of one answer's gaps, or the longest.
func (t Term) ofGaps(a *answer, gaps []int64) (int64, bool) {
	if len(gaps) == 0 {
		return 0, false
	}
	if t.Stat == "max" {
		return slices.Max(gaps), true
	}
	a.sorted = append(a.sorted[:0], gaps...)
	slices.Sort(a.sorted)
	return a.sorted[stats.Rank(int64(len(gaps)), t.percentile)-1], true
}

// variant is the one that a fluidity term means.
func (t Term) variant(opt *Options) string {
	if t.Stat == "first" || t.Stat == "" && opt.Deadlines != nil {
		return FirstToken
	}
	return Decode
}

// judge says whether a good answer meets the term, and its figure, the larger the
// worse. One that has no value for it meets it, and is told apart.
func (t Term) judge(a *answer, opt *Options) (met, has bool, figure float64) {
	if t.Name == "fluidity" {
		s, ok := a.score(t.variant(opt), t.GapNs)
		if !ok {
			return true, false, math.Inf(-1)
		}
		return s.AtLeast(t.Num, t.Den), true, -s.Index()
	}
	v, ok := t.value(a, opt.PaceNs)
	if !ok {
		return true, false, math.Inf(-1)
	}
	return v <= t.AtNs, true, float64(v)
}

// viewed says whether the term is about the first token's deadline.
func (t Term) viewed(opt *Options) bool {
	return t.Name == "fluidity" && t.variant(opt) == FirstToken
}

// knows says whether the answer can be judged by the term: a good one whose prompt
// has no first-token deadline is neither fluid nor not.
func (t Term) knows(a *answer, opt *Options) bool {
	return !a.good || len(a.due) > 0 || !t.viewed(opt)
}

// holdsIn is judge's verdict for such a term in one view of the deadline.
func (t Term) holdsIn(a *answer, view int) bool {
	s, ok := a.scoreFirst(view, t.GapNs)
	return !ok || s.AtLeast(t.Num, t.Den)
}
