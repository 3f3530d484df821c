package load

import (
	"sync"
	"sync/atomic"

	"fermata/cost"
	"fermata/dialect"
)

// A tally counts what is going on, for the live line and the instrument's own
// series. Nothing in it is a metric.
type tally struct {
	due, waiting, sentAll, tokens atomic.Int64
	measuredLeft                  atomic.Int64 // measured requests due and not ended
	early                         atomic.Int64 // handed to the transport and not due yet
	measuredDone                  atomic.Int64
	reached                       atomic.Int64 // 1 + the highest index that was due
	latenessMax                   atomic.Int64 // since the last sample

	mu               sync.Mutex // so that the two are of one moment
	finished, failed int64
}

// close counts a request that has ended, and tells both sums.
func (c *tally) close(failed bool) (finishedAll, failedAll int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished++
	if failed {
		c.failed++
	}
	return c.finished, c.failed
}

// ended are the requests that have ended, and those of them that failed.
func (c *tally) ended() (finished, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished, c.failed
}

func (c *tally) late(lateness int64) { raise(&c.latenessMax, lateness) }

// raise makes v at least so much.
func raise(v *atomic.Int64, least int64) {
	for old := v.Load(); least > old && !v.CompareAndSwap(old, least); old = v.Load() {
	}
}

func (c *tally) token(tok dialect.Token) {
	switch {
	case tok.Count > 0:
		c.tokens.Add(int64(tok.Count))
	case len(tok.Text) > 0:
		c.tokens.Add(1)
	}
}

// Live is the state of a run at one moment.
type Live struct {
	TimeNs                                       int64
	Due, Sent, Finished, Failed, Waiting, Tokens int64
	InFlight                                     int64
	MeasuredDone                                 int64
	MeasuredDue                                  int64
	Unchecked                                    int64 // answers that wait for their check
	Phase                                        string
	Spent                                        *cost.Amount // by answers that have ended; nil without prices
}
