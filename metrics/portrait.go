package metrics

import (
	"cmp"
	"fmt"
	"slices"

	"fermata/deadline"
	"fermata/internal/seed"
	"fermata/recording"
)

// PortraitOptions bound what a portrait keeps of single requests.
type PortraitOptions struct {
	Lives    int     // requests; 0 means 2,000
	Arrivals int     // arrivals of the requests that are kept with them; 0 means 200,000
	Show     []int64 // indexes of requests that are kept with their arrivals in any case
	Seed     uint64  // of the choice
}

// A Portrait is what pictures of a recording are drawn from: distributions as
// curves, the load over time, and single requests. Its size does not grow with the
// recording; where requests are a sample of all, it says of how many.
type Portrait struct {
	Requests int64 // of every phase
	Measured int64

	Lives   []Life   // of every phase, by due time and index; a sample of Requests
	Streams []Stream // measured ones, by index; a sample of Measured, and those below

	Worst, Typical, Latest recording.Maybe[int64] // indexes of streams: the longest silence, the median one, the latest first token

	TTFT, SchedulingDelay, TBT, TPOT, NormalizedLatency, GapLongest, E2E Curve // ns

	Misses []MissCurve // of the deadlines of single requests, decode, by target gap
	Fluent Curve       // of the requests' own smallest gaps with F >= 0.9, decode, ns; failed ones have none
	Fluid  []GapIndex  // F against target gap; of Streams

	TokensPerEvent, EventsPerRead []int64 // how often each number occurred; the last stands for more

	Slots  []Slot
	SlotNs int64
}

// A Life is one request's, times on the run's clock in ns.
type Life struct {
	Index   int64
	Phase   recording.Phase
	Outcome string
	Good    bool
	Stopped bool // given up by this side as the run ended; see recording.Trace.Stopped

	Due       int64
	Sent      recording.Maybe[int64]
	Scheduled recording.Maybe[int64] // when its prefill began, where the server told …
	Estimated bool                   // … or a measured prefill curve tells it from the first token
	First     recording.Maybe[int64] // token
	Last      recording.Maybe[int64] // token
	End       recording.Maybe[int64]

	Prompt, Output recording.Maybe[int32]
	Deadline       recording.Maybe[int64] // of the first token, from Due
	Silence        recording.Maybe[int64] // the longest gap between arrivals
	Fluidity       recording.Maybe[float64]

	Stalls []Span // at the reading pace; the longest few
}

// A Span is a stretch of the run's clock, half-open.
type Span struct{ From, To int64 }

// A Stream is a life with every arrival.
type Stream struct {
	Life
	At     []int64 // ns from Due
	Tokens []int32
}

// A MissCurve is the distribution of the shares of missed deadlines, in millionths,
// at one target gap.
type MissCurve struct {
	TargetGapNs int64
	Curve       Curve
}

// A GapIndex is the fluidity index, decode, at one target gap.
type GapIndex struct {
	TargetGapNs int64
	Mean        float64 // of Requests requests
	Low         float64 // the lowest tenth have at most this
	Requests    int64
}

// A Slot is a stretch of the run: what became of requests of every phase in it.
type Slot struct {
	Due, Sent, Tokens int64
	Finished, Failed  int64 // ended by the server, well or not; those that failed
	Stopped           int64 // given up by this side, which are in neither
	InFlight          int64 // at its end
	InFlightMost      int64 // at once within it
}

const (
	defaultLives    = 2000
	defaultArrivals = 200_000
	mostStalls      = 12 // of one life
	mostPerEvent    = 16 // numbers of tokens that are told apart
	mostSlots       = 240
	firstSlotNs     = 1_953_125 // doubled six times it is 125 ms
)

// Portray goes over a recording once and keeps what pictures need. r is what
// Evaluate made of it under the same options.
func Portray(src recording.Source, meta recording.Meta, r *Result, opt Options, o PortraitOptions) (*Portrait, error) {
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	e := &evaluation{opt: opt, meta: meta, scale: scale(meta.TimeScale)}
	p := newPainter(&e.opt, r, o)
	var tried chain
	var t recording.Trace
	for t = range e.traces(src, recording.Times|recording.Reads, &tried) {
		measured, err := inMeasured(&t)
		if err != nil {
			return nil, err
		}
		if err := e.answer.read(&t, &e.opt); err != nil {
			return nil, err
		}
		p.see(&e.answer, measured)
	}
	if err := src.Err(); err != nil {
		return nil, fmt.Errorf("reading the recording to draw it: %w", err)
	}
	return p.portrait(), nil
}

// A painter gathers a portrait.
type painter struct {
	opt  *Options
	out  Portrait
	show map[int64]bool

	lives           *sampled[Life]
	streams         *sampled[Stream]
	shown           []Stream
	worst, typical  standout
	latest          standout
	median          recording.Maybe[float64] // of the longest silences
	ttft, tbt       outline
	told, estimated outline // scheduling delays
	tpot, norm      outline
	silence, e2e    outline
	fluent          outline
	judged          int64 // requests that have a smallest gap, or failed
	misses          []outline
	slots           slots
}

func newPainter(opt *Options, r *Result, o PortraitOptions) *painter {
	if o.Lives <= 0 {
		o.Lives = defaultLives
	}
	if o.Arrivals <= 0 {
		o.Arrivals = defaultArrivals
	}
	p := &painter{opt: opt, show: map[int64]bool{}, misses: make([]outline, len(opt.TargetGapsNs)), slots: slots{width: firstSlotNs}}
	for _, i := range o.Show {
		p.show[i] = true
	}
	if d := r.Metrics.GapLongest; d != nil {
		if v, ok := d.of(0.5); ok {
			p.median = recording.Some(v)
		}
	}
	p.lives = newSampled[Life](seed.Derive(o.Seed, "metrics: lives"), o.Lives)
	p.streams = newSampled[Stream](seed.Derive(o.Seed, "metrics: streams"), o.Arrivals)
	p.out.TokensPerEvent = make([]int64, mostPerEvent+2)
	p.out.EventsPerRead = make([]int64, mostPerEvent+2)
	return p
}

// A standout is the one request that has most of something.
type standout struct {
	stream Stream
	most   float64
	found  bool
}

func (s *standout) offer(most float64, make func() Stream) {
	if s.found && most <= s.most {
		return
	}
	s.stream, s.most, s.found = make(), most, true
}

func (p *painter) see(a *answer, measured bool) {
	p.out.Requests++
	p.slots.see(a)
	life := func() Life { return p.life(a) }
	p.lives.offer(a.t.Index, 1, life)
	if !measured {
		return
	}
	p.out.Measured++
	p.distributions(a)
	stream := func() Stream {
		return Stream{Life: p.life(a), At: arrivalTimes(a.t), Tokens: slices.Clone(a.t.Tokens)}
	}
	if p.show[a.t.Index] {
		p.shown = append(p.shown, stream())
	}
	p.streams.offer(a.t.Index, 1+len(a.t.DeltaNs), stream)
	if v, ok := a.ttft(); ok {
		p.latest.offer(float64(v), stream)
	}
	if v, ok := a.longestGap(); ok && a.good {
		p.worst.offer(float64(v), stream)
		if p.median.OK {
			p.typical.offer(-max(float64(v)-p.median.V, p.median.V-float64(v)), stream)
		}
	}
}

// distributions takes an answer into the curves, as the metrics of the same names do.
func (p *painter) distributions(a *answer) {
	put := func(o *outline, v int64, ok bool) {
		if ok {
			o.add(v)
		}
	}
	ttft, began := a.ttft()
	put(&p.ttft, ttft, began)
	t := a.t
	if began && t.ServerReceived.OK && t.ServerPrefill.OK && t.Sent.OK {
		p.told.add(ttft + t.Due - t.ServerReceived.V - t.ServerPrefill.V)
	}
	if prefill, ok := p.prefill(a); ok {
		p.estimated.add(ttft + t.Due - t.Sent.V - prefill)
	}
	for _, g := range a.gaps {
		p.tbt.add(g)
	}
	gap, ok := a.longestGap()
	put(&p.silence, gap, ok)
	perEvent(p.out.TokensPerEvent, p.out.EventsPerRead, t)
	if !a.good {
		p.judged++
	} else {
		p.whole(a)
	}
	for i, gap := range p.opt.TargetGapsNs {
		if s, ok := a.score(Decode, gap); ok {
			p.misses[i].add(missedMillionths(s))
		}
	}
}

// prefill is what the measured curve of first-token deadlines says that the prompt
// took, for requests that got a token; see firstTokens.
func (p *painter) prefill(a *answer) (ns int64, ok bool) {
	d, prompt := p.opt.Deadlines, a.t.Prompt.Used
	if d == nil || a.first < 0 || !a.t.Sent.OK || !prompt.OK || !d.Covers(prompt.V) {
		return 0, false
	}
	if _, measured := d.Slack(); !measured {
		return 0, false
	}
	return d.Due(deadline.EdgeFit, 0, prompt.V), true
}

// whole is what only a good answer has.
func (p *painter) whole(a *answer) {
	if v, ok := a.tpot(); ok {
		p.tpot.add(v)
	}
	if v, ok := a.normalized(); ok {
		p.norm.add(v)
	}
	if v, ok := a.e2e(); ok {
		p.e2e.add(v)
	}
	if v, ok := SmallestGap(a.times); ok {
		p.fluent.add(v)
		p.judged++
	}
}

// missedMillionths is 1 - F, all of it where nothing was scored.
func missedMillionths(s Score) int64 {
	if s.Met+s.Missed == 0 {
		return 1_000_000
	}
	return int64(float64(s.Missed) / float64(s.Met+s.Missed) * 1e6)
}

// perEvent counts tokens an event and events a socket read.
func perEvent(tokens, events []int64, t *recording.Trace) {
	most := len(tokens) - 1
	for _, k := range t.Tokens {
		tokens[min(int(k), most)]++
	}
	if len(t.Read) != len(t.Tokens) {
		return
	}
	same := 0
	for i, r := range t.Read {
		if i > 0 && r == t.Read[i-1] {
			same++
			continue
		}
		if same > 0 {
			events[min(same, most)]++
		}
		same = 1
	}
	if same > 0 {
		events[min(same, most)]++
	}
}

func arrivalTimes(t *recording.Trace) []int64 {
	all := make([]int64, len(t.DeltaNs))
	var at int64
	for i, d := range t.DeltaNs {
		at += d
		all[i] = at
	}
	return all
}

func (p *painter) life(a *answer) Life {
	t := a.t
	l := Life{
		Index: t.Index, Phase: t.Phase, Outcome: a.outcome, Good: a.good, Stopped: !a.good && t.Stopped(),
		Due: t.Due, Sent: t.Sent, End: t.End, Prompt: t.Prompt.Used, Output: a.used,
		Silence: known(a.longestGap()),
	}
	if a.first >= 0 {
		l.First, l.Last = recording.Some(t.Due+a.times[0]), recording.Some(t.Due+a.times[len(a.times)-1])
	}
	switch {
	case t.ServerReceived.OK && t.ServerQueue.OK:
		l.Scheduled = recording.Some(t.ServerReceived.V + t.ServerQueue.V)
	case l.First.OK && t.ServerPrefill.OK:
		l.Scheduled = recording.Some(l.First.V - t.ServerPrefill.V)
	default:
		if prefill, ok := p.prefill(a); ok {
			l.Scheduled, l.Estimated = recording.Some(max(l.First.V-prefill, t.Sent.V)), true
		}
	}
	if len(a.due) > 0 {
		l.Deadline = recording.Some(a.due[0])
	}
	if s, ok := a.score(Decode, p.opt.TargetGapsNs[len(p.opt.TargetGapsNs)/2]); ok && a.good {
		l.Fluidity = recording.Some(s.Index())
	}
	l.Stalls = StallSpans(a.times, p.opt.PaceNs)
	for i := range l.Stalls {
		l.Stalls[i].From += t.Due
		l.Stalls[i].To += t.Due
	}
	return l
}

// StallSpans are the stretches in which a reader at the pace waits for the next
// token, the longest twelve of them in order of time; see Stall.
func StallSpans(times []int64, pace int64) []Span {
	if len(times) == 0 {
		return nil
	}
	var all []Span
	due := times[0]
	for _, t := range times {
		if t > due {
			all = append(all, Span{due, t})
			due = t
		}
		due += pace
	}
	if len(all) > mostStalls {
		slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
		all = all[:mostStalls]
		slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	}
	return all
}

func (p *painter) portrait() *Portrait {
	out := &p.out
	out.Lives = p.lives.values()
	slices.SortFunc(out.Lives, func(a, b Life) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Index, b.Index)) })
	out.Streams = p.streams.values()
	out.Fluid = gapIndexes(out.Streams)
	for _, s := range []struct {
		one *standout
		in  *recording.Maybe[int64]
	}{{&p.worst, &out.Worst}, {&p.typical, &out.Typical}, {&p.latest, &out.Latest}} {
		if s.one.found {
			out.Streams = append(out.Streams, s.one.stream)
			*s.in = recording.Some(s.one.stream.Index)
		}
	}
	out.Streams = append(out.Streams, p.shown...)
	slices.SortStableFunc(out.Streams, func(a, b Stream) int { return cmp.Compare(a.Index, b.Index) })
	out.Streams = slices.CompactFunc(out.Streams, func(a, b Stream) bool { return a.Index == b.Index })

	sched := &p.told
	if sched.n == 0 {
		sched = &p.estimated
	}
	out.TTFT, out.SchedulingDelay, out.TBT = p.ttft.curve(p.ttft.n), sched.curve(sched.n), p.tbt.curve(p.tbt.n)
	out.TPOT, out.NormalizedLatency = p.tpot.curve(p.tpot.n), p.norm.curve(p.norm.n)
	out.GapLongest, out.E2E = p.silence.curve(p.silence.n), p.e2e.curve(p.e2e.n)
	out.Fluent = p.fluent.curve(p.judged)
	for i, gap := range p.opt.TargetGapsNs {
		out.Misses = append(out.Misses, MissCurve{gap, p.misses[i].curve(p.misses[i].n)})
	}
	out.Slots = p.slots.finish()
	out.SlotNs = p.slots.width
	return out
}

// gapIndexes are F of the streams, decode, at target gaps from 5 ms to 2 s that rise by a
// tenth.
func gapIndexes(streams []Stream) []GapIndex {
	var all []GapIndex
	var times [][]int64
	for i := range streams {
		s := &streams[i]
		switch {
		case !s.Good:
			times = append(times, nil) // F = 0
		default:
			if one := tokenTimesOf(s.At, s.Tokens); len(one) > 1 {
				times = append(times, one)
			}
		}
	}
	if len(times) == 0 {
		return nil
	}
	values := make([]float64, len(times))
	for gap := int64(5_000_000); gap <= 2_000_000_000; gap += gap / 10 {
		sum := 0.0
		for i, one := range times {
			s, _ := PlayDecode(one, gap)
			values[i] = s.Index()
			sum += values[i]
		}
		slices.Sort(values)
		all = append(all, GapIndex{gap, sum / float64(len(values)), values[(len(values)+9)/10-1], int64(len(values))})
	}
	return all
}

func tokenTimesOf(at []int64, tokens []int32) []int64 {
	var times []int64
	for i, k := range tokens {
		for ; k > 0; k-- {
			times = append(times, at[i])
		}
	}
	return times
}
