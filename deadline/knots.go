package deadline

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// knots are a curve that is linear between points of ascending lengths, at the
// nearest ns, a half up. Beyond its ends the first time and the last slope go on.
type knots []point

type point struct{ tokens, ns int64 }

func (k knots) at(tokens int64) int64 {
	i, exact := slices.BinarySearchFunc(k, tokens, func(p point, t int64) int { return cmp.Compare(p.tokens, t) })
	switch {
	case exact:
		return k[i].ns
	case i == 0:
		return k[0].ns
	case i == len(k):
		i--
	}
	a, b := k[i-1], k[i]
	if b.ns < a.ns { // an edge of a band may fall
		return max(0, a.ns-part(a.ns-b.ns, tokens-a.tokens, b.tokens-a.tokens, true))
	}
	rise := part(b.ns-a.ns, tokens-a.tokens, b.tokens-a.tokens, false)
	if rise > math.MaxInt64-a.ns {
		return math.MaxInt64
	}
	return a.ns + rise
}

// part is whole·of/all to the nearest integer; a half goes up, or down.
func part(whole, of, all int64, down bool) int64 {
	hi, lo := bits.Mul64(uint64(whole), uint64(of))
	half := uint64(all) / 2
	if down {
		half = uint64(all-1) / 2
	}
	lo, carry := bits.Add64(lo, half, 0)
	if hi += carry; hi >= uint64(all) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(all))
	return int64(min(q, math.MaxInt64))
}
