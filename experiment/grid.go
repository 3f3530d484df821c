package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
	"fermata/sim"
	"fermata/spec"
)

// A Grid is many simulated runs of one spec: every combination of the values of
// its axes, each with several seeds.
type Grid struct {
	Name       string // of the points, in a study
	File       string
	Data       []byte
	Sets       []conf.Setting
	Seeds      int      // runs of each point, with the spec's seed and those after it; 0 means 1
	Axes       []string // key=value,value
	Statistics []string // of the table; empty for a choice
	Title      string
	Parallel   int // runs at once; 0 means as many as there are cores
}

const mostGridRuns = 100_000

// A gridPoint is one combination of settings.
type gridPoint struct {
	name     string // of the system, in a study
	settings []report.Setting
	specs    []*spec.Sim
}

// defaultStatistics are what a table over many runs shows unless told otherwise.
var defaultStatistics = []string{
	"scheduling_delay.p50", "scheduling_delay.max", "scheduling_delay.over25s", "ttft_due.p50", "ttft_due.p99", "tbt.p50", "tbt.p99", "gap_longest.max",
	"normalized_latency.p50", "output_tokens_per_s", "busy_share",
}

// Simulate plays a grid. Everything is read and checked before anything runs.
// Progress is told how many of the runs have ended.
func (g Grid) Simulate(ctx context.Context, version string, progress func(done, all int)) (*report.Study, error) {
	names := g.Statistics
	if len(names) == 0 {
		names = defaultStatistics
	}
	statistics, err := parseStatistics("--metric", names)
	if err != nil {
		return nil, err
	}
	points, err := g.points()
	if err != nil {
		return nil, err
	}
	results, err := simulateAll(ctx, points, statistics, g.Parallel, version, progress)
	if err != nil {
		return nil, err
	}
	out := report.NewStudy(version, g.Title)
	for p := range points {
		out.Add(points[p].name, points[p].settings, statistics, results[p])
	}
	return out, nil
}

func parseStatistics(from string, names []string) ([]report.Statistic, error) {
	var all []report.Statistic
	var mistakes conf.Mistakes
	for _, name := range names {
		s, err := report.ParseStatistic(name)
		if err != nil {
			mistakes = append(mistakes, conf.Mistake{File: from, Text: err.Error()})
		}
		all = append(all, s)
	}
	return all, mistakes.Err()
}

// simulateAll plays the runs of all points, several at once. The first error ends
// it.
func simulateAll(ctx context.Context, points []gridPoint, statistics []report.Statistic, parallel int, version string, progress func(done, all int)) ([][]*metrics.Result, error) {
	type job struct{ point, seed int }
	var jobs []job
	results := make([][]*metrics.Result, len(points))
	for p := range points {
		results[p] = make([]*metrics.Result, len(points[p].specs))
		for k := range points[p].specs {
			jobs = append(jobs, job{p, k})
		}
	}
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var worker sync.WaitGroup
	var mu sync.Mutex // guards done and calls of progress
	done, next := 0, make(chan job)
	for range min(parallel, len(jobs)) {
		worker.Go(func() {
			for j := range next {
				r, err := simulateInMemory(ctx, points[j.point].specs[j.seed], statistics, version)
				if err != nil {
					cancel(atPoint(points[j.point].settings, err))
					continue
				}
				results[j.point][j.seed] = r
				mu.Lock()
				if done++; progress != nil {
					progress(done, len(jobs))
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		select {
		case next <- j:
		case <-ctx.Done():
		}
	}
	close(next)
	worker.Wait()
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return nil, ErrInterrupted
	} else if err != nil {
		return nil, err
	}
	return results, nil
}

// points reads the specs of all runs.
func (g Grid) points() ([]gridPoint, error) {
	axes, err := axesOf("--grid", g.Axes, spec.SimKey)
	if err != nil {
		return nil, err
	}
	if max(1, g.Seeds)*product(axes) > mostGridRuns {
		return nil, tooManyRuns
	}
	var points []gridPoint
	var mistakes conf.Mistakes
	for n := range product(axes) {
		p, err := g.point(axes, n)
		if err != nil {
			if m, ok := err.(conf.Mistakes); ok {
				mistakes = addMistakes(mistakes, m)
				continue
			}
			return nil, err
		}
		points = append(points, p)
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	for _, p := range points { // the requests of one seed stand for those of all
		if _, err := newVirtual(p.specs[0]); err != nil {
			return nil, atPoint(p.settings, err)
		}
	}
	return points, nil
}

var tooManyRuns = conf.Mistakes{{File: "--grid", Text: fmt.Sprintf("comes to more than %d runs: take fewer values or seeds", mostGridRuns)}}

// axesOf reads KEY=VALUE,VALUE texts, each an axis; path is what a key is the name
// of.
func axesOf(from string, texts []string, path func(string) string) ([][]conf.Setting, error) {
	axes := make([][]conf.Setting, len(texts))
	for i, text := range texts {
		key, values, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || values == "" {
			return nil, conf.Mistakes{{File: from + " " + text, Text: "must be KEY=VALUE,VALUE…, such as chunk=512,1024,1536"}}
		}
		path := path(key)
		if slices.ContainsFunc(axes[:i], func(a []conf.Setting) bool { return a[0].Path == path }) {
			return nil, conf.Mistakes{{File: from + " " + text, Text: "gives " + path + " a second time: name all of its values in one"}}
		}
		for value := range strings.SplitSeq(values, ",") {
			value = strings.TrimSpace(value)
			if slices.ContainsFunc(axes[i], func(s conf.Setting) bool { return sameValue(s.Value, value) }) {
				return nil, conf.Mistakes{{File: from + " " + text, Text: "has the value " + value + " twice: remove one of them"}}
			}
			axes[i] = append(axes[i], conf.Setting{Path: path, Value: value, From: from + " " + key + "=" + value})
		}
		if product(axes[:i+1]) > mostGridRuns {
			return nil, tooManyRuns
		}
	}
	return axes, nil
}

// sameValue says whether two values of an axis are one, in other words maybe.
func sameValue(a, b string) bool {
	x, errX := spec.Quantity(a)
	y, errY := spec.Quantity(b)
	return a == b || errX == nil && errY == nil && same(x, y)
}

func product(axes [][]conf.Setting) int {
	n := 1
	for _, a := range axes {
		n *= len(a)
	}
	return n
}

// combination is number n of the product: the last axis goes round first.
func combination(axes [][]conf.Setting, n int) []conf.Setting {
	chosen := make([]conf.Setting, len(axes))
	for i := len(axes) - 1; i >= 0; i-- {
		chosen[i] = axes[i][n%len(axes[i])]
		n /= len(axes[i])
	}
	return chosen
}

// settingsOf are settings as a report has them.
func settingsOf(chosen []conf.Setting) []report.Setting {
	all := make([]report.Setting, len(chosen))
	for i, c := range chosen {
		all[i] = report.Setting{Key: c.Path, Value: c.Value}
	}
	return all
}

// point is combination number n.
func (g Grid) point(axes [][]conf.Setting, n int) (gridPoint, error) {
	chosen := combination(axes, n)
	p := gridPoint{name: g.Name, settings: settingsOf(chosen)}
	sets := append(append([]conf.Setting(nil), g.Sets...), chosen...)
	first, err := spec.ReadSim(g.File, g.Data, sets)
	if err != nil {
		return p, err
	}
	if g.Seeds > 1 && !drawsFromSeed(first) {
		return p, conf.Mistakes{{File: "--seeds", Text: "would play the same run over and over: arrivals and lengths are given, and nothing else is drawn; leave it out, or give schedule, noise or speculation"}}
	}
	p.specs = []*spec.Sim{first}
	for k := 1; k < g.Seeds; k++ {
		seeded := append(append([]conf.Setting(nil), sets...), conf.Setting{Path: "seed", Value: fmt.Sprint(first.Seed + uint64(k)), From: "--seeds"})
		one, err := spec.ReadSim(g.File, g.Data, seeded)
		if err != nil {
			return p, err
		}
		p.specs = append(p.specs, one)
	}
	return p, nil
}

// drawsFromSeed says whether anything of a run depends on its seed.
func drawsFromSeed(s *spec.Sim) bool {
	given := s.Workload.Dataset != "" && s.Schedule.Unset() || s.Schedule.File != ""
	return !given || s.Workload.Dataset == "" || s.Noise > 0 || s.Hiccup != nil || s.Speculation != nil
}

// addMistakes adds those that were not made before.
func addMistakes(all, more conf.Mistakes) conf.Mistakes {
next:
	for _, m := range more {
		for _, known := range all {
			if known == m {
				continue next
			}
		}
		all = append(all, m)
	}
	return all
}

func atPoint(settings []report.Setting, err error) error {
	if len(settings) == 0 {
		return err
	}
	var parts []string
	for _, s := range settings {
		parts = append(parts, s.Key+"="+s.Value)
	}
	return fmt.Errorf("with %s: %w", strings.Join(parts, " "), err)
}

// simulateInMemory plays a spec and judges it without files.
func simulateInMemory(ctx context.Context, s *spec.Sim, statistics []report.Statistic, version string) (*metrics.Result, error) {
	v, err := newVirtual(s)
	if err != nil {
		return nil, err
	}
	v.engine.Observe(sim.Observer{Ended: v.ended})
	var all recording.Slice
	var failed error
	for t := range v.traces(ctx, s, &failed, nil) {
		all = append(all, t)
	}
	if failed != nil {
		return nil, failed
	}
	judge, err := s.Run().Judge()
	if err != nil {
		return nil, err
	}
	askFor(&judge, statistics)
	judge.Cost = termsOf(s.Run())
	r, err := metrics.Evaluate(all, v.meta(s, version), nil, judge)
	if err != nil {
		return nil, fmt.Errorf("judging a simulation: %w", err)
	}
	r.Tool = metrics.Tool{Name: "fermata", Version: version}
	r.Run = metrics.Run{Name: s.Name, Target: "simulated: " + s.System(), Seed: &s.Seed, Labels: s.Labels}
	r.Simulation = v.simulation(s)
	return r, nil
}
