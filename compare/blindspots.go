package compare

import "fermata/metrics"

// BlindSpots are those between two systems, by their results run by run, that at
// least half of the pairs of runs show. A comparison of percentiles has an interval
// for each; this says which of them not to judge by.
func BlindSpots(a, b string, pairs [][2]*metrics.Result) []BlindSpot {
	var all []BlindSpot
	add := func(run, against string, found []metrics.BlindSpot) {
		for _, s := range found {
			known := false
			for i := range all {
				if known = all[i].Code == s.Code && all[i].Run == run; known {
					all[i].Pairs++
					break
				}
			}
			if !known {
				all = append(all, BlindSpot{s.Code, run, against, 1, len(pairs), s.Text, s.Figures, s.Requests})
			}
		}
	}
	for _, p := range pairs {
		add(a, b, metrics.Beside(p[0], p[1], b))
		add(b, a, metrics.Beside(p[1], p[0], a))
	}
	kept := []BlindSpot{}
	for _, s := range all {
		if 2*s.Pairs >= s.Of {
			kept = append(kept, s)
		}
	}
	return kept
}

// blindSpots are those of a match; runs of other seeds are taken in their order.
func (m *match) blindSpots() []BlindSpot {
	var pairs [][2]*metrics.Result
	for _, p := range m.pairs {
		pairs = append(pairs, [2]*metrics.Result{p.a.Result, p.b.Result})
	}
	for i := 0; len(m.pairs) == 0 && i < min(len(m.a.Runs), len(m.b.Runs)); i++ {
		pairs = append(pairs, [2]*metrics.Result{m.a.Runs[i].Result, m.b.Runs[i].Result})
	}
	return BlindSpots(m.a.Name, m.b.Name, pairs)
}
