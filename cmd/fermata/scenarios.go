package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/spec"
)

// scenarioKey is the key of a run file that --scenario sets.
const scenarioKey = "mlperf.scenario"

// scenariosOf are those that the last setting of a scenario names.
func scenariosOf(sets []conf.Setting) []string {
	for _, set := range slices.Backward(sets) {
		if set.Path == scenarioKey {
			return strings.Split(set.Value, ",")
		}
	}
	return nil
}

// measureScenarios runs one scenario after the other with the same prompts, each
// into a folder of its own, and reports them side by side.
func (s streams) measureScenarios(ctx context.Context, args []string, sets []conf.Setting, scenarios []string, out string, as told) error {
	runs := make([]*spec.Run, len(scenarios))
	for i, scenario := range scenarios {
		r, err := readSpec(args, inScenario(sets, strings.TrimSpace(scenario)), false)
		if err != nil {
			return err
		}
		r.Name = strings.TrimPrefix(r.Name+"-"+r.MLPerf.Scenario, "-")
		if i > 0 {
			r.Seed = runs[0].Seed
		}
		runs[i] = r
	}
	var results []*metrics.Result
	var all []*experiment.Done
	for _, r := range runs {
		dir := out
		if dir != "" {
			dir = filepath.Join(out, r.MLPerf.Scenario)
		}
		done, err := s.offer(ctx, r, dir)
		if err != nil {
			return err
		}
		s.recordedIn(r.MLPerf.Scenario+" ", done.Dir, out)
		results, all = append(results, done.Result), append(all, done)
		if done.End.Interrupted != "" {
			break
		}
	}
	if err := s.report(as.format, results); err != nil {
		return err
	}
	if err := s.pageOfRuns(as.html, all...); err != nil {
		return err
	}
	if last := all[len(all)-1]; last.End.Interrupted != "" {
		return verdict(last)
	}
	return worst(results)
}

// inScenario are the settings for one scenario. What was given for others goes:
// limits where it bounds nothing, and a rate where it asks one by one.
func inScenario(all []conf.Setting, scenario string) []conf.Setting {
	bounded := scenario == metrics.ServerScenario || scenario == metrics.InteractiveScenario
	set := func(path, value string) conf.Setting {
		return conf.Setting{Path: path, Value: value, From: "--scenario"}
	}
	sets := slices.DeleteFunc(slices.Clone(all), func(s conf.Setting) bool {
		return s.Path == "schedule.rate" && !bounded && scenario != metrics.OfflineScenario
	})
	sets = append(sets, set(scenarioKey, scenario))
	if !bounded {
		for _, limit := range []string{"ttft", "tpot", "latency"} {
			sets = append(sets, set("mlperf."+limit, "0"))
		}
	}
	return sets
}
