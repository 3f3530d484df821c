// Package dialect says how to ask: one file a wire protocol, which builds the
// request's body and turns the events of the answer into token events.
package dialect

import (
	"fermata/recording"
	"fermata/workload"
)

// Unknown is the Count of an event that does not say how many tokens it brought.
const Unknown int32 = -1

// A Token is an event of a stream that brought, or may have brought, tokens.
type Token struct {
	Channel int8   // recording.ChannelAnswer …
	Text    []byte // decoded text, valid until the next event; empty where the event had none
	Count   int32  // tokens, as the server says (usage, ids, logprobs), else Unknown
}

// An Answer is what an answer said about itself, besides its tokens. It grows
// event by event and is whole when the stream has ended.
type Answer struct {
	ID           string
	FinishReason string // normalised (stop, length, tool_calls, content_filter, …); empty where none came
	Done         bool   // the end marker was seen
	Error        string // message of an error inside the stream; empty without one
	Bad          string // why the bytes are not the protocol; empty if they are

	PromptTokens, OutputTokens, CachedTokens, ReasoningTokens recording.Maybe[int32]

	CountSource string // how Token.Count is known: recording.ArrivalUsage, ArrivalIDs, ArrivalLogprobs, or empty

	ReceivedWallNs recording.Maybe[int64] // server's wall clock, Unix ns
	QueueNs        recording.Maybe[int64]
	PrefillNs      recording.Maybe[int64]

	// OutputTokens and ReasoningTokens are of the judged choice. Where there were
	// several choices a server's usage covers all of them (vLLM) or any one
	// (llama.cpp): then both are absent, and ChoicesTokens is the last that it said.
	ChoicesTokens recording.Maybe[int32]

	PredictedN    recording.Maybe[int32] // llama.cpp's own count of output tokens (timings.predicted_n)
	ReasoningSeen bool                   // text came on the reasoning channel

	Notes []string // codes of recording.Trace.Notes, and those below
}

// Codes that stand in Answer.Notes beside those of the recording.
const (
	NoteUsageWithoutReasoning = "usage_excludes_reasoning" // total > prompt + completion: the output is total - prompt
	NoteReasoningClamped      = "reasoning_exceeds_output" // more reasoning tokens than output tokens were reported
)

// A Decoder reads the events of one answer.
type Decoder interface {
	// Event takes one event of the stream. ok says that it is a token event, or
	// one without text that may have brought a token (a role chunk, a finish
	// chunk, usage, progress and comments are not).
	Event(name string, data []byte) (tok Token, ok bool)
	// Answer is what the events so far have said. It stays valid and is updated
	// by further events.
	Answer() *Answer
}

// A Dialect is one wire protocol.
type Dialect interface {
	// Path is the endpoint's path below a base URL, such as /v1/chat/completions.
	Path() string
	// Body is the JSON body of q.
	Body(q *workload.Request) ([]byte, error)
	// NewDecoder is for one answer.
	NewDecoder() Decoder
	// Whole reads an answer that came as one JSON body instead of a stream, or
	// the body of an error. It never fails: what it cannot read stays empty.
	Whole(status int, body []byte) *Answer
}

// Options say how to ask. The zero value is chat completions with what nearly
// all servers take.
type Options struct {
	Model string `yaml:"model"`
	API   string `yaml:"api"` // chat (default) or completions

	// What not every server takes; a preflight request finds out.
	NoUsage     bool `yaml:"-"` // do not ask for stream_options.include_usage
	IgnoreEOS   bool `yaml:"-"` // send ignore_eos and min_tokens, so that answers have their full length
	NewMaxField bool `yaml:"-"` // send max_completion_tokens instead of max_tokens

	Body map[string]any `yaml:"body"` // further body fields, sent as given
}
