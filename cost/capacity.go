package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
)

// A Capacity is the highest load within an objective, as a document of schema
// fermata.capacity/1 has it. The zero value is none.
type Capacity struct {
	File       string   `yaml:"-"`         // that it is to be read from
	Objective  string   `yaml:"objective"` // that held
	Target     string   `yaml:"target"`    // whose it is: the server and its model, or what was simulated; empty where nobody said
	RPS        float64  `yaml:"rps"`       // requests a second, with its interval
	Low        float64  `yaml:"low"`
	High       float64  `yaml:"high"`
	TokensPerS float64  `yaml:"tokens_per_s"` // output tokens a second at RPS
	Caveats    []string `yaml:"caveats"`      // why it is less than it says: those of Caveats, and codes of its search's warnings
}

// Caveats of a Capacity that are no codes of warnings, or that are asked for.
const (
	CaveatRough       = "rough"        // searched for to over 10 %
	CaveatClientBound = "client_bound" // whoever asked was the bottleneck
	CaveatLowerBound  = "never_missed" // nothing missed: the capacity is at least that
	CaveatUnsteady    = "unsteady"     // requests piled up at that rate
	caveatNotHeld     = "not_bracketed"
)

// harmless are codes of a search's warnings that take nothing from its rate.
var harmless = []string{"no_interval", "saturation_limited", "saturation_guessed", "turned_away"}

// CapacitySchema is the schema of documents that ReadCapacities takes.
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
func (c *Capacity) Given() bool { return !reflect.ValueOf(*c).IsZero() }

// AtLeast says that the true capacity may be any higher.
func (c *Capacity) AtLeast() bool { return slices.Contains(c.Caveats, CaveatLowerBound) }

// Load reads the file of the capacity, where it is in one. Of several in it, it
// takes the one under an objective that is wanted.
func (c *Capacity) Load(wanted func(objective string) bool) error {
	if c.File == "" {
		return nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	read, err := ReadCapacity(data, wanted)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	*c = read
	return nil
}

// A capacityDocument is what a capacity's document says that matters to its cost.
type capacityDocument struct {
	Schema    string `json:"schema"`
	Objective string `json:"objective"`
	Target    string `json:"target"`
	Capacity  *struct {
		RPS        *float64 `json:"rps"`
		Low        *float64 `json:"low"`
		High       *float64 `json:"high"`
		TokensPerS *float64 `json:"tokens_per_s"`
	} `json:"capacity"`
	Ending      string `json:"ending"`
	Rough       bool   `json:"rough"`
	ClientBound bool   `json:"client_bound"`
	Held        *struct {
		Drift *struct {
			Unsteady bool `json:"unsteady"`
		} `json:"drift"`
	} `json:"held"`
	Warnings []struct {
		Code string `json:"code"`
	} `json:"warnings"`
}

// ReadCapacity reads a document of schema fermata.capacity/1, or of an array of them
// the one under an objective that is wanted.
func ReadCapacity(data []byte, wanted func(objective string) bool) (Capacity, error) {
	if !json.Valid(data) {
		return Capacity{}, errors.New("is no JSON: give what `fermata capacity -o json` wrote")
	}
	var one capacityDocument
	if err := json.Unmarshal(data, &one); err == nil {
		return one.read()
	}
	var all []capacityDocument
	if err := json.Unmarshal(data, &all); err != nil {
		return Capacity{}, errors.New("is not what `fermata capacity -o json` wrote")
	}
	d, err := chosen(all, wanted)
	if err != nil {
		return Capacity{}, err
	}
	return d.read()
}

// chosen is the one of several that is wanted.
func chosen(all []capacityDocument, wanted func(string) bool) (*capacityDocument, error) {
	var fit []*capacityDocument
	var names, fitting []string
	note := func(names *[]string, name string) {
		if !slices.Contains(*names, name) {
			*names = append(*names, name)
		}
	}
	for i := range all {
		note(&names, fmt.Sprintf("%q", all[i].Objective))
		if wanted != nil && wanted(all[i].Objective) {
			fit = append(fit, &all[i])
			note(&fitting, fmt.Sprintf("%q", all[i].Objective))
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("is an empty list: give what `fermata capacity -o json` wrote")
	case len(all) == 1:
		return &all[0], nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) == 0 && len(names) > 1:
		return nil, fmt.Errorf("holds capacities under %s, and the run has none of these objectives: judge it by one of them with --slo, or give a file of one search", strings.Join(names, ", "))
	case len(fitting) > 1:
		return nil, fmt.Errorf("holds capacities under several objectives of the run, %s: judge it by one of them with --slo", strings.Join(fitting, ", "))
	}
	return nil, fmt.Errorf("holds %d capacities under %s, of several seeds: give a file of one search", max(len(fit), len(all)/len(names)), append(fitting, names...)[0])
}

// read is the capacity of a document.
func (d *capacityDocument) read() (Capacity, error) {
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
	c := Capacity{
		Objective: d.Objective, Target: d.Target, RPS: *k.RPS, Low: value(k.Low), High: value(k.High),
		TokensPerS: *k.TokensPerS, Caveats: d.caveats(),
	}
	return c, c.check()
}

// caveats are why the capacity is less than it says.
func (d *capacityDocument) caveats() []string {
	var all []string
	add := func(code string, is bool) {
		if is && !slices.Contains(all, code) {
			all = append(all, code)
		}
	}
	add(CaveatRough, d.Rough)
	add(CaveatClientBound, d.ClientBound)
	add(CaveatLowerBound, d.Ending == CaveatLowerBound)
	add(caveatNotHeld, d.Ending == caveatNotHeld)
	add(CaveatUnsteady, d.Held != nil && d.Held.Drift != nil && d.Held.Drift.Unsteady)
	for _, w := range d.Warnings {
		add(w.Code, w.Code != "" && !slices.Contains(harmless, w.Code))
	}
	return all
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
