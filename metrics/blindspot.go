package metrics

import (
	"fmt"
)

// A BlindSpot is a case at hand in which one metric hides what another shows. It
// says what was recorded and is no claim about the system; docs/blindspots.md has
// each trigger as a formula, and why its thresholds are what they are.
type BlindSpot struct {
	Code     string             `json:"code"`
	Against  string             `json:"against,omitempty"` // the run beside which it shows; empty where one run shows it alone
	Text     string             `json:"text"`
	Figures  map[string]float64 `json:"figures"`  // times in ns, shares of 1
	Requests []int64            `json:"requests"` // indices behind it, the worst first, 10 at most
}

// The codes of blind spots.
const (
	WaitHidden   = "wait_hidden"    // normalized latency hides waits for the first token
	StallHidden  = "stall_hidden"   // time per output token hides freezes
	BurstAsStall = "burst_as_stall" // the tail of TBT takes tokens that come in bunches for stalls
	P99Inverts   = "p99_inverts"    // p99 TBT is better where the longest silence is worse
	P95Inverts   = "p95_inverts"    // the same of p95, where p99 sees it
)

// BlindSpotCodes are all of them.
func BlindSpotCodes() []string {
	return []string{WaitHidden, StallHidden, BurstAsStall, P99Inverts, P95Inverts}
}

// What requests are named by in Result.Worst.
const (
	worstWait   = "wait"
	worstFreeze = "freeze"
	worstBunch  = "bunch"
)

// Thresholds of the triggers.
const (
	waitFromNs   = 5e9  // the least bound that a wait must pass
	waitShare    = 0.1  // of requests that wait, where one run shows it alone …
	waitsApart   = 0.2  // … and by how much their shares differ between two
	readable     = 2    // normalized latency hides waits while it is at most so many reading paces, or so many times the other run's
	agree        = 1.15 // up to so many times the other run's a median of TPOT, or a gap, tells nothing
	contradict   = 1.25 // a percentile of TBT that calls one run better is lower by so much …
	timesLonger  = 2    // … while its silence is so many times longer
	bunchesRaise = 2    // p99 TBT is so many times the gap at which nearly all answers are fluid
	frozenFrom   = 0.05 // share of ok answers that froze, for a silence to tell two runs apart
)

// alone are the blind spots that one run shows by itself.
func alone(r *Result) []BlindSpot {
	all := []BlindSpot{}
	for _, find := range []func(*Result) *BlindSpot{waitHidden, stallHidden, burstAsStall} {
		if s := find(r); s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// waitHidden: normalized latency is that of an answer that can be read, yet many
// requests waited long for the first token.
func waitHidden(r *Result) *BlindSpot {
	normalized, ok := r.Metrics.NormalizedLatency.of(0.5)
	if !ok || r.Stalls == nil || normalized > readable*float64(r.Stalls.PaceNs) {
		return nil
	}
	waits, what := waitsOf(r)
	o := largestBound(waits, func(o *Over) bool { return o.Share >= waitShare })
	if o == nil {
		return nil
	}
	return r.spot(WaitHidden, worstWait, fmt.Sprintf(
		"normalized latency is %s a token at the median, as of an answer that can be read as it comes; yet %s of requests waited over %s %s",
		human(normalized), percent(o.Share), human(o.Value), what),
		map[string]float64{"normalized_latency_p50_ns": normalized, "bound_ns": o.Value, "share_over": o.Share})
}

// waitsOf is how long requests waited, as far as nobody estimated it, and until what.
func waitsOf(r *Result) (d *Dist, what string) {
	if d := r.Metrics.SchedulingDelay; d != nil && d.Source == partsServer {
		return d, "before anything was computed for them"
	}
	return r.Metrics.TTFTDue, "for their first token"
}

// largestBound is the highest bound from 5 s on at which something is true.
func largestBound(d *Dist, is func(*Over) bool) *Over {
	if d == nil {
		return nil
	}
	for i := len(d.Over) - 1; i >= 0; i-- {
		if o := &d.Over[i]; o.Value >= waitFromNs && is(o) {
			return o
		}
	}
	return nil
}

// stallHidden: the mean gap looks like an answer without a stop, and answers froze.
func stallHidden(r *Result) *BlindSpot {
	f := r.Freezes
	tpot, ok := r.Metrics.TPOT.of(0.5)
	if !ok || f == nil || f.RequestsWithAny == 0 || f.Share < leastOfAnswers {
		return nil
	}
	figures := map[string]float64{
		"tpot_p50_ns": tpot, "freeze_over_ns": float64(f.OverNs), "frozen": float64(f.RequestsWithAny), "answers": float64(f.Answers),
		"share_frozen": f.Share, "longest_ns": float64(*f.LongestNs),
	}
	said := fmt.Sprintf("TPOT is %s at the median", human(tpot))
	if p99, ok := r.Metrics.TBT.of(0.99); ok && p99 < freezeOverNs {
		said += fmt.Sprintf(" and p99 TBT %s", human(p99))
		figures["tbt_p99_ns"] = p99
	}
	return r.spot(StallHidden, worstFreeze, fmt.Sprintf(
		"%s; yet %s of readers (%d of %d) saw a freeze over %s, the longest of %s",
		said, percent(f.Share), f.RequestsWithAny, f.Answers, human(float64(f.OverNs)), human(float64(*f.LongestNs))), figures)
}

// burstAsStall: tokens come in bunches, and p99 TBT counts the time between two of
// them as if a single token had been waited for.
func burstAsStall(r *Result) *BlindSpot {
	p99, ok := r.Metrics.TBT.of(0.99)
	if !ok || r.TogetherShare == nil || *r.TogetherShare < togetherShare {
		return nil
	}
	gap := r.fluidGap()
	if gap <= 0 || p99 < bunchesRaise*gap {
		return nil
	}
	return r.spot(BurstAsStall, worstBunch, fmt.Sprintf(
		"p99 TBT of %s takes bunches for stalls: %s of tokens came with the one before. Who is shown a token each %s hardly waits: at that gap 99 %% of answers have F ≥ 0.9",
		human(p99), percent(*r.TogetherShare), human(gap)),
		map[string]float64{"tbt_p99_ns": p99, "share_together": *r.TogetherShare, "fluid_gap_ns": gap})
}

// fluidGap is D_d* without the first token, 0 where there is none.
func (r *Result) fluidGap() float64 {
	for _, f := range r.FluidRate {
		if f.Variant == Decode && f.GapNs != nil {
			return float64(*f.GapNs)
		}
	}
	return 0
}

// spot is a blind spot with the requests behind it.
func (r *Result) spot(code, by, text string, figures map[string]float64) *BlindSpot {
	requests := r.Worst[by]
	if requests == nil {
		requests = []int64{}
	}
	return &BlindSpot{Code: code, Text: text, Figures: figures, Requests: requests}
}

// percent is a share as people say it.
func percent(share float64) string {
	if v := 100 * share; v < 9.95 && v > 0 {
		return fmt.Sprintf("%.2g %%", v)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
