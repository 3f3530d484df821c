package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
	"fermata/spec"
)

// A tuned is one system while it is tuned.
type tuned struct {
	of      *spec.TuneSystem
	subject Subject
	axes    [][]conf.Setting
	seed    uint64
	rounds  []round
	out     report.TunedSystem
}

// A round of sequential halving.
type round struct {
	arms     int
	requests int // measured, of each
}

// halving is how a budget of requests is spent on so many arms: ⌈log2 arms⌉ rounds
// with an equal share of it each, which the arms that are left share alike; the
// better half goes on (Karnin, Koren and Somekh, "Almost optimal exploration in
// multi-armed bandits", ICML 2013). One arm has one round.
func halving(arms, budget int) []round {
	n := max(1, int(math.Ceil(math.Log2(float64(arms)))))
	var all []round
	for range n {
		all = append(all, round{arms, budget / n / arms})
		arms = (arms + 1) / 2
	}
	return all
}

// fewestRequests is how many a trial has to have at least: fewer tell nothing.
const fewestRequests = 20

// Tune tries out the settings of every system with the same budget. Each trial is
// an ordinary run in a folder of its own; those that ended before are kept.
// Everything is read and checked, and the budget told, before anything runs.
func Tune(ctx context.Context, t *spec.Tune, o Options) (*report.Tuning, string, error) {
	o.fill()
	systems, err := tunedOf(t)
	if err != nil {
		return nil, "", err
	}
	dir := o.Out
	if dir == "" {
		if dir, err = folder("", "tune"); err != nil {
			return nil, "", err
		}
	}
	kept, err := openSeries(dir, t.Seed)
	if err != nil {
		return nil, "", err
	}
	defer kept.end()
	if kept.plan.Port == 0 && slices.ContainsFunc(t.Systems, func(s spec.TuneSystem) bool { return s.Command != "" }) {
		if kept.plan.Port, err = freePort(); err != nil {
			return nil, "", err
		}
	}
	for _, s := range systems {
		if err := s.check(kept.plan.Port); err != nil {
			return nil, "", err
		}
		s.budget(o)
	}
	out := &report.Tuning{
		Schema: report.TuneSchemaName, Tool: metrics.Tool{Name: "fermata", Version: o.Version}, Title: t.Title,
		Objectives: t.SLO, Budget: t.Budget, Rule: "sequential_halving",
	}
	for _, s := range systems {
		err := s.run(ctx, kept, o)
		if len(s.out.Rounds) > 0 {
			out.Systems = append(out.Systems, s.out)
		}
		if errors.Is(err, ErrInterrupted) && len(out.Systems) > 0 {
			out.Cut = true
			break
		}
		if err != nil {
			return nil, dir, err
		}
	}
	return out, dir, nil
}

// tunedOf reads the systems, all mistakes at once.
func tunedOf(t *spec.Tune) ([]*tuned, error) {
	var all []*tuned
	var mistakes conf.Mistakes
	for i := range t.Systems {
		one, path := &t.Systems[i], fmt.Sprintf("systems[%d]", i)
		s := &tuned{of: one, seed: t.Seed, out: report.TunedSystem{Name: one.Name, Close: [][]report.Setting{}}}
		if one.Spec != "" {
			s.subject.File = one.Spec
			var err error
			if s.subject.Data, err = os.ReadFile(one.Spec); err != nil {
				mistakes = append(mistakes, t.At(path+".spec", "cannot be read: "+err.Error()))
				continue
			}
			if s.subject.simulated() && one.Command != "" {
				mistakes = append(mistakes, t.At(path+".command", "starts a server, and spec is a simulator's, which needs none: leave one of them out"))
				continue
			}
			if !s.subject.simulated() && one.Command == "" {
				mistakes = append(mistakes, t.At(path+".command", "is missing: spec is a run file of a server, which has to be started again with other settings"))
				continue
			}
		}
		name := spec.SimKey
		if one.Command != "" {
			name = func(key string) string { return key }
		}
		var err error
		if s.axes, err = axesOf("settings", one.Settings, name); err != nil {
			for _, m := range err.(conf.Mistakes) {
				mistakes = append(mistakes, t.At(path+".settings", strings.TrimPrefix(m.File, "settings ")+": "+m.Text))
			}
			continue
		}
		// Load that goes on would be most of a short trial that its settings cannot carry.
		s.subject.Sets = append(s.subject.Sets, conf.Setting{Path: "schedule.drain", Value: "quiet", From: "tune"})
		for _, set := range []map[string]string{t.Set, one.Set} {
			for _, key := range slices.Sorted(maps.Keys(set)) {
				s.subject.Sets = append(s.subject.Sets, conf.Setting{Path: key, Value: set[key], From: path + ".set"})
			}
		}
		s.subject.Sets = append(s.subject.Sets, conf.Setting{Path: "slo", Value: "[]"})
		for k, text := range t.SLO {
			s.subject.Sets = append(s.subject.Sets, conf.Setting{Path: "slo", Value: text, From: fmt.Sprintf("slo[%d]", k), Append: true})
		}
		s.out.Arms = product(s.axes)
		s.rounds = halving(s.out.Arms, t.Budget)
		if n := s.rounds[0].requests; n < fewestRequests {
			mistakes = append(mistakes, t.At("budget", fmt.Sprintf("leaves %d requests to each of the %d settings of %s in the first round, which tells nothing: give %d at least, or fewer settings",
				n, s.out.Arms, one.Name, fewestRequests*s.out.Arms*len(s.rounds))))
		}
		all = append(all, s)
	}
	return all, mistakes.Err()
}

// trialPlay is the play of some settings in a round; none are the default ones.
func (s *tuned) trialPlay(chosen []conf.Setting, r int, port int) (*play, error) {
	sets := []conf.Setting{
		{Path: "schedule.requests", Value: fmt.Sprint(s.rounds[r].requests), From: "budget"},
		{Path: "seed", Value: fmt.Sprint(s.seed + uint64(r)), From: "seed"},
	}
	if s.of.Command == "" {
		return s.subject.read(append(sets, chosen...)...)
	}
	values := s.of.Values(chosen, port)
	url, _ := spec.Filled(s.of.URL, values)
	p, err := s.subject.read(append(sets, conf.Setting{Path: "target.url", Value: url, From: "url"})...)
	if err == nil {
		p.server, _ = spec.Filled(s.of.Command, values)
	}
	return p, err
}

// check reads the plays of all arms before any runs.
func (s *tuned) check(port int) error {
	var mistakes conf.Mistakes
	for n := range s.out.Arms {
		_, err := s.trialPlay(combination(s.axes, n), 0, port)
		if found, ok := err.(conf.Mistakes); ok {
			mistakes = addMistakes(mistakes, found)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.of.Name, err)
		}
	}
	if err := mistakes.Err(); err != nil {
		return err
	}
	p, err := s.trialPlay(nil, 0, port)
	if err != nil {
		return err
	}
	if s.out.System = p.system(); s.of.Command != "" {
		s.out.System = s.of.Command
	}
	return nil
}

// budget tells what is to come.
func (s *tuned) budget(o Options) {
	var parts []string
	all := 0
	for _, r := range s.rounds {
		parts = append(parts, fmt.Sprintf("%d × %d", r.arms, r.requests))
		all += r.arms * r.requests
	}
	last := s.rounds[len(s.rounds)-1].requests
	text := fmt.Sprintf("%s: %d settings; rounds of %s requests, and the default settings with %d: %d measured requests", s.of.Name, s.out.Arms, strings.Join(parts, ", "), last, all+last)
	if p, err := s.trialPlay(combination(s.axes, 0), 0, 1); err == nil {
		switch rate := p.run.Schedule.Rate; {
		case p.sim != nil:
			text += ", in virtual time"
		case rate > 0:
			text += fmt.Sprintf(", %.1f minutes of load besides starts, warm-ups and last answers", float64(all+last)/rate/60)
		}
		text += spending(p.run, int64(all+last))
	}
	o.Step("%s", text)
}

// run plays the rounds.
func (s *tuned) run(ctx context.Context, kept *series, o Options) error {
	arms := make([][]conf.Setting, s.out.Arms)
	for n := range arms {
		arms[n] = combination(s.axes, n)
	}
	for r := range s.rounds {
		last := r == len(s.rounds)-1
		of := report.TuneRound{Requests: int64(s.rounds[r].requests), Seed: s.seed + uint64(r)}
		s.out.Rounds = append(s.out.Rounds, of)
		now := &s.out.Rounds[r]
		for k, arm := range arms {
			o.Step("%s, round %d of %d, %d of %d: %s", s.of.Name, r+1, len(s.rounds), k+1, len(arms), armLabel(arm))
			x, err := s.trial(ctx, arm, r, kept, o)
			if err != nil {
				return err
			}
			now.Trials = append(now.Trials, x)
		}
		order := ranked(now.Trials)
		if last {
			s.conclude(now.Trials, order)
			break
		}
		var better [][]conf.Setting
		for _, i := range order[:s.rounds[r+1].arms] {
			better = append(better, arms[i])
		}
		arms = better
	}
	o.Step("%s: default settings", s.of.Name)
	x, err := s.trial(ctx, nil, len(s.rounds)-1, kept, o)
	if err != nil {
		return err
	}
	s.out.Default = &x
	return nil
}

// ranked are the trials' places from the best on: by goodput, and where that is the
// same by the mean latency; the first named first.
func ranked(all []report.TuneTrial) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	value := func(v *float64, none float64) float64 {
		if v == nil {
			return none
		}
		return *v
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(
			-cmp.Compare(value(all[a].GoodRPS, -1), value(all[b].GoodRPS, -1)),
			cmp.Compare(value(all[a].E2EMean, math.Inf(1)), value(all[b].E2EMean, math.Inf(1))),
		)
	})
	return order
}

// conclude takes the best of the last round and says what is near it.
func (s *tuned) conclude(all []report.TuneTrial, order []int) {
	best := all[order[0]]
	if best.GoodRPS == nil {
		return
	}
	s.out.Best = &best
	remark := func(code, format string, args ...any) {
		s.out.Notes = append(s.out.Notes, report.TuneRemark{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	for _, i := range order[1:] {
		if x := &all[i]; x.GoodRPS != nil && best.Low != nil && *x.GoodRPS >= *best.Low {
			s.out.Close = append(s.out.Close, x.Settings)
		}
	}
	if n := len(s.out.Close); n == 1 {
		remark("close", "another of the last round's settings is within the interval of the best: more requests would tell them apart")
	} else if n > 1 {
		remark("close", "%d of the last round's other settings are within the interval of the best: more requests would tell them apart", n)
	}
	if best.Share != nil && *best.Share >= 1 {
		remark("too_light", "with the best settings every request met the objectives: the load is too light to show what they can do; offer more")
	}
	for i, set := range best.Settings {
		if a := s.axes[i]; len(a) > 2 && (set.Value == a[0].Value || set.Value == a[len(a)-1].Value) {
			remark("at_an_end", "the best %s is the %s of those that were tried: the optimum may lie beyond", set.Key, map[bool]string{true: "first", false: "last"}[set.Value == a[0].Value])
		}
	}
}

// defaultLabel is that of the default settings.
const defaultLabel = "default"

// armLabel is what settings are called among folders.
func armLabel(chosen []conf.Setting) string {
	if len(chosen) == 0 {
		return defaultLabel
	}
	var parts []string
	for _, c := range chosen {
		parts = append(parts, c.Path[strings.LastIndexByte(c.Path, '.')+1:]+"="+strings.Map(fileRune, c.Value))
	}
	return strings.Join(parts, ",")
}

// trial plays one arm in a round. A server that does not come up with its settings
// is a finding, not an error.
func (s *tuned) trial(ctx context.Context, arm []conf.Setting, r int, kept *series, o Options) (report.TuneTrial, error) {
	p, err := s.trialPlay(arm, r, kept.plan.Port)
	if err != nil {
		return report.TuneTrial{}, fmt.Errorf("%s: %w", s.of.Name, err)
	}
	label := filepath.Join(s.of.Name, fmt.Sprintf("round-%d", r+1), armLabel(arm))
	if err := kept.admit(label, p); err != nil {
		return report.TuneTrial{}, err
	}
	if err := kept.begin(); err != nil {
		return report.TuneTrial{}, err
	}
	d, was, err := s.served(ctx, label, p, kept, o)
	var refused launchError
	if errors.As(err, &refused) {
		o.Say("%s", refused)
		return report.TuneTrial{Settings: settingsOf(arm), Tuned: len(arm) > 0, Folder: label, Failed: refused.Error()}, nil
	}
	if err != nil {
		return report.TuneTrial{}, err
	}
	if d.End.Interrupted != "" && !d.End.ByFailures {
		return report.TuneTrial{}, ErrInterrupted
	}
	x := report.NewTrial(settingsOf(arm), d.Result)
	x.Folder, x.Kept = label, was
	return x, s.count(d)
}

// served plays, with the server that the settings need.
func (s *tuned) served(ctx context.Context, label string, p *play, kept *series, o Options) (d *Done, was bool, err error) {
	if p.server == "" || kept.kept(label, o.Version) != nil {
		return kept.play(ctx, label, p, o)
	}
	url, _ := spec.Filled(s.of.URL, map[string]string{"port": fmt.Sprint(kept.plan.Port)})
	// Beside the run's folder, which is to be empty.
	at := launch{Command: p.server, URL: url, Health: s.of.Health, Ready: s.of.Ready, Log: filepath.Join(kept.dir, label+".log")}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	starting, done := context.WithCancel(ctx)
	go func() {
		select {
		case <-o.Stop:
			done()
		case <-starting.Done():
		}
	}()
	s.out.Effort.Starts++
	server, err := at.start(starting)
	done()
	if err != nil {
		return nil, false, err
	}
	d, was, err = kept.play(ctx, label, p, o)
	if err != nil && !server.alive() {
		err = launchError{fmt.Sprintf("the server ended while it was measured (%s): %s", exitText(server.err), server.lastWords())}
	}
	return d, was, errors.Join(err, server.stop())
}

// count adds what a run took.
func (s *tuned) count(d *Done) error {
	rec, err := recording.Open(d.Dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	s.out.Effort.Runs++
	first, last := int64(math.MaxInt64), int64(0)
	for t := range rec.Traces(0) {
		s.out.Effort.Requests++
		first, last = min(first, t.Due), max(last, t.End.Or(t.Due))
	}
	if last > first {
		s.out.Effort.Minutes += float64(last-first) / 60e9
	}
	return rec.Err()
}
