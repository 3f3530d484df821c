package metrics

import (
	"math"
	"math/bits"
)

// metPerMiss is what F >= 0.9 asks for: met >= 9·missed.
const metPerMiss = 9

// SmallestGap is D_d* of one answer, decode only: the smallest whole target gap
// of at least 1 ns at which F >= 0.9. ok is false below two tokens.
func SmallestGap(times []int64) (gap int64, ok bool) {
	if len(times) < 2 {
		return 0, false
	}
	s := gapSearch{times: times[1:], anchor: times[0]}
	return s.smallest()
}

// SmallestGapFirst is D_d* with the first token scored against its deadline. ok
// is false where no gap is large enough: the first token is late and there are
// too few others to outweigh it, or there is no token.
func SmallestGapFirst(times []int64, deadline int64) (gap int64, ok bool) {
	if len(times) == 0 {
		return 0, false
	}
	s := gapSearch{times: times[1:], anchor: deadline, met: 1}
	if late := times[0] - deadline; late > 0 {
		s.anchor, s.met, s.late = times[0], 0, late
	}
	return s.smallest()
}

// A gapSearch looks for the smallest gap for tokens that are played back from an
// anchor, the first due one gap after it.
type gapSearch struct {
	times  []int64
	anchor int64
	met    int64 // met before these
	late   int64 // of a late token before these, which misses ⌊late/gap⌋ + 1
}

// smallest narrows a bracket down. F only rises with the gap, and is constant
// between the gaps at which some token's number of misses changes; so every probe
// moves an end to the nearest such gap, and about ten probes are enough.
func (s *gapSearch) smallest() (int64, bool) {
	lo := int64(1)
	most := (int64(len(s.times)) + s.met - 1) / metPerMiss // misses, if any
	if s.late > 0 {
		// The late token misses one at the least, so the others one fewer.
		most = int64(len(s.times)) / metPerMiss
		if most < 1 {
			return 0, false
		}
		lo = s.late/most + 1
		most--
	}
	lo, even := s.bracket(lo, most)
	hi := max(even, s.late+1, lo)
	for lo < hi {
		good, edge := s.probe(lo+(hi-lo)/2, lo)
		if !good {
			lo = edge
			continue
		}
		if hi = edge; hi <= lo {
			break
		}
		// Something changes just below the edge, and often that is the end.
		if good, edge = s.probe(hi-1, lo); !good {
			break
		}
		hi = edge
	}
	return hi, true
}

// bracket gives a gap below which F >= 0.9 is impossible, and one at which no
// token is late. Lateness adds up to less than misses times gap, so a token i
// at t needs t - anchor <= (i + misses)·gap.
func (s *gapSearch) bracket(lo, misses int64) (least, even int64) {
	least, even = lo, 1
	for i, t := range s.times {
		wait, n := t-s.anchor, int64(i+1)
		if exceeds(wait, even, n) {
			even = (wait-1)/n + 1
		}
		if exceeds(wait, least, n+misses) {
			least = (wait-1)/(n+misses) + 1
		}
	}
	return least, even
}

// probe says whether the gap is large enough, and up to where nothing changes:
// the least gap with the same misses if it is, the least gap with fewer
// if it is not. low is a bound below which the caller is not interested.
func (s *gapSearch) probe(gap, low int64) (good bool, edge int64) {
	var missed int64
	met := s.met + int64(len(s.times)) // if no more are late
	down, up := max(low, 1), int64(math.MaxInt64)
	if s.late > 0 {
		m := s.late / gap
		missed = m + 1
		down = max(down, s.late/(m+1)+1)
		if m > 0 {
			up = s.late/m + 1
		}
		if met < metPerMiss*missed {
			return false, up
		}
	}
	from, n, due := s.anchor, int64(0), s.anchor
	last := int64(0)
	if len(s.times) > 0 {
		last = s.times[len(s.times)-1]
	}
	for _, t := range s.times {
		n++
		if due < last { // beyond it nothing is late
			due += gap
		}
		if t <= due {
			if wait := t - from; exceeds(wait, down, n) {
				down = (wait-1)/n + 1
			}
			continue
		}
		wait := t - from
		m := wait / gap
		missed += m - n + 1
		met--
		if m == n {
			up = min(up, (wait-1)/n+1)
		} else {
			up = min(up, wait/m+1)
		}
		if met < metPerMiss*missed {
			return false, up
		}
		down = max(down, wait/(m+1)+1)
		from, n, due = t, 0, t
	}
	return true, down
}

// exceeds says whether wait > gap·n.
func exceeds(wait, gap, n int64) bool {
	hi, lo := bits.Mul64(uint64(gap), uint64(n))
	return wait > 0 && hi == 0 && lo < uint64(wait)
}
