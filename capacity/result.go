package capacity

import (
	"fmt"
	"math"

	"fermata/cost"
	"fermata/internal/stats"
	"fermata/metrics"
)

// Schema is that of Result.
const Schema = cost.CapacitySchema

// A Result is what a search found, and how far it can be relied on.
type Result struct {
	Schema    string `json:"schema"`
	Objective string `json:"objective"`
	Joint     bool   `json:"joint,omitempty"` // its terms hold for the same request

	Capacity      *Capacity `json:"capacity,omitempty"` // absent where none was found
	SaturationRPS *float64  `json:"saturation_rps,omitempty"`
	Requests      int64     `json:"requests"` // asked in all, with warm-ups and the probe
	Reason        string    `json:"reason"`   // why it ended, in a sentence
	Ending        Ending    `json:"ending"`   // the same for programs
	Search        []Step    `json:"search"`

	Method      string            `json:"method"`
	Allowed     float64           `json:"allowed"`
	Precision   float64           `json:"precision"`
	Rough       bool              `json:"rough,omitempty"`
	ClientBound bool              `json:"client_bound,omitempty"`       // whoever asked was the bottleneck, so that nothing is known of the system
	Saturated   bool              `json:"saturation_limited,omitempty"` // capacity is .97 of saturation or more
	Probe       *Probe            `json:"probe,omitempty"`
	Held        *Held             `json:"held,omitempty"`
	Budget      Budget            `json:"budget"`
	DurationNs  int64             `json:"duration_ns"`
	Failed      int64             `json:"failed,omitempty"`
	Turned      int64             `json:"turned_away,omitempty"`
	Seed        *uint64           `json:"seed,omitempty"`
	Target      string            `json:"target,omitempty"` // the server, or what was simulated
	Warnings    []metrics.Warning `json:"warnings"`

	Cost *cost.AtCapacity `json:"cost,omitempty"` // of the promise, by prices of GPUs
}

// Capacity is the highest rate at which the objective holds, in requests/s, with
// its 95 % interval. An end that is absent is not known.
type Capacity struct {
	RPS            float64  `json:"rps"`
	Low            *float64 `json:"low,omitempty"`
	High           *float64 `json:"high,omitempty"`
	Attainment     *float64 `json:"attainment,omitempty"` // share that met the objective at Held's rate
	AttainmentLow  *float64 `json:"attainment_low,omitempty"`
	AttainmentHigh *float64 `json:"attainment_high,omitempty"`
	TokensPerS     *float64 `json:"tokens_per_s,omitempty"` // of output, at that rate
}

// Held is the run at a fixed rate at the end of the search.
type Held struct {
	Rate     float64 `json:"rate"`               // that was set
	Realised float64 `json:"realised,omitempty"` // that came of it
	Requests int     `json:"requests"`
	Misses   int     `json:"misses"`
	Tau      float64 `json:"tau"` // requests in a row that are worth one
	TauBy    string  `json:"tau_by"`
	Drift    *Drift  `json:"drift,omitempty"`
}

// Drift is how the number of requests under way grew, as new ones found it.
type Drift struct {
	PerRequest float64 `json:"per_request"`
	T          float64 `json:"t"`
	Unsteady   bool    `json:"unsteady"`
}

const (
	nearSaturation = .97
	overSaturation = .05 // ln of the interval's highest end over saturation, beside that one's own error
	errorOfProbe   = .83 // standard error of ln saturation times the root of the requests at once
	weightOfHeld   = .4
	clipHeld       = .15
	mostTau        = 2500
	mostHeldLoad   = .985
	unrealised     = .95 // of the rate that was set
)

// Result is what a state comes to. o is filled in.
func (o Options) Result(s *State) *Result {
	r := &Result{
		Schema: Schema, Method: o.Method, Allowed: o.Allowed, Precision: o.Precision, Rough: o.Rough(), Budget: o.Budget(),
		Requests: s.Sent, DurationNs: s.BusyNs, Failed: s.Failed, Turned: s.Turned, Ending: s.Ending, Reason: s.Why,
		Search: append([]Step{}, s.Steps...), Probe: s.Probe, Warnings: []metrics.Warning{},
	}
	if s.Probe != nil && s.Probe.RPS > 0 {
		rps := s.Probe.RPS
		r.SaturationRPS = &rps
	}
	switch {
	case o.Method == Bisect:
		o.bracketed(r, s)
	case s.Probe != nil && s.Fixed.Requests > 0:
		o.held(r, s)
	case s.Probe != nil && len(s.Steps) > 0 && s.Ending != AlwaysMiss && s.Ending != Unanswered && s.Ending != NoneJudged:
		r.Capacity = &Capacity{RPS: math.Exp(s.average())}
		r.warn("no_interval", "the search ended before the run at a fixed rate that gives the interval: the rate is where it had got to", "Search again, or go on from its state.")
	}
	o.guards(r, s)
	if n := s.Unjudged; n > 0 {
		r.warn("not_judged", fmt.Sprintf("%d answers were not judged, neither as met nor as missed: no first-token deadline is known for their prompts", n),
			"Measure the curve of deadlines at such lengths, or keep prompts within them.")
	}
	if r.Reason == "" {
		r.Reason = reasonOf(r)
	}
	return r
}

func (r *Result) warn(code, text, help string) {
	r.Warnings = append(r.Warnings, metrics.Warning{Code: code, Text: text, Help: help})
}

func reasonOf(r *Result) string {
	switch {
	case r.Ending == "":
		return "it goes on"
	case r.Method == Bisect:
		return "the bracket closed"
	case r.Ending == NeverMissed:
		return "no request missed the objective at any rate that was tried: the system's saturation limits it, or the asker's, and not the objective"
	}
	return "the budget was spent, which was fixed beforehand"
}

// held is the estimate and its interval. Only the run at the fixed rate carries the
// interval: those that the path of the search gives are too narrow by far.
func (o *Options) held(r *Result, s *State) {
	f, mu := &s.Fixed, s.Probe.RPS
	load := min(mostHeldLoad, math.Exp(f.LnRPS)/mu)
	slope := o.slope(load)
	n, k := float64(f.Requests), float64(f.missed())
	tau := f.tau(load)
	distance := func(q float64) float64 { return (logit(q) - logit(o.Allowed)) / slope }
	low, high := stats.ClopperPearson(k/tau.V, n/tau.V)
	q := (k + tau.V*o.Allowed) / (n + tau.V)
	nearer := f.LnRPS - min(max(distance(q), -clipHeld), clipHeld)
	// Near saturation the slope hangs on the saturation, which is known as well as a
	// burst tells it: the interval takes one that is an error less steep.
	unsure := errorOfProbe / math.Sqrt(float64(max(s.Probe.Asked, 1)))
	slope = o.slope(min(mostHeldLoad, load*math.Exp(-unsure)))
	c := &Capacity{RPS: math.Exp((1-weightOfHeld)*f.LnRPS + weightOfHeld*nearer)}
	from := math.Exp(f.LnRPS - distance(min(high, 1-1e-9)))
	to := math.Exp(min(math.Log(mu)+overSaturation+unsure, f.LnRPS-distance(max(low, o.Allowed/1000))))
	c.Low, c.High = &from, &to
	switch {
	case s.Ending == Found && s.Misses == 0:
		r.Ending = NeverMissed
		c.RPS = min(c.RPS, math.Exp(f.LnRPS)) // at least that: more was not held
	case c.RPS < from || c.RPS > to:
		r.disagrees(n, k)
	}
	c.widen(1-o.Precision, 1+o.Precision)
	met, least, most := 1-k/n, 1-high, 1-low
	c.Attainment, c.AttainmentLow, c.AttainmentHigh = &met, &least, &most
	if f.Sent > 0 {
		tokens := float64(f.Tokens) / float64(f.Sent) * c.RPS
		c.TokensPerS = &tokens
	}
	r.Capacity = c
	r.Held = &Held{Rate: math.Exp(f.LnRPS), Requests: f.Requests, Misses: f.missed(), Tau: tau.V, TauBy: tau.By}
	if f.SpanNs > 0 {
		r.Held.Realised = float64(f.Sent) * 1e9 / float64(f.SpanNs)
	}
	if d, ok := stats.DriftOf(floats(f.Ahead)); ok {
		r.Held.Drift = &Drift{PerRequest: d.Slope, T: d.T, Unsteady: d.Unsteady()}
	}
	r.Saturated = c.RPS >= nearSaturation*mu || math.Exp(f.LnRPS) >= nearSaturation*mu
}

// widen takes the point times both factors into the interval. Where misses are a
// cliff, the slope that heavy traffic gives carries both ends away from it; the search
// itself comes within its precision in 95 of 100 cases.
func (c *Capacity) widen(below, above float64) {
	low, high := min(*c.Low, c.RPS*below), max(*c.High, c.RPS*above)
	c.Low, c.High = &low, &high
}

// disagrees says that the run at the fixed rate, of whose n requests k missed, leads
// away from the rate that the search found.
func (r *Result) disagrees(n, k float64) {
	missed, side := "almost nothing missed", "above"
	if k > r.Allowed*n {
		missed, side = "too much missed", "below"
	}
	r.warn("outside", fmt.Sprintf("at the rate held %s (%.3g%%, where %.3g%% may), which leads %s the rate that the search found: near it the misses change faster than those of a queue do, and the end %s it is extrapolated", missed, 100*k/n, 100*r.Allowed, side, side), "Search with a smaller --precision, which takes more requests.")
}

// missed is how many requests missed in all.
func (f *Fixed) missed() int { return min(len(f.Misses)+f.Withdrawn, f.Requests) }

// tau is the correlation time of the misses, at least what heavy traffic gives a
// queue at that load: a run without a burst cannot know it.
func (f *Fixed) tau(load float64) stats.Tau {
	flags := make([]bool, f.Requests)
	for _, i := range f.Misses {
		flags[i] = true
	}
	tau := stats.TauOfFlags(flags, false)
	queue := stats.Relaxation(load)
	queue.V = min(queue.V, mostTau)
	tau = tau.Or(queue)
	tau.V = min(tau.V, max(1, float64(f.Requests)/5))
	return tau
}

// bracketed is what a bisection comes to: the middle of its bracket, whose ends are
// verdicts of single trials and no interval.
func (o *Options) bracketed(r *Result, s *State) {
	switch {
	case s.Low == nil:
		return
	case s.High == nil:
		r.Capacity = &Capacity{RPS: math.Exp(*s.Low)}
	default:
		r.Capacity = &Capacity{RPS: math.Exp((*s.Low + *s.High) / 2)}
	}
	for _, b := range s.Steps {
		if math.Abs(math.Log(b.Rate)-*s.Low) < 1e-9 {
			met := 1 - float64(b.Misses)/float64(b.Requests)
			r.Capacity.Attainment = &met
		}
	}
	if s.Fixed.Sent > 0 {
		tokens := float64(s.Fixed.Tokens) / float64(s.Fixed.Sent) * r.Capacity.RPS
		r.Capacity.TokensPerS = &tokens
	}
	r.warn("no_interval", "a bisection has no interval: each of its trials decides for good, and what it finds is too high near saturation", "Leave --method out for a rate with its interval.")
}

func logit(q float64) float64 { return math.Log(q) - math.Log1p(-q) }

func floats(all []int) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = float64(v)
	}
	return out
}
