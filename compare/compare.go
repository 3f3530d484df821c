// Package compare says what differs between systems that were offered the same
// load, and how sure that is. It takes what metrics made of their recordings.
//
// The unit of the tests is the run, never the request: requests under load come in
// bursts, and tests that take them as independent find differences between equals
// in half of the cases.
package compare

import (
	"errors"
	"fmt"
	"math"

	"fermata/internal/stats"
	"fermata/metrics"
)

// FewestRuns is how many runs a side it takes to test by runs. With fewer, means
// and shares are tested by batches of requests.
const FewestRuns = 5

// level of the adjusted p value below which a difference counts as found.
const level = 0.05

// A Run is one recording as its judge and its run file have it.
type Run struct {
	Name     string
	Path     string // where it was read, to know one run given twice; may be empty
	Result   *metrics.Result
	Requests []metrics.Request
	Load     []Fact // of the workload and its schedule, in a fixed order; nil where nobody knows
}

// A Fact is a key of a run file with its value.
type Fact struct{ Key, Value string }

// A System is one or more runs of the same.
type System struct {
	Name string
	Runs []Run
}

// A Measure is one statistic that is compared.
type Measure struct {
	Metric, Stat string
	Objective    string // that a share is of
	Unit         string
	Better       string  // lower or higher; empty where neither is
	Ratios       bool    // it is compared by its logarithm, as times and rates are
	Percentile   float64 // that it is; 0 for means, shares and rates

	// Insufficient says that a run has too few requests for the statistic, as its
	// result has it; nil where there is no such thing.
	Insufficient func(*metrics.Result) bool

	// Withheld says why values of runs, those of both systems, are shown and not tested,
	// such as Unlike; empty where they are tested. Nil where nothing is withheld.
	Withheld func([]*metrics.Result) string

	Of   func(*metrics.Result) *float64              // of a run; nil where it has none
	Each func(*metrics.Request) (v float64, ok bool) // of which a run's statistic is the mean; nil where there is no such thing
}

// Compare compares all further systems with the first, by the measures, which
// together are the family of questions that Holm's correction is over. An error
// means that there is nothing to ask; what cannot be compared is a Comparison that
// says why in Refused.
func Compare(systems []System, measures []Measure) (*Comparison, error) {
	if len(systems) < 2 {
		return nil, errors.New("comparing runs: two systems or more are needed")
	}
	c := &Comparison{Schema: Schema, Metrics: []Entry{}, Pairings: []Pairing{}, Shifts: []Shift{}, BlindSpots: []BlindSpot{}, Warnings: []metrics.Warning{}}
	for i := range systems {
		if len(systems[i].Runs) == 0 {
			return nil, fmt.Errorf("comparing runs: %s has none", systems[i].Name)
		}
		c.Systems = append(c.Systems, side(&systems[i]))
	}
	if c.Refused = refusal(systems); c.Refused != "" {
		return c, nil
	}
	c.costs(systems)
	for b := range systems[1:] {
		against := newMatch(&systems[0], &systems[b+1])
		for i := range measures {
			c.Metrics = append(c.Metrics, against.entry(&measures[i]))
		}
		c.Pairings = append(c.Pairings, against.pairing())
		c.Shifts = append(c.Shifts, against.shifts()...)
		c.BlindSpots = append(c.BlindSpots, against.blindSpots()...)
		c.Warnings = append(c.Warnings, against.warnings()...)
	}
	c.Warnings = append(c.Warnings, cautions(systems)...)
	c.correct(measures)
	return c, nil
}

func side(s *System) Side {
	first := s.Runs[0].Result
	out := Side{Name: s.Name, Target: first.Run.Target, Model: first.Run.Model, Runs: []string{}, Seeds: []uint64{}}
	for _, r := range s.Runs {
		out.Runs = append(out.Runs, r.Name)
		if r.Result.Run.Seed != nil {
			out.Seeds = append(out.Seeds, *r.Result.Run.Seed)
		}
		out.Requests += r.Result.Load.Measured
		out.OK += r.Result.Outcomes["ok"]
	}
	return out
}

// correct adjusts the p values of all entries as one family, and says which
// differences are found.
func (c *Comparison) correct(measures []Measure) {
	var ps []float64
	for i := range c.Metrics {
		if p := c.Metrics[i].P; p != nil {
			ps = append(ps, *p)
		}
	}
	adjusted := stats.Holm(ps)
	for i := range c.Metrics {
		e := &c.Metrics[i]
		if e.P == nil {
			continue
		}
		e.PAdjusted, adjusted = &adjusted[0], adjusted[1:]
		if e.Resolved = *e.PAdjusted < level; !e.Resolved {
			e.Why = Chance
			continue
		}
		e.Better = better(measures[i%len(measures)].Better, *e.Difference)
	}
}

func better(direction string, difference float64) string {
	switch {
	case direction == "" || math.Abs(difference) == 0:
		return ""
	case (difference < 0) == (direction == "lower"):
		return "b"
	}
	return "a"
}

// Worse says that a further system is found worse than the first in anything.
func (c *Comparison) Worse() bool {
	for i := range c.Metrics {
		if c.Metrics[i].Better == "a" {
			return true
		}
	}
	return false
}
