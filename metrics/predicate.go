package metrics

import (
	"fmt"
	"math"
	"slices"

	"fermata/recording"
)

// A Predicate says of requests one by one, as they end, whether they meet an
// objective: the same that a Verdict counts. NewPredicate makes one. It is for one
// goroutine at a time.
type Predicate struct {
	objective Objective
	opt       Options
	scale     scale
	answer    answer
}

// NewPredicate takes an objective about requests, how they are judged, and how many
// times faster than the judged time the clock of their traces runs (1, or 0, unless
// a simulation is served faster). The error says what to write where the objective
// is about the gaps of all requests together.
func NewPredicate(o Objective, opt Options, timeScale float64) (*Predicate, error) {
	opt.SLO = []Objective{o}
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	if !o.ByRequest() {
		name := o.Terms[0].Name
		return nil, fmt.Errorf("objective %q pools the gaps of all requests, so that no request meets it or misses it; for each request's own gaps write %s.p99 or %s.max", o.Text, name, name)
	}
	return &Predicate{objective: o, opt: opt, scale: scale(timeScale)}, nil
}

// Met judges a request that has ended. Every failure misses, whatever the terms.
// Not judged is a good answer whose prompt has no first-token deadline, where a term
// asks for one: it neither meets the objective nor misses it.
func (p *Predicate) Met(t *recording.Trace) (met, judged bool, err error) {
	if !p.scale.one() {
		for scaled := range p.scale.traces(slices.Values([]recording.Trace{*t})) {
			return p.met(&scaled)
		}
	}
	return p.met(t)
}

func (p *Predicate) met(t *recording.Trace) (met, judged bool, err error) {
	if err := p.answer.read(t, &p.opt); err != nil {
		return false, false, err
	}
	if !p.objective.knows(&p.answer, &p.opt) {
		return false, false, nil
	}
	return p.answer.good && (p.objective.LessIsBetter() || p.objective.of(&p.answer, &p.opt)), true, nil
}

// Allowed is the share of requests that may miss, above 0 and below 1, or 0 where
// none may: of ttft<=2s@p99 a hundredth.
func (p *Predicate) Allowed() float64 {
	t := p.objective.Terms[0]
	switch {
	case p.objective.LessIsBetter():
		return float64(t.Num) / float64(t.Den)
	case t.ofRun():
		return float64(t.Den-t.Num) / float64(t.Den)
	}
	return float64(1000-p.objective.Share) / 1000
}

// MetFirst says, when the first token has come so many ns (of the clock of traces)
// after the due time, whether that meets the objective; decided is false where other
// terms than the first token's have a say. Only a failure can change it later.
func (p *Predicate) MetFirst(ns int64) (met, decided bool) {
	met = true
	for _, t := range p.objective.Terms {
		if t.Name != "ttft" {
			return false, false
		}
		met = met && p.scale.ns(ns) <= t.AtNs
	}
	return met, true
}

// Patience is how long after its due time, in ns of the clock of traces, a request
// can still meet the objective without its first token, and without its end;
// math.MaxInt64 where the terms set no bound.
func (p *Predicate) Patience() (first, end int64) {
	first, end = math.MaxInt64, math.MaxInt64
	for _, t := range p.objective.Terms {
		switch t.Name {
		case "ttft":
			first = min(first, t.AtNs)
		case "e2e":
			end = min(end, t.AtNs)
		}
	}
	first = min(first, end)
	if p.scale.one() {
		return first, end
	}
	back := func(v int64) int64 {
		if v == math.MaxInt64 {
			return v
		}
		return int64(math.Ceil(float64(v) / float64(p.scale)))
	}
	return back(first), back(end)
}
