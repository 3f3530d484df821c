package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/cost"
	"fermata/metrics"
)

// A Statistic is one number of a result, as people name it: server_queue.p50,
// gap_longest.max, scheduling_delay.over25s, rates.fluid, slo1.share, busy_share.
// ParseStatistic makes one.
type Statistic struct {
	Name     string
	PerMille int   // of a percentile; 0 without
	OverNs   int64 // of a share of exceedances; 0 without

	Metric, Stat string // the parts of the name: ttft_due and p99; failed_share and nothing
	Better       string // lower or higher; empty where neither is

	of func(r *metrics.Result) (v *float64, unit string)

	rests func(m *metrics.Metrics) *metrics.Dist // that it is a percentile of, or follows from one …
	p     float64                                // … which is this
}

// Insufficient says that r has too few requests for it, or for the percentile that it
// rests on.
func (s *Statistic) Insufficient(r *metrics.Result) bool {
	if s.Name == fluidStatistic {
		return slices.ContainsFunc(r.FluidRate, func(f metrics.FluidRate) bool {
			return f.Variant == metrics.Decode && f.Status == statusInsufficient
		})
	}
	if s.rests == nil {
		return false
	}
	q := at(s.rests(&r.Metrics), s.p)
	return q != nil && q.Status == statusInsufficient
}

// Of is the number, with its unit; nil where the result does not have it.
func (s *Statistic) Of(r *metrics.Result) (v *float64, unit string) { return s.of(r) }

// fluidStatistic is the statistic whose status is that of its own interval.
const fluidStatistic = "rates.fluid"

// single numbers of a result.
var wholes = map[string]struct {
	unit  string
	of    func(*metrics.Result) *float64
	rests func(*metrics.Metrics) *metrics.Dist // where it follows from a percentile …
	p     float64                              // … which is this
}{
	"failed_share": {unit: "share", of: func(r *metrics.Result) *float64 {
		if r.Load.Measured == 0 {
			return nil
		}
		v := float64(r.Load.Measured-r.Outcomes["ok"]) / float64(r.Load.Measured)
		return &v
	}},
	"requests_per_s":                 {unit: "requests/s", of: func(r *metrics.Result) *float64 { return r.Throughput.RequestsPerS }},
	"output_tokens_per_s":            {unit: "tokens/s", of: func(r *metrics.Result) *float64 { return r.Throughput.OutputTokensPerSArrived }},
	"rates.tpot":                     {unit: "tokens/s", of: func(r *metrics.Result) *float64 { return r.Rates.TPOT }, rests: func(m *metrics.Metrics) *metrics.Dist { return m.TPOT }, p: .5},
	"rates.tail_tbt":                 {unit: "tokens/s", of: func(r *metrics.Result) *float64 { return r.Rates.TailTBT }, rests: func(m *metrics.Metrics) *metrics.Dist { return m.TBT }, p: .99},
	fluidStatistic:                   {unit: "tokens/s", of: func(r *metrics.Result) *float64 { return r.Rates.Fluid }},
	"busy_share":                     {unit: "share", of: ofSimulation(func(s *metrics.Simulation) *float64 { return &s.BusyShare })},
	"prefill_share":                  {unit: "share", of: ofSimulation(func(s *metrics.Simulation) *float64 { return &s.PrefillShare })},
	"mixed_share":                    {unit: "share", of: ofSimulation(func(s *metrics.Simulation) *float64 { return &s.MixedShare })},
	"memory_share":                   {unit: "share", of: ofSimulation(func(s *metrics.Simulation) *float64 { return s.MemoryShare })},
	"evictions":                      {unit: "requests", of: ofSimulation(func(s *metrics.Simulation) *float64 { v := float64(s.Evictions); return &v })},
	"longest_gap.ns":                 {unit: "ns", of: ofLongest(func(g *metrics.SimulatedGap) float64 { return float64(g.Ns) })},
	"longest_gap.prefill_iterations": {unit: "iterations", of: ofLongest(func(g *metrics.SimulatedGap) float64 { return float64(g.PrefillIterations) })},
	"longest_gap.prompts":            {unit: "prompts", of: ofLongest(func(g *metrics.SimulatedGap) float64 { return float64(g.Prompts) })},
	"cost.per_million":               {of: ofCost(func(c *cost.Statement) string { return c.PerMillion })},
	"cost.per_million_good":          {of: ofCost(func(c *cost.Statement) string { return c.PerMillionGood })},
	"cost.per_good_request":          {of: ofCost(func(c *cost.Statement) string { return c.PerGoodRequest })},
	"failed": {unit: "requests", of: func(r *metrics.Result) *float64 {
		v := float64(r.Load.Measured - r.Outcomes["ok"])
		return &v
	}},
}

// what is better of single numbers and of distributions.
var (
	betterWhole = map[string]string{
		"failed": "lower", "failed_share": "lower", "requests_per_s": "higher", "output_tokens_per_s": "higher",
		"rates.tpot": "higher", "rates.tail_tbt": "higher", fluidStatistic: "higher",
		"longest_gap.ns": "lower", "evictions": "lower",
		"cost.per_million": "lower", "cost.per_million_good": "lower", "cost.per_good_request": "lower",
	}
	betterGroup = map[group]string{timing: "lower", freezing: "lower", speed: "higher"}
)

func ofSimulation(of func(*metrics.Simulation) *float64) func(*metrics.Result) *float64 {
	return func(r *metrics.Result) *float64 {
		if r.Simulation == nil {
			return nil
		}
		return of(r.Simulation)
	}
}

func ofLongest(of func(*metrics.SimulatedGap) float64) func(*metrics.Result) *float64 {
	return ofSimulation(func(s *metrics.Simulation) *float64 {
		if s.LongestGap == nil {
			return nil
		}
		v := of(s.LongestGap)
		return &v
	})
}

// costMetric is that of statistics in a currency.
const costMetric = "cost"

func ofCost(of func(*cost.Statement) string) func(*metrics.Result) *float64 {
	return func(r *metrics.Result) *float64 {
		if r.Cost == nil {
			return nil
		}
		a, err := cost.ParseAmount(of(r.Cost))
		if err != nil {
			return nil // there is no such amount
		}
		v := a.Float()
		return &v
	}
}

func currencyOf(r *metrics.Result) string {
	if r.Cost == nil {
		return ""
	}
	return r.Cost.Currency
}

const statisticHelp = "such as ttft_due.p99, scheduling_delay.over25s, gap_longest.max, rates.fluid, slo1.share or busy_share"

// ParseStatistic reads the name of a statistic.
func ParseStatistic(name string) (Statistic, error) {
	s := Statistic{Name: name}
	s.Metric, s.Stat, _ = strings.Cut(name, ".")
	if w, ok := wholes[name]; ok {
		s.Better = betterWhole[name]
		s.of = func(r *metrics.Result) (*float64, string) { return w.of(r), w.unit }
		if s.Metric == costMetric {
			s.of = func(r *metrics.Result) (*float64, string) { return w.of(r), currencyOf(r) }
		}
		s.rests, s.p = w.rests, w.p
		return s, nil
	}
	key, stat, ok := strings.Cut(name, ".")
	if number, is := strings.CutPrefix(key, "slo"); is && ok {
		return s, s.objective(number, stat)
	}
	at := slices.IndexFunc(measures, func(m measure) bool { return m.key == key })
	if key == "ttft" {
		at, s.Metric = 0, measures[0].key
	}
	if !ok || at < 0 {
		return s, fmt.Errorf("there is no statistic %q; they are %s", name, statisticHelp)
	}
	s.Better = betterGroup[measures[at].group]
	return s, s.distribution(measures[at], stat)
}

func (s *Statistic) distribution(m measure, stat string) error {
	take := func(of func(d *metrics.Dist) *float64, unit string) {
		s.of = func(r *metrics.Result) (*float64, string) {
			d := m.of(&r.Metrics)
			if d == nil {
				return nil, ""
			}
			if unit != "" {
				return of(d), unit
			}
			return of(d), d.Unit
		}
	}
	switch {
	case stat == "max":
		take(func(d *metrics.Dist) *float64 { return d.Max }, "")
	case stat == "min":
		take(func(d *metrics.Dist) *float64 { return d.Min }, "")
	case stat == "mean":
		take(func(d *metrics.Dist) *float64 { return d.Mean }, "")
	case strings.HasPrefix(stat, "p"):
		p, err := strconv.ParseFloat(stat[1:], 64)
		if s.PerMille = int(math.Round(p * 10)); err != nil || s.PerMille < 1 || s.PerMille > 999 || math.Abs(p*10-float64(s.PerMille)) > 1e-9 {
			return fmt.Errorf("%q is not a percentile between p0.1 and p99.9, such as p99 or p99.9", stat)
		}
		s.rests, s.p = m.of, float64(s.PerMille)/1000
		take(func(d *metrics.Dist) *float64 {
			if q := at(d, s.p); q != nil {
				return &q.Value
			}
			return nil
		}, "")
	case strings.HasPrefix(stat, "over"):
		bound, err := time.ParseDuration(stat[len("over"):])
		if err != nil || bound <= 0 {
			return fmt.Errorf("%q is not a bound such as over25s", stat)
		}
		s.OverNs = int64(bound)
		take(func(d *metrics.Dist) *float64 {
			for i := range d.Over {
				if int64(d.Over[i].Value) == s.OverNs {
					return &d.Over[i].Share
				}
			}
			return nil
		}, "share")
	default:
		return fmt.Errorf("a distribution has no %q; it has p50 and other percentiles, max, min, mean and over25s", stat)
	}
	return nil
}

// objective is about an objective of the run, from 1 in the order given.
func (s *Statistic) objective(number, stat string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || stat != "share" && stat != "met" {
		return fmt.Errorf("%q is no statistic of an objective; they are slo1.share and slo1.met (1 or 0)", s.Name)
	}
	s.Better = "higher"
	s.of = func(r *metrics.Result) (*float64, string) {
		if n > len(r.SLO) {
			return nil, ""
		}
		if v := r.SLO[n-1]; stat == "share" {
			return v.Share, "share"
		} else if v.Verdict == "met" {
			one := 1.0
			return &one, "1"
		}
		return new(float64), "1"
	}
	return nil
}
