package serve

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"
)

// A player sends one answer.
type player struct {
	server *Server
	w      http.ResponseWriter
	http   *http.ResponseController
	ctx    context.Context // ends when the client leaves
	q      *Request
	t      *Truth
	alarm  *alarm
	enc    *encoder

	gather          bool // one JSON body at the end instead of a stream
	text, reasoning strings.Builder
	tokens          int
	usage           *Usage
	arrivals        []int // tokens of the arrivals in the current write
}

// errEnded says that the answer has ended and its line of the log is complete.
var errEnded = errors.New("ended")

// play sends events, each at its time. The truth says how it ended.
func (p *player) play(events iter.Seq[Event]) {
	var at time.Duration
	more, waiting := false, false // waiting: there is something to be sent at `at`
	for e := range events {
		if !more {
			at = e.At
		}
		more = e.More
		p.gather = p.gather || e.Whole
		if e.Finish != "" {
			p.t.Finish = e.Finish
		}
		last := e.Instead != nil || e.Close != Open || (p.gather && e.Error != nil)
		if !last {
			waiting = p.put(&e) || waiting
		}
		if waiting && (last || !more) {
			if p.write(at) != nil {
				return
			}
			waiting = false
		}
		if last {
			p.conclude(&e, at)
			return
		}
	}
	if waiting && p.write(at) != nil {
		return
	}
	p.conclude(&Event{Close: EOF}, at)
}

// put adds e to the current write, or to the body of an answer that is not
// streamed. It says whether something is to be sent.
func (p *player) put(e *Event) bool {
	if e.isArrival() {
		p.arrivals = append(p.arrivals, e.Tokens)
	}
	if !p.gather {
		p.enc.add(e)
		return len(p.enc.buf) > 0
	}
	p.text.WriteString(e.Text)
	p.reasoning.WriteString(e.Reasoning)
	p.tokens += e.Tokens
	if e.Usage != nil {
		p.usage = e.Usage
	}
	return true // so that the body comes no sooner than its last event
}

// write sends the current write at its time.
func (p *player) write(at time.Duration) error {
	if err := p.wait(at); err != nil || p.gather {
		return err
	}
	p.begin()
	sent := time.Now().UnixNano()
	_, err := p.w.Write(p.enc.buf)
	if err == nil {
		err = p.http.Flush()
	}
	p.enc.buf = p.enc.buf[:0]
	if err != nil {
		return p.end(EndClientGone)
	}
	for _, k := range p.arrivals {
		p.sent(sent, at, k)
	}
	p.arrivals = p.arrivals[:0]
	return nil
}

// begin sets the head of a stream; it leaves with the first write.
func (p *player) begin() {
	if p.t.Status != 0 {
		return
	}
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	p.w.WriteHeader(http.StatusOK)
	p.t.Status = http.StatusOK
}

func (p *player) sent(ns int64, at time.Duration, tokens int) {
	p.t.Events = append(p.t.Events, Sent{ns, p.q.Received.UnixNano() + int64(at), tokens})
	p.server.tokens.Add(int64(tokens))
}

// conclude ends the answer as e says, at its time.
func (p *player) conclude(e *Event, at time.Duration) {
	if p.wait(at) != nil {
		return
	}
	switch {
	case e.Instead != nil:
		p.page(e.Instead, EndPage)
	case e.Error != nil: // of an answer that is not streamed
		b, _ := json.Marshal(map[string]*Fault{"error": e.Error}) // strings only
		p.page(&Page{http.StatusInternalServerError, "application/json", b}, EndHTTPError)
	case e.Close == Silent || e.Close == Mute:
		p.silence(e.Close)
	case e.Close == Cut || e.Close == Reset:
		p.hangUp(e.Close)
	case p.gather:
		sent := time.Now().UnixNano()
		if p.page(&Page{http.StatusOK, "application/json", whole(p.q, p.text.String(), p.reasoning.String(), p.t.Finish, p.usage)}, EndDone) {
			p.sent(sent, at, p.tokens)
		}
	default:
		// The end of the body leaves when the handler returns.
		if p.begin(); p.http.Flush() != nil {
			p.end(EndClientGone)
			return
		}
		p.end(EndDone)
	}
}

// page sends a whole response and says whether it could.
func (p *player) page(page *Page, end string) bool {
	if p.t.Status == 0 {
		p.w.Header().Set("Content-Type", page.ContentType)
		p.w.WriteHeader(page.Status)
		p.t.Status = page.Status
	}
	if page.Status != http.StatusOK {
		end = EndHTTPError
	}
	_, err := p.w.Write(page.Body)
	if err == nil {
		err = p.http.Flush()
	}
	if err != nil {
		end = EndClientGone
	}
	p.end(end)
	return err == nil
}

// silence sends nothing more, until the client leaves or the server stops.
func (p *player) silence(how Closing) {
	if how == Silent && !p.gather {
		p.begin()
		p.http.Flush() // an error is seen below, as the client's leaving
	}
	select {
	case <-p.ctx.Done():
		p.end(EndClientGone)
	case <-p.server.stop:
		p.stopped()
	}
}

// stopped ends an answer because the server stops: the client sees a cut.
func (p *player) stopped() {
	if c, _, err := p.http.Hijack(); err == nil {
		c.Close()
	}
	p.end(EndStopped)
}

// hangUp closes the connection in the middle of the answer.
func (p *player) hangUp(how Closing) {
	end := EndCut
	c, _, err := p.http.Hijack()
	if err != nil {
		p.end(EndFailed)
		panic(http.ErrAbortHandler) // the next best: net/http closes the connection
	}
	if how == Reset {
		end = EndReset
		reset(c)
	}
	c.Close()
	p.end(end)
}

// wait waits for a moment of the answer, and ends the answer where the client
// leaves before.
func (p *player) wait(at time.Duration) error {
	err := p.alarm.wait(p.ctx, p.q.Received.Add(at))
	switch {
	case err == nil:
		return nil
	case p.ctx.Err() != nil:
		return p.end(EndClientGone)
	default:
		p.end(EndFailed)
		panic(http.ErrAbortHandler) // an answer that can't be timed must not look well
	}
}

func (p *player) end(how string) error {
	if how == EndClientGone && p.q.wasCut.Load() {
		how = EndCut
	}
	if how == EndClientGone {
		select {
		case <-p.server.stop: // it was us who closed the connection
			how = EndStopped
		default:
		}
	}
	p.t.End = how
	return errEnded
}
