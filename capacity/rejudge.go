package capacity

import (
	"fmt"
	"math"
	"slices"

	"fermata/internal/stats"
	"fermata/metrics"
)

// Rejudged is what the run at the fixed rate of a search says of another objective,
// o's: fixed has its misses. That holds only near the rate: where the misses put the
// capacity further away than a search itself would follow them (15 %), or out of the
// rates that it asked, and where nothing missed, there is no capacity, and the reason says on which side it
// lies. What steered the search knew nothing of this objective and has no say.
func (o Options) Rejudged(s *State, fixed Fixed) *Result {
	again := *s
	again.Fixed, again.Steps, again.Misses = fixed, nil, int64(fixed.missed())
	again.Unjudged = int64(fixed.Unjudged)
	again.Phase, again.Ending, again.Why = done, Found, "the requests of an earlier search were judged again, at the rate that it held"
	r := o.Result(&again)
	c := r.Capacity
	if c == nil {
		return r
	}
	load := min(mostHeldLoad, math.Exp(fixed.LnRPS)/s.Probe.RPS)
	n, k := float64(fixed.Requests), float64(fixed.missed())
	tau := fixed.tau(load)
	q := (k + tau.V*o.Allowed) / (n + tau.V)
	shift := (logit(q) - logit(o.Allowed)) / o.slope(load)
	c.RPS = math.Exp(fixed.LnRPS - shift)
	c.widen(1, 1)
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == "outside" }) // was about the search
	if c.TokensPerS != nil {
		*c.TokensPerS = float64(fixed.Tokens) / float64(max(1, fixed.Sent)) * c.RPS
	}
	low, high := math.Inf(1), 0.0
	for _, b := range s.Steps {
		low, high = min(low, b.Rate), max(high, b.Rate)
	}
	if r.Ending != NeverMissed && math.Abs(shift) <= clipHeld && (len(s.Steps) == 0 || low <= c.RPS && c.RPS <= high) {
		return r
	}
	side := "above"
	if shift > 0 {
		side = "below"
	}
	least, most := stats.ClopperPearson((n-k)/tau.V, n/tau.V)
	r.Ending, r.Capacity = NotBracketed, nil
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == "short" || w.Code == "saturation_limited" })
	r.Reason = fmt.Sprintf("%.4g%% (%.4g–%.4g%%) of %d requests at %.4g requests/s met it, so that its capacity lies too far %s the rates that were asked to be told from them: search for it",
		100*(1-k/n), 100*least, 100*most, fixed.Requests, math.Exp(fixed.LnRPS), side)
	return r
}
