package load

import (
	"bytes"
	"net/http"
	"strconv"
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
	tally   *tally

	counted bool // among the requests that were sent, if by an earlier try

	head      bool
	streaming bool
	coded     bool // its body has a content coding
	status    int
	received  int64       // Unix ns: when the server says that it had the request; 0 if it does not
	refusal   http.Header // of an answer that may say when to try again
	unpack    *unpacker   // of a compressed body; nil for most
	began     bool        // the stream had an event
	body      []byte      // of an answer that is not a stream, or of a stream before its first event
	read      wire.Stamp  // of the latest bytes

	counts []int32 // tokens of each candidate, as the server says
	last   int64   // time of the last candidate

	tail     recording.Arrival // the last candidate, not recorded yet
	open     bool
	comments int64 // of the stream when it came

	slowNs          int64
	keepText        bool
	text, reasoning strings.Builder
	heard           bool            // the next turn of its conversation will repeat the answer
	said            strings.Builder // the answer alone: neither reasoning nor tool calls

	watch watched
}

// What the watch over silent streams looks at from its own goroutine.
type watched struct {
	first  atomic.Int64 // time of the first token; 0 before
	token  atomic.Int64 // of the last; 0 before the first
	finish atomic.Int64 // time of the finish reason; 0 before
	done   atomic.Int64 // time of the end marker; 0 before
}

// Sent implements wire.Sink.
func (a *answer) Sent(at int64, connected recording.Maybe[int64]) error {
	a.trace.Sent, a.trace.Connected = recording.Some(at), connected
	if !a.counted {
		a.counted = true
		a.tally.sentAll.Add(1)
	}
	if a.trace.Try == 0 { // a later one waited on purpose
		a.tally.late(at - a.trace.Due)
	}
	return a.record.Sent(a.trace.Index, a.trace.Try, at, connected)
}

// Head implements wire.Sink.
func (a *answer) Head(status int, h http.Header, at wire.Stamp) error {
	a.head, a.status = true, status
	a.note(h)
	a.trace.HTTPStatus = int32(status)
	kind := strings.ToLower(h.Get("Content-Type"))
	a.streaming = status == http.StatusOK && !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "text/html")
	err := a.record.FirstByte(a.trace.Index, a.trace.Try, at.At)
	if err != nil {
		return err
	}
	if a.unpack, err = unpackerFor(h); status == http.StatusOK {
		return err // the status of another says enough
	}
	return nil
}

// note keeps of a head what is asked for once the answer has ended. A stream lasts, and
// there are many: all of its head would be half a KiB for each.
func (a *answer) note(h http.Header) {
	enc := h.Get("Content-Encoding")
	a.coded = enc != "" && enc != "identity"
	if wall, err := strconv.ParseInt(h.Get("X-Fermata-Received-Ns"), 10, 64); err == nil {
		a.received = wall
	}
	if a.status != http.StatusOK || h.Get("Retry-After") != "" || h.Get("Retry-After-Ms") != "" {
		a.refusal = h
	}
}

// Data implements wire.Sink.
func (a *answer) Data(b []byte, at wire.Stamp) error {
	a.read = at
	if a.unpack != nil {
		// Where an event ends among compressed bytes, nobody knows.
		if err := a.unpack.feed(b, a.take); err != nil {
			return err
		}
		return a.keepTail()
	}
	if err := a.take(b); err != nil {
		return err
	}
	if a.open && a.comments == a.events.Comments && endsBlank(b) {
		// The last event ends with the last byte, whose time is known best.
		a.tail.StampErrorNs = at.ErrorNs
		a.trace.StampErrorNs[len(a.trace.StampErrorNs)-1] = at.ErrorNs
	}
	return a.keepTail()
}

// take takes bytes of the body, which came with the latest read.
func (a *answer) take(b []byte) error {
	if !a.streaming || !a.began {
		a.body = append(a.body, b[:min(len(b), maxWhole-len(a.body))]...)
	}
	if !a.streaming {
		return nil
	}
	return a.events.Feed(b, a.event)
}

// endsBlank says that b ends with a blank line, as an event does.
func endsBlank(b []byte) bool {
	return bytes.HasSuffix(b, []byte("\n\n")) || bytes.HasSuffix(b, []byte("\r\n\r\n")) || bytes.HasSuffix(b, []byte("\r\r"))
}

// event takes an event of the stream.
func (a *answer) event(ev sse.Event) error {
	a.began, a.body = true, nil
	if err := a.keepTail(); err != nil {
		return err
	}
	tok, ok := a.decoder.Event(string(ev.Name), ev.Data)
	if said := a.decoder.Answer(); said.Done || said.FinishReason != "" {
		a.ended(said, a.read.At)
	}
	if ok {
		a.arrive(tok, a.read)
	}
	return nil
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
func (a *answer) arrive(tok dialect.Token, at wire.Stamp) {
	t := &a.trace
	prev := a.last
	if t.Len() == 0 {
		prev = t.Due
	}
	a.last = at.At
	a.watch.token.Store(at.At)
	if t.Len() == 0 {
		a.watch.first.Store(at.At)
	}
	a.tally.token(t, tok, at.At)
	t.DeltaNs = append(t.DeltaNs, at.At-prev)
	t.Read = append(t.Read, at.Read)
	t.StampErrorNs = append(t.StampErrorNs, at.EarlierNs)
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
	if a.heard && (tok.Channel == recording.ChannelAnswer || tok.Channel == recording.ChannelRefusal) {
		a.said.Write(tok.Text)
	}
	a.open, a.comments = true, a.events.Comments
	a.tail = recording.Arrival{
		At: at.At, StampErrorNs: at.EarlierNs, Tokens: tok.Count, Read: at.Read,
		TextBytes: int32(len(tok.Text)), Channel: tok.Channel, Text: len(tok.Text) > 0,
	}
}

// keepTail records the last arrival, once it is known whether anything followed
// it in its read.
func (a *answer) keepTail() error {
	if !a.open {
		return nil
	}
	a.open = false
	return a.record.Arrive(a.trace.Index, a.trace.Try, a.tail)
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
	if kept.Len() == 0 {
		t.ArrivalSource = ""
	}
	if source == recording.ArrivalShared {
		sum = shown // what was shared out is the server's count, not ours
	}
	if a.streaming {
		t.Output.Counted = recording.Some(int32(sum))
	}
}
