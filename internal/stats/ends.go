package stats

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

const fineBits = 12 // 4096 buckets an octave

// Ends bounds the numbers of given ranks among numbers from 0 on, in one pass:
// exactly while it keeps the numbers themselves, beyond its limit to a part in
// 4096. The zero value is ready.
type Ends struct {
	Limit int // numbers kept before counting begins; default 65,536

	n     int64
	kept  Order // without a limit of its own
	count []int64
}

// Reserve makes room for n numbers or the limit, so that no growing is needed.
func (e *Ends) Reserve(n int) {
	e.kept.Limit = math.MaxInt
	e.kept.Reserve(min(n, e.room()))
}

// Add takes a number; what lies below 0 counts as 0.
func (e *Ends) Add(v int64) {
	if e.count == nil {
		if e.room() > 0 {
			e.n++
			e.kept.Limit = math.MaxInt
			e.kept.Add(max(v, 0))
			return
		}
		e.count = make([]int64, (64-fineBits)<<fineBits)
		for _, k := range e.kept.kept {
			e.count[fine(k)]++
		}
		e.kept = Order{}
	}
	e.n++
	e.count[fine(max(v, 0))]++
}

// room is how many more numbers are kept before counting begins.
func (e *Ends) room() int { return cmp.Or(max(e.Limit, 0), keepUnless) - len(e.kept.kept) }

// AddAll takes each of vs.
func (e *Ends) AddAll(vs []int64) {
	if e.count == nil && len(vs) <= e.room() {
		e.n += int64(len(vs))
		e.kept.Limit = math.MaxInt
		e.kept.AddAll(vs)
		added := e.kept.kept[len(e.kept.kept)-len(vs):]
		for i, v := range added {
			added[i] = max(v, 0)
		}
		return
	}
	if e.count == nil {
		for _, v := range vs {
			e.Add(v)
		}
		return
	}
	e.n += int64(len(vs))
	count := e.count
	for _, v := range vs {
		count[fine(max(v, 0))]++
	}
}

func fine(v int64) int {
	shift := bits.Len64(uint64(v)) - 1 - fineBits
	if shift <= 0 {
		return int(v)
	}
	return shift<<fineBits + int(v>>shift)
}

// N is how many numbers came.
func (e *Ends) N() int64 { return e.n }

// Clone is a copy of e that goes its own way.
func (e *Ends) Clone() *Ends {
	c := *e
	c.kept, c.count = *e.kept.Clone(), slices.Clone(e.count)
	return &c
}

// Seek says which ranks, from 1, At will be asked for, after the last number came;
// there may be up to 255.
func (e *Ends) Seek(ranks ...int64) { e.kept.Seek(ranks...) }

// At is between which ends the number of a rank lies that Seek was asked for; ok is
// false where there is none.
func (e *Ends) At(rank int64) (lo, hi int64, ok bool) {
	if rank < 1 || rank > e.n {
		return 0, 0, false
	}
	if e.count == nil {
		v, ok := e.kept.At(rank)
		return v, v, ok
	}
	for i, n := range e.count {
		if rank -= n; rank > 0 {
			continue
		}
		lo, width := int64(i), int64(1)
		if shift := i>>fineBits - 1; shift > 0 {
			lo, width = int64(i-shift<<fineBits)<<shift, 1<<shift
		}
		return lo, lo + width - 1, true
	}
	return 0, 0, false
}
