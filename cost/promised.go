package cost

// AtCapacity is what a promise costs: an objective costs throughput. It is what a million output
// tokens cost on GPUs of one's own at the capacity under it, beside offline, where
// nothing is promised. Amounts are decimals in Currency.
type AtCapacity struct {
	Currency   string   `json:"currency"`
	PerMillion string   `json:"per_million"`
	Low        string   `json:"low,omitempty"`
	High       string   `json:"high,omitempty"`
	Offline    string   `json:"per_million_offline,omitempty"`
	Factor     *float64 `json:"factor,omitempty"` // per_million over that offline
	Prices     Quoted   `json:"prices"`
}

// AtCapacity is the cost at a capacity. SaturationRPS is the rate that the system
// serves while others wait, at which it gives its offline tokens; 0 where unknown.
// Nil by prices of tokens, which cost the same at any load, and of no capacity.
func (t *Terms) AtCapacity(c Capacity, saturationRPS float64) *AtCapacity {
	if t == nil || t.rates != nil || c.check() != nil {
		return nil
	}
	per, ok := PerMillionByHour(t.gpus, t.perHour, c.TokensPerS)
	if !ok {
		return nil
	}
	a := &AtCapacity{Currency: t.currency, PerMillion: per.Figures(), Prices: t.quoted}
	if c.Low > 0 && c.High > 0 && !c.AtLeast() {
		low, _ := per.scaled(c.RPS / c.High)
		high, _ := per.scaled(c.RPS / c.Low)
		a.Low, a.High = low.Figures(), high.Figures()
	}
	if saturationRPS > 0 {
		factor := Promise(saturationRPS, c.RPS)
		offline, _ := per.scaled(1 / factor)
		a.Offline, a.Factor = offline.Figures(), &factor
	}
	return a
}
