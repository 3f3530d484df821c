package chart

import (
	"math"
	"strconv"

	"fermata/internal/stats"
)

// A Scale says how an axis lays out its values.
type Scale int

// The scales. Probability is that of the normal distribution's quantiles: shares
// near 0 and 1 stand far apart.
const (
	Linear Scale = iota
	Log
	Probability
)

// An Axis runs from Min to Max. On a log axis both are above 0, on one of
// probabilities between 0 and 1.
type Axis struct {
	Label    string
	Scale    Scale
	Min, Max float64
	Format   func(float64) string  // of a tick's value; nil writes the number
	Step     func(float64) float64 // of a linear axis: the least round step of at least that; nil for 1, 2 and 5 times a power of ten
	Whole    bool                  // only whole numbers occur: no tick stands between them
	Ticks    []Tick                // instead of those that the axis would choose
}

// A Tick is a value with what is written at it.
type Tick struct {
	At    float64
	Label string
}

// at is where a value lies between Min and Max, as 0 to 1 where it does.
func (a *Axis) at(v float64) float64 {
	lo, hi := a.project(a.Min), a.project(a.Max)
	if !(hi > lo) {
		return 0.5
	}
	return (a.project(v) - lo) / (hi - lo)
}

func (a *Axis) project(v float64) float64 {
	switch a.Scale {
	case Log:
		return math.Log(v)
	case Probability:
		return stats.Normal(v)
	}
	return v
}

// shares are where an axis of probabilities may have ticks.
var shares = []float64{0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999}

// ticks are about as many as wanted, at round values.
func (a *Axis) ticks(wanted float64) []Tick {
	if a.Ticks != nil {
		return a.Ticks
	}
	var all []Tick
	for _, v := range a.values(max(2, wanted)) {
		if a.Whole && math.Abs(v-math.Round(v)) > 1e-9*math.Abs(v) {
			continue
		}
		label := strconv.FormatFloat(v, 'g', 6, 64)
		if a.Format != nil {
			label = a.Format(v)
		}
		all = append(all, Tick{v, label})
	}
	return all
}

func (a *Axis) values(wanted float64) []float64 {
	switch a.Scale {
	case Probability:
		var all []float64
		for _, v := range shares {
			if v >= a.Min && v <= a.Max {
				all = append(all, v)
			}
		}
		return all
	case Log:
		return a.decades(wanted)
	}
	round := a.Step
	if round == nil {
		round = Round
	}
	step := round((a.Max - a.Min) / wanted)
	if a.Whole {
		step = max(step, 1)
	}
	if !(step > 0) {
		return []float64{a.Min}
	}
	var all []float64
	for k := math.Ceil(a.Min/step-1e-9) + 0; k*step <= a.Max*(1+1e-12) && len(all) < 100; k++ {
		all = append(all, k*step+0) // -0 becomes 0
	}
	return all
}

// decades are the powers of ten, with some of what lies between them where there is
// room; within one decade they are those of a linear axis.
func (a *Axis) decades(wanted float64) []float64 {
	var all []float64
	for _, digits := range [][]float64{{1}, {1, 3}, {1, 2, 5}} {
		found := a.powers(digits, 1)
		if float64(len(found)) > wanted+1 {
			break
		}
		all = found
	}
	for stride := 1.0; all == nil; stride++ {
		if found := a.powers([]float64{1}, stride); float64(len(found)) <= wanted+1 {
			all = found
			break
		}
	}
	if len(all) < 2 {
		linear := Axis{Min: a.Min, Max: a.Max, Whole: a.Whole}
		all = linear.values(wanted / 2)
	}
	return all
}

// powers are the digits times every so manieth power of ten that the axis holds.
func (a *Axis) powers(digits []float64, stride float64) []float64 {
	all := []float64{}
	for k := stride * math.Floor(math.Log10(a.Min)/stride); k <= math.Ceil(math.Log10(a.Max)) && len(all) < 200; k += stride {
		for _, d := range digits {
			if v := d * math.Pow(10, k); v >= a.Min*(1-1e-9) && v <= a.Max*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

// Round is the least of 1, 2 and 5 times a power of ten that is at least v.
func Round(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, d := range []float64{1, 2, 5} {
		if d*unit >= v*(1-1e-9) {
			return d * unit
		}
	}
	return 10 * unit
}

// Ceil is a round value of at least v, for the end of an axis that starts at 0; 1
// where v is not above 0.
func Ceil(v float64) float64 {
	if !(v > 0) {
		return 1
	}
	step := Round(v / 10)
	return math.Ceil(v/step-1e-9) * step
}
