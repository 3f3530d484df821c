package experiment

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
	"fermata/spec"
)

// A Comparison is runs that are to be compared. Each of its Sides is one system: a
// run's folder, a folder of repeats of it, or several of either between commas.
// One side alone is a folder of such folders, as `fermata run --against` makes it.
type Comparison struct {
	Sides   []string
	Sets    []conf.Setting // how the recordings are judged
	Metrics []string       // what is asked; empty for the usual
	Version string
}

// usualMetrics are asked for unless others are, where any run has them, and
// objectives after them.
var usualMetrics = []string{
	"ttft_due.mean", "ttft_due.p50", "ttft_due.p99", "tbt.p99", "tpot.mean", "tpot.p50", "tpot.p99", "gap_longest.p99",
	"e2e.mean", "e2e.p50", "e2e.p99", "failed_share", "output_tokens_per_s",
	"cost.per_million", "cost.per_million_good", "cost.per_good_request",
}

// Compare reads the runs and says what differs.
func (c Comparison) Compare() (*compare.Comparison, error) {
	names := c.Metrics
	if len(names) == 0 {
		names = usualMetrics
	}
	statistics, err := parseStatistics("--metric", names)
	if err != nil {
		return nil, err
	}
	for i, one := range statistics {
		if slices.ContainsFunc(statistics[:i], func(s report.Statistic) bool { return s.Metric == one.Metric && s.Stat == one.Stat }) {
			return nil, misusef("--metric %s is asked twice, and each question makes the others harder to answer: give it once", one.Name)
		}
	}
	sides, err := sidesOf(c.Sides)
	if err != nil {
		return nil, err
	}
	var systems []compare.System
	var goals [][]metrics.Objective
	for _, s := range sides {
		system := compare.System{Name: s.name}
		for _, dir := range s.dirs {
			run, objectives, err := runToCompare(dir, c.Sets, statistics, c.Version)
			if err != nil {
				return nil, err
			}
			system.Runs = append(system.Runs, run)
			goals = append(goals, objectives)
		}
		systems = append(systems, system)
	}
	measures, warnings := measuresOf(statistics, systems, goals, len(c.Metrics) > 0)
	out, err := compare.Compare(systems, measures)
	if err != nil {
		return nil, err
	}
	out.Tool = metrics.Tool{Name: "fermata", Version: c.Version}
	out.Warnings = append(warnings, out.Warnings...)
	return out, nil
}

// Runs are the folders or files of all runs that are compared, side by side.
func (c Comparison) Runs() ([]string, error) {
	sides, err := sidesOf(c.Sides)
	var all []string
	for _, s := range sides {
		all = append(all, s.dirs...)
	}
	return all, err
}

// runToCompare reads one run with all that a comparison needs of it.
func runToCompare(dir string, sets []conf.Setting, statistics []report.Statistic, version string) (compare.Run, []metrics.Objective, error) {
	run := compare.Run{Name: dir, Path: identity(dir)}
	a, err := reopen(dir, sets)
	if err != nil {
		return run, nil, err
	}
	defer a.rec.Close()
	askFor(&a.judge, statistics)
	if run.Result, err = a.result(version); err != nil {
		return run, nil, err
	}
	if run.Requests, err = metrics.Requests(a.rec, a.meta, a.judge); err != nil {
		return run, nil, fmt.Errorf("reading the requests of %s: %w", dir, err)
	}
	if a.meta.RunYAML != "" {
		if run.Load, err = loadFacts(a.spec); err != nil {
			return run, nil, fmt.Errorf("reading what %s was offered: %w", dir, err)
		}
	}
	return run, a.judge.SLO, nil
}

// askFor makes a judge tell the statistics.
func askFor(judge *metrics.Options, statistics []report.Statistic) {
	for _, one := range statistics {
		if one.PerMille > 0 {
			judge.PerMille = append(judge.PerMille, one.PerMille)
		}
		if one.OverNs > 0 {
			judge.OverNs = append(judge.OverNs, one.OverNs)
		}
	}
}

// identity tells a run's folder whatever its name.
func identity(dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return strings.TrimSuffix(path, string(filepath.Separator)+recording.RequestsFile)
}

// lengthKeys are keys of a schedule that say how long a load goes on, not what it
// is.
var lengthKeys = []string{"requests", "duration", "warmup", "drain", "once"}

// loadFacts are the workload and the schedule of a run, key by key.
func loadFacts(s *spec.Run) ([]compare.Fact, error) {
	var all []compare.Fact
	for _, room := range []struct {
		name    string
		options any
	}{{"workload", s.Workload}, {"schedule", s.Schedule}} {
		text, err := conf.Write(room.options)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			key, value, ok := strings.Cut(line, ":")
			if nested := line == "" || strings.ContainsAny(line[:1], " -{"); nested || !ok {
				if n := len(all); n > 0 && nested && line != "{}" {
					all[n-1].Value = strings.TrimSpace(all[n-1].Value + " " + strings.TrimSpace(line))
				}
				continue
			}
			value = strings.TrimSpace(value)
			if key == "dataset" || key == "file" { // the same file may lie elsewhere
				value = filepath.Base(value)
			}
			all = append(all, compare.Fact{Key: room.name + "." + key, Value: value})
		}
	}
	return slices.DeleteFunc(all, func(f compare.Fact) bool {
		room, key, _ := strings.Cut(f.Key, ".")
		return room == "schedule" && slices.Contains(lengthKeys, key)
	}), nil
}

// measuresOf are what the statistics measure, and the objectives where nothing
// else was asked.
func measuresOf(statistics []report.Statistic, systems []compare.System, goals [][]metrics.Objective, asked bool) (all []compare.Measure, warnings []metrics.Warning) {
	same := func(a, b []metrics.Objective) bool {
		return slices.EqualFunc(a, b, func(x, y metrics.Objective) bool { return x.Text == y.Text })
	}
	objectives := goals[0]
	for _, g := range goals {
		if !same(g, objectives) {
			objectives = nil
			warnings = []metrics.Warning{{
				Code: "objectives_differ", Text: "the runs were given different objectives, which are not compared",
				Help: "Give --slo here: all are then judged by that.",
			}}
			break
		}
	}
	if !asked {
		for i := range objectives {
			if one, err := report.ParseStatistic(fmt.Sprintf("slo%d.share", i+1)); err == nil {
				statistics = append(slices.Clone(statistics), one)
			}
		}
	}
	for i := range statistics {
		m := measureOf(&statistics[i], objectives)
		if asked || anyHas(systems, m.Of) {
			m.Unit = unitOf(&statistics[i], systems)
			m.Ratios = m.Ratios || m.Unit == "ns" || strings.HasSuffix(m.Unit, "/s")
			all = append(all, m)
		}
	}
	return all, warnings
}

func anyHas(systems []compare.System, of func(*metrics.Result) *float64) bool {
	for _, s := range systems {
		for _, r := range s.Runs {
			if of(r.Result) != nil {
				return true
			}
		}
	}
	return false
}

func unitOf(s *report.Statistic, systems []compare.System) string {
	for _, one := range systems {
		for _, r := range one.Runs {
			if v, unit := s.Of(r.Result); v != nil {
				return unit
			}
		}
	}
	return ""
}

// measureOf is a statistic with what of it can be seen request by request.
func measureOf(s *report.Statistic, objectives []metrics.Objective) compare.Measure {
	m := compare.Measure{Metric: s.Metric, Stat: s.Stat, Better: s.Better, Percentile: float64(s.PerMille) / 1000}
	m.Insufficient = s.Insufficient
	if s.Metric == "cost" {
		m.Ratios, m.Withheld = true, compare.CostWithheld(s.Stat != "per_million")
	}
	m.Of = func(r *metrics.Result) *float64 {
		v, _ := s.Of(r)
		return v
	}
	figure := map[string]func(*metrics.Request) recording.Maybe[int64]{
		"ttft_due":    func(r *metrics.Request) recording.Maybe[int64] { return r.TTFT },
		"tpot":        func(r *metrics.Request) recording.Maybe[int64] { return r.TPOT },
		"e2e":         func(r *metrics.Request) recording.Maybe[int64] { return r.E2E },
		"gap_longest": func(r *metrics.Request) recording.Maybe[int64] { return r.GapLongest },
	}[s.Metric]
	var number int
	_, err := fmt.Sscanf(s.Metric, "slo%d", &number)
	switch {
	case figure != nil && s.Stat == "mean":
		m.Each = func(r *metrics.Request) (float64, bool) {
			v := figure(r)
			return float64(v.V), v.OK
		}
	case figure != nil && s.OverNs > 0:
		m.Each = func(r *metrics.Request) (float64, bool) {
			v := figure(r)
			return flag(v.V > s.OverNs), v.OK
		}
	case s.Metric == "failed_share":
		m.Each = func(r *metrics.Request) (float64, bool) { return flag(!r.Good), true }
	case err == nil && number >= 1 && number <= len(objectives):
		o := &objectives[number-1]
		m.Objective = o.Text
		if o.LessIsBetter() {
			m.Better = "lower"
		}
		if o.ByRequest() && s.Stat == "share" {
			m.Each = func(r *metrics.Request) (float64, bool) { return flag(r.Met[number-1]), r.Judged[number-1] }
		}
	}
	return m
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A side is one system of a comparison, with the folders of its runs.
type side struct {
	name string
	dirs []string
}

// sidesOf finds the runs of each argument.
func sidesOf(args []string) ([]side, error) {
	if len(args) == 1 {
		var err error
		if args, err = systemsIn(args[0]); err != nil {
			return nil, err
		}
	}
	var all []side
	for _, arg := range args {
		s := side{}
		parts := []string{arg}
		if _, err := os.Stat(arg); err != nil {
			parts = strings.Split(arg, ",")
		}
		for _, part := range parts {
			dirs, err := runsIn(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			s.dirs = append(s.dirs, dirs...)
		}
		s.name = filepath.Base(filepath.Clean(strings.TrimSpace(parts[0])))
		if s.name == recording.RequestsFile {
			s.name = filepath.Base(filepath.Dir(parts[0]))
		}
		if len(parts) > 1 {
			s.name += fmt.Sprintf(" and %d more", len(parts)-1)
		}
		all = append(all, s)
	}
	for i := range all { // names that do not tell them apart
		if slices.ContainsFunc(all[:i], func(s side) bool { return s.name == all[i].name }) {
			for k := range all {
				all[k].name = cmp.Or(strings.TrimSpace(args[k]), all[k].name)
			}
			break
		}
	}
	return all, nil
}

// runsIn is a run's folder or file, or the runs that a folder holds.
func runsIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || isRun(path) {
		return []string{path}, nil // reading it says what is wrong with it
	}
	dirs, err := foldersIn(path, isRun)
	if err != nil {
		return nil, err
	}
	if len(dirs) > 0 {
		return dirs, nil
	}
	if systems, err := foldersIn(path, holdsRuns); err == nil && len(systems) > 0 {
		return nil, misusef("%s holds several systems: name two of %s, or compare %s alone", path, strings.Join(systems, ", "), path)
	}
	return []string{path}, nil
}

// systemsIn are the systems that one folder holds.
func systemsIn(path string) ([]string, error) {
	systems, err := foldersIn(path, func(dir string) bool { return isRun(dir) || holdsRuns(dir) })
	if err == nil && len(systems) < 2 {
		err = misusef("%s is one run: name another to compare it with", path)
	}
	if err == nil && !holdsRuns(systems[0]) {
		err = misusef("%s holds runs of one system, or of several: name what is to be compared, such as %s %s", path, systems[0], systems[1])
	}
	return systems, err
}

func isRun(dir string) bool {
	return exists(filepath.Join(dir, recording.RequestsFile)) || exists(filepath.Join(dir, "journal"))
}

func holdsRuns(dir string) bool {
	found, err := foldersIn(dir, isRun)
	return err == nil && len(found) > 0
}

// foldersIn are the folders in path that are wanted, by name.
func foldersIn(path string, wanted func(dir string) bool) ([]string, error) {
	entries, err := os.ReadDir(path)
	if os.IsNotExist(err) {
		return nil, nothingAt(path)
	}
	if err != nil {
		return nil, nil // a file
	}
	var all []string
	for _, e := range entries {
		if dir := filepath.Join(path, e.Name()); e.IsDir() && wanted(dir) {
			all = append(all, dir)
		}
	}
	return all, nil
}
