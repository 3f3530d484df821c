package serve

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"fermata/sim"
)

const (
	promptTokensHeader = "X-Fermata-Prompt-Tokens" // intended length of the prompt
	sessionHeader      = "X-Fermata-Session"       // whose conversation it belongs to
	commentText        = "waiting"
)

// A stream is an answer of the simulator under way: a bounded channel between the
// goroutine that has the system and the one that writes to the client.
type stream struct {
	sim       *Simulator
	q         *Request
	request   sim.Request
	received  time.Time
	finish    string // why it ends after request.Output tokens
	failure   plannedFailure
	slow      time.Duration // least gap between events
	emissions chan emission
	err       atomic.Pointer[error]
	told      atomic.Pointer[told]
	over      chan struct{} // closed when the system is done with it

	gone bool  // of Run: nothing more is sent to it
	last int64 // of Run: logical time of the last emission
}

// An emission is what an iteration brought.
type emission struct {
	at     int64 // logical
	tokens int
	queued bool // no tokens: the request was taken in
}

// A told is what a request's record says at its end. Times are logical.
type told struct {
	ending                                   sim.Ending
	arrival, firstScheduled, prefillEnd, end int64
	cached, evictions, replica               int
}

// A plannedFailure is how an answer is going to fail; the zero value is not.
type plannedFailure struct {
	kind  string
	after int // tokens sent before
}

// stream makes the answer to q.
func (s *Simulator) stream(index int64, q *Request) (*stream, error) {
	l := &stream{sim: s, q: q, received: q.Received, emissions: make(chan emission, s.text.Serve.Buffer), over: make(chan struct{})}
	prompt, err := intendedTokens(q)
	if err != nil {
		return nil, err
	}
	n, finish := s.length(index, q)
	l.finish = finish
	l.request = sim.Request{Index: index, Prompt: prompt, Output: n, Session: q.Header.Get(sessionHeader), Priority: q.Priority}
	if s.text.PrefixCache && len(q.Blocks) > 0 {
		l.request.Session = ""
		l.request.Hashes = q.Blocks
		l.request.HashTokens = max(1, prompt*promptBlock/max(1, q.PromptTokens))
	}
	q.PromptTokens = prompt
	if err := s.engine.Fits(&l.request); err != nil {
		r := badRequest("max_tokens", strings.TrimPrefix(err.Error(), "request "+strconv.FormatInt(index, 10)+" "))
		r.Fault.Code = "context_length_exceeded"
		return nil, r
	}
	v := &s.text.Serve
	if q.Purpose == "" && v.Errors.Share > 0 && s.draw("errors", index) < v.Errors.Share {
		l.failure.kind = v.Errors.Kinds[int(s.draw("kinds", index)*float64(len(v.Errors.Kinds)))]
		l.failure.after = int(s.draw("position", index) * float64(n))
	}
	if v.Slow.Share > 0 && s.draw("slow", index) < v.Slow.Share {
		l.slow = time.Duration(float64(v.Slow.Gap) / s.scale)
	}
	return l, nil
}

// intendedTokens is the length of the prompt: what the header says, else its words.
func intendedTokens(q *Request) (int, error) {
	text := q.Header.Get(promptTokensHeader)
	if text == "" {
		return max(1, q.PromptTokens), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badRequest("", promptTokensHeader+" must be a number of tokens, not "+strconv.Quote(text))
	}
	return n, nil
}

// length is how many tokens the answer to q has, and why it ends there.
func (s *Simulator) length(index int64, q *Request) (n int, finish string) {
	most := q.MaxTokens
	if most == 0 {
		most = tokensUnasked
	}
	if s.answers == nil || q.IgnoreEOS {
		return most, "length"
	}
	shape, _ := s.answers.Shape(index, 0, 0)
	if n = max(int(shape.OutputTokens), q.MinTokens, 1); n < most {
		return n, "stop"
	}
	return most, "length"
}

// send hands an emission over; false where there is no room for it.
func (l *stream) send(e emission) bool {
	select {
	case l.emissions <- e:
		return true
	default:
		return false
	}
}

// end says that no emission will come any more. It is for Run alone, as are gone
// and cutOff.
func (l *stream) end(err error) {
	if err != nil {
		l.err.CompareAndSwap(nil, &err)
	}
	if !l.gone {
		l.gone = true
		close(l.emissions)
	}
}

// cutOff ends the connection of a reader who is too slow.
func (l *stream) cutOff() {
	err := errSlowReader
	l.end(err)
	if l.q.cut != nil {
		go l.q.cut() // closing a connection may take a moment
	}
}

var errSlowReader = &Refusal{http.StatusServiceUnavailable, Fault{Message: "The reader is too slow.", Type: "server_error"}}

// abandon says that nobody listens any more and waits for the end of the
// request, which comes with that of the iteration that computes it.
func (l *stream) abandon() {
	if l.told.Load() == nil {
		l.sim.tell(letter{cancel: l})
	}
	<-l.over
	if t := l.told.Load(); t != nil {
		l.q.Simulated = l.truthOf(t)
	}
}

func (l *stream) failed() error {
	if p := l.err.Load(); p != nil {
		return *p
	}
	return nil
}

// refused is the answer of a request that fails before it reaches the system.
func (l *stream) refused() iter.Seq[Event] {
	m := model{Fail: &fail{Kind: l.failure.kind, Status: l.sim.text.Serve.Errors.Status}}
	return m.failing(l.q)
}

// since is a logical time as the player takes it.
func (l *stream) since(logical int64) time.Duration { return l.sim.wall(logical).Sub(l.received) }

// A packer gathers tokens into events and events into writes.
type packer struct {
	l       *stream
	yield   func(Event) bool
	sent    int           // tokens
	held    int           // tokens that wait for an event
	pending []Event       // events that wait for a write
	last    time.Duration // of the last write
	ok      bool          // yield wants more
	began   bool
}

// play yields the answer as it comes.
func (l *stream) play(ctx context.Context, first emission, yield func(Event) bool) {
	p := &packer{l: l, yield: yield, ok: true}
	comments := time.Duration(float64(l.sim.text.Serve.Comments) / l.sim.scale)
	var silence *time.Timer
	var quiet <-chan time.Time
	if comments > 0 {
		silence = time.NewTimer(comments)
		defer silence.Stop()
		quiet = silence.C
	}
	at := int64(0)
	if first.tokens > 0 {
		if at = first.at; !p.take(first) {
			return
		}
	}
	for p.ok {
		select {
		case e, more := <-l.emissions:
			if !more {
				p.close(at)
				return
			}
			if e.queued {
				continue
			}
			at = e.at
			if !p.take(e) {
				return
			}
			if silence != nil {
				silence.Reset(comments)
			}
		case <-quiet:
			p.ok = yield(Event{At: time.Since(l.received), Comment: commentText})
			silence.Reset(comments)
		case <-ctx.Done():
			return
		}
	}
}

// take adds the tokens of an emission; false ends the answer.
func (p *packer) take(e emission) bool {
	l := p.l
	v := &l.sim.text.Serve
	tokens := e.tokens
	if f := l.failure; f.kind != "" && f.kind != failNoFinish && f.kind != failNoDone && p.sent+p.held+tokens > f.after {
		tokens = f.after - p.sent - p.held
		p.hold(tokens, e.at, v.PerEvent == 1)
		p.flush(true, e.at)
		p.fail(e.at)
		return false
	}
	spread := v.PerWrite > 1 && v.PerEvent == 1
	if spread { // an event a token
		for range tokens {
			p.hold(1, e.at, true)
		}
	} else {
		p.hold(tokens, e.at, v.PerEvent == 1)
	}
	p.flush(false, e.at)
	return p.ok
}

// hold adds tokens to the event that is being gathered.
func (p *packer) hold(tokens int, at int64, whole bool) {
	p.held += tokens
	if p.held > 0 && (whole || p.held >= p.l.sim.text.Serve.PerEvent) {
		p.event(at)
	}
}

// event ends the event that is being gathered.
func (p *packer) event(at int64) {
	if p.held == 0 {
		return
	}
	q := p.l.q
	p.sent += p.held
	e := Event{At: p.l.since(at), Text: strings.Repeat(tokenText, p.held), Tokens: p.held, Role: !p.began && q.API == Chat}
	if q.EachUsage {
		e.Usage = &Usage{Prompt: q.PromptTokens, Completion: p.sent}
	}
	p.began = true
	p.held = 0
	p.pending = append(p.pending, e)
}

// flush writes the events that wait, if they are enough, or all.
func (p *packer) flush(all bool, at int64) {
	if all {
		p.event(at)
	}
	n := p.l.sim.text.Serve.PerWrite
	for len(p.pending) > 0 && p.ok && (all || len(p.pending) >= n) {
		k := min(n, len(p.pending))
		when := max(p.pending[k-1].At, 0)
		if p.l.slow > 0 {
			when = max(when, p.last+p.l.slow)
		}
		p.last = when
		for i := range k {
			e := p.pending[i]
			if e.At, e.More = when, i < k-1; e.Role { // in the same write, as an event of its own
				e.Role = false
				if p.ok = p.yield(Event{At: when, Role: true, More: true}); !p.ok {
					return
				}
			}
			if p.ok = p.yield(e); !p.ok {
				return
			}
		}
		p.pending = append(p.pending[:0], p.pending[k:]...)
	}
}

// fail ends the answer as its failure says.
func (p *packer) fail(at int64) {
	p.l.sim.tell(letter{cancel: p.l})
	when := max(p.l.since(at), p.last)
	e := Event{At: when}
	switch p.l.failure.kind {
	case failStall:
		e.Close = Silent
	case failCut:
		e.Close = Cut
	case failReset:
		e.Close = Reset
	case failError:
		e.Error = fault(http.StatusInternalServerError, "The engine has failed.")
	}
	if p.ok = p.yield(e); p.ok && e.Error != nil {
		p.yield(Event{At: when, Done: true})
	}
}

// close ends an answer whose last token has come, or that was cut.
func (p *packer) close(at int64) {
	l := p.l
	t := l.told.Load()
	if l.failed() != nil || t == nil || t.ending != sim.Finished {
		p.yield(Event{At: time.Since(l.received), Close: Cut})
		return
	}
	p.flush(true, at)
	when := max(l.since(at), p.last)
	if l.failure.kind != failNoFinish {
		p.ok = p.ok && p.yield(Event{At: when, Finish: l.finish, More: true, Usage: p.each()})
	}
	usage := &Usage{Prompt: l.q.PromptTokens, Completion: p.sent, Timing: l.timing(t)}
	if l.sim.text.PrefixCache {
		usage.Cached = &t.cached
	}
	p.ok = p.ok && p.yield(Event{At: when, Usage: usage, More: true})
	if l.failure.kind != failNoDone {
		p.ok = p.ok && p.yield(Event{At: when, Done: true})
	}
}

func (p *packer) each() *Usage {
	if !p.l.q.EachUsage {
		return nil
	}
	return &Usage{Prompt: p.l.q.PromptTokens, Completion: p.sent}
}

// timing is the way through the system on the clock on the wall, from the
// receipt of the request: what the client multiplies by the time scale.
func (l *stream) timing(t *told) *Timing {
	scheduled := l.sim.wall(t.firstScheduled)
	return &Timing{
		ReceivedNs: l.received.UnixNano(), QueueNs: max(0, int64(scheduled.Sub(l.received))),
		PrefillNs: int64(l.sim.wall(t.prefillEnd).Sub(scheduled)),
	}
}

// truthOf is what the log says of the system.
func (l *stream) truthOf(t *told) *Simulated {
	s := &Simulated{
		Index: l.request.Index, Replica: t.replica, ArrivalNs: t.arrival, EndNs: t.end,
		Prompt: l.request.Prompt, Output: l.request.Output, Session: l.request.Session, Cached: t.cached, Evictions: t.evictions,
		ZeroWallNs: l.sim.zero.UnixNano(), TimeScale: l.sim.scale,
	}
	if t.firstScheduled >= 0 {
		s.FirstScheduledNs = &t.firstScheduled
	}
	if t.prefillEnd >= 0 {
		s.FirstTokenNs = &t.prefillEnd
	}
	return s
}
