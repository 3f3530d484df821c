package sim

// prefillFirst is the policy of vLLM's first scheduler: while prompts wait and
// fit, an iteration prefills them whole and nobody decodes, which is the stall.
// A prompt longer than the budget goes alone.
type prefillFirst struct{}

func (prefillFirst) form(i *instance, now int64) {
	for tokens := 0; i.queue.len() > 0; {
		s := i.queue.head()
		chain := i.memory.cached(s)
		n := s.target - len(chain)*i.blockSize
		if !i.memory.admits(i.memory.costs(chain, s.target)) ||
			tokens > 0 && tokens+n > i.Scheduler.MaxNumBatchedTokens || len(i.running)+1 > i.Scheduler.MaxNumSeqs {
			break
		}
		i.chunk(i.admit(chain, s.target, now), n)
		tokens += n
	}
	if len(i.chunked) == 0 && i.side == whole {
		i.decodeRoom(now, i.draftsFor(len(i.running)))
	}
}
