package load

import (
	"fmt"
	"net/http"

	"fermata/cost"
	"fermata/dialect"
	"fermata/internal/seed"
)

// A Target is who is asked. Each has prompts of its own, as their lengths are
// fitted to its count of tokens; what they ask is the same everywhere.
type Target struct {
	Name    string // column target of the recording; empty for a single one
	URL     string
	Header  http.Header
	Dialect dialect.Dialect
	Prompts Prompts
	// PromptLength sends the intended length of each prompt along, to a server that
	// asks for nothing else of it.
	PromptLength bool
	Rate         *cost.Rate // what its tokens cost; nil where nobody said

	desk *desk // of a run's
}

// A Route chooses a target for each request, or each conversation, by its number:
// whatever happens under way, the same one for the same seed.
type Route struct {
	Weights []float64 // of the targets, over 0
	Block   bool      // by blocks: as many requests as the weights (whole numbers) add up to go to each target as often as its weight says, in random order
	Seed    uint64
}

// To is the place of request i's target.
func (r *Route) To(i int64) int {
	if len(r.Weights) < 2 {
		return 0
	}
	if r.Block {
		return r.inBlock(i)
	}
	sum := 0.0
	for _, w := range r.Weights {
		sum += w
	}
	left := sum * seed.Rand(r.Seed, fmt.Sprintf("load: target of request %d", i)).Float64()
	for k, w := range r.Weights {
		if left < w {
			return k
		}
		left -= w
	}
	return len(r.Weights) - 1 // rounding
}

func (r *Route) inBlock(i int64) int {
	var block []int
	for k, w := range r.Weights {
		for range int(w) {
			block = append(block, k)
		}
	}
	n := int64(len(block))
	seed.Rand(r.Seed, fmt.Sprintf("load: order of block %d", i/n)).Shuffle(len(block), func(a, b int) {
		block[a], block[b] = block[b], block[a]
	})
	return block[i%n]
}

// furnish gives a target of the run its desk.
func (r *run) furnish(t *Target) {
	t.desk = &desk{target: t.Name, dialect: t.Dialect, record: r.keep, tally: &r.tally, slowNs: r.times.real(r.SlowNs)}
}

// to is the target of request i, or of conversation i.
func (r *run) to(i int64) *Target {
	if len(r.Targets) == 0 {
		return &r.Target
	}
	return &r.Targets[r.Route.To(i)]
}
