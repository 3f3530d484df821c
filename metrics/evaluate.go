package metrics

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"

	"fermata/recording"
)

// Schema is that of Result.
const Schema = "fermata.result/1"

// A family judges measured requests, one after another, as many as there are.
type family interface {
	// see takes a request in; in a second pass, only for what seek asked for.
	see(*answer)
	// seek ends the first pass and says which columns a second one needs, if any.
	seek() recording.Columns
	// result writes what came out, for that many measured requests.
	result(r *Result, measured int64)
}

// Evaluate judges a recording. It goes over the source once, and a second time
// where there are too many values to keep for their percentiles, and as often again
// for each of several targets; memory does not grow with the recording beyond that. Samples may be nil.
func Evaluate(src recording.Source, meta recording.Meta, samples []recording.Sample, opt Options) (*Result, error) {
	opt, err := opt.settled()
	if err != nil {
		return nil, err
	}
	e, err := evaluateAll(src, meta, opt)
	if err != nil {
		return nil, err
	}
	r := e.result(samples)
	r.Targets, err = byTarget(src, meta, opt, e.tally.targetNames())
	return r, err
}

// evaluateAll shows all of a recording to all metrics.
func evaluateAll(src recording.Source, meta recording.Meta, opt Options) (*evaluation, error) {
	e := newEvaluation(meta, opt)
	if s, ok := src.(interface{ Arrivals() int64 }); ok {
		e.gaps.expects(s.Arrivals())
	}
	const first = recording.AllColumns &^ recording.Bytes
	if err := e.pass(src, first, e.families); err != nil {
		return nil, err
	}
	e.settle()
	e.objectives.ask()
	var want recording.Columns
	var again []family
	for _, f := range e.families {
		if w := f.seek(); w != 0 {
			want |= w
			again = append(again, f)
		}
	}
	if want != 0 {
		e.answer.second = true
		if err := e.pass(src, want, again); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// stoppedByFailures is part of the reason that load gives for a run it stopped by
// --stop-if-failed.
const stoppedByFailures = "requests failed"

type evaluation struct {
	opt        Options
	meta       recording.Meta
	scale      scale
	window     Window
	answer     answer
	families   []family
	gaps       *gaps
	objectives *objectives
	latencies  *latencies
	tally      *tally
	remarks    *remarks
	ttftGrowth *float64 // ns a request
}

func newEvaluation(meta recording.Meta, opt Options) *evaluation {
	e := &evaluation{opt: opt, meta: meta, scale: scale(meta.TimeScale)}
	e.window = Window{
		StartNs: e.scale.ns(meta.WindowStart.V), EndNs: e.scale.ns(meta.WindowEnd.V), Why: meta.WindowWhy, TimeScale: 1,
	}
	if meta.TimeScale > 0 {
		e.window.TimeScale = meta.TimeScale
	}
	known := meta.WindowStart.OK && meta.WindowEnd.OK
	if !known {
		e.window.StartNs, e.window.EndNs = -never, never
	}
	opt.dependence = &dependence{closed: opt.ClosedLoop, batch: opt.AllAtOnce}
	e.opt = opt
	g := newGaps(opt)
	e.gaps = g
	e.latencies = newLatencies(opt)
	e.objectives = newObjectives(opt, g)
	e.tally, e.remarks = newTally(opt, e.window, known), newRemarks(opt)
	e.families = []family{
		e.latencies, g, newPaces(opt), newStalls(opt), newFluidities(opt), newFluidRate(opt, Decode), e.objectives, e.tally,
		newChecks(opt), &extremes{}, newFirstTokens(opt),
	}
	if opt.Cost != nil {
		e.families = append(e.families, newCosts(opt, e.objectives))
	}
	if opt.MLPerf.Scenario != "" {
		e.families = append(e.families, newMLPerf(opt, e.window.StartNs, known))
	}
	if opt.Deadlines != nil {
		e.families = append(e.families, newFluidRate(opt, FirstToken))
	}
	return e
}

// settle says how requests hang together, after all of them were seen.
func (e *evaluation) settle() {
	d := e.opt.dependence
	d.load = e.tally.load(e.window, &e.opt)
	if r := e.tally.drift.result(); r != nil && !d.closed {
		d.drifts = r.Unsteady
		e.ttftGrowth = growth(e.latencies.due.order)
	}
}

// pass shows every measured request to the families; the first one also counts.
func (e *evaluation) pass(src recording.Source, want recording.Columns, families []family) error {
	var tried chain
	var t recording.Trace // one for all: a pointer to it is kept while the families look
	for t = range e.traces(src, want, &tried) {
		measured, err := inMeasured(&t)
		if err != nil {
			return err
		}
		if e.answer.second && !measured {
			continue
		}
		if err := e.answer.read(&t, &e.opt); err != nil {
			return err
		}
		e.answer.tried = tried
		if !e.answer.second {
			e.tally.count(&e.answer, measured)
			if measured {
				e.remarks.see(&e.answer)
			}
		}
		if !measured {
			continue
		}
		for _, f := range families {
			f.see(&e.answer)
		}
	}
	if err := src.Err(); err != nil {
		return fmt.Errorf("reading the recording to judge it: %w", err)
	}
	return nil
}

// inMeasured says whether a request belongs to the measured phase, as it does in
// files of others that have no phases.
func inMeasured(t *recording.Trace) (bool, error) {
	switch t.Phase {
	case recording.Measured, "":
		return true, nil
	case recording.Warmup, recording.Drain:
		return false, nil
	}
	return false, fmt.Errorf("judging request %d: its phase is %q, not warmup, measured or drain", t.Index, t.Phase)
}

func (e *evaluation) traces(src recording.Source, want recording.Columns, tried *chain) iter.Seq[recording.Trace] {
	return tries(e.scale.traces(src.Traces(want)), tried, func(t *recording.Trace) {
		if e.tally != nil && !e.answer.second {
			e.tally.earlier(t)
		}
	})
}

func (e *evaluation) result(samples []recording.Sample) *Result {
	measured := e.tally.measured
	r := &Result{
		Schema: Schema,
		Tool:   Tool{Name: "fermata", Version: e.meta.Tool},
		Run:    Run{Interrupted: e.meta.Interrupted, Labels: e.meta.Labels},
		Window: e.window,

		Fluidity: []Fluidity{}, FluidRate: []FluidRate{}, Goodput: []Goodput{}, SLO: []Verdict{},
	}
	if e.meta.DataSet != "" { // other tools may have written what this one cannot read
		if d := (&DataSet{}); json.Unmarshal([]byte(e.meta.DataSet), d) == nil {
			r.DataSet = d
		}
	}
	e.tally.window(&r.Window)
	for _, f := range e.families {
		f.result(r, measured)
	}
	e.objectives.goodput(r, r.Window.EndNs-r.Window.StartNs)
	for _, aim := range e.opt.Aims {
		r.Load.Precision = append(r.Load.Precision, aim.reached(&r.Metrics))
	}
	i := readSamples(samples)
	i.judge(r, e.tally)
	r.Server = i.server(&r.Window)
	e.drift(r)
	r.BlindSpots = alone(r)
	e.remarks.warnings(r, e.tally, i, strings.Contains(e.meta.Interrupted, stoppedByFailures))
	return r
}

// drift writes how things grew, as far as the run was long enough to say.
func (e *evaluation) drift(r *Result) {
	d := e.tally.drift.result()
	if d == nil || e.opt.ClosedLoop {
		return
	}
	if rate := r.Load.OfferedRPS; rate != nil {
		perS := d.PerRequest * *rate
		d.PerS = &perS
		if e.ttftGrowth != nil {
			d.TTFTNsPerS = some(math.Round(*e.ttftGrowth**rate), true)
		}
	}
	r.Load.Drift = d
}
