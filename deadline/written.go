package deadline

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
)

// A curve is written for prompts from half of the shortest that was probed to a
// tenth more than the longest. Beyond that it would be a guess.
func (c *Curve) valid() (from, to int32) {
	return (c.Shortest + 1) / 2, int32(math.Floor(1.1 * float64(c.Longest)))
}

const (
	bandPoints = 17 // of a written band
	knotPoints = 33 // of a written curve that is no polynomial
)

// File is the curve with its band and what speaks against it, ready for slack and
// a source.
func (c *Curve) File(d *Diagnosis) *File {
	from, to := c.valid()
	f := &File{
		Schema: Schema, Shape: c.shape.name, Flags: d.Flags, Fitted: d.written(c),
		Valid: Valid{PromptTokens: []int32{from, to}},
	}
	switch c.shape.name {
	case Linear, Quadratic:
		f.Curve = c.coefficients()
	default:
		lengths := geometric(from, to, knotPoints)
		for _, k := range c.shape.knots {
			lengths = append(lengths, int32(math.Round(k)))
		}
		for _, p := range ascending(lengths) {
			f.Knots = append(f.Knots, Knot{p, time.Duration(math.Round(c.At(float64(p))))})
		}
	}
	fit := f.curve()
	for _, p := range geometric(from, to, bandPoints) {
		low, high := c.Band(float64(p))
		at := float64(fit.at(int64(p)))
		f.Band = append(f.Band, BandPoint{p, time.Duration(math.Floor(math.Min(low, at))), time.Duration(math.Ceil(math.Max(high, at)))})
	}
	return f
}

// coefficients are a, b and c in ns, a token and a token squared.
func (c *Curve) coefficients() *Coefficients {
	digits := 9
	if c.b[0] > 9 { // more would not fit into 63 bits with a
		digits = 6
	}
	text := func(j int) string {
		v := 1e9 * c.b[j] / math.Pow(c.shape.longest, float64(j))
		s := new(big.Rat).SetFloat64(v).FloatString(digits)
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		if s == "0" {
			return s
		}
		return s + "ns"
	}
	out := &Coefficients{A: conf.Duration(time.Duration(math.Round(1e9 * c.b[0]))), B: text(1)}
	if c.shape.name == Quadratic {
		out.C = text(2)
	}
	return out
}

// geometric are up to n lengths between two, each about as many times the one
// before.
func geometric(from, to int32, n int) []int32 {
	var all []int32
	for i := range n {
		all = append(all, int32(math.Round(float64(from)*math.Pow(float64(to)/float64(from), float64(i)/float64(n-1)))))
	}
	return ascending(all)
}

func ascending(v []int32) []int32 {
	slices.Sort(v)
	return slices.Compact(v)
}

func (d *Diagnosis) written(c *Curve) *Fitted {
	round := func(v float64) float64 { // four digits say all that there is to say
		if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return 0
		}
		scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
		return math.Round(v*scale) / scale
	}
	ns := func(v float64) time.Duration {
		if math.IsInf(v, 0) {
			return 0 // which the file leaves out
		}
		return time.Duration(math.Round(v)).Round(time.Microsecond)
	}
	f := &Fitted{
		Undelayed: round(d.Undelayed), UndelayedProbes: round(d.UndelayedProbes), TooFast: round(d.TooFast),
		Failed: d.Failed, Shift: round(d.Shift), HalfWidth: round(d.HalfWidth), QuantileGap: round(d.QuantileGap), Noise: ns(d.NoiseNs), NoiseShare: round(d.NoiseShare),
		Intercept: ns(c.InterceptNs()), TokensPerS: round(d.TokensPerS),
		DelayP50: ns(d.DelayNs[0]), DelayP90: ns(d.DelayNs[1]), DelayP99: ns(d.DelayNs[2]), BIC: map[string]float64{},
	}
	for shape, bic := range d.BIC {
		f.BIC[shape] = round(bic)
	}
	return f
}
