package load

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"time"

	"fermata/recording"
)

const (
	watchEvery = 25 * time.Millisecond
	lingerDone = time.Second / 2  // for the end of a stream after its end marker
	lingerLast = 10 * time.Second // for the end marker after the finish reason
)

// watch cuts answers that take too long. Comments and progress are no tokens:
// they keep no answer alive.
func (r *run) watch(over <-chan struct{}) {
	timeout := int64(cmp.Or(r.Options.Timeout, 10*time.Minute))
	silence := int64(cmp.Or(r.Options.SilenceTimeout, time.Minute))
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		now := r.clock.Now()
		r.mu.Lock()
		for f := range r.inFlight {
			w := &f.watch
			if f.call == nil {
				continue
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
		r.mu.Unlock()
	}
}

// sample records the state of the instrument once a second.
func (r *run) sample(over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	pauses, used, free, at := gc.PauseTotal, processCPU(), idleCores(), time.Now()
	take := func() {
		l := r.live()
		debug.ReadGCStats(&gc)
		now, u, f := time.Now(), processCPU(), idleCores()
		s := recording.Sample{
			TimeNs: l.TimeNs, Due: l.Due, Sent: l.Sent, Finished: l.Finished, Failed: l.Failed,
			InFlight: l.InFlight, Waiting: l.Waiting, Tokens: l.Tokens,
			LatenessMaxNs: r.tally.latenessMax.Swap(0),
			CPU:           float64(u-used) / float64(now.Sub(at)), CoresFree: -1,
			Cores:     int64(runtime.NumCPU()),
			GCPauseNs: int64(gc.PauseTotal - pauses),
		}
		if f >= 0 {
			s.CoresFree = float64(f-free) / float64(now.Sub(at))
		}
		pauses, used, free, at = gc.PauseTotal, u, f, now
		_ = r.keep.Sample(s)
		if r.Job.Live != nil {
			r.Job.Live(l)
		}
	}
	for {
		select {
		case <-tick.C:
			take()
		case <-over:
			if time.Since(at) > time.Second/10 {
				take()
			}
			return
		}
	}
}

func (r *run) live() Live {
	c := &r.tally
	l := Live{
		TimeNs: r.clock.Now(), Due: c.due.Load(), Waiting: c.waiting.Load(), Sent: c.sentAll.Load(),
		Finished: c.finished.Load(), Failed: c.failed.Load(), Tokens: c.tokens.Load(), MeasuredDone: c.measuredDone.Load(),
		Unchecked: r.checks.waiting(),
	}
	if spent, ok := r.purse.spentSoFar(); ok {
		l.Spent = &spent
	}
	l.MeasuredDue = l.MeasuredDone + c.measuredLeft.Load()
	r.mu.Lock()
	l.InFlight = max(0, int64(len(r.inFlight))-c.early.Load())
	r.mu.Unlock()
	return l
}
