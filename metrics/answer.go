package metrics

import (
	"fmt"
	"math"

	"fermata/recording"
)

// TokenTimes appends to buf the arrival of every token of t, in ns from its due
// time: an arrival of k tokens is k equal times.
func TokenTimes(t *recording.Trace, buf []int64) []int64 {
	var at int64
	for i, d := range t.DeltaNs {
		at += d
		for k := t.Tokens[i]; k > 0; k-- {
			buf = append(buf, at)
		}
	}
	return buf
}

// truncated is the outcome of an answer that ended by length where the run was
// to let answers end by themselves.
const truncated = "truncated"

// An answer is one request as the metrics see it. Its memory is used again for
// the next one.
type answer struct {
	t       *recording.Trace
	tried   chain  // its tries
	second  bool   // this is the second pass
	outcome string // the recording's, or truncated
	good    bool   // outcome is ok

	times       []int64 // of each token, from the due time
	gaps        []int64 // between tokens
	first, last int     // arrivals that brought the first token and the last; -1 without
	firstTokens int64   // tokens of the first of them
	single      bool    // every arrival brought one token
	stamps      bool    // the bounds of the stamps are known

	used    recording.Maybe[int32] // output tokens
	due     []int64                // of the first token, a view each; empty where it is not known
	outside bool                   // the deadlines are not valid for a prompt of this length

	stall  Stalling
	played bool // stall is filled in

	gapsBuf, sorted []int64
}

// read takes the next trace in.
func (a *answer) read(t *recording.Trace, opt *Options) error {
	n := len(t.DeltaNs)
	if len(t.Tokens) != n {
		return fmt.Errorf("judging request %d: %d arrivals, but token counts for %d", t.Index, n, len(t.Tokens))
	}
	if t.Output.Used.V < 0 || t.Prompt.Used.V < 0 {
		return fmt.Errorf("judging request %d: its token counts are negative", t.Index)
	}
	a.t, a.played = t, false
	a.outcome = string(t.Outcome)
	if opt.ExpectStop && t.Outcome == recording.OK && t.FinishReason == "length" {
		a.outcome = truncated
	}
	a.good = a.outcome == string(recording.OK)
	a.stamps = n > 0 && len(t.StampErrorNs) == n
	a.used = t.Output.Used
	a.setDue(opt)
	if err := a.spread(t); err != nil {
		return err
	}
	if !a.used.OK && a.good {
		a.used = recording.Some(int32(min(len(a.times), math.MaxInt32)))
	}
	return nil
}

// setDue gives the first token its deadlines.
func (a *answer) setDue(opt *Options) {
	a.due, a.outside = a.due[:0], false
	d, prompt := opt.Deadlines, a.t.Prompt.Used
	if d == nil || !prompt.OK && d.PromptMatters() {
		return
	}
	if a.outside = prompt.OK && !d.Covers(prompt.V); a.outside {
		return
	}
	for _, v := range opt.views {
		a.due = append(a.due, d.Due(v.edge, v.slack, prompt.V))
	}
}

// mostTokens is more than any answer has.
const mostTokens = 1 << 24

// spread lays the tokens out in time.
func (a *answer) spread(t *recording.Trace) error {
	a.first, a.last, a.firstTokens, a.single = -1, -1, 0, true
	a.times = a.times[:0]
	var at int64
	for i, d := range t.DeltaNs {
		if d < 0 {
			return fmt.Errorf("judging request %d: arrival %d lies %d ns before what came ahead of it", t.Index, i, -d)
		}
		if d > longestNs-at {
			return fmt.Errorf("judging request %d: its arrivals span over 100 days", t.Index)
		}
		at += d
		k := t.Tokens[i]
		if k < 0 || int(k) > mostTokens-len(a.times) {
			return fmt.Errorf("judging request %d: arrival %d is said to have brought %d tokens: no answer has so many", t.Index, i, k)
		}
		if k == 1 {
			a.times = append(a.times, at)
			continue
		}
		a.single = false
		for ; k > 0; k-- {
			a.times = append(a.times, at)
		}
	}
	if a.single {
		if n := len(t.DeltaNs); n > 0 {
			a.first, a.last, a.firstTokens = 0, n-1, 1
			a.gaps = t.DeltaNs[1:]
		} else {
			a.gaps = nil
		}
		return nil
	}
	for i, k := range t.Tokens {
		if k > 0 {
			if a.first < 0 {
				a.first, a.firstTokens = i, int64(k)
			}
			a.last = i
		}
	}
	a.gapsBuf = a.gapsBuf[:0]
	for i := 1; i < len(a.times); i++ {
		a.gapsBuf = append(a.gapsBuf, a.times[i]-a.times[i-1])
	}
	a.gaps = a.gapsBuf
	return nil
}

// err is the bound on how late the stamp of arrival i can be.
func (a *answer) err(i int) int64 {
	if !a.stamps {
		return 0
	}
	return a.t.StampErrorNs[i]
}

// stalling is playback at the reading pace, once for all who ask.
func (a *answer) stalling(pace int64) Stalling {
	if !a.played {
		a.stall, a.played = Stall(a.times, pace), true
	}
	return a.stall
}

// ttft is the first token's arrival from the due time.
func (a *answer) ttft() (int64, bool) {
	if a.first < 0 {
		return 0, false
	}
	return a.times[0], true
}

// ttftSent is the first token's arrival from the sending.
func (a *answer) ttftSent() (int64, bool) {
	if a.first < 0 || !a.t.Sent.OK {
		return 0, false
	}
	return a.times[0] + a.t.Due - a.t.Sent.V, true
}

// e2e is the last token's arrival from the due time.
func (a *answer) e2e() (int64, bool) {
	if a.last < 0 {
		return 0, false
	}
	return a.times[len(a.times)-1], true
}

// normalized is e2e over the tokens in use, floored.
func (a *answer) normalized() (int64, bool) {
	if a.last < 0 || a.used.V < 1 {
		return 0, false
	}
	return a.times[len(a.times)-1] / int64(a.used.V), true
}

// longestGap is the longest raw gap between arrivals.
func (a *answer) longestGap() (int64, bool) {
	d := a.t.DeltaNs
	if len(d) < 2 {
		return 0, false
	}
	var longest int64
	for _, g := range d[1:] {
		longest = max(longest, g)
	}
	return longest, true
}
