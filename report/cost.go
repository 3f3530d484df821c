package report

import (
	"fmt"

	"fermata/cost"
	"fermata/internal/term"
	"fermata/metrics"
)

// stepWords are what the steps of a cost are called among people.
var stepWords = map[string]string{
	cost.StepList:        "list price",
	cost.StepUtilisation: "idle GPUs",
	cost.StepFailures:    "failed requests",
	cost.StepRetries:     "retries",
	cost.StepTruncation:  "truncated answers",
	cost.StepLate:        "answers that missed an objective",
	cost.StepSlow:        "slow answers",
	cost.StepCheck:       "answers that failed their check",
}

// costs say what tokens cost, from the list price to a good answer.
func costs(r *metrics.Result) block {
	c := r.Cost
	if c == nil {
		return block{}
	}
	b := block{title: "Cost"}
	if c.PerMillion != "" {
		b.fact("a million", costText(c.PerMillion, c.Low, c.High, c.Currency)+" for "+unitText(c.Unit)+" · "+basisText(c))
	}
	switch {
	case c.Good == cost.PriceOnly:
		b.fact("good", "price only: neither an objective of requests nor a check says what a good answer is")
	case c.PerMillionGood == "":
		b.fact("good", "no answer was "+c.Good)
	default:
		b.fact("a million good", costText(c.PerMillionGood, c.GoodLow, c.GoodHigh, c.Currency)+" · good: "+c.Good)
		b.fact("a good answer", shortMoney(c.PerGoodRequest)+" "+c.Currency+fmt.Sprintf(" · %s of %s answers are good", term.Count(c.GoodAnswers), term.Count(c.Answers)))
	}
	t := &table{columns: []column{{head: "from the list price to a good answer", left: true}, {head: "factor"}, {head: c.Currency + " a million"}}}
	for i, s := range c.Steps {
		factor, value := term.None, moneyOrNone(s.Value)
		if s.Factor != nil {
			factor = fmt.Sprintf("× %.4g", *s.Factor)
		}
		if i == 0 {
			factor = ""
		}
		t.rows = append(t.rows, []cell{text(orText(stepWords[s.Name], s.Name)), text(factor), text(value)})
	}
	b.table = t
	b.fact("prices", quotedText(&c.Prices, c.Currency))
	return b
}

// quotedText says what the prices are and where they are from.
func quotedText(q *cost.Quoted, currency string) string {
	price := ""
	switch {
	case q.GPU != nil:
		price = fmt.Sprintf("%d GPU at %s %s an hour", q.GPU.Count, q.GPU.PerHour, currency)
	case q.Tokens != nil:
		price = fmt.Sprintf("%s in, %s out, %s a million", q.Tokens.InputPerMillion, q.Tokens.OutputPerMillion, currency)
	}
	sum := ""
	if len(q.SHA256) > 12 {
		sum = "sha256 " + q.SHA256[:12] + "…"
	}
	return joined(" · ", price, "of "+term.Plain(q.Date), term.Plain(q.Source), sum)
}

func costText(value, low, high, currency string) string {
	text := shortMoney(value)
	if low != "" && high != "" {
		text += " [" + shortMoney(low) + "–" + shortMoney(high) + "]"
	}
	return text + " " + currency
}

// shortMoney is an amount of a document as people read it.
func shortMoney(text string) string {
	a, err := cost.ParseAmount(text)
	if err != nil {
		return term.Plain(text)
	}
	return a.Short()
}

func unitText(unit string) string {
	if unit == cost.AllTokens {
		return "input and output tokens as they were mixed"
	}
	return "output tokens"
}

// basisText says what the price rests on.
func basisText(c *cost.Statement) string {
	at := ""
	if c.TokensPerS != nil {
		at = term.Number(*c.TokensPerS, false) + " tokens/s"
	}
	switch c.Basis {
	case cost.ByToken:
		return fmt.Sprintf("by the token, %s input and %s output", term.Count(c.InputTokens), term.Count(c.OutputTokens))
	case cost.ByCapacity:
		return joined(" · ", "at the capacity of "+term.Number(c.Capacity.RPS, false)+" requests/s", at, term.Plain(c.Capacity.Objective))
	case cost.ByOffline:
		return joined(" · ", "offline: everything there at once, no objective", at)
	case cost.ByLoop:
		return joined(" · ", "at the concurrency that was asked for, not at a capacity", at)
	}
	return joined(" · ", "at the rate that was offered, not at a capacity", at)
}
