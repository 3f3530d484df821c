// Package cost is about money: what tokens cost, exactly. It takes numbers and
// knows no recording.
package cost

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
	SHA256   string                      `yaml:"sha256"`   // of the file that they were read from, in hex; Load fills it in
	GPU      *GPU                        `yaml:"gpu"`      // of a server of one's own
	Tokens   *Tokens                     `yaml:"tokens"`   // of a server that is paid for by the token
	Models   map[string]map[string]Entry `yaml:"models"`   // by provider and model
}

// An Entry prices one model of one provider.
type Entry struct {
	GPU     *GPU    `yaml:"gpu"`
	Tokens  *Tokens `yaml:"tokens"`
	Unknown bool    `yaml:"unknown"` // there is no price: what Only says of a model that was asked for
}

// GPU prices a server by its hours.
type GPU struct {
	Count   int    `yaml:"count" json:"count"`       // GPUs
	PerHour string `yaml:"per_hour" json:"per_hour"` // for one
}

// Tokens prices a server by its tokens.
type Tokens struct {
	InputPerMillion  string `yaml:"input_per_million" json:"input_per_million"`
	OutputPerMillion string `yaml:"output_per_million" json:"output_per_million"`
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
	if err != nil {
		return err
	}
	if read.Date == "" { // a catalogue says nothing of its day
		info, err := os.Stat(p.File)
		if err != nil {
			return err
		}
		read.Date = info.ModTime().UTC().Format(time.DateOnly)
	}
	*p = *read
	return nil
}

// Read reads a file of prices, or one of the catalogues that others publish (see
// catalogue), which leaves Date empty. The error is nil or conf.Mistakes.
func Read(name string, data []byte) (*Prices, error) {
	sum := sha256.Sum256(data)
	read, err := catalogue(name, data)
	if read == nil && err == nil {
		read, err = readOwn(name, data)
	}
	if err == nil {
		read.SHA256 = hex.EncodeToString(sum[:])
	}
	return read, err
}

// readOwn reads a file of prices as this package has them.
func readOwn(name string, data []byte) (*Prices, error) {
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
			if (e.GPU == nil) == (e.Tokens == nil) && !e.Unknown {
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

// errMixedHours is why hours of several models are not added up.
var errMixedHours = errors.New("the targets are paid by the hour each for itself: run them one by one")

// ByModel says that what tokens cost depends on the model.
func (p *Prices) ByModel() bool { return p.Models != nil }

// Rate is what the tokens of a model cost, at a provider where the name is known
// to several. A price that is not there is an error, and so are prices by the
// hour.
func (p *Prices) Rate(provider, model string) (Rate, error) {
	e := Entry{GPU: p.GPU, Tokens: p.Tokens}
	if p.Models != nil {
		var err error
		if e, err = p.entry(provider, model); err != nil {
			return Rate{}, err
		}
	}
	if e.Tokens == nil {
		return Rate{}, ErrHourly
	}
	return e.Tokens.rate()
}

func (t *Tokens) rate() (Rate, error) {
	input, err1 := ParseAmount(t.InputPerMillion)
	output, err2 := ParseAmount(t.OutputPerMillion)
	return Rate{input, output}, cmp.Or(err1, err2)
}

// entry is the price of a model. Where several providers have it, provider names
// one; a model may also be written PROVIDER/MODEL.
func (p *Prices) entry(provider, model string) (Entry, error) {
	at := p.providers(model)
	if before, after, ok := strings.Cut(model, "/"); ok && len(at) == 0 {
		if e, ok := p.Models[before][after]; ok {
			return e, e.known(model)
		}
	}
	switch {
	case len(at) == 0:
		return Entry{}, fmt.Errorf("there is no price for model %q; there are prices for %s", model, p.few())
	case len(at) == 1:
		e := p.Models[at[0]][model]
		return e, e.known(model)
	case slices.Contains(at, provider):
		e := p.Models[provider][model]
		return e, e.known(model)
	}
	return Entry{}, fmt.Errorf("%s have prices for model %q; name one of them with --provider (judge.provider), or leave the one that is asked", listed(at), model)
}

func (e Entry) known(model string) error {
	if e.Unknown {
		return fmt.Errorf("there is no price for model %q", model)
	}
	return nil
}

// CheckProvider is the error of a provider that the prices do not know; nil without
// one, and for prices that are not by provider.
func (p *Prices) CheckProvider(name string) error {
	if _, known := p.Models[name]; known || name == "" || p.Models == nil {
		return nil
	}
	return fmt.Errorf("is %q, of which there is no price; there are prices of %s", name, listedWith(slices.Sorted(maps.Keys(p.Models)), ", "))
}

// providers have a price for the model, in order.
func (p *Prices) providers(model string) []string {
	var at []string
	for _, one := range slices.Sorted(maps.Keys(p.Models)) {
		if _, ok := p.Models[one][model]; ok {
			at = append(at, one)
		}
	}
	return at
}

// mostListed bounds the names in an error: a catalogue has thousands.
const mostListed = 12

func (p *Prices) count() (n int) {
	for _, models := range p.Models {
		n += len(models)
	}
	return n
}

// few are the models that there are prices for.
func (p *Prices) few() string {
	var known []string
	for _, models := range p.Models {
		known = slices.AppendSeq(known, maps.Keys(models))
	}
	slices.Sort(known)
	return listedWith(slices.Compact(known), ", ")
}

func listed(names []string) string { return listedWith(names, " and ") }

func listedWith(names []string, last string) string {
	if len(names) > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
	}
	if last == ", " || len(names) < 2 {
		return strings.Join(names, ", ")
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + last + names[n]
}

// Only leaves the prices of the models, so that a run file is not a catalogue. A
// model without a price is kept as one that has none; a short list then stays whole,
// which tells what there are prices for.
func (p *Prices) Only(models ...string) {
	if p.Models == nil {
		return
	}
	kept := map[string]map[string]Entry{}
	keep := func(provider, model string, e Entry) {
		if kept[provider] == nil {
			kept[provider] = map[string]Entry{}
		}
		kept[provider][model] = e
	}
	for _, model := range models {
		found := false
		for _, one := range p.providers(model) {
			keep(one, model, p.Models[one][model])
			found = true
		}
		before, after, _ := strings.Cut(model, "/")
		if e, ok := p.Models[before][after]; ok && !found {
			keep(before, after, e)
			found = true
		}
		if !found && p.count() <= mostListed {
			return
		}
		if !found {
			keep("unknown", model, Entry{Unknown: true})
		}
	}
	p.Models = kept
}
