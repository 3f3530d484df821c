package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"fermata/internal/seed"
)

// An Engine is a serving system. New makes one. It is for one goroutine at a
// time, and starts none.
type Engine struct {
	*plan
	observer   Observer
	instances  []*instance
	now        int64 // of the last event
	frontier   int64 // events before it are over
	arrivals   arrivals
	cancels    cancels
	live       map[int64]*sequence
	spare      []*sequence
	ordering   *ordering // of Keep
	turn       int       // of the round-robin router
	acceptance uint64
	pcg        *rand.PCG
	rand       *rand.Rand
}

// New makes a system that has done nothing yet. The error says what Check finds.
func New(o Options) (*Engine, error) {
	if problems := o.Check(); len(problems) > 0 {
		p := problems[0]
		return nil, fmt.Errorf("sim: %s %s", p.Path, p.Text)
	}
	p, problem := o.plan()
	if problem != nil {
		return nil, fmt.Errorf("sim: %s %s", problem.Path, problem.Text)
	}
	e := &Engine{plan: p, now: math.MinInt64, frontier: math.MinInt64, live: map[int64]*sequence{}}
	e.acceptance = seed.Derive(o.Seed, "sim: acceptance")
	e.pcg = rand.NewPCG(0, 0)
	e.rand = rand.New(e.pcg)
	if d := p.Disaggregation; d != nil {
		shared := &queue{order: p.Scheduler.Order}
		for n := range d.Prefill {
			i := newInstance(e, n, prefillSide)
			i.queue = shared
			e.instances = append(e.instances, i)
		}
		for n := range d.Decode {
			e.instances = append(e.instances, newInstance(e, d.Prefill+n, decodeSide))
		}
		return e, nil
	}
	for n := range p.Replicas {
		e.instances = append(e.instances, newInstance(e, n, whole))
	}
	return e, nil
}

// Observe sets who is told what happens. It is called before the first request.
func (e *Engine) Observe(o Observer) { e.observer = o }

// Frontier is the time before which everything is over: the end of the latest
// Advance. Requests arrive no earlier.
func (e *Engine) Frontier() int64 { return max(e.frontier, e.now) }

// Options are those of New with defaults filled in.
func (e *Engine) Options() Options { return e.plan.Options }

// Fits says whether a request can ever be served; the error is an *UnfitError.
func (e *Engine) Fits(r *Request) error { return e.fits(r) }

// Submit hands over a request that arrives at r.Arrival, which must not lie
// before the end of an Advance. Requests may be submitted in any order: they
// enter in order of arrival and index. The error is an *UnfitError, or a misuse.
func (e *Engine) Submit(r Request) error {
	if err := e.fits(&r); err != nil {
		return err
	}
	if r.Arrival < e.Frontier() {
		return fmt.Errorf("sim: request %d arrives at %d ns, but events before %d ns are over", r.Index, r.Arrival, e.Frontier())
	}
	if e.live[r.Index] != nil {
		return fmt.Errorf("sim: there is a request %d already: every request needs an index of its own", r.Index)
	}
	var s *sequence
	if n := len(e.spare); n > 0 {
		s, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		s = &sequence{}
	}
	s.begin(r)
	s.alpha = e.chance(r.Index)
	e.live[r.Index] = s
	heap.Push(&e.arrivals, s)
	if e.ordering != nil {
		e.ordering.submit(&r)
	}
	return nil
}

// Cancel says that the client of a request leaves at that time: it leaves the
// queue, or frees its memory at the end of the iteration that computes it. A
// request that has ended by then is left as it is.
func (e *Engine) Cancel(at, index int64) error {
	if at < e.Frontier() {
		return fmt.Errorf("sim: request %d is cancelled at %d ns, but events before %d ns are over", index, at, e.Frontier())
	}
	heap.Push(&e.cancels, cancelling{at, index})
	return nil
}

// Next is when the next thing happens; false where nothing will without further
// requests.
func (e *Engine) Next() (at int64, ok bool) {
	at = math.MaxInt64
	if len(e.arrivals) > 0 {
		at = e.arrivals[0].Arrival
	}
	if len(e.cancels) > 0 {
		at = min(at, e.cancels[0].at)
	}
	for _, i := range e.instances {
		if i.busy {
			at = min(at, i.it.End)
		}
		at = min(at, i.timer)
		for _, s := range i.flying {
			at = min(at, s.lands)
		}
	}
	return at, at < math.MaxInt64
}

// Advance lets everything happen that happens before until. What happens at
// until itself waits, since requests may still arrive at that time.
func (e *Engine) Advance(until int64) {
	for {
		at, ok := e.Next()
		if !ok || at >= until {
			break
		}
		e.step(at)
	}
	e.frontier = max(e.frontier, until)
}

// step lets everything happen that happens at one time: iterations end,
// transfers land, requests arrive and leave, iterations begin.
func (e *Engine) step(at int64) {
	e.now = at
	for _, i := range e.instances {
		if i.busy && i.it.End <= at {
			i.complete()
		}
	}
	e.exchange(at)
	for len(e.arrivals) > 0 && e.arrivals[0].Arrival <= at {
		e.arrive(heap.Pop(&e.arrivals).(*sequence))
	}
	for len(e.cancels) > 0 && e.cancels[0].at <= at {
		e.cancel(heap.Pop(&e.cancels).(cancelling).index)
	}
	for _, i := range e.instances {
		if !i.busy {
			i.begin(at)
		}
	}
}

func (e *Engine) exchange(at int64) {
	if e.Disaggregation == nil {
		return
	}
	for _, i := range e.instances {
		if i.side == decodeSide {
			i.exchange(at)
		}
	}
}

func (e *Engine) arrive(s *sequence) {
	i := e.route(s)
	s.home = i
	if e.QueueLimit > 0 && e.queued() >= e.QueueLimit {
		e.end(s, i, Refused, s.Arrival)
		e.recycle(s)
		return
	}
	i.queue.push(s)
}

// queued is how many requests wait to be admitted.
func (e *Engine) queued() int {
	if e.Disaggregation != nil {
		return e.instances[0].queue.len()
	}
	n := 0
	for _, i := range e.instances {
		n += i.queue.len()
	}
	return n
}

func (e *Engine) cancel(index int64) {
	s := e.live[index]
	if s == nil || s.ended || s.home == nil {
		return
	}
	s.cancelled = true
	if s.waiting {
		s.home.queue.remove(s)
		e.leaveNow(s)
		return
	}
	for _, i := range e.instances {
		if len(i.pulling) == 0 && len(i.swapped) == 0 {
			continue
		}
		before := len(i.pulling) + len(i.swapped)
		i.pulling, i.swapped = without(i.pulling, s), without(i.swapped, s)
		if before > len(i.pulling)+len(i.swapped) {
			s.home.memory.release(s)
			e.leaveNow(s)
			return
		}
	}
	s.home.gone = true
	if !s.home.busy {
		s.home.leave()
	}
}

func (e *Engine) leaveNow(s *sequence) {
	e.end(s, s.home, Cancelled, e.now)
	e.recycle(s)
}

// end completes the record of s.
func (e *Engine) end(s *sequence, i *instance, how Ending, at int64) {
	s.ended = true
	delete(e.live, s.Index)
	s.record.Ending, s.record.Replica, s.record.End = how, i.number, at
	i.usage.Ended++
	if e.ordering != nil {
		e.ordering.keep(&s.record)
	}
	if e.observer.Ended != nil {
		e.observer.Ended(&s.record)
	}
}

// recycle keeps the memory of s for another request.
func (e *Engine) recycle(s *sequence) { e.spare = append(e.spare, s) }

// Run plays requests, in order of arrival, and goes on until the last one has
// ended. It stops at the first that can never be served. Requests that Ended
// submits are played too.
func (e *Engine) Run(requests iter.Seq[Request]) error {
	for r := range requests {
		e.Advance(r.Arrival)
		if err := e.Submit(r); err != nil {
			return err
		}
	}
	e.Advance(math.MaxInt64)
	return e.drained()
}

// drained is an error where a request is left though nothing will happen.
func (e *Engine) drained() error {
	if len(e.live) > 0 {
		return errors.New("sim: requests are left that nothing will ever serve; this is a mistake in the simulator")
	}
	return nil
}

// arrivals are requests that have not arrived, in a heap by time and index.
type arrivals []*sequence

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	return a[i].Arrival < a[j].Arrival || a[i].Arrival == a[j].Arrival && a[i].Index < a[j].Index
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(*sequence)) }
func (a *arrivals) Pop() any {
	old := *a
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return s
}

// A cancelling is a client who will leave.
type cancelling struct{ at, index int64 }

type cancels []cancelling

func (c cancels) Len() int { return len(c) }
func (c cancels) Less(i, j int) bool {
	return c[i].at < c[j].at || c[i].at == c[j].at && c[i].index < c[j].index
}
func (c cancels) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cancels) Push(x any)   { *c = append(*c, x.(cancelling)) }
func (c *cancels) Pop() any {
	old := *c
	x := old[len(old)-1]
	*c = old[:len(old)-1]
	return x
}
