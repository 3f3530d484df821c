package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"sync"
	"time"

	"fermata/internal/conf"
	"fermata/internal/seed"
	"fermata/sim"
	"fermata/workload"
)

// A Simulator is an Engine that is the simulator in real time, or so many times
// as fast. NewSim makes it; a Server runs it.
//
// One goroutine has the simulated system. It decides by logical times only: an
// iteration begins at the logical end of the one before, however late the
// goroutine woke, so that a run of the same arrival times in virtual time makes
// the same schedule. What is late is the handing over of tokens, and the truth
// tells by how much.
type Simulator struct {
	text    *simText
	scale   float64
	answers *workload.Workload // for the lengths of answers that end by themselves
	truth   *simTruth          // nil where none is kept

	engine *sim.Engine       // the rest belongs to run, but for inbox
	lines  map[int64]*stream // answers under way, by index
	fresh  []*stream         // submitted since the last advance
	gauges *vllmMetrics

	mu    sync.Mutex
	inbox []letter
	ring  context.CancelFunc // wakes run
	zero  time.Time          // logical time zero
	index int64
}

// SimOptions are what a simulator needs besides its spec.
type SimOptions struct {
	TimeScale float64 // simulated seconds a second; 0 means 1
	Truth     string  // folder for truth_gaps.parquet and truth_iterations.parquet; empty for none
	Sets      []conf.Setting
}

// NewSim reads a simulator's spec; file is its name in messages, and its folder
// the one that paths in it are relative to. The error has all mistakes.
func NewSim(file string, data []byte, o SimOptions) (*Simulator, error) {
	text, err := readSim(file, data, o.Sets)
	if err != nil {
		return nil, err
	}
	if o.TimeScale == 0 {
		o.TimeScale = 1
	}
	if !(o.TimeScale >= 0.001 && o.TimeScale <= 1000) {
		return nil, fmt.Errorf("a time scale lies between 0.001 and 1000 simulated seconds a second, not at %g", o.TimeScale)
	}
	engine, err := sim.New(text.Options)
	if err != nil {
		return nil, err
	}
	s := &Simulator{text: text, scale: o.TimeScale, engine: engine, lines: map[int64]*stream{}, gauges: newVLLMMetrics(text.Serve.Model)}
	if text.Serve.Answers != "" {
		lengths := workload.Options{Input: workload.Tokens(1), Output: text.Serve.Answers}
		if s.answers, err = workload.Open(lengths, text.Seed); err != nil {
			return nil, err
		}
	}
	observer := sim.Observer{Token: s.token, Ended: s.ended, Iteration: s.gauges.iteration}
	if o.Truth != "" {
		if s.truth, err = newSimTruth(o.Truth); err != nil {
			return nil, err
		}
		engine.Keep()
		observer.Iteration = func(it *sim.Iteration) { s.gauges.iteration(it); s.truth.iteration(it) }
	}
	engine.Observe(observer)
	return s, nil
}

// Models implements Engine.
func (s *Simulator) Models() []string { return []string{s.text.Serve.Model} }

// TimeScale implements Scaled.
func (s *Simulator) TimeScale() float64 { return s.scale }

// Metrics implements Measured.
func (s *Simulator) Metrics(w io.Writer) { s.gauges.write(w) }

// wall is a logical time on the clock on the wall.
func (s *Simulator) wall(logical int64) time.Time {
	return s.zero.Add(time.Duration(float64(logical) / s.scale))
}

// logical is the simulated time at a moment.
func (s *Simulator) logical(t time.Time) int64 { return int64(float64(t.Sub(s.zero)) * s.scale) }

// A letter is what handlers tell the goroutine that has the system.
type letter struct {
	submit *stream
	cancel *stream
}

// tell hands a letter over and wakes whoever reads it.
func (s *Simulator) tell(l letter) {
	s.mu.Lock()
	s.inbox = append(s.inbox, l)
	if s.ring != nil {
		s.ring()
	}
	s.mu.Unlock()
}

// Run implements Runner: it has the system until ctx ends.
func (s *Simulator) Run(ctx context.Context) error {
	runtime.LockOSThread() // it wakes by itself, ahead of whatever else is runnable
	defer runtime.UnlockOSThread()
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	defer alarm.close()
	s.mu.Lock()
	s.zero = moment()
	s.mu.Unlock()
	for ctx.Err() == nil {
		s.advance()
		if err := s.sleep(ctx, alarm); err != nil && ctx.Err() == nil {
			return err
		}
	}
	for _, l := range s.lines { // none where a server runs it: its answers have ended
		l.end(errStopped)
		close(l.over)
	}
	if s.truth == nil {
		return nil
	}
	for r := range s.engine.Settled() {
		s.truth.record(r)
	}
	return s.truth.close()
}

var errStopped = errors.New("the server stops")

// sleep returns when something is to happen, or when somebody rings.
func (s *Simulator) sleep(ctx context.Context, alarm *alarm) error {
	wake, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.ring = cancel
	waiting := len(s.inbox) > 0
	s.mu.Unlock()
	if waiting {
		return nil
	}
	next, ok := s.engine.Next()
	if !ok {
		<-wake.Done()
		return nil
	}
	if err := alarm.wait(wake, s.wall(next)); err != nil && wake.Err() == nil {
		return err
	}
	return nil
}

// advance reads the letters and lets happen what is due.
func (s *Simulator) advance() {
	s.mu.Lock()
	letters := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, l := range letters {
		switch {
		case l.submit != nil:
			s.submit(l.submit)
		case l.cancel != nil:
			s.cancel(l.cancel)
		}
	}
	now := s.logical(time.Now())
	s.engine.Advance(now)
	for i, l := range s.fresh {
		if !l.gone {
			l.send(emission{queued: true})
		}
		s.fresh[i] = nil
	}
	s.fresh = s.fresh[:0]
	if s.truth != nil {
		for r := range s.engine.Settled() {
			s.truth.record(r)
		}
	}
	s.gauges.state(s.engine.State())
}

// submit lets a request arrive when it was received, or as soon after as the
// system's past allows: one that was read before Run began arrives at zero.
func (s *Simulator) submit(l *stream) {
	l.request.Arrival = max(0, s.logical(l.received), s.engine.Frontier())
	s.lines[l.request.Index] = l
	if err := s.engine.Submit(l.request); err != nil {
		l.end(err)
		close(l.over)
		delete(s.lines, l.request.Index)
		return
	}
	s.fresh = append(s.fresh, l)
}

func (s *Simulator) cancel(l *stream) {
	if s.lines[l.request.Index] != l {
		return // it has ended
	}
	at := max(s.logical(time.Now()), s.engine.Frontier())
	if err := s.engine.Cancel(at, l.request.Index); err != nil {
		l.end(err)
	}
}

// token hands an emission to the answer that it belongs to. A reader who is so
// slow that the buffer is full is cut: the system goes on.
func (s *Simulator) token(e sim.Emission) {
	l := s.lines[e.Index]
	if l == nil || l.gone {
		return
	}
	s.gauges.emitted(l, &e)
	l.last = e.At
	if !l.send(emission{at: e.At, tokens: e.Tokens}) {
		l.cutOff()
		s.tell(letter{cancel: l})
	}
}

// ended hands over how a request ended.
func (s *Simulator) ended(r *sim.Record) {
	l := s.lines[r.Request.Index]
	if l == nil {
		return
	}
	delete(s.lines, r.Request.Index)
	s.gauges.ended(r)
	l.told.Store(&told{
		ending: r.Ending, arrival: r.Request.Arrival, firstScheduled: r.FirstScheduled, prefillEnd: r.PrefillEnd, end: r.End,
		cached: r.Cached, evictions: r.Evictions, replica: r.Replica,
	})
	l.end(nil)
	close(l.over)
}

// Answer implements Engine.
func (s *Simulator) Answer(ctx context.Context, q *Request) (events iter.Seq[Event], err error) {
	s.mu.Lock()
	index := s.index
	s.index++
	s.mu.Unlock()
	l, err := s.stream(index, q)
	if err != nil {
		return nil, err
	}
	if l.failure.kind == failStatus || l.failure.kind == failHTML {
		return l.refused(), nil
	}
	s.tell(letter{submit: l})
	var first emission // that the request was taken in, or its first tokens
	select {
	case first = <-l.emissions:
	case <-ctx.Done():
		l.abandon()
		return nil, ctx.Err()
	}
	if t := l.told.Load(); t != nil && t.ending == sim.Refused {
		q.Simulated = l.truthOf(t)
		return nil, &Refusal{http.StatusTooManyRequests, Fault{Message: fmt.Sprintf("The queue is full: %d requests wait. Try again later.", s.text.QueueLimit), Type: "rate_limit_error", Code: "queue_full"}}
	}
	if err := l.failed(); err != nil {
		l.abandon()
		return nil, err
	}
	return func(yield func(Event) bool) {
		defer l.abandon()
		l.play(ctx, first, yield)
	}, nil
}

// draw is a number in [0, 1) for a purpose of a request.
func (s *Simulator) draw(purpose string, index int64) float64 {
	return seed.Rand(s.text.Seed, fmt.Sprintf("serve: %s %d", purpose, index)).Float64()
}
