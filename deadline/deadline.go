// Package deadline says when a token is due: prefill curves, given or measured,
// and the slack above them. It gives deadlines and never plays anything back
// against them.
package deadline

import (
	"fmt"
	"math"
	"strings"
)

// Deadlines are first-token deadlines: how long after its due time a request may
// wait for its first token, given the length of its prompt. Parse makes them of
// a form such as fixed:300ms, Options.Deadlines of a deadlines file too.
type Deadlines struct {
	text, shape, source, sum string
	flags                    []string

	prefill   curve // without the slack
	low, high curve // edges of the band; nil without one
	slack     int64
	slackSet  bool
	intercept int64 // of a measured curve, at no tokens
	from, to  int64 // prompt lengths that it is valid for
}

// A curve is a time in ns by prompt length in tokens.
type curve interface{ at(tokens int64) int64 }

// An Edge says which curve of a measured band deadlines follow.
type Edge string

// The edges of a band, and the curve between them.
const (
	EdgeFit  Edge = "fit"
	EdgeLow  Edge = "low"
	EdgeHigh Edge = "high"
)

// shapes are the forms that Parse knows, with how many coefficients each has.
var shapes = []struct {
	name, example string
	coefficients  int
}{
	{"fixed", "fixed:300ms", 1},
	{Linear, "linear:50ms,40us", 2},
	{Quadratic, "quadratic:50ms,40us,1ns", 3},
}

const knownForms = "fixed:300ms, linear:50ms,40us and quadratic:50ms,40us,1ns (a + b·P + c·P² for a prompt of P tokens)"

// isForm says that s is meant as one of the forms that Parse knows.
func isForm(s string) bool {
	name, _, _ := strings.Cut(s, ":")
	for _, shape := range shapes {
		if shape.name == name {
			return true
		}
	}
	return false
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
		p, err := newPolynomial(parts)
		if err != nil {
			return nil, fmt.Errorf("reading deadlines %q: %w", s, err)
		}
		return &Deadlines{text: s, shape: name, source: "given", prefill: p, to: math.MaxInt64}, nil
	}
	return nil, fmt.Errorf("reading deadlines %q: the known forms are %s", s, knownForms)
}

func count(n int) string {
	if n == 1 {
		return "one duration"
	}
	return fmt.Sprintf("%d durations with commas between them", n)
}

// First is the deadline D_p in ns from the due time of a prompt of promptTokens
// tokens: the curve, rounded to the nearest nanosecond (a half up), and the
// slack. A length below 0 counts as 0.
func (d *Deadlines) First(promptTokens int32) int64 {
	return d.Due(EdgeFit, d.slack, promptTokens)
}

// Due is First with the prefill time from an edge of the band, the fitted curve
// where there is no band, and another slack in ns.
func (d *Deadlines) Due(e Edge, slack int64, promptTokens int32) int64 {
	p := int64(max(promptTokens, 0))
	prefill := d.prefill.at(p)
	switch {
	case e == EdgeLow && d.low != nil:
		prefill = min(d.low.at(p), prefill)
	case e == EdgeHigh && d.high != nil:
		prefill = max(d.high.at(p), prefill)
	}
	if prefill > math.MaxInt64-slack {
		return math.MaxInt64
	}
	return prefill + slack
}

// Slack is the slack S in ns that First adds to the curve; ok is false where the
// deadlines are whole as they were given.
func (d *Deadlines) Slack() (ns int64, ok bool) { return d.slack, d.slackSet }

// Intercept is the curve in ns for a prompt of no tokens: of a measured one,
// network and fixed overhead. 0 where it is not known.
func (d *Deadlines) Intercept() int64 { return d.intercept }

// Banded says whether the curve has a band, from a measurement.
func (d *Deadlines) Banded() bool { return d.low != nil }

// Covers says whether the deadlines are valid for a prompt of that length.
func (d *Deadlines) Covers(promptTokens int32) bool {
	p := int64(promptTokens)
	return p >= d.from && p <= d.to
}

// Range is which prompt lengths the deadlines are valid for; ok is false where
// they are for all.
func (d *Deadlines) Range() (from, to int64, ok bool) {
	return d.from, d.to, d.from > 0 || d.to < math.MaxInt64
}

// PromptMatters says whether First depends on the length of the prompt.
func (d *Deadlines) PromptMatters() bool {
	p, given := d.prefill.(*polynomial)
	_, _, bounded := d.Range()
	return bounded || d.Banded() || !given || p.b != 0 || p.c != 0
}

// Text is the deadlines as they were given: the form, or the file's name.
func (d *Deadlines) Text() string { return d.text }

// Shape names the form: fixed, linear, quadratic, hinges or monotone.
func (d *Deadlines) Shape() string { return d.shape }

// Source says in a line where the deadlines came from; "given" for a form.
func (d *Deadlines) Source() string { return d.source }

// Sum is the SHA-256 of the deadlines file, in hexadecimal; empty without one.
func (d *Deadlines) Sum() string { return d.sum }

// Flags are the codes of what speaks against the curve, see Words.
func (d *Deadlines) Flags() []string { return d.flags }
