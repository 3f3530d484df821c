// Package cost is about money: what tokens cost, exactly. It takes numbers and
// knows no recording.
package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
)

// Prices are what a server's tokens or hours cost, as a file says it or a run
// file. Of GPU, Tokens and Models one is given. Without a currency there are none.
type Prices struct {
	File     string                      `yaml:"-"`        // that they are to be read from
	Currency string                      `yaml:"currency"` // such as USD
	Date     string                      `yaml:"date"`     // of the prices, such as 2026-08-01
	Source   string                      `yaml:"source"`   // where they come from
	GPU      *GPU                        `yaml:"gpu"`      // of a server of one's own
	Tokens   *Tokens                     `yaml:"tokens"`   // of a server that is paid for by the token
	Models   map[string]map[string]Entry `yaml:"models"`   // by provider and model
}

// An Entry prices one model of one provider.
type Entry struct {
	GPU    *GPU    `yaml:"gpu"`
	Tokens *Tokens `yaml:"tokens"`
}

// GPU prices a server by its hours.
type GPU struct {
	Count   int    `yaml:"count"`    // GPUs
	PerHour string `yaml:"per_hour"` // for one
}

// Tokens prices a server by its tokens.
type Tokens struct {
	InputPerMillion  string `yaml:"input_per_million"`
	OutputPerMillion string `yaml:"output_per_million"`
}

// UnmarshalText takes the name of a file of prices, which Load reads.
func (p *Prices) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("must be a file of prices, or prices themselves")
	}
	*p = Prices{File: string(b)}
	return nil
}

// Given says that there are prices.
func (p *Prices) Given() bool {
	return p.File != "" || p.Currency != "" || p.GPU != nil || p.Tokens != nil || p.Models != nil
}

// Load reads the file of prices, where they are in one. The error is nil, the
// file's or conf.Mistakes.
func (p *Prices) Load() error {
	if p.File == "" {
		return nil
	}
	data, err := os.ReadFile(p.File)
	if err != nil {
		return err
	}
	read, err := Read(p.File, data)
	if err == nil {
		*p = *read
	}
	return err
}

// Read reads a file of prices. The error is nil or conf.Mistakes.
func Read(name string, data []byte) (*Prices, error) {
	// Plain has the fields alone: inside a file no other file is named.
	type plain Prices
	p := &plain{}
	doc, _ := conf.Read(name, data, p)
	prices := (*Prices)(p)
	doc.Report("", prices.Check())
	return prices, doc.Err()
}

// Check finds everything that is wrong with prices that are not in a file.
func (p *Prices) Check() []conf.Problem {
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	if len(p.Currency) != 3 || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		wrong("currency", "must be three capital letters such as USD, not %q", p.Currency)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		wrong("date", "must be the day of the prices, such as 2026-08-01, not %q", p.Date)
	}
	if p.Source == "" {
		wrong("source", "must say where the prices come from")
	}
	given := 0
	for _, is := range []bool{p.GPU != nil, p.Tokens != nil, p.Models != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		wrong("", "needs one of gpu, tokens and models, and has %d", given)
	}
	check(p.GPU, p.Tokens, "", wrong)
	for _, provider := range slices.Sorted(maps.Keys(p.Models)) {
		for _, model := range slices.Sorted(maps.Keys(p.Models[provider])) {
			e, path := p.Models[provider][model], "models."+provider+"."+model
			if (e.GPU == nil) == (e.Tokens == nil) {
				wrong(path, "needs one of gpu and tokens")
			}
			check(e.GPU, e.Tokens, path+".", wrong)
		}
	}
	return found
}

func check(g *GPU, t *Tokens, under string, wrong func(path, format string, args ...any)) {
	amount := func(path, text string) {
		if _, err := ParseAmount(text); err != nil {
			wrong(under+path, "%v", err)
		}
	}
	if g != nil {
		if g.Count < 1 {
			wrong(under+"gpu.count", "must be 1 or more, not %d", g.Count)
		}
		amount("gpu.per_hour", g.PerHour)
	}
	if t != nil {
		amount("tokens.input_per_million", t.InputPerMillion)
		amount("tokens.output_per_million", t.OutputPerMillion)
	}
}

// A Rate is what tokens cost.
type Rate struct{ input, output Amount } // a million

// Of is what so many tokens cost.
func (r Rate) Of(input, output int64) Amount {
	return r.input.millionths(input).Plus(r.output.millionths(output))
}

// ErrHourly is why prices by the hour say nothing of what a token costs.
var ErrHourly = errors.New("the prices are by the hour of a GPU, not by the token")

// ByModel says that what tokens cost depends on the model.
func (p *Prices) ByModel() bool { return p.Models != nil }

// Rate is what the tokens of a model cost, at a provider where the name is known
// to several. A price that is not there is an error, and so are prices by the
// hour.
func (p *Prices) Rate(provider, model string) (Rate, error) {
	e := Entry{p.GPU, p.Tokens}
	if p.Models != nil {
		var err error
		if e, err = p.entry(provider, model); err != nil {
			return Rate{}, err
		}
	}
	if e.Tokens == nil {
		return Rate{}, ErrHourly
	}
	input, err1 := ParseAmount(e.Tokens.InputPerMillion)
	output, err2 := ParseAmount(e.Tokens.OutputPerMillion)
	return Rate{input, output}, cmp.Or(err1, err2)
}

func (p *Prices) entry(provider, model string) (Entry, error) {
	var at, known []string
	for _, one := range slices.Sorted(maps.Keys(p.Models)) {
		if _, ok := p.Models[one][model]; ok {
			at = append(at, one)
		}
		known = slices.AppendSeq(known, maps.Keys(p.Models[one]))
	}
	slices.Sort(known)
	switch {
	case len(at) == 0:
		return Entry{}, fmt.Errorf("there is no price for model %q; there are prices for %s", model, strings.Join(slices.Compact(known), ", "))
	case len(at) == 1:
		return p.Models[at[0]][model], nil
	case slices.Contains(at, provider):
		return p.Models[provider][model], nil
	}
	return Entry{}, fmt.Errorf("%s have prices for model %q; leave the one that is asked", strings.Join(at, " and "), model)
}
