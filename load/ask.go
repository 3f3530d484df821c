package load

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"fermata/cost"
	"fermata/recording"
	"fermata/schedule"
	"fermata/workload"
)

// A prepared request stands ready before it is due.
type prepared struct {
	at     schedule.Arrival // with the session of its own, if it has one
	turn   int32
	prompt int32 // tokens that are intended; 0 where nobody knows
	output int32 // most tokens of the answer; likewise
	end    bool  // the workload has no more
	to     *Target
	header http.Header
	body   []byte
	asked  *workload.Request // kept where texts are
	talk   *talk             // that it is a turn of; nil for a request that stands alone
	worst  cost.Amount       // that it may cost
	err    error
}

// aheadOf is how many requests stand ready: enough that building a body never
// delays a sending, few enough that long prompts fit into memory.
const (
	aheadOf    = 1024
	aheadBytes = 16 << 20 // of bodies, unless a single one is larger
)

// prepare builds requests ahead of time and returns when the first of them stand
// ready: of an open loop in order, of a closed one for its crowd. Users who converse
// build their own, of the answers that they had.
func (r *run) prepare() <-chan prepared {
	if n := r.times.Users(); n > 0 {
		ahead := make(chan prepared)
		close(ahead)
		if !r.times.Converses() {
			r.crowd = newCrowd(r, n)
		}
		return ahead
	}
	ahead := make(chan prepared, aheadOf)
	first := make(chan struct{})
	go func() {
		defer close(ahead)
		var once bool
		ready := func() {
			if !once {
				once = true
				close(first)
			}
		}
		defer ready()
		for n := 0; ; n++ {
			p, ok := r.following()
			if !ok {
				return
			}
			if p.end {
				return
			}
			if n == aheadOf-1 || p.at.Phase == schedule.Drain {
				ready()
			}
			for r.aheadSize.Load() > aheadBytes && !r.halted() {
				ready()
				time.Sleep(settled)
			}
			r.aheadSize.Add(int64(len(p.body)))
			select {
			case ahead <- p:
			case <-r.halt:
				return
			}
			if p.err != nil {
				return
			}
		}
	}()
	select {
	case <-first:
	case <-time.After(200 * time.Millisecond): // the rest is built while the first wait
	}
	return ahead
}

// following is the next request of an open loop: of conversations, the next one's
// first turn. ok is false where the schedule has no more.
func (r *run) following() (p prepared, ok bool) {
	if r.times.Converses() {
		return r.opening()
	}
	at, ok := r.times.Next(0)
	if !ok {
		return p, false
	}
	return r.build(at), true
}

func (r *run) build(at schedule.Arrival) prepared {
	to := r.to(at.Index)
	q := &r.draft
	if r.KeepText {
		q = new(workload.Request)
	}
	var ok bool
	if *q, ok = to.Prompts.At(at.Index, at.PromptTokens, at.OutputTokens); !ok {
		return prepared{end: true}
	}
	return r.written(q, at, to)
}

// written is a request with its body and its header.
func (r *run) written(q *workload.Request, at schedule.Arrival, to *Target) prepared {
	body, err := to.Dialect.Body(q)
	p := prepared{turn: q.Turn, prompt: q.PromptTokens, output: q.OutputTokens, to: to, header: r.header(to, q, &at), body: body, err: err}
	p.at = at
	p.at.Session = cmp.Or(q.Session, at.Session)
	if r.KeepText {
		p.asked = q
	}
	return p
}

// header is what goes out with a request. One that belongs to no session is a
// session of its own.
func (r *run) header(to *Target, q *workload.Request, at *schedule.Arrival) http.Header {
	h := to.Header
	if hasPlaceholder(h) {
		index := strconv.FormatInt(at.Index, 10)
		h = FillHeader(h, index, cmp.Or(q.Session, at.Session, index), strconv.FormatUint(r.Seed, 10))
	}
	if !to.PromptLength || q.PromptTokens <= 0 {
		return h
	}
	h = h.Clone()
	h.Set("X-Fermata-Prompt-Tokens", strconv.Itoa(int(q.PromptTokens)))
	if session := cmp.Or(q.Session, at.Session); session != "" {
		h.Set("X-Fermata-Session", session)
	}
	return h
}

// begin starts a request of the open loop, which is due or soon will be.
func (r *run) begin(p prepared) {
	r.answers.Add(1)
	r.send(r.enter(p), callerFunc(r.conclude))
}

// conclude closes a request of the open loop, unless it is tried again: only then
// does it need a goroutine to wait on.
func (r *run) conclude(f *flight) {
	defer r.answers.Done()
	if !r.retries(f.trace) {
		r.close(f)
		return
	}
	r.answers.Go(func() { r.persist(f) })
}

// enter makes the request due, at its due time or, where the transport paces, so
// much before it that it leaves in time.
func (r *run) enter(p prepared) *flight {
	f := &flight{run: r, to: p.to, errand: &errand{p.header, p.body, p.asked}, worst: p.worst}
	f.origin = origin{
		index: p.at.Index, due: p.at.Due, phase: recording.Phase(p.at.Phase), session: p.at.Session, turn: p.turn,
		prompt: known(p.prompt), output: known(p.output),
	}
	if p.talk != nil && f.session != "" {
		f.turns = recording.Some(int32(p.talk.turns))
	}
	r.arm(f, p.talk != nil && p.talk.more())
	if f.phase == recording.Measured {
		r.tally.measuredLeft.Add(1)
	}
	if f.early = f.due > r.clock.Now(); f.early {
		r.tally.early.Add(1)
	} else {
		f.announce()
	}
	if r.Witness != nil {
		r.Witness.Begun(f.index, f.due)
	}
	return f
}

// known is a number of tokens, where it is one.
func known(tokens int32) recording.Maybe[int32] {
	return recording.Maybe[int32]{V: max(0, tokens), OK: tokens > 0}
}

// arm makes a flight ready to take its answer, which the next turn of its
// conversation may need to hear.
func (r *run) arm(f *flight, heard bool) {
	f.desk = f.to.desk
	if keep := r.KeepText || r.Check != nil && f.phase == recording.Measured; keep || heard {
		f.words = &words{keep: keep, heard: heard}
	}
}

// ask sends one request and follows its answer to the end, again where the run
// retries. It returns the last try, which is the request's.
func (r *run) ask(f *flight) *flight {
	if !r.admit() {
		f.unsent()
		r.close(f)
		return f
	}
	r.exchange(f)
	if r.retries(f.trace) {
		return r.persist(f)
	}
	r.close(f)
	return f
}

// persist tries a request again until it is not to be tried any more.
func (r *run) persist(f *flight) *flight {
	for r.retries(f.trace) {
		r.recordEnd(f) // a wait may be long, and the process may not live
		next := r.again(f)
		if next == nil {
			r.tell(f.trace)
			r.count(f)
			return f
		}
		f = next
		r.exchange(f)
	}
	r.close(f)
	return f
}

// admit waits for a place in flight; false means that the run stopped first.
func (r *run) admit() bool {
	if r.halted() {
		return false
	}
	if r.room == nil {
		return true
	}
	r.tally.waiting.Add(1)
	defer r.tally.waiting.Add(-1)
	select {
	case r.room <- struct{}{}:
		return true
	case <-r.halt:
		return false
	}
}

// recordEnd records the end of a request, with its texts if they are kept.
func (r *run) recordEnd(f *flight) {
	t := f.trace
	_ = r.keep.End(t)
	if r.KeepText {
		// A prompt hides secrets too: a later turn repeats what the server said.
		_ = r.keep.Text(t.Index, t.Try, r.hide(promptText(f.errand.asked)), r.hide(f.words.text.String()), r.hide(f.words.reasoning.String()))
	}
}

// close records the end of a request, once it is checked if it is to be, and
// counts it.
func (r *run) close(f *flight) {
	t := f.trace
	r.pay(f)
	if r.Enough != nil && t.Phase == recording.Measured {
		r.Enough.See(t)
	}
	if r.checks.wants(t) {
		r.checks.add(f)
	} else {
		r.recordEnd(f)
		r.tell(t)
	}
	r.count(f)
}

// count counts a request by its last try.
func (r *run) count(f *flight) {
	t := f.trace
	finished, failed := r.tally.close(t.Outcome != recording.OK && !t.Stopped())
	if finished >= fewest && float64(failed) > r.maxFailed*float64(finished) {
		r.failed.Store(true)
		r.stopSending(TooManyFailed)
	}
	if t.Phase == recording.Measured {
		r.tally.measuredDone.Add(1)
		raise(&r.lastEnd, t.End.V)
		r.tally.measuredLeft.Add(-1)
	}
}

// fewest is how many answers a share of failures is judged from.
const fewest = 10

// TooManyFailed is why a run was interrupted that its failures stopped.
const TooManyFailed = "too many requests failed"

// promptText is what was asked, as one text.
func promptText(q *workload.Request) string {
	if q.Messages == nil && q.Before == nil {
		return q.Prompt
	}
	all, err := json.Marshal(q.Chat())
	if err != nil {
		return ""
	}
	return string(all)
}
