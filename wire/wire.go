// Package wire moves the bytes: connections, and a stamp for every read of a
// socket. It knows nothing of what the bytes mean.
package wire

import (
	"context"
	"errors"
	"net/http"
	"time"

	"fermata/recording"
)

// A Clock counts nanoseconds since a run's start on the monotonic clock.
type Clock struct{ start time.Time }

// NewClock is a clock whose zero is now.
func NewClock() Clock {
	t, _ := Clock{time.Now()}.both()
	return Clock{t}
}

// Now is the time since the clock's zero, in ns.
func (c Clock) Now() int64 { return int64(time.Since(c.start)) }

// At is the clock's reading at t, in ns.
func (c Clock) At(t time.Time) int64 { return int64(t.Sub(c.start)) }

// ZeroWallNs is the wall clock at the clock's zero, in Unix ns.
func (c Clock) ZeroWallNs() int64 { return c.start.UnixNano() }

// Wall is the wall clock (Unix ns) at the clock's zero, as it is told now: it moves
// when the wall clock is set or adjusted. ok is false if both clocks could not be
// read together.
func (c Clock) Wall() (ns int64, ok bool) {
	t, ok := c.both()
	return t.UnixNano() - c.At(t), ok
}

// both reads the wall clock and ours together. A thread may lose its core between
// the two readings, and every time of the kernel's that is put on our clock by such
// a pair would be wrong by that long: ok is false if no pair was read within
// clocksWithin.
func (c Clock) both() (t time.Time, ok bool) {
	for range 10 {
		before := c.Now()
		t = time.Now() // the wall clock, then ours
		if time.Duration(c.At(t)-before) < clocksWithin {
			return t, true
		}
	}
	return t, false
}

// clocksWithin is how far apart the readings of both clocks may be.
const clocksWithin = 20 * time.Microsecond

// A Request is what goes out: complete bytes and where to.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	Due    int64 // on the clock: when it is to leave; at once if that is past
	Aside  bool  // it is no part of a load, and nobody asks how narrow the bounds of its stamps are
}

// A Stamp says when bytes arrived, brought by read number Read of their
// response's connection. What ends with the last of them arrived in
// [At-ErrorNs, At]; what ends earlier in [At-EarlierNs, At].
type Stamp struct {
	At        int64
	ErrorNs   int64
	EarlierNs int64
	Read      int32
}

// A Sink takes what an exchange brings, in order, on one goroutine. The header and
// data are valid only during the call. An error from either stops the exchange.
type Sink interface {
	Sent(at int64, connected recording.Maybe[int64]) error
	Head(status int, header http.Header, at Stamp) error
	Data(b []byte, at Stamp) error
}

// A Result is how an exchange went.
type Result struct {
	Sent      recording.Maybe[int64] // when the last byte of the request left
	Connected recording.Maybe[int64] // when a new connection stood
	FirstByte recording.Maybe[int64]
	End       int64          // end of the body, or the failure
	Step      recording.Step // where it failed; empty if the body was read to its end
	Err       error          // why; nil if the body was read to its end, or the sink's error
}

// A Follower is a Sink that also hears when its request became due and how it
// went. All its calls come in order, on one goroutine at a time, and End is the
// last: it may come before Start returns.
type Follower interface {
	Sink
	// Due is the first call. It does not come for a request that was withdrawn.
	Due() error
	End(r Result)
}

// A Call is a request under way.
type Call interface {
	// Cut ends it, if it has not ended; cause becomes its Result's error.
	Cut(cause error)
}

// ErrWithdrawn ends a request that was not due yet when its transport was halted.
var ErrWithdrawn = errors.New("withdrawn before it was due")

// A Transport exchanges requests for responses.
type Transport interface {
	// Exchange carries out one request, calling sink on the way, and returns when
	// it has ended. The context cuts it; its cause becomes the Result's error.
	Exchange(ctx context.Context, req *Request, sink Sink) Result
	// Start has one request carried out and does not wait for it. Its times are f's
	// to hear, so f must not be slow.
	Start(req *Request, f Follower) Call
	// Lead is how long before its due time a request may be started, so that it
	// leaves when it is due; 0 where Start sends at once.
	Lead() time.Duration
	// Halt withdraws what was started and is not due yet.
	Halt()
	// Close gives up the connections; every request has ended before.
	Close()
}
