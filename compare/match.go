package compare

import (
	"fmt"
	"math"
	"slices"

	"fermata/metrics"
)

// A match is a further system beside the first: which of their runs are pairs, and
// which requests of those.
type match struct {
	a, b  *System
	pairs []pair
	loose int // runs without a partner
}

// A pair is two runs that asked the same at the same times.
type pair struct {
	a, b  *Run
	which []both
}

// both is one request in two runs.
type both struct{ a, b *metrics.Request }

// newMatch pairs each run of a with one of b that had the same seed and the same
// requests.
func newMatch(a, b *System) *match {
	m := &match{a: a, b: b}
	taken := make([]bool, len(b.Runs))
	for i := range a.Runs {
		for j := range b.Runs {
			if taken[j] || !sameSeed(&a.Runs[i], &b.Runs[j]) {
				continue
			}
			if which := shared(a.Runs[i].Requests, b.Runs[j].Requests); which != nil {
				m.pairs = append(m.pairs, pair{&a.Runs[i], &b.Runs[j], which})
				taken[j] = true
				break
			}
		}
	}
	m.loose = len(a.Runs) + len(b.Runs) - 2*len(m.pairs)
	return m
}

// sameSeed says that both runs tell the same seed. Where neither tells one, only
// their requests can say that they are the same.
func sameSeed(a, b *Run) bool {
	x, y := a.Result.Run.Seed, b.Result.Run.Seed
	if x == nil || y == nil {
		return x == y
	}
	return *x == *y
}

// leastShared is the share of the requests of either run that both must have.
const leastShared = 0.9

// shared are the requests that both have, by index, in the order of a; nil where
// too few are, or where they did not ask the same.
func shared(a, b []metrics.Request) []both {
	of := make(map[int64]*metrics.Request, len(b))
	for i := range b {
		of[b[i].Index] = &b[i]
	}
	var which []both
	for i := range a {
		r := of[a[i].Index]
		if r == nil {
			continue
		}
		if !sameAsked(&a[i], r) {
			return nil
		}
		which = append(which, both{&a[i], r})
	}
	if float64(len(which)) < leastShared*float64(max(len(a), len(b))) {
		return nil
	}
	return which
}

// sameAsked says that the lengths that were wanted are the same, as far as both
// are known.
func sameAsked(a, b *metrics.Request) bool {
	p, q := a.Intended, b.Intended
	return (!p.Prompt.OK || !q.Prompt.OK || p.Prompt.V == q.Prompt.V) &&
		(!p.Output.OK || !q.Output.OK || p.Output.V == q.Output.V)
}

// paired says that every run has its partner.
func (m *match) paired() bool { return len(m.pairs) > 0 && m.loose == 0 }

// fewest is how many runs, or pairs of them, the test can rest on.
func (m *match) fewest() int {
	if m.paired() {
		return len(m.pairs)
	}
	return min(len(m.a.Runs), len(m.b.Runs))
}

func (m *match) pairing() Pairing {
	p := Pairing{Run: m.b.Name, Pairs: len(m.pairs), Worst: []Moved{}}
	type moved struct {
		Moved
		by float64
	}
	var worse []moved
	for k, one := range m.pairs {
		p.Requests += int64(len(one.which))
		for _, w := range one.which {
			switch {
			case !w.a.Good && !w.b.Good:
				p.BothFailed++
			case !w.a.Good:
				p.OnlyAFailed++
			case !w.b.Good:
				p.OnlyBFailed++
			}
			if d := w.b.E2E.V - w.a.E2E.V; w.a.E2E.OK && w.b.E2E.OK && beyond(w.a.E2E.V, w.b.E2E.V) && d > 0 {
				one := Moved{Pair: k, Index: w.a.Index, A: w.a.E2E.V, B: w.b.E2E.V}
				if w.a.Prompt.OK {
					one.PromptTokens = &w.a.Prompt.V
				}
				worse = append(worse, moved{one, float64(w.b.E2E.V) / max(1, float64(w.a.E2E.V))})
			}
		}
	}
	slices.SortStableFunc(worse, func(x, y moved) int {
		switch {
		case x.by > y.by:
			return -1
		case x.by < y.by:
			return 1
		}
		return 0
	})
	for _, w := range worse[:min(mostWorst, len(worse))] {
		p.Worst = append(p.Worst, w.Moved)
	}
	return p
}

// mostWorst is how many requests are named.
const mostWorst = 5

// warnings say what the pairing lacks.
func (m *match) warnings() []metrics.Warning {
	switch {
	case len(m.pairs) > 0 && m.loose > 0:
		return []metrics.Warning{{
			Code: "unpaired",
			Text: fmt.Sprintf("%d runs of %s and %s have no partner with the same seed and requests, so that all are compared without pairs", m.loose, m.a.Name, m.b.Name),
			Help: "Give both the same seeds; `fermata run --repeat 10 --against URL` does.",
		}}
	case len(m.pairs) == 0 && m.commonSeed():
		return []metrics.Warning{{
			Code: "unpaired",
			Text: fmt.Sprintf("%s and %s have a seed in common, and not the same requests: other lengths of prompts or answers, or fewer than nine tenths of one's requests in the other", m.a.Name, m.b.Name),
			Help: "Ask both for as many requests of the same lengths: differences that pairs show are 2 to 80 times smaller in variance.",
		}}
	case len(m.pairs) == 0:
		return []metrics.Warning{{
			Code: "unpaired",
			Text: fmt.Sprintf("%s and %s did not get the same requests: chance in what was asked adds to the differences", m.a.Name, m.b.Name),
			Help: "Run both with the same --seed: differences that pairs show are 2 to 80 times smaller in variance.",
		}}
	case m.fewest() < FewestRuns:
		return []metrics.Warning{{
			Code: "few_runs",
			Text: countOf(m.fewest()) + ": means and shares are compared by batches of requests, percentiles not at all",
			Help: fmt.Sprintf("It takes %d pairs, better 10, in turns: `fermata run --repeat 10 --against URL`.", FewestRuns),
		}}
	}
	return nil
}

func countOf(pairs int) string {
	if pairs == 1 {
		return "one pair of runs"
	}
	return fmt.Sprintf("%d pairs of runs", pairs)
}

// beyond says that two times differ by more than 5 %.
func beyond(a, b int64) bool { return math.Abs(float64(b-a)) > 0.05*float64(min(a, b)) }

// commonSeed says that some runs of both sides tell the same seed.
func (m *match) commonSeed() bool {
	for i := range m.a.Runs {
		for k := range m.b.Runs {
			a, b := m.a.Runs[i].Result.Run.Seed, m.b.Runs[k].Result.Run.Seed
			if a != nil && b != nil && *a == *b {
				return true
			}
		}
	}
	return false
}
