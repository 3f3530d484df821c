package sim

// route chooses the replica for a request that arrives.
func (e *Engine) route(s *sequence) *instance {
	if len(e.instances) == 1 || e.Disaggregation != nil {
		return e.instances[0] // the prefill side shares its queue
	}
	switch e.Router {
	case LeastLoaded:
		return e.leastLoaded(nil)
	case BySession:
		if s.Session != "" {
			return e.instances[s.stream%uint64(len(e.instances))]
		}
	case PrefixAffinity:
		return e.leastLoaded(s)
	}
	e.turn++
	return e.instances[(e.turn-1)%len(e.instances)]
}

// leastLoaded is the instance with the fewest requests, the first of equals;
// given a request, among those that have most of its prompt.
func (e *Engine) leastLoaded(s *sequence) *instance {
	var best *instance
	most := 0
	for _, i := range e.instances {
		has := 0
		if s != nil {
			has = len(i.memory.cached(s))
		}
		if best == nil || has > most || has == most && i.load() < best.load() {
			best, most = i, has
		}
	}
	return best
}
