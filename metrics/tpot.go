package metrics

import "fermata/recording"

// EvenGap is the smallest constant gap in ns, rounded up, at which a reader who
// starts with the first token never waits: max over i >= 1 of (t_i - t_0)/i. ok
// is false below two tokens.
func EvenGap(times []int64) (gap int64, ok bool) {
	if len(times) < 2 {
		return 0, false
	}
	first := times[0]
	for i, t := range times[1:] {
		if n := int64(i + 1); exceeds(t-first, gap, n) {
			gap = (t-first-1)/n + 1
		}
	}
	return gap, true
}

// paces judges how fast good answers came once they had begun.
type paces struct {
	tpot, token, even *series
}

func newPaces(opt Options) *paces {
	return &paces{
		tpot: newSeries(opt, "ns", lower).stamps(), token: newSeries(opt, "ns", lower).stamps(),
		even: newSeries(opt, "ns", lower).stamps(),
	}
}

func (p *paces) see(a *answer) {
	if !a.good {
		return
	}
	if v, ok := a.tpot(); ok {
		lo, hi := a.span()
		n := int64(a.used.V) - 1
		p.tpot.stamped(v, lo/n, hi/n, a.stamps)
	}
	if v, ok := a.tokenPace(); ok {
		lo, hi := a.span()
		n := int64(len(a.times)) - a.firstTokens
		p.token.stamped(v, lo/n, hi/n, a.stamps)
	}
	if v, ok := EvenGap(a.times); ok {
		lo, hi := v, v
		if a.stamps && !a.second {
			lo, hi = a.evenGapEnds()
		}
		p.even.stamped(v, lo, hi, a.stamps)
	}
}

// tpot is (t_(n-1) - t_0)/(n - 1), floored; n is the count that metrics use.
func (a *answer) tpot() (int64, bool) {
	if len(a.times) == 0 || !a.used.OK || a.used.V < 2 {
		return 0, false
	}
	return (a.times[len(a.times)-1] - a.times[0]) / (int64(a.used.V) - 1), true
}

// tokenPace is (t_(n-1) - t_0)/(n - n_0), floored; n is what arrived, n_0 of it
// with the first.
func (a *answer) tokenPace() (int64, bool) {
	n := int64(len(a.times)) - a.firstTokens
	if n < 1 {
		return 0, false
	}
	return (a.times[len(a.times)-1] - a.times[0]) / n, true
}

// span is where t_(n-1) - t_0 can lie, given how late each stamp can be.
func (a *answer) span() (lo, hi int64) {
	v := a.times[len(a.times)-1] - a.times[0]
	return max(0, v-a.err(a.last)), v + a.err(a.first)
}

// evenGapEnds are the even gaps of the earliest and the latest arrivals that the
// stamps allow.
func (a *answer) evenGapEnds() (lo, hi int64) {
	t0 := a.times[0]
	from := t0 - a.err(a.first)
	at, n := t0, int64(a.t.Tokens[a.first])
	for j := a.first + 1; j <= a.last; j++ {
		at += a.t.DeltaNs[j]
		if a.t.Tokens[j] == 0 {
			continue
		}
		if w := at - a.err(j) - t0; exceeds(w, lo, n) {
			lo = (w-1)/n + 1
		}
		if w := at - from; exceeds(w, hi, n) {
			hi = (w-1)/n + 1
		}
		n += int64(a.t.Tokens[j])
	}
	return lo, hi
}

func (p *paces) seek() recording.Columns { return seekAll(p.tpot, p.token, p.even) }

func (p *paces) result(r *Result, measured int64) {
	m := &r.Metrics
	m.TPOT, m.TokenPace, m.EvenGap = p.tpot.dist(measured), p.token.dist(measured), p.even.dist(measured)
	if m.TPOT != nil {
		r.Rates.TPOT = perSecondOf(m.TPOT, 0.5)
	}
}
