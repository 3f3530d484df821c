package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fermata/check"
	"fermata/cost"
	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// A session is a run that stands ready: everybody was asked what they are, and
// nothing was measured yet.
type session struct {
	dir      string
	spec     *spec.Run
	all      []*target
	prompts  *workload.Workload
	arrivals *schedule.Schedule
	right    *check.Checker
	figures  *scrape
	options  Options
	spent    cost.Amount // before the recording
	from     int64       // requests of the workload that were asked before
	done     func()      // gives back what was held
}

// ready makes a session of a run whose workload and schedule open opens.
func ready(ctx context.Context, s *spec.Run, o Options, open func(*spec.Run) (*workload.Workload, *schedule.Schedule, error)) (*session, error) {
	all, err := newTargets(s, o)
	if err != nil {
		return nil, err
	}
	if err := chooseTransport(s, all); err != nil {
		return nil, err
	}
	prompts, arrivals, err := open(s)
	if err != nil {
		return nil, err
	}
	r := &session{spec: s, all: all, prompts: prompts, arrivals: arrivals, options: o, done: holdMemory()}
	if err := r.ask(ctx); err != nil {
		r.done()
		return nil, err
	}
	return r, nil
}

// ask finds out what there is to know before anything is measured.
func (r *session) ask(ctx context.Context) error {
	s, o := r.spec, &r.options
	for _, note := range slices.Concat(r.prompts.Notes(), converseNotes(s, r.prompts), givenNotes(s, r.arrivals)) {
		o.Say("%s", note)
	}
	if err := give(r.all, s, r.prompts); err != nil {
		return err
	}
	if _, err := folder(o.Out, s.Name); err != nil {
		return err // before the server is asked anything
	}
	if short := limits(wire.MachineLimits()).shortage(demandOf(s, r.arrivals)); short != "" {
		o.Say("%s", short)
	}
	var err error
	r.right, err = check.Open(ctx, s.Check)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if err != nil {
		return err
	}
	if err := priced(s, r.all, false); err != nil { // before anything costs
		return err
	}
	if o.Quick {
		return nil
	}
	return prepareAll(ctx, o.Stop, r.all)
}

// open makes the folder.
func (r *session) open(ctx context.Context) (err error) {
	if r.dir, err = folder(r.options.Out, r.spec.Name); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("making the run's folder: %w", err)
	}
	r.figures = newScrape(ctx, r.spec, r.all, r.options)
	return nil
}

// A steersman sets the rate of a session's load while it runs.
type steersman interface {
	load.Witness
	// patience is how long a request is waited for, see load.Job.
	patience() int64
	// started is told of time zero.
	started(wire.Clock)
	// settled writes into the run file what was settled under way, before the
	// recording is closed, and says why nothing was measured, where nothing was.
	settled(*spec.Run) (why string)
}

// record runs the load and finishes its recording. Without a steersman the schedule
// goes by itself.
func (r *session) record(ctx context.Context, by steersman) (load.End, error) {
	dir, s, all, arrivals, o := r.dir, r.spec, r.all, r.arrivals, &r.options
	route, whom, err := settle(s, all)
	if err != nil {
		return load.End{}, err
	}
	if r.from > 0 {
		for i := range whom {
			whom[i].Prompts = later{whom[i].Prompts, r.from}
		}
	}
	scale, err := timeScale(s, all)
	if err != nil {
		return load.End{}, err
	}
	keepPrices(s)
	budget, err := budgetOf(s, all, whom)
	if err != nil {
		return load.End{}, err
	}
	budget.Before = r.spent
	judge, err := s.Judge()
	if err != nil {
		return load.End{}, err
	}
	var glance *metrics.Glance
	if o.Glance != nil {
		if glance, err = metrics.NewGlance(judge, scale); err != nil {
			return load.End{}, err
		}
	}
	var enough *metrics.Watch
	if len(judge.Aims) > 0 {
		if enough, err = metrics.NewWatch(judge.Aims, judge); err != nil {
			return load.End{}, err
		}
	}
	plan := planOf(arrivals, s.Schedule.Duration)
	plan.MaxCost, plan.Currency = s.Load.MaxCost, s.Prices.Currency
	meta := recording.Meta{Tool: "fermata " + o.Version, TimeScale: scale, Labels: labelsOf(s, all)}
	if meta.RunYAML, err = writeRunFile(dir, s); err != nil {
		return load.End{}, err
	}
	rec, err := recording.Create(dir, meta)
	if err != nil {
		return load.End{}, err
	}
	job := load.Job{
		Budget:  budget,
		Options: s.Load, Schedule: arrivals, Record: rec, Targets: whom, Route: route,
		Transport: all[0].choice.New,
		KeepText:  s.Record.KeepText, Secrets: all[0].secrets,
		SlowNs: int64(s.Judging.Slow), Seed: s.Seed, TimeScale: scale,
		Started: func(c wire.Clock) {
			meta.ZeroWallNs = recording.Some(c.ZeroWallNs())
			_ = rec.SetMeta(meta) // a recorder that fails fails the run at its first request
			r.figures.start(c)
			if by != nil {
				by.started(c)
			}
		},
	}
	if by != nil {
		job.Witness, job.Patience = by, by.patience()
	}
	if r.right != nil {
		job.Check = r.right.Answer
	}
	if glance != nil {
		job.Witness = &onlooker{next: job.Witness, glance: glance}
		o.Glance(glance)
	}
	if enough != nil { // a nil one in the interface would be one
		job.Enough = enough
	}
	if o.Live != nil {
		job.Live = func(l load.Live) {
			l.TimeNs = int64(float64(l.TimeNs) * scale)
			o.Live(l, plan)
		}
	}
	if r.figures != nil {
		job.Sampled = r.figures.sampled
	}
	end, err := load.Run(ctx, o.Stop, job)
	clearUp() // the load's: to finish the recording and to judge it each want as much again
	defer clearUp()
	r.figures.stop()
	if err == nil {
		err = promptsErr(all)
	}
	if err != nil {
		return end, unfinished(dir, errors.Join(err, rec.Abandon()))
	}
	if by != nil {
		if why := by.settled(s); why != "" && !end.Closed && end.Interrupted == "" {
			end.Why = why
		}
		if meta.RunYAML, err = writeRunFile(dir, s); err != nil {
			return end, unfinished(dir, err)
		}
	}
	meta.WindowStart, meta.WindowEnd = recording.Some(end.WindowStart), recording.Some(end.WindowEnd)
	meta.WindowWhy, meta.Interrupted = end.Why, end.Interrupted
	if meta.DataSet, err = datasetFacts(all[0].prompts, all[0].prompts.Rounds(end.Reached)); err != nil {
		return end, unfinished(dir, err)
	}
	if err := errors.Join(rec.SetMeta(meta), rec.Close()); err != nil {
		return end, unfinished(dir, err)
	}
	return end, nil
}

// writeRunFile keeps the run file beside the recording, and gives it.
func writeRunFile(dir string, s *spec.Run) (string, error) {
	text := string(s.YAML())
	if err := os.WriteFile(filepath.Join(dir, "run.yaml"), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("writing the run file: %w", err)
	}
	return text, nil
}

// later is what is asked after so many others.
type later struct {
	load.Prompts
	by int64
}

// At implements load.Prompts.
func (l later) At(index int64, promptTokens, outputTokens int32) (workload.Request, bool) {
	return l.Prompts.At(index+l.by, promptTokens, outputTokens)
}
