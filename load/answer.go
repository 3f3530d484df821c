package load

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"fermata/dialect"
	"fermata/internal/sse"
	"fermata/recording"
	"fermata/wire"
)

// maxWhole bounds what is kept of a body that is not a stream.
const maxWhole = 1 << 20

// A Recorder keeps what happens. *recording.Recorder is one; its calls are safe
// for concurrent use.
type Recorder interface {
	Begin(t *recording.Trace) error
	Sent(index int64, try int32, at int64, connected recording.Maybe[int64]) error
	FirstByte(index int64, try int32, at int64) error
	Arrive(index int64, try int32, a recording.Arrival) error
	End(t *recording.Trace) error
	Text(index int64, try int32, prompt, answer, reasoning string) error
	Sample(s recording.Sample) error
}

// An answer is one request under way: the sink of its bytes. It turns them into
// arrivals as they come and is judged once they have ended.
type answer struct {
	trace   recording.Trace
	dialect dialect.Dialect
	decoder dialect.Decoder
	events  sse.Splitter
	record  Recorder
	cut     context.CancelCauseFunc
	tally   *tally

	head      bool
	streaming bool
	status    int
	header    http.Header
	body      []byte // of an answer that is not a stream

	counts []int32 // tokens of each candidate, as the server says
	last   int64   // time of the last candidate

	keepText        bool
	text, reasoning strings.Builder

	watch watched
}

// What the watch over silent streams looks at from its own goroutine.
type watched struct {
	token  atomic.Int64 // time of the last token; 0 before the first
	finish atomic.Int64 // time of the finish reason; 0 before
	done   atomic.Int64 // time of the end marker; 0 before
}

// Sent implements wire.Sink.
func (a *answer) Sent(at int64, connected recording.Maybe[int64]) error {
	a.trace.Sent, a.trace.Connected = recording.Some(at), connected
	a.tally.sent(at - a.trace.Due)
	return a.record.Sent(a.trace.Index, a.trace.Try, at, connected)
}

// Head implements wire.Sink.
func (a *answer) Head(status int, h http.Header, at wire.Stamp) error {
	a.head, a.status, a.header = true, status, h
	a.trace.HTTPStatus = int32(status)
	kind := strings.ToLower(h.Get("Content-Type"))
	a.streaming = status == http.StatusOK && !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "text/html")
	return a.record.FirstByte(a.trace.Index, a.trace.Try, at.At)
}

// Data implements wire.Sink.
func (a *answer) Data(b []byte, at wire.Stamp) error {
	if !a.streaming {
		a.body = append(a.body, b[:min(len(b), maxWhole-len(a.body))]...)
		return nil
	}
	return a.events.Feed(b, func(ev sse.Event) error { return a.event(ev, at) })
}

func (a *answer) event(ev sse.Event, at wire.Stamp) error {
	tok, ok := a.decoder.Event(string(ev.Name), ev.Data)
	if said := a.decoder.Answer(); said.Done || said.FinishReason != "" {
		a.ended(said, at.At)
	}
	if !ok {
		return nil
	}
	return a.arrive(tok, at)
}

func (a *answer) ended(said *dialect.Answer, at int64) {
	if said.Done {
		a.watch.done.CompareAndSwap(0, at)
	}
	if said.FinishReason != "" {
		a.watch.finish.CompareAndSwap(0, at)
	}
}

// arrive keeps a candidate for an arrival: whether an event without text was a
// token is settled at the end.
func (a *answer) arrive(tok dialect.Token, at wire.Stamp) error {
	t := &a.trace
	prev := a.last
	if t.Len() == 0 {
		prev = t.Due
	}
	a.last = at.At
	a.watch.token.Store(at.At)
	a.tally.token(t, tok, at.At)
	t.DeltaNs = append(t.DeltaNs, at.At-prev)
	t.Read = append(t.Read, at.Read)
	t.StampErrorNs = append(t.StampErrorNs, at.ErrorNs)
	t.Channel = append(t.Channel, tok.Channel)
	t.TextBytes = append(t.TextBytes, int32(len(tok.Text)))
	a.counts = append(a.counts, tok.Count)
	if a.keepText {
		if tok.Channel == recording.ChannelReasoning {
			a.reasoning.Write(tok.Text)
		} else {
			a.text.Write(tok.Text)
		}
	}
	return a.record.Arrive(t.Index, t.Try, recording.Arrival{
		At: at.At, StampErrorNs: at.ErrorNs, Tokens: tok.Count, Read: at.Read,
		TextBytes: int32(len(tok.Text)), Channel: tok.Channel, Text: len(tok.Text) > 0,
	})
}

// settle gives each candidate its tokens and drops those that were none.
func (a *answer) settle(said *dialect.Answer) {
	t := &a.trace
	tokens, source, notes := dialect.Attribute(a.counts, t.TextBytes, said)
	t.ArrivalSource = source
	for _, n := range notes {
		addNote(t, n)
	}
	var sum, carry, shown int64
	kept := recording.Arrivals{}
	for i, k := range tokens {
		carry += t.DeltaNs[i]
		if k < 0 {
			continue
		}
		kept.DeltaNs = append(kept.DeltaNs, carry)
		kept.Tokens = append(kept.Tokens, k)
		kept.Read = append(kept.Read, t.Read[i])
		kept.StampErrorNs = append(kept.StampErrorNs, t.StampErrorNs[i])
		kept.Channel = append(kept.Channel, t.Channel[i])
		kept.TextBytes = append(kept.TextBytes, t.TextBytes[i])
		sum, carry = sum+int64(k), 0
		if t.TextBytes[i] > 0 {
			shown++
		}
	}
	t.Arrivals = kept
	if source == recording.ArrivalShared {
		sum = shown // what was shared out is the server's count, not ours
	}
	if a.streaming {
		t.Output.Counted = recording.Some(int32(sum))
	}
}

// isPage says that a body is an HTML page.
func isPage(body []byte) bool {
	b := bytes.ToLower(bytes.TrimSpace(body))
	return bytes.HasPrefix(b, []byte("<!doctype html")) || bytes.HasPrefix(b, []byte("<html"))
}
