// Package sim is a serving system in virtual time: a discrete-event engine that
// runs iteration by iteration, as continuous batching does, and knows why every
// gap between two tokens happened. Times are integer nanoseconds; the same
// options and the same requests give the same truth, bit for bit.
//
// New makes an Engine. It is used in two ways: Run plays requests to the end in
// virtual time; a server in real time stamps each request with its clock, calls
// Submit, waits until Next and calls Advance. Both make the same decisions,
// since the engine only ever looks at logical times: playing the stamps of a
// real run again gives the identical schedule.
package sim

import (
	"fmt"

	"fermata/recording"
)

// A Request is one thing to serve.
type Request struct {
	Index    int64 // its identity: no two requests of an engine share one
	Arrival  int64 // ns since time zero
	Prompt   int   // tokens, at least 1
	Output   int   // tokens to generate, at least 1
	Priority int   // for ordering by priority: lower goes first

	Session string // whose conversation it continues; empty where it stands alone
	Turn    int32
	Turns   int32           // planned in the conversation; 0 where nobody knows
	Phase   recording.Phase // only copied into the recording; empty means measured

	// What the prompt consists of, for the prefix cache. A prompt with a session
	// extends the session's turn before and its answer; one with a Prefix begins
	// with PrefixTokens tokens that all requests of that name share; Hashes name
	// its blocks of HashTokens tokens each, equal for equal beginnings (as in
	// Mooncake's traces), instead of both.
	Prefix       string
	PrefixTokens int
	Hashes       []int64
	HashTokens   int
}

// An Emission is the tokens that one iteration gave to one request.
type Emission struct {
	Index     int64
	Replica   int
	Iteration int64 // its number on the replica
	At        int64 // ns, the logical end of that iteration
	Tokens    int   // more than one where drafts were accepted
	First     bool  // the answer begins
	Last      bool  // the answer is complete
}

// An Observer is told what happens, in order of logical time, from within
// Advance or Run. Any of its functions may be nil. What they are handed is valid
// during the call only. Ended may Submit further requests, as a closed loop
// does.
type Observer struct {
	Token     func(Emission)
	Iteration func(*Iteration) // at its end
	Ended     func(*Record)    // finished, refused or cancelled
}

// An UnfitError is a request that the system could never serve.
type UnfitError struct {
	Index          int64
	Prompt, Output int
	Limit          string // what it exceeds, and what to do
}

// Error implements error.
func (e *UnfitError) Error() string {
	return fmt.Sprintf("request %d (prompt of %d tokens, answer of %d) can never be served: %s", e.Index, e.Prompt, e.Output, e.Limit)
}
