package load

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"fermata/cost"
	"fermata/recording"
	"fermata/wire"
	"fermata/workload"
)

// A flight is one try of a request, from its due time to its end. It follows what
// the transport makes of it.
type flight struct {
	answer
	run     *run
	to      *Target
	errand  *errand   // nil once nobody wants it any more
	started int64     // time-outs count from here
	early   bool      // handed over before it was due, and not due yet
	call    wire.Call // of the transport's; guarded by run.mu, as are the next two
	landed  bool      // it has ended
	before  *flight   // among those under way …
	after   *flight
	worst   cost.Amount // that it may cost, set aside
	paid    bool        // that was settled
	told    bool        // the witness, of its first token or that there is none; the watch's
	caller  caller
}

// A caller is told when its request has ended.
type caller interface{ ended(f *flight) }

type callerFunc func(f *flight)

func (c callerFunc) ended(f *flight) { c(f) }

// An errand is what goes out.
type errand struct {
	header http.Header
	body   []byte
	asked  *workload.Request // kept where texts are
}

// flights are those under way. Its zero value has none.
type flights struct {
	first *flight
	n     int
}

func (s *flights) add(f *flight) {
	if f.after = s.first; f.after != nil {
		f.after.before = f
	}
	s.first = f
	s.n++
}

func (s *flights) remove(f *flight) {
	if f.before != nil {
		f.before.after = f.after
	} else {
		s.first = f.after
	}
	if f.after != nil {
		f.after.before = f.before
	}
	f.before, f.after = nil, nil
	s.n--
}

// send has a request leave, once there is a place in flight, and tells c when it
// has ended. It does not wait.
func (r *run) send(f *flight, c caller) {
	if f.early && r.room == nil || r.hasRoom() { // a stopped run's transport withdraws what is not due
		r.launch(f, c)
		return
	}
	r.answers.Go(func() {
		if r.admit() {
			r.launch(f, c)
			return
		}
		f.unsent()
		c.ended(f)
	})
}

// hasRoom takes a place in flight if there is one.
func (r *run) hasRoom() bool {
	if r.halted() {
		return false
	} else if r.room == nil {
		return true
	}
	select {
	case r.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// unsent judges a request that had no place in flight when the run was stopped.
func (f *flight) unsent() {
	f.trace = new(recording.Trace)
	t := f.trace
	*t = f.beginning()
	t.Outcome, t.FailedAt, t.Error = recording.NotSent, recording.AtSend, "due, but the run was stopped before it left"
}

// launch hands the request to the transport, and tells c when it has ended.
func (r *run) launch(f *flight, c caller) {
	f.caller, f.started = c, max(f.due, r.clock.Now())
	req := &wire.Request{Method: http.MethodPost, URL: f.to.URL, Header: f.errand.header, Body: f.errand.body, Due: f.due}
	if r.Options.Retries == 0 && f.to.Rate == nil && !r.KeepText { // many wait, and hold no more than they must
		f.errand = nil
	}
	call := r.transport.Start(req, f)
	r.mu.Lock()
	if !f.landed {
		f.call = call
		r.inFlight.add(f)
	}
	r.mu.Unlock()
	if r.ctx.Err() != nil {
		call.Cut(context.Cause(r.ctx))
	}
}

// exchange carries out one try and waits for its end.
func (r *run) exchange(f *flight) {
	done := make(chan struct{})
	r.launch(f, callerFunc(func(*flight) { close(done) }))
	<-done
}

// announce records that the request is due.
func (f *flight) announce() {
	f.run.tally.due.Add(1)
	raise(&f.run.tally.reached, f.index+1)
	f.begin()
}

// begin records what is known before anything comes.
func (f *flight) begin() {
	t := beginnings.Get().(*recording.Trace)
	*t = f.beginning()
	_ = f.record.Begin(t)
	beginnings.Put(t)
}

// beginnings are traces that a recorder has looked at.
var beginnings = sync.Pool{New: func() any { return new(recording.Trace) }}

// Due implements wire.Follower.
func (f *flight) Due() error {
	if f.early {
		f.early = false
		f.run.tally.early.Add(-1)
		f.announce()
	}
	return f.run.err()
}

// End implements wire.Follower.
func (f *flight) End(res wire.Result) {
	r := f.run
	r.mu.Lock()
	if f.landed = true; f.call != nil {
		r.inFlight.remove(f)
	}
	r.mu.Unlock()
	if errors.Is(res.Err, wire.ErrWithdrawn) {
		r.withdraw(f)
		return
	}
	if r.room != nil {
		<-r.room
	}
	f.judge(res, r.clock.ZeroWallNs(), r.hide)
	r.pay(f)
	f.caller.ended(f)
}

// withdraw undoes what enter did for a request that never became due. Only the
// open loop hands requests over so early.
func (r *run) withdraw(f *flight) {
	r.tally.early.Add(-1)
	r.purse.settle(f.worst, cost.Amount{})
	if f.phase == recording.Measured {
		r.tally.measuredLeft.Add(-1)
	}
	r.answers.Done()
}

// cutAll ends every request under way, and those that come.
func (r *run) cutAll(cause error) {
	r.cut(cause)
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := r.inFlight.first; f != nil; f = f.after {
		f.call.Cut(cause)
	}
}
