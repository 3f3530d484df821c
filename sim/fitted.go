package sim

import (
	"fmt"
	"math"
	"os"

	"fermata/internal/conf"
)

// Fitted is a cost from measured coefficients, in the form that DistServe's
// simulator fits for a model and a number of GPUs (Zhong et al., OSDI 2024).
// Prefill of prompts of P tokens takes A + B·ΣP + C·ΣP²; decoding takes
// A + B·Σcontext + C·sequences, with other coefficients above a number of
// sequences. A batch of both takes the sum less one A, the smaller. A chunk of q tokens
// after s counts q and (s+q)² − s², so that the chunks of a prompt sum to it.
type Fitted struct {
	Prefill Coefficients `yaml:"prefill"`
	Decode  Coefficients `yaml:"decode"`
	Above   *Above       `yaml:"above"`
}

// Coefficients are nanoseconds, fractions allowed.
type Coefficients struct {
	A float64 `yaml:"a_ns,zero"`
	B float64 `yaml:"b_ns,zero"`
	C float64 `yaml:"c_ns,zero"`
}

// Above is what decoding takes in larger batches.
type Above struct {
	Sequences int          `yaml:"sequences"` // more than these
	Decode    Coefficients `yaml:"decode"`
}

// ReadFitted reads the coefficients of a Fitted from a YAML file.
func ReadFitted(path string) (*Fitted, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading coefficients: %w", err)
	}
	f := &Fitted{}
	doc, _ := conf.Read(path, data, f)
	doc.Report("", f.check())
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Fitted) check() []conf.Problem {
	c := &check{}
	all := map[string]Coefficients{"prefill": f.Prefill, "decode": f.Decode}
	if f.Above != nil {
		all["above.decode"] = f.Above.Decode
		c.atLeast("above.sequences", f.Above.Sequences, 1)
	}
	for _, path := range []string{"prefill", "decode", "above.decode"} {
		k := all[path]
		c.within(path+".a_ns", k.A, 0, 1e12)
		c.within(path+".b_ns", k.B, 0, 1e9)
		c.within(path+".c_ns", k.C, 0, 1e9)
	}
	if f.Prefill == (Coefficients{}) {
		c.add("prefill", "is missing: give {a_ns, b_ns, c_ns}, b_ns for a token and c_ns for a token squared")
	}
	if f.Decode == (Coefficients{}) {
		c.add("decode", "is missing: give {a_ns, b_ns, c_ns}, b_ns for a token of context and c_ns for a sequence")
	}
	return c.problems
}

// Iteration implements Cost.
func (f *Fitted) Iteration(b *Batch) int64 {
	decode := &f.Decode
	if f.Above != nil && b.Decodes > f.Above.Sequences {
		decode = &f.Above.Decode
	}
	ns := 0.0
	if len(b.Chunks) > 0 {
		var tokens, squares int64
		for i := range b.Chunks {
			q, s := int64(b.Chunks[i].Tokens), int64(b.Chunks[i].Cached)
			tokens += q
			squares += q * (q + 2*s)
		}
		ns = f.Prefill.A + float64(f.Prefill.B*float64(tokens)) + float64(f.Prefill.C*float64(squares))
	}
	if b.Decodes > 0 {
		ns += decode.A + float64(decode.B*float64(b.Context)) + float64(decode.C*float64(b.Query))
		if len(b.Chunks) > 0 {
			ns -= min(decode.A, f.Prefill.A)
		}
	}
	return int64(math.Round(ns))
}
