package cost

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"fermata/internal/stats"
)

// Terms are the prices that hold for a run. Terms makes them.
type Terms struct {
	options  Options
	currency string
	quoted   Quoted
	rates    map[string]Rate // by target; nil where hours are paid
	gpus     int
	perHour  Amount
}

// Terms are the prices that hold for the models of some targets, by the target's
// name, which also chooses among providers where Options do not. A model without a
// price is an error: what it costs is not known.
func (p *Prices) Terms(models map[string]string, o Options) (*Terms, error) {
	t := &Terms{options: o, currency: p.Currency, quoted: Quoted{Date: p.Date, Source: p.Source, SHA256: p.SHA256}}
	var entries []Entry
	rates := map[string]Rate{}
	for _, target := range slices.Sorted(maps.Keys(models)) {
		e := Entry{GPU: p.GPU, Tokens: p.Tokens}
		if p.Models != nil {
			var err error
			if e, err = p.entry(cmp.Or(o.Provider, target), models[target]); err != nil {
				return nil, err
			}
		}
		entries = append(entries, e)
		if e.Tokens != nil {
			r, err := e.Tokens.rate()
			if err != nil {
				return nil, err
			}
			rates[target] = r
		}
	}
	first := entries[0]
	for _, e := range entries[1:] {
		if e.GPU != nil || first.GPU != nil {
			if p.Models != nil {
				return nil, errMixedHours
			}
		}
	}
	if first.GPU != nil {
		perHour, err := ParseAmount(first.GPU.PerHour)
		if err != nil {
			return nil, err
		}
		t.gpus, t.perHour, t.quoted.GPU = first.GPU.Count, perHour, first.GPU
		return t, nil
	}
	t.rates = rates
	if !slices.ContainsFunc(entries, func(e Entry) bool { return *e.Tokens != *first.Tokens }) {
		t.quoted.Tokens = first.Tokens
	}
	return t, nil
}

// Judged says by what the answers of a run are judged.
type Judged struct{ InTime, Slow, Check, Truncation bool }

// An Answer is one measured request with what became of it.
type Answer struct {
	Target        string
	EarlierTries  int64
	Answered      bool  // the server ended it well, whatever it is worth
	Input, Output int64 // tokens
	InputKnown    bool

	Truncated, Late, Slow, Wrong bool
}

// An Account counts what the answers of a run cost and are worth.
type Account struct {
	terms  *Terms
	judged Judged

	requests, answers, tries, good int64
	unknown                        int64 // answers whose prompts nobody knows the length of
	tokens                         map[string]*[2]int64
	input, output                  int64
	left                           [4]int64 // tokens after truncation, late, slow and check
	batches                        batches
}

// Account begins to count.
func (t *Terms) Account(j Judged) *Account {
	return &Account{terms: t, judged: j, tokens: map[string]*[2]int64{}}
}

// Add takes an answer in.
func (a *Account) Add(x Answer) {
	a.requests++
	a.tries += 1 + x.EarlierTries
	one := batch{tries: float64(1 + x.EarlierTries)}
	defer func() { a.batches.add(one) }()
	if !x.Answered {
		return
	}
	byToken := a.terms.rates != nil
	if byToken && !x.InputKnown {
		a.unknown++
		return
	}
	a.answers++
	a.input, a.output = a.input+x.Input, a.output+x.Output
	if a.tokens[x.Target] == nil {
		a.tokens[x.Target] = &[2]int64{}
	}
	a.tokens[x.Target][0] += x.Input
	a.tokens[x.Target][1] += x.Output
	units, cost := x.Output, float64(x.Output)
	if byToken {
		units, cost = x.Input+x.Output, a.terms.rates[x.Target].Of(x.Input, x.Output).Float()
	}
	one.answers, one.cost, one.units = 1, cost, float64(units)
	for i, bad := range [...]bool{x.Truncated, x.Late, x.Slow, x.Wrong} {
		if bad {
			return
		}
		a.left[i] += units
	}
	a.good++
	one.good = float64(units)
}

// Under is the load that an account's answers came under.
type Under struct {
	Basis      string   // one of ByOffline, ByRate and ByLoop
	TokensPerS *float64 // output tokens of finished answers a second; nil where unknown
}

// Statement sums the account up. Without an answer, or where no token came, it
// has no amounts.
func (a *Account) Statement(u Under) *Statement {
	t := a.terms
	s := &Statement{
		Currency: t.currency, Basis: ByToken, Unit: AllTokens, Level: stats.Level, Prices: t.quoted, Steps: []Step{},
		InputTokens: a.input, OutputTokens: a.output, Answers: a.answers, GoodAnswers: a.good, Unknown: a.unknown, Good: a.judged.good(),
	}
	list, ok := a.list(s, u)
	if !ok {
		return s
	}
	s.PerMillion = list.Figures()
	spread := a.batches.spread()
	capacityLow, capacityHigh := a.interval(s, list, spread)
	w := waterfall{value: list.Float(), exact: &list}
	w.step(StepList, 1)
	a.walk(&w, s)
	s.Steps = w.steps
	if s.Good == PriceOnly || !w.finite() || a.good == 0 {
		return s
	}
	good, _ := list.scaled(w.value / list.Float())
	if list.Float() <= 0 {
		good = Amount{}
	}
	s.PerMillionGood = good.Figures()
	perRequest, _ := good.scaled(float64(a.left[3]) / float64(a.good) / 1e6)
	s.PerGoodRequest = perRequest.Figures()
	kappa, _ := t.kappa()
	if half, ok := spread.good(kappa); ok && capacityLow > 0 && capacityHigh > 0 {
		// A capacity's interval may lie beside its rate, so it is added around its middle.
		middle := math.Log(capacityLow*capacityHigh) / 2
		half = math.Hypot(half, math.Log(capacityHigh/capacityLow)/2)
		low, _ := good.scaled(math.Exp(middle - half))
		high, _ := good.scaled(math.Exp(middle + half))
		s.GoodLow, s.GoodHigh = low.Figures(), high.Figures()
	}
	return s
}

// good is what good answers are.
func (j Judged) good() string {
	switch timed := j.InTime || j.Slow; {
	case timed && j.Check:
		return InTimeRight
	case timed:
		return InTime
	case j.Check:
		return Right
	}
	return PriceOnly
}

// list is the price of a million tokens before anything went wrong.
func (a *Account) list(s *Statement, u Under) (Amount, bool) {
	t := a.terms
	if t.rates != nil {
		var total Amount
		for target, n := range a.tokens {
			total = total.Plus(t.rates[target].Of(n[0], n[1]))
		}
		return PerMillion(total, a.input+a.output)
	}
	s.Unit, s.Basis = OutputTokens, u.Basis
	if c := t.options.Capacity; c.Given() {
		s.Basis, s.TokensPerS = ByCapacity, &c.TokensPerS
		s.Capacity = &Promised{Objective: c.Objective, RPS: c.RPS, Low: positive(c.Low), High: positive(c.High)}
	} else {
		s.TokensPerS = u.TokensPerS
	}
	if s.TokensPerS == nil {
		return Amount{}, false
	}
	return PerMillionByHour(t.gpus, t.perHour, *s.TokensPerS)
}

func positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
}

// interval writes the interval of the list price: of a capacity its transformed
// ends, of prices by the token that of the mix. It returns the factors to the
// ends that belong to a capacity; 1 and 1 where the list price is no capacity's.
// Of a capacity that is only known to be at least so high there is none: 0 and 0.
// At a rate that was merely offered an interval would tell the noise of arrivals,
// so there is none, and none of good tokens: 0 and 0.
func (a *Account) interval(s *Statement, list Amount, spread spread) (low, high float64) {
	ends := func(down, up float64) {
		l, _ := list.scaled(down)
		h, _ := list.scaled(up)
		s.Low, s.High = l.Figures(), h.Figures()
	}
	switch {
	case s.Basis == ByToken:
		if half, ok := spread.list(); ok {
			ends(math.Exp(-half), math.Exp(half))
		}
		return 1, 1
	case s.Capacity == nil || s.Capacity.Low == nil || s.Capacity.High == nil || a.terms.options.Capacity.AtLeast():
		return 0, 0
	}
	low, high = s.Capacity.RPS / *s.Capacity.High, s.Capacity.RPS / *s.Capacity.Low
	ends(low, high)
	return low, high
}

// walk goes from the list price to that of good answers.
func (a *Account) walk(w *waterfall, s *Statement) {
	t := a.terms
	if t.rates == nil {
		if u := t.options.Utilisation; u != nil {
			s.Utilisation = u
			w.step(StepUtilisation, 1 / *u)
		}
	}
	if kappa, ok := t.kappa(); ok && a.requests > 0 {
		s.BilledFailures = &kappa
		answered := float64(a.answers + a.unknown)
		failed := float64(a.requests) - answered
		earlier := float64(a.tries - a.requests)
		f := Retries(failed/float64(a.requests), kappa)
		w.step(StepFailures, f)
		if earlier > 0 {
			w.step(StepRetries, Retries((failed+earlier)/float64(a.tries), kappa)/f)
		}
	}
	before := a.output
	if t.rates != nil {
		before += a.input
	}
	for i, one := range []struct {
		name string
		is   bool
	}{{StepTruncation, a.judged.Truncation}, {StepLate, a.judged.InTime}, {StepSlow, a.judged.Slow}, {StepCheck, a.judged.Check}} {
		if one.is {
			w.step(one.name, Promise(float64(before), float64(a.left[i])))
		}
		before = a.left[i]
	}
}

// kappa is the share of an answer's price that a failed try costs; false where
// hours pay for failures already.
func (t *Terms) kappa() (float64, bool) {
	switch k := t.options.BilledFailures; {
	case k != nil:
		return *k, true
	case t.rates != nil:
		return 1, true
	}
	return 0, false
}

// A waterfall goes down from the list price.
type waterfall struct {
	value float64
	exact *Amount // the list price
	steps []Step
}

func (w *waterfall) finite() bool { return !math.IsInf(w.value, 0) && !math.IsNaN(w.value) }

func (w *waterfall) step(name string, factor float64) {
	w.value *= factor
	s := Step{Name: name}
	if !math.IsInf(factor, 0) && !math.IsNaN(factor) {
		s.Factor = &factor
	}
	if w.finite() {
		if list := w.exact.Float(); list > 0 {
			v, _ := w.exact.scaled(w.value / list)
			s.Value = v.Figures()
		} else {
			s.Value = Amount{}.Figures()
		}
	}
	w.steps = append(w.steps, s)
}
