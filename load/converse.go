package load

import (
	"runtime"
	"time"

	"fermata/recording"
	"fermata/schedule"
	"fermata/workload"
)

// A talk is a conversation under way. One goroutine has it at a time.
type talk struct {
	at     schedule.Arrival // where it begins in the schedule
	to     *Target          // of all its turns
	first  int64            // index of its first turn
	turns  int              // planned
	next   int              // turn that is asked next
	think  time.Duration    // before the turn that was built last, where thinks
	thinks bool             // the turn itself says for how long
	before []workload.Exchange
	tokens int32 // of before, as far as they are known
}

func (k *talk) more() bool { return k.next < k.turns }

// finest is how long before a turn's due time its goroutine leaves the runtime's
// timers, which may be a millisecond late, for the system's own sleep.
const finest = 3 * time.Millisecond

// open begins conversation at.Index; ok is false where there are no more.
func (r *run) open(at schedule.Arrival) (k *talk, ok bool) {
	k = &talk{at: at, to: r.to(at.Index)}
	k.first, k.turns, ok = k.to.Prompts.Conversation(at.Index)
	return k, ok
}

// turn builds the next turn of a conversation, with all that was said before.
// Its due time and its phase are not known yet.
func (r *run) turn(k *talk) prepared {
	at := k.at
	at.Index = k.first + int64(k.next)
	q, ok := k.to.Prompts.At(at.Index, at.PromptTokens, at.OutputTokens)
	if !ok {
		return prepared{end: true}
	}
	own := workload.Exchange{Prompt: q.Prompt, Messages: q.Messages}
	q.Before = k.before[:len(k.before):len(k.before)]
	if q.PromptTokens > 0 {
		q.PromptTokens += k.tokens
	}
	p := r.written(&q, at, k.to)
	p.talk = k
	k.before, k.tokens = append(k.before, own), q.PromptTokens
	k.think, k.thinks = q.Think, q.Thinks
	k.next++
	return p
}

// goesOn hears the answer to the last turn out. False says that the conversation
// is over: that was its last turn, or it failed.
func (k *talk) goesOn(f *flight) bool {
	t := f.trace
	if !k.more() || t.Outcome != recording.OK || !t.End.OK {
		return false
	}
	k.before[len(k.before)-1].Answer = f.words.said.String()
	k.tokens += t.Output.Used.Or(0) - t.Reasoning.Or(0)
	return true
}

// start draws the beginning of a conversation. Building its first turn takes
// longer, and nobody waits for that.
func (r *run) start() (schedule.Arrival, bool) {
	r.next.Lock()
	defer r.next.Unlock()
	return r.times.Start(0)
}

// opening is the first turn of the next conversation of an open loop; ok is false
// where the schedule has no more.
func (r *run) opening() (p prepared, ok bool) {
	if most, known := r.times.Most(); known && r.opened >= most {
		return p, false
	}
	at, ok := r.start()
	if !ok {
		return p, false
	}
	k, ok := r.open(at)
	if !ok {
		return prepared{end: true}, true
	}
	r.opened += int64(k.turns)
	return r.turn(k), true
}

// paceTalks is the open loop of conversations: each begins at its due time and
// goes on by itself, however many others do.
func (r *run) paceTalks(ahead <-chan prepared) {
	for p := range ahead {
		r.aheadSize.Add(-int64(len(p.body)))
		if p.err != nil {
			r.die(p.err)
			return
		}
		r.clock.WaitUntil(p.at.Due, r.silent)
		f, ok := r.place(p)
		if !ok {
			return
		}
		r.talks.Add(1)
		r.answers.Go(func() {
			defer r.talks.Add(-1)
			r.goOn(p.talk, r.ask(f))
		})
	}
}

// goOn asks the later turns of a conversation that came by itself.
func (r *run) goOn(k *talk, f *flight) {
	for k.goesOn(f) {
		p := r.turn(k)
		if p.err != nil || p.end {
			r.die(p.err)
			return
		}
		think := r.times.length(k.think)
		if !k.thinks {
			think = r.times.Think(int(k.at.Index), int64(p.turn))
		}
		p.at.Due = f.trace.End.V + int64(think)
		if !r.await(p.at.Due) {
			return
		}
		var ok bool
		if f, ok = r.place(p); !ok {
			return
		}
		f = r.ask(f)
	}
}

// converse is one user of a closed loop of conversations, who has one after the
// other.
func (r *run) converse(number int) {
	free := int64(0)
	var k *talk
	var f *flight
	for n := int64(0); ; n++ {
		fresh := k == nil || !k.goesOn(f)
		if fresh {
			at, ok := r.start()
			if ok {
				k, ok = r.open(at)
			}
			if !ok {
				return
			}
		}
		p := r.turn(k)
		if p.err != nil || p.end {
			r.die(p.err)
			return
		}
		think := r.times.length(k.think)
		if !k.thinks || fresh {
			think = r.times.Think(number, n)
		}
		p.at.Due = free + int64(think)
		if n == 0 {
			p.at.Due = r.clock.Now() // nobody was free before there were users
		}
		if !r.await(p.at.Due) {
			return
		}
		var ok bool
		if f, ok = r.place(p); !ok {
			return
		}
		f = r.ask(f)
		free = r.freed(f)
	}
}

// place gives a turn that is due its phase and makes it so; ok is false where it
// is not to be sent. Whoever finds that the drain has begun finds every measured
// turn entered.
func (r *run) place(p prepared) (f *flight, ok bool) {
	r.next.Lock()
	defer r.next.Unlock()
	if r.silent() {
		return nil, false
	}
	p.at.Phase, ok = r.times.Place(p.at.Due)
	if r.rephase(&p.at); p.at.Phase == schedule.Drain && r.times.Quiet() {
		ok = false
	}
	if p.at.Phase == schedule.Drain {
		r.startDrain()
	}
	if !ok || r.silent() || !r.afford(&p) {
		return nil, false
	}
	return r.enter(p), true
}

// silent says that nothing more is to be sent.
func (r *run) silent() bool {
	return r.halted() || r.draining.Load() && (r.times.Quiet() || r.drained())
}

// await waits until a turn is due; false says that it is not to be sent.
func (r *run) await(due int64) bool {
	for {
		left := due - r.clock.Now()
		switch {
		case r.silent():
			return false
		case left <= 0:
			return true
		case left <= int64(finest):
			runtime.LockOSThread()
			r.clock.WaitUntil(due, r.silent)
			runtime.UnlockOSThread()
			continue
		}
		timer := time.NewTimer(time.Duration(left) - finest)
		select {
		case <-timer.C:
		case <-r.halt:
		case <-r.hush:
		}
		timer.Stop()
	}
}

// listen tells those who think when nothing more is to be sent: they are too many
// to look themselves.
func (r *run) listen(over <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		r.noticeOver()
		if r.silent() {
			close(r.hush)
			return
		}
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// noticeOver starts the drain where every measured turn has become due and
// nothing that comes will say so.
func (r *run) noticeOver() {
	r.next.Lock()
	defer r.next.Unlock()
	now := r.clock.Now()
	_, _, known := r.times.Window()
	if r.closedBy(now) || (known || r.times.Users() > 0 || r.begun.Load()) && r.times.Over(now) {
		r.startDrain()
	}
}

// awaitTalks returns when the conversations are over, or nothing more is to be
// sent.
func (r *run) awaitTalks() {
	r.begun.Store(true)
	for r.talks.Load() > 0 && !r.silent() {
		time.Sleep(settled)
	}
	r.next.Lock()
	defer r.next.Unlock()
	r.times.Finish()
	r.startDrain()
}
