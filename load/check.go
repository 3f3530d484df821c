package load

import (
	"context"
	"sync"

	"fermata/recording"
)

// A Check says whether the text of an answer is right, and if not why. What it
// says once ctx has ended means nothing.
type Check func(ctx context.Context, answer string) (pass bool, detail string)

// A checking looks at answers whose streams have ended, one after the other and
// off the timed path: nobody who asks waits for it, and a run ends when every
// answer has been looked at.
type checking struct {
	r    *run
	done chan struct{}

	mu    sync.Mutex
	more  sync.Cond // something was queued, or closed
	queue []*flight
	left  int // queued or being looked at
	over  bool
}

func newChecking(r *run) *checking {
	c := &checking{r: r, done: make(chan struct{})}
	c.more.L = &c.mu
	go c.work()
	return c
}

// wants says whether the answer of a request is to be checked: those that are
// judged, if they came whole.
func (c *checking) wants(t *recording.Trace) bool {
	return c != nil && t.Phase == recording.Measured && t.Outcome == recording.OK
}

// add hands over a request, whose end is recorded once its answer was checked.
func (c *checking) add(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	c.left++
	c.more.Signal()
}

// waiting is how many answers are not checked yet.
func (c *checking) waiting() int64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.left)
}

// finish returns when everything that was handed over is recorded.
func (c *checking) finish() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.over = true
	c.more.Signal()
	c.mu.Unlock()
	<-c.done
}

// next is the next request; nil says that there are no more.
func (c *checking) next() *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.over {
		c.more.Wait()
	}
	if len(c.queue) == 0 {
		c.queue = nil
		return nil
	}
	f := c.queue[0]
	c.queue[0] = nil // its texts are not needed any longer
	c.queue = c.queue[1:]
	return f
}

func (c *checking) work() {
	defer close(c.done)
	for f := c.next(); f != nil; f = c.next() {
		c.look(&f.answer)
		c.r.recordEnd(f)
		c.r.tell(f.trace)
		c.mu.Lock()
		c.left--
		c.mu.Unlock()
	}
}

// look checks one answer. A run that was cut leaves the rest unchecked.
func (c *checking) look(a *answer) {
	ctx := c.r.ctx
	if ctx.Err() != nil {
		return
	}
	pass, detail := c.r.Check(ctx, a.words.text.String())
	switch {
	case ctx.Err() != nil:
	case pass:
		a.trace.Check = recording.Pass
	default:
		a.trace.Check, a.trace.CheckDetail = recording.Fail, oneLine(c.r.hide(detail))
	}
}

// slow says whether a request's last token came later than threshold (ns) after
// it was due; absent where no threshold was declared, or no token came.
func slow(t *recording.Trace, threshold int64) recording.Maybe[bool] {
	last, ok := t.LastToken()
	if !ok || threshold <= 0 {
		return recording.Maybe[bool]{}
	}
	return recording.Some(last-t.Due > threshold)
}
