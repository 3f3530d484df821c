package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"fermata/capacity"
	"fermata/cost"
	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// burstWait is how long a search's burst may take in all. What has not ended by then
// is cut; the rate is read from what has.
const burstWait = 5 * time.Minute

// errPlantOver says that a server can be asked no more: the load was stopped, or what
// may be asked or spent has been.
var errPlantOver = errors.New("nothing more can be asked")

// A serverPlant is a server under one load that is recorded from its first request to
// its last, for a search to steer. It implements capacity.Plant. Requests that end are
// judged by a goroutine of its own, off the timed path.
type serverPlant struct {
	ctx  context.Context // of the load: its end cuts answers
	run  *session
	helm *schedule.Helm
	met  *metrics.Predicate
	// bursts is how many requests those before the load asked for.
	bursts int64
	scale  float64
	clock  wire.Clock

	began  chan struct{} // closed at time zero
	over   chan struct{} // closed when the load has returned; then end and err stand
	end    load.End
	err    error
	judges sync.WaitGroup

	poke chan struct{} // whoever steers may look again
	news chan struct{} // the judge may

	mu        sync.Mutex
	measures  bool       // what is asked from now on is what the answer rests on
	fixed     float64    // rate at which that is asked
	warm      int64      // requests before the first of them
	measured  int64      // of them
	first     int64      // index of asked[0]
	asked     []*pending // that Outcomes has not given, in the order of their due times
	under     []*pending // that it has given and that had not ended when the last of them was due
	fresh     []recording.Trace
	sent      int64
	ended     int64
	judged    int64
	tokens    int64
	withdrawn int64              // that were given as met and ended otherwise
	late      []capacity.Outcome // of those that were given before they ended
	failure   error              // of judging
	given     []capacity.Outcome
}

// A pending is one request, with what is known of it. Times are on the run's clock.
type pending struct {
	capacity.Outcome
	index    int64
	due, end int64
	known    bool
	over     bool // end is known
}

// readyPlant prepares a server to be searched for the rate at which requests meet what
// they must. A search that goes on has asked for so many before; others come now.
// Cancelling ctx cuts what is under way.
func readyPlant(ctx context.Context, s *spec.Run, o Options, met *metrics.Predicate, asked int64) (*serverPlant, error) {
	o.fill()
	p := &serverPlant{ctx: ctx, met: met, began: make(chan struct{}), over: make(chan struct{}), poke: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	steer := func(s *spec.Run) (*workload.Workload, *schedule.Schedule, error) {
		prompts, err := workload.Open(s.Workload, s.Seed)
		if err != nil {
			return nil, nil, err
		}
		if err := askable(prompts); err != nil {
			return nil, nil, err
		}
		arrivals, helm, err := schedule.NewSteered(steerable(s.Schedule), s.Seed+uint64(asked))
		p.helm = helm
		return prompts, arrivals, err
	}
	var err error
	if p.run, err = ready(ctx, s, o, steer); err != nil {
		return nil, err
	}
	p.run.from = asked
	if p.scale, err = timeScale(s, p.run.all); err != nil {
		p.run.done()
		return nil, err
	}
	return p, nil
}

// Burst implements capacity.Plant. It asks on connections of its own and is no part
// of the recording.
func (p *serverPlant) Burst(ctx context.Context, n int) (capacity.Burst, error) {
	users := n
	if most := p.run.spec.Load.MaxInFlight; most > 0 {
		users = min(users, most)
	}
	t := p.run.all[0]
	rate, unpriced := rateOf(p.run.spec, t.name, t.options.Model)
	if unpriced == nil {
		if err := p.affords(n, rate); err != nil && p.bursts > 0 {
			return capacity.Burst{}, nil
		} else if err != nil {
			return capacity.Burst{}, err
		}
	}
	answers, err := t.burst(ctx, p.bursts, n, users, burstWait)
	p.bursts += int64(len(answers))
	if ctx.Err() != nil {
		return capacity.Burst{}, ctx.Err()
	}
	b := capacity.Burst{Asked: len(answers), Began: p.simulated(firstSent(answers)), Ends: wholeEnds(answers)}
	for i := range b.Ends {
		b.Ends[i] = p.simulated(b.Ends[i])
	}
	if rps, _ := b.Saturation(); rps > 0 {
		j := &p.run.spec.Judging
		j.Saturation, p.run.spec.Load.ProbeSaturation = spec.Saturation{RPS: rps}, true // for the intervals of its result
	}
	for i := range answers {
		a := &answers[i]
		if turned(a) {
			b.Turned++
		}
		if a.Outcome == recording.OK {
			b.Tokens += int64(a.Output.Used.Or(0))
		}
		if unpriced == nil {
			prompt, output, _ := load.Billed(a)
			p.run.spent = p.run.spent.Plus(rate.Of(prompt, output))
		}
	}
	return b, err
}

// affords says that a burst could cost more than the whole search may.
func (p *serverPlant) affords(n int, rate cost.Rate) error {
	limit := p.run.spec.Load.MaxCost
	if limit == "" {
		return nil
	}
	most, err := cost.ParseAmount(limit)
	if err != nil {
		return err
	}
	worst := p.run.spent
	for i := range int64(n) {
		if q, ok := p.run.prompts.At(burstFrom+p.bursts+i, 0, 0); ok {
			worst = worst.Plus(rate.Of(int64(q.PromptTokens), int64(q.OutputTokens)))
		}
	}
	if worst.Cmp(most) <= 0 {
		return nil
	}
	return &Misuse{Failure{
		Saw:  fmt.Sprintf("the %d requests at once with which a search begins may cost %s %s, more than the %s that it may cost in all (--max-cost)", n, worst.Short(), p.run.spec.Prices.Currency, limit),
		Help: "Raise --max-cost, or ask for less precision.",
	}}
}

func turned(t *recording.Trace) bool {
	return t.HTTPStatus == http.StatusTooManyRequests || t.HTTPStatus == http.StatusServiceUnavailable
}

// Measure says whether what is sent from now on is what the answer rests on, which
// the recording has as its measured phase. Everything else is warm-up in it.
func (p *serverPlant) Measure(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.measures = on
}

// Send implements capacity.Plant.
func (p *serverPlant) Send(ctx context.Context, n int, rate float64) error {
	if err := p.start(ctx, rate); err != nil {
		return err
	}
	p.mu.Lock()
	want, leg := p.sent+int64(n), schedule.Leg{Requests: int64(n), Rate: rate, Phase: schedule.Warmup, NotBefore: p.simulated(p.clock.Now())}
	if p.measures {
		leg.Phase, p.fixed = schedule.Measured, rate
	}
	p.mu.Unlock()
	if err := p.helm.Go(leg); err != nil {
		return err
	}
	return p.await(ctx, func() bool { return p.sent >= want })
}

// start begins the load, once.
func (p *serverPlant) start(ctx context.Context, rate float64) error {
	select {
	case <-p.began:
		return nil
	default:
	}
	if p.run.dir == "" {
		if err := p.run.open(ctx); err != nil {
			return err
		}
	}
	p.run.spec.Schedule.Rate = rate
	p.judges.Go(p.judge)
	go func() {
		defer close(p.over)
		p.end, p.err = p.run.record(p.ctx, p)
	}()
	select {
	case <-p.began:
		return nil
	case <-p.over:
		return p.err
	}
}

// await returns when it is so; the lock is held while that is asked.
func (p *serverPlant) await(ctx context.Context, so func() bool) error {
	for {
		p.mu.Lock()
		done, err := so(), p.failure
		p.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-p.poke:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.over:
			if p.err != nil {
				return p.err
			}
			return errPlantOver
		}
	}
}

// Outcomes implements capacity.Plant.
func (p *serverPlant) Outcomes() []capacity.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = p.given[:0]
	for len(p.asked) > 0 && p.asked[0].known {
		a := p.asked[0]
		p.asked[0], p.asked = nil, p.asked[1:]
		p.first++
		still := p.under[:0]
		for _, b := range p.under {
			if !b.over || b.end > a.due {
				still = append(still, b)
			}
		}
		clear(p.under[len(still):])
		a.Ahead, a.Open = len(still), !a.over
		p.under = append(still, a)
		p.given = append(p.given, a.Outcome)
	}
	return p.given
}

// Late implements capacity.Latecomer.
func (p *serverPlant) Late() []capacity.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := p.late
	p.late = nil
	return late
}

// Drain implements capacity.Plant.
func (p *serverPlant) Drain(ctx context.Context) error {
	return p.await(ctx, func() bool { return p.judged == p.sent })
}

// Now implements capacity.Plant.
func (p *serverPlant) Now() capacity.Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := capacity.Reading{Sent: p.sent, Backlog: p.sent - p.ended, Tokens: p.tokens, Withdrawn: p.withdrawn}
	select {
	case <-p.began:
		r.Ns = p.simulated(p.clock.Now())
	default:
	}
	return r
}

// finish ends the load, once nobody steers it any more, and gives what came of it.
// The recording is whole then. ok is false where there was none.
func (p *serverPlant) finish() (end load.End, ok bool, err error) {
	defer p.run.done()
	select {
	case <-p.began:
	default:
		return load.End{}, false, nil
	}
	if p.ctx.Err() == nil && !p.stopped() { // or else the load ends by itself, and says why
		p.helm.End()
	}
	<-p.over
	p.tellJudge()
	p.judges.Wait()
	return p.end, true, errors.Join(p.err, p.failure)
}

// simulated is a time on the run's clock in the time that is judged.
func (p *serverPlant) simulated(ns int64) int64 { return simulated(ns, p.scale) }

// started implements steersman.
func (p *serverPlant) started(c wire.Clock) {
	p.clock = c
	close(p.began)
}

// patience implements steersman.
func (p *serverPlant) patience() int64 {
	first, _ := p.met.Patience()
	if first == math.MaxInt64 {
		return 0
	}
	return max(first, 1)
}

// settled implements steersman: the run file becomes that of the fixed rate, with
// everything before as its warm-up.
func (p *serverPlant) settled(s *spec.Run) (why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured == 0 {
		return "the search ended before anything was measured at a fixed rate"
	}
	o := &s.Schedule
	o.Rate, o.Requests, o.Duration, o.AtLeast = p.fixed, p.measured, 0, 0
	o.Warmup, o.Drain = strconv.FormatInt(p.warm, 10), "quiet"
	return ""
}

// Begun implements load.Witness.
func (p *serverPlant) Begun(index, due int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	switch {
	case p.measures:
		p.measured++
	case p.measured == 0:
		p.warm++
	}
	p.asked = append(p.asked, &pending{Outcome: capacity.Outcome{At: p.simulated(due)}, index: index, due: due})
	p.tellSteersman()
}

// Silent implements load.Witness: whatever comes of it, it has missed.
func (p *serverPlant) Silent(index int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.at(index); a != nil {
		a.known, a.Missed = true, true
	}
}

// First implements load.Witness.
func (p *serverPlant) First(index, ns int64) {
	met, decided := p.met.MetFirst(ns)
	if !decided {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.at(index); a != nil {
		a.known, a.Missed = true, !met
	}
}

// at is the request of that index, where it has not been given yet.
func (p *serverPlant) at(index int64) *pending {
	if i := index - p.first; i >= 0 && i < int64(len(p.asked)) {
		return p.asked[i]
	}
	return nil
}

// Ended implements load.Witness.
func (p *serverPlant) Ended(t *recording.Trace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	p.tokens += int64(t.Output.Used.Or(0))
	p.fresh = append(p.fresh, *t)
	p.tellJudge()
}

func (p *serverPlant) tellJudge()     { nudge(p.news) }
func (p *serverPlant) tellSteersman() { nudge(p.poke) }

// nudge lets whoever waits look again, and does not wait for that.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// judge judges what has ended until the load is over and nothing is left.
func (p *serverPlant) judge() {
	for last := false; ; {
		p.mu.Lock()
		fresh := p.fresh
		p.fresh = nil
		p.mu.Unlock()
		for i := range fresh {
			p.take(&fresh[i])
		}
		if len(fresh) > 0 {
			p.tellSteersman()
			continue
		}
		if last {
			return
		}
		select {
		case <-p.news:
		case <-p.over:
			last = true
		}
	}
}

// failed says that a request got no whole answer, and whether it was turned away.
func failed(t *recording.Trace) (failed, away bool) {
	failed = t.Outcome != recording.OK
	return failed, failed && turned(t)
}

// take notes what became of a request.
func (p *serverPlant) take(t *recording.Trace) {
	met, judged, err := p.met.Met(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged++
	if err != nil && p.failure == nil {
		p.failure = err
	}
	a := p.at(t.Index)
	if a == nil { // given early
		if i := slices.IndexFunc(p.under, func(b *pending) bool { return b.index == t.Index }); i >= 0 {
			b := p.under[i]
			b.over, b.end = true, t.End.Or(t.Due)
			if !b.Missed && judged && !met {
				p.withdrawn++
			}
			b.Failed, b.Turned = failed(t)
			p.late = append(p.late, capacity.Outcome{Failed: b.Failed, Turned: b.Turned})
		}
		return
	}
	a.Missed, a.Unjudged = judged && !met, !judged
	a.At = p.simulated(t.Sent.Or(t.Due))
	a.Failed, a.Turned = failed(t)
	a.known, a.over, a.end = true, true, t.End.Or(t.Due)
}

var _ interface {
	capacity.Plant
	capacity.Latecomer
	steersman
} = (*serverPlant)(nil)
