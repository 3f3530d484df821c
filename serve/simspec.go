package serve

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/sim"
	"fermata/workload"
)

// simText is a simulator's spec as a server reads it: the system, and how the
// server behaves around it. What is asked when is left to those who ask.
type simText struct {
	sim.Options `yaml:",inline"`
	Flags       sim.Aliases `yaml:",inline"`
	Serve       simServe    `yaml:"serve"`

	Name     any `yaml:"name"` // of runs, as are the rest
	Workload any `yaml:"workload"`
	Schedule any `yaml:"schedule"`
	SLO      any `yaml:"slo"`
	Judge    any `yaml:"judge"`
	Labels   any `yaml:"labels"`
}

// simServe is what only a server has. The zero value sends each token at its time
// as an event of its own.
type simServe struct {
	Model   string           `yaml:"model"`   // name that is served; default that of the simulated model
	Answers workload.Lengths `yaml:"answers"` // tokens at which answers end by themselves; default as many as are asked for

	PerEvent int           `yaml:"tokens_per_event"` // tokens that an event gathers; default 1, or those of a speculative step
	PerWrite int           `yaml:"events_per_write"` // events that leave in one write; default 1
	Comments time.Duration `yaml:"comments"`         // a comment line after such a silence; default none
	Slow     slowing       `yaml:"slow"`
	Errors   failing       `yaml:"errors"`
	Buffer   int           `yaml:"buffer"` // emissions that may wait for a slow reader before it is cut; default 1024
}

// A slowing makes the events of some answers leave at least a gap apart, as over
// a slow connection.
type slowing struct {
	Share float64       `yaml:"share"`
	Gap   time.Duration `yaml:"gap"`
}

// A failing makes some answers fail. Requests with a purpose of their own
// (preflight, calibration) never do.
type failing struct {
	Share  float64  `yaml:"share"`
	Kinds  []string `yaml:"kinds"`  // equally likely; default status
	Status int      `yaml:"status"` // of kind status; default 503
}

// The kinds of a failing: those of a script that fit one that is simulated.
var simKinds = []string{failStatus, failHTML, failStall, failCut, failReset, failError, failNoFinish, failNoDone}

const defaultBuffer = 1024

// readSim reads a spec with settings over it.
func readSim(file string, data []byte, sets []conf.Setting) (*simText, error) {
	t := &simText{}
	doc, _ := conf.ReadWith(file, data, sets, t)
	doc.Report("", t.Flags.Into(&t.Options, doc.Has))
	doc.Report("", t.Zeros(doc.Has))
	t.Options = t.Options.In(filepath.Dir(file))
	if !doc.Has("seed") {
		t.Seed = 1
	}
	doc.Report("", t.Options.Check())
	doc.Report("serve", t.Serve.problems())
	if err := doc.Err(); err != nil {
		return nil, err
	}
	t.fill()
	return t, nil
}

func (t *simText) fill() {
	s := &t.Serve
	if s.Model == "" {
		s.Model = cmp.Or(t.Model, "Llama-3-8B")
		if t.Cost.Flat != nil {
			s.Model = cmp.Or(t.Model, "flat")
		}
		if strings.ContainsRune(s.Model, filepath.Separator) {
			s.Model = filepath.Base(filepath.Dir(s.Model))
		}
	}
	s.PerEvent, s.PerWrite = max(1, s.PerEvent), max(1, s.PerWrite)
	s.Buffer = cmp.Or(s.Buffer, defaultBuffer)
	if len(s.Errors.Kinds) == 0 {
		s.Errors.Kinds = []string{failStatus}
	}
	if p := t.Speculation; p != nil && p.Packing == sim.PackWrite && s.PerEvent == 1 {
		s.PerWrite = max(s.PerWrite, p.Gamma+1)
	}
}

func (s *simServe) problems() []conf.Problem {
	var r review
	share := func(path string, v float64) {
		if !(v >= 0 && v <= 1) {
			r.add(path, "must be from 0 to 1, not %g", v)
		}
	}
	share("slow.share", s.Slow.Share)
	share("errors.share", s.Errors.Share)
	notNegative(&r, "slow.gap", s.Slow.Gap)
	notNegative(&r, "comments", s.Comments)
	notNegative(&r, "tokens_per_event", s.PerEvent)
	notNegative(&r, "events_per_write", s.PerWrite)
	notNegative(&r, "buffer", s.Buffer)
	for i, kind := range s.Errors.Kinds {
		if !slices.Contains(simKinds, kind) {
			r.add(fmt.Sprintf("errors.kinds[%d]", i), "must be one of %s, not %q", strings.Join(simKinds, ", "), kind)
		}
	}
	if n := s.Errors.Status; n != 0 && (n < 400 || n > 599) {
		r.add("errors.status", "must be an error status from 400 to 599, not %d", n)
	}
	if s.Answers != "" {
		o := workload.Options{Output: s.Answers}
		for _, p := range o.Check() {
			r.add("answers", "%s", p.Text)
		}
	}
	return r
}
