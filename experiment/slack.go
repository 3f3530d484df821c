package experiment

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"fermata/deadline"
	"fermata/internal/term"
	"fermata/workload"
)

// A SlackPlan says how the slack comes about. The zero value gives none.
type SlackPlan struct {
	Lengths string           // published lengths of the declared workload; empty for none
	Promise deadline.Promise // its acceptable load
	Class   string           // of user; empty for no cap
}

const slackPrompts = 20_000 // of the declared workload

// slacken gives the file its slack, from what was declared.
func (pr *profiling) slacken(f *deadline.File) error {
	return pr.plan.Slack.slacken(f, pr.curve.At, float64(pr.pingNs), pr.seed, pr.o.Say)
}

// slacken gives a file with a curve its slack; networkNs is the network's part of
// the curve.
func (p *SlackPlan) slacken(f *deadline.File, curve func(tokens float64) float64, networkNs float64, seed uint64, say func(string, ...any)) error {
	if p.Lengths == "" && p.Class == "" {
		return nil
	}
	rule := &deadline.SlackRule{Class: p.Class}
	if p.Class != "" {
		limit, err := deadline.Cap(p.Class)
		if err != nil {
			return err
		}
		rule.Cap = limit
	}
	if p.Lengths != "" {
		prompts, err := declared(p.Lengths, seed)
		if err != nil {
			return err
		}
		promise := p.Promise.Filled()
		s, err := deadline.LoadSlack(prompts, curve, networkNs, promise, seed)
		if err != nil {
			return err
		}
		rule.Workload, rule.Load, rule.Share, rule.ByLoad = p.Lengths, promise.Load, promise.Share, time.Duration(s).Round(time.Microsecond)
		if beyond := countBeyond(prompts, f.Valid.PromptTokens[1]); beyond > 0 {
			say("%.1f %% of the declared prompts are longer than the %s tokens that the curve is valid for: the slack takes it for granted there", 100*float64(beyond)/float64(len(prompts)), term.Count(int64(f.Valid.PromptTokens[1])))
		}
	}
	if slices.Contains(f.Flags, deadline.LoadDependent) {
		rule.Load = p.Promise.Filled().Load
		for _, b := range f.Band {
			rule.Shared = append(rule.Shared, deadline.Knot{Tokens: b.Tokens, Time: time.Duration(deadline.SharedDue(curve(float64(b.Tokens)), networkNs, p.Promise)).Round(time.Microsecond)})
		}
	}
	slack := rule.Settle()
	f.Slack, f.SlackRule = &slack, rule
	return nil
}

// Reference reads deadlines files of several endpoints of a model and makes one of
// them that all can be ranked by: the least of their curves at each length, and one
// slack for all. Left out are curves with flags, which is said.
func Reference(paths []string, p SlackPlan, say func(string, ...any)) (*deadline.File, error) {
	files := make([]*deadline.File, len(paths))
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, MissingFile("there is no deadlines file " + path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading deadlines: %w", err)
		}
		if files[i], err = deadline.Read(path, data); err != nil {
			return nil, err
		}
	}
	f, skipped, err := deadline.Reference(files, paths)
	if err != nil {
		return nil, err
	}
	if len(skipped) > 0 {
		say("left out, as they are flagged: %s", strings.Join(skipped, "; "))
	}
	return f, p.slacken(f, f.CurveAt, 0, referenceSeed, say)
}

// A MissingFile says that a file which a command was given is not there.
type MissingFile string

// Error names it.
func (m MissingFile) Error() string { return string(m) }

// referenceSeed makes the slack of a reference the same whenever it is made.
const referenceSeed = 1

// declared are the prompt lengths of a published workload.
func declared(name string, seed uint64) ([]int32, error) {
	w, err := workload.Open(workload.Options{Lengths: name}, seed)
	if err != nil {
		return nil, err
	}
	lengths := make([]int32, 0, slackPrompts)
	for i := range int64(slackPrompts) {
		s, ok := w.Shape(i, 0, 0)
		if !ok {
			return nil, errors.New("the declared workload ended early")
		}
		lengths = append(lengths, s.PromptTokens)
	}
	return lengths, nil
}

func countBeyond(lengths []int32, longest int32) (n int) {
	for _, l := range lengths {
		if l > longest {
			n++
		}
	}
	return n
}
