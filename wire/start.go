package wire

import (
	"context"
	"time"

	"fermata/recording"
)

// Start implements Transport: each request has a goroutine of its own.
func (h *HTTP) Start(req *Request, f Follower) Call {
	ctx, cut := context.WithCancelCause(context.Background())
	go func() {
		defer cut(nil)
		if err := f.Due(); err != nil {
			f.End(Result{End: h.clock.Now(), Step: recording.AtConnect, Err: err})
			return
		}
		f.End(h.Exchange(ctx, req, f))
	}()
	return cutter(cut)
}

// Lead implements Transport: whoever starts a request waits until it is due.
func (h *HTTP) Lead() time.Duration { return 0 }

// Halt implements Transport.
func (h *HTTP) Halt() {}

// A cutter is the Call of a request whose context can be cancelled.
type cutter context.CancelCauseFunc

// Cut implements Call.
func (c cutter) Cut(cause error) { c(cause) }
