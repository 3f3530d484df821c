// Package recording keeps what happened: one Trace for each request, with every
// arrival of tokens in integer nanoseconds. It is the contract between the side
// that measures and the side that judges, so it imports no other room.
package recording

// A Maybe is a value that a request may not have. The zero value is absent;
// it becomes null in Parquet and a missing key in JSON, never 0 or -1.
type Maybe[T any] struct {
	V  T
	OK bool
}

// Some is a Maybe that has the value v.
func Some[T any](v T) Maybe[T] { return Maybe[T]{V: v, OK: true} }

// Or is the value, or other where there is none.
func (m Maybe[T]) Or(other T) T {
	if m.OK {
		return m.V
	}
	return other
}

// A Phase says which part of the run a request belongs to, by its due time.
type Phase string

const (
	Warmup   Phase = "warmup"
	Measured Phase = "measured"
	Drain    Phase = "drain"
)

// An Outcome is how a request ended. OK alone is success; more may come.
type Outcome string

const (
	OK            Outcome = "ok"
	HTTPError     Outcome = "http_error"      // a status other than 200
	Refused       Outcome = "refused"         // nothing listens at the address
	ConnectFailed Outcome = "connect_failed"  // no connection for any other reason
	TLSFailed     Outcome = "tls_failed"      // the TLS handshake failed
	Timeout       Outcome = "timeout"         // in all, or silent for too long
	Empty         Outcome = "empty"           // a stream that ended well without a token
	Filtered      Outcome = "filtered"        // ended by a content filter
	NotStreamed   Outcome = "not_streamed"    // one JSON body instead of a stream
	StreamCut     Outcome = "stream_cut"      // the stream ended without a finish reason
	StreamError   Outcome = "stream_error"    // an error inside the stream
	BadStream     Outcome = "bad_stream"      // bytes that are not the protocol
	TruncatedByUs Outcome = "truncated_by_us" // cut when the run was stopped
	NotSent       Outcome = "not_sent"        // due, but it never left: the run was stopped first, or this machine had no room
	Incomplete    Outcome = "incomplete"      // the recorder died before the request ended
)

// A Step is the part of a request's life in which it failed.
type Step string

const (
	AtConnect    Step = "connect"
	AtTLS        Step = "tls"
	AtSend       Step = "send"
	AtHeaders    Step = "headers"
	AtFirstToken Step = "first_token"
	AtMidStream  Step = "mid_stream"
)

// The channels that an arrival can belong to.
const (
	ChannelAnswer    int8 = 0
	ChannelReasoning int8 = 1
	ChannelToolCall  int8 = 2
	ChannelRefusal   int8 = 3
)

// How a token count came to be (Count.Source).
const (
	SourceReported = "reported" // by the server's usage
	SourceCounted  = "counted"  // by us, from what arrived
	SourceIntended = "intended" // what the workload asked for
)

// How the tokens of single arrivals are known (Trace.ArrivalSource), best first.
const (
	ArrivalUsage    = "usage"        // differences of cumulative usage
	ArrivalIDs      = "token_ids"    // token ids in the event
	ArrivalLogprobs = "logprobs"     // one log-probability entry a token
	ArrivalEvents   = "events"       // one token an event, and the sum is the usage
	ArrivalShared   = "usage_shared" // one each, the surplus of the usage by bytes of text
	ArrivalAssumed  = "assumed"      // one token an event, unconfirmed: no usage, or a smaller one
)

// A Count is a number of tokens with where it came from.
type Count struct {
	Used     Maybe[int32] // the count that metrics use
	Intended Maybe[int32]
	Reported Maybe[int32]
	Counted  Maybe[int32]
	Source   string // which of the three Used is; empty without one
}

// Settle chooses Used: what the server reported, else what was counted, else
// what was intended if asked for. A report of none beside tokens that came is
// kept, but not used.
func (c *Count) Settle(orIntended bool) {
	switch {
	case c.Reported.OK && (c.Reported.V > 0 || c.Counted.V <= 0):
		c.Used, c.Source = c.Reported, SourceReported
	case c.Counted.OK:
		c.Used, c.Source = c.Counted, SourceCounted
	case orIntended && c.Intended.OK:
		c.Used, c.Source = c.Intended, SourceIntended
	default:
		c.Used, c.Source = Maybe[int32]{}, ""
	}
}

// Arrivals are the arrivals of one answer, column by column; all columns have
// the same length. An arrival of k tokens is k tokens at the same instant; k may
// be 0 (text without a whole token).
type Arrivals struct {
	DeltaNs      []int64 // gap to the arrival before; the first to the due time
	Tokens       []int32 // tokens that it brought
	Read         []int32 // number of the socket read that brought it
	StampErrorNs []int64 // the true arrival lies in [stamp - error, stamp]
	Channel      []int8
	TextBytes    []int32 // UTF-8 bytes of text that it brought
}

// Len is the number of arrivals.
func (a *Arrivals) Len() int { return len(a.DeltaNs) }

// Reset empties a and keeps its memory.
func (a *Arrivals) Reset() {
	a.DeltaNs, a.Tokens, a.Read = a.DeltaNs[:0], a.Tokens[:0], a.Read[:0]
	a.StampErrorNs, a.Channel, a.TextBytes = a.StampErrorNs[:0], a.Channel[:0], a.TextBytes[:0]
}

// A Trace is one request's life: the only thing that is kept of it. Times are
// nanoseconds on the monotonic clock since the run's start. A retried request
// has one Trace a try, with the same Index.
type Trace struct {
	Index   int64 // place in the schedule
	Try     int32 // from 0
	Session string
	Turn    int32
	Turns   Maybe[int32] // planned in its conversation; absent for single requests
	Phase   Phase
	Agent   string
	Target  string

	Due       int64
	Sent      Maybe[int64] // when the last byte of the request left
	Connected Maybe[int64] // when its connection stood; absent where one was reused
	FirstByte Maybe[int64] // first byte of the response
	End       Maybe[int64] // end of the stream, or the failure

	Outcome      Outcome
	FailedAt     Step   // empty where nothing failed
	HTTPStatus   int32  // 0 where none came
	Error        string // one line, without secrets
	FinishReason string // as normalised by the dialect
	ResponseID   string

	Prompt, Output    Count
	Cached, Reasoning Maybe[int32]

	Arrivals
	ArrivalSource string

	ServerReceived Maybe[int64] // when the server says the request reached it, on the run's clock
	ServerQueue    Maybe[int64] // first scheduled - received
	ServerPrefill  Maybe[int64] // first token - first scheduled

	Slow        Maybe[bool]
	Check       string // Pass, Fail or empty
	CheckDetail string

	Notes []string // codes of what a careful reader should know, such as "usage_shared"
}

// What a check of an answer comes to (Trace.Check).
const (
	Pass = "pass"
	Fail = "fail"
)

// Codes that stand in Trace.Notes.
const (
	NoteUsageShared    = "usage_shared"      // tokens an arrival were shared out by bytes of text
	NoteNoDone         = "no_done"           // finished without the end marker
	NoteGzip           = "gzip"              // compressed in spite of our asking for identity
	NoteManyChoices    = "many_choices"      // more than one choice; the first is judged
	NoteUnfinishedTail = "unterminated_tail" // the last event lacked its blank line
	NoteErrorAfter     = "error_after_finish"
	NoteExtraFinish    = "duplicate_finish"
	NoteUsageFell      = "usage_fell" // a later cumulative usage was smaller
)

// NoRoom says that this machine had no room for the request's connection (no free
// file descriptor, port or memory), so that it never left; Error says what it was.
func (t *Trace) NoRoom() bool { return t.Outcome == NotSent && t.FailedAt == AtConnect }

// Stopped says that the request was given up because the run was at its end or was
// stopped, whatever the server would have done.
func (t *Trace) Stopped() bool {
	return t.Outcome == TruncatedByUs || t.Outcome == NotSent && !t.NoRoom()
}

// FirstToken is the index of the first arrival that brought a token, or -1.
func (t *Trace) FirstToken() int {
	for i, k := range t.Tokens {
		if k > 0 {
			return i
		}
	}
	return -1
}

// LastToken is when the last token came, on the run's clock; false where none
// did.
func (t *Trace) LastToken() (at int64, ok bool) {
	moment := t.Due
	for i, d := range t.DeltaNs {
		if moment += d; t.Tokens[i] > 0 {
			at, ok = moment, true
		}
	}
	return at, ok
}

// Clone is a copy of t that shares no memory with it.
func (t *Trace) Clone() Trace {
	c := *t
	c.DeltaNs = append([]int64(nil), t.DeltaNs...)
	c.Tokens = append([]int32(nil), t.Tokens...)
	c.Read = append([]int32(nil), t.Read...)
	c.StampErrorNs = append([]int64(nil), t.StampErrorNs...)
	c.Channel = append([]int8(nil), t.Channel...)
	c.TextBytes = append([]int32(nil), t.TextBytes...)
	c.Notes = append([]string(nil), t.Notes...)
	return c
}
