package sim

import "math"

// The sides that an instance can be.
type side int

const (
	whole       side = iota // prefills and decodes
	prefillSide             // of a disaggregated system
	decodeSide
)

// A policy forms the batch of an iteration: it admits waiting requests and
// reserves memory, and calls decode and chunk for what runs. Forming nothing
// leaves the instance idle until the next event, or until i.timer.
type policy interface{ form(i *instance, now int64) }

// An instance is one loop: a GPU group that runs an iteration after another.
type instance struct {
	*plan
	engine  *Engine
	number  int
	side    side
	policy  policy
	queue   *queue // the prefill side shares one
	memory  memory
	running []*sequence // in order of admission

	busy  bool
	gone  bool  // somebody in running is done or was cancelled
	timer int64 // look again at this time though nothing happens; math.MaxInt64 without
	it    Iteration
	batch Batch
	// In the iteration: sequences that decode, and those that Batch.Chunks belong to.
	decodes []*sequence
	chunked []*sequence

	past  past
	noise *noise
	usage Usage

	pulling []*sequence // decode side: to come from the prefill side, in order
	flying  []*sequence // under way to its memory
	swapped []*sequence // out of its memory, a stack
	link    int64       // when the link is free
}

func newInstance(e *Engine, number int, s side) *instance {
	i := &instance{
		plan: e.plan, engine: e, number: number, side: s, queue: &queue{order: e.plan.Scheduler.Order}, timer: math.MaxInt64,
		memory: memory{blockSize: e.plan.blockSize, total: e.plan.blocks, free: e.plan.blocks, watermark: e.plan.watermark},
		noise:  newNoise(&e.plan.Options, number),
	}
	if e.plan.PrefixCache && s != decodeSide {
		i.memory.cache = newCache()
	}
	i.past.limit, i.past.least = pastLeast, pastLeast
	i.it.Replica, i.it.Number = number, -1
	switch e.plan.Scheduler.Policy {
	case PrefillFirst:
		i.policy = prefillFirst{}
	case StallFree:
		i.policy = stallFree{}
	case Unified:
		i.policy = unified{}
	case Static:
		i.policy = static{}
	case Orca:
		i.policy = orca{}
	}
	if s == decodeSide {
		i.policy = decodeOnly{}
	}
	return i
}

// begin starts the next iteration, if there is anything to run.
func (i *instance) begin(now int64) {
	i.decodes, i.chunked = i.decodes[:0], i.chunked[:0]
	i.batch = Batch{Chunks: i.batch.Chunks[:0]}
	i.timer = math.MaxInt64
	i.policy.form(i, now)
	if len(i.decodes) == 0 && len(i.chunked) == 0 {
		return
	}
	for _, s := range i.chunked {
		if r := &s.record; r.FirstScheduled < 0 {
			r.FirstScheduled = now
		}
	}
	ns, own := i.duration()
	it := &i.it
	it.Number++
	it.Start, it.End, it.OwnNs = now, now+ns, own
	it.Decodes, it.Chunks = len(i.decodes), i.batch.Chunks
	it.Running, it.Waiting, it.BlocksFree = len(i.running), i.queue.len(), i.memory.free
	if i.memory.total != unlimited {
		it.BlocksAll = i.memory.total
	}
	i.busy = true
}

// duration is the time of the iteration, and what it would be without chunks.
func (i *instance) duration() (ns, own int64) {
	b := &i.batch
	ns = i.cost.Iteration(b)
	if b.Decodes > 0 {
		own = ns
		if len(b.Chunks) > 0 {
			alone := Batch{Decodes: b.Decodes, Query: b.Query, Context: b.Context}
			own = i.cost.Iteration(&alone)
		}
		draft := i.drafting(b)
		ns, own = ns+draft, own+draft
	}
	if i.noise != nil {
		ns, own = i.noise.disturb(ns, own)
	}
	return ns, own
}

// decode lets s decode in this iteration, with so many drafts to verify. The
// memory for it is held.
func (i *instance) decode(s *sequence, drafts int) {
	s.drafts = drafts
	i.decodes = append(i.decodes, s)
	i.batch.Decodes++
	i.batch.Query += 1 + drafts
	i.batch.Context += int64(s.computed + 1)
}

// chunk lets s prefill so many tokens in this iteration.
func (i *instance) chunk(s *sequence, tokens int) {
	i.chunked = append(i.chunked, s)
	i.batch.Chunks = append(i.batch.Chunks, Chunk{Index: s.Index, Tokens: tokens, Cached: s.computed, Last: s.computed+tokens >= s.target})
}

// admit takes the head of the queue into the running, with memory for so many
// tokens of it, of which the chain is in the cache.
func (i *instance) admit(chain []*block, tokens int, now int64) *sequence {
	s := i.queue.pop()
	i.memory.admit(s, chain, tokens)
	if s.record.FirstScheduled < 0 {
		s.record.Cached = s.computed
	}
	s.home = i
	s.silence.comeBack(now)
	i.running = append(i.running, s)
	return s
}

// evict takes the last admitted sequence out of memory. It starts over at the
// head of the queue, or on the decode side comes back as it was.
func (i *instance) evict(now int64) {
	last := len(i.running) - 1
	s := i.running[last]
	i.running[last] = nil
	i.running = i.running[:last]
	i.memory.release(s)
	s.record.Evictions++
	s.silence.evict(now)
	i.usage.Evictions++
	if i.side == decodeSide {
		i.swapped = append(i.swapped, s)
		return
	}
	s.record.Recomputed += s.computed
	i.usage.Recomputed += int64(s.computed)
	s.computed, s.target = 0, s.Prompt+s.generated
	i.queue.pushFront(s)
}

// decodeRoom lets everyone who decodes do so, oldest first. While the next needs
// memory that nobody has, the last admitted sequences are evicted; if that is
// itself, it goes.
func (i *instance) decodeRoom(now int64, drafts int) {
	for k := 0; k < len(i.running); k++ {
		s := i.running[k]
		if !s.decoding() {
			continue
		}
		for i.memory.need(s, s.computed+1+drafts) > i.memory.free {
			i.evict(now)
			if k >= len(i.running) {
				return
			}
		}
		i.memory.take(s, s.computed+1+drafts)
		i.decode(s, drafts)
	}
}

// complete ends the iteration: its tokens come, its memory goes.
func (i *instance) complete() {
	it := &i.it
	i.busy = false
	it.Emitted = 0
	for _, s := range i.decodes {
		if s.cancelled {
			i.gone = true
			continue
		}
		n := min(i.engine.accepted(s), s.Output-s.generated)
		s.computed += n
		if i.drafts() > 0 && i.Scheduler.Policy != Orca {
			i.memory.trim(s, s.computed)
		}
		i.emit(s, n, false)
		i.gone = i.gone || s.generated >= s.Output
	}
	for k, s := range i.chunked {
		if s.cancelled {
			i.gone = true
			continue
		}
		s.computed += i.batch.Chunks[k].Tokens
		i.memory.remember(s)
		if s.decoding() {
			i.emit(s, 1, true)
			i.gone = i.gone || s.generated >= s.Output || i.side == prefillSide
		}
	}
	if it.Decodes == 0 {
		i.past.add(it)
	}
	i.usage.add(it)
	if i.engine.observer.Iteration != nil {
		i.engine.observer.Iteration(it)
	}
	if i.gone {
		i.leave()
	}
	if len(i.past.iterations) > i.past.limit {
		i.forget()
	}
}

// emit gives s so many tokens at the end of the iteration.
func (i *instance) emit(s *sequence, n int, prefilled bool) {
	it, r := &i.it, &s.record
	if first := len(r.Tokens) == 0; first {
		r.PrefillEnd = it.End
		r.Tokens = append(r.Tokens, Token{At: it.End, Iteration: it.Number})
	} else {
		token := Token{At: it.End, Iteration: it.Number, OwnNs: it.OwnNs}
		if q := &s.silence; q.eventful || q.since != it.Start || prefilled {
			i.past.attribute(s, it, prefilled)
			if prefilled {
				token.OwnNs = 0
			}
		}
		r.Tokens = append(r.Tokens, token)
	}
	for range n - 1 {
		r.Tokens = append(r.Tokens, Token{At: it.End, Iteration: it.Number})
	}
	s.silence.heard(it.End, it.Number)
	s.generated += n
	it.Emitted += n
	if i.memory.cache != nil {
		i.memory.remember(s)
	}
	if i.engine.observer.Token != nil {
		i.engine.observer.Token(Emission{
			Index: s.Index, Replica: i.number, Iteration: it.Number, At: it.End, Tokens: n,
			First: s.generated == n, Last: s.generated >= s.Output,
		})
	}
}

// leave lets those go who are done or whose clients left, in the order in which
// they were admitted. Where rows stay until their batch is done, they end in
// time, and leave together.
func (i *instance) leave() {
	i.gone = false
	together := i.Scheduler.Policy == Static
	for _, s := range i.running {
		if s.ended {
			continue
		}
		if s.cancelled {
			i.engine.end(s, i, Cancelled, i.it.End)
		} else if s.generated >= s.Output {
			i.engine.end(s, i, Finished, i.it.End)
		}
		together = together && s.ended
	}
	if i.Scheduler.Policy == Static && !together {
		return
	}
	stay := i.running[:0]
	for _, s := range i.running {
		switch {
		case s.ended:
			i.memory.release(s)
			i.engine.recycle(s)
		case i.side == prefillSide && s.decoding():
			i.engine.handOver(s)
		default:
			stay = append(stay, s)
		}
	}
	clear(i.running[len(stay):])
	i.running = stay
}

// forget drops what nobody's silence reaches back to.
func (i *instance) forget() {
	oldest := i.it.Number
	for _, list := range [][]*sequence{i.running, i.queue.evicted} {
		for _, s := range list {
			if len(s.record.Tokens) > 0 {
				oldest = min(oldest, s.silence.iteration)
			}
		}
	}
	i.past.forget(oldest)
	i.past.limit = max(i.past.least, 2*len(i.past.iterations))
}
