package experiment

import (
	"fmt"
	"strings"

	"fermata/cost"
	"fermata/internal/conf"
	"fermata/load"
	"fermata/metrics"
)

// A sweepPurse holds what a whole sweep may cost: its loads share it. Without a
// limit it has no bound. newSweepPurse makes one.
type sweepPurse struct {
	limit    string // as it was given; empty for none
	most     cost.Amount
	spent    cost.Amount
	currency string
}

func newSweepPurse(first *play) (*sweepPurse, error) {
	p := &sweepPurse{limit: first.run.Load.MaxCost, currency: first.run.Prices.Currency}
	if p.limit == "" {
		return p, nil
	}
	var err error
	if p.most, err = cost.ParseAmount(p.limit); err != nil {
		return nil, fmt.Errorf("load.max_cost: %w", err)
	}
	return p, nil
}

// refuse is the error of loads that cost more than is left, about, before any runs.
func (p *sweepPurse) refuse(costs cost.Amount) error {
	if p.limit == "" || p.spent.Plus(costs).Cmp(p.most) <= 0 {
		return nil
	}
	before := ""
	if p.spent.Cmp(cost.Amount{}) > 0 {
		before = fmt.Sprintf(", after %s of those that were measured before", p.spent.Short())
	}
	return conf.Mistakes{{File: "--max-cost", Text: fmt.Sprintf("the loads of the sweep cost about %s %s together%s, and all of it may cost %s: raise it, or ask for fewer requests or loads", costs.Short(), p.currency, before, p.limit)}}
}

// short says why a load is not begun; empty where there is enough left for it.
func (p *sweepPurse) short(was bool, of sweepPoint) string {
	switch left := p.most.Minus(p.spent); {
	case p.limit == "" || was:
	case of.priced && of.costs.Cmp(left) > 0, left.Cmp(cost.Amount{}) <= 0:
		return fmt.Sprintf("the money was spent before %s: of %s %s, %s by the loads before it, which leaves less than the %s that it may cost, about", of.label, p.limit, p.currency, p.spent.Short(), of.costs.Short())
	}
	return ""
}

// into is a play that may cost what is left.
func (p *sweepPurse) into(of *play) *play {
	if p.limit == "" {
		return of
	}
	bound, run := *of, *of.run
	run.Load.MaxCost = p.most.Minus(p.spent).String()
	bound.run = &run
	return &bound
}

// pay counts what a load has cost; one that was counted before does not count.
func (p *sweepPurse) pay(r *metrics.Result, counted bool) error {
	if r.Load.Spent == nil || counted {
		return nil
	}
	did, err := cost.ParseAmount(r.Load.Spent.Amount)
	if err != nil {
		return fmt.Errorf("what a load has cost: %w", err)
	}
	p.spent = p.spent.Plus(did)
	return nil
}

// penniless says that a run ended since its money was spent.
func penniless(r *metrics.Result) bool { return strings.HasPrefix(r.Window.Why, load.MoneySpent) }

// costs is what a play will cost that measures so many requests, about, with its
// warm-up; false where that is not known.
func (p *play) costs(requests int64) (cost.Amount, bool) {
	if p.sim != nil {
		return cost.Amount{}, false
	}
	s := p.run
	if _, arrivals, err := open(s); err == nil {
		switch n, at := arrivals.WarmupEnd(); {
		case n >= 0:
			requests += n
		case at > 0 && s.Schedule.Rate > 0:
			requests += int64(float64(at) / 1e9 * s.Schedule.Rate)
		}
	}
	return expected(s, requests)
}
