package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"fermata/internal/conf"
)

// Options say how prices become costs. The zero value takes GPUs as busy all the
// time and failed answers as paid in full.
type Options struct {
	Capacity       Capacity `yaml:"capacity"`        // that a server of one's own has
	Utilisation    *float64 `yaml:"utilisation"`     // mean load over capacity of GPUs that are paid when idle; nil: 1
	BilledFailures *float64 `yaml:"billed_failures"` // share of an answer's price that a failed try costs; nil: 1 of tokens, nothing of hours
	Provider       string   `yaml:"provider"`        // whose prices hold where several have some for the model
}

// A Capacity is the highest load within an objective, as a document of schema
// fermata.capacity/1 has it. The zero value is none.
type Capacity struct {
	File       string  `yaml:"-"`         // that it is to be read from
	Objective  string  `yaml:"objective"` // that held
	RPS        float64 `yaml:"rps"`       // requests a second, with its interval
	Low        float64 `yaml:"low"`
	High       float64 `yaml:"high"`
	TokensPerS float64 `yaml:"tokens_per_s"` // output tokens a second at RPS
}

// CapacitySchema is the schema of documents that ReadCapacity takes.
const CapacitySchema = "fermata.capacity/1"

// UnmarshalText takes the name of a file, which Load reads.
func (c *Capacity) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errors.New("must be a file that `fermata capacity -o json` wrote")
	}
	*c = Capacity{File: string(b)}
	return nil
}

// Given says that there is one.
func (c *Capacity) Given() bool { return *c != Capacity{} }

// Load reads the file of the capacity, where it is in one.
func (c *Capacity) Load() error {
	if c.File == "" {
		return nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	read, err := ReadCapacity(data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	*c = read
	return nil
}

// ReadCapacity reads a document of schema fermata.capacity/1.
func ReadCapacity(data []byte) (Capacity, error) {
	var d struct {
		Schema    string `json:"schema"`
		Objective string `json:"objective"`
		Capacity  *struct {
			RPS        *float64 `json:"rps"`
			Low        *float64 `json:"low"`
			High       *float64 `json:"high"`
			TokensPerS *float64 `json:"tokens_per_s"`
		} `json:"capacity"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return Capacity{}, errors.New("holds several capacities: give a file with the one whose cost is wanted, of one objective and seed")
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return Capacity{}, fmt.Errorf("is no JSON: %w", err)
	}
	value := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	switch k := d.Capacity; {
	case d.Schema != CapacitySchema:
		return Capacity{}, fmt.Errorf("has the schema %q, not %s: give what `fermata capacity -o json` wrote", d.Schema, CapacitySchema)
	case k == nil || k.RPS == nil:
		return Capacity{}, errors.New("has no capacity: its search ended without one")
	case k.TokensPerS == nil:
		return Capacity{}, errors.New("does not say how many tokens a second the capacity is (capacity.tokens_per_s)")
	}
	k := d.Capacity
	c := Capacity{Objective: d.Objective, RPS: *k.RPS, Low: value(k.Low), High: value(k.High), TokensPerS: *k.TokensPerS}
	return c, c.check()
}

func (c *Capacity) check() error {
	fine := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch {
	case !fine(c.RPS) || !fine(c.TokensPerS):
		return fmt.Errorf("must be a rate above 0 with its tokens a second, not %v requests/s and %v tokens/s", c.RPS, c.TokensPerS)
	case c.Low < 0 || c.High < 0 || c.High > 0 && c.Low > c.High: // the rate may lie outside: a search's last run can contradict it
		return fmt.Errorf("has an interval from %v to %v requests/s, which is none", c.Low, c.High)
	}
	return nil
}

// Check finds everything that is wrong with the options beside the prices.
func (o *Options) Check(p *Prices) []conf.Problem {
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	given := map[string]bool{
		"capacity": o.Capacity.Given(), "utilisation": o.Utilisation != nil, "billed_failures": o.BilledFailures != nil, "provider": o.Provider != "",
	}
	for path, is := range given {
		if is && !p.Given() {
			wrong(path, "says something only beside prices: give a file of them with prices (--prices)")
		}
	}
	if u := o.Utilisation; u != nil && !(*u > 0 && *u <= 1) {
		wrong("utilisation", "must be a share above 0 and at most 1, such as 0.6, not %v", *u)
	}
	if k := o.BilledFailures; k != nil && !(*k >= 0 && *k <= 1) {
		wrong("billed_failures", "must be a share from 0 to 1 of an answer's price, not %v", *k)
	}
	if o.Capacity.Given() && o.Capacity.File == "" {
		if err := o.Capacity.check(); err != nil {
			wrong("capacity", "%v", err)
		}
	}
	if p.Tokens != nil && given["capacity"] {
		wrong("capacity", "is for prices by the hour of a GPU, and these are by the token: leave it out")
	}
	if p.Tokens != nil && given["utilisation"] {
		wrong("utilisation", "is for GPUs, which are paid when idle, and these prices are by the token: leave it out")
	}
	if p.GPU != nil && given["billed_failures"] && !given["capacity"] {
		wrong("billed_failures", "is for prices by the token, or beside a capacity: the hours of a run pay for its failures already")
	}
	if p.Models == nil && given["provider"] && p.Given() && p.File == "" {
		wrong("provider", "is for prices of several models, and these are of one server: leave it out")
	}
	return found
}
