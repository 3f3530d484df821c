package compare

import (
	"slices"

	"fermata/metrics"
	"fermata/recording"
)

const (
	promptGroups   = 4
	positionGroups = 5
	fewestInGroup  = 5
)

// moving are the times whose shifts are told.
var moving = []struct {
	metric string
	of     func(*metrics.Request) recording.Maybe[int64]
}{
	{"ttft_due", func(r *metrics.Request) recording.Maybe[int64] { return r.TTFT }},
	{"tpot", func(r *metrics.Request) recording.Maybe[int64] { return r.TPOT }},
	{"e2e", func(r *metrics.Request) recording.Maybe[int64] { return r.E2E }},
}

// A placed is a request in both runs of a pair, with what it is grouped by.
type placed struct {
	both
	key int64
}

// shifts say who got worse: by prompt length, in groups of about equal size, and
// by place in the run, in fifths.
func (m *match) shifts() []Shift {
	var byPrompt, byPosition []placed
	for _, p := range m.pairs {
		for i, w := range p.which {
			byPosition = append(byPosition, placed{w, int64(i)})
			if w.a.Prompt.OK {
				byPrompt = append(byPrompt, placed{w, int64(w.a.Prompt.V)})
			}
		}
	}
	all := m.shiftsBy(ByPrompt, byPrompt, promptGroups)
	return append(all, m.shiftsBy(ByPosition, byPosition, positionGroups)...)
}

func (m *match) shiftsBy(by string, all []placed, groups int) (out []Shift) {
	slices.SortStableFunc(all, func(x, y placed) int { return int(min(1, max(-1, x.key-y.key))) })
	for from, g := 0, 1; from < len(all) && g <= groups; g++ {
		to := max(from, len(all)*g/groups)
		for to < len(all) && to > 0 && all[to].key == all[to-1].key { // a key is in one group
			to++
		}
		if to-from < fewestInGroup {
			continue // it goes with the next
		}
		for _, x := range moving {
			if s, ok := shiftOf(all[from:to], x.of); ok {
				s.Run, s.Metric, s.By, s.From, s.To = m.b.Name, x.metric, by, all[from].key, all[to-1].key
				out = append(out, s)
			}
		}
		from = to
	}
	return out
}

// shiftOf is how a group's times moved.
func shiftOf(group []placed, of func(*metrics.Request) recording.Maybe[int64]) (s Shift, ok bool) {
	var d []int64
	var worse, better float64
	for _, p := range group {
		a, b := of(p.a), of(p.b)
		if !a.OK || !b.OK {
			continue
		}
		d = append(d, b.V-a.V)
		switch {
		case !beyond(a.V, b.V):
		case b.V > a.V:
			worse++
		default:
			better++
		}
	}
	if len(d) < fewestInGroup {
		return s, false
	}
	slices.Sort(d)
	n := float64(len(d))
	return Shift{N: int64(len(d)), Median: d[(len(d)+1)/2-1], Worse: worse / n, Better: better / n}, true
}
