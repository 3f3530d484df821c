package experiment

import (
	"context"
	"fmt"

	"fermata/capacity"
	"fermata/metrics"
	"fermata/schedule"
	"fermata/sim"
	"fermata/spec"
	"fermata/workload"
)

// A virtualPlant is a simulated system under a load that somebody steers, in virtual
// time. It keeps of each request only what has not been told yet.
type virtualPlant struct {
	engine  *sim.Engine
	prompts *workload.Workload
	gaps    *schedule.Schedule
	helm    *schedule.Helm
	meets   *metrics.Predicate
	packing string

	first, last int64 // ns a request can wait for its first token, and for its end
	at          int64 // ns, of the last due time, or now where that is later
	count       capacity.Reading
	from        int64     // index of the first of pending
	pending     []outcome // in order of due times; those before told were
	told        int
	known       []capacity.Outcome
	burst       *capacity.Burst // under way
	bursts      int64           // requests of all of them
	failure     error
}

// An outcome is a request's as far as it is known.
type outcome struct {
	due                                    int64
	ahead                                  int32
	token, ended, decided                  bool
	missed, unjudged, failed, turned, told bool
}

// newVirtualPlant makes one of the spec's system, with what other seeds than its own
// draw; a search that goes on has asked for so many requests before.
func newVirtualPlant(s *spec.Sim, meets *metrics.Predicate, seed uint64, asked int64) (*virtualPlant, error) {
	options := s.Options
	options.Seed = seed
	engine, err := sim.New(options)
	if err != nil {
		return nil, err
	}
	prompts, err := workload.Open(s.Workload.Options, seed)
	if err != nil {
		return nil, err
	}
	if err := askable(prompts); err != nil {
		return nil, err
	}
	gaps, helm, err := schedule.NewSteered(steerable(s.Schedule), seed+uint64(asked))
	if err != nil {
		return nil, err
	}
	p := &virtualPlant{engine: engine, prompts: prompts, gaps: gaps, helm: helm, meets: meets, from: asked}
	p.first, p.last = meets.Patience()
	if g := s.Speculation; g != nil {
		p.packing = g.Packing
	}
	engine.Observe(sim.Observer{Token: p.token, Ended: p.ended})
	return p, nil
}

// steerable is what of a schedule stays where somebody sets the rate: how its gaps
// scatter.
func steerable(o schedule.Options) schedule.Options {
	kept := schedule.Options{Burstiness: o.Burstiness, Shape: o.Shape}
	switch o.Kind {
	case schedule.Gamma, schedule.Weibull, schedule.Constant:
		kept.Kind = o.Kind
	default:
		if o.Burstiness == 0 && o.Shape == 0 {
			kept.Kind = schedule.Poisson
		}
	}
	return kept
}

// request is number i, as the workload has it.
func (p *virtualPlant) request(i, at int64) (sim.Request, error) {
	q, ok := p.prompts.Shape(i, 0, 0)
	if rows := p.prompts.Rows(); !ok && rows > 0 && p.prompts.Err() == nil {
		q, ok = p.prompts.Shape(i%rows, 0, 0)
	}
	if !ok {
		return sim.Request{}, fmt.Errorf("asking the simulated system: request %d has no shape: %w", i, p.prompts.Err())
	}
	r := shapedRequest(&q, 0)
	r.Index, r.Arrival = i, at
	return r, nil
}

func (p *virtualPlant) submit(i, at int64) error {
	r, err := p.request(i, at)
	if err != nil {
		return err
	}
	if err := p.engine.Submit(r); err != nil {
		return &Failure{Saw: err.Error(), Help: "Nothing was searched."}
	}
	return p.failure
}

// Send implements capacity.Plant.
func (p *virtualPlant) Send(ctx context.Context, n int, rate float64) error {
	leg := schedule.Leg{Requests: int64(n), Rate: rate, Phase: schedule.Measured, NotBefore: p.at}
	if err := p.helm.Go(leg); err != nil {
		return err
	}
	for k := range n {
		if k%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		a, _ := p.gaps.Next(0)
		p.gaps.Settle(&a, nil)
		p.engine.Advance(a.Due)
		p.at = a.Due
		p.pending = append(p.pending, outcome{due: a.Due, ahead: int32(p.count.Backlog)})
		p.count.Sent++
		p.count.Backlog++
		if err := p.submit(p.from+int64(len(p.pending))-1, a.Due); err != nil {
			return err
		}
	}
	return nil
}

// Burst implements capacity.Plant.
func (p *virtualPlant) Burst(ctx context.Context, n int) (capacity.Burst, error) {
	p.burst = &capacity.Burst{Asked: n, Began: p.at}
	defer func() { p.burst = nil }()
	for range n {
		if err := p.submit(burstFrom+p.bursts, p.at); err != nil {
			return capacity.Burst{}, err
		}
		p.bursts++
	}
	err := p.Drain(ctx)
	return *p.burst, err
}

// Drain implements capacity.Plant.
func (p *virtualPlant) Drain(ctx context.Context) error {
	for step := 0; ; step++ {
		if step%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		at, ok := p.engine.Next()
		if !ok {
			return p.failure
		}
		p.engine.Advance(at + 1)
		p.at = max(p.at, at+1)
	}
}

// Now implements capacity.Plant.
func (p *virtualPlant) Now() capacity.Reading {
	now := p.count
	now.Ns = p.at
	return now
}

// Outcomes implements capacity.Plant.
func (p *virtualPlant) Outcomes() []capacity.Outcome {
	p.pending, p.from, p.told = p.pending[p.told:], p.from+int64(p.told), 0
	p.known = p.known[:0]
	for i := range p.pending {
		o := &p.pending[i]
		waited := p.at - o.due
		switch {
		case o.decided || o.ended:
		case !o.token && waited > p.first, waited > p.last:
			o.missed = true
		default:
			return p.known
		}
		o.told = true
		p.told++
		p.known = append(p.known, capacity.Outcome{At: o.due, Ahead: int(o.ahead), Missed: o.missed, Unjudged: o.unjudged, Failed: o.failed, Turned: o.turned})
	}
	return p.known
}

// of is the outcome of a request; nil for one of a burst, and for one that was told
// before it had ended.
func (p *virtualPlant) of(index int64) *outcome {
	if i := index - p.from; i >= 0 && i < int64(len(p.pending)) {
		return &p.pending[i]
	}
	return nil
}

func (p *virtualPlant) token(m sim.Emission) {
	if m.Index >= burstFrom {
		return
	}
	p.count.Tokens += int64(m.Tokens)
	if o := p.of(m.Index); m.First && o != nil {
		o.token = true
		if met, decided := p.meets.MetFirst(m.At - o.due); decided && !o.told {
			o.missed, o.decided = !met, true
		}
	}
}

func (p *virtualPlant) ended(r *sim.Record) {
	if r.Request.Index >= burstFrom {
		p.burstEnded(r)
		return
	}
	p.count.Backlog--
	o := p.of(r.Request.Index)
	if o == nil || o.told {
		return
	}
	o.ended = true
	o.failed, o.turned = r.Ending != sim.Finished, r.Ending == sim.Refused
	if o.decided && !o.failed {
		return
	}
	t := r.Trace(p.packing)
	met, judged, err := p.meets.Met(&t)
	o.missed, o.unjudged = judged && !met, !judged
	if err != nil && p.failure == nil {
		p.failure = err
	}
}

func (p *virtualPlant) burstEnded(r *sim.Record) {
	switch {
	case p.burst == nil:
	case r.Ending == sim.Refused:
		p.burst.Turned++
	case r.Ending == sim.Finished:
		p.burst.Ends = append(p.burst.Ends, r.End)
		p.burst.Tokens += int64(len(r.Tokens))
	}
}
