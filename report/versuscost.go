package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"fermata/compare"
	"fermata/cost"
	"fermata/internal/term"
)

// alikeRuns are the runs of one system whose costs are of one kind.
type alikeRuns struct {
	name string
	all  []*cost.Statement // none where the price is not known
	runs int
}

// costsBeside are what the tokens of each system cost, a row for the runs whose costs
// are of one kind.
func costsBeside(c *compare.Comparison, names []string) block {
	b := block{title: "Cost", table: &table{columns: []column{
		{head: "", left: true}, {head: "runs", drop: 1}, {head: "a million"}, {head: "a million good"}, {head: "1k good answers"}, {head: "", name: "currency", left: true},
	}}}
	several := false
	var grounds, goods []fact
	for i := range c.Systems {
		for _, g := range alike(names[i], c.Systems[i].Costs) {
			if len(g.all) == 0 {
				b.table.rows = append(b.table.rows, []cell{text(g.name), text(term.Count(int64(g.runs))), text("unknown"), text("unknown"), text("unknown"), text("")})
				continue
			}
			first := g.all[0]
			several = several || len(g.all) > 1
			good := moneyOf(g.all, 1, func(s *cost.Statement) [3]string { return [3]string{s.PerMillionGood, s.GoodLow, s.GoodHigh} }, "none good")
			answer := moneyOf(g.all, 1000, func(s *cost.Statement) [3]string { return [3]string{s.PerGoodRequest} }, "none good")
			if first.Good == cost.PriceOnly {
				good, answer = cost.PriceOnly, cost.PriceOnly
			}
			b.table.rows = append(b.table.rows, []cell{
				text(g.name), text(term.Count(int64(g.runs))),
				text(moneyOf(g.all, 1, func(s *cost.Statement) [3]string { return [3]string{s.PerMillion, s.Low, s.High} }, "unknown")),
				text(good), text(answer), text(first.Currency),
			})
			grounds = append(grounds, fact{g.name, joined(" · ", unitText(first.Unit), groundText(first), quotedText(&first.Prices, first.Currency)), term.Normal})
			goods = append(goods, fact{"good in " + g.name, first.Good, term.Normal})
		}
	}
	b.facts = append(sameFacts("prices", grounds), sameFacts("good", goods)...)
	if several {
		b.notes = append(b.notes, "of several runs the geometric mean, and from the least to the most of them, which is no interval")
	}
	return b
}

// sameFacts are the facts, or one of them under a name where all say the same.
func sameFacts(label string, all []fact) []fact {
	for _, f := range all {
		if f.text != all[0].text {
			return all
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []fact{{key: label, text: all[0].text}}
}

// alike puts the costs of a system's runs together that are of one kind.
func alike(name string, all []compare.RunCost) (groups []alikeRuns) {
	for _, r := range all {
		at := slices.IndexFunc(groups, func(g alikeRuns) bool {
			if r.Cost == nil || len(g.all) == 0 {
				return r.Cost == nil && len(g.all) == 0
			}
			return compare.AlikeCosts(g.all[0], r.Cost, true)
		})
		if at < 0 {
			groups = append(groups, alikeRuns{name: name})
			at = len(groups) - 1
		}
		groups[at].runs++
		if r.Cost != nil {
			groups[at].all = append(groups[at].all, r.Cost)
		}
	}
	return groups
}

// moneyOf is so many times an amount of one run with its interval, or of several their geometric
// mean with the least and the most; none where no run has it.
func moneyOf(all []*cost.Statement, times float64, of func(*cost.Statement) [3]string, none string) string {
	var values []float64
	var last [3]string
	for _, s := range all {
		one := of(s)
		if a, err := cost.ParseAmount(one[0]); err == nil {
			values, last = append(values, times*a.Float()), one
		}
	}
	if len(values) == 0 {
		return none
	}
	if len(all) == 1 {
		text := moneyText(values[0])
		if last[1] != "" && last[2] != "" {
			text += " [" + shortMoney(last[1]) + "–" + shortMoney(last[2]) + "]"
		}
		return text
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v) // of a price of 0 the mean is 0
	}
	text := fmt.Sprintf("%s (%s–%s)", moneyText(math.Exp(sum/float64(len(values)))), moneyText(slices.Min(values)), moneyText(slices.Max(values)))
	if missing := len(all) - len(values); missing > 0 {
		text += fmt.Sprintf(" of %d", len(values))
	}
	return text
}

// moneyText is an amount as shortMoney has it, from a number.
func moneyText(v float64) string { return shortMoney(strconv.FormatFloat(v, 'f', 12, 64)) }

// groundText is the short name of a basis.
func groundText(s *cost.Statement) string {
	switch s.Basis {
	case cost.ByToken:
		return "by the token"
	case cost.ByCapacity:
		return "by the hour, at a capacity"
	case cost.ByOffline:
		return "by the hour, everything there at once"
	case cost.ByLoop:
		return "by the hour, at the concurrency that was asked for"
	}
	return "by the hour, at the rate that was offered"
}
