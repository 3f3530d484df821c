package metrics

import (
	"math/bits"

	"fermata/recording"
)

// A Score is the account of one playback: token deadlines met and missed. A late
// token misses one deadline, and one more for each target gap that it is late.
type Score struct {
	Met, Missed int64
}

// Index is the fluidity index F = met/(met + missed), 0 where nothing was scored.
func (s Score) Index() float64 {
	if s.Met == 0 {
		return 0
	}
	return float64(s.Met) / float64(s.Met+s.Missed)
}

// AtLeast says whether F >= num/den, in whole numbers.
func (s Score) AtLeast(num, den int64) bool {
	h1, l1 := bits.Mul64(uint64(s.Met), uint64(den))
	h2, l2 := bits.Mul64(uint64(s.Met+s.Missed), uint64(num))
	return h1 > h2 || h1 == h2 && l1 >= l2
}

// Play plays tokens back: the first is due at due, each next one a gap after the
// one before was shown, which is when it was due or came, whichever is later. A
// token late by l > 0 misses ⌊l/gap⌋ + 1 deadlines. times are token arrivals in
// ascending order, all times in ns. (Algorithm 1 of Etalon, arXiv 2407.07000, in
// its absolute form.)
func Play(times []int64, due, gap int64) Score {
	var s Score
	if len(times) == 0 {
		return s
	}
	last := times[len(times)-1]
	for i, t := range times {
		late := t - due
		if late <= 0 {
			s.Met++
			if due >= last { // so is every later one
				s.Met += int64(len(times) - 1 - i)
				return s
			}
			due += gap
			continue
		}
		s.Missed++
		if late >= gap {
			s.Missed += late / gap
		}
		due = t + gap
	}
	return s
}

// PlayDecode scores all tokens but the first, against which the others are
// played back. Below two tokens there is nothing to score: ok is false.
func PlayDecode(times []int64, gap int64) (s Score, ok bool) {
	if len(times) < 2 {
		return s, false
	}
	return Play(times[1:], times[0]+gap, gap), true
}

// PlayFirst scores every token, the first against its deadline in ns from the
// due time, from which times count too. ok is false where no token came.
func PlayFirst(times []int64, deadline, gap int64) (s Score, ok bool) {
	return Play(times, deadline, gap), len(times) > 0
}

// The two variants of the fluidity index.
const (
	Decode     = "decode"
	FirstToken = "first_token"
)

// An indexed is the fluidity index at one target gap over all requests.
type indexed struct {
	variant   string
	gap       int64
	index     *series
	sum       Score
	atLeast90 int64
}

// fluidities judges the fluidity index at every target gap.
type fluidities struct {
	opt     Options
	entries []*indexed
}

func newFluidities(opt Options) *fluidities {
	f := &fluidities{opt: opt}
	variants := []string{Decode}
	if opt.Deadlines != nil {
		variants = append(variants, FirstToken)
	}
	for _, variant := range variants {
		for _, gap := range opt.TargetGapsNs {
			f.entries = append(f.entries, &indexed{variant: variant, gap: gap, index: newFloats(opt, "1", higher)})
		}
	}
	return f
}

func (f *fluidities) see(a *answer) {
	for _, e := range f.entries {
		s, ok := a.score(e.variant, e.gap)
		if !ok {
			continue
		}
		e.index.float(s.Index())
		if a.second {
			continue
		}
		e.sum.Met += s.Met
		e.sum.Missed += s.Missed
		if s.Met > 0 && s.AtLeast(9, 10) {
			e.atLeast90++
		}
	}
}

// score plays the answer back in one of the variants. A failed request has F = 0
// without anything met or missed; a good one of one token has no decode F, one
// whose deadline is unknown no F with the first token.
func (a *answer) score(variant string, gap int64) (s Score, ok bool) {
	switch {
	case !a.good:
		return s, true
	case variant == Decode:
		return PlayDecode(a.times, gap)
	case !a.deadline.OK:
		return s, false
	}
	return PlayFirst(a.times, a.deadline.V, gap)
}

func (f *fluidities) seek() (want recording.Columns) {
	for _, e := range f.entries {
		want |= e.index.seek()
	}
	return want
}

func (f *fluidities) result(r *Result, measured int64) {
	for _, e := range f.entries {
		out := Fluidity{
			Variant: e.variant, TargetGapNs: e.gap, Carry: "unlimited",
			Index: e.index.dist(measured), Met: e.sum.Met, Missed: e.sum.Missed,
		}
		if n := e.index.n(); n > 0 {
			share := float64(e.atLeast90) / float64(n)
			out.ShareAtLeast0_9 = &share
		}
		if e.variant == FirstToken {
			d := f.opt.Deadlines
			out.Deadline = &Deadline{Shape: d.Shape(), Text: d.Text(), Source: "given"}
			out.Edge = "fit"
		}
		r.Fluidity = append(r.Fluidity, out)
	}
}
