package sim

// A Gap is the time between two tokens of one answer, with what it consisted of.
// The parts add up to it exactly.
type Gap struct {
	Index int64 // of the request
	Token int   // that ends it, from 1
	Ns    int64

	OwnNs       int64 // the decode step that brought the token, as it would have been without chunks of prompts
	MixedNs     int64 // what the chunks in that step's batch added
	PrefillNs   int64 // iterations that only prefilled, while it would have decoded
	PreemptedNs int64 // evicted from memory, waiting to come back
	RecomputeNs int64 // computing again what was lost, from coming back to the token
	TransferNs  int64 // its keys and values were under way
	WaitingNs   int64 // anything else: admission to a decode instance, an iteration that went on without it, no room in a budget

	PrefillIterations int     // in PrefillNs
	Culprits          []int64 // whose prompts they were, in order

	from, to int // of Culprits in the record
}

// A silence is what happened to a sequence since its last token.
type silence struct {
	since     int64 // the last token
	iteration int64 // that emitted it

	eventful    bool  // any of the rest is set
	evicted     int64 // the first eviction; absent where there was none
	out         int64 // the eviction that still holds; absent where there is none
	back        int64 // the first return; absent
	preempted   int64 // in all
	preempted1  int64 // of it, before the first return
	transferred int64
}

// heard begins a silence anew, with a token.
func (s *silence) heard(at, iteration int64) {
	*s = silence{since: at, iteration: iteration, evicted: absent, out: absent, back: absent}
}

func (s *silence) evict(at int64) {
	s.eventful = true
	if s.evicted < 0 {
		s.evicted = at
	}
	s.out = at
}

func (s *silence) comeBack(at int64) {
	if s.out < 0 {
		return
	}
	s.preempted += at - s.out
	s.out = absent
	if s.back < 0 {
		s.back, s.preempted1 = at, s.preempted
	}
}

// A prefilling is an iteration that only prefilled: what a silence may be due to.
type prefilling struct {
	number, start, end int64
	from, to           int // of owners
}

// A past is the iterations of an instance that only prefilled, as far as anyone
// still waits whom they kept waiting.
type past struct {
	iterations []prefilling
	owners     []int64
	limit      int // of iterations, before those are dropped that nobody needs
	least      int // of limit
}

const pastLeast = 1024

func (p *past) add(i *Iteration) {
	from := len(p.owners)
	for _, c := range i.Chunks {
		p.owners = append(p.owners, c.Index)
	}
	p.iterations = append(p.iterations, prefilling{i.Number, i.Start, i.End, from, len(p.owners)})
}

// forget drops what came up to the iteration of that number.
func (p *past) forget(number int64) {
	drop := 0
	for drop < len(p.iterations) && p.iterations[drop].number <= number {
		drop++
	}
	if drop == 0 {
		return
	}
	from := len(p.owners)
	if drop < len(p.iterations) {
		from = p.iterations[drop].from
	}
	n := copy(p.iterations, p.iterations[drop:])
	p.iterations = p.iterations[:n]
	m := copy(p.owners, p.owners[from:])
	p.owners = p.owners[:m]
	for i := range p.iterations {
		p.iterations[i].from -= from
		p.iterations[i].to -= from
	}
}

// attribute says what the gap before the next token of s consisted of, where it
// is more than one iteration. The token comes at the end of the iteration now,
// from a decode step or from a recompute.
func (p *past) attribute(s *sequence, now *Iteration, recompute bool) {
	r, q := &s.record, &s.silence
	g := Gap{Index: s.Index, Token: len(r.Tokens), Ns: now.End - q.since, PreemptedNs: q.preempted, TransferNs: q.transferred, from: len(r.culprits)}
	if recompute {
		g.RecomputeNs = now.End - q.back - (q.preempted - q.preempted1)
	} else {
		g.OwnNs = now.OwnNs
		g.MixedNs = now.End - now.Start - now.OwnNs
	}
	until := now.Start
	if q.evicted >= 0 {
		until = q.evicted
	}
	first := len(p.iterations)
	for first > 0 && p.iterations[first-1].number > q.iteration {
		first--
	}
	for _, it := range p.iterations[first:] {
		if it.end > until {
			break
		}
		g.PrefillNs += it.end - it.start
		g.PrefillIterations++
		r.culprits = append(r.culprits, p.owners[it.from:it.to]...)
	}
	g.to = len(r.culprits)
	g.WaitingNs = g.Ns - g.OwnNs - g.MixedNs - g.PrefillNs - g.PreemptedNs - g.RecomputeNs - g.TransferNs
	r.apart = append(r.apart, g)
}
