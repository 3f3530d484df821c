package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// small is Llama-3-8B on one H100 with so many tokens of memory and no
// watermark.
func small(tokens int64, s Scheduler) Options {
	zero := 0.0
	return Options{Memory: Memory{Tokens: tokens, Watermark: &zero}, Scheduler: s, MaxModelLen: 16384}
}

// play runs requests to the end and keeps their records, by index.
func play(t testing.TB, o Options, requests ...Request) []*Record {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return playOn(t, e, requests...)
}

func playOn(t testing.TB, e *Engine, requests ...Request) []*Record {
	t.Helper()
	var records []*Record
	for r, err := range e.Records(slices.Values(requests)) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r.Clone())
	}
	slices.SortFunc(records, func(a, b *Record) int { return int(a.Request.Index - b.Request.Index) })
	return records
}

var everyPolicy = []Scheduler{
	{Policy: PrefillFirst},
	{Policy: StallFree, Chunk: 512},
	{Policy: Unified, MaxNumBatchedTokens: 700},
	{Policy: Static, MaxNumSeqs: 4},
	{Policy: Orca},
}

// A request alone: its first token takes its prefill, piece by piece where there
// are pieces, and each gap a decode step at its context.
func TestOneRequest(t *testing.T) {
	const arrival, prompt, output = 12345, 3000, 40
	for _, s := range everyPolicy {
		o := small(100_000, s)
		cost := roofline(t, Options{Model: "Llama-3-8B"}, hostPresets["modern"])
		piece := map[string]int{StallFree: 512, Unified: 700}[s.Policy]
		if piece == 0 {
			piece = prompt
		}
		first := int64(0)
		for at := 0; at < prompt; at += piece {
			first += cost.Iteration(&Batch{Chunks: []Chunk{{Tokens: min(piece, prompt-at), Cached: at}}})
		}
		r := play(t, o, Request{Arrival: arrival, Prompt: prompt, Output: output})[0]
		if r.FirstScheduled != arrival || r.Tokens[0].At-arrival != first {
			t.Errorf("%s: scheduled at %d, first token after %d ns, want %d", s.Policy, r.FirstScheduled, r.Tokens[0].At-arrival, first)
		}
		for g := range r.Gaps() {
			context := int64(prompt + g.Token)
			want := cost.Iteration(&Batch{Decodes: 1, Query: 1, Context: context})
			if g.Ns != want || g.OwnNs != want {
				t.Errorf("%s: gap before token %d is %d ns, of it %d its own, want %d", s.Policy, g.Token, g.Ns, g.OwnNs, want)
			}
		}
		if len(r.Tokens) != output || r.End != r.Tokens[output-1].At {
			t.Errorf("%s: %d tokens, ends at %d", s.Policy, len(r.Tokens), r.End)
		}
	}
}

// Two requests and memory that lacks one block: the newer one goes, is computed
// again, and emits every token once.
func TestPreemption(t *testing.T) {
	for _, s := range []Scheduler{{Policy: PrefillFirst}, {Policy: StallFree}, {Policy: Unified}} {
		// Prompts of 150 take ten blocks each, and their answers of 60 four more.
		old, young := Request{Index: 0, Prompt: 150, Output: 60}, Request{Index: 1, Prompt: 150, Output: 60}
		records := play(t, small(16*27, s), old, young)
		if a, b := records[0], records[1]; a.Evictions != 0 || b.Evictions != 1 || len(a.Tokens) != 60 || len(b.Tokens) != 60 {
			t.Errorf("%s: evictions %d and %d, tokens %d and %d", s.Policy, a.Evictions, b.Evictions, len(a.Tokens), len(b.Tokens))
		}
		if enough := play(t, small(16*28, s), old, young); enough[0].Evictions+enough[1].Evictions > 0 {
			t.Errorf("%s: evictions though there is room", s.Policy)
		}
		b := records[1]
		var lost []Gap
		for g := range b.Gaps() {
			if g.PreemptedNs+g.RecomputeNs > 0 {
				lost = append(lost, g)
			}
		}
		// It is out until the other one has ended, and then everything it had is
		// computed again in one iteration, or in chunks, with nobody beside it.
		if len(lost) != 1 {
			t.Fatalf("%s: %+v", s.Policy, lost)
		}
		g := lost[0]
		had := 150 + g.Token
		if b.Recomputed != had-1 {
			t.Errorf("%s: %d tokens were computed again, want %d", s.Policy, b.Recomputed, had-1)
		}
		cost := roofline(t, Options{Model: "Llama-3-8B"}, hostPresets["modern"])
		if want := cost.Prefill(had); g.RecomputeNs != want || g.OwnNs != 0 || g.Ns != g.PreemptedNs+g.RecomputeNs {
			t.Errorf("%s: %+v, want a recompute of %d ns", s.Policy, g, want)
		}
		if out := records[0].End - b.Tokens[g.Token-1].At; g.PreemptedNs != out {
			t.Errorf("%s: out for %d ns, want %d", s.Policy, g.PreemptedNs, out)
		}
	}
}

// load is so many requests at a rate, from a seed.
func load(n int, rate float64, seed uint64) []Request {
	r := rand.New(rand.NewPCG(seed, 2))
	at := 0.0
	requests := make([]Request, n)
	for i := range requests {
		at += r.ExpFloat64() / rate
		requests[i] = Request{Index: int64(i), Arrival: int64(at * 1e9), Prompt: 100 + r.IntN(4000), Output: 1 + r.IntN(300), Priority: r.IntN(3)}
	}
	return requests
}

// First come is first served, and other orders are kept among those that wait.
func TestOrders(t *testing.T) {
	requests := load(300, 30, 1)
	for _, policy := range []string{PrefillFirst, StallFree, Unified, Static, Orca} {
		for _, order := range []string{FCFS, ByPriority, ShortestPrompt} {
			records := play(t, Options{MaxModelLen: 16384, Scheduler: Scheduler{Policy: policy, MaxNumSeqs: 30, Order: order}}, requests...)
			byStart := slices.Clone(records)
			slices.SortStableFunc(byStart, func(a, b *Record) int { return int(a.FirstScheduled - b.FirstScheduled) })
			evictions, jumped := 0, 0
			for i, r := range byStart[1:] {
				before := byStart[i]
				evictions += r.Evictions
				// Did r wait when the one before it was taken, and should it have gone first?
				if r.Request.Arrival > before.FirstScheduled || r.FirstScheduled == before.FirstScheduled {
					continue
				}
				a, b := r.Request, before.Request
				switch order {
				case FCFS:
					if a.Arrival < b.Arrival {
						t.Errorf("%s: request %d went before %d, which came earlier", policy, b.Index, a.Index)
					}
				case ByPriority:
					if a.Priority < b.Priority {
						t.Errorf("%s: request %d went before %d, which has priority", policy, b.Index, a.Index)
					}
				case ShortestPrompt:
					if a.Prompt < b.Prompt {
						t.Errorf("%s: request %d went before %d, which is shorter", policy, b.Index, a.Index)
					}
				}
				if a.Arrival < b.Arrival {
					jumped++
				}
			}
			if evictions > 0 {
				t.Errorf("%s: %d evictions: this load says nothing about order", policy, evictions)
			}
			if (jumped > 0) != (order != FCFS) {
				t.Errorf("%s, %s: %d went before earlier ones", policy, order, jumped)
			}
		}
	}
}

// Under stall-free no gap exceeds the longest iteration of a full budget; under
// prefill-first every gap is a decode step and the prefills in it.
func TestWhatGapsConsistOf(t *testing.T) {
	requests := load(400, 6, 3)
	longest, evictions := int64(0), 0
	e, err := New(Options{Scheduler: Scheduler{Policy: StallFree, Chunk: 768, MaxNumSeqs: 100}})
	if err != nil {
		t.Fatal(err)
	}
	full := int64(0)
	e.Observe(Observer{Iteration: func(it *Iteration) { full = max(full, it.End-it.Start) }})
	mixed := 0
	for _, r := range playOn(t, e, requests...) {
		evictions += r.Evictions
		for g := range r.Gaps() {
			longest = max(longest, g.Ns)
			if g.MixedNs > 0 {
				mixed++
			}
			if g.PrefillNs+g.WaitingNs > 0 {
				t.Fatalf("stall-free: %+v", g)
			}
		}
	}
	if evictions > 0 || longest > full || mixed == 0 {
		t.Errorf("stall-free: a gap of %d ns, the longest iteration takes %d; %d mixed, %d evictions", longest, full, mixed, evictions)
	}

	if e, err = New(Options{Scheduler: Scheduler{Policy: PrefillFirst, MaxNumSeqs: 100}}); err != nil {
		t.Fatal(err)
	}
	type span struct {
		start, end int64
		decodes    bool
		owners     []int64
	}
	var log []span
	e.Observe(Observer{Iteration: func(it *Iteration) {
		s := span{start: it.Start, end: it.End, decodes: it.Decodes > 0}
		for _, c := range it.Chunks {
			s.owners = append(s.owners, c.Index)
		}
		log = append(log, s)
	}})
	stalled := 0
	for _, r := range playOn(t, e, requests...) {
		evictions += r.Evictions
		for g := range r.Gaps() {
			// Count again from the log of iterations.
			from, to := r.Tokens[g.Token-1].At, r.Tokens[g.Token].At
			at, _ := slices.BinarySearchFunc(log, from, func(s span, at int64) int { return int(s.start - at) })
			own, prefill := int64(0), int64(0)
			var culprits []int64
			for ; at < len(log) && log[at].end <= to; at++ {
				if log[at].decodes {
					own += log[at].end - log[at].start
				} else {
					prefill += log[at].end - log[at].start
					culprits = append(culprits, log[at].owners...)
				}
			}
			if g.OwnNs != own || g.PrefillNs != prefill || g.MixedNs+g.WaitingNs > 0 || !slices.Equal(g.Culprits, culprits) {
				t.Fatalf("prefill-first: %+v, want own %d, prefill %d of %v", g, own, prefill, culprits)
			}
			if prefill > 0 {
				stalled++
			}
		}
	}
	if evictions > 0 || stalled == 0 {
		t.Errorf("%d gaps were stalled, %d evictions", stalled, evictions)
	}
}

// What is dropped of the past was needed by nobody.
func TestForgetting(t *testing.T) {
	for seed := range uint64(150) {
		w := draw(seed)
		gaps := func(least int) (all []Gap) {
			e, err := New(w.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range e.instances {
				i.past.least, i.past.limit = least, least
			}
			e.Observe(Observer{Ended: func(r *Record) {
				for g := range r.Gaps() {
					g.Culprits = slices.Clone(g.Culprits)
					all = append(all, g)
				}
			}})
			for _, r := range w.requests {
				if e.Fits(&r) == nil {
					if err := e.Submit(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			e.Advance(1 << 62)
			return all
		}
		if a, b := gaps(pastLeast), gaps(0); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("world %d: gaps depend on how much is kept", seed)
		}
	}
}

// A run in real time looks at the clock whenever it likes, takes requests as
// they come, and cancels; played again from the stamps it logged, the schedule
// is the same.
func TestVirtualAgainstReal(t *testing.T) {
	for seed := range uint64(100) {
		w := draw(seed)
		r := rand.New(rand.NewPCG(seed, 3))
		var log []string
		observe := func(e *Engine) {
			e.Observe(Observer{
				Token: func(m Emission) { log = append(log, fmt.Sprintf("%+v", m)) },
				Ended: func(r *Record) { log = append(log, fmt.Sprint(r.Request.Index, r.Ending, r.End)) },
			})
		}
		e, err := New(w.options)
		if err != nil {
			t.Fatal(err)
		}
		observe(e)
		now := int64(0)
		var stamped []Request
		left := map[int64]int64{}
		requests := w.requests
		for quiet := 0; quiet < 100 || len(requests) > 0; {
			// The engine sleeps until its next event, and wakes late, or is woken.
			if at, ok := e.Next(); ok && r.IntN(3) > 0 {
				now = max(now, at) + r.Int64N(3e6)
			} else {
				now += r.Int64N(30e6)
				quiet++
			}
			e.Advance(now)
			for len(requests) > 0 && r.IntN(2) == 0 {
				q := requests[0]
				requests = requests[1:]
				q.Arrival = now
				if e.Submit(q) == nil {
					stamped = append(stamped, q)
				}
			}
			if len(stamped) > 0 && r.IntN(40) == 0 {
				index := stamped[r.IntN(len(stamped))].Index
				if _, gone := left[index]; !gone {
					left[index] = now
					if err := e.Cancel(now, index); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		e.Advance(1 << 62)
		real := log
		log = nil
		if e, err = New(w.options); err != nil {
			t.Fatal(err)
		}
		observe(e)
		for index, at := range left {
			if err := e.Cancel(at, index); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Run(slices.Values(stamped)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(log, real) {
			t.Fatalf("world %d: %d lines in real time, %d in virtual, and they differ", seed, len(real), len(log))
		}
	}
}

// A client that leaves frees its place and its memory, and gets nothing more.
func TestCancel(t *testing.T) {
	e, err := New(Options{Cost: CostOptions{Flat: &Flat{TTFT: 10 * time.Millisecond, ITL: time.Millisecond}}, Scheduler: Scheduler{MaxNumSeqs: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for index, at := range map[int64]int64{0: 15.5e6, 1: 12e6, 2: 40e6, 9: 0} {
		if err := e.Cancel(at, index); err != nil {
			t.Fatal(err)
		}
	}
	records := playOn(t, e,
		Request{Index: 0, Prompt: 1, Output: 100}, Request{Index: 1, Arrival: 1e6, Prompt: 1, Output: 5},
		Request{Index: 2, Arrival: 2e6, Prompt: 1, Output: 3})
	// Request 0 emits at 10 to 15 ms; its last step ends at 16 ms.
	if a := records[0]; a.Ending != Cancelled || len(a.Tokens) != 6 || a.End != 16e6 {
		t.Errorf("%+v", a)
	}
	if b := records[1]; b.Ending != Cancelled || len(b.Tokens) != 0 || b.End != 12e6 || b.FirstScheduled >= 0 {
		t.Errorf("%+v", b)
	}
	if c := records[2]; c.Ending != Finished || c.FirstScheduled != 16e6 || c.End != 28e6 {
		t.Errorf("%+v", c)
	}
}

// Who comes to a full queue is refused at once.
func TestQueueLimit(t *testing.T) {
	o := Options{Cost: CostOptions{Flat: &Flat{TTFT: 10 * time.Millisecond}}, Scheduler: Scheduler{MaxNumSeqs: 1}, QueueLimit: 2}
	var requests []Request
	for i := range int64(5) {
		requests = append(requests, Request{Index: i, Arrival: i * 1e6, Prompt: 1, Output: 1})
	}
	for i, r := range play(t, o, requests...) {
		if want := i > 2; (r.Ending == Refused) != want || want && r.End != r.Request.Arrival {
			t.Errorf("request %d: ending %d at %d", i, r.Ending, r.End)
		}
	}
}

// Nothing is allocated while nothing new arrives.
func TestIterationsDoNotAllocate(t *testing.T) {
	e, err := New(Options{Scheduler: Scheduler{Policy: StallFree}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(50) {
		if err := e.Submit(Request{Index: i, Prompt: 900, Output: 8000}); err != nil {
			t.Fatal(err)
		}
	}
	now := int64(0)
	advance := func() {
		for range 100 {
			now, _ = e.Next()
			e.Advance(now + 1)
		}
	}
	for range 12 {
		advance()
	}
	// Answers double their room now and then; one growth of each of 50 in 400 iterations is far less than one an iteration.
	if n := testing.AllocsPerRun(3, advance); n > 50 {
		t.Errorf("%g allocations in 100 iterations", n)
	}
}
