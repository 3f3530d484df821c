package sim

// stallFree is the policy of Sarathi-Serve (Agrawal et al., OSDI 2024): everyone
// decodes in every iteration, and prompts are prefilled in chunks within what
// the budget leaves. Memory for a whole prompt is reserved when it is admitted.
type stallFree struct{}

func (stallFree) form(i *instance, now int64) {
	decoding := 0
	for _, s := range i.running {
		if s.decoding() {
			decoding++
		}
	}
	i.decodeRoom(now, i.draftsFor(decoding))
	used := i.batch.Query
	for _, s := range i.running {
		if s.decoding() {
			continue
		}
		if q := min(s.target-s.computed, i.budgetAt(s.computed)-used); q > 0 {
			i.chunk(s, q)
			used += q
		}
	}
	for i.queue.len() > 0 && len(i.running) < i.Scheduler.MaxNumSeqs {
		s := i.queue.head()
		chain := i.memory.cached(s)
		at := len(chain) * i.blockSize
		q := min(s.target-at, i.budgetAt(at)-used)
		if q <= 0 || !i.memory.admits(i.memory.costs(chain, s.target)) {
			return
		}
		i.chunk(i.admit(chain, s.target, now), q)
		used += q
	}
}

// budgetAt is the budget of an iteration for a prompt of which so many tokens
// are computed.
func (i *instance) budgetAt(computed int) int {
	s := &i.Scheduler
	if s.ChunkLow == s.Chunk {
		return s.Chunk
	}
	return s.Chunk + (s.ChunkLow-s.Chunk)*min(computed, i.MaxModelLen)/i.MaxModelLen
}
