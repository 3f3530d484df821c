package metrics

import (
	"math"
	"math/bits"

	"fermata/internal/stats"
)

// outlineBits is how finely an outline tells values apart: 512 steps an octave, so
// that a step is a fifth of a percent wide at most.
const outlineBits = 9

// An outline counts values of 0 or more by steps, as many values as there are.
type outline struct {
	counts []int64
	n      int64
}

func (o *outline) add(v int64) { o.addN(v, 1) }

func (o *outline) addN(v, n int64) {
	i := outlineStep(uint64(max(v, 0)))
	if i >= len(o.counts) {
		o.counts = append(o.counts, make([]int64, i+1-len(o.counts))...)
	}
	o.counts[i] += n
	o.n += n
}

func outlineStep(v uint64) int {
	shift := max(0, bits.Len64(v)-1-outlineBits)
	return shift<<outlineBits + int(v>>shift)
}

// outlineEnd is the largest value of a step.
func outlineEnd(i int) int64 {
	shift := max(0, i>>outlineBits-1)
	return (int64(i)-int64(shift)<<outlineBits+1)<<shift - 1
}

// A CurvePoint is a point of a distribution function: Share of the values are at
// most Value.
type CurvePoint struct {
	Value int64
	Share float64
}

// A Curve is a distribution function by its points, ascending. Each is exact; how
// many there are is bounded, and between two of them it rises by little.
type Curve struct {
	N      int64
	Points []CurvePoint
}

// curveStep is the least distance of two points on the scale of the normal
// distribution's quantiles, on which tails are wide.
const curveStep = 0.03

// curve is the outline's, of a total that may hold values that never came.
func (o *outline) curve(total int64) Curve {
	c := Curve{N: o.n}
	if o.n == 0 {
		return c
	}
	var below int64
	last := math.Inf(-1)
	for i, k := range o.counts {
		if k == 0 {
			continue
		}
		below += k
		share := float64(below) / float64(total)
		if z := stats.Normal(share); z-last < curveStep && below < o.n {
			continue
		} else if share < 1 {
			last = z
		}
		c.Points = append(c.Points, CurvePoint{outlineEnd(i), share})
	}
	return c
}

// At is the share of values that are at most v.
func (c *Curve) At(v int64) float64 {
	share := 0.0
	for _, p := range c.Points {
		if p.Value > v {
			break
		}
		share = p.Share
	}
	return share
}

// Quantile is the least value of a point with at least that share of the values at
// or below it; false where the curve does not reach it.
func (c *Curve) Quantile(share float64) (int64, bool) {
	for _, p := range c.Points {
		if p.Share >= share {
			return p.Value, true
		}
	}
	return 0, false
}
