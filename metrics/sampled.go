package metrics

import (
	"cmp"
	"slices"
)

// A sampled list keeps some of what it is given, every one with the same chance:
// those with the smallest keys, as many as have the weight. The keys are hashes of
// the requests' indexes with a seed, so that neither order nor chance matters.
type sampled[T any] struct {
	seed  uint64
	limit int // of the weights' sum
	list  []weighed[T]
	sum   int
	seen  int64
	below uint64 // keys from this on are not kept
}

type weighed[T any] struct {
	key    uint64
	weight int
	value  T
}

func newSampled[T any](seed uint64, limit int) *sampled[T] {
	return &sampled[T]{seed: seed, limit: limit, below: ^uint64(0)}
}

// offer keeps what make makes, if index is in the sample.
func (s *sampled[T]) offer(index int64, weight int, make func() T) {
	s.seen++
	key := scatter(uint64(index) ^ s.seed)
	if key >= s.below {
		return
	}
	s.list = append(s.list, weighed[T]{key, weight, make()})
	if s.sum += weight; s.sum > 2*s.limit {
		s.trim()
	}
}

// trim leaves no more than the limit, but one value at least.
func (s *sampled[T]) trim() {
	slices.SortFunc(s.list, func(a, b weighed[T]) int { return cmp.Compare(a.key, b.key) })
	s.sum = 0
	for i := range s.list {
		if w := s.list[i].weight; i == 0 || s.sum+w <= s.limit {
			s.sum += w
			continue
		}
		s.below = s.list[i].key
		clear(s.list[i:])
		s.list = s.list[:i]
		return
	}
}

// values are what is kept, in no order.
func (s *sampled[T]) values() []T {
	s.trim()
	all := make([]T, len(s.list))
	for i := range s.list {
		all[i] = s.list[i].value
	}
	return all
}

// scatter is the finaliser of SplitMix64: neighbours come out far apart.
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
