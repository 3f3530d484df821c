package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"fermata/internal/seed"
)

// Lengths say how many tokens each prompt or answer has, as people write it:
//
//	512                  always so many
//	uniform:100,500      each from 100 to 500, both included, equally likely
//	normal:512,64        mean and standard deviation
//	lognormal:417,1418   median and 90th percentile
//	empirical:FILE       drawn from the rows of a file of lengths
//
// Drawn lengths are whole and at least 1; what falls outside 1 to 16,777,216 is
// drawn again. Prompts from a file bring their own row's answers along unless
// the answers' lengths are given too.
type Lengths string

// Tokens are lengths that are always n.
func Tokens(n int) Lengths { return Lengths(strconv.Itoa(n)) }

// Fixed is the number of tokens where it is always the same.
func (l Lengths) Fixed() (n int, ok bool) {
	d, err := l.parse()
	if err != nil || d.kind != fixed {
		return 0, false
	}
	return int(d.a), true
}

const (
	fixed     = "fixed"
	uniform   = "uniform"
	normal    = "normal"
	lognormal = "lognormal"
	empirical = "empirical"
)

// z90 is the 90th percentile of the standard normal distribution.
const z90 = 1.2815515655446004

// A law is a distribution of one length.
type law struct {
	kind string
	a, b float64 // as written
	file string
	rows []pair // of the file
}

const lawsHelp = "a number of tokens, uniform:LOW,HIGH, normal:MEAN,SD, lognormal:MEDIAN,P90 or empirical:FILE"

// parse reads l without opening a file.
func (l Lengths) parse() (law, error) {
	kind, rest, named := strings.Cut(strings.TrimSpace(string(l)), ":")
	if !named {
		n, err := strconv.ParseFloat(strings.ReplaceAll(kind, "_", ""), 64)
		if err != nil {
			return law{}, fmt.Errorf("must be %s, not %q", lawsHelp, string(l))
		}
		if !(n >= 1 && n <= inputMax) || n != math.Trunc(n) {
			return law{}, fmt.Errorf("must be between 1 and %d tokens, not %s", inputMax, kind)
		}
		return law{kind: fixed, a: n}, nil
	}
	if kind == empirical {
		if rest == "" {
			return law{}, errors.New("empirical: needs a file of lengths, such as empirical:lengths.csv")
		}
		return law{kind: kind, file: rest}, nil
	}
	takes, ok := map[string]string{uniform: "100,500 (lowest and highest)", normal: "512,64 (mean and standard deviation)", lognormal: "417,1418 (median and 90th percentile)"}[kind]
	if !ok {
		return law{}, fmt.Errorf("must be %s, not %q", lawsHelp, string(l))
	}
	d := law{kind: kind}
	first, second, two := strings.Cut(rest, ",")
	a, errA := strconv.ParseFloat(strings.TrimSpace(first), 64)
	b, errB := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if !two || errA != nil || errB != nil {
		return law{}, fmt.Errorf("%s takes two numbers, such as %s:%s, not %q", kind, kind, takes, rest)
	}
	d.a, d.b = a, b
	return d, d.check()
}

func (d law) check() error {
	inside := func(x float64) bool { return x >= 1 && x <= inputMax }
	switch {
	case !inside(d.a):
		return fmt.Errorf("%s begins with a length between 1 and %d tokens, not %v", d.kind, inputMax, d.a)
	case d.kind == normal && !(d.b >= 0 && d.b <= inputMax):
		return fmt.Errorf("a standard deviation is between 0 and %d tokens, not %v", inputMax, d.b)
	case d.kind == uniform && (!(d.b >= d.a) || !inside(d.b) || d.a != math.Trunc(d.a) || d.b != math.Trunc(d.b)):
		return fmt.Errorf("uniform goes from one whole number up to another of at most %d, not %v to %v", inputMax, d.a, d.b)
	case d.kind == lognormal && (!(d.b >= d.a) || !inside(d.b)):
		return fmt.Errorf("a 90th percentile lies between the median and %d tokens, not at %v", inputMax, d.b)
	}
	return nil
}

// draw is one length.
func (d law) draw(r *rand.Rand) int32 {
	for {
		x := d.a
		switch d.kind {
		case uniform:
			x += float64(r.IntN(int(d.b-d.a) + 1))
		case normal:
			x += d.b * r.NormFloat64()
		case lognormal:
			x *= math.Exp(math.Log(d.b/d.a) / z90 * r.NormFloat64())
		}
		if x = math.Round(x); x >= 1 && x <= inputMax {
			return int32(x)
		}
	}
}

// A pair is the lengths of a prompt and its answer. 0 is unknown.
type pair struct{ input, output int32 }

// A drawer gives each request its lengths.
type drawer struct {
	input, output law
	joint         []pair // where prompt and answer are drawn together
	seed          uint64
	filter        filter
}

// newDrawer makes a drawer of filled options and reads the files that they name.
func newDrawer(o Options, runSeed uint64) (*drawer, error) {
	d := &drawer{seed: seed.Derive(runSeed, "workload: lengths"), filter: newFilter(o)}
	if o.Lengths != "" {
		p := presets[o.Lengths]
		d.input, d.output, d.joint = p.input, p.output, p.pairs()
		return d, nil
	}
	for _, one := range []struct {
		key  string
		text Lengths
		law  *law
		take func(pair) int32
	}{
		{"input", o.Input, &d.input, func(p pair) int32 { return p.input }},
		{"output", o.Output, &d.output, func(p pair) int32 { return p.output }},
	} {
		if one.text == "" {
			continue
		}
		var err error
		if *one.law, err = one.text.parse(); err != nil {
			return nil, err
		}
		if one.law.kind != empirical {
			continue
		}
		if one.law.rows, err = readPairs(one.law.file, one.take); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no file %s, which workload.%s (--%[2]s) names", one.law.file, one.key)
		} else if err != nil {
			return nil, err
		}
	}
	if d.input.kind == empirical && (o.Output == "" || o.Output == o.Input) {
		d.joint = d.input.rows
		if i := slices.IndexFunc(d.joint, func(p pair) bool { return p.output == 0 }); i >= 0 {
			return nil, fmt.Errorf("%s: not every row has the length of an answer; give output", d.input.file)
		}
	}
	return d, nil
}

// mostDraws is how often lengths are drawn for one request before its filters
// count as impossible. Open refuses filters that come near it.
const mostDraws = 100_000

// at is the lengths of request number index that pass the filters, the same
// whenever it is asked for.
func (d *drawer) at(index int64) pair {
	if d.fixed() {
		return d.one(nil)
	}
	p, _ := d.passing(d.rand(index))
	return p
}

func (d *drawer) rand(index int64) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, mix(uint64(index))))
}

func (d *drawer) passing(r *rand.Rand) (p pair, ok bool) {
	for range mostDraws {
		if p = d.one(r); d.filter.why(p) == passes {
			return p, true
		}
	}
	return p, false
}

func (d *drawer) one(r *rand.Rand) pair {
	if d.joint != nil {
		return d.joint[r.IntN(len(d.joint))]
	}
	return pair{d.input.length(r, true), d.output.length(r, false)}
}

func (d law) length(r *rand.Rand, input bool) int32 {
	switch {
	case d.kind == "":
		return 0
	case d.kind != empirical:
		return d.draw(r)
	case input:
		return d.rows[r.IntN(len(d.rows))].input
	}
	return d.rows[r.IntN(len(d.rows))].output
}

// fixed says that every request has the same lengths.
func (d *drawer) fixed() bool {
	return d.joint == nil && (d.input.kind == fixed || d.input.kind == "") && (d.output.kind == fixed || d.output.kind == "")
}

// trials is how many draws show what filters do to drawn lengths.
const trials = 4096

// tryFilter draws without and with the filters.
func (d *drawer) tryFilter() (Cut, error) {
	var t tally
	r := d.rand(-1) // no request has this index
	for range trials {
		p := d.one(r)
		t.add(p, d.filter.why(p))
	}
	c := t.cut()
	if c.Kept == 0 {
		return c, fmt.Errorf("the filters leave none of %d drawn lengths; widen %s", trials, d.filter.names())
	}
	return c, nil
}

// realised is the mean of normal lengths that are drawn again below 1/2, which
// rounds to no token: mean + sd φ(a)/(1-Φ(a)) with a = (1/2 - mean)/sd, the mean of a
// truncated normal distribution.
func (d law) realised() float64 {
	if d.b <= 0 {
		return d.a
	}
	a := (0.5 - d.a) / d.b
	return d.a + d.b*math.Exp(-a*a/2)/math.Sqrt(2*math.Pi)/(0.5*math.Erfc(a/math.Sqrt2))
}

// String says d in words.
func (d law) String() string {
	switch d.kind {
	case fixed:
		return fmt.Sprintf("always %.0f tokens", d.a)
	case uniform:
		return fmt.Sprintf("uniform from %.0f to %.0f tokens", d.a, d.b)
	case normal:
		text := fmt.Sprintf("normal with mean %g and standard deviation %g tokens", d.a, d.b)
		if mean := d.realised(); mean > 1.01*d.a {
			text += fmt.Sprintf(", of which what is below 1 is drawn again: the mean is then %.3g", mean)
		}
		return text
	case lognormal:
		return fmt.Sprintf("lognormal with median %g and 90th percentile %g tokens", d.a, d.b)
	}
	return "from the rows of " + d.file
}
