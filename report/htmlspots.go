package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/term"
	"fermata/metrics"
)

// A spot is a case where one metric hides what another shows, with links to where
// that is to be seen.
type spot struct {
	Code, Text string
	Run        int // whose requests these are
	Figures    []legendKey
	Requests   []int64
	Picture    string // id of the picture
}

// pictureOf is where a blind spot is to be seen.
var pictureOf = map[string]string{
	metrics.WaitHidden:   "cdf-ttft",
	metrics.StallHidden:  "cdf-silence",
	metrics.BurstAsStall: "tokens-per-event",
	metrics.P99Inverts:   "cdf-tbt",
	metrics.P95Inverts:   "cdf-tbt",
}

// spots are those of a comparison, where the runs are one, else those that the
// results name. What a run shows beside another says more than the same of it alone.
func (h *htmlPage) spots(c *compare.Comparison) []spot {
	var all []spot
	if c != nil {
		for i := range c.BlindSpots {
			s := &c.BlindSpots[i]
			all = append(all, h.spot(h.firstOf(c, s.Run), inPairs(s), s.Code, s.Text, s.Figures, s.Requests))
		}
		return append(all, h.spotsOfSystems(c)...)
	}
	for i := range h.runs {
		spots := h.runs[i].Result.BlindSpots
		for k := range spots {
			s := &spots[k]
			if s.Against == "" && slices.ContainsFunc(spots, func(o metrics.BlindSpot) bool { return o.Code == s.Code && o.Against != "" }) {
				continue
			}
			name := ""
			if len(h.runs) > 1 {
				name = h.titles[i]
			}
			all = append(all, h.spot(i, name, s.Code, s.Text, s.Figures, s.Requests))
		}
	}
	return all
}

// spotsOfSystems are those that the first run of each compared system shows alone,
// unless the comparison tells of the same.
func (h *htmlPage) spotsOfSystems(c *compare.Comparison) []spot {
	var all []spot
	for i := range c.Systems {
		name := c.Systems[i].Name
		run := h.firstOf(c, name)
		for _, s := range h.runs[run].Result.BlindSpots {
			if s.Against == "" && !slices.ContainsFunc(c.BlindSpots, func(o compare.BlindSpot) bool { return o.Code == s.Code && o.Run == name }) {
				all = append(all, h.spot(run, h.titles[run], s.Code, s.Text, s.Figures, s.Requests))
			}
		}
	}
	return all
}

// firstOf is the first run of a system that was compared.
func (h *htmlPage) firstOf(c *compare.Comparison, system string) int {
	n := 0
	for i := range c.Systems {
		if c.Systems[i].Name == system {
			break
		}
		n += len(c.Systems[i].Runs)
	}
	return min(n, len(h.runs)-1)
}

// inPairs is the run of a spot, with how many of its pairs show it.
func inPairs(s *compare.BlindSpot) string {
	if s.Of > 1 {
		return term.Plain(s.Run) + fmt.Sprintf(", in %d of %d pairs of runs, such as this", s.Pairs, s.Of)
	}
	return term.Plain(s.Run)
}

func (h *htmlPage) spot(run int, name, code, text string, figures map[string]float64, requests []int64) spot {
	s := spotOf(name, code, text, figures)
	s.Run, s.Picture = run, pictureOf[code]
	p := h.runs[run].Portrait
	for _, index := range requests {
		if p != nil && streamOf(p, index) != nil { // the others cannot be shown
			s.Requests = append(s.Requests, index)
		}
	}
	return s
}

// spotOf is a spot in words and figures, without what it is to be seen in.
func spotOf(name, code, text string, figures map[string]float64) spot {
	s := spot{Code: term.Plain(code), Text: term.Plain(text)}
	if name != "" {
		s.Text = name + ": " + s.Text
	}
	for _, k := range slices.Sorted(maps.Keys(figures)) {
		s.Figures = append(s.Figures, legendKey{figureName(k), figureText(k, figures[k])})
	}
	return s
}

// figureName is a figure's name without its unit, which its text has.
func figureName(name string) string {
	name, against := strings.CutSuffix(name, "_against")
	name = strings.ReplaceAll(strings.TrimSuffix(name, "_ns"), "_", " ")
	if against {
		name += " of the other"
	}
	return name
}

// figureText writes a figure by what its name says it is.
func figureText(name string, v float64) string {
	name, _ = strings.CutSuffix(name, "_against")
	switch {
	case strings.HasSuffix(name, "_ns"):
		return term.Duration(v)
	case strings.HasPrefix(name, "share"):
		return term.Percent(v)
	}
	return term.Number(v, true)
}
