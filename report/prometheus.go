package report

import (
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// Prometheus writes results in Prometheus's text exposition format, for a push
// gateway or a textfile collector: times in seconds, distributions as summaries,
// one series a run by its label run. Percentiles that too few requests stand behind
// are left out. docs/formats.md has the names.
func Prometheus(w io.Writer, results []*metrics.Result) error {
	if len(results) == 0 {
		return errNoResults
	}
	e := exposition{families: map[string]*family{}, seen: map[string]bool{}}
	names := runNames(results)
	for i, r := range results {
		e.result(r, labels{{"run", names[i]}})
	}
	_, err := w.Write(e.text())
	return err
}

// Labels of a series, in the order in which they are written.
type labels [][2]string

func (l labels) with(more ...string) labels {
	all := slices.Clone(l)
	for i := 0; i+1 < len(more); i += 2 {
		all = append(all, [2]string{more[i], more[i+1]})
	}
	return all
}

func (l labels) String() string {
	var parts []string
	for _, p := range l {
		parts = append(parts, p[0]+`="`+labelEscapes.Replace(p[1])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

var (
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// A family is all series of one name, which stand together.
type family struct{ help, kind, samples string }

type exposition struct {
	order    []string
	families map[string]*family
	seen     map[string]bool // series: an objective may be given twice
}

func (e *exposition) text() []byte {
	var b bytes.Buffer
	for _, name := range e.order {
		f := e.families[name]
		b.WriteString("# HELP " + name + " " + helpEscapes.Replace(f.help) + "\n# TYPE " + name + " " + f.kind + "\n" + f.samples)
	}
	return b.Bytes()
}

func (e *exposition) add(name, kind, help, suffix string, l labels, v float64) {
	name = "fermata_" + name
	f := e.families[name]
	if f == nil {
		f = &family{help: help, kind: kind}
		e.families[name] = f
		e.order = append(e.order, name)
	}
	if series := name + suffix + l.String(); !e.seen[series] {
		e.seen[series] = true
		f.samples += series + " " + promNumber(v) + "\n"
	}
}

func promNumber(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case math.IsNaN(v):
		return "NaN"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// gauge is a figure, unless it is absent.
func (e *exposition) gauge(name, help string, l labels, v *float64) {
	if v != nil {
		e.add(name, "gauge", help, "", l, *v)
	}
}

func (e *exposition) count(name, help string, l labels, n int64) {
	e.add(name, "gauge", help, "", l, float64(n))
}

// promUnit is how Prometheus names a unit, and what a value is multiplied with.
func promUnit(unit string) (suffix string, factor float64) {
	switch {
	case unit == "ns":
		return "_seconds", 1e-9
	case strings.HasSuffix(unit, "/s"):
		return "_" + strings.TrimSuffix(unit, "/s") + "_per_second", 1
	}
	return "", 1
}

// seconds of nanoseconds, to the digit: 20 ms is 0.02.
func seconds(ns float64) float64 { return ns / 1e9 }

func scaled(factor, v float64) float64 {
	if factor < 1 {
		return seconds(v)
	}
	return v
}

// dist is a summary, with the ends of its percentiles and its shares above bounds
// beside it.
func (e *exposition) dist(name, help string, l labels, d *metrics.Dist) {
	if d == nil {
		return
	}
	unit, factor := promUnit(d.Unit)
	if unit == "_tokens_per_second" && name == "tps" {
		name = "answer_speed"
	}
	full := name + unit
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		if q.Status == statusInsufficient {
			continue
		}
		e.add(full, "summary", help, "", l.with("quantile", promNumber(q.P)), scaled(factor, q.Value))
	}
	if d.Mean != nil {
		e.add(full, "summary", help, "_sum", l, scaled(factor, *d.Mean*float64(d.N)))
	}
	e.add(full, "summary", help, "_count", l, float64(d.N))
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		if q.Status == statusInsufficient {
			continue
		}
		for _, end := range []struct {
			name, help string
			v          *float64
		}{{"_low", "Lower end of the interval of ", q.Low}, {"_high", "Upper end of the interval of ", q.High}} {
			if end.v != nil {
				e.add(name+end.name+unit, "gauge", end.help+"fermata_"+full+", by quantile.", "", l.with("quantile", promNumber(q.P)), scaled(factor, *end.v))
			}
		}
	}
	if d.Max != nil {
		e.add(name+"_max"+unit, "gauge", "The largest value of fermata_"+full+".", "", l, scaled(factor, *d.Max))
	}
	e.count(name+"_missing_requests", "Measured requests without a value in fermata_"+full+".", l, d.Missing)
	for i := range d.Over {
		e.add(name+"_over_ratio", "gauge", "Share of the values of fermata_"+full+" above a bound in seconds.", "", l.with("bound", promNumber(seconds(d.Over[i].Value))), d.Over[i].Share)
	}
}

func (e *exposition) result(r *metrics.Result, l labels) {
	e.add("run_info", "gauge", "What was run.", "", l.with("target", term.Plain(r.Run.Target), "model", term.Plain(r.Run.Model), "tool_version", term.Plain(r.Tool.Version)), 1)
	e.add("window_seconds", "gauge", "Length of the measured phase.", "", l, seconds(float64(r.Window.EndNs-r.Window.StartNs)))
	e.gauge("offered_requests_per_second", "Measured requests due, over the length of their phase.", l, r.Load.OfferedRPS)
	e.gauge("achieved_requests_per_second", "Measured requests sent, over the same.", l, r.Load.AchievedRPS)
	e.count("measured_requests", "Requests due in the measured phase.", l, r.Load.Measured)
	e.count("in_flight_max_requests", "The most requests under way at once.", l, r.Load.InFlightMax)
	e.dist("lateness", "How late requests left: the sender's own delay.", l, r.Load.Lateness)
	e.judged(r.Outcomes, &r.Metrics, r.SLO, l)
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		t := r.Targets[name]
		e.judged(t.Outcomes, &t.Metrics, t.SLO, l.with("target", term.Plain(name)))
	}
	for i := range r.Goodput {
		g := &r.Goodput[i]
		of := l.with("objective", term.Plain(g.Objective))
		e.gauge("goodput_requests_per_second", "Requests a second that met every term of the objective.", of, g.RequestsS)
		e.gauge("goodput_tokens_per_second", "Their output tokens a second.", of, g.TokensS)
	}
	e.gauge("throughput_requests_per_second", "Requests that finished in the window, over its length.", l, r.Throughput.RequestsPerS)
	e.gauge("throughput_output_tokens_per_second", "Output tokens that arrived in the window, over its length.", l, r.Throughput.OutputTokensPerSArrived)
	e.gauge("throughput_input_tokens_per_second", "Input tokens of requests that finished in the window, over its length.", l, r.Throughput.InputTokensPerS)
	if s := r.Stalls; s != nil {
		e.add("stalled_answers_ratio", "gauge", "Share of ok answers that stalled at the reading pace.", "", l, s.Share)
	}
	if f := r.Freezes; f != nil {
		e.add("frozen_answers_ratio", "gauge", "Share of ok answers that a silence of over a second stopped.", "", l, f.Share)
	}
	e.fluid(r, l)
	e.add("client_bound", "gauge", "1 where this machine was the bottleneck.", "", l, flagOf(r.Health.ClientBound))
	e.gauge("exact_stamps_ratio", "Share of arrivals that are stamped to 1 ms or better.", l, r.Health.ExactShare)
	e.codes(r, l)
}

// judged is what one target, or all together, came to.
func (e *exposition) judged(outcomes map[string]int64, m *metrics.Metrics, slo []metrics.Verdict, l labels) {
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		e.count("requests", "Measured requests by outcome.", l.with("outcome", term.Plain(name)), outcomes[name])
	}
	for _, x := range measures {
		e.dist(x.key, meaningOf("Metrics."+x.key), l, x.of(m))
	}
	for i := range slo {
		v := &slo[i]
		of := l.with("objective", term.Plain(v.Objective))
		for _, verdict := range []string{metrics.Met, metrics.Missed, metrics.Open} {
			e.add("objective_verdict", "gauge", "1 for the verdict on the objective, 0 for the others.", "", of.with("verdict", verdict), flagOf(v.Verdict == verdict))
		}
		e.gauge("objective_share_ratio", "Share of requests that met the objective.", of, v.Share)
		e.gauge("objective_share_low_ratio", "Lower end of the interval of that share.", of, v.ShareLow)
		e.gauge("objective_share_high_ratio", "Upper end of the interval of that share.", of, v.ShareHigh)
		if v.Value != nil {
			unit, factor := promUnit(v.Unit)
			e.add("objective_value"+unit, "gauge", "The percentile that the objective is about.", "", of, scaled(factor, *v.Value))
		}
	}
}

func (e *exposition) fluid(r *metrics.Result, l labels) {
	for i := range r.Fluidity {
		f := &r.Fluidity[i]
		of := l.with("variant", f.Variant, "gap", promNumber(seconds(float64(f.TargetGapNs))))
		if f.Edge != "" {
			of = of.with("edge", f.Edge, "carry", f.Carry)
		}
		if f.SlackNs != nil {
			of = of.with("slack", promNumber(seconds(float64(*f.SlackNs))))
		}
		e.dist("fluidity_index", "Fluidity index at the target gap in seconds.", of, f.Index)
		e.gauge("fluid_answers_ratio", "Share of requests with a fluidity index of 0.9 or more.", of, f.ShareAtLeast0_9)
	}
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		e.gauge("fluid_rate_tokens_per_second", "Fluid token generation rate; absent where it is infeasible.", l.with("variant", f.Variant), f.TokensPS)
	}
	for _, x := range []struct {
		by string
		v  *float64
	}{{"tpot", r.Rates.TPOT}, {"tail_tbt", r.Rates.TailTBT}, {"fluid", r.Rates.Fluid}} {
		e.gauge("rate_tokens_per_second", "Tokens a second by median TPOT, by p99 TBT and by the fluid rate.", l.with("by", x.by), x.v)
	}
}

// codes are those of warnings and blind spots.
func (e *exposition) codes(r *metrics.Result, l labels) {
	for _, w := range r.Warnings {
		e.count("warning", "1 for each kind of warning that the run has.", l.with("code", term.Plain(w.Code)), 1)
	}
	for i := range r.BlindSpots {
		s := &r.BlindSpots[i]
		e.count("blind_spot", "1 for each blind spot, alone or against another run.", l.with("code", term.Plain(s.Code), "against", term.Plain(s.Against)), 1)
	}
}

func flagOf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// meaningOf is what a key of result.json means, as Markdown-free text.
func meaningOf(name string) string {
	for i := range keys {
		if keys[i].name == name {
			return strings.ReplaceAll(keys[i].meaning, "`", "")
		}
	}
	return name
}
