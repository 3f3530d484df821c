package metrics

// Server is what the server said of itself once a second during the measured
// phase, beside the client's figures. A figure that it does not tell is absent.
type Server struct {
	Names          string   `json:"names"`   // whose names its figures have: vllm, llama.cpp, sglang, tgi
	Seconds        int64    `json:"seconds"` // of the measured phase in which it answered
	RunningMean    *float64 `json:"running_mean,omitempty"`
	RunningMax     *float64 `json:"running_max,omitempty"`
	WaitingMean    *float64 `json:"waiting_mean,omitempty"`
	WaitingMax     *float64 `json:"waiting_max,omitempty"`
	KVUsageMean    *float64 `json:"kv_usage_mean,omitempty"`
	KVUsageMax     *float64 `json:"kv_usage_max,omitempty"`
	Preemptions    *float64 `json:"preemptions,omitempty"`
	PrefixHitShare *float64 `json:"prefix_hit_share,omitempty"`
	InFlightMean   float64  `json:"in_flight_mean"` // the client's, in the same seconds
	InFlightMax    float64  `json:"in_flight_max"`
}

// server sums up what the server told in the window; nil where it told nothing.
func (i *instrument) server(w *Window) *Server {
	var s Server
	var running, waiting, kv, share, flight gauge
	var preempted, queries, hits counter
	last := int64(-1) << 62
	for k := range i.samples {
		m := &i.samples[k]
		if m.Server == nil || m.ServerTimeNs == nil {
			continue
		}
		at := *m.ServerTimeNs
		// What was counted when the phase began belongs to it.
		if at <= w.EndNs {
			for _, c := range []struct {
				c *counter
				v *float64
			}{{&preempted, m.ServerPreemptions}, {&queries, m.ServerPrefixQueries}, {&hits, m.ServerPrefixHits}} {
				c.c.see(c.v, at < w.StartNs)
			}
		}
		if at < w.StartNs || at >= w.EndNs || at == last {
			continue
		}
		last = at
		s.Names = *m.Server
		s.Seconds++
		running.see(m.ServerRunning)
		waiting.see(m.ServerWaiting)
		kv.see(m.ServerKV)
		share.see(m.ServerPrefixShare)
		own := float64(m.InFlight)
		flight.see(&own)
	}
	if s.Seconds == 0 {
		return nil
	}
	s.RunningMean, s.RunningMax = running.mean(), running.most
	s.WaitingMean, s.WaitingMax = waiting.mean(), waiting.most
	s.KVUsageMean, s.KVUsageMax = kv.mean(), kv.most
	s.InFlightMean, s.InFlightMax = *flight.mean(), *flight.most
	s.Preemptions, s.PrefixHitShare = preempted.grown(), share.mean()
	if q, h := queries.grown(), hits.grown(); q != nil && h != nil && *q > 0 {
		v := *h / *q
		s.PrefixHitShare = &v
	}
	return &s
}

// A gauge is a figure that goes up and down.
type gauge struct {
	n, sum float64
	most   *float64
}

func (g *gauge) see(v *float64) {
	if v == nil {
		return
	}
	g.n++
	g.sum += *v
	g.most = most(g.most, v)
}

func (g *gauge) mean() *float64 {
	if g.n < 1 {
		return nil
	}
	v := g.sum / g.n
	return &v
}

// A counter grows, and begins anew where its server does.
type counter struct {
	last *float64
	sum  float64
	seen bool // something after what was there when the phase began
}

// see takes the next value; before says that it belongs to the time before.
func (c *counter) see(v *float64, before bool) {
	if v == nil {
		return
	}
	if c.last != nil && !before {
		c.seen = true
		if *v >= *c.last {
			c.sum += *v - *c.last
		} else {
			c.sum += *v
		}
	}
	c.last = v
}

func (c *counter) grown() *float64 {
	if !c.seen {
		return nil
	}
	return &c.sum
}
