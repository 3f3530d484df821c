package metrics

import (
	"fmt"
	"math"

	"fermata/cost"
	"fermata/recording"
)

// costs counts what the answers cost and are worth.
type costs struct {
	opt        *Options
	objectives *objectives
	account    *cost.Account
}

func newCosts(opt Options, o *objectives) *costs {
	timed := false
	for _, j := range o.list {
		timed = timed || j.hasGoodput()
	}
	return &costs{&opt, o, opt.Cost.Account(cost.Judged{
		InTime: timed, Slow: opt.SlowNs > 0, Check: opt.Check != "", Truncation: opt.ExpectStop,
	})}
}

// see comes after the objectives saw the same answer.
func (c *costs) see(a *answer) {
	if a.second {
		return
	}
	t := a.t
	length := t.Prompt.Reported
	if !length.OK {
		length = t.Prompt.Used
	}
	if !length.OK {
		length = t.Prompt.Intended
	}
	output := a.used
	if !output.OK {
		output = recording.Some(int32(min(len(a.times), math.MaxInt32)))
	}
	c.account.Add(cost.Answer{
		Target: t.Target, EarlierTries: a.tried.earlier, Answered: t.Outcome == recording.OK,
		Input: int64(length.Or(0)), InputKnown: length.OK, Output: int64(output.V),
		Truncated: a.outcome == truncated, Late: !c.objectives.every, Slow: a.slow(c.opt.SlowNs), Wrong: !a.passes(c.opt.Check),
	})
}

func (*costs) seek() recording.Columns { return 0 }

func (c *costs) result(r *Result, _ int64) {
	u := cost.Under{Basis: cost.ByRate}
	switch {
	case c.opt.AllAtOnce:
		u.Basis = cost.ByOffline
	case c.opt.ClosedLoop:
		u.Basis = cost.ByLoop
	}
	// Evaluate shows the tally before, whose throughput this is.
	if x := r.Throughput.OutputTokensPerSFinished; x != nil && *x > 0 {
		u.TokensPerS = x
	}
	r.Cost = c.account.Statement(u)
}

// otherLoad is from how far on the load of a run is not that of a capacity.
const otherLoad = 0.1

// cost adds what a reader of the cost must know.
func (w *list) cost(r *Result) {
	c := r.Cost
	if c == nil {
		return
	}
	switch {
	case c.PerMillion == "" && c.Basis == cost.ByToken && c.Unknown > 0:
		w.add("no_cost", fmt.Sprintf("what tokens cost is not known: nobody told the length of the prompts of %d answers", c.Unknown),
			"Prices of input tokens need it. Ask a server that reports usage, or prompts of a known length.")
	case c.PerMillion == "":
		w.add("no_cost", "what tokens cost is not known: none came that could be counted", "")
	case c.Basis == cost.ByRate:
		w.add("cost_fixed_rate", "the cost by the hour is that of the rate that was offered, and a fixed rate says nothing about capacity: at twice the rate it would be half",
			"Find the capacity under the objective (`fermata capacity URL --slo … -o json > capacity.json`) and give it with --capacity capacity.json.")
	case c.Basis == cost.ByLoop:
		w.add("cost_fixed_rate", "the cost by the hour is that of as many users as were asked for, which says nothing about capacity under an objective",
			"Find the capacity under the objective (`fermata capacity URL --slo … -o json > capacity.json`) and give it with --capacity capacity.json.")
	case c.Unknown > 0:
		w.add("cost_partial", fmt.Sprintf("%d answers are not in the cost: nobody told the length of their prompts", c.Unknown),
			"The blended price is that of the others.")
	}
	if k, rate := c.Capacity, r.Load.OfferedRPS; k != nil && c.Good != cost.PriceOnly && rate != nil && math.Abs(*rate-k.RPS) > otherLoad*k.RPS {
		w.add("cost_other_load", fmt.Sprintf("the cost of good answers takes the capacity of %.4g requests/s and the share of good ones at %.4g", k.RPS, *rate),
			"Judge a run at the capacity: --rate as the capacity says.")
	}
}
