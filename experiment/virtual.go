package experiment

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/sim"
	"fermata/spec"
	"fermata/workload"
)

const (
	virtualDrain = 30 * time.Second      // how long load goes on after the measured phase, as package load has it
	afterRefusal = 10 * time.Millisecond // the least time from a refusal to its user's next request
	showEvery    = 250 * time.Millisecond
)

// A virtual is a load in virtual time: what package load does with clocks and
// sockets, done to a simulated system. Nobody waits, nothing is late.
type virtual struct {
	engine   *sim.Engine
	arrivals *schedule.Schedule
	prompts  *workload.Workload
	live     func(load.Live)

	asks    askQueue
	number  int64          // of asks so far, which settles ties
	askers  map[int64]*ask // who is behind a request under way
	phases  map[int64]schedule.Phase
	count   load.Live
	failure error
	longest *metrics.SimulatedGap

	draining  bool
	drainFrom int64
	left      int64 // measured requests under way
	lastEnd   int64 // of a measured request
}

// An ask is somebody who will ask: the open loop's next arrival, a user of a
// closed loop, or a conversation with its next turn.
type ask struct {
	due, number int64
	at          schedule.Arrival
	user        int   // of a closed loop; -1 without
	turn        int64 // of the user
	opening     bool  // the open loop goes on with the next arrival
	talk        *virtualTalk
}

// A virtualTalk is a conversation under way.
type virtualTalk struct {
	at           schedule.Arrival
	first        int64
	turns, next  int
	tokens       int32 // said so far
	conversation int64
}

func newVirtual(s *spec.Sim) (*virtual, error) {
	run := s.Run()
	prompts, arrivals, err := open(run)
	if err != nil {
		return nil, err
	}
	engine, err := sim.New(s.Options)
	if err != nil {
		return nil, err
	}
	v := &virtual{engine: engine, arrivals: arrivals, prompts: prompts, askers: map[int64]*ask{}, phases: map[int64]schedule.Phase{}}
	if err := v.checkFits(run); err != nil {
		return nil, err
	}
	engine.Keep()
	return v, nil
}

// checkFits finds a request that could never be served before anything runs. Of
// open loops it looks at all that one seed brings, which is the same again.
func (v *virtual) checkFits(run *spec.Run) error {
	if v.prompts.Conversing() || v.arrivals.Users() > 0 {
		return v.checkTurns()
	}
	_, again, err := open(run)
	if err != nil {
		return err
	}
	for a, ok := again.Next(0); ok && a.Phase != schedule.Drain; a, ok = again.Next(0) {
		q, ok := v.prompts.Shape(a.Index, a.PromptTokens, a.OutputTokens)
		if !ok {
			break
		}
		if _, err := v.fitting(&q, 0); err != nil {
			return err
		}
	}
	return v.prompts.Err()
}

// checkTurns is checkFits where answers decide what is asked when.
func (v *virtual) checkTurns() error {
	limit, known := v.arrivals.MeasuredTotal()
	if warm, _ := v.arrivals.WarmupEnd(); warm > 0 {
		limit += warm
	}
	if !known {
		limit = max(v.prompts.Rows(), 10_000)
	}
	said := int32(0)
	for i := range limit {
		q, ok := v.prompts.Shape(i, 0, 0)
		if !ok {
			break
		}
		if q.Turn == 0 {
			said = 0
		}
		var err error
		if said, err = v.fitting(&q, said); err != nil {
			return err
		}
	}
	return v.prompts.Err()
}

// fitting is how much of a conversation is said after q and its answer, after so
// many tokens before; the error is that it could never be served.
func (v *virtual) fitting(q *workload.Shape, said int32) (int32, error) {
	r := shapedRequest(q, said)
	if err := v.engine.Fits(&r); err != nil {
		return 0, &Failure{Saw: err.Error(), Help: "Nothing was run."}
	}
	return int32(r.Prompt + r.Output), nil
}

const unsaidOutput = 128 // tokens of an answer that nobody gave a length

// shapedRequest is q as a simulated system sees it, after so many tokens of its
// conversation.
func shapedRequest(q *workload.Shape, said int32) sim.Request {
	return sim.Request{
		Index: q.ID, Prompt: int(max(1, q.PromptTokens+said)), Output: int(cmp.Or(q.OutputTokens, unsaidOutput)),
		Session: q.Session, Turn: q.Turn, Prefix: q.Prefix, PrefixTokens: int(q.PrefixTokens),
		Hashes: q.Hashes, HashTokens: int(q.HashTokens),
	}
}

// records plays the load and brings its records in order of due time and index,
// each valid until the next.
func (v *virtual) records(ctx context.Context) iter.Seq2[*sim.Record, error] {
	return func(yield func(*sim.Record, error) bool) {
		v.begin()
		shown := time.Now()
		for step := 0; !v.over(); step++ {
			for r := range v.engine.Settled() {
				if !yield(r, nil) {
					return
				}
			}
			if step%256 == 0 && ctx.Err() != nil {
				yield(nil, ErrInterrupted)
				return
			}
			if v.live != nil && step%256 == 0 && time.Since(shown) > showEvery {
				shown = time.Now()
				v.show()
			}
			if !v.step() {
				break
			}
			if v.failure != nil {
				yield(nil, v.failure)
				return
			}
		}
		if err := v.finish(); err != nil {
			yield(nil, err)
			return
		}
		for r := range v.engine.Settled() {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (v *virtual) show() {
	l := v.count
	l.MeasuredDue = l.MeasuredDone + v.left
	l.InFlight = int64(len(v.askers))
	v.live(l)
}

// begin lets the first ones ask.
func (v *virtual) begin() {
	if n := v.arrivals.Users(); n > 0 {
		for user := range n {
			v.await(&ask{user: user})
		}
		return
	}
	v.openNext()
}

// await lets somebody ask at its due time, which may be now.
func (v *virtual) await(a *ask) {
	v.number++
	a.number = v.number
	heap.Push(&v.asks, a)
}

// openNext lets the open loop go on.
func (v *virtual) openNext() {
	a := &ask{user: -1, opening: true}
	var ok bool
	if v.arrivals.Converses() {
		if most, known := v.arrivals.Most(); known && v.count.Due >= most {
			return
		}
		if a.at, ok = v.arrivals.Start(0); ok {
			a.talk, ok = v.converse(a.at)
		}
	} else {
		a.at, ok = v.arrivals.Next(0)
	}
	if a.due = a.at.Due; ok {
		v.await(a)
		return
	}
	if !v.arrivals.Converses() {
		v.startDrain(v.count.TimeNs)
	}
}

func (v *virtual) converse(at schedule.Arrival) (*virtualTalk, bool) {
	k := &virtualTalk{at: at, conversation: at.Index}
	var ok bool
	k.first, k.turns, ok = v.prompts.Conversation(at.Index)
	return k, ok
}

// step lets the next thing happen; false where there is none.
func (v *virtual) step() bool {
	at, busy := v.engine.Next()
	if len(v.asks) > 0 && (!busy || v.asks[0].due <= at) {
		a := heap.Pop(&v.asks).(*ask)
		v.engine.Advance(a.due)
		v.carryOut(a)
		return true
	}
	if !busy {
		return false
	}
	v.count.TimeNs = at
	v.engine.Advance(at + 1)
	return true
}

// carryOut asks, where anything is still to be asked.
func (v *virtual) carryOut(a *ask) {
	v.count.TimeNs = a.due
	at := a.at
	ok := true
	switch {
	case v.arrivals.Converses():
		if a.user >= 0 && (a.talk == nil || a.talk.next >= a.talk.turns) {
			if at, ok = v.arrivals.Start(0); ok {
				a.talk, ok = v.converse(at)
			}
			if !ok {
				return
			}
		}
		at = a.talk.at
		if at.Phase, ok = v.arrivals.Place(a.due); at.Phase == schedule.Drain {
			v.startDrain(a.due)
		}
		at.Index = a.talk.first + int64(a.talk.next)
	case a.user >= 0:
		if at, ok = v.arrivals.Next(a.due); !ok || at.Phase == schedule.Drain {
			v.startDrain(a.due)
		}
	case at.Phase == schedule.Drain:
		v.startDrain(a.due)
	}
	if !ok || v.draining && (v.arrivals.Quiet() && at.Phase == schedule.Drain || v.drained(a.due)) {
		return
	}
	at.Due = a.due
	v.submit(a, &at)
	if a.opening {
		v.openNext()
	}
}

func (v *virtual) submit(a *ask, at *schedule.Arrival) {
	q, ok := v.prompts.Shape(at.Index, at.PromptTokens, at.OutputTokens)
	if !ok {
		v.failure = v.prompts.Err()
		v.startDrain(a.due)
		return
	}
	said := int32(0)
	if a.talk != nil {
		said = a.talk.tokens
		a.talk.next++
	}
	r := shapedRequest(&q, said)
	r.Index, r.Arrival, r.Phase = at.Index, at.Due, recording.Phase(at.Phase)
	r.Session = cmp.Or(r.Session, at.Session)
	if a.talk != nil && r.Session != "" {
		r.Turns = int32(a.talk.turns)
	}
	v.count.Due++
	v.count.Sent++
	if at.Phase == schedule.Measured {
		v.left++
	}
	v.askers[at.Index], v.phases[at.Index] = a, at.Phase
	if err := v.engine.Submit(r); err != nil {
		v.failure = &Failure{Saw: err.Error(), Help: "Nothing of the run was kept."}
	}
}

// ended lets whoever asked go on.
func (v *virtual) ended(r *sim.Record) {
	index := r.Request.Index
	a, phase := v.askers[index], v.phases[index]
	delete(v.askers, index)
	delete(v.phases, index)
	v.count.Finished++
	v.count.Tokens += int64(len(r.Tokens))
	if r.Ending != sim.Finished {
		v.count.Failed++
	}
	if phase == schedule.Measured {
		v.left--
		v.count.MeasuredDone++
		v.lastEnd = max(v.lastEnd, r.End)
	}
	if a == nil || r.Ending == sim.Cancelled {
		return
	}
	next := &ask{user: a.user, turn: a.turn + 1, talk: a.talk}
	think := time.Duration(0)
	goesOn := a.talk != nil && a.talk.next < a.talk.turns && r.Ending == sim.Finished
	switch {
	case goesOn:
		a.talk.tokens = int32(r.Request.Prompt + len(r.Tokens))
		q, _ := v.prompts.Shape(a.talk.first+int64(a.talk.next), 0, 0)
		switch {
		case q.Thinks:
			think = q.Think
		case a.user >= 0:
			think = v.arrivals.Think(a.user, next.turn)
		default:
			think = v.arrivals.Think(int(a.talk.conversation), int64(a.talk.next))
		}
	case a.user < 0:
		return
	default:
		next.talk = nil
		think = v.arrivals.Think(a.user, next.turn)
	}
	if r.Ending == sim.Refused {
		think = max(think, afterRefusal)
	}
	next.due = r.End + int64(think)
	if think == 0 { // at this moment, before the next iteration begins
		v.carryOut(next)
		return
	}
	v.await(next)
}

func (v *virtual) startDrain(at int64) {
	if !v.draining {
		v.draining, v.drainFrom = true, at
	}
}

func (v *virtual) drained(now int64) bool {
	return v.draining && (v.left == 0 || now-v.drainFrom > int64(virtualDrain))
}

// over says that every measured request has ended.
func (v *virtual) over() bool {
	if v.arrivals.Converses() && !v.draining && len(v.asks) == 0 && len(v.askers) == 0 && v.count.Due > 0 {
		v.arrivals.Finish()
		v.startDrain(v.count.TimeNs)
	}
	return v.draining && v.left == 0
}

// finish cuts what is under way and belongs to no measured phase.
func (v *virtual) finish() error {
	if err := v.prompts.Err(); err != nil {
		return err
	}
	now := v.count.TimeNs + 1
	v.engine.Advance(now)
	for _, index := range slices.Sorted(maps.Keys(v.askers)) {
		if err := v.engine.Cancel(now, index); err != nil {
			return fmt.Errorf("ending the simulation: %w", err)
		}
	}
	v.engine.Advance(math.MaxInt64)
	return nil
}

// window is the measured phase, and why it ended.
func (v *virtual) window() (start, end int64, why string) {
	start, end, known := v.arrivals.Window()
	if !known {
		end = max(start, v.lastEnd)
	}
	return start, end, v.arrivals.WindowWhy()
}

// An askQueue is those who will ask, in a heap by due time.
type askQueue []*ask

func (a askQueue) Len() int { return len(a) }
func (a askQueue) Less(i, j int) bool {
	return a[i].due < a[j].due || a[i].due == a[j].due && a[i].number < a[j].number
}
func (a askQueue) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *askQueue) Push(x any)   { *a = append(*a, x.(*ask)) }
func (a *askQueue) Pop() any {
	old := *a
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return x
}
