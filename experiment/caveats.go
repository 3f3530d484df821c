package experiment

import (
	"cmp"
	"errors"
	"fmt"

	"fermata/cost"
	"fermata/metrics"
	"fermata/recording"
	"fermata/schedule"
	"fermata/spec"
)

// caveats are the warnings that follow from a run's settings, which metrics does
// not know.
func caveats(s *spec.Run, meta *recording.Meta, r *metrics.Result) []metrics.Warning {
	var all []metrics.Warning
	if s.Connect.Insecure {
		all = append(all, insecure)
	}
	for i, one := range s.Each() {
		name := ""
		if len(s.Targets) > 0 {
			name = s.Targets[i].Name
		}
		if why := unpriced(s, name, one.Target.Model); why != "" {
			all = append(all, metrics.Warning{
				Code: "no_price", Text: why,
				Help: "Nothing is said of what the run cost. Correct the model's name in the file of prices, or add its price.",
			})
		}
	}
	if w := stale(s, meta); w != nil {
		all = append(all, *w)
	}
	all = append(all, promised(s, r)...)
	whole := meta.Interrupted == "" && schedule.Planned(meta.WindowWhy)
	if why := tooFew(s, r.Load.Measured, s.Schedule.Requests, r.Sessions != nil); whole && why != "" {
		all = append(all, metrics.Warning{
			Code: "too_few_rows", Text: why,
			Help: "The run is as long as its file. Give a longer one, or ask for as many requests as it has.",
		})
	}
	return all
}

// insecure is the warning of a run that took any certificate.
var insecure = metrics.Warning{
	Code: "insecure", Text: "certificates were not verified (--insecure)",
	Help: "Whoever is on the way could have answered instead of the server. Trust its authority with --ca-file instead.",
}

// unpriced says that the prices of a run have none for a model; empty where they
// do, and where there are no prices of tokens.
func unpriced(s *spec.Run, name, model string) string {
	if !s.Prices.Given() || s.Prices.File != "" {
		return ""
	}
	if _, err := s.Prices.Rate(cmp.Or(s.Judging.Provider, name), model); err != nil && !errors.Is(err, cost.ErrHourly) {
		return named(name, fmt.Errorf("what the run costs is not known: %w", err)).Error()
	}
	return ""
}

// tooFew says that fewer requests were measured than wanted, and why; empty where
// there were as many.
func tooFew(s *spec.Run, measured, wanted int64, conversing bool) string {
	if measured >= wanted {
		return ""
	}
	why := "the trace has no more rows"
	switch given := s.Schedule.Unset() || s.Schedule.Kind == schedule.Given || s.Schedule.File != ""; {
	case conversing:
		why = "no more conversations came, and those with a failed turn ended early"
	case !given:
		why = "the data set ended (--once)"
	}
	return fmt.Sprintf("%d of %d requests were measured: %s", measured, wanted, why)
}
