package experiment

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fermata/capacity"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
)

// RejudgeCapacity says what the recording of a server's search, in dir, tells of the
// objectives of settings: nothing is asked. It holds only near the rate at which the
// search ended; a result says so where its ending is capacity.NotBracketed.
func RejudgeCapacity(dir string, sets []conf.Setting) ([]*capacity.Result, error) {
	old, state, err := foundIn(dir)
	if err != nil {
		return nil, err
	}
	a, err := reopen(dir, sets)
	if err != nil {
		return nil, err
	}
	defer a.rec.Close()
	var all []*capacity.Result
	for _, objective := range a.judge.SLO {
		met, err := metrics.NewPredicate(objective, a.judge, a.meta.TimeScale)
		if err != nil {
			return nil, err
		}
		o := capacity.Options{Allowed: met.Allowed(), Precision: old.Precision, Patience: patience(objective)}
		if o, err = o.Filled(); err != nil {
			return nil, fmt.Errorf("objective %q: %w", objective.Text, err)
		}
		fixed, err := judgedAgain(a.rec, met, state.Fixed)
		if err != nil {
			return nil, fmt.Errorf("judging %s: %w", dir, err)
		}
		r := o.Rejudged(state, fixed)
		r.Objective, r.Joint, r.Target, r.Seed = objective.Text, len(objective.Terms) > 1, old.Target, old.Seed
		all = append(all, r)
	}
	return all, nil
}

// foundIn is what a search found, in its own folder, and all that it knew.
func foundIn(dir string) (*capacity.Result, *capacity.State, error) {
	data, err := os.ReadFile(filepath.Join(dir, capacityFile))
	var old capacity.Result
	if err == nil && strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		return nil, nil, &Misuse{Failure{Saw: dir + " holds several searches, and one at a time is judged again", Help: "Judge the run at the rate that one held: `fermata report` with the numbered folder in it and --slo."}}
	}
	if err == nil {
		err = json.Unmarshal(data, &old)
	}
	if err != nil {
		return nil, nil, &Misuse{Failure{Saw: fmt.Sprintf("%s is not the folder of one search of a server: %s", dir, err), Help: "Give the folder that `fermata capacity URL --out DIR` wrote."}}
	}
	kept, err := readStates(filepath.Join(dir, searchFile))
	if err != nil {
		return nil, nil, err
	}
	for _, s := range kept.all {
		if s.Probe != nil && s.Probe.RPS > 0 && s.Fixed.Requests > 0 && len(kept.all) == 1 {
			return &old, s, nil
		}
	}
	return nil, nil, &Misuse{Failure{
		Saw:  fmt.Sprintf("the search in %s has no run at a fixed rate, and at a rate that changes nothing is in steady state (it ended so: %s)", dir, old.Reason),
		Help: "Search for the other objective itself.",
	}}
}

// judgedAgain is the run at the fixed rate by another predicate.
func judgedAgain(src recording.Source, met *metrics.Predicate, was capacity.Fixed) (capacity.Fixed, error) {
	f := capacity.Fixed{LnRPS: was.LnRPS, Sent: was.Sent, Tokens: was.Tokens, SpanNs: was.SpanNs}
	last := int64(-1)
	var missed, judged []bool
	for t := range src.Traces(recording.AllColumns) {
		if t.Phase != recording.Measured {
			continue
		}
		ok, known, err := met.Met(&t)
		if err != nil {
			return f, err
		}
		if t.Index != last { // a later try of the same request replaces what came before
			missed, judged = append(missed, false), append(judged, false)
		}
		missed[len(missed)-1], judged[len(judged)-1], last = !ok, known, t.Index
	}
	for i, m := range missed {
		if !judged[i] {
			f.Unjudged++
			continue
		}
		if m {
			f.Misses = append(f.Misses, f.Requests)
		}
		if len(missed) == len(was.Ahead) {
			f.Ahead = append(f.Ahead, was.Ahead[i])
		}
		f.Requests++
	}
	if f.Requests == 0 && f.Unjudged > 0 {
		return f, fmt.Errorf("none of its %d answers at the fixed rate has a first-token deadline: their prompts are not among the lengths that the deadlines are valid for", f.Unjudged)
	}
	if f.Requests == 0 {
		return f, fmt.Errorf("none of its requests was sent at the fixed rate of the search")
	}
	return f, src.Err()
}
