package report

import (
	"fmt"

	"fermata/internal/term"
	"fermata/metrics"
)

var mlperfTones = map[string]term.Tone{metrics.Valid: term.Good, metrics.Invalid: term.Bad}

// mlperfText is the verdict by MLPerf's rules in one sentence.
func mlperfText(m *metrics.MLPerf) string {
	if m == nil {
		return ""
	}
	return "MLPerf " + m.Scenario + ": " + m.Verdict + "."
}

// mlperf is the run by MLPerf's rules: the verdict, every rule, the figures that it
// would submit, and our attainment beside them.
func mlperf(m *metrics.MLPerf) block {
	if m == nil {
		return block{}
	}
	b := block{title: "MLPerf " + joined(", ", m.Scenario, m.Benchmark) + " (LoadGen's rules and ranks)"}
	b.facts = append(b.facts, fact{m.Verdict, fmt.Sprintf("%s queries of %s requests", term.Count(m.Queries), term.Count(m.Requests)), mlperfTones[m.Verdict]})
	for _, r := range m.Rules {
		verdict := metrics.Met
		if !r.Met {
			verdict = metrics.Missed
		}
		b.facts = append(b.facts, fact{verdict, r.Rule + ": " + term.Plain(r.Text), verdictTones[verdict]})
	}
	for _, p := range m.Percentiles {
		b.fact("percentile", mlperfPercentile(&p))
	}
	for _, e := range m.Estimates {
		b.fact("estimate", fmt.Sprintf("%s p%g %s · the %s highest are discarded (early stopping)",
			e.Metric, 100*e.P, mlperfNs(e.Value), term.Count(e.Discarded)))
	}
	rate := func(v *float64, unit string) string {
		if v == nil {
			return ""
		}
		return term.Number(*v, false) + " " + unit
	}
	b.fact("scheduled", rate(m.ScheduledRPS, "samples/s"))
	b.fact("completed", joined(" · ", rate(m.SamplesPerS, "samples/s"), rate(m.TokensPerS, "output tokens/s")))
	b.fact("loss", lossText(m.Loss))
	if v := m.Attainment; v != nil {
		b.facts = append(b.facts, fact{"ours", judgement(v) + " · jointly, and " + v.Verdict, verdictTones[v.Verdict]})
	}
	for _, d := range m.Differences {
		b.notes = append(b.notes, d.Text)
	}
	return b
}

func mlperfPercentile(p *metrics.MLPerfPercentile) string {
	text := fmt.Sprintf("%s p%g %s (rank %s of %s)", p.Metric, 100*p.P, mlperfNs(p.Value), term.Count(p.Rank), term.Count(p.N))
	if p.Bound != nil && p.Over != nil {
		text += fmt.Sprintf(" · %s over %s", term.Count(*p.Over), term.Duration(float64(*p.Bound)))
	}
	return text
}

func mlperfNs(v *int64) string {
	if v == nil {
		return "is that of a failed request"
	}
	return term.Duration(float64(*v))
}

// lossText is what a server scenario gives less than the offline one.
func lossText(l *metrics.MLPerfLoss) string {
	if l == nil || l.Samples == nil {
		return ""
	}
	text := term.Percent(*l.Samples) + " of the samples/s"
	if l.Tokens != nil {
		text += " and " + term.Percent(*l.Tokens) + " of the tokens/s"
	}
	text += " of the offline run " + term.Plain(l.Against)
	if !l.Valid {
		text += ", though not both runs are valid"
	}
	return text
}
