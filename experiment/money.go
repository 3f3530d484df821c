package experiment

import (
	"cmp"
	"fmt"
	"time"

	"fermata/cost"
	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/spec"
)

// rateOf is what the tokens of one target cost.
func rateOf(s *spec.Run, name, model string) (cost.Rate, error) {
	rate, err := s.Prices.Rate(cmp.Or(s.Judging.Provider, name), model)
	if err != nil {
		return rate, named(name, fmt.Errorf("prices: %w", err))
	}
	return rate, nil
}

// priced says what is wrong with the prices of the targets, as far as their models
// are known: those that the server chooses are known once it was asked.
func priced(s *spec.Run, all []*target, asked bool) error {
	if s.Load.MaxCost == "" {
		return nil
	}
	for _, t := range all {
		if _, err := rateOf(s, t.name, t.options.Model); err != nil && (asked || t.options.Model != "" || !s.Prices.ByModel()) {
			return err
		}
		if n := t.prompts.Unlimited(); n > 0 {
			return fmt.Errorf("load.max_cost: %d rows of the data set say nothing of the length of their answers, which could cost anything: give output", n)
		}
	}
	return nil
}

// budgetOf gives the load its prices and what it may cost.
func budgetOf(s *spec.Run, all []*target, whom []load.Target) (load.Budget, error) {
	b := load.Budget{Currency: s.Prices.Currency}
	if !s.Prices.Given() {
		return b, nil
	}
	if err := priced(s, all, true); err != nil {
		return b, err
	}
	for i, t := range all {
		// Without a bound, prices by the hour are for others to look at.
		if rate, err := rateOf(s, t.name, t.options.Model); err == nil {
			whom[i].Rate = &rate
		} else if why := unpriced(s, "", t.options.Model); why != "" {
			t.say("%s", why)
		}
	}
	if s.Load.MaxCost == "" {
		return b, nil
	}
	most, err := cost.ParseAmount(s.Load.MaxCost)
	b.Most = &most
	return b, err
}

// spent is what a recording's requests cost by the prices of its run file; nil
// without prices of tokens.
func spent(src recording.Source, s *spec.Run) (*metrics.Spent, error) {
	if !s.Prices.Given() || s.Prices.File != "" {
		return nil, nil
	}
	rates := map[string]cost.Rate{}
	for i, one := range s.Each() {
		name := ""
		if len(s.Targets) > 0 {
			name = s.Targets[i].Name
		}
		rate, err := rateOf(s, name, one.Target.Model)
		if err != nil {
			return nil, nil // by the hour, or for other models
		}
		rates[name] = rate
	}
	var sum cost.Amount
	out := &metrics.Spent{Currency: s.Prices.Currency, Most: s.Load.MaxCost}
	for t := range src.Traces(0) {
		prompt, output, known := load.Billed(&t)
		if !known {
			out.Unknown++
		}
		sum = sum.Plus(rates[t.Target].Of(prompt, output))
	}
	out.Amount = sum.String()
	return out, src.Err()
}

// termsOf are the prices that hold for a run; nil without any, and where there is
// none for a model: that is said elsewhere (unpriced).
func termsOf(s *spec.Run) *cost.Terms {
	if !s.Prices.Given() || s.Prices.File != "" {
		return nil
	}
	models := map[string]string{}
	for i, one := range s.Each() {
		name := ""
		if len(s.Targets) > 0 {
			name = s.Targets[i].Name
		}
		models[name] = one.Target.Model
	}
	terms, err := s.Prices.Terms(models, s.Judging.Options)
	if err != nil {
		return nil
	}
	return terms
}

// keepPrices leaves the prices of the models that are asked, before the run file
// is saved.
func keepPrices(s *spec.Run) {
	var models []string
	for _, one := range s.Each() {
		models = append(models, one.Target.Model)
	}
	s.Prices.Only(models...)
}

// staleDays is the age from which on prices are old: see docs/decisions.
const staleDays = 90

// stale is the warning of prices that were old when the run was made, or not yet made. A simulated
// run has no day, so theirs is today.
func stale(s *spec.Run, meta *recording.Meta) *metrics.Warning {
	day, err := time.Parse(time.DateOnly, s.Prices.Date)
	if !s.Prices.Given() || err != nil {
		return nil
	}
	at, when := time.Now(), "today"
	if meta.ZeroWallNs.OK {
		at, when = time.Unix(0, meta.ZeroWallNs.V), "when the run was made"
	}
	days := int(at.Sub(day).Hours() / 24)
	if days < -1 { // a day begins earlier elsewhere
		return &metrics.Warning{
			Code: "future_prices", Text: fmt.Sprintf("the prices are of %s, %d days after the run was made", s.Prices.Date, -days),
			Help: "Nobody knows prices beforehand: correct the date in their file.",
		}
	}
	if days <= staleDays {
		return nil
	}
	return &metrics.Warning{
		Code: "old_prices", Text: fmt.Sprintf("the prices are of %s, %d days old %s", s.Prices.Date, days, when),
		Help: fmt.Sprintf("Prices change several times a year: see whether %s still says the same, and give the file a new date.", s.Prices.Source),
	}
}

// priceSample is of how many requests the mean price is taken beforehand.
const priceSample = 200

// expected is what so many requests will cost, about, by prices of tokens; false
// where that is not known.
func expected(s *spec.Run, requests int64) (cost.Amount, bool) {
	if !s.Prices.Given() || s.Prices.File != "" || requests == 0 || len(s.Targets) > 0 {
		return cost.Amount{}, false
	}
	rate, err := rateOf(s, "", s.Target.Model)
	if err != nil {
		return cost.Amount{}, false
	}
	prompts, _, err := open(s)
	if err != nil {
		return cost.Amount{}, false
	}
	var sum cost.Amount
	n := int64(0)
	for ; n < priceSample; n++ {
		q, ok := prompts.Shape(n, 0, 0)
		if !ok {
			break
		}
		sum = sum.Plus(rate.Of(int64(q.PromptTokens), int64(q.OutputTokens)))
	}
	whole, ok := cost.PerMillion(sum, n)
	return whole.Share(requests), ok
}

// spending says what so many requests will cost, about; empty where that is not
// known.
func spending(s *spec.Run, requests int64) string {
	amount, ok := expected(s, requests)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", about %s %s", amount.Short(), s.Prices.Currency)
}
