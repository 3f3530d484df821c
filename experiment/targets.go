package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fermata/load"
	"fermata/spec"
	"fermata/workload"
)

// newTargets resolves whom a run asks: one, or several.
func newTargets(s *spec.Run, o Options) ([]*target, error) {
	var all []*target
	var secrets []string
	for i, one := range s.Each() {
		name, own := "", o
		if len(s.Targets) > 0 {
			name = s.Targets[i].Name
			of := func(say func(string, ...any)) func(string, ...any) {
				return func(format string, args ...any) { say("%s: %s", name, fmt.Sprintf(format, args...)) }
			}
			own.Say, own.Step = of(o.Say), of(o.Step)
		}
		t, err := newTarget(one, own)
		if err != nil {
			return nil, named(name, err)
		}
		t.name, t.ours = name, o.Quick
		secrets = append(secrets, t.secrets...)
		all = append(all, t)
	}
	// What one server says may hold what another was sent. The longest first: one
	// may contain another.
	slices.SortStableFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, t := range all {
		t.secrets = secrets
	}
	return all, nil
}

// named says which of several targets an error is about.
func named(name string, err error) error {
	if name == "" || err == nil || errors.Is(err, ErrInterrupted) {
		return err
	}
	var f *Failure
	if errors.As(err, &f) {
		return &Failure{fmt.Sprintf("target %s: %s", name, f.Saw), f.Help}
	}
	return fmt.Errorf("target %s: %w", name, err)
}

// give hands each target its prompts: of made-up ones its own, as their lengths
// will be fitted to its count of tokens.
func give(all []*target, s *spec.Run, prompts *workload.Workload) error {
	for i, t := range all {
		t.prompts = prompts
		if i > 0 && prompts.Synthetic() {
			var err error
			if t.prompts, err = workload.Open(s.Workload, s.Seed); err != nil {
				return err
			}
		}
		if prompts.Synthetic() && s.Expect != "stop" {
			t.options.IgnoreEOS = true // the lengths of answers are the workload's to say
		}
	}
	return nil
}

// prepareAll finds out what each target is and takes, one after the other.
func prepareAll(ctx context.Context, stop <-chan struct{}, all []*target) error {
	for _, t := range all {
		if err := t.prepareUntil(ctx, stop, t.prompts); err != nil {
			return named(t.name, err)
		}
	}
	return nil
}

// settle writes down what the targets turned out to be asked for, and gives all of
// them for the load.
func settle(s *spec.Run, all []*target) (load.Route, []load.Target, error) {
	route := load.Route{Block: s.Among == spec.Block, Seed: s.Seed}
	var whom []load.Target
	for i, t := range all {
		d, err := t.dialect()
		if err != nil {
			return route, nil, err
		}
		whom = append(whom, load.Target{Name: t.name, URL: t.url, Header: t.header, Dialect: d, Prompts: t.prompts, PromptLength: t.ours})
		if len(s.Targets) == 0 {
			s.Target.Model = t.options.Model
			continue
		}
		s.Targets[i].Model = t.options.Model
		route.Weights = append(route.Weights, s.Targets[i].Weight)
	}
	return route, whom, nil
}

// timeScale is how many simulated seconds pass in one: as the run says, else as
// the targets do, who must agree.
func timeScale(s *spec.Run, all []*target) (float64, error) {
	scale := s.Load.TimeScale
	for _, t := range all {
		switch told := t.scale; {
		case told == 0 || same(told, scale):
		case scale == 0:
			scale = told
		default:
			return 0, named(t.name, &Failure{
				fmt.Sprintf("the server's time runs %g times as fast, not %g times", told, scale),
				"Leave --time-scale away: the server says it. Targets of one run must agree.",
			})
		}
	}
	if scale == 0 {
		scale = 1
	}
	for _, t := range all {
		if t.scale == 0 && s.Load.TimeScale == 0 && !same(scale, 1) {
			return 0, named(t.name, &Failure{
				"the server does not say how fast its time runs, and another target does",
				"Give --time-scale if they are the same, or run them apart.",
			})
		}
	}
	s.Load.TimeScale = 0
	if !same(scale, 1) {
		s.Load.TimeScale = scale // the saved run file has it
	}
	return scale, nil
}

func same(a, b float64) bool { return math.Abs(a-b) < 1e-12*math.Max(math.Abs(a), math.Abs(b)) }

// labelsOf are the user's labels over what the servers said.
func labelsOf(s *spec.Run, all []*target) map[string]string {
	labels := map[string]string{}
	for _, t := range all {
		for label, value := range t.serverLabels() {
			if t.name != "" {
				label = t.name + "." + label
			}
			labels[label] = value
		}
	}
	labels["transport"], labels["transport_why"] = all[0].choice.Name, all[0].choice.Why
	maps.Copy(labels, s.Labels)
	return labels
}

// whomAsked are the addresses and the models of a run, as they may be shown.
func whomAsked(s *spec.Run) (address, model string) {
	var addresses, models []string
	for i, one := range s.Each() {
		at := one.PublicURL()
		if len(s.Targets) > 0 {
			at = s.Targets[i].Name + " " + at
		}
		addresses = append(addresses, at)
		if m := one.Target.Model; m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	return strings.Join(addresses, ", "), strings.Join(models, ", ")
}

// promptsErr is what went wrong with the prompts under way.
func promptsErr(all []*target) error {
	for _, t := range all {
		if err := t.prompts.Err(); err != nil {
			return err
		}
	}
	return nil
}
