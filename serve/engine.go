// Package serve is one HTTP server for every engine that can answer as a
// language model does: a script whose times are known, or a simulator. It speaks
// OpenAI's Chat Completions and Completions, streamed or whole, sends each event
// at its time in one write, and logs when it really did.
package serve

import (
	"context"
	"io"
	"iter"
	"net/http"
	"sync/atomic"
	"time"
)

// The interfaces that a request can come through.
const (
	Chat        = "chat"
	Completions = "completions"
)

// An Engine decides what is answered and when.
type Engine interface {
	// Models are the names that it serves, in the order to show them.
	Models() []string
	// Answer begins the answer to q: its events in order of time. An event may be
	// yielded long before its time: the server waits. The sequence may block until
	// it knows the next event, but not beyond the end of ctx, which comes when the
	// client has left. An error that is a *Refusal is answered as such, any other
	// with status 500.
	Answer(ctx context.Context, q *Request) (iter.Seq[Event], error)
}

// A Gate is an Engine that lets only some requests in. It is asked for every
// path below /v1/; the error is answered like that of Engine.Answer.
type Gate interface {
	Admit(r *http.Request) error
}

// A Runner is an Engine that works by itself. A Server runs it from the first
// request on and ends it once all answers have ended.
type Runner interface {
	Run(ctx context.Context) error
}

// Scaled is an Engine whose time is not that of the clock: so many seconds of it
// pass in one.
type Scaled interface {
	TimeScale() float64
}

// Measured is an Engine with metrics of its own, in Prometheus's text format.
type Measured interface {
	Metrics(w io.Writer)
}

// A Request is what was asked, as far as it matters to an engine.
type Request struct {
	ID           string // of the completion that answers it
	Model        string
	API          string      // Chat or Completions
	PromptTokens int         // words of the prompt or of all messages: a word is a token; token ids count each
	MaxTokens    int         // most tokens of the answer; 0 where the request does not say
	MinTokens    int         // least tokens of the answer
	IgnoreEOS    bool        // the answer does not end before MaxTokens
	Priority     int         // lower goes first
	Blocks       []int64     // of the prompt: equal numbers for equal beginnings, one for every 16 words
	Stream       bool        // else the answer is one JSON body
	IncludeUsage bool        // a last chunk with the usage is asked for
	EachUsage    bool        // the usage so far is asked for in every chunk
	Fields       []string    // names of the body's fields, sorted
	Header       http.Header // as received
	Purpose      string      // header x-fermata-purpose: preflight or calibration, not load
	Received     time.Time   // when the request's last byte was read

	Simulated *Simulated // for the truth log: set by an engine that knows more, by the end of the answer

	cut    func()      // ends the connection, whatever is being written to it
	wasCut atomic.Bool // cut was called
}

// An Event is what is sent at one moment. The fields of the first group make one
// chunk of the protocol together; otherwise one field says what is sent.
type Event struct {
	At   time.Duration // since Request.Received
	More bool          // the next event is written together with this one, whose At counts

	Role      bool // the answer's role
	Text      string
	Reasoning string // text on the reasoning channel
	Tokens    int    // that the event brings; an event with text or tokens is an arrival
	Finish    string // finish reason
	Usage     *Usage // alone: in a chunk without choices

	Comment string  // a comment line of the event stream, without its colon
	Data    string  // payload of an event, sent as it is
	Raw     string  // bytes sent as they are
	Error   *Fault  // an error inside the stream; of an answer that is not streamed, status 500 instead
	Done    bool    // the end marker
	Instead *Page   // sent instead of a stream; ends the answer
	Whole   bool    // from here on the answer is gathered and sent as one JSON body, though a stream was asked for
	Close   Closing // ends the answer
}

// A Usage is what the server says that a request took.
type Usage struct {
	Prompt, Completion int
	Cached             *int    // prompt tokens that were in a cache; nil where nobody knows
	Timing             *Timing // nil where nobody knows
	Forced             bool    // sent even where the request did not ask for it
}

// A Timing is what a server tells of a request's way through it, in the final
// usage chunk. Times are those of the clock on the wall.
type Timing struct {
	ReceivedNs int64 // Unix time
	QueueNs    int64 // from there until it was first scheduled
	PrefillNs  int64 // from there to the first token
}

// A Fault is an error object of the protocol.
type Fault struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param,omitempty"`
	Code    string `json:"code,omitempty"`
}

// A Refusal is an error that is answered with an HTTP status and a Fault.
type Refusal struct {
	Status int
	Fault  Fault
}

// Error implements error.
func (r *Refusal) Error() string { return r.Fault.Message }

// A Page is a whole HTTP response.
type Page struct {
	Status      int
	ContentType string
	Body        []byte
}

// A Closing is how an answer ends.
type Closing int

const (
	Open   Closing = iota // not yet
	EOF                   // the body ends well, whatever is missing in it
	Cut                   // the connection is closed in the middle of the body
	Reset                 // the connection is reset
	Silent                // the head is sent, if it was not yet, and nothing more; ends when the client leaves
	Mute                  // nothing more is sent, nor the head; ends when the client leaves
)

// isArrival says whether a reader of the stream would count e as an arrival of
// tokens.
func (e *Event) isArrival() bool {
	return e.Text != "" || e.Reasoning != "" || e.Tokens > 0
}
