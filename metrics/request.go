package metrics

import (
	"slices"

	"fermata/recording"
)

// A Request is what one measured request came to, in the figures by which runs are
// compared request by request. Times are in ns; a value that it does not have is
// absent, as in a distribution of the same name.
type Request struct {
	Index    int64
	Due      int64 // from the run's start, as the recording has it
	Good     bool  // its outcome is ok, and it was not truncated
	Intended Lengths
	Prompt   recording.Maybe[int32] // tokens in use

	TTFT, TPOT, E2E, GapLongest recording.Maybe[int64]

	// Met has an element an objective: whether the request met all its terms; for
	// error whether the request failed, for schema whether its check passed. It is
	// of no meaning for pooled gaps. Judged has whether that is known: a good answer
	// whose prompt has no first-token deadline does not count where a term asks for one.
	Met, Judged []bool
}

// Lengths are those that a workload wanted, in tokens.
type Lengths struct{ Prompt, Output recording.Maybe[int32] }

// Requests are the measured requests of a recording, in order of their due times
// and indexes; of one that was tried again the last try.
func Requests(src recording.Source, meta recording.Meta, opt Options) ([]Request, error) {
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	e := &evaluation{opt: opt, meta: meta, scale: scale(meta.TimeScale)}
	e.answer.second = true // nobody counts
	list := &requestList{opt: &opt}
	if err := e.pass(src, recording.Times, []family{list}); err != nil {
		return nil, err
	}
	return list.all, nil
}

// A requestList keeps what it sees.
type requestList struct {
	opt *Options
	all []Request
}

func (l *requestList) see(a *answer) {
	t := a.t
	r := Request{Index: t.Index, Due: t.Due, Good: a.good, Prompt: t.Prompt.Used}
	r.Intended = Lengths{t.Prompt.Intended, t.Output.Intended}
	r.TTFT = known(a.ttft())
	if a.good {
		r.TPOT, r.E2E = known(a.tpot()), known(a.e2e())
	}
	r.GapLongest = known(a.longestGap())
	for _, o := range l.opt.SLO {
		r.Met, r.Judged = append(r.Met, o.of(a, l.opt)), append(r.Judged, o.knows(a, l.opt))
	}
	l.all = append(l.all, r)
}

// knows says whether a request can be judged by the objective.
func (o *Objective) knows(a *answer, opt *Options) bool {
	return !slices.ContainsFunc(o.Terms, func(t Term) bool { return !t.knows(a, opt) })
}

// of is what an objective says of one request.
func (o *Objective) of(a *answer, opt *Options) bool {
	switch o.Terms[0].Name {
	case "error":
		return !a.good
	case "schema":
		return a.good && a.t.Check == recording.Pass
	}
	for _, t := range o.Terms {
		if !a.good || t.pooled() {
			return false
		}
		if met, _, _ := t.judge(a, opt); !met {
			return false
		}
	}
	return true
}

func known(v int64, ok bool) recording.Maybe[int64] { return recording.Maybe[int64]{V: v, OK: ok} }

func (l *requestList) seek() recording.Columns { return 0 }

func (l *requestList) result(*Result, int64) {}

// ByRequest says whether the objective is about requests one by one, and not about
// the gaps of all together.
func (o *Objective) ByRequest() bool { return len(o.Terms) > 0 && !o.Terms[0].pooled() }

// LessIsBetter says that the objective's share is one of errors.
func (o *Objective) LessIsBetter() bool { return len(o.Terms) == 1 && o.Terms[0].Name == "error" }
