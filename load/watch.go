package load

import (
	"cmp"
	"time"
)

const (
	watchEvery = 25 * time.Millisecond
	// A look at each of so many takes a quarter of a millisecond, while no other may
	// begin or end: with more, looks are rarer.
	watchedAtOnce = 1000
	lingerDone    = time.Second / 2  // for the end of a stream after its end marker
	lingerLast    = 10 * time.Second // for the end marker after the finish reason
)

// watch cuts answers that take too long. Comments and progress are no tokens:
// they keep no answer alive.
func (r *run) watch(over <-chan struct{}) {
	timeout := int64(r.times.length(cmp.Or(r.Options.Timeout, 10*time.Minute)))
	silence := int64(r.times.length(cmp.Or(r.Options.SilenceTimeout, time.Minute)))
	next := time.NewTimer(watchEvery)
	defer next.Stop()
	var seen []sight // since the last look
	for {
		select {
		case <-over:
			return
		case <-next.C:
		}
		now := r.clock.Now()
		seen = seen[:0]
		r.mu.Lock()
		for f := r.inFlight.first; f != nil; f = f.after {
			w := &f.watch
			if s, ok := r.see(f, now); ok {
				seen = append(seen, s)
			}
			since := func(at int64, limit int64) bool { return at != 0 && now-at > limit }
			switch {
			case since(w.done.Load(), int64(lingerDone)), since(w.finish.Load(), int64(lingerLast)):
				f.call.Cut(errEnough)
			case now-f.started > timeout:
				f.call.Cut(errTimeout)
			case w.finish.Load() == 0 && since(w.token.Load(), silence):
				f.call.Cut(errSilent)
			}
		}
		under := r.inFlight.n
		r.mu.Unlock()
		r.show(seen)
		next.Reset(watchEvery * time.Duration(1+min(under/watchedAtOnce, 7)))
	}
}

func (r *run) live() Live {
	c := &r.tally
	l := Live{
		TimeNs: r.clock.Now(), Due: c.due.Load(), Waiting: c.waiting.Load(), Sent: c.sentAll.Load(),
		Tokens: c.tokens.Load(), MeasuredDone: c.measuredDone.Load(),
		Unchecked: r.checks.waiting(),
	}
	l.Finished, l.Failed = c.ended()
	if spent, ok := r.purse.spentSoFar(); ok {
		l.Spent = &spent
	}
	l.MeasuredDue = l.MeasuredDone + c.measuredLeft.Load()
	r.mu.Lock()
	l.InFlight = max(0, int64(r.inFlight.n)-c.early.Load())
	r.mu.Unlock()
	return l
}
