package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"path/filepath"
	"slices"
	"strings"

	"fermata/internal/conf"
)

// catalogueCurrency is that of both catalogues.
const catalogueCurrency = "USD"

// catalogue reads the prices of a catalogue that others publish, which is told by
// its shape: litellm's model_prices_and_context_window.json (dollars a token, by
// model) or models.dev's api.json (dollars a million, by provider and model). It
// is nil for anything else. Decimals stay as they are written.
//
// What a catalogue has no price of is left out, and so is a model that costs 0
// both ways: catalogues write 0 also for what they do not know.
func catalogue(name string, data []byte) (*Prices, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil // YAML in braces, maybe; its reader says what is wrong
	}
	if _, own := all["currency"]; own {
		return nil, nil
	}
	p := &Prices{Currency: catalogueCurrency, Models: map[string]map[string]Entry{}}
	kind := ""
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch {
		case p.litellm(key, all[key]):
			kind = "litellm's catalogue"
		case p.modelsDev(key, all[key]):
			kind = "models.dev's catalogue"
		}
	}
	if kind == "" {
		return nil, nil
	}
	if len(p.Models) == 0 {
		return nil, conf.Mistakes{{File: name, Text: fmt.Sprintf("is %s without a single price of tokens", kind)}}
	}
	p.Source = kind + " (" + filepath.Base(name) + "), dated by its file"
	return p, nil
}

// litellm takes one model of litellm's; false where it does not look like one.
func (p *Prices) litellm(key string, text json.RawMessage) bool {
	var m struct {
		Provider *string     `json:"litellm_provider"`
		Input    json.Number `json:"input_cost_per_token"`
		Output   json.Number `json:"output_cost_per_token"`
	}
	if json.Unmarshal(text, &m) != nil || m.Provider == nil {
		return false
	}
	if key == "sample_spec" { // describes the others
		return true
	}
	model := strings.TrimPrefix(key, *m.Provider+"/")
	if _, twice := p.Models[*m.Provider][model]; twice && model != key {
		return true
	}
	p.add(*m.Provider, model, m.Input, m.Output, 1_000_000)
	return true
}

// modelsDev takes one provider of models.dev's; false where it does not look like
// one.
func (p *Prices) modelsDev(provider string, text json.RawMessage) bool {
	var m struct {
		Models map[string]json.RawMessage `json:"models"`
	}
	if json.Unmarshal(text, &m) != nil || m.Models == nil {
		return false
	}
	for _, model := range slices.Sorted(maps.Keys(m.Models)) {
		var one struct {
			Cost struct {
				Input  json.Number `json:"input"`
				Output json.Number `json:"output"`
			} `json:"cost"`
		}
		if json.Unmarshal(m.Models[model], &one) == nil {
			p.add(provider, model, one.Cost.Input, one.Cost.Output, 1)
		}
	}
	return true
}

// add takes the price of a model, as decimals of which so many are a million.
func (p *Prices) add(provider, model string, input, output json.Number, times int64) {
	in, ok := perMillion(input, times)
	out, ok2 := perMillion(output, times)
	if !ok || !ok2 || in.Cmp(Amount{}) == 0 && out.Cmp(Amount{}) == 0 {
		return
	}
	if p.Models[provider] == nil {
		p.Models[provider] = map[string]Entry{}
	}
	p.Models[provider][model] = Entry{Tokens: &Tokens{InputPerMillion: in.String(), OutputPerMillion: out.String()}}
}

// mostExponent is more than any price has.
const mostExponent = 40

// perMillion is so many times the number, exactly; false where there is none, or
// it is no price.
func perMillion(n json.Number, times int64) (Amount, bool) {
	if _, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok {
		if e, good := new(big.Int).SetString(strings.TrimPrefix(exponent, "+"), 10); !good || e.CmpAbs(big.NewInt(mostExponent)) > 0 {
			return Amount{}, false
		}
	}
	if n == "" || len(n) > digitsMax {
		return Amount{}, false
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok || r.Sign() < 0 {
		return Amount{}, false
	}
	a := Amount{r.Mul(r, big.NewRat(times, 1))}
	if _, err := ParseAmount(a.String()); err != nil {
		return Amount{}, false // of more digits than money has
	}
	return a, true
}
