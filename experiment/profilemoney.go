package experiment

import (
	"fmt"

	"fermata/cost"
	"fermata/spec"
)

// A profilePurse is what the probes of a profile cost, and may cost. The zero value
// is of one without prices.
type profilePurse struct {
	rate     *cost.Rate   // nil without prices of tokens
	most     *cost.Amount // that it may cost; nil for no bound
	currency string
}

// purseOf reads what tokens cost, and what they may cost in all.
func purseOf(s *spec.Run) (profilePurse, error) {
	var p profilePurse
	if !s.Prices.Given() {
		return p, nil
	}
	p.currency = s.Prices.Currency
	rate, err := rateOf(s, "", s.Target.Model)
	switch {
	case err == nil:
		p.rate = &rate
	case s.Load.MaxCost != "":
		return p, err
	}
	if s.Load.MaxCost != "" {
		most, err := cost.ParseAmount(s.Load.MaxCost)
		if err != nil {
			return p, fmt.Errorf("load.max_cost: %w", err)
		}
		p.most = &most
	}
	return p, nil
}

// passes says that so much more, after what was spent, is more than the profile may
// cost.
func (p *profilePurse) passes(spent, more cost.Amount) bool {
	return p.most != nil && spent.Plus(more).Cmp(*p.most) > 0
}

// told is what tokens cost, at a guess and at most; empty without prices.
func (p *profilePurse) told(guess, most cost.Amount) string {
	if p.rate == nil {
		return ""
	}
	return fmt.Sprintf("; about %s %s, at most %s", guess.Short(), p.currency, most.Short())
}

// refuse is the error of a bound below what the first look at a curve takes: it would
// be spent for nothing.
func (p *profilePurse) refuse(first, whole cost.Amount, until string) error {
	return &Misuse{Failure{
		Saw: fmt.Sprintf("--max-cost %s %s is too little for any curve: %s take about %s, and the whole plan up to %s",
			p.most.Short(), p.currency, until, first.Short(), whole.Short()),
		Help: "Give more, or ask for fewer tokens with --shortest, --longest and --points. Nothing was asked.",
	}}
}
