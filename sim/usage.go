package sim

// Usage is what an instance did so far: whether it stood at capacity is the
// first thing to know about a result.
type Usage struct {
	Replica    int
	Iterations int64
	EndNs      int64 // of the last iteration
	BusyNs     int64 // in iterations
	PrefillNs  int64 // in iterations that only prefilled
	MixedNs    int64 // in iterations that prefilled and decoded
	Tokens     int64 // emitted
	Ended      int64 // requests
	Evictions  int64
	Recomputed int64   // tokens computed again
	BlockNs    float64 // blocks held, summed over busy time
	Blocks     int     // there are; 0 where memory plays no part
}

func (u *Usage) add(it *Iteration) {
	ns := it.End - it.Start
	u.Iterations++
	u.EndNs = it.End
	u.BusyNs += ns
	u.Tokens += int64(it.Emitted)
	if len(it.Chunks) > 0 {
		if it.Decodes > 0 {
			u.MixedNs += ns
		} else {
			u.PrefillNs += ns
		}
	}
	if it.BlocksAll > 0 {
		u.BlockNs += float64(float64(it.BlocksAll-it.BlocksFree) * float64(ns))
	}
}

// Usage is what each instance did so far; of a disaggregated system those that
// prefill come first.
func (e *Engine) Usage() []Usage {
	all := make([]Usage, len(e.instances))
	for n, i := range e.instances {
		all[n] = i.usage
		all[n].Replica = n
		if i.memory.total != unlimited {
			all[n].Blocks = i.memory.total
		}
	}
	return all
}

// A State is what an instance holds at the moment.
type State struct {
	Running, Waiting int // requests; of a disaggregated system, those that wait for a prefill count once, at the first instance
	BlocksFree       int
	BlocksAll        int // 0 where memory plays no part
}

// State is what each instance holds at the moment.
func (e *Engine) State() []State {
	all := make([]State, len(e.instances))
	for n, i := range e.instances {
		all[n] = State{Running: len(i.running), Waiting: len(i.pulling) + len(i.flying) + len(i.swapped), BlocksFree: i.memory.free}
		if i.side == whole || n == 0 {
			all[n].Waiting += i.queue.len()
		}
		if i.memory.total != unlimited {
			all[n].BlocksAll = i.memory.total
		}
	}
	return all
}
