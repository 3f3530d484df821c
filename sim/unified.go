package sim

// unified is the policy of vLLM's v1 scheduler: one budget of tokens for
// everyone who runs, in the order of admission, then for those who wait. Memory
// is taken chunk by chunk.
type unified struct{}

func (unified) form(i *instance, now int64) {
	left, owed := i.Scheduler.MaxNumBatchedTokens, 0
	drafts := i.draftsFor(len(i.running))
	evicted := false
	for k := 0; k < len(i.running) && left > 0; k++ {
		s := i.running[k]
		q := min(1+drafts, left)
		if !s.decoding() {
			q = i.piece(s.target-s.computed, left)
		}
		for i.memory.need(s, s.computed+q) > i.memory.free && k < len(i.running) {
			i.evict(now)
			evicted = true
		}
		if k >= len(i.running) {
			break // it was itself the last
		}
		i.memory.take(s, s.computed+q)
		left -= q
		if s.decoding() {
			i.decode(s, q-1)
		} else {
			i.chunk(s, q)
			owed += i.memory.need(s, s.target)
		}
	}
	if evicted {
		return
	}
	for left > 0 && i.queue.len() > 0 && len(i.running) < i.Scheduler.MaxNumSeqs {
		s := i.queue.head()
		chain := i.memory.cached(s)
		at := len(chain) * i.blockSize
		q := i.piece(s.target-at, left)
		if i.Admit == AdmitFull {
			if !i.memory.admits(owed + i.memory.costs(chain, s.target)) {
				return
			}
		} else if i.memory.costs(chain, at+q) > i.memory.free {
			return
		}
		i.chunk(i.admit(chain, at+q, now), q)
		left -= q
		owed += i.memory.need(s, s.target)
	}
}

// piece is how much of a prompt is taken.
func (i *instance) piece(rest, left int) int {
	if most := i.Scheduler.LongPrefill; most > 0 {
		rest = min(rest, most)
	}
	return min(rest, left)
}
