package metrics

import (
	"fmt"
	"math"
	"slices"

	"fermata/internal/stats"
)

// Contrasts adds to each result the blind spots that show beside the first one,
// or, in the first, beside any other: each stands in the run that fares worse than
// the one metric says, and names the other in Against. To call it again changes
// nothing.
func Contrasts(results []*Result) {
	for _, r := range results {
		r.BlindSpots = slices.DeleteFunc(r.BlindSpots, func(s BlindSpot) bool { return s.Against != "" })
	}
	for i := 1; i < len(results); i++ {
		a, b := results[0], results[i]
		if a == b {
			continue
		}
		ofA, ofB := Beside(a, b, orElse(b.Run.Name, "the other run")), Beside(b, a, orElse(a.Run.Name, "the first run"))
		a.BlindSpots, b.BlindSpots = append(a.BlindSpots, ofA...), append(b.BlindSpots, ofB...)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// sameLoad says that two runs were asked for the same gaps between requests or,
// where nobody asked for any, had about the same.
func sameLoad(a, b *Result) bool {
	x, y := a.Load.Arrivals, b.Load.Arrivals
	switch {
	case x == nil || y == nil:
		return true // nobody knows, or it came all at once
	case x.AskedMeanNs != nil && y.AskedMeanNs != nil:
		return *x.AskedMeanNs == *y.AskedMeanNs
	}
	return x.MeanNs == y.MeanNs || withinTimes(float64(x.MeanNs), float64(y.MeanNs), agree)
}

// withinTimes says that neither value is more than so many times the other.
func withinTimes(a, b, times float64) bool { return a > 0 && b > 0 && max(a, b) <= times*min(a, b) }

// Beside are the blind spots of r that show beside other: what r's readers bore and
// one metric does not tell. Runs under different loads have none.
func Beside(r, other *Result, name string) []BlindSpot {
	var all []BlindSpot
	if !sameLoad(r, other) {
		return nil
	}
	for _, find := range []func(r, other *Result, name string) *BlindSpot{
		waitHiddenBeside, stallHiddenBeside, burstAsStallBeside, tailInverts,
	} {
		if s := find(r, other, name); s != nil {
			s.Against = name
			all = append(all, *s)
		}
	}
	return all
}

// waitHiddenBeside: by normalized latency r is not the worse one by much, by the
// share of requests that waited it is.
func waitHiddenBeside(r, other *Result, name string) *BlindSpot {
	a, okA := r.Metrics.NormalizedLatency.of(0.5)
	b, okB := other.Metrics.NormalizedLatency.of(0.5)
	if !okA || !okB || a > readable*b {
		return nil
	}
	waits, what := waitsOf(r)
	against, whatOther := waitsOf(other)
	if what != whatOther {
		waits, against, what = r.Metrics.TTFTDue, other.Metrics.TTFTDue, "for their first token"
	}
	o := largestBound(waits, func(o *Over) bool {
		y := against.over(o.Value)
		return y != nil && o.Share-y.Share >= waitsApart && surelyMore(o.Share, waits.N, y.Share, against.N)
	})
	if o == nil {
		return nil
	}
	share := against.over(o.Value).Share
	return r.spot(WaitHidden, worstWait, fmt.Sprintf(
		"normalized latency differs by %s; yet %s of requests waited over %s %s, against %s of those of %s",
		differs(a, b, " a token"), percent(o.Share), human(o.Value), what, percent(share), name),
		map[string]float64{
			"normalized_latency_p50_ns": a, "normalized_latency_p50_ns_against": b, "bound_ns": o.Value,
			"share_over": o.Share, "share_over_against": share,
		})
}

// over is the share above a bound, nil where it is not counted.
func (d *Dist) over(bound float64) *Over {
	if d == nil {
		return nil
	}
	for i := range d.Over {
		if math.Abs(d.Over[i].Value-bound) < 1 {
			return &d.Over[i]
		}
	}
	return nil
}

// surelyMore says that a share of n and a lower one are no accident of small counts, were
// requests independent: their exact 95 % intervals do not meet.
func surelyMore(share float64, n int64, other float64, of int64) bool {
	low, _ := stats.ClopperPearson(share*float64(n), float64(n))
	_, high := stats.ClopperPearson(other*float64(of), float64(of))
	return low > high
}

// differs is how far two times are apart, as people say it: in per cent where that
// is little, else as what it is.
func differs(a, b float64, per string) string {
	if withinTimes(a, b, agree) {
		return fmt.Sprintf("%s (%s%s at the median, %s)", percent(math.Abs(a-b)/b), human(a), per, human(b))
	}
	return fmt.Sprintf("%s%s (%s at the median, %s)", human(math.Abs(a-b)), per, human(a), human(b))
}

// stallHiddenBeside: by the median of TPOT r is not the worse one, by the share of
// answers that froze it is.
func stallHiddenBeside(r, other *Result, name string) *BlindSpot {
	a, b, ok := unsuspicious(r, other)
	x, y := r.Freezes, other.Freezes
	if !ok || x == nil || y == nil || x.Share-y.Share < frozenFrom || !surelyMore(x.Share, x.Answers, y.Share, y.Answers) {
		return nil
	}
	return r.spot(StallHidden, worstFreeze, fmt.Sprintf(
		"TPOT differs by %s; yet %s of readers saw a freeze over %s, the longest of %s, against %s of those of %s",
		differs(a, b, ""), percent(x.Share), human(float64(x.OverNs)), human(float64(*x.LongestNs)), percent(y.Share), name),
		map[string]float64{
			"tpot_p50_ns": a, "tpot_p50_ns_against": b, "freeze_over_ns": float64(x.OverNs),
			"share_frozen": x.Share, "share_frozen_against": y.Share, "longest_ns": float64(*x.LongestNs),
		})
}

// unsuspicious are the medians of TPOT where that of r does not give it away.
func unsuspicious(r, other *Result) (a, b float64, ok bool) {
	a, okA := r.Metrics.TPOT.of(0.5)
	b, okB := other.Metrics.TPOT.of(0.5)
	return a, b, okA && okB && a <= agree*b
}

// burstAsStallBeside: p99 TBT calls r the worse by far, for its bunches, while both
// are fluid at about the same gap.
func burstAsStallBeside(r, other *Result, name string) *BlindSpot {
	if burstAsStall(r) == nil || burstAsStall(other) != nil {
		return nil
	}
	a, okA := r.Metrics.TBT.of(0.99)
	b, okB := other.Metrics.TBT.of(0.99)
	x, y := r.fluidGap(), other.fluidGap()
	if !okA || !okB || a < bunchesRaise*b || !(y > 0) || x > agree*y {
		return nil
	}
	return r.spot(BurstAsStall, worstBunch, fmt.Sprintf(
		"p99 TBT is %s against %s of %s, for tokens come in bunches; yet F sees no stall in them: 99 %% of answers have F ≥ 0.9 at a gap of %s here, of %s there",
		human(a), human(b), name, human(x), human(y)),
		map[string]float64{
			"tbt_p99_ns": a, "tbt_p99_ns_against": b, "fluid_gap_ns": x, "fluid_gap_ns_against": y, "share_together": *r.TogetherShare,
		})
}

// tailInverts: a high percentile of TBT calls r the better one, and its answers
// were silent for much longer.
func tailInverts(r, other *Result, name string) *BlindSpot {
	tpot, tpotOther, ok := unsuspicious(r, other)
	if !ok || r.Freezes == nil || r.Freezes.Share < frozenFrom {
		return nil
	}
	a, okA := r.Metrics.GapLongest.of(0.95)
	b, okB := other.Metrics.GapLongest.of(0.95)
	if !okA || !okB || a < freezeOverNs || a < timesLonger*b {
		return nil
	}
	for _, q := range []struct {
		code, name string
		p          float64
	}{{P99Inverts, "p99", 0.99}, {P95Inverts, "p95", 0.95}} {
		x, okX := r.Metrics.TBT.of(q.p)
		y, okY := other.Metrics.TBT.of(q.p)
		if !okX || !okY || contradict*x > y {
			continue
		}
		longest, longestOther := *r.Metrics.GapLongest.Max, *other.Metrics.GapLongest.Max
		return r.spot(q.code, worstFreeze, fmt.Sprintf(
			"%s TBT calls this run better than %s, %s against %s, and TPOT differs by %s; yet its longest silence in an answer is %s against %s (p95 over answers %s against %s), and %s of its readers saw a freeze over %s",
			q.name, name, human(x), human(y), differs(tpot, tpotOther, ""),
			human(longest), human(longestOther), human(a), human(b), percent(r.Freezes.Share), human(float64(r.Freezes.OverNs))),
			map[string]float64{
				"tbt_" + q.name + "_ns": x, "tbt_" + q.name + "_ns_against": y, "tpot_p50_ns": tpot, "tpot_p50_ns_against": tpotOther,
				"gap_longest_max_ns": longest, "gap_longest_max_ns_against": longestOther,
				"gap_longest_p95_ns": a, "gap_longest_p95_ns_against": b, "share_frozen": r.Freezes.Share,
			})
	}
	return nil
}
