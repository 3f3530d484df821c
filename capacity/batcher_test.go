package capacity_test

import (
	"context"
	"math"
	"math/rand/v2"

	"fermata/capacity"
)

// A batcher is a server with continuous batching, written for speed and apart from
// package sim: chunked prefill of 512 tokens an iteration, at most 64 requests at
// once, an iteration of 10 ms, 0.1 ms a sequence that decodes and 0.04 ms a token
// of a prompt, with 5 % of noise; prompts and answers have log-normal lengths
// (medians 417 and 150).
type batcher struct {
	timeline
	objective objective
	noise     *rand.Rand

	clock, kv float64
	requests  []asked
	arrived   int // of requests, how many have arrived
	admitted  int
	done      int
	tokens    int64

	prefill []prefilling
	decode  []decoding
	ending  map[int][]int // iteration to the requests that end in it
	step    int
	slack   float64 // sum of gap − iteration; that of a sequence is slack − base
	highest float64 // base of those that decode
}

type objective int

const (
	fluid objective = iota // F >= 0.9 at 25 ms, first token due after 0.25 s + 0.1 ms a token
	ttft2                  // first token within 2 s
	ttft8                  // … 8 s
)

func (o objective) patience() float64 { return [...]float64{math.Inf(1), 2, 8}[o] }

type asked struct {
	at             float64
	prompt, output int32
	slot           int32
	ahead          int32
	first, end     float32 // from at, s; 0 until known
	fluid          bool
}

type prefilling struct{ i, left int }

type decoding struct {
	i, missed, late int
	base            float64
}

const (
	gap       = .025
	batchMost = 64
	chunk     = 512
	kvMost    = 120_000
)

func newBatcher(o objective, seed uint64) *batcher {
	return &batcher{
		timeline: timeline{rng: rand.New(rand.NewPCG(seed, 2))}, noise: rand.New(rand.NewPCG(seed, 3)),
		objective: o, ending: map[int][]int{}, highest: math.Inf(-1),
	}
}

func (b *batcher) ask(at float64) {
	length := func(median, sigma, least, most float64) int32 {
		return int32(min(max(math.Round(median*math.Exp(sigma*b.rng.NormFloat64())), least), most))
	}
	b.requests = append(b.requests, asked{at: at, prompt: length(417, .955, 4, 4096), output: length(150, .70, 2, 1024)})
}

func (b *batcher) Burst(_ context.Context, n int) (capacity.Burst, error) {
	one := newBatcher(b.objective, b.rng.Uint64())
	for range n {
		one.ask(0)
	}
	one.run(math.Inf(1))
	burst := capacity.Burst{Asked: n, Tokens: one.tokens}
	for _, r := range one.requests {
		burst.Ends = append(burst.Ends, ns(float64(r.end)))
	}
	return burst, nil
}

func (b *batcher) Send(ctx context.Context, n int, rate float64) error {
	for range n {
		b.ask(b.next(rate))
	}
	b.run(b.at)
	return ctx.Err()
}

func (b *batcher) Drain(ctx context.Context) error {
	b.run(math.Inf(1))
	b.at = max(b.at, b.clock)
	return ctx.Err()
}

func (b *batcher) Now() capacity.Reading {
	return capacity.Reading{Ns: ns(b.at), Sent: b.sent, Backlog: int64(len(b.requests) - b.done), Tokens: b.tokens}
}

// Outcomes are known when a request has ended, or has waited for too long.
func (b *batcher) Outcomes() []capacity.Outcome {
	b.known = b.known[:0]
	for ; b.told < len(b.requests); b.told++ {
		r := &b.requests[b.told]
		o := capacity.Outcome{At: ns(r.at), Ahead: int(r.ahead)}
		waits := b.objective.patience()
		switch {
		case b.objective == fluid && r.end == 0, r.first == 0 && b.at-r.at <= waits:
			return b.known
		case b.objective == fluid:
			o.Missed = !r.fluid
		default:
			o.Missed = r.first == 0 || float64(r.first) > waits
		}
		b.known = append(b.known, o)
	}
	return b.known
}

// run lets everything happen before a time.
func (b *batcher) run(until float64) {
	for {
		for b.arrived < len(b.requests) && b.requests[b.arrived].at <= b.clock {
			b.requests[b.arrived].ahead = int32(b.arrived - b.done)
			b.arrived++
		}
		if len(b.decode)+len(b.prefill) == 0 && b.admitted == b.arrived {
			if b.arrived >= len(b.requests) || b.requests[b.arrived].at > until {
				return
			}
			b.clock = b.requests[b.arrived].at
			continue
		}
		if b.clock >= until {
			return
		}
		b.iterate()
	}
}

func (b *batcher) iterate() {
	for len(b.decode)+len(b.prefill) < batchMost && b.admitted < b.arrived {
		r := &b.requests[b.admitted]
		need := float64(r.prompt + r.output)
		if len(b.decode)+len(b.prefill) > 0 && b.kv+need > kvMost {
			break
		}
		b.prefill = append(b.prefill, prefilling{b.admitted, int(r.prompt)})
		b.kv += need
		b.admitted++
	}
	budget, prompts, over := chunk-len(b.decode), 0, 0
	for k := range b.prefill {
		if budget <= 0 {
			break
		}
		take := min(b.prefill[k].left, budget)
		b.prefill[k].left -= take
		budget, prompts = budget-take, prompts+take
		if b.prefill[k].left == 0 {
			over = k + 1
		}
	}
	took := .010 + .0001*float64(len(b.decode)) + .00004*float64(prompts)
	z := b.noise.Float64() + b.noise.Float64() + b.noise.Float64() + b.noise.Float64() - 2
	took *= 1 + .05*math.Sqrt(3)*z // the sum of four uniforms is close to a normal
	b.clock += took
	b.step++
	b.play(took)
	for _, i := range b.ending[b.step] {
		b.end(i)
	}
	delete(b.ending, b.step)
	for _, p := range b.prefill[:over] {
		b.begin(p.i)
	}
	b.prefill = b.prefill[:copy(b.prefill, b.prefill[over:])]
}

// play gives every sequence that decodes a token and keeps the account of its
// deadlines.
func (b *batcher) play(took float64) {
	b.slack += gap - took
	b.tokens += int64(len(b.decode))
	if b.slack >= b.highest {
		return // nobody is late
	}
	b.highest = math.Inf(-1)
	for k := range b.decode {
		d := &b.decode[k]
		if late := d.base - b.slack; late > 0 {
			d.missed += int(late/gap) + 1
			d.late++
			d.base = b.slack
		}
		b.highest = max(b.highest, d.base)
	}
}

func (b *batcher) begin(i int) {
	r := &b.requests[i]
	took := b.clock - r.at
	r.first = float32(took)
	b.tokens++
	d := decoding{i: i, base: b.slack}
	if late := took - (.25 + .0001*float64(r.prompt)); late > 0 {
		d.missed, d.late = int(late/gap)+1, 1
	} else {
		d.base += late
	}
	b.highest = max(b.highest, d.base)
	r.slot = int32(len(b.decode))
	b.decode = append(b.decode, d)
	at := b.step + int(r.output) - 1
	b.ending[at] = append(b.ending[at], i)
}

func (b *batcher) end(i int) {
	r := &b.requests[i]
	d := b.decode[r.slot]
	met := int(r.output) - d.late
	r.fluid = 10*met >= 9*(met+d.missed)
	r.end = float32(b.clock - r.at)
	b.kv -= float64(r.prompt + r.output)
	b.done++
	last := len(b.decode) - 1
	b.decode[r.slot] = b.decode[last]
	b.requests[b.decode[last].i].slot = r.slot
	b.decode = b.decode[:last]
}
