package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fermata/metrics"
)

// csvColumns is the header of CSV, a contract with people's scripts.
var csvColumns = []string{"run", "metric", "unit", "stat", "p", "value", "low", "high", "n", "missing", "status"}

// CSV writes results in long form: a row a statistic, in the units of
// result.json, absent values empty. docs/result.md lists the rows.
func CSV(w io.Writer, results []*metrics.Result) error {
	if len(results) == 0 {
		return errNoResults
	}
	c := longForm{out: csv.NewWriter(w)}
	c.out.Write(csvColumns) // errors are kept by the writer
	for i, r := range results {
		c.run = r.Run.Name
		if c.run == "" {
			c.run = fmt.Sprintf("run %d", i+1)
		}
		c.result(r)
	}
	c.out.Flush()
	return c.out.Error()
}

// A longForm writes rows of one run.
type longForm struct {
	out *csv.Writer
	run string
}

// A row is one line; nil is empty.
type row struct {
	metric, unit, stat  string
	p, value, low, high *float64
	n, missing          *int64
	status              string
}

func (c *longForm) row(r row) {
	c.out.Write([]string{
		c.run, r.metric, r.unit, r.stat, number(r.p), number(r.value), number(r.low), number(r.high),
		integer(r.n), integer(r.missing), r.status,
	})
}

// figure writes a row of one value, or none where it is absent.
func (c *longForm) figure(metric, unit, stat string, v *float64) {
	if v != nil {
		c.row(row{metric: metric, unit: unit, stat: stat, value: v})
	}
}

func (c *longForm) count(metric, unit, stat string, n int64) {
	v := float64(n)
	c.figure(metric, unit, stat, &v)
}

// simulation comes first: it says that nothing of what follows was measured.
func (c *longForm) simulation(s *metrics.Simulation) {
	end := float64(s.EndNs)
	c.row(row{metric: "simulation", unit: "ns", stat: "end", value: &end, status: "simulated"})
	c.count("simulation", "iterations", "iterations", s.Iterations)
	c.figure("simulation", "1", "busy_share", &s.BusyShare)
	c.figure("simulation", "1", "prefill_share", &s.PrefillShare)
	c.figure("simulation", "1", "mixed_share", &s.MixedShare)
	c.figure("simulation", "1", "memory_share", s.MemoryShare)
	c.count("simulation", "requests", "evictions", s.Evictions)
	c.count("simulation", "tokens", "recomputed", s.Recomputed)
}

func (c *longForm) result(r *metrics.Result) {
	if s := r.Simulation; s != nil {
		c.simulation(s)
	}
	c.count("window", "ns", "start", r.Window.StartNs)
	c.count("window", "ns", "end", r.Window.EndNs)
	c.figure("load", "requests/s", "offered", r.Load.OfferedRPS)
	c.figure("load", "requests/s", "achieved", r.Load.AchievedRPS)
	c.count("load", "requests", "sent", r.Load.Sent)
	c.count("load", "requests", "measured", r.Load.Measured)
	if r.Load.Retried > 0 {
		c.count("load", "requests", "retried", r.Load.Retried)
		c.count("load", "tries", "earlier_tries", r.Load.EarlierTries)
	}
	c.count("load", "requests", "in_flight_max", r.Load.InFlightMax)
	c.figure("load", "requests", "in_flight_mean", r.Load.InFlightMean)
	c.dist("lateness", r.Load.Lateness)
	if a := r.Load.Arrivals; a != nil {
		mean := float64(a.MeanNs)
		c.count("arrivals", "gaps", "n", a.Gaps)
		c.figure("arrivals", "ns", "mean", &mean)
		c.figure("arrivals", "1", "cv", &a.CV)
		c.figure("arrivals", "1", "asked_cv", a.AskedCV)
		c.figure("arrivals", "1", "dispersion", a.Dispersion)
		c.figure("arrivals", "1", "ks", a.KS)
		c.figure("arrivals", "1", "ks_p", a.KSP)
		if s := a.Sent; s != nil {
			c.count("arrivals", "ns", "sent_mean", s.MeanNs)
			c.figure("arrivals", "1", "sent_cv", &s.CV)
			c.figure("arrivals", "1", "sent_ks", s.KS)
			c.figure("arrivals", "1", "sent_ks_p", s.KSP)
		}
	}
	c.counts("outcomes", r.Outcomes)
	for _, f := range r.Failures {
		status := f.Outcome + "/" + f.FailedAt + "/" + strconv.Itoa(int(f.HTTPStatus))
		count, tokens := float64(f.Count), float64(f.Tokens)
		c.row(row{metric: "failures", unit: "requests", stat: "count", value: &count, status: status})
		c.row(row{metric: "failures", unit: "tokens", stat: "tokens", value: &tokens, status: status})
	}
	c.counts("finish_reasons", r.FinishReasons)
	for _, m := range measures {
		c.dist(m.key, m.of(&r.Metrics))
	}
	if s := r.Stalls; s != nil {
		c.count("stalls", "ns", "pace", s.PaceNs)
		c.count("stalls", "requests", "requests_with_any", s.RequestsWithAny)
		c.figure("stalls", "1", "share", &s.Share)
	}
	if f := r.Freezes; f != nil {
		c.count("freezes", "ns", "over", f.OverNs)
		c.count("freezes", "requests", "requests_with_any", f.RequestsWithAny)
		c.count("freezes", "requests", "answers", f.Answers)
		c.figure("freezes", "1", "share", &f.Share)
		if f.LongestNs != nil {
			c.count("freezes", "ns", "longest", *f.LongestNs)
		}
	}
	if k := r.Checks; k != nil {
		c.count("checks", "requests", "passed", k.Passed)
		c.count("checks", "requests", "failed", k.Failed)
		c.count("checks", "requests", "unchecked", k.Unchecked)
		c.figure("checks", "1", "share", &k.Share)
	}
	if r.Slow != nil {
		c.count("slow", "requests", "slow", *r.Slow)
	}
	if s := r.Sessions; s != nil {
		c.count("sessions", "sessions", "started", s.Started)
		c.count("sessions", "sessions", "ended_early", s.EndedEarly)
		c.count("sessions", "turns", "turns_unsent", s.TurnsUnsent)
	}
	c.figure("throughput", "requests/s", "requests", r.Throughput.RequestsPerS)
	c.figure("throughput", "tokens/s", "output_tokens_finished", r.Throughput.OutputTokensPerSFinished)
	c.figure("throughput", "tokens/s", "output_tokens_arrived", r.Throughput.OutputTokensPerSArrived)
	c.figure("throughput", "tokens/s", "input_tokens", r.Throughput.InputTokensPerS)
	c.fluid(r)
	c.objectives(r)
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		t := r.Targets[name]
		c.counts("targets/"+name+"/outcomes", t.Outcomes)
		for _, m := range measures {
			c.dist("targets/"+name+"/"+m.key, m.of(&t.Metrics))
		}
		c.verdicts("targets/"+name+"/", t.SLO)
	}
	c.figure("same_event_share", "1", "share", r.SameEventShare)
	c.figure("same_read_share", "1", "share", r.SameReadShare)
	c.figure("together_share", "1", "share", r.TogetherShare)
	if s := r.Server; s != nil {
		c.server(s)
	}
	c.health(&r.Health)
	for i := range r.BlindSpots {
		s := &r.BlindSpots[i]
		for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
			v := s.Figures[name]
			metric := "blind_spots/" + s.Code
			if s.Against != "" {
				metric += "/" + s.Against
			}
			c.row(row{metric: metric, unit: figureUnit(name), stat: name, value: &v, status: s.Code})
		}
	}
	for _, w := range r.Warnings {
		one := 1.0
		c.row(row{metric: "warnings", unit: "1", stat: "seen", value: &one, status: w.Code})
	}
}

func (c *longForm) fluid(r *metrics.Result) {
	for i := range r.Fluidity {
		f := &r.Fluidity[i]
		name := "fluidity/" + f.Variant + "/" + strconv.FormatInt(f.TargetGapNs, 10)
		if f.Edge != "" {
			name += "/" + f.Edge
		}
		if stated := asStated(r); !slices.Contains(stated, f) {
			name += "/" + f.Carry + "/" + strconv.FormatInt(*f.SlackNs, 10)
		}
		c.dist(name, f.Index)
		c.figure(name, "1", "share_at_least_0_9", f.ShareAtLeast0_9)
		c.count(name, "deadlines", "met", f.Met)
		c.count(name, "deadlines", "missed", f.Missed)
		if f.SlackNs != nil {
			c.count(name, "ns", "slack", *f.SlackNs)
		}
	}
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		name, status := "fluid_rate/"+f.Variant, "feasible"
		if !f.Feasible {
			status = "infeasible"
		}
		c.row(row{metric: name, unit: "tokens/s", stat: "rate", value: f.TokensPS, low: f.Low, high: f.High, status: status})
		if f.GapNs != nil {
			c.count(name, "ns", "gap", *f.GapNs)
		}
	}
	c.figure("rates", "tokens/s", "tpot", r.Rates.TPOT)
	c.figure("rates", "tokens/s", "tail_tbt", r.Rates.TailTBT)
	c.figure("rates", "tokens/s", "fluid", r.Rates.Fluid)
}

func (c *longForm) objectives(r *metrics.Result) {
	for i := range r.Goodput {
		g := &r.Goodput[i]
		name := "goodput/" + g.Objective
		c.figure(name, "requests/s", "requests", g.RequestsS)
		c.figure(name, "tokens/s", "tokens", g.TokensS)
		if g.Share != nil {
			c.row(row{metric: name, unit: "1", stat: "share", value: g.Share, low: g.ShareLow, high: g.ShareHigh})
		}
	}
	c.verdicts("", r.SLO)
	c.mlperf(r.MLPerf)
}

// mlperf is the run by MLPerf's rules.
func (c *longForm) mlperf(m *metrics.MLPerf) {
	if m == nil {
		return
	}
	for i := range m.Rules {
		r, status, seen := &m.Rules[i], metrics.Met, (*float64)(nil)
		if !r.Met {
			status = metrics.Missed
		}
		if r.Seen != nil {
			v := float64(*r.Seen)
			seen = &v
		}
		c.row(row{metric: "mlperf/" + r.Rule, unit: r.Unit, stat: "seen", value: seen, status: status})
	}
	of := func(metric, stat string, p float64, v *int64) {
		if v != nil {
			value := float64(*v)
			c.row(row{metric: "mlperf/" + metric, unit: "ns", stat: stat, p: &p, value: &value})
		}
	}
	for _, p := range m.Percentiles {
		of(p.Metric, "quantile", p.P, p.Value)
	}
	for _, e := range m.Estimates {
		of(e.Metric, "estimate", e.P, e.Value)
	}
	c.row(row{metric: "mlperf", unit: "requests/s", stat: "samples", value: m.SamplesPerS, status: m.Verdict})
	c.figure("mlperf", "tokens/s", "tokens", m.TokensPerS)
}

// verdicts are those of all requests, or of one target.
func (c *longForm) verdicts(prefix string, slo []metrics.Verdict) {
	for i := range slo {
		v := &slo[i]
		name := prefix + "slo/" + v.Objective
		c.row(row{metric: name, unit: v.Unit, stat: "value", value: v.Value, low: v.Low, high: v.High, status: v.Verdict})
		if v.Share != nil {
			c.row(row{metric: name, unit: "1", stat: "share", value: v.Share, low: v.ShareLow, high: v.ShareHigh, status: v.Verdict})
		}
	}
}

func (c *longForm) health(h *metrics.Health) {
	bound := int64(0)
	if h.ClientBound {
		bound = 1
	}
	c.count("health", "1", "client_bound", bound)
	c.figure("health", "1", "exact_share", h.ExactShare)
	c.figure("health", "cores", "cpu_max", h.CPUMax)
	if h.GCPauseMax != nil {
		c.count("health", "ns", "gc_pause_max", *h.GCPauseMax)
	}
	c.figure("health", "1", "reads_left_share", h.ReadsLeftShare)
	c.figure("health", "1", "cpu_pressure_max", h.CPUPressureMax)
	for _, n := range []struct {
		unit, stat string
		v          *int64
	}{{"ns", "loop_turn_max", h.LoopTurnMax}, {"cycles", "gc_cycles", h.GCCycles}, {"ns", "clock_step_max", h.ClockStepMax}} {
		if n.v != nil {
			c.count("health", n.unit, n.stat, *n.v)
		}
	}
	c.dist("read_lag", h.ReadLag)
	c.dist("canary", h.Canary)
	c.dist("bound_width", h.BoundWidth)
	c.dist("bounded_width", h.BoundedWidth)
}

func (c *longForm) server(s *metrics.Server) {
	c.count("server", "s", "seconds", s.Seconds)
	for _, f := range []struct {
		unit, stat string
		v          *float64
	}{
		{"requests", "running_mean", s.RunningMean},
		{"requests", "running_max", s.RunningMax},
		{"requests", "waiting_mean", s.WaitingMean},
		{"requests", "waiting_max", s.WaitingMax},
		{"1", "kv_usage_mean", s.KVUsageMean},
		{"1", "kv_usage_max", s.KVUsageMax},
		{"requests", "preemptions", s.Preemptions},
		{"1", "prefix_hit_share", s.PrefixHitShare},
		{"requests", "in_flight_mean", &s.InFlightMean},
		{"requests", "in_flight_max", &s.InFlightMax},
	} {
		c.figure("server", f.unit, f.stat, f.v)
	}
}

// dist writes the statistics of d; each carries the sizes that it rests on.
func (c *longForm) dist(metric string, d *metrics.Dist) {
	if d == nil {
		return
	}
	base := row{metric: metric, unit: d.Unit, n: &d.N, missing: &d.Missing}
	for _, s := range []struct {
		name  string
		value *float64
	}{{"mean", d.Mean}, {"sd", d.SD}, {"min", d.Min}, {"max", d.Max}} {
		if s.value != nil {
			r := base
			r.stat, r.value = s.name, s.value
			c.row(r)
		}
	}
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		r := base
		r.stat, r.p, r.value, r.low, r.high, r.status = "quantile", &q.P, &q.Value, q.Low, q.High, q.Status
		c.row(r)
	}
	for i := range d.Over {
		o := &d.Over[i]
		r := base
		r.unit = "1"
		r.stat, r.value, r.low, r.high = "over_"+number(&o.Value), &o.Share, o.Low, o.High
		c.row(r)
		r.stat, r.value, r.low, r.high = r.stat+"_with_missing", &o.ShareWithMissing, nil, nil
		c.row(r)
	}
}

func (c *longForm) counts(metric string, counts map[string]int64) {
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		c.count(metric, "requests", k, counts[k])
	}
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func integer(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}

// figureUnit is the unit of a blind spot's figure, which its name tells.
func figureUnit(name string) string {
	switch {
	case strings.Contains(name, "_ns"):
		return "ns"
	case strings.HasPrefix(name, "share"):
		return "1"
	}
	return "requests"
}
