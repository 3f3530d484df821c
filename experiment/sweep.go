package experiment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/cost"
	"fermata/internal/conf"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/report"
	"fermata/schedule"
)

// A Sweep is one load at several rates, or numbers of users.
type Sweep struct {
	Subject
	Rates   []string // requests a second; or
	Users   []string // of closed loops
	Offline bool     // and everything at once, to compare with
	Common  bool     // one seed for all; else each has the one after that of the load before
	GPUs    int      // of the system; 0: as the prices or the simulator's spec say
}

// A sweepPoint is one load of a sweep.
type sweepPoint struct {
	label string
	value *float64
	play  *play

	costs  cost.Amount // about what it will cost, where that is known
	priced bool
}

// Run plays every load into a folder of its own below that of the sweep, and says
// what they come to together. Loads that ended before are kept. Everything is read
// and checked before anything runs; budget is told then. An interrupted sweep has
// the loads that ended, and so has one of which a load failed, beside the error.
func (s *Sweep) Run(ctx context.Context, o Options) (*report.Sweep, string, error) {
	o.fill()
	first, err := s.read(s.settings(0)...)
	if err != nil {
		return nil, "", err
	}
	dir := o.Out
	if dir == "" {
		if dir, err = folder("", first.run.Name); err != nil {
			return nil, "", err
		}
	}
	kept, err := openSeries(dir, first.run.Seed)
	if err != nil {
		return nil, "", err
	}
	defer kept.end()
	purse, err := newSweepPurse(first)
	if err != nil {
		return nil, "", err
	}
	points, err := s.points(kept)
	if err != nil {
		return nil, "", err
	}
	if err := s.budget(points, kept, purse, o); err != nil {
		return nil, "", err
	}
	if err := kept.begin(); err != nil {
		return nil, "", err
	}
	out := &report.Sweep{
		Schema: report.SweepSchemaName, Tool: metrics.Tool{Name: "fermata", Version: o.Version}, System: first.system(), Knob: "rate", Seeds: "fresh",
	}
	if len(s.Users) > 0 {
		out.Knob = "concurrency"
	}
	if s.Common {
		out.Seeds = "common"
	}
	out.GPUs, out.From = first.gpus(s.GPUs)
	for i, p := range points {
		o.Step("load %d of %d: %s, seed %d", i+1, len(points), p.label, p.play.run.Seed)
		if why := purse.short(kept.kept(p.label, o.Version) != nil, p); why != "" {
			out.Stopped = why
			break
		}
		d, was, err := kept.play(ctx, p.label, purse.into(p.play), o)
		if errors.Is(err, ErrInterrupted) && len(out.Points) > 0 {
			out.Cut = true
			break
		}
		if err != nil {
			understand(out)
			return out, dir, err
		}
		if d.End.Interrupted != "" && !d.End.ByFailures {
			out.Cut = true
			break
		}
		if err := purse.pay(d.Result, was); err != nil {
			return out, dir, err
		}
		if penniless(d.Result) {
			out.Stopped = fmt.Sprintf("%s ended early: %s", p.label, d.Result.Window.Why)
			break
		}
		out.AddPoint(report.SweepPoint{Label: p.label, Value: p.value, Folder: filepath.Base(d.Dir), Kept: was}, d.Result)
	}
	understand(out)
	return out, dir, nil
}

// offlineLabel is that of everything at once.
const offlineLabel = "offline"

// settings are those of load number i; the one after the last is everything at once.
func (s *Sweep) settings(i int) []conf.Setting {
	switch {
	case i < len(s.Rates):
		return []conf.Setting{{Path: "schedule.rate", Value: s.Rates[i], From: "--rates"}}
	case i < len(s.Users):
		return []conf.Setting{{Path: "schedule.concurrency", Value: s.Users[i], From: "--concurrency"}}
	}
	return []conf.Setting{{Path: "schedule.kind", Value: schedule.All, From: "--offline"}}
}

// ofLoad are the settings of the subject that hold at load number i: everything at
// once has none of those that say when to ask.
func (s *Sweep) ofLoad(i int) Subject {
	if i < max(len(s.Rates), len(s.Users)) {
		return s.Subject
	}
	offline := s.Subject
	offline.Sets = slices.DeleteFunc(slices.Clone(s.Sets), func(c conf.Setting) bool {
		key, timed := strings.CutPrefix(c.Path, "schedule.")
		return timed && !slices.Contains([]string{"requests", "duration", "kind"}, key)
	})
	return offline
}

// points reads all loads, with the seeds that they have in the series.
func (s *Sweep) points(kept *series) ([]sweepPoint, error) {
	values, knob, flag := s.Rates, "rate-", "--rates"
	if len(s.Users) > 0 {
		values, knob, flag = s.Users, "users-", "--concurrency"
	}
	var mistakes conf.Mistakes
	var points []sweepPoint
	n := len(values)
	if s.Offline {
		n++
	}
	seeded := slices.ContainsFunc(s.Sets, func(c conf.Setting) bool { return c.Path == "seed" })
	for i := range n {
		p := sweepPoint{label: offlineLabel}
		if i < len(values) {
			v, err := strconv.ParseFloat(values[i], 64)
			if err != nil || !(v > 0) {
				return nil, conf.Mistakes{{File: flag, Text: fmt.Sprintf("takes numbers above 0, such as 1,2,4, not %q", values[i])}}
			}
			p.label, p.value = knob+values[i], &v
		}
		if slices.ContainsFunc(points, func(q sweepPoint) bool { return q.label == p.label }) {
			return nil, conf.Mistakes{{File: flag, Text: fmt.Sprintf("the load %s is given twice: leave one out", p.label)}}
		}
		sets := s.settings(i)
		seed := kept.plan.Seed
		if !s.Common {
			seed += uint64(i)
		}
		if !s.Common || !seeded {
			sets = append(sets, conf.Setting{Path: "seed", Value: fmt.Sprint(seed), From: "--seed"})
		}
		subject := s.ofLoad(i)
		var err error
		p.play, err = subject.read(sets...)
		if m, ok := err.(conf.Mistakes); ok {
			mistakes = addMistakes(mistakes, m)
			continue
		}
		if err != nil {
			return nil, err
		}
		p.play.run.Load.MaxCost = "" // the limit is the sweep's
		if err := kept.admit(p.label, p.play); err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, mistakes.Err()
}

// budget tells what is to come, before anything runs. It is an error where that
// costs more than it may.
func (s *Sweep) budget(points []sweepPoint, kept *series, purse *sweepPurse, o Options) error {
	var requests int64
	var costs cost.Amount
	priced := false
	var seconds float64
	open, ended := false, 0
	for i := range points {
		p := &points[i]
		n, took, err := p.play.length()
		if err != nil {
			return fmt.Errorf("%s: %w", p.label, err)
		}
		if r := kept.kept(p.label, o.Version); r != nil {
			ended++
			if err := purse.pay(r, false); err != nil {
				return err
			}
			continue
		}
		if p.costs, p.priced = p.play.costs(n); p.priced {
			costs, priced = costs.Plus(p.costs), true
		}
		requests += n
		seconds += took
		open = open || took <= 0 || n == 0
	}
	text := fmt.Sprintf("%d loads", len(points))
	if ended > 0 {
		text += fmt.Sprintf(" (%d were measured before)", ended)
	}
	text += fmt.Sprintf(", %s measured requests to ask", term.Count(requests))
	switch span := time.Duration(seconds * float64(time.Second)).Round(time.Second); {
	case points[0].play.sim != nil:
		text += ", in virtual time"
	case open && seconds > 0:
		text += fmt.Sprintf(", %s of load and as long as the answers of the others take", span)
	case open:
		text += ", as long as their answers take"
	default:
		text += fmt.Sprintf(", %s of load with warm-ups and the last answers on top", span)
	}
	if priced {
		text += fmt.Sprintf(", about %s %s with warm-ups", costs.Short(), points[0].play.run.Prices.Currency)
	}
	o.Step("%s", text)
	return purse.refuse(costs)
}
