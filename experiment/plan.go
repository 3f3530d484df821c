package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fermata/internal/stats"
	"fermata/report"
)

// A Question is how many requests a claim needs. Numbers that are 0 were not said.
type Question struct {
	Percentile float64  // as a share; default 0.99
	Confidence float64  // default 0.99
	Margin     float64  // of the share beyond; default (1 - percentile)/20
	Rate       float64  // requests a second
	Doubts     []string // why Saturation is not to be relied on, in codes
	Saturation float64  // highest rate that is served, requests a second
	Tau        float64  // correlation time, instead of a saturation
	Have       int64    // requests at hand
	Capacity   float64  // wanted precision of a capacity, as a share
	SD         float64  // of the differences of pilot pairs
	Runs       int64    // pairs; default 10
	Difference float64  // to be found
}

// planPercentiles are those that a plan always tells of.
var planPercentiles = []float64{.5, .9, .95, .99, .999}

// tablePercentiles are those of MLPerf's table.
var tablePercentiles = []float64{.9, .95, .97, .99}

const (
	planLevel = stats.Level // of intervals
	stopsTold = 10          // of early stopping, after the first
	most      = 1e15        // requests: more is no number of requests
)

// check says what is wrong with the question.
func (q Question) check() error {
	switch {
	case !(q.Percentile > 0 && q.Percentile < 1):
		return fmt.Errorf("a percentile lies between p0 and p100, both excluded, not %g: write 0.99 or p99", q.Percentile)
	case !(q.Confidence > 0 && q.Confidence < 1):
		return fmt.Errorf("a confidence lies between 0 and 100 %%, both excluded, not %g: write 0.99 or 99%%", q.Confidence)
	case !(q.Margin > 0 && q.Margin < 1):
		return fmt.Errorf("a margin is a share between 0 and 1, both excluded, not %g: write 0.05%%, or leave it out", q.Margin)
	case q.Margin >= 1-q.Percentile:
		return fmt.Errorf("a margin of %g says nothing of a percentile that a share of %.4g lies beyond: write a smaller one, or leave it out", q.Margin, 1-q.Percentile)
	case stats.QueryCountAt(q.Percentile, q.Confidence, q.Margin) > most:
		return fmt.Errorf("that would take more than 10¹⁵ requests: ask for a lower percentile, a wider margin or less confidence")
	case q.Rate < 0 || q.Saturation < 0 || q.Tau < 0 || q.Have < 0 || q.Capacity < 0 || q.SD < 0 || q.Runs < 0 || q.Difference < 0:
		return fmt.Errorf("rates, counts and shares must be more than 0")
	case math.IsInf(q.Rate+q.Saturation+q.Tau+q.Capacity+q.SD+q.Difference, 0) || math.IsNaN(q.Rate+q.Saturation+q.Tau+q.Capacity+q.SD+q.Difference):
		return fmt.Errorf("rates, counts and shares must be finite numbers")
	case q.Saturation > 0 && !(q.Rate > 0):
		return fmt.Errorf("a saturation says something only beside the rate that is offered: give --rate too")
	case q.Saturation > 0 && q.Tau > 0:
		return fmt.Errorf("give --saturation or --tau: the one follows from the other")
	case q.Saturation > 0 && q.Rate >= q.Saturation:
		return fmt.Errorf("at %g requests/s, %.3g of saturation, waits grow without end: no number of requests tells their percentiles; plan for a lower rate", q.Rate, q.Rate/q.Saturation)
	case q.Tau > 0 && q.Tau < 1:
		return fmt.Errorf("a correlation time of %g requests: it is 1 at least, for requests that are independent", q.Tau)
	case q.Capacity >= 1:
		return fmt.Errorf("a capacity to ±%g %% says nothing: write --capacity 5%%", 100*q.Capacity)
	case q.Runs == 1:
		return fmt.Errorf("one pair of runs has no spread: two is the fewest, ten are good")
	case (q.Difference > 0 || q.Runs > 0) && !(q.SD > 0):
		return fmt.Errorf("what a comparison finds depends on how much its pairs scatter: give --sd, the standard deviation of the differences of some pilot pairs")
	}
	return nil
}

// Answer says how many requests the claim needs.
func (q Question) Answer() (*report.Plan, error) {
	fill := func(v *float64, to float64) {
		if !(*v > 0 || *v < 0) {
			*v = to
		}
	}
	fill(&q.Percentile, .99)
	fill(&q.Confidence, .99)
	fill(&q.Margin, (1-q.Percentile)/20)
	if err := q.check(); err != nil {
		return nil, err
	}
	n := stats.QueryCountAt(q.Percentile, q.Confidence, q.Margin)
	p := &report.Plan{
		Schema: report.PlanSchemaName, Percentile: q.Percentile, Confidence: q.Confidence, Margin: q.Margin, Exact: n,
		Notes: []string{},
	}
	p.Requests, p.Rounded = stats.RoundedQueries(n)
	if q.Rate > 0 {
		p.Rate, p.Minutes = &q.Rate, q.minutes(float64(p.Requests))
	}
	for over := range int64(stopsTold + 1) {
		p.EarlyStopping = append(p.EarlyStopping, report.PlanStop{Over: over, Requests: stats.MinQueries(over, q.Percentile, q.Confidence)})
	}
	for _, t := range tablePercentiles {
		nearest, blocks := stats.RoundedQueries(stats.QueryCount(t, q.Confidence))
		p.Table = append(p.Table, report.PlanTableRow{Percentile: t, Requests: nearest, Rounded: blocks})
	}
	tau := q.load(p)
	q.pass(p, tau)
	for _, c := range q.percentiles() {
		stated, closed := stated(c, tau)
		p.Claims = append(p.Claims, report.PlanClaim{Percentile: c, Requests: stated, Closed: closed, Minutes: q.minutes(float64(stated))})
	}
	q.capacity(p)
	q.comparison(p)
	q.have(p, tau)
	return p, nil
}

// minutes are those that n requests take; nil where the rate is not known.
func (q Question) minutes(n float64) *float64 {
	if !(q.Rate > 0) {
		return nil
	}
	m := n / q.Rate / 60
	return &m
}

// percentiles are the usual ones and the one that is asked about.
func (q Question) percentiles() []float64 {
	all := slices.Clone(planPercentiles)
	if !slices.ContainsFunc(all, func(p float64) bool { return math.Abs(p-q.Percentile) < 1e-12 }) {
		all = append(all, q.Percentile)
		slices.Sort(all)
	}
	return all
}

// load tells what the bursts of the load make of the count, and returns the
// correlation time in use.
func (q Question) load(p *report.Plan) float64 {
	l := &report.PlanLoad{Tau: q.Tau}
	switch {
	case q.Saturation > 0:
		of := q.Rate / q.Saturation
		l.OfSaturation, l.Tau = &of, stats.Relaxation(of).V
		if len(q.Doubts) > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("The saturation of %.4g requests/s comes from a capacity result that is doubtful (%s): what rests on it is no more than a guess.", q.Saturation, strings.Join(q.Doubts, ", ")))
		}
	case !(q.Tau > 0):
		p.Notes = append(p.Notes, "These counts take requests as independent. Waits in a queue come in bursts: --rate with --saturation says what that costs.")
		return 1
	}
	l.Requests = int64(math.Ceil(p.Exact * l.Tau))
	l.Minutes = q.minutes(float64(l.Requests))
	p.Load = l
	return l.Tau
}

func (q Question) pass(p *report.Plan, tau float64) {
	share, alpha := 1-q.Percentile, 1-q.Confidence
	r := stats.AlwaysValid(share, 2, alpha)
	p.AlwaysValid = report.PlanPass{Share: share, Error: alpha, Start: r.Start, PerMiss: r.PerMiss, Tau: tau, Requests: r.Needs(0, tau)}
	p.Notes = append(p.Notes, "Early stopping holds for one look at a number of requests that was fixed before; who looks again and again passes wrongly in 8 to 13 % of cases instead of 1 %. The rule for runs that look at any time does not.")
}

// stated is from how many requests on a percentile is stated with both ends of its
// interval, and from how many on that has an upper end.
func stated(p, tau float64) (requests, closed int64) {
	up := func(v float64) int64 { return int64(math.Ceil(v - 1e-6)) }
	closed = up(tau * float64(stats.SmallestClosed(max(p, 1-p), planLevel)))
	return max(up(stats.Correlated*tau), up(stats.Beyond*tau/min(p, 1-p)), closed), closed
}

func (q Question) capacity(p *report.Plan) {
	if !(q.Capacity > 0) {
		return
	}
	share, rho := 1-q.Percentile, 1.0
	c := &report.PlanCapacity{Delta: q.Capacity, Share: share}
	if p.Load != nil && p.Load.OfSaturation != nil {
		rho = *p.Load.OfSaturation
		c.WithRate = &rho
	}
	c.Law = int64(math.Ceil(stats.CapacityRequests(q.Capacity, share, rho, planLevel)))
	c.Search = int64(math.Ceil(stats.SearchRequests(q.Capacity, share)))
	c.Minutes = q.minutes(float64(c.Search))
	p.Capacity = c
}

func (q Question) comparison(p *report.Plan) {
	if !(q.SD > 0) {
		return
	}
	if q.Runs == 0 {
		q.Runs = 10
	}
	c := &report.PlanCompare{SD: q.SD, Runs: q.Runs, Detects: stats.Detectable(q.SD, float64(q.Runs))}
	if q.Difference > 0 {
		runs := max(2, int64(math.Ceil(stats.PairsFor(q.SD, q.Difference)-1e-9)))
		c.Difference, c.RunsFor = &q.Difference, &runs
	}
	if q.Runs < 5 {
		p.Notes = append(p.Notes, "With fewer than five pairs a comparison rests on their order in time, not on their spread.")
	}
	p.Comparison = c
}

func (q Question) have(p *report.Plan, tau float64) {
	if q.Have == 0 {
		return
	}
	n := float64(q.Have)
	h := &report.PlanHave{Requests: q.Have, NEff: n / tau}
	for _, c := range q.percentiles() {
		s := report.PlanStatus{Percentile: c, Status: "ok", Rank: stats.RankAt(q.Have, c)}
		low, high := stats.OrderIntervalAt(q.Have, c, h.NEff, planLevel)
		if low > 0 {
			s.Low = &low
		}
		if high > 0 {
			s.High = &high
		}
		needs, _ := stated(c, tau)
		switch {
		case n < stats.Correlated*tau || h.NEff*min(c, 1-c) < stats.Beyond*(1-1e-12):
			s.Status = "insufficient"
		case low == 0 || high == 0:
			s.Status = "open"
		}
		if s.Status != "ok" {
			s.Needs = &needs
		}
		h.Claims = append(h.Claims, s)
	}
	if over, ok := stats.AllowedOver(q.Have, q.Percentile, q.Confidence); ok {
		h.AllowedOver = &over
	}
	if rank, ok := stats.EarlyStoppingRank(q.Have, q.Percentile, q.Confidence); ok {
		h.Estimate = &rank
	}
	z := stats.Normal((1 + q.Confidence) / 2)
	h.Margin = z * math.Sqrt(q.Percentile*(1-q.Percentile)/h.NEff)
	p.Have = h
}
