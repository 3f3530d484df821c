package metrics

import "fermata/internal/stats"

// slow says whether the answer took longer than the declared threshold, in ns
// from its due time; where none is declared, what the recording says.
func (a *answer) slow(threshold int64) bool {
	if threshold <= 0 {
		return a.t.Slow.Or(false)
	}
	v, ok := a.e2e()
	return ok && v > threshold
}

// goodput is the rate of requests that met each objective, and all of them
// jointly, over the length of the window in ns.
func (o *objectives) goodput(r *Result, window int64) {
	longest := &judged{requests: o.requests - o.unjudged, unjudged: o.unjudged, failed: o.failed, dep: o.opt.dependence, tau: stats.Independent}
	add := func(name string, j *judged, good, tokens int64) {
		g := Goodput{Objective: name, NotJudged: j.unjudged}
		if !j.unknown() {
			g.RequestsS, g.TokensS = perSecond(float64(good), window), perSecond(float64(tokens), window)
			share, low, high := j.share(good, j.requests)
			g.Share, g.ShareLow, g.ShareHigh = &share, &low, &high
		}
		r.Goodput = append(r.Goodput, g)
	}
	if o.requests == 0 {
		return
	}
	n := 0
	for _, j := range o.list {
		if j.hasGoodput() {
			longest.tau = longest.tau.Or(j.tau)
			add(j.Text, j, j.goodput, j.goodputTokens)
			n++
		}
	}
	if n > 1 {
		add("all", longest, o.all, o.allTokens)
	}
}
