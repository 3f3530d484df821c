package experiment

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
	"fermata/spec"
)

// Study plays all runs of a study in virtual time, several at once, and says
// which of its claims hold. Everything is read and checked before anything runs.
func Study(ctx context.Context, s *spec.Study, parallel int, version string, progress func(done, all int)) (*report.Study, error) {
	names := statisticsOf(s, defaultStatistics)
	var mistakes conf.Mistakes
	statistics, err := parseStatistics("statistics", names)
	if err := mistaken(s, "statistics", err, &mistakes); err != nil {
		return nil, err
	}
	var points []gridPoint
	for i, one := range s.Systems {
		path := fmt.Sprintf("systems[%d]", i)
		data, err := os.ReadFile(one.Spec)
		if err != nil {
			mistakes = append(mistakes, s.At(path+".spec", "cannot be read: "+err.Error()))
			continue
		}
		g := Grid{Name: one.Name, File: one.Spec, Data: data, Seeds: s.Seeds, Axes: s.Grid}
		for _, key := range slices.Sorted(maps.Keys(one.Set)) {
			g.Sets = append(g.Sets, conf.Setting{Path: spec.SimKey(key), Value: one.Set[key], From: "system " + one.Name})
		}
		more, err := g.points()
		if err := mistaken(s, path, err, &mistakes); err != nil {
			return nil, err
		}
		points = append(points, more...)
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	results, err := simulateAll(ctx, points, statistics, parallel, version, progress)
	if err != nil {
		return nil, err
	}
	out := report.NewStudy(version, s.Title)
	out.Caveat = s.Caveat
	for p := range points {
		out.Add(points[p].name, points[p].settings, statistics, results[p])
	}
	out.BlindSpots = blindSpotsOf(out.Points, results)
	for _, c := range s.Claims {
		out.Claims = append(out.Claims, claim(out, &c))
	}
	return out, nil
}

// blindSpotsOf are those between the first system of a study and each further one,
// point by point of the grid and seed by seed.
func blindSpotsOf(points []report.StudyPoint, results [][]*metrics.Result) []compare.BlindSpot {
	var all []compare.BlindSpot
	for i := range points {
		a := slices.IndexFunc(points, func(p report.StudyPoint) bool { return slices.Equal(p.Settings, points[i].Settings) })
		if points[a].Name == points[i].Name || points[a].Name != points[0].Name {
			continue
		}
		var pairs [][2]*metrics.Result
		for k := range min(len(results[a]), len(results[i])) {
			pairs = append(pairs, [2]*metrics.Result{results[a][k], results[i][k]})
		}
		all = append(all, compare.BlindSpots(points[a].Name, points[i].Name, pairs)...)
	}
	return all
}

// statisticsOf are the statistics that a study shows or claims something of.
func statisticsOf(s *spec.Study, otherwise []string) []string {
	names := slices.Clone(s.Statistics)
	if len(names) == 0 && len(s.Claims) == 0 {
		names = slices.Clone(otherwise)
	}
	for _, c := range s.Claims {
		for _, text := range []string{c.Of, c.Minus, c.Over} {
			if name, _, ok := strings.Cut(text, "@"); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// mistaken adds the mistakes that err is, those of the study's own words where they
// stand in its file; path is what it was about. Another error is given back.
func mistaken(s *spec.Study, path string, err error, mistakes *conf.Mistakes) error {
	found, ok := err.(conf.Mistakes)
	if !ok {
		return err
	}
	for _, m := range found {
		said := m.Text
		if m.Path != "" {
			said = m.Path + ": " + m.Text
		}
		switch grid, ofGrid := strings.CutPrefix(m.File, "--grid"); {
		case ofGrid:
			m = s.At("grid", strings.TrimSpace(grid)+": "+said)
		case m.File == "--seeds":
			m = s.At("seeds", said)
		case m.File == "statistics", strings.HasPrefix(m.File, "system "):
			m = s.At(path, said)
		}
		*mistakes = addMistakes(*mistakes, conf.Mistakes{m})
	}
	return nil
}

// claim judges one claim by what came out.
func claim(s *report.Study, c *spec.StudyClaim) report.Claim {
	value := func(text string) (float64, string) {
		statistic, system, _ := strings.Cut(text, "@")
		v, unit, ok := s.Value(system, statistic)
		if !ok {
			return math.NaN(), ""
		}
		return v, unit
	}
	v, unit := value(c.Of)
	switch {
	case c.Minus != "":
		w, _ := value(c.Minus)
		v -= w
	case c.Over != "":
		w, _ := value(c.Over)
		v, unit = v/w, "1"
	}
	low, high := math.Inf(-1), math.Inf(1)
	if c.AtLeast != "" {
		low, _ = spec.Quantity(c.AtLeast) // checked when the study was read
	}
	if c.AtMost != "" {
		high, _ = spec.Quantity(c.AtMost)
	}
	return report.ClaimOf(c.Text, c.Paper, unit, v, low, high)
}
