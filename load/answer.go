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

// An origin is what is known of a try when it becomes due.
type origin struct {
	index   int64
	due     int64
	session string
	phase   recording.Phase
	try     int32
	turn    int32
	turns   recording.Maybe[int32] // planned in its conversation
	prompt  recording.Maybe[int32] // tokens that are intended
	output  recording.Maybe[int32]
}

// trace is that as the beginning of a trace.
func (o *origin) trace() recording.Trace {
	return recording.Trace{
		Index: o.index, Try: o.try, Session: o.session, Turn: o.turn, Turns: o.turns, Phase: o.phase, Due: o.due,
		Prompt: recording.Count{Intended: o.prompt}, Output: recording.Count{Intended: o.output},
	}
}

// A desk is what all answers of one target have in common.
type desk struct {
	target  string
	dialect dialect.Dialect
	record  Recorder
	tally   *tally
	slowNs  int64
}

// An answer is one request under way: the sink of its bytes. It turns them into
// arrivals as they come and is judged once they have ended. Many wait at once, so that
// what only a body needs is not there before its first byte.
type answer struct {
	origin
	*desk
	trace *recording.Trace // nil until it has ended

	counted   bool // among the requests that were sent, if by an earlier try
	head      bool
	streaming bool
	coded     bool        // its body has a content coding
	status    int32       // 0 before the head
	received  int64       // Unix ns: when the server says that it had the request; 0 if it does not
	refusal   http.Header // of an answer that may say when to try again
	unpack    *unpacker   // of a compressed body; nil for most
	reading   *reading    // nil before the body
	words     *words      // nil unless they are kept or heard

	watch watched
}

// beginning is the beginning of its trace.
func (a *answer) beginning() recording.Trace {
	t := a.origin.trace()
	t.Target = a.target
	return t
}

// A reading is what turns the bytes of a body into arrivals.
type reading struct {
	decoder dialect.Decoder
	events  sse.Splitter
	began   bool       // the stream had an event
	open    bool       // the last candidate is not recorded yet
	body    []byte     // of an answer that is not a stream, or of a stream before its first event
	last    wire.Stamp // of the latest bytes

	came     []candidate
	comments int64 // of the stream when the last candidate came
}

// A candidate for an arrival: whether an event without text was a token is settled at the end.
type candidate struct {
	at, errorNs int64
	read        int32
	textBytes   int32
	count       int32 // tokens, as the server says
	channel     int8
}

// Words are the texts of an answer.
type words struct {
	keep, heard     bool // the first two, and the last
	text, reasoning strings.Builder
	said            strings.Builder // the answer alone: neither reasoning nor tool calls
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
	if !a.counted {
		a.counted = true
		a.tally.sentAll.Add(1)
	}
	if a.try == 0 { // a later one waited on purpose
		a.tally.late(at - a.due)
	}
	return a.record.Sent(a.index, a.try, at, connected)
}

// Head implements wire.Sink.
func (a *answer) Head(status int, h http.Header, at wire.Stamp) error {
	a.head, a.status = true, int32(status)
	a.note(h)
	kind := strings.ToLower(h.Get("Content-Type"))
	a.streaming = status == http.StatusOK && !strings.HasPrefix(kind, "application/json") && !strings.HasPrefix(kind, "text/html")
	err := a.record.FirstByte(a.index, a.try, at.At)
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
	if at := h.Get("X-Fermata-Received-Ns"); at != "" {
		if wall, err := strconv.ParseInt(at, 10, 64); err == nil {
			a.received = wall
		}
	}
	if a.status != http.StatusOK || h.Get("Retry-After") != "" || h.Get("Retry-After-Ms") != "" {
		a.refusal = h.Clone()
	}
}

// Data implements wire.Sink.
func (a *answer) Data(b []byte, at wire.Stamp) error {
	d := a.read()
	d.last = at
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
	if d.open && d.comments == d.events.Comments && endsBlank(b) {
		// The last event ends with the last byte, whose time is known best.
		d.came[len(d.came)-1].errorNs = at.ErrorNs
	}
	return a.keepTail()
}

// read is the reading of the body, which begins with this at the latest.
func (a *answer) read() *reading {
	if a.reading == nil {
		a.reading = &reading{decoder: a.dialect.NewDecoder()}
	}
	return a.reading
}

// take takes bytes of the body, which came with the latest read.
func (a *answer) take(b []byte) error {
	d := a.reading
	if !a.streaming || !d.began {
		d.body = append(d.body, b[:min(len(b), maxWhole-len(d.body))]...)
	}
	if !a.streaming {
		return nil
	}
	return d.events.Feed(b, a.event)
}

// endsBlank says that b ends with a blank line, as an event does.
func endsBlank(b []byte) bool {
	return bytes.HasSuffix(b, []byte("\n\n")) || bytes.HasSuffix(b, []byte("\r\n\r\n")) || bytes.HasSuffix(b, []byte("\r\r"))
}

// event takes an event of the stream.
func (a *answer) event(ev sse.Event) error {
	d := a.reading
	d.began, d.body = true, nil
	if err := a.keepTail(); err != nil {
		return err
	}
	tok, ok := d.decoder.Event(string(ev.Name), ev.Data)
	if said := d.decoder.Answer(); said.Done || said.FinishReason != "" {
		a.ended(said, d.last.At)
	}
	if ok {
		a.arrive(tok, d.last)
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

// arrive keeps a candidate for an arrival.
func (a *answer) arrive(tok dialect.Token, at wire.Stamp) {
	d := a.reading
	if len(d.came) == 0 {
		a.watch.first.Store(at.At)
	}
	a.watch.token.Store(at.At)
	a.tally.token(tok)
	d.came = append(d.came, candidate{
		at: at.At, errorNs: at.EarlierNs, read: at.Read, textBytes: int32(len(tok.Text)), count: tok.Count, channel: tok.Channel,
	})
	d.open, d.comments = true, d.events.Comments
	if a.words != nil {
		a.words.take(tok)
	}
}

func (w *words) take(tok dialect.Token) {
	switch {
	case !w.keep:
	case tok.Channel == recording.ChannelReasoning:
		w.reasoning.Write(tok.Text)
	default:
		w.text.Write(tok.Text)
	}
	if w.heard && (tok.Channel == recording.ChannelAnswer || tok.Channel == recording.ChannelRefusal) {
		w.said.Write(tok.Text)
	}
}

// keepTail records the last candidate, once it is known whether anything followed
// it in its read.
func (a *answer) keepTail() error {
	d := a.reading
	if !d.open {
		return nil
	}
	d.open = false
	c := &d.came[len(d.came)-1]
	return a.record.Arrive(a.index, a.try, recording.Arrival{
		At: c.at, StampErrorNs: c.errorNs, Tokens: c.count, Read: c.read, TextBytes: c.textBytes, Channel: c.channel, Text: c.textBytes > 0,
	})
}

// settle gives each candidate its tokens and drops those that were none.
func (a *answer) settle(said *dialect.Answer) {
	t := a.trace
	var came []candidate
	if a.reading != nil {
		came = a.reading.came
	}
	n := len(came)
	counts, textBytes := make([]int32, n), make([]int32, n)
	for i := range came {
		counts[i], textBytes[i] = came[i].count, came[i].textBytes
	}
	tokens, source, notes := dialect.Attribute(counts, textBytes, said)
	t.ArrivalSource = source
	for _, n := range notes {
		addNote(t, n)
	}
	var sum, shown int64
	before := t.Due
	kept := recording.Arrivals{
		DeltaNs: make([]int64, 0, n), Tokens: make([]int32, 0, n), Read: make([]int32, 0, n),
		StampErrorNs: make([]int64, 0, n), Channel: make([]int8, 0, n), TextBytes: make([]int32, 0, n),
	}
	for i, k := range tokens {
		if k < 0 {
			continue
		}
		c := &came[i]
		kept.DeltaNs = append(kept.DeltaNs, c.at-before)
		kept.Tokens = append(kept.Tokens, k)
		kept.Read = append(kept.Read, c.read)
		kept.StampErrorNs = append(kept.StampErrorNs, c.errorNs)
		kept.Channel = append(kept.Channel, c.channel)
		kept.TextBytes = append(kept.TextBytes, c.textBytes)
		before = c.at
		sum += int64(k)
		if c.textBytes > 0 {
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
