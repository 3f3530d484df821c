package cost

import (
	"fmt"

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
