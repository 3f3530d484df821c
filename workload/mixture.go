package workload

import (
	"math"
	"math/rand/v2"

	"fermata/internal/seed"
)

// A mixture is made-up conversations among requests that stand alone, so that a
// share of the requests are turns of conversations. It counts arrivals, each of
// which begins a conversation or is a request of its own, by blocks: every block
// has its part of the conversations, to one, in an order that the seed draws, so
// that where an arrival stands among the requests follows without going through
// all before it.
type mixture struct {
	turns int64   // of each conversation
	p     float64 // share of the arrivals that begin one
	seed  uint64
}

// inBlock is how many arrivals a block has.
const inBlock = 64

// newMixture has a share of the requests in conversations of so many turns: with p
// the share of the arrivals that begin one, share = p·turns/(p·turns + 1-p).
func newMixture(turns int, share float64, runSeed uint64) *mixture {
	n := float64(turns)
	return &mixture{int64(turns), share / (n - share*(n-1)), seed.Derive(runSeed, "workload: sessions")}
}

// begun is how many conversations begin in the blocks before b.
func (m *mixture) begun(b int64) int64 { return int64(math.Round(float64(b*inBlock) * m.p)) }

// first is the index of the first request of block b.
func (m *mixture) first(b int64) int64 { return b*inBlock + (m.turns-1)*m.begun(b) }

// begins says which arrivals of a block begin a conversation.
func (m *mixture) begins(b int64) (is [inBlock]bool) {
	for i := range m.begun(b+1) - m.begun(b) {
		is[i] = true
	}
	rand.New(rand.NewPCG(m.seed, mix(uint64(b)))).Shuffle(inBlock, func(i, k int) { is[i], is[k] = is[k], is[i] })
	return is
}

func (m *mixture) size(begins bool) int64 {
	if begins {
		return m.turns
	}
	return 1
}

// arrival is where arrival i stands among the requests, and how many it brings.
func (m *mixture) arrival(i int64) (first, turns int64) {
	b := i / inBlock
	is := m.begins(b)
	first = m.first(b)
	for _, begins := range is[:i%inBlock] {
		first += m.size(begins)
	}
	return first, m.size(is[i%inBlock])
}

// place is the arrival that a request belongs to, its turn, and how many turns
// there are.
func (m *mixture) place(index int64) (arrival, turn, turns int64) {
	b := int64(float64(index) / (inBlock * (1 + m.p*float64(m.turns-1))))
	for b > 0 && m.first(b) > index {
		b--
	}
	for m.first(b+1) <= index {
		b++
	}
	at := m.first(b)
	for i, begins := range m.begins(b) {
		n := m.size(begins)
		if index < at+n {
			return b*inBlock + int64(i), index - at, n
		}
		at += n
	}
	panic("workload: a block of arrivals is shorter than its requests")
}
