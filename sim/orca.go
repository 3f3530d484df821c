package sim

// orca is iteration-level batching without paging (Yu et al., OSDI 2022): whole
// prompts beside those who decode, each with memory reserved for max_model_len.
type orca struct{}

func (orca) form(i *instance, now int64) {
	i.decodeRoom(now, i.draftsFor(len(i.running)))
	for i.queue.len() > 0 && len(i.running) < i.Scheduler.MaxNumSeqs {
		s := i.queue.head()
		chain := i.memory.cached(s)
		reserve := max(i.MaxModelLen, s.target)
		if i.memory.costs(chain, reserve) > i.memory.free {
			return
		}
		n := s.target - len(chain)*i.blockSize
		i.chunk(i.admit(chain, reserve, now), n)
	}
}
