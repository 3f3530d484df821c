// Package experiment is where the rooms are wired together: a spec becomes a
// recording and a result.
package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
	"fermata/schedule"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// Options are what a run needs besides its spec.
type Options struct {
	Out     string              // the run's folder; empty for runs/TIME-NAME
	Version string              // of the tool
	Getenv  func(string) string // where credentials are looked up; nil for os.Getenv
	Stop    <-chan struct{}     // closed: no more arrivals, wait for answers
	Say     func(format string, args ...any)
	Step    func(format string, args ...any) // told what comes next and how it goes, which nobody has to know; nil for Say
	Live    func(load.Live, Plan)
	Glance  func(*metrics.Glance) // told of a run's before it begins, to look at under way; nil where nobody watches
	Quick   bool                  // no preflight and no calibration, for servers of our own
}

// A Done is a run that has been recorded and judged.
type Done struct {
	Dir    string
	Result *metrics.Result
	End    load.End
}

// Run offers the load that the spec describes, records it into a folder of its
// own and judges it. An error means that nothing was measured, or that what was
// recorded could not be finished; it then says what to do.
func Run(ctx context.Context, s *spec.Run, o Options) (*Done, error) {
	o.fill()
	r, err := ready(ctx, s, o, open)
	if err != nil {
		return nil, err
	}
	defer r.done()
	if !o.Quick {
		if err := probeSaturation(ctx, o.Stop, s, r.all[0]); err != nil {
			return nil, err
		}
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	end, err := r.record(ctx, nil)
	if err != nil {
		return nil, err
	}
	if n := r.prompts.Rounds(end.Reached); n > 0 {
		o.Say("the data set was started over %d times: its prompts were asked again", n)
	}
	if end.Closed {
		o.Say("%s", end.Why)
	} else if end.Interrupted == "" {
		want, _ := r.arrivals.MeasuredTotal()
		if why := tooFew(s, end.Live.MeasuredDone, max(want, s.Schedule.Requests), r.prompts.Conversing()); why != "" {
			o.Say("%s", why)
		}
	}
	result, err := Judge(r.dir, nil, o.Version)
	if err != nil {
		return nil, err
	}
	if err := writeResult(r.dir, result); err != nil {
		return nil, err
	}
	return &Done{Dir: r.dir, Result: result, End: end}, nil
}

func (o *Options) fill() {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Step == nil {
		o.Step = o.Say
	}
}

// open makes what is asked and when.
func open(s *spec.Run) (*workload.Workload, *schedule.Schedule, error) {
	if s.Workload.Dataset != "" || s.Schedule.File != "" {
		defer readFrugally()()
	}
	prompts, arrivals, err := openBoth(s)
	if err != nil {
		return nil, nil, err
	}
	if !prompts.Conversing() {
		if s.Schedule.Think != "" && arrivals.Users() == 0 {
			return nil, nil, conf.Mistakes{{Path: "schedule.think", Text: "is for closed loops and conversations, and this run has neither; leave it out, or give concurrency or turns"}}
		}
		return prompts, arrivals, nil
	}
	if arrivals.Streams() > 1 {
		return nil, nil, errors.New("schedule.streams sends single requests at once, and this data set holds conversations; leave it out, or give another data set")
	}
	return prompts, arrivals, arrivals.Converse(func(i int64) (int, bool) {
		_, turns, ok := prompts.Conversation(i)
		return turns, ok
	})
}

// openBoth opens the workload, and the schedule. A file of given times goes first:
// what it makes pointless in the workload is said before what is wrong with that.
func openBoth(s *spec.Run) (prompts *workload.Workload, arrivals *schedule.Schedule, err error) {
	if s.Workload.Dataset == "" && s.Schedule.File != "" {
		if arrivals, err = openSchedule(s, &workload.Workload{}); err != nil {
			return nil, nil, err
		}
		if err := ownLengths(s, arrivals); err != nil {
			return nil, nil, err
		}
	}
	if prompts, err = workload.Open(s.Workload, s.Seed); err != nil || arrivals != nil {
		return prompts, arrivals, err
	}
	if arrivals, err = openSchedule(s, prompts); err != nil {
		return nil, nil, err
	}
	return prompts, arrivals, ownLengths(s, arrivals)
}

func openSchedule(s *spec.Run, prompts *workload.Workload) (*schedule.Schedule, error) {
	if n := prompts.Timed(); n > 0 && s.Schedule.Unset() {
		due := prompts.Times()
		at := func(i int) schedule.Arrival { return schedule.Arrival{Due: due(i)} }
		return schedule.NewTimed(s.Schedule, schedule.Rows{N: n, At: at}, s.Seed)
	}
	if s.Schedule.File != "" {
		if trace, err := workload.ReadTrace(s.Schedule.File); err != nil {
			return nil, fmt.Errorf("reading the schedule: %w", err)
		} else if trace != nil {
			return fromTrace(s, trace)
		}
	}
	arrivals, err := schedule.New(s.Schedule, s.Seed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, misusef("there is no file %s, which schedule.file (--trace) names", s.Schedule.File)
	}
	return arrivals, err
}

// fromTrace is the schedule of a published trace: its arrivals and its lengths.
func fromTrace(s *spec.Run, trace *workload.Trace) (*schedule.Schedule, error) {
	row := trace.Rows()
	at := func(i int) schedule.Arrival {
		r := row(i)
		return schedule.Arrival{Due: r.DueNs, PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens}
	}
	return schedule.NewTimed(s.Schedule, schedule.Rows{N: trace.Len(), At: at, Sized: true, Failed: trace.Failed()}, s.Seed)
}

// ownLengths refuses what the workload says of lengths where all are those of given
// times, and it would do nothing. Defaults are not refused: a saved run file has
// them.
func ownLengths(s *spec.Run, arrivals *schedule.Schedule) error {
	rows, _ := arrivals.Given()
	if !rows.Sized || s.Schedule.File == "" {
		return nil
	}
	if names := s.Workload.Filters(); names != "" && s.Workload.Dataset == "" {
		return misusef("the lengths of %s, which schedule.file (--trace) names, are its own, and the workload's filters (%s) choose among others: give the file as workload.dataset (--dataset) instead, or leave the filters out", s.Schedule.File, names)
	}
	input, output := true, true
	for i := 0; i < rows.N && (input || output); i++ {
		row := rows.At(i)
		input, output = input && row.PromptTokens > 0, output && row.OutputTokens > 0
	}
	w, usual := &s.Workload, workload.Options{}.Filled()
	var idle []string
	if input && w.Input != "" && w.Input != usual.Input {
		idle = append(idle, "workload.input (--input)")
	}
	if output && w.Output != "" && w.Output != usual.Output {
		idle = append(idle, "workload.output (--output)")
	}
	if input && output && w.Lengths != "" {
		idle = append(idle, "workload.lengths (--lengths)")
	}
	if idle == nil {
		return nil
	}
	return misusef("the lengths of %s, which schedule.file (--trace) names, are its own, so that %s would do nothing: leave that out", s.Schedule.File, strings.Join(idle, " and "))
}

// longWait is how late the first given time is due that a run warns of.
const longWait = time.Minute

// givenNotes say which rows of given times are left out, and what is late.
func givenNotes(s *spec.Run, arrivals *schedule.Schedule) (notes []string) {
	rows, used := arrivals.Given()
	if rows.N > 0 {
		if first := time.Duration(rows.At(0).Due); first > longWait {
			notes = append(notes, fmt.Sprintf("warning: nothing is sent for %s: that long after the beginning of %s the first of its given times is due; take it off the times in the file to begin at once", conf.Duration(first.Round(time.Second)), cmp.Or(s.Schedule.File, s.Workload.Dataset)))
		}
	}
	if rows.Failed > 0 {
		notes = append(notes, fmt.Sprintf("%d rows of %s are of requests that failed, and are left out", rows.Failed, s.Schedule.File))
	}
	if left := int64(rows.N) - used; left > 0 {
		why := fmt.Sprintf("%d measured requests", s.Schedule.Requests)
		if s.Schedule.Duration > 0 {
			why = fmt.Sprintf("a measured phase of %s", s.Schedule.Duration)
		}
		notes = append(notes, fmt.Sprintf("of %d given times the first %d are used, enough for %s; %d are left out", rows.N, used, why, left))
	}
	return notes
}

// converseNotes say what a rate means for conversations.
func converseNotes(s *spec.Run, prompts *workload.Workload) []string {
	turns, ok := prompts.MeanTurns()
	if !ok {
		return nil
	}
	if rate := s.Schedule.Rate; rate > 0 && s.Workload.SessionShare > 0 && s.Workload.SessionShare < 1 {
		return []string{fmt.Sprintf("%.4g arrivals a second that bring %.4g requests each are %.4g requests a second", rate, turns, rate*turns)}
	} else if rate > 0 {
		return []string{fmt.Sprintf("%.4g conversations a second of %.4g turns each are %.4g requests a second", rate, turns, rate*turns)}
	}
	return []string{fmt.Sprintf("conversations of %.4g turns each", turns)}
}

// ErrInterrupted says that a run was interrupted while it was being prepared.
var ErrInterrupted = errors.New("interrupted before anything was measured")

// prepareUntil is prepare, ended also by the wish to stop: there are no answers
// yet to wait for.
func (t *target) prepareUntil(ctx context.Context, stop <-chan struct{}, prompts *workload.Workload) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := t.prepare(ctx, prompts)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// prepare finds out what the server is and takes.
func (t *target) prepare(ctx context.Context, prompts *workload.Workload) error {
	clock := wire.NewClock()
	tr := t.choice.New(clock)
	defer tr.Close()
	if err := t.awaitReady(ctx, tr, clock); err != nil {
		return err
	}
	t.identify(ctx, tr)
	synthetic := prompts.Synthetic()
	q, ok := prompts.At(0, 0, 0)
	if err := prompts.Err(); err != nil {
		return err
	}
	if !ok {
		return errors.New("the workload has no requests")
	}
	words := prompts.Words()
	if synthetic {
		tokens := q.OutputTokens
		q = prompts.Probe(words)
		q.OutputTokens = tokens
	}
	first, err := t.preflight(ctx, tr, clock, q)
	if err != nil {
		return err
	}
	if synthetic {
		return t.calibrate(ctx, tr, clock, prompts, words, first)
	}
	return nil
}

// unfinished says how to save what was recorded.
func unfinished(dir string, err error) error {
	return &Failure{
		Saw:  fmt.Sprintf("recording the run: %v", err),
		Help: fmt.Sprintf("What was recorded is kept in %s; `fermata recover %s` finishes it.", filepath.Join(dir, "journal"), dir),
	}
}

// folder chooses the run's folder, which must not hold a run yet.
func folder(out, name string) (string, error) {
	if out == "" {
		base := time.Now().Format("20060102-150405")
		if name != "" {
			base += "-" + strings.Map(fileRune, name)
		}
		out = filepath.Join("runs", base)
		for n := 2; exists(out); n++ {
			out = filepath.Join("runs", fmt.Sprintf("%s.%d", base, n))
		}
	}
	if exists(filepath.Join(out, "requests.parquet")) || exists(filepath.Join(out, "journal")) {
		return "", misusef("%s holds a run already: give another folder with --out, or leave --out away", out)
	}
	return out, writable(out)
}

// writable says why a folder cannot be made, or written into, by trying in what
// there is of its path; it leaves nothing behind.
func writable(dir string) error {
	above := dir
	for !exists(above) && filepath.Dir(above) != above {
		above = filepath.Dir(above)
	}
	probe, err := os.MkdirTemp(above, ".fermata-")
	if err != nil {
		if info, bad := os.Stat(above); bad == nil && !info.IsDir() {
			return misusef("the run's folder %s cannot be written: %s is a file; give another with --out", dir, above)
		}
		return fmt.Errorf("the run's folder %s cannot be written: %w; give another with --out", dir, err)
	}
	return os.Remove(probe)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fileRune keeps what is safe in a file's name.
func fileRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
		return r
	}
	return '-'
}

// Judge reads the recording in dir and says what can be claimed from it, as the
// run was judged when it was made, with settings over that.
func Judge(dir string, sets []conf.Setting, version string) (*metrics.Result, error) {
	a, err := reopen(dir, sets)
	if err != nil {
		return nil, err
	}
	defer a.rec.Close()
	return a.result(version)
}

// A reopened run is a recording with its run file, as it is to be judged now.
type reopened struct {
	dir   string
	rec   *recording.Recording
	meta  recording.Meta
	spec  *spec.Run
	judge metrics.Options
}

// reopen reads a run's folder; the caller closes its recording.
func reopen(dir string, sets []conf.Setting) (*reopened, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return nil, err
	}
	a := &reopened{dir: dir, rec: rec, meta: rec.Meta()}
	if a.spec, err = spec.Again(filepath.Join(dir, "run.yaml"), []byte(a.meta.RunYAML), sets); err == nil {
		a.judge, err = a.spec.Judge()
	}
	if err != nil {
		rec.Close()
		return nil, err
	}
	return a, nil
}

// result judges the recording.
func (a *reopened) result(version string) (*metrics.Result, error) {
	dir, rec, meta, s := a.dir, a.rec, a.meta, a.spec
	samples, err := rec.Samples()
	if err != nil {
		return nil, err
	}
	judge := a.judge
	judge.Cost = termsOf(s)
	r, err := metrics.Evaluate(rec, meta, samples, judge)
	if err != nil {
		return nil, fmt.Errorf("judging %s: %w", dir, err)
	}
	if r.Load.Arrivals, err = arrivals(rec, meta, s); err != nil {
		return nil, fmt.Errorf("judging %s: %w", dir, err)
	}
	if r.Load.Spent, err = spent(rec, s); err != nil {
		return nil, fmt.Errorf("judging %s: %w", dir, err)
	}
	r.Warnings = append(r.Warnings, caveats(s, &meta, r)...)
	if err := showExample(rec, r.Checks); err != nil {
		return nil, fmt.Errorf("judging %s: %w", dir, err)
	}
	r.Tool = metrics.Tool{Name: "fermata", Version: version}
	r.Run = metrics.Run{Name: s.Name, Labels: meta.Labels, Interrupted: meta.Interrupted}
	r.Run.Target, r.Run.Model = whomAsked(s)
	if s.Simulated != "" {
		r.Run.Target = "simulated: " + s.Simulated
	}
	if r.Simulation, err = simulationOf(meta); err != nil {
		return nil, fmt.Errorf("judging %s: %w", dir, err)
	}
	if meta.RunYAML != "" {
		r.Run.Seed = &s.Seed
	}
	if r.Run.Name == "" {
		r.Run.Name = filepath.Base(filepath.Clean(dir))
	}
	return r, nil
}

// mostShown bounds the text of an answer in a result, in bytes.
const mostShown = 600

// showExample adds to the first answer that failed its check what it said, if
// texts were kept.
func showExample(rec *recording.Recording, c *metrics.Checks) error {
	if c == nil || c.Example == nil {
		return nil
	}
	text, _, err := rec.Answer(c.Example.Index)
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	c.Example.Text = text
	return err
}

// writeResult keeps the result beside its recording.
func writeResult(dir string, r *metrics.Result) error {
	var b strings.Builder
	if err := report.JSON(&b, []*metrics.Result{r}); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
