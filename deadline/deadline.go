// Package deadline says when a token is due. It gives deadlines and never plays
// anything back against them.
package deadline

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// Deadlines are first-token deadlines: how long after its due time a request may
// wait for its first token, given the length of its prompt. Parse makes them.
type Deadlines struct {
	text, shape string
	// a + b·P + c·P², in ns over scale.
	a, b, c, scale uint64
}

// shapes are the forms that Parse knows, with how many coefficients each has.
var shapes = []struct {
	name, example string
	coefficients  int
}{
	{"fixed", "fixed:300ms", 1},
	{"linear", "linear:50ms,40us", 2},
	{"quadratic", "quadratic:50ms,40us,1ns", 3},
}

// Parse reads deadlines: fixed:300ms, the same for every prompt; linear:50ms,40us,
// a + b·P; or quadratic:50ms,40us,1ns, a + b·P + c·P², for a prompt of P tokens.
// Coefficients are decimal durations, a token and a token squared, fractions of a
// nanosecond allowed, none negative.
func Parse(s string) (*Deadlines, error) {
	name, list, _ := strings.Cut(s, ":")
	for _, shape := range shapes {
		if shape.name != name {
			continue
		}
		parts := strings.Split(list, ",")
		if list == "" || len(parts) != shape.coefficients {
			return nil, fmt.Errorf("reading deadlines %q: %s takes %s, write %s", s, name, count(shape.coefficients), shape.example)
		}
		d := &Deadlines{text: s, shape: name}
		if err := d.set(parts); err != nil {
			return nil, fmt.Errorf("reading deadlines %q: %w", s, err)
		}
		return d, nil
	}
	return nil, fmt.Errorf("reading deadlines %q: the known forms are fixed:300ms, linear:50ms,40us and quadratic:50ms,40us,1ns (a + b·P + c·P² for a prompt of P tokens)", s)
}

func count(n int) string {
	if n == 1 {
		return "one duration"
	}
	return fmt.Sprintf("%d durations with commas between them", n)
}

// maxCoefficient bounds coefficients and their common scale, so that First needs
// no more than 128 bits.
var maxCoefficient = new(big.Int).SetUint64(math.MaxInt64)

func (d *Deadlines) set(parts []string) error {
	var values [3]*big.Rat
	scale := big.NewInt(1)
	for i := range values {
		values[i] = new(big.Rat)
		if i < len(parts) {
			v, err := duration(strings.TrimSpace(parts[i]))
			if err != nil {
				return err
			}
			values[i] = v
		}
		// Least common multiple of the denominators.
		gcd := new(big.Int).GCD(nil, nil, scale, values[i].Denom())
		scale.Mul(scale, new(big.Int).Quo(values[i].Denom(), gcd))
	}
	out := []*uint64{&d.a, &d.b, &d.c}
	for i, v := range values {
		n := new(big.Int).Mul(v.Num(), scale)
		n.Quo(n, v.Denom())
		if n.Cmp(maxCoefficient) > 0 || scale.Cmp(maxCoefficient) > 0 {
			return fmt.Errorf("%s is too large, or written with too many decimals", strings.TrimSpace(parts[min(i, len(parts)-1)]))
		}
		*out[i] = n.Uint64()
	}
	d.scale = scale.Uint64()
	return nil
}

var units = []struct {
	name string
	ns   int64
}{
	{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9},
}

// duration reads a decimal duration such as 40us or 0.5ns, exactly, in ns.
func duration(s string) (*big.Rat, error) {
	number := strings.TrimRight(s, "nuµμms")
	unit := s[len(number):]
	if s == "0" {
		return new(big.Rat), nil
	}
	if strings.HasPrefix(number, "-") {
		return nil, fmt.Errorf("%s is negative", s)
	}
	if number == "" || len(number) > 40 || strings.Trim(number, "0123456789.") != "" || strings.Count(number, ".") > 1 || number == "." {
		return nil, fmt.Errorf("%q is no duration, write it as 300ms, 40us or 0.5ns", s)
	}
	v, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, fmt.Errorf("%q is no duration, write it as 300ms, 40us or 0.5ns", s)
	}
	for _, u := range units {
		if u.name == unit {
			return v.Mul(v, new(big.Rat).SetInt64(u.ns)), nil
		}
	}
	return nil, fmt.Errorf("%q lacks a unit, write it as %sms, %sus or %sns", s, number, number, number)
}

// First is the deadline D_p in ns from the due time of a prompt of promptTokens
// tokens, rounded to the nearest nanosecond (a half up). A length below 0 counts
// as 0.
func (d *Deadlines) First(promptTokens int32) int64 {
	p := uint64(max(promptTokens, 0))
	hi, lo := bits.Mul64(d.c, p*p)
	h, l := bits.Mul64(d.b, p)
	var c uint64
	lo, c = bits.Add64(lo, l, 0)
	hi += h + c
	lo, c = bits.Add64(lo, d.a, 0)
	hi += c
	lo, c = bits.Add64(lo, d.scale/2, 0)
	hi += c
	if hi >= d.scale {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, d.scale)
	return int64(min(q, math.MaxInt64))
}

// PromptMatters says whether First depends on the length of the prompt.
func (d *Deadlines) PromptMatters() bool { return d.b != 0 || d.c != 0 }

// Text is the deadlines as they were written.
func (d *Deadlines) Text() string { return d.text }

// Shape names the form: fixed, linear or quadratic.
func (d *Deadlines) Shape() string { return d.shape }
