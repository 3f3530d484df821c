// Package capacity finds the highest rate at which an objective holds in steady
// state. It steers a plant that it is handed and knows neither a network nor a
// simulator.
package capacity

import "context"

// A Plant is a serving system under an open load whose rate its owner sets. It
// lives through one continuous stretch of time on a clock of its own, wall or
// virtual, and is for one goroutine at a time. What it has under way when its
// owner stops asking is the business of whoever made it.
type Plant interface {
	// Burst asks for n requests at once (or as many at a time as the plant can
	// have) while nothing is under way, and waits until all have ended or the plant
	// has waited long enough. They are numbered apart and are no Outcomes. A second
	// burst asks for others; one that nobody pays for asks for none, which is no error.
	Burst(ctx context.Context, n int) (Burst, error)

	// Send asks for n more requests, Poisson at so many a second: unit-exponential
	// gaps divided by the rate, the first of them counted from the last due time (or
	// from now, where that is over). It returns when the last of them is due, without
	// waiting for answers. The rate is above 0 and finite.
	//
	// An error is one of the plant itself or of ctx, never one that a server
	// answered: a failed request is an Outcome.
	Send(ctx context.Context, n int, rate float64) error

	// Outcomes are those that became known since the last call, in the order in which
	// the requests were due: one that is not known yet holds up those behind it. A
	// request is known when it has ended, or earlier when it is decided: it misses
	// ttft<=2s at 2 s without a first token, and meets it when that comes (should it
	// fail later, Reading.Withdrawn says so). That matters: a search that learns of
	// misses late falls far below the rate and needs long to come back. The slice is
	// the caller's until the next call.
	Outcomes() []Outcome

	// Drain waits until nothing is under way. Afterwards every request that was sent
	// has its outcome, and the next Send begins with an empty system.
	Drain(ctx context.Context) error

	// Now reads the plant's meters.
	Now() Reading
}

// A Measurer is a plant that keeps apart the requests that the answer rests on: those
// sent at the fixed rate, after its warm-up.
type Measurer interface {
	// Measure says whether they are what Send asks for from now on.
	Measure(on bool)
}

// An Outcome is what became of one request.
type Outcome struct {
	At       int64 // ns on the plant's clock: when it was asked, which is when it was due unless the asker was late
	Ahead    int   // requests under way when it came, without itself
	Missed   bool  // the objective; every failure misses it
	Unjudged bool  // it neither met nor missed the objective: no first-token deadline is known for its prompt
	Failed   bool  // it got no whole answer: refused, cut, timed out
	Turned   bool  // … because the server turned it away for the load: 429 or 503
	Open     bool  // it is decided and has not ended: whether it fails a Latecomer tells
}

// A Latecomer is a plant that gives Outcomes that are Open.
type Latecomer interface {
	// Late are those that have ended since the last call, in the order in which they
	// did: whether they failed, and were turned away. The slice is the caller's until
	// the next call.
	Late() []Outcome
}

// A Reading is the plant's meters at one time. Counts are since its beginning,
// without bursts.
type Reading struct {
	Ns        int64 // on the plant's clock
	Sent      int64 // requests that were due
	Backlog   int64 // of those, not ended
	Tokens    int64 // of output, that have come
	Withdrawn int64 // requests that failed after their Outcome had said that they met the objective
}

// A Burst is what became of requests asked for all at once.
type Burst struct {
	Asked  int     // that were sent
	Began  int64   // ns on the clock of Ends, when they were
	Ends   []int64 // ns on any one clock, in any order: when those with a whole answer ended
	Turned int     // that the server turned away: 429 or 503
	Tokens int64   // of output, of whole answers
}
