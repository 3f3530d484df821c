package deadline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"fermata/internal/conf"
)

// Schema is that of deadlines files.
const Schema = "fermata.deadlines/1"

// Shapes of curves in deadlines files.
const (
	Linear    = "linear"
	Quadratic = "quadratic"
	Hinges    = "hinges"   // quadratic with slopes that grow at some lengths
	Monotone  = "monotone" // linear between lengths, never falling
)

// A File is the content of a deadlines file: a prefill curve, given or measured,
// and what goes with it.
type File struct {
	Schema string        `yaml:"schema"`
	Shape  string        `yaml:"shape"` // linear, quadratic, hinges or monotone
	Curve  *Coefficients `yaml:"curve"` // of the first two shapes
	Knots  []Knot        `yaml:"knots"` // of the others, linear between
	Band   []BandPoint   `yaml:"band"`  // linear between; default none
	// S above the curve; default 0.
	Slack     *time.Duration `yaml:"slack"`
	SlackRule *SlackRule     `yaml:"slack_rule"` // how the slack came about
	Flags     []string       `yaml:"flags"`      // what speaks against the curve, see Words
	Fitted    *Fitted        `yaml:"fitted"`     // what is to be read with a measured curve
	Source    *Source        `yaml:"source"`
	Valid     Valid          `yaml:"valid"`
	SHA256    string         `yaml:"sha256"` // of the file without this line
}

// Coefficients are a + b·P + c·P² for a prompt of P tokens: decimal durations, a
// token and a token squared, fractions of a nanosecond allowed.
type Coefficients struct {
	A string `yaml:"a"`
	B string `yaml:"b"`
	C string `yaml:"c"`
}

// A Knot is a point of a curve.
type Knot struct {
	Tokens int32         `yaml:"tokens,zero"`
	Time   time.Duration `yaml:"time,zero"`
}

// A BandPoint is where the band around the curve ends at one length.
type BandPoint struct {
	Tokens int32         `yaml:"tokens,zero"`
	Low    time.Duration `yaml:"low,zero"`
	High   time.Duration `yaml:"high,zero"`
}

// SlackRule says how the slack came about: the lesser of the load rule's, see
// LoadSlack, and a cap.
type SlackRule struct {
	Workload string        `yaml:"workload"` // prompt lengths it was computed for
	Load     float64       `yaml:"load"`     // ρ*, the utilisation that is still acceptable
	Share    float64       `yaml:"share"`    // q, of requests that wait less at that load
	ByLoad   time.Duration `yaml:"by_load"`  // S of the load rule
	Class    string        `yaml:"class"`    // of user: interactive, medium or low
	Cap      time.Duration `yaml:"cap"`      // S of the class
	Binds    string        `yaml:"binds"`    // load or cap
	Shared   []Knot        `yaml:"shared"`   // D_p by SharedDue, where the curve is load-dependent-speed; to be read beside S
}

// Source says where a curve came from. In a file it may also be a line of text.
type Source struct {
	Text     string  `yaml:"-"`
	Plan     string  `yaml:"plan"` // isolated, hosted
	Target   string  `yaml:"target"`
	Model    string  `yaml:"model"`
	Measured string  `yaml:"measured"` // when it began, RFC 3339
	Tool     string  `yaml:"tool"`
	Probes   int     `yaml:"probes"`   // that the curve is fitted to
	LeftOut  int     `yaml:"left_out"` // that came and could not be used
	Tokens   int64   `yaml:"tokens"`   // of prompts, spent on all of them
	Hours    float64 `yaml:"hours"`    // from the first probe to the last
	Seed     uint64  `yaml:"seed"`
}

// Fitted is what is to be read with a measured curve: of a Diagnosis what a file
// keeps.
type Fitted struct {
	Undelayed       float64            `yaml:"undelayed"`        // share of the probes that met no queue …
	UndelayedProbes float64            `yaml:"undelayed_probes"` // … and how many that are
	TooFast         float64            `yaml:"too_fast"`         // probes
	Failed          int                `yaml:"failed"`           // probes without a first token
	Shift           float64            `yaml:"shift"`            // curve of the last third over that of the first
	HalfWidth       float64            `yaml:"half_width"`       // greatest, of the band, over the curve
	QuantileGap     float64            `yaml:"quantile_gap"`     // greatest distance from the regression of the lowest 5 %
	Noise           time.Duration      `yaml:"noise"`            // standard deviation: a constant part …
	NoiseShare      float64            `yaml:"noise_share"`      // … and one over the curve
	Intercept       time.Duration      `yaml:"intercept"`        // the curve at no tokens: network and overhead
	TokensPerS      float64            `yaml:"tokens_per_s"`     // of prefill, at the longest prompt
	DelayP50        time.Duration      `yaml:"delay_p50"`        // of probes at random times, above the curve; none where so many failed
	DelayP90        time.Duration      `yaml:"delay_p90"`
	DelayP99        time.Duration      `yaml:"delay_p99"`
	BIC             map[string]float64 `yaml:"bic"` // of each shape that was tried
}

// Valid says what a curve is valid for.
type Valid struct {
	PromptTokens []int32 `yaml:"prompt_tokens"` // from, to; default the knots' range, or any
}

// UnmarshalText reads a source that is a line of text.
func (s *Source) UnmarshalText(b []byte) error {
	*s = Source{Text: string(b)}
	return nil
}

// MarshalText is that line; nil where the source has fields instead.
func (s Source) MarshalText() ([]byte, error) {
	if s.Text == "" {
		return nil, nil
	}
	return []byte(s.Text), nil
}

func (s *Source) line() string {
	if s == nil {
		return "file"
	}
	if s.Text != "" {
		return s.Text
	}
	var parts []string
	add := func(format string, arg string) {
		if arg != "" {
			parts = append(parts, fmt.Sprintf(format, arg))
		}
	}
	add("%s plan", s.Plan)
	add("model %s", s.Model)
	add("at %s", s.Target)
	add("measured %s", s.Measured)
	if s.Probes > 0 {
		parts = append(parts, fmt.Sprintf("%d probes", s.Probes))
	}
	if len(parts) == 0 {
		return "file"
	}
	return strings.Join(parts, ", ")
}

// Read reads a deadlines file; name is for messages. The error is nil or
// conf.Mistakes, all of them with their lines.
func Read(name string, data []byte) (*File, error) {
	f := &File{}
	doc, _ := conf.Read(name, data, f)
	if sum := sumOf(data); f.SHA256 == "" || sum == f.SHA256 {
		doc.Report("", f.Check())
	} else { // whatever else is wrong with its content came with the change
		doc.Report("", []conf.Problem{{Path: "sha256", Text: fmt.Sprintf("does not fit: the rest of the file has %s, so it was changed after it was written; take the file as it was, or remove this line if the change is yours", sum)}})
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// sumOf is the SHA-256 of a file without the line that holds it.
func sumOf(data []byte) string {
	h := sha256.New()
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte("sha256:")) {
			h.Write(line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Write is f as a deadlines file, with its sum set.
func (f *File) Write() ([]byte, error) {
	plain := *f
	plain.SHA256 = ""
	data, err := conf.Write(&plain)
	if err != nil {
		return nil, fmt.Errorf("writing deadlines: %w", err)
	}
	f.SHA256 = sumOf(data)
	return append(data, "sha256: "+f.SHA256+"\n"...), nil
}

// longest bounds what deadlines can hold.
const longest = 100 * 24 * time.Hour

// problems collects findings.
type problems []conf.Problem

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Check finds what is wrong with the content of a deadlines file.
func (f *File) Check() []conf.Problem {
	var found problems
	if f.Schema != Schema {
		found.add("schema", "must be %s, not %q", Schema, f.Schema)
	}
	f.checkCurve(&found)
	f.checkValid(&found)
	if s := f.Slack; s != nil && (*s < 0 || *s > longest) {
		found.add("slack", "must be between 0 and %s, not %s", conf.Duration(longest), conf.Duration(*s))
	}
	if len(found) == 0 {
		f.checkBand(&found)
	}
	return found
}

func (f *File) checkCurve(found *problems) {
	switch f.Shape {
	case Linear, Quadratic:
		if f.Curve == nil {
			found.add("curve", "is missing: shape %s takes curve: {a: 50ms, b: 40us%s}", f.Shape, map[string]string{Quadratic: ", c: 1ns"}[f.Shape])
			return
		}
		if len(f.Knots) > 0 {
			found.add("knots", "are for the shapes hinges and monotone; %s has a curve", f.Shape)
		}
		if f.Shape == Linear && f.Curve.C != "" {
			found.add("curve.c", "makes the curve quadratic; say shape: quadratic, or leave it out")
		}
		f.checkCoefficients(found)
	case Hinges, Monotone:
		if f.Curve != nil {
			found.add("curve", "is for the shapes linear and quadratic; %s has knots", f.Shape)
		}
		checkPoints(found, "knots", len(f.Knots), func(i int) int32 { return f.Knots[i].Tokens })
		for i, k := range f.Knots {
			switch {
			case k.Time < 0 || k.Time > longest:
				found.add(fmt.Sprintf("knots[%d].time", i), "must be between 0 and %s, not %s", conf.Duration(longest), conf.Duration(k.Time))
			case i > 0 && k.Time < f.Knots[i-1].Time:
				found.add(fmt.Sprintf("knots[%d].time", i), "is less than that of the knot before: a longer prompt cannot be due earlier")
			}
		}
	default:
		found.add("shape", "must be linear, quadratic, hinges or monotone, not %q", f.Shape)
	}
}

func (f *File) checkCoefficients(found *problems) {
	fine := true
	for _, c := range []struct{ name, text string }{{"a", f.Curve.A}, {"b", f.Curve.B}, {"c", f.Curve.C}} {
		needed := c.name != "c" || f.Shape == Quadratic
		if c.text == "" {
			if needed {
				found.add("curve."+c.name, "is missing; write 0 for none")
				fine = false
			}
			continue
		}
		if _, err := duration(c.text); err != nil {
			found.add("curve."+c.name, "cannot be read: %v", err)
			fine = false
		}
	}
	if !fine {
		return
	}
	if _, err := newPolynomial(f.Curve.parts()); err != nil {
		found.add("curve", "cannot be used: %v", err)
	}
}

func (c *Coefficients) parts() []string {
	if c.C == "" {
		return []string{c.A, c.B}
	}
	return []string{c.A, c.B, c.C}
}

// checkPoints looks at the lengths at which something is given.
func checkPoints(found *problems, path string, n int, tokens func(int) int32) {
	if n < 2 {
		found.add(path, "must have 2 points or more, not %d", n)
	}
	for i := range n {
		at := fmt.Sprintf("%s[%d].tokens", path, i)
		switch {
		case tokens(i) < 0:
			found.add(at, "must not be negative, not %d", tokens(i))
		case i > 0 && tokens(i) <= tokens(i-1):
			found.add(at, "must be more than that of the point before, %d, not %d", tokens(i-1), tokens(i))
		}
	}
}

func (f *File) checkValid(found *problems) {
	v := f.Valid.PromptTokens
	switch {
	case len(v) == 0:
	case len(v) != 2:
		found.add("valid.prompt_tokens", "must be the shortest prompt and the longest, such as [256, 8192]")
	case v[0] < 0 || v[0] > v[1]:
		found.add("valid.prompt_tokens", "must be the shortest prompt and the longest, such as [256, 8192], not [%d, %d]", v[0], v[1])
	case len(f.Knots) > 0 && (v[0] < f.Knots[0].Tokens || v[1] > f.Knots[len(f.Knots)-1].Tokens):
		found.add("valid.prompt_tokens", "reaches beyond the knots, which are from %d to %d tokens", f.Knots[0].Tokens, f.Knots[len(f.Knots)-1].Tokens)
	}
}

// rounding is how far an edge of a band may be off for having been written in
// round numbers.
const rounding = time.Microsecond

func (f *File) checkBand(found *problems) {
	if len(f.Band) == 0 {
		return
	}
	checkPoints(found, "band", len(f.Band), func(i int) int32 { return f.Band[i].Tokens })
	c := f.curve()
	for i, b := range f.Band {
		at := fmt.Sprintf("band[%d]", i)
		fit := time.Duration(c.at(int64(max(b.Tokens, 0))))
		switch {
		case b.Low < 0 || b.High > longest:
			found.add(at, "must lie between 0 and %s", conf.Duration(longest))
		case b.Low > b.High:
			found.add(at, "has its low edge, %s, above its high one, %s", conf.Duration(b.Low), conf.Duration(b.High))
		case b.Low > fit+rounding || b.High < fit-rounding:
			found.add(at, "must include the curve, which is %s at %d tokens", conf.Duration(fit), b.Tokens)
		}
	}
}

// curve is the curve of a file that was checked.
func (f *File) curve() curve {
	if f.Curve != nil {
		p, err := newPolynomial(f.Curve.parts())
		if err == nil {
			return p
		}
		return knots{{}}
	}
	k := make(knots, len(f.Knots))
	for i, at := range f.Knots {
		k[i] = point{int64(at.Tokens), int64(at.Time)}
	}
	return k
}

// deadlines are what a file that was checked says.
func (f *File) deadlines(name string) *Deadlines {
	d := &Deadlines{
		text: name, shape: f.Shape, source: f.Source.line(), sum: f.SHA256, flags: f.Flags,
		prefill: f.curve(), slackSet: true, to: math.MaxInt64,
	}
	if f.Slack != nil {
		d.slack = int64(*f.Slack)
	}
	switch {
	case f.Fitted != nil:
		d.intercept = int64(f.Fitted.Intercept)
	case f.Curve != nil:
		d.intercept = d.prefill.at(0)
	}
	if k, ok := d.prefill.(knots); ok {
		d.from, d.to = k[0].tokens, k[len(k)-1].tokens
	}
	if v := f.Valid.PromptTokens; len(v) == 2 {
		d.from, d.to = int64(v[0]), int64(v[1])
	}
	if len(f.Band) > 0 {
		low, high := make(knots, len(f.Band)), make(knots, len(f.Band))
		for i, b := range f.Band {
			low[i], high[i] = point{int64(b.Tokens), int64(b.Low)}, point{int64(b.Tokens), int64(b.High)}
		}
		d.low, d.high = low, high
	}
	return d
}

// Options say when first tokens are due. In a run file they are text, a form
// that Parse takes or the name of a deadlines file, or the content of one. The
// zero value gives no deadlines.
type Options struct {
	Text string `yaml:"-"`    // a form, or a file that Load has not read yet
	Name string `yaml:"file"` // of the file that the content was read from
	File `yaml:",inline"`
}

// UnmarshalText takes a form or the name of a file.
func (o *Options) UnmarshalText(b []byte) error {
	*o = Options{Text: strings.TrimSpace(string(b))}
	return nil
}

// MarshalText is the form; nil where there is content instead.
func (o Options) MarshalText() ([]byte, error) {
	if o.Text == "" {
		return nil, nil
	}
	return []byte(o.Text), nil
}

// Given says whether there are any deadlines.
func (o *Options) Given() bool { return o.Text != "" || o.hasContent() }

func (o *Options) hasContent() bool {
	return o.Schema != "" || o.Shape != "" || o.Curve != nil || len(o.Knots) > 0
}

// Load puts the content of the file in the place of its name, so that the
// options stand for themselves from then on.
func (o *Options) Load() []conf.Problem {
	if o.Text == "" || isForm(o.Text) {
		return nil
	}
	data, err := os.ReadFile(o.Text)
	if os.IsNotExist(err) {
		return []conf.Problem{{Text: fmt.Sprintf("%q is no file, and none of the known forms: %s", o.Text, knownForms)}}
	}
	if err != nil {
		return []conf.Problem{{Text: fmt.Sprintf("cannot be read: %v", err)}}
	}
	f, err := Read(o.Text, data)
	if err != nil {
		var found problems
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found.add("", "%s", line)
		}
		return found
	}
	*o = Options{Name: o.Text, File: *f}
	return nil
}

// Check finds what is wrong with options that Load has seen.
func (o *Options) Check() []conf.Problem {
	switch {
	case o.Text != "":
		if _, err := Parse(o.Text); err != nil {
			return []conf.Problem{{Text: err.Error()}}
		}
		return nil
	case !o.hasContent():
		return nil
	}
	return o.File.Check()
}

// Deadlines are what the options say; nil where they give none.
func (o *Options) Deadlines() (*Deadlines, error) {
	switch {
	case o.Text != "":
		return Parse(o.Text)
	case !o.hasContent():
		return nil, nil
	}
	if found := o.File.Check(); len(found) > 0 {
		return nil, fmt.Errorf("reading deadlines: %s %s", found[0].Path, found[0].Text)
	}
	name := o.Name
	if name == "" {
		name = "deadlines in the run file"
	}
	return o.File.deadlines(name), nil
}
