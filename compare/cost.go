package compare

import (
	"strings"

	"fermata/cost"
	"fermata/metrics"
)

// A RunCost is what the tokens of one run cost, as its report has it.
type RunCost struct {
	Run  string          `json:"run"`
	Cost *cost.Statement `json:"cost,omitempty"` // nil where the price is not known
}

// costs writes what the runs of all systems cost, where any has prices.
func (c *Comparison) costs(systems []System) {
	given := false
	for s := range systems {
		for _, r := range systems[s].Runs {
			given = given || r.Result.Cost != nil
			for _, w := range r.Result.Warnings {
				given = given || w.Code == "no_price"
			}
		}
	}
	if !given {
		return
	}
	for s := range systems {
		for _, r := range systems[s].Runs {
			c.Systems[s].Costs = append(c.Systems[s].Costs, RunCost{r.Name, r.Result.Cost})
		}
	}
}

// AlikeCosts says that amounts of both are of one kind: one currency, one basis, and
// the same tokens counted; of good answers, that good means the same too.
func AlikeCosts(a, b *cost.Statement, good bool) bool {
	return a.Currency == b.Currency && a.Unit == b.Unit && a.Basis == b.Basis && (!good || a.Good == b.Good)
}

// CostWithheld says, as a Measure's Withheld, why no test is made of costs; of those of good answers
// where good is true. Runs differ by chance in the mix of their tokens, and in what an offline load
// gave; a rate that somebody chose gives a cost that is chosen too, and the chance in a
// capacity is that of its search.
func CostWithheld(good bool) func(all []*metrics.Result) string {
	return func(all []*metrics.Result) string {
		var first *cost.Statement
		for _, r := range all {
			switch {
			case r.Cost == nil:
			case first == nil:
				first = r.Cost
			case !AlikeCosts(first, r.Cost, good):
				return Unlike
			}
		}
		if first == nil {
			return ""
		}
		switch first.Basis {
		case cost.ByRate, cost.ByLoop:
			return OfLoad
		case cost.ByCapacity:
			return OfSearch
		}
		return ""
	}
}

// ofMoney says that a warning is about what a run cost.
func ofMoney(code string) bool {
	switch code {
	case "no_price", "no_cost", "old_prices", "future_prices":
		return true
	}
	return strings.HasPrefix(code, "cost_")
}

// costCautions are the warnings of runs about their costs, each once a system.
func costCautions(s *System) (all []metrics.Warning) {
	told := map[string]bool{}
	for _, r := range s.Runs {
		for _, w := range r.Result.Warnings {
			if ofMoney(w.Code) && !told[w.Code] {
				told[w.Code] = true
				all = append(all, metrics.Warning{Code: w.Code, Text: "in " + r.Name + " " + w.Text, Help: w.Help})
			}
		}
	}
	return all
}
