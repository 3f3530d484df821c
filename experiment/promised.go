package experiment

import (
	"fmt"
	"slices"
	"strings"

	"fermata/cost"
	"fermata/metrics"
	"fermata/spec"
)

// promised are the warnings of a cost that is spread over a capacity: how far that
// one can be relied on, and whether it is this run's at all.
func promised(s *spec.Run, r *metrics.Result) []metrics.Warning {
	if r.Cost == nil || r.Cost.Basis != cost.ByCapacity {
		return nil
	}
	c := &s.Judging.Capacity
	var all []metrics.Warning
	warn := func(code, text, help string) {
		all = append(all, metrics.Warning{Code: code, Text: text, Help: help})
	}
	if of := system(s); c.Target != "" && c.Target != of {
		warn("cost_other_target", fmt.Sprintf("the capacity is that of %s, and the run is of %s", c.Target, of),
			"Hours of one system say nothing about the tokens of another: give the capacity of the system that the run measured.")
	}
	if other := slices.DeleteFunc(slices.Clone(s.SLO), func(own string) bool { return metrics.SameObjective(own, c.Objective) }); c.Objective != "" && len(other) > 0 {
		warn("cost_other_objective", fmt.Sprintf("the capacity is that under %q, and the run is judged by %q", c.Objective, strings.Join(other, "; ")),
			"What is promised decides what can be served: give the capacity under the run's objective, or judge the run by that of the capacity (--slo).")
	}
	var rest []string
	for _, caveat := range c.Caveats {
		switch caveat {
		case cost.CaveatRough:
			warn("cost_rough", "the capacity was searched for to over 10% only: a first look", "Search with --precision 5% before relying on its cost.")
		case cost.CaveatClientBound:
			warn("cost_client_bound", "whoever asked was the bottleneck in the capacity's search: nothing is known of the system", "Search from a machine with more cores, or with nothing else to do.")
		case cost.CaveatLowerBound:
			warn("cost_lower_bound", fmt.Sprintf("nothing missed the objective in the capacity's search: it is at least %.4g requests/s, and the cost at most what is told", c.RPS), "")
		case cost.CaveatUnsteady:
			warn("cost_unsteady", "requests kept piling up at the rate of the capacity, which therefore is too high, and the cost too low", "Search with a smaller --precision.")
		default:
			rest = append(rest, caveat)
		}
	}
	if len(rest) > 0 {
		warn("cost_doubtful", "the capacity's search warned: "+strings.Join(rest, ", "), "Its document says more about each.")
	}
	if !(c.Low > 0 && c.High > 0) {
		warn("cost_no_interval", "the capacity has no interval, and neither has its cost", "Search without --method bisect, and to the end.")
	}
	return all
}

// system is whom a run asked, as a search of a capacity names its target.
func system(s *spec.Run) string {
	if s.Simulated != "" {
		return s.Simulated
	}
	address, model := whomAsked(s)
	return strings.TrimSpace(address + " " + model)
}
