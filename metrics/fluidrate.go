package metrics

import (
	"math"
	"slices"

	"fermata/internal/stats"
	"fermata/recording"
)

// The share of requests and the index that the fluid token generation rate asks
// for: 99 % of requests with F >= 0.9.
const (
	fluidShare = 990 // thousandths
	fluidIndex = 0.9
)

// never stands for a gap, or a time, that no number is large enough for.
const never = math.MaxInt64

// Of every batch of so many answers that had to be searched, it is chosen anew
// which ones can matter: so that about this share of all answers is searched.
const (
	searchedBatch = 1000
	searchedShare = 50 // thousandths
)

// A fluidRate finds the D_d* of all requests in one variant: the value of one
// rank near the upper end. So after the first answers it only searches those that
// are not fluid at a gap which most of them were content with, and counts the
// others as 0. Should the rank not lie above that gap after all, a second pass
// searches every answer.
type fluidRate struct {
	variant  string
	gaps     stats.Order // a failed request counts as never
	enough   int64       // the gap; 0 while every answer is searched
	batch    int
	searched []int64 // in this batch, if there is a gap that is large enough
	seen     int64   // good answers in this batch
	all      bool    // the second pass searches every answer
	n        int64
	low, top int64 // ranks of the interval
	dep      *dependence
	order    []float32 // the gaps in the order of due times
	tau      stats.Tau
}

func newFluidRate(opt Options, variant string) *fluidRate {
	return &fluidRate{variant: variant, gaps: stats.Order{Limit: math.MaxInt32}, batch: opt.keep(searchedBatch), dep: opt.dependence}
}

// see takes an answer in; a failed one has no smallest gap, nor has a good one
// that cannot be scored in this variant.
func (f *fluidRate) see(a *answer) {
	if a.second && !f.all {
		return
	}
	f.seen++
	if f.enough > 0 && a.good {
		if s, ok := a.score(f.variant, f.enough); ok && s.AtLeast(9, 10) {
			f.add(0)
			return
		}
	}
	gap, ok := a.smallestGap(f.variant)
	if !ok {
		return
	}
	f.add(gap)
	if f.all || gap == never {
		return
	}
	if f.searched = append(f.searched, gap); len(f.searched) >= f.batch {
		f.settle()
	}
}

func (f *fluidRate) add(gap int64) {
	f.gaps.Add(gap)
	f.order = grown(f.order, float64(gap))
}

// settle raises the gap up to which answers are not searched.
func (f *fluidRate) settle() {
	n := int64(len(f.searched))
	slices.Sort(f.searched)
	if p := 1000 - searchedShare*f.seen/n; p > 0 {
		f.enough = max(f.enough, f.searched[stats.Rank(n, int(p))-1])
	}
	f.searched, f.seen = f.searched[:0], 0
}

// smallestGap is the answer's own D_d* in one of the variants; never where no gap
// is large enough, or the request failed.
func (a *answer) smallestGap(variant string) (gap int64, ok bool) {
	switch {
	case !a.good:
		return never, true
	case variant == Decode:
		return SmallestGap(a.times)
	case len(a.due) == 0 || len(a.times) == 0:
		return 0, false
	}
	if gap, ok = SmallestGapFirst(a.times, a.due[0]); !ok {
		return never, true
	}
	return gap, true
}

// seek finds out whether the wanted ranks lie where answers were searched.
func (f *fluidRate) seek() recording.Columns {
	f.n = f.gaps.N()
	f.rank()
	f.gaps.Seek(f.ranks()...)
	for _, rank := range f.ranks() {
		if gap, ok := f.gaps.At(rank); ok && gap <= f.enough {
			f.all, f.enough = true, 0
			f.gaps, f.order = stats.Order{Limit: math.MaxInt32}, nil
			return recording.Times
		}
	}
	return 0
}

// rank finds the ends of the interval. Only who is beyond the wanted rank counts
// for the correlation time: of the others not all were searched.
func (f *fluidRate) rank() {
	f.tau = f.dep.of(stats.TauOf(f.order, stats.Tails{fluidShare}, f.dep.closed))
	f.low, f.top = f.dep.ranks(f.n, fluidShare, float64(f.n)/f.tau.V)
}

func (f *fluidRate) ranks() []int64 { return []int64{stats.Rank(f.n, fluidShare), f.low, f.top} }

func (f *fluidRate) result(r *Result, _ int64) {
	if f.n == 0 {
		return
	}
	if f.all {
		f.rank()
	}
	f.gaps.Seek(f.ranks()...)
	out := FluidRate{Variant: f.variant, Share: fluidShare / 1000., Index: fluidIndex}
	if gap, ok := f.gaps.At(stats.Rank(f.n, fluidShare)); ok && gap != never {
		out.GapNs, out.Feasible = &gap, true
		out.TokensPS = perSecond(1, gap)
	}
	tau, nEff := f.tau.V, float64(f.n)/f.tau.V
	out.Tau, out.NEff = &tau, &nEff
	out.Low, out.High = f.rateAt(f.top), f.rateAt(f.low) // the larger gap is the slower rate
	out.Status = f.dep.status(f.n, tau, nEff, fluidShare, out.Low != nil && out.High != nil)
	r.FluidRate = append(r.FluidRate, out)
	if f.variant == Decode {
		r.Rates.Fluid = out.TokensPS
	}
}

func (f *fluidRate) rateAt(rank int64) *float64 {
	gap, ok := f.gaps.At(rank)
	if !ok || gap == never {
		return nil
	}
	return perSecond(1, gap)
}
