package capacity

import "slices"

// FewestAnswers is how many answers of a burst it takes to know the saturation.
const FewestAnswers = 40

// ServedRate is how many answers a second ended between the first quarter and the
// last 15 in 100 of them, while a system that was asked for all at once fills and
// empties no more. Ends are in ns, and are sorted; ok is false where there are
// fewer than FewestAnswers.
func ServedRate(ends []int64) (rps float64, ok bool) {
	if len(ends) < FewestAnswers {
		return 0, false
	}
	slices.Sort(ends)
	from, to := len(ends)/4, len(ends)*85/100
	if ends[to] <= ends[from] {
		return 0, false
	}
	return float64(to-from) * 1e9 / float64(ends[to]-ends[from]), true
}
