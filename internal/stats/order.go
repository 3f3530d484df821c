// Package stats holds the exact statistics behind every figure: values of given
// rank over streams larger than memory, sums without rounding, and intervals
// that assume nothing about a distribution's shape.
package stats

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// Rank is ⌈n·p⌉ for p in thousandths: the position, from 1, of a percentile
// among n sorted values. It is 0 only where n is 0.
func Rank(n int64, thousandths int) int64 {
	return max(min(n, 1), (n*int64(thousandths)+999)/1000)
}

// RankAt is Rank for any percentile 0 < p < 1; a product that is a hair above a
// whole number counts as that.
func RankAt(n int64, p float64) int64 {
	return min(max(min(n, 1), int64(math.Ceil(float64(n)*p*(1-1e-14)))), n)
}

const (
	subBits    = 8                         // 256 buckets an octave: each at most 0.4 % wide
	intBuckets = (64 - subBits) << subBits // of the whole numbers from 0 on
	floatShift = 52 - subBits              // mantissa bits below a bucket's
	floatFrom  = (1023 - 40) << subBits    // buckets begin at 2^-40 …
	floatSize  = (40 + 64) << subBits      // … and end at 2^64; the outermost take the rest
	keepUnless = 1 << 16                   // values kept by an Order whose limit is 0
	sortUpTo   = 1 << 12                   // kept values that are simply sorted
	runsUpTo   = 1 << 14                   // kept values of runs of small numbers
	tableUpTo  = math.MaxInt32 >> 4        // widest bucket that may be counted value by value
)

// An Order finds the values of given ranks among numbers that come as a stream.
// It keeps the numbers themselves while they are few. Beyond its limit it only
// counts them in buckets, Seek picks the buckets that hold the wanted ranks, and
// the stream must come a second time, to Again. Ranks are exact either way. The
// zero value is ready for whole numbers.
type Order struct {
	Limit   int  // numbers kept before counting begins; default 65,536
	Outline bool // Within tells of every rank, for half a MB

	n     int64
	kept  []int64
	count []int64 // by bucket; for whole numbers the negative ones come first
	wide  bool    // of a kept number nobody knows that it has a bucket to itself
	float bool    // numbers are the bits of floats from 0 on
	done  bool    // Seek was called
	cells []cell
	pick  []uint8 // cell of each bucket, plus 1
	total []int64 // count, after Seek
}

// A cell collects the numbers of one wanted bucket.
type cell struct {
	lo, width int64
	before, n int64   // numbers below the bucket, numbers in it
	values    []int64 // of these one or the other is used, whichever is smaller
	table     []uint32
	sorted    bool
}

// bucket is the position of v in count.
func (o *Order) bucket(v int64) int {
	if o.float {
		return min(max(int(v>>floatShift)-floatFrom, 0), floatSize-1)
	}
	if v < 0 {
		return intBuckets - 1 - logLinear(^v)
	}
	return intBuckets + logLinear(v)
}

// logLinear numbers the whole numbers from 0 on: one by one up to 512, then 256
// buckets an octave.
func logLinear(v int64) int {
	shift := bits.Len64(uint64(v)) - 1 - subBits
	if shift <= 0 {
		return int(v)
	}
	return shift<<subBits + int(v>>shift)
}

// alone says that a whole number has a bucket to itself.
func alone(v int64) bool { return uint64(v) < 2<<subBits }

// span is the least number of a bucket of whole numbers and how many it holds.
func span(bucket int) (lo, width int64) {
	at := bucket - intBuckets
	if bucket < intBuckets {
		at = intBuckets - 1 - bucket
	}
	lo, width = int64(at), 1
	if shift := at>>subBits - 1; shift > 0 {
		lo, width = int64(at-shift<<subBits)<<shift, 1<<shift
	}
	if bucket < intBuckets {
		lo = ^(lo + width - 1)
	}
	return lo, width
}

// Clone is a copy of o, before Seek, that goes its own way.
func (o *Order) Clone() *Order {
	c := *o
	c.kept, c.count = slices.Clone(o.kept), slices.Clone(o.count)
	return &c
}

// N is how many numbers came.
func (o *Order) N() int64 { return o.n }

// Reserve makes room for n numbers, or as many as are kept, so that no growing is
// needed: what outgrows its memory is copied, and leaves as much behind.
func (o *Order) Reserve(n int) {
	if n = min(n, o.room()); o.count == nil && o.kept == nil && n > 0 {
		o.kept = make([]int64, 0, n)
	}
}

// Add takes a number.
func (o *Order) Add(v int64) {
	o.n++
	if o.count == nil {
		if o.keep(v) {
			return
		}
		o.spill()
	}
	o.count[o.bucket(v)]++
}

// AddAll takes each of vs.
func (o *Order) AddAll(vs []int64) {
	if o.count == nil && len(vs) <= o.room() {
		o.n += int64(len(vs))
		o.kept, o.wide = append(grow(o.kept, len(vs)), vs...), true
		return
	}
	if o.count == nil {
		o.spill()
	}
	o.n += int64(len(vs))
	o.countAll(vs)
}

// countAll counts each of vs in its bucket.
func (o *Order) countAll(vs []int64) {
	count := o.count
	if o.float {
		for _, v := range vs {
			count[o.bucket(v)]++
		}
		return
	}
	for _, v := range vs {
		if v < 0 {
			count[intBuckets-1-logLinear(^v)]++
		} else {
			count[intBuckets+logLinear(v)]++
		}
	}
}

// AddN takes the number v times times. Many of a small number are counted at once:
// it has a bucket to itself, and keeping each would be to no end.
func (o *Order) AddN(v, times int64) {
	if o.count == nil && times > 1 && alone(v) && len(o.kept)+int(min(times, runsUpTo)) > runsUpTo && !o.float && !o.wide {
		o.spill()
	}
	if o.count == nil && times > 0 {
		n := min(times, int64(o.room()))
		o.n += n
		for o.kept = grow(o.kept, int(n)); n > 0; n-- {
			o.kept = append(o.kept, v)
			times--
		}
		o.wide = o.wide || !alone(v)
	}
	if times > 0 && o.count == nil {
		o.spill()
	}
	if times > 0 {
		o.n += times
		o.count[o.bucket(v)] += times
	}
}

// room is how many more numbers are kept before counting begins.
func (o *Order) room() int { return cmp.Or(max(o.Limit, 0), keepUnless) - len(o.kept) }

func (o *Order) keep(v int64) bool {
	if o.room() <= 0 {
		return false
	}
	o.kept, o.wide = append(grow(o.kept, 1), v), o.wide || !alone(v)
	return true
}

// counts are cleared counts of whole numbers, which are large and which kept numbers
// need for a moment only.
var counts sync.Pool

// spill turns the kept numbers into counts.
func (o *Order) spill() {
	if o.float {
		o.count = make([]int64, floatSize)
	} else if spare, ok := counts.Get().(*[]int64); ok {
		o.count = *spare
	} else {
		o.count = make([]int64, 2*intBuckets)
	}
	o.countAll(o.kept)
	o.kept = nil
}

// Seek says which ranks, from 1, At will be asked for, after the last number
// came. It reports whether the numbers must come once more, to Again. Ranks
// outside 1 … n are passed over; there may be up to 255.
func (o *Order) Seek(ranks ...int64) (again bool) {
	if o.done {
		return false
	}
	o.done = true
	if o.count == nil && len(o.kept) <= sortUpTo {
		slices.Sort(o.kept)
		return false
	}
	kept := o.kept
	if o.count == nil {
		o.spill()
	}
	count := o.count
	o.choose(ranks)
	if kept != nil {
		o.AgainAll(kept)
		if !o.Outline && !o.float {
			clear(count)
			counts.Put(&count)
		}
		return false
	}
	for i := range o.cells {
		if o.cells[i].width != 1 {
			return true
		}
	}
	return false
}

// choose makes a cell for every bucket that holds one of the ranks.
func (o *Order) choose(ranks []int64) {
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	o.pick = make([]uint8, len(o.count))
	var before int64
	for at, n := range o.count {
		if n == 0 {
			continue
		}
		for len(sorted) > 0 && sorted[0] <= before {
			sorted = sorted[1:]
		}
		if len(sorted) == 0 {
			break
		}
		if sorted[0] <= before+n {
			c := cell{before: before, n: n, width: math.MaxInt64}
			if !o.float {
				c.lo, c.width = span(at)
			}
			c.reserve()
			o.cells = append(o.cells, c)
			if c.width != 1 {
				o.pick[at] = uint8(len(o.cells))
			}
		}
		before += n
	}
	if o.Outline {
		o.total = o.count
	}
	o.count = nil
}

// Kept are the numbers in the order in which they came, before Seek; ok is false
// where they are only counted.
func (o *Order) Kept() (values []int64, ok bool) { return o.kept, o.count == nil && !o.done }

// A Bucket is a span of numbers that are counted together.
type Bucket struct {
	Lo, Hi     int64 // its least number and its greatest
	Before, In int64 // numbers below it, numbers in it
}

// Buckets are those that hold the ranks, which ascend from 1 on, whether the
// numbers are kept or not.
func (o *Order) Buckets(ranks ...int64) []Bucket {
	count := o.count
	switch {
	case count == nil && o.done:
		count = o.total
	case count == nil:
		c := Order{float: o.float, kept: o.kept}
		c.spill()
		count = c.count
		if !o.float {
			defer func() {
				clear(count)
				counts.Put(&count)
			}()
		}
	}
	var all []Bucket
	var before int64
	for at, n := range count {
		if n == 0 {
			continue
		}
		for len(all) < len(ranks) && ranks[len(all)] <= before+n {
			lo, width := span(at)
			all = append(all, Bucket{Lo: lo, Hi: lo + width - 1, Before: before, In: n})
		}
		before += n
	}
	return all
}

// Within is between which ends the number of a rank lies, after Seek: exactly
// where the rank was asked for or shares a bucket with one that was, and, with an
// outline, to a part in 256 elsewhere. ok is false where it is not known.
func (o *Order) Within(rank int64) (lo, hi int64, ok bool) {
	if v, ok := o.At(rank); ok {
		return v, v, true
	}
	if rank < 1 || rank > o.n || o.total == nil {
		return 0, 0, false
	}
	b := o.Buckets(rank)[0]
	return b.Lo, b.Hi, true
}

// reserve makes room for the cell's numbers, by the cheaper of two ways.
func (c *cell) reserve() {
	switch {
	case c.width == 1:
	case c.width <= tableUpTo && c.width/2 < c.n && c.n <= math.MaxUint32:
		c.table = make([]uint32, c.width)
	default:
		c.values = make([]int64, 0, c.n)
	}
}

// Again takes a number of the second round.
func (o *Order) Again(v int64) {
	if o.pick == nil {
		return
	}
	p := o.pick[o.bucket(v)]
	if p == 0 {
		return
	}
	o.cells[p-1].take(v)
}

// take takes one of the cell's numbers.
func (c *cell) take(v int64) {
	if c.table != nil {
		c.table[v-c.lo]++
		return
	}
	c.values = append(c.values, v)
}

// AgainAll takes each of vs.
func (o *Order) AgainAll(vs []int64) {
	if o.pick == nil || o.float {
		for _, v := range vs {
			o.Again(v)
		}
		return
	}
	pick := o.pick
	for _, v := range vs {
		at := intBuckets + logLinear(v)
		if v < 0 {
			at = intBuckets - 1 - logLinear(^v)
		}
		if p := pick[at]; p != 0 {
			o.cells[p-1].take(v)
		}
	}
}

// At is the number of a rank that Seek was asked for; ok is false where there is
// none.
func (o *Order) At(rank int64) (v int64, ok bool) {
	if rank < 1 || rank > o.n || !o.done {
		return 0, false
	}
	if o.pick == nil {
		return o.kept[rank-1], true
	}
	for i := range o.cells {
		if c := &o.cells[i]; rank > c.before && rank <= c.before+c.n {
			return c.at(rank - c.before)
		}
	}
	return 0, false
}

func (c *cell) at(rank int64) (int64, bool) {
	if c.width == 1 {
		return c.lo, true
	}
	if c.table != nil {
		for i, n := range c.table {
			if rank -= int64(n); rank <= 0 {
				return c.lo + int64(i), true
			}
		}
		return 0, false
	}
	if !c.sorted {
		sortWhole(c.values)
		c.sorted = true
	}
	if rank > int64(len(c.values)) {
		return 0, false
	}
	return c.values[rank-1], true
}
