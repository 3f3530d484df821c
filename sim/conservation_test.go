package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A world is a random system with random requests, some of which leave early.
type world struct {
	options  Options
	requests []Request
	cancels  map[int64]int64 // by request: when its client leaves
}

func draw(seed uint64) world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := world{cancels: map[int64]int64{}}
	o := &w.options
	o.Seed = seed
	o.Memory.Tokens = int64(300 + r.IntN(3000))
	o.Memory.BlockSize = []int{1, 7, 16, 32}[r.IntN(4)]
	zero := 0.0
	if r.IntN(2) == 0 {
		o.Memory.Watermark = &zero
	}
	s := &o.Scheduler
	s.Policy = []string{PrefillFirst, StallFree, Unified, Static, Orca}[r.IntN(5)]
	s.MaxNumSeqs = 1 + r.IntN(20)
	s.Order = []string{FCFS, ByPriority, ShortestPrompt}[r.IntN(3)]
	o.MaxModelLen = 250
	switch s.Policy {
	case StallFree:
		s.Chunk = 1 + r.IntN(100)
		if r.IntN(3) == 0 {
			s.ChunkLow = 1 + r.IntN(100)
		}
	case PrefillFirst:
		s.MaxNumBatchedTokens = 1 + r.IntN(500)
	case Unified:
		s.MaxNumBatchedTokens = 1 + r.IntN(200)
		s.LongPrefill = r.IntN(2) * (1 + r.IntN(50))
		o.Admit = []string{AdmitFull, AdmitChunk}[r.IntN(2)]
	case Static:
		s.FillWait = time.Duration(r.IntN(1e9))
	}
	if s.Policy != Static && r.IntN(3) == 0 {
		o.Speculation = &Speculation{Gamma: r.IntN(6), Alpha: r.Float64(), OffAbove: r.IntN(10), DraftStep: time.Duration(r.IntN(1e6))}
	}
	o.PrefixCache = r.IntN(3) == 0
	switch r.IntN(4) {
	case 0:
		o.Replicas = 1 + r.IntN(3)
		o.Router = []string{RoundRobin, LeastLoaded, BySession, PrefixAffinity}[r.IntN(4)]
	case 1:
		o.Disaggregation = &Disaggregation{Prefill: 1 + r.IntN(2), Decode: 1 + r.IntN(2), Transfer: time.Duration(r.IntN(1e8)), Bandwidth: float64(r.IntN(2) * 10), Overlap: r.IntN(2) == 0}
		*s = Scheduler{MaxNumSeqs: s.MaxNumSeqs, Order: s.Order, MaxNumBatchedTokens: 1 + r.IntN(500)}
		o.Admit = ""
		if o.Speculation == nil && r.IntN(3) == 0 {
			o.Speculation = &Speculation{Gamma: 3, Alpha: .5}
		}
	}
	if r.IntN(4) == 0 {
		o.Noise = r.Float64()
		o.Hiccup = &Hiccup{Probability: .1, AtLeast: time.Millisecond}
	}
	o.QueueLimit = r.IntN(2) * r.IntN(40)
	at := int64(0)
	for i := range int64(5 + r.IntN(60)) {
		if r.IntN(3) > 0 {
			at += r.Int64N(100e6)
		}
		q := Request{Index: i, Arrival: at, Prompt: 1 + r.IntN(150), Output: 1 + r.IntN(80), Priority: r.IntN(3)}
		if r.IntN(2) == 0 {
			q.Session = fmt.Sprint(r.IntN(5))
		} else if r.IntN(2) == 0 {
			q.Prefix, q.PrefixTokens = fmt.Sprint(r.IntN(3)), r.IntN(q.Prompt+1)
		}
		w.requests = append(w.requests, q)
		if r.IntN(8) == 0 {
			w.cancels[i] = at + r.Int64N(3e9)
		}
	}
	return w
}

// conserve plays a world and holds what must be true of every system against
// each iteration and each record.
func conserve(t *testing.T, w world) {
	e, err := New(w.options)
	if err != nil {
		t.Fatalf("%+v: %v", w.options, err)
	}
	served := slices.DeleteFunc(w.requests, func(r Request) bool { return e.Fits(&r) != nil })
	ends := map[int]int64{}
	emitted, told := 0, map[int64]int{}
	records := 0
	e.Observe(Observer{
		Token: func(m Emission) {
			if m.First != (told[m.Index] == 0) || m.Tokens < 1 {
				t.Fatalf("%+v after %d tokens", m, told[m.Index])
			}
			told[m.Index] += m.Tokens
			emitted += m.Tokens
		},
		Iteration: func(it *Iteration) {
			if it.Start < ends[it.Replica] || it.End < it.Start {
				t.Fatalf("%+v overlaps the one that ended at %d", it, ends[it.Replica])
			}
			ends[it.Replica] = it.End
			checkBatch(t, e.instances[it.Replica], it)
			for _, i := range e.instances {
				checkMemory(t, i)
			}
		},
		Ended: func(r *Record) { records++; checkRecord(t, &w, r) },
	})
	for index, at := range w.cancels {
		if err := e.Cancel(at, index); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Run(slices.Values(served)); err != nil {
		t.Fatal(err)
	}
	if records != len(served) {
		t.Fatalf("%d records of %d requests", records, len(served))
	}
	sum := int64(0)
	for n, i := range e.instances {
		if i.memory.free != i.memory.total || len(i.running)+i.queue.len()+len(i.flying)+len(i.pulling)+len(i.swapped) > 0 {
			t.Fatalf("instance %d: %d of %d blocks are free, %d requests are left", n, i.memory.free, i.memory.total, len(i.running))
		}
		sum += e.Usage()[n].Tokens
	}
	if sum != int64(emitted) {
		t.Fatalf("usage counts %d tokens, %d came", sum, emitted)
	}
}

func checkBatch(t *testing.T, i *instance, it *Iteration) {
	t.Helper()
	s, tokens := &i.Scheduler, i.batch.Query
	prompts := 0
	for _, c := range it.Chunks {
		prompts += c.Tokens
		if c.Tokens < 1 {
			t.Fatalf("%+v", it)
		}
	}
	if len(i.running) > s.MaxNumSeqs {
		t.Fatalf("%d run, more than %d", len(i.running), s.MaxNumSeqs)
	}
	if it.OwnNs > it.End-it.Start || it.Decodes == 0 && it.OwnNs != 0 {
		t.Fatalf("%+v", it)
	}
	switch {
	case s.Policy == PrefillFirst && it.Decodes > 0 && prompts > 0:
		t.Fatalf("prompts beside decodes: %+v", it)
	case s.Policy == PrefillFirst && len(it.Chunks) > 1 && prompts > s.MaxNumBatchedTokens,
		s.Policy == StallFree && prompts > 0 && tokens+prompts > max(s.Chunk, s.ChunkLow),
		s.Policy == Unified && tokens+prompts > s.MaxNumBatchedTokens:
		t.Fatalf("a batch of %d + %d tokens exceeds the budget", tokens, prompts)
	}
}

// checkMemory recounts the blocks that are held.
func checkMemory(t *testing.T, i *instance) {
	t.Helper()
	held, unnamed, names := 0, 0, 0
	holding := slices.Clone(i.running)
	for _, d := range i.engine.instances {
		for _, list := range [][]*sequence{d.pulling, d.flying} {
			for _, s := range list {
				if s.home == i && s.blocks > 0 {
					holding = append(holding, s)
				}
			}
		}
	}
	for _, s := range holding {
		want := i.blocksFor(s.computed)
		switch {
		case i.Scheduler.Policy == Static:
			want = i.blocksFor(s.Prompt + s.Output)
		case i.Scheduler.Policy == Orca:
			want = i.blocksFor(max(i.MaxModelLen, s.target))
		case i.side == decodeSide && s.silence.eventful:
			want = i.blocksFor(s.computed + 1 + i.drafts()) // landed, with room for its first step
		case !s.decoding() && i.Scheduler.Policy != Unified:
			want = i.blocksFor(s.target)
		}
		if s.generated >= s.Output || s.cancelled || s.ended {
			want = s.blocks // on its way out
		}
		// While it is busy, those that decode hold room for what they get.
		if s.blocks != want && !i.busy {
			t.Fatalf("a sequence with %d of %d tokens holds %d blocks, want %d", s.computed, s.target, s.blocks, want)
		}
		held += s.blocks
		unnamed += s.blocks - len(s.named)
		names += len(s.named)
	}
	for _, s := range i.flying {
		held += s.blocked
		unnamed += s.blocked
	}
	if c := i.memory.cache; c != nil {
		idle, holders, inUse := 0, 0, 0
		for _, b := range c.blocks {
			holders += b.holders
			if b.holders == 0 {
				idle++
			} else {
				inUse++
			}
		}
		if idle != c.idle || holders != names || c.idle > i.memory.free {
			t.Fatalf("%d idle blocks, counted as %d, of %d free; %d holders of %d names", idle, c.idle, i.memory.free, holders, names)
		}
		held = unnamed + inUse
	}
	if used := i.memory.total - i.memory.free; used != held || i.memory.free < 0 {
		t.Fatalf("%d blocks are used, %d held", used, held)
	}
}

func checkRecord(t *testing.T, w *world, r *Record) {
	t.Helper()
	q := &r.Request
	if r.Ending == Refused {
		if len(r.Tokens) > 0 || r.FirstScheduled >= 0 || w.options.QueueLimit == 0 {
			t.Fatalf("refused: %+v", r)
		}
		return
	}
	at, cancelled := w.cancels[q.Index]
	if r.Ending == Cancelled && (!cancelled || r.End < at) {
		t.Fatalf("cancelled: %+v", r)
	}
	if r.Ending == Finished && len(r.Tokens) != q.Output {
		t.Fatalf("%d of %d tokens", len(r.Tokens), q.Output)
	}
	if len(r.Tokens) == 0 {
		return
	}
	sum := r.Tokens[0].At - q.Arrival
	if r.PrefillEnd != r.Tokens[0].At || r.FirstScheduled < q.Arrival || r.PrefillEnd < r.FirstScheduled {
		t.Fatalf("%+v", r)
	}
	n := 1
	for g := range r.Gaps() {
		parts := []int64{g.OwnNs, g.MixedNs, g.PrefillNs, g.PreemptedNs, g.RecomputeNs, g.TransferNs, g.WaitingNs}
		total := int64(0)
		for _, p := range parts {
			if p < 0 {
				t.Fatalf("a part is negative: %+v", g)
			}
			total += p
		}
		if total != g.Ns || g.Token != n || (g.PrefillNs > 0 || g.PrefillIterations > 0) != (len(g.Culprits) > 0) {
			t.Fatalf("%+v", g)
		}
		if r.Evictions == 0 && g.PreemptedNs+g.RecomputeNs > 0 || w.options.Disaggregation == nil && g.TransferNs > 0 {
			t.Fatalf("%+v", g)
		}
		if slices.Contains(g.Culprits, q.Index) {
			t.Fatalf("its own prefill kept it waiting: %+v", g)
		}
		sum += g.Ns
		n++
	}
	if r.Ending == Finished && sum != r.End-q.Arrival {
		t.Fatalf("gaps and first token take %d ns, the request %d", sum, r.End-q.Arrival)
	}
}

func TestConservation(t *testing.T) {
	worlds := uint64(600)
	if testing.Short() {
		worlds = 100
	}
	for seed := range worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { conserve(t, draw(seed)) })
	}
}

func FuzzConservation(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { conserve(t, draw(seed)) })
}
