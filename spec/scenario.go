package spec

import (
	"fmt"
	"math"
	"strings"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/schedule"
)

// A scenario of MLPerf is a preset over the schedule: what was not given becomes
// what LoadGen does, and what contradicts it is a mistake.

// multiStreams is how many samples a multi-stream query has unless told.
const multiStreams = 8

// offlineMargin is by how much longer than its minimum an offline run is planned.
const offlineMargin = 1.1

// stage makes the schedule that of the scenario.
func (r *Run) stage(doc *conf.Doc) {
	if r.MLPerf.Scenario == "" || len(r.MLPerf.Check()) > 0 { // that is told elsewhere
		return
	}
	least := r.MLPerf.Filled()
	s := &r.Schedule
	doc.Report("", r.against())
	streams := int64(1)
	switch r.MLPerf.Scenario {
	case metrics.SingleStreamScenario:
		defaults(&s.Kind, schedule.Closed)
		defaults(&s.Concurrency, 1)
	case metrics.MultiStreamScenario:
		defaults(&s.Kind, schedule.Closed)
		defaults(&s.Concurrency, 1)
		defaults(&s.Streams, multiStreams)
		streams = int64(s.Streams)
	case metrics.OfflineScenario:
		defaults(&s.Kind, schedule.All)
	default:
		defaults(&s.Kind, schedule.Poisson)
	}
	defaults(&s.Warmup, "0")
	defaults(&s.Drain, "quiet")
	if s.Kind == schedule.All {
		if s.Requests == 0 {
			s.Requests = max(least.MinQueries, int64(math.Ceil(offlineMargin*least.MinDuration.Seconds()*s.Rate)))
		}
		s.Rate = 0 // was what is expected of the server
		return
	}
	if s.Requests == 0 && s.Duration == 0 {
		s.Requests = least.MinQueries * streams
		defaults(&s.AtLeast, least.MinDuration)
	}
}

// preferScenario is prefer for a scenario that asks one by one, which has no rate.
func preferScenario(r *Run, set func(path string) bool) {
	one := r.MLPerf.Scenario == metrics.SingleStreamScenario || r.MLPerf.Scenario == metrics.MultiStreamScenario
	if one && set("mlperf.scenario") && !set("schedule.rate") {
		r.Schedule.Rate = 0
	}
}

// against finds what contradicts the scenario.
func (r *Run) against() []conf.Problem {
	var found problems
	s, in := &r.Schedule, r.MLPerf.Scenario
	no := func(is bool, path, format string, args ...any) {
		if is {
			found.add(path, "%s, in scenario %s", fmt.Sprintf(format, args...), in)
		}
	}
	kind := map[string]string{
		metrics.SingleStreamScenario: schedule.Closed, metrics.MultiStreamScenario: schedule.Closed, metrics.OfflineScenario: schedule.All,
	}[in]
	if kind == "" {
		kind = schedule.Poisson
	}
	no(s.Kind != "" && s.Kind != kind, "schedule.kind", "must be %s, not %s", kind, s.Kind)
	no(s.File != "", "schedule.file", "cannot be given: times are the scenario's")
	no(s.Ramp != nil || len(s.Steps) > 0 || s.Burst != nil, "schedule", "ramp, steps and burst cannot be given: the rate is constant")
	no(s.Warmup != "" && s.Warmup != "0", "schedule.warmup", "must be 0, as every query counts")
	no(s.Drain != "" && s.Drain != "quiet", "schedule.drain", "must be quiet")
	no(s.Think != "", "schedule.think", "cannot be given: nobody thinks")
	no(r.Workload.Turns > 1, "workload.turns", "cannot be given: queries do not follow each other")
	no(r.Load.MaxInFlight > 0, "load.max_in_flight", "cannot be given: it would hold requests back")
	if kind == schedule.Closed {
		no(s.Concurrency > 1, "schedule.concurrency", "must be 1, not %d", s.Concurrency)
		no(in == metrics.SingleStreamScenario && s.Streams > 1, "schedule.streams", "must be 1, not %d", s.Streams)
	}
	return found
}

// otherwise says how a run's load was not that of the scenario by which it is
// judged; empty if it was.
func (r *Run) otherwise() string {
	if r.MLPerf.Scenario == "" {
		return ""
	}
	if r.Target.URL == "" && len(r.Targets) == 0 && r.Simulated == "" {
		return "the recording does not say how it was offered"
	}
	was := *r
	was.Schedule = r.Schedule.Filled()
	var parts []string
	for _, p := range was.against() {
		parts = append(parts, p.Path+" "+strings.TrimSuffix(p.Text, ", in scenario "+r.MLPerf.Scenario))
	}
	if s := &was.Schedule; s.Warmup == "" && s.Kind != schedule.All && s.Kind != schedule.Given {
		parts = append(parts, "a warm-up was left out")
	}
	return strings.Join(parts, "; ")
}
