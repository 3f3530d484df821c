package metrics

import "fermata/recording"

// What counts as a freeze, and as coming together.
const (
	freezeOverNs   = 1_000_000_000 // of silence …
	freezeTimes    = 10            // … and so many times the answer's own pace, a token that came before
	togetherNs     = 1_000_000     // tokens closer than this came together
	togetherShare  = 0.1           // of decode tokens: from here on tokens come in bunches
	mostIndices    = 10            // requests that are named as the worst
	leastOfAnswers = 0.01          // share of ok answers from which on freezes are worth a line
)

// Freeze is the longest silence that stopped an answer: over a second, and over
// ten times the answer's own mean gap for each token of the bunch before it, so
// that neither a slow answer's pace nor one that comes in bunches is taken for a
// stop. ok is false where nothing stopped it. times are token arrivals in
// ascending order, in ns; tokens less than 1 ms apart are one bunch.
func Freeze(times []int64) (ns int64, ok bool) {
	n := len(times)
	if n < 2 {
		return 0, false
	}
	span := times[n-1] - times[0]
	bunch := int64(1)
	for i := 1; i < n; i++ {
		gap := times[i] - times[i-1]
		if gap < togetherNs {
			bunch++
			continue
		}
		// gap/bunch > 10·span/(n - 1), in quotients that do not overflow.
		if gap > freezeOverNs && gap > ns && gap/bunch > freezeTimes*(span/int64(n-1)) {
			ns = gap
		}
		bunch = 1
	}
	return ns, ns > 0
}

// extremes are the requests that stand out, by what blind spots are made of, and
// how many of them there are.
type extremes struct {
	wait, freeze, bunch worst
	answers, frozen     int64
	decode, together    int64 // tokens after the first of ok answers; those that came with the one before
}

func (e *extremes) see(a *answer) {
	if a.second {
		return
	}
	if v, ok := a.waited(); ok {
		e.wait.add(v, a.t.Index)
	}
	if !a.good || len(a.times) == 0 {
		return
	}
	e.answers++
	var together, longest int64
	for _, g := range a.gaps {
		if g < togetherNs {
			together++
		}
		longest = max(longest, g)
	}
	if longest > freezeOverNs {
		if v, ok := Freeze(a.times); ok {
			e.frozen++
			e.freeze.add(v, a.t.Index)
		}
	}
	e.decode += int64(len(a.gaps))
	e.together += together
	if inBunches(together, int64(len(a.gaps))) {
		e.bunch.add(longest, a.t.Index)
	}
}

func inBunches(together, all int64) bool {
	return all > 0 && float64(together) >= togetherShare*float64(all)
}

// waited is how long a request waited before anything was computed for it: its
// scheduling delay where the server tells it, else all the time to its first token.
func (a *answer) waited() (int64, bool) {
	if v, ok := a.schedulingDelay(); ok {
		return v, true
	}
	return a.ttft()
}

// schedulingDelay is what TTFT = lateness + network + delay + prefill leaves, where
// the server tells the others.
func (a *answer) schedulingDelay() (int64, bool) {
	t := a.t
	if a.first < 0 || !t.Sent.OK || !t.ServerReceived.OK || !t.ServerPrefill.OK {
		return 0, false
	}
	return a.times[0] + t.Due - t.ServerReceived.V - t.ServerPrefill.V, true
}

func (e *extremes) seek() recording.Columns { return 0 }

func (e *extremes) result(r *Result, _ int64) {
	r.Worst = map[string][]int64{}
	for _, x := range []struct {
		name string
		list *worst
	}{{worstWait, &e.wait}, {worstFreeze, &e.freeze}, {worstBunch, &e.bunch}} {
		if indices := x.list.indices(); len(indices) > 0 {
			r.Worst[x.name] = indices
		}
	}
	if e.answers > 0 {
		r.Freezes = &Freezes{
			OverNs: freezeOverNs, RequestsWithAny: e.frozen, Answers: e.answers,
			Share: float64(e.frozen) / float64(e.answers),
		}
		if e.frozen > 0 {
			r.Freezes.LongestNs = &e.freeze.all[0].value
		}
	}
	if e.decode > 0 {
		share := float64(e.together) / float64(e.decode)
		r.TogetherShare = &share
	}
}

// A worst list keeps the requests with the largest values, the largest first and,
// of equal ones, the earliest.
type worst struct{ all []ranked }

type ranked struct{ value, index int64 }

func (w *worst) add(value, index int64) {
	at := len(w.all)
	for at > 0 && w.all[at-1].value < value {
		at--
	}
	if at == mostIndices {
		return
	}
	if len(w.all) < mostIndices {
		w.all = append(w.all, ranked{})
	}
	copy(w.all[at+1:], w.all[at:])
	w.all[at] = ranked{value, index}
}

func (w *worst) indices() []int64 {
	var all []int64
	for _, r := range w.all {
		all = append(all, r.index)
	}
	return all
}
