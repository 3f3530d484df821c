package sim

// static is batching by the request, as before continuous batching: a batch of
// MaxNumSeqs requests is prefilled, and decodes until its longest answer ends;
// rows that are done still cost their place. Memory for prompt and answer is
// reserved.
type static struct{}

func (p static) form(i *instance, now int64) {
	if len(i.running) == 0 {
		p.fill(i, now)
		return
	}
	for _, s := range i.running {
		if !s.ended {
			i.decodes = append(i.decodes, s)
		}
		i.batch.Decodes++
		i.batch.Query++
		i.batch.Context += int64(s.computed + 1)
	}
}

func (p static) fill(i *instance, now int64) {
	if n := i.queue.len(); n == 0 {
		return
	} else if due := i.queue.head().Arrival + int64(i.Scheduler.FillWait); n < i.Scheduler.MaxNumSeqs && now < due {
		i.timer = due
		return
	}
	for i.queue.len() > 0 && len(i.running) < i.Scheduler.MaxNumSeqs {
		s := i.queue.head()
		chain := i.memory.cached(s)
		if i.memory.costs(chain, s.Prompt+s.Output) > i.memory.free {
			return
		}
		n := s.target - len(chain)*i.blockSize
		i.chunk(i.admit(chain, s.Prompt+s.Output, now), n)
	}
}
