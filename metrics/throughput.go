package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"fermata/recording"
)

// A tally counts what is no distribution: outcomes and failures of measured
// requests, and of every phase what finished or arrived in the window.
type tally struct {
	opt        *Options
	start, end int64 // of the window
	known      bool  // the recording names its window

	measured, sent    int64
	retried           int64 // measured requests of several tries
	earlierTries      int64 // of those, before the last
	unsent            int64 // measured requests that never left, though no connection failed
	noRoom            int64 // those for whose connection this machine had no room …
	noRoomWhy         string
	firstDue, lastEnd int64 // of measured requests
	outcomes, finish  map[string]int64
	failures          map[failureClass]*Failure
	targets           map[string]bool // that measured requests name
	lateness          *series
	flight            inFlight
	drift             drift
	atHalf, atEnd     int64 // requests due and not ended at the middle and the end of the window
	sessions          sessions

	finished, finishedTokens, arrivedTokens, inputTokens int64
}

type failureClass struct {
	outcome  string
	failedAt recording.Step
	status   int32
}

func newTally(opt Options, w Window, known bool) *tally {
	return &tally{
		opt:   &opt,
		start: w.StartNs, end: w.EndNs, known: known,
		outcomes: map[string]int64{}, finish: map[string]int64{}, failures: map[failureClass]*Failure{},
		lateness: newSeries(opt, "ns", lower).instrument(),
		flight:   inFlight{start: w.StartNs, end: w.EndNs},
	}
}

// count takes a request of any phase in.
func (y *tally) count(a *answer, measured bool) {
	if y.known || measured {
		y.through(a)
		y.flight.see(a.t)
	}
	if y.known {
		y.under(a.t)
	}
	y.drift.see(a.t, measured)
	if measured {
		y.countMeasured(a)
	}
}

// earlier takes in a try that another one followed: it was in flight like any
// other, and counts nowhere else.
func (y *tally) earlier(t *recording.Trace) {
	if y.known || t.Phase == recording.Measured || t.Phase == "" {
		y.flight.see(t)
	}
}

// under counts a request that was under way, sent or not, at the middle or the end
// of the window.
func (y *tally) under(t *recording.Trace) {
	half := y.start + (y.end-y.start)/2
	end := t.End.Or(never)
	if t.Due <= half && end > half {
		y.atHalf++
	}
	if t.Due < y.end && end >= y.end {
		y.atEnd++
	}
}

// backlog says that requests came faster than they were answered: those under way
// went on growing in the second half of the window, by more than chance would
// explain (four standard deviations of a Poisson number).
func (y *tally) backlog() bool {
	grown := float64(y.atEnd - y.atHalf)
	return y.known && grown > 4*math.Sqrt(float64(y.atEnd)) && grown > 0.3*float64(y.atHalf)
}

func (y *tally) countMeasured(a *answer) {
	t := a.t
	if y.measured == 0 {
		y.firstDue, y.lastEnd = t.Due, t.Due
	}
	y.measured++
	y.lastEnd = max(y.lastEnd, t.End.Or(t.Due))
	if e2e, ok := a.e2e(); ok {
		y.lastEnd = max(y.lastEnd, t.Due+e2e)
	}
	if t.NoRoom() {
		y.noRoom++
		y.noRoomWhy = cmp.Or(y.noRoomWhy, t.Error)
	}
	switch {
	case t.Sent.OK, a.tried.sent.OK:
		y.sent++
	case t.FailedAt != recording.AtConnect && t.FailedAt != recording.AtTLS:
		y.unsent++
	}
	if n := a.tried.earlier; n > 0 {
		y.retried++
		y.earlierTries += n
	}
	if t.Target != "" && !y.targets[t.Target] {
		if y.targets == nil {
			y.targets = map[string]bool{}
		}
		y.targets[strings.Clone(t.Target)] = true
	}
	y.sessions.see(t)
	y.outcomes[a.outcome]++
	if t.FinishReason != "" {
		y.finish[t.FinishReason]++
	}
	if !a.good {
		y.fail(a)
	}
}

func (y *tally) fail(a *answer) {
	t := a.t
	class := failureClass{a.outcome, t.FailedAt, t.HTTPStatus}
	if a.outcome == truncated {
		class.status = 0 // a 200 says nothing here
	}
	f := y.failures[class]
	if f == nil {
		f = &Failure{Outcome: class.outcome, FailedAt: string(class.failedAt), HTTPStatus: class.status, Error: t.Error}
		y.failures[class] = f
	}
	f.Count++
	f.Tokens += int64(len(a.times))
	if f.Error == "" {
		f.Error = t.Error
	}
}

// through counts what falls into the window: a request by its last token, each
// token by itself.
func (y *tally) through(a *answer) {
	n := len(a.times)
	if n == 0 {
		return
	}
	first, last := a.t.Due+a.times[0], a.t.Due+a.times[n-1]
	switch {
	case first >= y.start && last < y.end:
		y.arrivedTokens += int64(n)
	default:
		y.arrivedTokens += int64(sort.Search(n, func(i int) bool { return a.t.Due+a.times[i] >= y.end }) -
			sort.Search(n, func(i int) bool { return a.t.Due+a.times[i] >= y.start }))
	}
	if a.t.Outcome == recording.OK && last >= y.start && last < y.end {
		y.finished++
		y.finishedTokens += int64(a.used.V)
		y.inputTokens += int64(a.t.Prompt.Used.Or(0))
	}
}

// window is the measured phase; where the recording names none, from the first
// due time to the last end of the measured requests.
func (y *tally) window(w *Window) {
	if y.known {
		return
	}
	w.StartNs, w.EndNs = y.firstDue, y.lastEnd
	if y.measured == 0 {
		w.Why = "no measured request was due"
		return
	}
	w.Why = "from the first due time to the last end: the recording names no window"
}

// load is the ratio of the offered rate to the saturation that was given; 0 where
// that is unknown or doubtful, or has no meaning.
func (y *tally) load(w Window, opt *Options) float64 {
	y.window(&w)
	rate := perSecond(float64(y.measured), w.EndNs-w.StartNs)
	if rate == nil || opt.ClosedLoop || !(opt.SaturationRPS > 0) || len(opt.Doubts) > 0 {
		return 0
	}
	return *rate / opt.SaturationRPS
}

// targetNames are the targets of measured requests, sorted.
func (y *tally) targetNames() []string { return slices.Sorted(maps.Keys(y.targets)) }

// see takes the lateness of a measured request in.
func (y *tally) see(a *answer) {
	if sent := a.tried.sent; sent.OK { // later tries waited on purpose
		y.lateness.int(sent.V - a.t.Due)
	}
}

func (y *tally) seek() recording.Columns { return y.lateness.seek() }

func (y *tally) failedRequests() int64 { return y.measured - y.outcomes[string(recording.OK)] }

// cutByUser are the requests that ended because somebody stopped the run.
func (y *tally) cutByUser() int64 {
	return y.outcomes[string(recording.TruncatedByUs)] + y.outcomes[string(recording.NotSent)] - y.noRoom
}

func (y *tally) result(r *Result, measured int64) {
	r.Outcomes, r.FinishReasons = y.outcomes, y.finish
	r.Sessions = y.sessions.result()
	r.Failures = []Failure{}
	for _, f := range y.failures {
		r.Failures = append(r.Failures, *f)
	}
	slices.SortFunc(r.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome),
			cmp.Compare(a.FailedAt, b.FailedAt), cmp.Compare(a.HTTPStatus, b.HTTPStatus))
	})
	length := r.Window.EndNs - r.Window.StartNs
	l := &r.Load
	l.Sent, l.Measured = y.sent, y.measured
	l.Retried, l.EarlierTries = y.retried, y.earlierTries
	l.OfferedRPS, l.AchievedRPS = perSecond(float64(y.measured), length), perSecond(float64(y.sent), length)
	l.Lateness = y.lateness.dist(measured)
	if load := y.load(r.Window, y.opt); load > 0 {
		l.SaturationRPS, l.OfSaturation = some(y.opt.SaturationRPS, true), &load
		l.Saturation = &Saturation{RPS: y.opt.SaturationRPS, Source: "given"}
		if y.opt.Probed {
			l.Saturation.Source = "probed"
		}
	}
	l.InFlightMax, l.InFlightMean = y.flight.result()
	r.Throughput = Throughput{
		RequestsPerS:             perSecond(float64(y.finished), length),
		OutputTokensPerSFinished: perSecond(float64(y.finishedTokens), length),
		OutputTokensPerSArrived:  perSecond(float64(y.arrivedTokens), length),
		InputTokensPerS:          perSecond(float64(y.inputTokens), length),
	}
}
