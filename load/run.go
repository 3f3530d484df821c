package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fermata/recording"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

const (
	drainLimit = 30 * time.Second // how long load goes on after the measured phase
	graceLimit = 30 * time.Second // how long a stopped run waits for its answers
	settled    = 2 * time.Millisecond
	thinkSlice = 100 * time.Millisecond // how long a thinking user may not notice that the run is over
)

// Prompts is what is asked: the request of each place in the schedule; ok is
// false where there are no more. *workload.Workload is one.
type Prompts interface {
	At(index int64, promptTokens, outputTokens int32) (q workload.Request, ok bool)
	// Conversation is where conversation i stands among the requests, and how many
	// turns it has. It is for schedules that converse.
	Conversation(i int64) (first int64, turns int, ok bool)
}

// A Job is all that a run needs.
type Job struct {
	Options  Options
	Schedule *schedule.Schedule
	Record   Recorder

	Target           // who is asked …
	Targets []Target // … or several, whose conversations are the same
	Route   Route    // among them

	Transport func(wire.Clock) wire.Transport // made at time zero
	KeepText  bool
	Check     Check    // of measured answers; nil for none
	Budget    Budget   // of money; targets have the prices
	Enough    Enough   // ends the measured phase early; nil for never
	Witness   Witness  // of every request; may be nil
	Patience  int64    // ns on the run's clock, from the due time on without a token, after which the witness is told; 0: never
	Seed      uint64   // of waits before retries
	TimeScale float64  // simulated seconds a second, of the server's time and of all times in Options and Schedule; 0 means 1
	SlowNs    int64    // answers that take longer are slow; 0: not declared
	Secrets   []string // kept out of every error

	Started func(wire.Clock) // told at time zero; may be nil
	Live    func(Live)       // told once a second; may be nil

	// Sampled may add to a second's sample what others know; nil adds nothing.
	Sampled func(*recording.Sample)
}

// An End says how a run went as a whole.
type End struct {
	WindowStart, WindowEnd int64 // the measured phase, half-open
	Why                    string
	Interrupted            string // why the run was cut short; empty for a whole one
	ByFailures             bool   // it was stopped by its failures
	Closed                 bool   // the measured phase ended ahead of the schedule
	Reached                int64  // how far into the workload it came: all requests that were due are among its first so many
	Live                   Live
}

// A run is a job under way.
type run struct {
	Job
	times     times
	keep      keeper
	clock     wire.Clock
	transport wire.Transport
	hide      func(string) string
	maxFailed float64 // share of requests; infinite where none is too many

	ctx  context.Context
	cut  context.CancelCauseFunc
	halt chan struct{} // closed when nothing more is sent
	hush chan struct{} // closed for conversations when none of their turns is

	haltOnce sync.Once
	haltWhy  atomic.Pointer[string]
	haltedAt atomic.Int64
	failed   atomic.Bool             // stopped by its failures
	closed   atomic.Pointer[closing] // the measured phase, ahead of the schedule
	ending   sync.Mutex              // held from the look at the clock until closed is set, and while a phase is looked up
	fatal    atomic.Pointer[error]

	tally     tally
	purse     purse
	draft     workload.Request // that is being built ahead, by one goroutine
	aheadSize atomic.Int64     // bytes of the bodies that stand ready
	answers   sync.WaitGroup
	checks    *checking     // nil without a check
	talks     atomic.Int64  // conversations of the open loop under way
	begun     atomic.Bool   // all of them have begun
	opened    int64         // turns of those that were opened; guarded by next
	room      chan struct{} // a place in flight; nil without a limit
	mu        sync.Mutex
	inFlight  flights // guarded by mu

	crowd     *crowd     // of a closed loop without conversations
	next      sync.Mutex // guards the schedule where several draw from it, lastDue and the crowd's stock
	lastDue   int64
	draining  atomic.Bool // every measured request is due
	drainFrom atomic.Int64
	lastEnd   atomic.Int64 // of a measured request
}

// Run offers the load and returns when every measured request has ended. Closing
// stop ends arrivals and waits for answers for up to 30 s; cancelling ctx cuts
// them. The error is the recorder's or the workload's: nothing that a server does
// makes one.
func Run(ctx context.Context, stop <-chan struct{}, j Job) (End, error) {
	r := &run{Job: j, times: timesOf(j.Schedule, j.TimeScale), halt: make(chan struct{}), hush: make(chan struct{}), hide: hider(j.Secrets)}
	r.keep = keeper{r}
	r.Targets = slices.Clone(r.Targets)
	for i := range r.Targets {
		r.furnish(&r.Targets[i])
	}
	r.furnish(&r.Target)
	if r.Options.MaxInFlight > 0 {
		r.room = make(chan struct{}, r.Options.MaxInFlight)
	}
	var err error
	if r.maxFailed, err = share(r.Options.StopIfFailed); err != nil {
		return End{}, err
	}
	r.ctx, r.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.cut(nil)
	if j.Check != nil {
		r.checks = newChecking(r)
	}

	wire.Settle()
	ahead := r.prepare() // the first requests stand ready at time zero
	r.clock = wire.NewClock()
	r.transport = j.Transport(r.clock)
	defer r.transport.Close()
	if j.Started != nil {
		j.Started(r.clock)
	}
	over := make(chan struct{})
	var watchers sync.WaitGroup
	watchers.Go(func() { r.watch(over) })
	watchers.Go(func() { r.sample(over) })
	watchers.Go(func() { r.obey(ctx, stop, over) })
	if r.times.Converses() {
		watchers.Go(func() { r.listen(over) })
	}
	if r.Enough != nil {
		watchers.Go(func() { r.closeWhenEnough(over) })
	}

	r.offer(ahead)
	r.awaitAnswers()
	r.stopSending("")
	r.transport.Halt()
	for range ahead { // until nobody draws from the schedule any more
	}
	r.cutAll(errStopped) // what is left belongs to no measured phase, or was told to end
	r.answers.Wait()
	r.checks.finish()
	close(over)
	watchers.Wait()
	return r.end(), r.err()
}

// offer sends until the schedule ends or the run is stopped.
func (r *run) offer(ahead <-chan prepared) {
	converse := r.times.Converses()
	if n := r.times.Users(); n > 0 && converse {
		var users sync.WaitGroup
		for number := range n {
			users.Go(func() { r.converse(number) })
		}
		users.Wait()
		return
	} else if n > 0 {
		r.crowd.ask(n)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if converse || r.lead() == 0 {
			runtime.LockOSThread() // its sleeps are the system's
		}
		if converse {
			r.paceTalks(ahead)
		} else {
			r.pace(ahead)
		}
	}()
	<-done
	if converse {
		r.awaitTalks()
	}
}

// pace is the open loop: each request leaves at its due time on a goroutine of
// its own, however many others wait.
func (r *run) pace(ahead <-chan prepared) {
	for p := range ahead {
		r.aheadSize.Add(-int64(len(p.body)))
		if p.err != nil {
			r.die(p.err)
			return
		}
		if r.times.Steered() && !r.times.Settle(&p.at, r.halt) {
			break
		}
		over := func() bool {
			r.rephase(&p.at)
			if p.at.Phase != schedule.Drain {
				return r.halted()
			}
			if r.closed.Load() == nil || r.closedBy(r.clock.Now()+int64(r.lead())) {
				r.startDrain() // this one follows every measured request
			}
			return r.halted() || r.drained() || r.draining.Load() && r.times.Quiet()
		}
		r.waitFor(p.at.Due, over)
		if over() || !r.afford(&p) {
			return
		}
		r.begin(p)
	}
	r.startDrain()
}

// lead is how long before they are due requests go to the transport: not at all
// where they may have to wait for a place.
func (r *run) lead() time.Duration {
	if r.room != nil {
		return 0
	}
	return r.transport.Lead()
}

// waitFor waits for a due time: to the microsecond, or, where the transport does
// that, until it is to be told.
func (r *run) waitFor(due int64, over func() bool) {
	lead := r.lead()
	if lead == 0 {
		r.clock.WaitUntil(due, over)
		return
	}
	for !over() {
		left := time.Duration(due-r.clock.Now()) - lead
		if left <= 0 {
			return
		}
		select { // at least a quarter of the lead, so that requests go over in batches
		case <-time.After(min(max(left, lead/4), watchEvery)):
		case <-r.halt:
		}
	}
}

// freed is when a user is free to go on. One for whose request this machine had no
// room waits a moment: it would only be refused again.
func (r *run) freed(f *flight) int64 {
	at := f.trace.End.Or(r.clock.Now())
	if f.trace.NoRoom() {
		at += int64(thinkSlice)
	}
	return at
}

// startDrain notes that every measured request is due.
func (r *run) startDrain() {
	if r.draining.CompareAndSwap(false, true) {
		r.drainFrom.Store(r.clock.Now())
	}
}

// drained says that load need go on no longer.
func (r *run) drained() bool {
	if !r.draining.Load() {
		return false
	}
	return r.tally.measuredLeft.Load() == 0 || r.clock.Now()-r.drainFrom.Load() > int64(r.times.length(drainLimit))
}

// awaitAnswers returns when the measured requests have ended and been checked,
// or been cut. Where somebody stopped the run, every answer under way is awaited.
func (r *run) awaitAnswers() {
	for r.ctx.Err() == nil {
		left := r.tally.measuredLeft.Load()
		if r.haltWhy.Load() != nil {
			r.mu.Lock()
			left = int64(r.inFlight.n)
			r.mu.Unlock()
		}
		if left+r.checks.waiting() == 0 {
			return
		}
		time.Sleep(settled)
	}
}

// obey carries out what the user says: stop, then cut.
func (r *run) obey(ctx context.Context, stop <-chan struct{}, over <-chan struct{}) {
	var grace <-chan time.Time
	halt := r.halt
	for {
		select {
		case <-stop:
			r.stopSending("interrupted")
			stop = nil
		case <-halt: // by us, by the user or by failures
			grace, halt = time.After(graceLimit), nil
		case <-grace:
			if r.haltWhy.Load() != nil {
				r.cutAll(errStopped)
			}
			grace = nil
		case <-ctx.Done():
			why := "interrupted"
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				why = cause.Error() // such as a signal
			}
			r.stopSending(why)
			r.cutAll(errStopped)
			return
		case <-over:
			return
		}
	}
}

// stopSending ends arrivals. Why is empty when the run is simply over.
func (r *run) stopSending(why string) {
	r.haltOnce.Do(func() {
		r.haltedAt.Store(r.clock.Now())
		if why != "" {
			r.haltWhy.Store(&why)
		}
		close(r.halt)
		if why != "" {
			r.transport.Halt()
		}
	})
}

func (r *run) halted() bool {
	select {
	case <-r.halt:
		return true
	default:
		return false
	}
}

// die ends the run for a reason that is not the server's.
func (r *run) die(err error) {
	if err == nil {
		return
	}
	first := err // what an address is taken of is allocated, and there is an error but once
	r.fatal.CompareAndSwap(nil, &first)
	r.stopSending("the run failed")
	r.cutAll(errStopped)
}

func (r *run) err() error {
	if p := r.fatal.Load(); p != nil {
		return *p
	}
	return nil
}

func (r *run) end() End {
	e := End{Live: r.live(), ByFailures: r.failed.Load(), Reached: r.tally.reached.Load()}
	start, end, known := r.times.Window()
	e.WindowStart, e.WindowEnd = start, end
	e.Why = r.times.WindowWhy()
	if !known {
		e.WindowEnd = max(start, r.lastEnd.Load())
	}
	if c := r.closed.Load(); c != nil && (!known || e.WindowEnd > c.at) {
		e.WindowEnd, e.Why = max(start, c.at), c.why
		e.Closed = true
	}
	if why := r.haltWhy.Load(); why != nil {
		e.Interrupted = *why
		e.Why = "the run was stopped: " + *why
		if at := r.haltedAt.Load(); !known || e.WindowEnd > at {
			e.WindowEnd = max(start, at) // nothing was offered after that
		}
	}
	return e
}

// share reads a share such as 50%; empty means never.
func share(s string) (float64, error) {
	if s == "" {
		return math.Inf(1), nil
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !strings.HasSuffix(s, "%") || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("stop_if_failed: %q is not a share such as 50%%", s)
	}
	return v / 100, nil
}

// hider makes texts show a mark instead of secrets. A text that was shortened may
// end in the beginning of one.
func hider(secrets []string) func(string) string {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, hidden)
		}
	}
	whole := strings.NewReplacer(pairs...)
	return func(text string) string {
		text = whole.Replace(text)
		end := strings.LastIndex(text, "…")
		for _, s := range secrets {
			for n := len(s) - 1; n >= fewestHidden && end >= n; n-- {
				if text[end-n:end] == s[:n] {
					return text[:end-n] + hidden + text[end:]
				}
			}
		}
		return text
	}
}

const (
	hidden       = "[secret]"
	fewestHidden = 4 // letters of a secret's beginning that are worth hiding
)
