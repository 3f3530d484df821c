package stats

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Ints is a distribution of whole numbers: ranks by its Order; count, extremes,
// mean, standard deviation and counts above bounds in one pass, all exact (sums
// are kept in 128 bits, sums of squares in 192).
type Ints struct {
	Order
	some     bool // a number came
	min, max int64
	sumHi    int64
	sumLo    uint64
	sq       [3]uint64
	bounds   []int64 // ascending
	above    []int64
}

// NewInts makes a distribution that keeps up to limit numbers (0: 65,536) and
// counts those above each of the bounds, given in ascending order.
func NewInts(limit int, bounds ...int64) *Ints {
	return &Ints{Order: Order{Limit: limit}, bounds: bounds, above: make([]int64, len(bounds))}
}

// Add takes a number.
func (d *Ints) Add(v int64) {
	d.note(v, 1)
	d.Order.Add(v)
}

// AddN takes the number v times times.
func (d *Ints) AddN(v, times int64) {
	if times > 0 {
		d.note(v, times)
		d.Order.AddN(v, times)
	}
}

// AddAll takes each of vs.
func (d *Ints) AddAll(vs []int64) {
	if len(vs) == 0 {
		return
	}
	lo, hi := vs[0], vs[0]
	sumLo, sumHi, sq0, sq1, sq2 := d.sumLo, d.sumHi, d.sq[0], d.sq[1], d.sq[2]
	first := int64(math.MaxInt64)
	if len(d.bounds) > 0 {
		first = d.bounds[0]
	}
	var c uint64
	for _, v := range vs {
		lo, hi = min(lo, v), max(hi, v)
		sign := v >> 63
		sumLo, c = bits.Add64(sumLo, uint64(v), 0)
		sumHi += sign + int64(c)
		u := uint64((v ^ sign) - sign)
		h, l := bits.Mul64(u, u)
		sq0, c = bits.Add64(sq0, l, 0)
		sq1, c = bits.Add64(sq1, h, c)
		sq2 += c
		if v > first {
			d.exceed(v, 1)
		}
	}
	d.sumLo, d.sumHi, d.sq = sumLo, sumHi, [3]uint64{sq0, sq1, sq2}
	d.extremes(lo, hi)
	d.Order.AddAll(vs)
}

// note counts v in all that is not a rank.
func (d *Ints) note(v, times int64) {
	d.extremes(v, v)
	sign := v >> 63
	u := uint64((v ^ sign) - sign)
	hi, lo := bits.Mul64(u, uint64(times))
	var c uint64
	if v < 0 {
		d.sumLo, c = bits.Sub64(d.sumLo, lo, 0)
		d.sumHi -= int64(hi) + int64(c)
	} else {
		d.sumLo, c = bits.Add64(d.sumLo, lo, 0)
		d.sumHi += int64(hi) + int64(c)
	}
	h2, l2 := bits.Mul64(u, lo)
	h3, l3 := bits.Mul64(u, hi)
	var c2 uint64
	h2, c2 = bits.Add64(h2, l3, 0)
	d.sq[0], c = bits.Add64(d.sq[0], l2, 0)
	d.sq[1], c = bits.Add64(d.sq[1], h2, c)
	d.sq[2] += h3 + c2 + c
	d.exceed(v, times)
}

func (d *Ints) extremes(lo, hi int64) {
	if !d.some {
		d.min, d.max, d.some = lo, hi, true
	}
	d.min, d.max = min(d.min, lo), max(d.max, hi)
}

func (d *Ints) exceed(v, times int64) {
	for i, b := range d.bounds {
		if v <= b {
			return
		}
		d.above[i] += times
	}
}

// Clone is a copy of d, before Seek, that goes its own way.
func (d *Ints) Clone() *Ints {
	c := *d
	c.Order, c.above = *d.Order.Clone(), slices.Clone(d.above)
	return &c
}

// Min is the least number; 0 where none came.
func (d *Ints) Min() int64 { return d.min }

// Max is the greatest number; 0 where none came.
func (d *Ints) Max() int64 { return d.max }

// Above is how many numbers lay above (not at) the i-th bound.
func (d *Ints) Above(i int) int64 { return d.above[i] }

// Sum is the sum of all numbers.
func (d *Ints) Sum() *big.Int {
	s := new(big.Int).Lsh(big.NewInt(d.sumHi), 64)
	return s.Add(s, new(big.Int).SetUint64(d.sumLo))
}

// Mean is the mean; ok is false where no number came.
func (d *Ints) Mean() (mean float64, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	mean, _ = new(big.Rat).SetFrac(d.Sum(), big.NewInt(d.n)).Float64()
	return mean, true
}

// SD is the standard deviation over n - 1; ok is false for fewer than two.
func (d *Ints) SD() (sd float64, ok bool) {
	if d.n < 2 {
		return 0, false
	}
	sq := new(big.Int)
	for i := 2; i >= 0; i-- {
		sq.Lsh(sq, 64).Add(sq, new(big.Int).SetUint64(d.sq[i]))
	}
	sum, n := d.Sum(), big.NewInt(d.n)
	sq.Mul(sq, n).Sub(sq, sum.Mul(sum, sum))
	v, _ := new(big.Rat).SetFrac(sq, n.Mul(n, big.NewInt(d.n-1))).Float64()
	return math.Sqrt(v), true
}

// Floats is a distribution of numbers from 0 on that need not be whole, such as
// rates and shares. Its ranks are exact, its mean and deviation good to about
// 1e-15 of their size.
type Floats struct {
	order    Order
	min, max float64
	sum, rest,
	mean, m2 float64
}

// NewFloats makes a distribution that keeps up to limit numbers (0: 65,536).
func NewFloats(limit int) *Floats {
	return &Floats{order: Order{Limit: limit, float: true}}
}

// Add takes a number; what lies below 0 counts as 0.
func (d *Floats) Add(v float64) {
	v = max(v, 0)
	if d.order.n == 0 {
		d.min, d.max = v, v
	}
	d.min, d.max = min(d.min, v), max(d.max, v)
	// Neumaier's sum and Welford's deviation.
	t := d.sum + v
	if d.sum >= v {
		d.rest += (d.sum - t) + v
	} else {
		d.rest += (v - t) + d.sum
	}
	d.sum = t
	d.order.Add(int64(math.Float64bits(v)))
	delta := v - d.mean
	d.mean += delta / float64(d.order.n)
	d.m2 += delta * (v - d.mean)
}

// N is how many numbers came.
func (d *Floats) N() int64 { return d.order.n }

// Min is the least number; 0 where none came.
func (d *Floats) Min() float64 { return d.min }

// Max is the greatest number; 0 where none came.
func (d *Floats) Max() float64 { return d.max }

// Mean is the mean; ok is false where no number came.
func (d *Floats) Mean() (mean float64, ok bool) {
	if d.order.n == 0 {
		return 0, false
	}
	return (d.sum + d.rest) / float64(d.order.n), true
}

// SD is the standard deviation over n - 1; ok is false for fewer than two.
func (d *Floats) SD() (sd float64, ok bool) {
	if d.order.n < 2 {
		return 0, false
	}
	return math.Sqrt(d.m2 / float64(d.order.n-1)), true
}

// Seek is Order.Seek.
func (d *Floats) Seek(ranks ...int64) (again bool) { return d.order.Seek(ranks...) }

// Again is Order.Again.
func (d *Floats) Again(v float64) { d.order.Again(int64(math.Float64bits(max(v, 0)))) }

// At is Order.At.
func (d *Floats) At(rank int64) (v float64, ok bool) {
	b, ok := d.order.At(rank)
	return math.Float64frombits(uint64(b)), ok
}
