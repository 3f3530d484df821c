package report

import (
	"fmt"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/term"
	"fermata/metrics"
)

const blindSpotsTitle = "Blind spots: what one metric hides and another shows"

// mostNamed requests stand behind a blind spot on a page; JSON has more of them.
const mostNamed = 5

// blindSpots are those of one result.
func blindSpots(r *metrics.Result) block {
	b := block{title: blindSpotsTitle}
	for i := range r.BlindSpots {
		b.blindSpot(&r.BlindSpots[i], "")
	}
	return b
}

// blindSpotsOf are those of several results. What a run shows beside another says
// more than the same of the run alone.
func blindSpotsOf(rs []*metrics.Result, names []string) block {
	b := block{title: blindSpotsTitle}
	for i, r := range rs {
		for k := range r.BlindSpots {
			s := &r.BlindSpots[k]
			if s.Against == "" && slices.ContainsFunc(r.BlindSpots, func(o metrics.BlindSpot) bool { return o.Code == s.Code && o.Against != "" }) {
				continue
			}
			b.blindSpot(s, names[i]+": ")
		}
	}
	return b
}

func (b *block) blindSpot(s *metrics.BlindSpot, who string) {
	b.fact(term.Plain(s.Code), who+term.Plain(s.Text)+behind(s.Requests))
}

// behind names the requests that a blind spot is made of.
func behind(requests []int64) string {
	if len(requests) == 0 {
		return ""
	}
	var all []string
	for i, index := range requests {
		if i == mostNamed {
			all = append(all, "…")
			break
		}
		all = append(all, fmt.Sprint(index))
	}
	return " (requests " + strings.Join(all, ", ") + ")"
}

// versusBlindSpots are those between the first system and a further one.
func versusBlindSpots(title string, c *compare.Comparison, run string, names []string) block {
	b := block{title: title}
	for i := range c.BlindSpots {
		s := &c.BlindSpots[i]
		if s.Run != run && s.Against != run {
			continue
		}
		for k := range c.Systems {
			if c.Systems[k].Name == s.Run {
				b.between(s, names[k])
			}
		}
	}
	return b
}

// between is a blind spot between two systems.
func (b *block) between(s *compare.BlindSpot, name string) {
	of := ""
	if s.Of > 1 {
		of = fmt.Sprintf("in %d of %d pairs of runs, such as this: ", s.Pairs, s.Of)
	}
	b.fact(term.Plain(s.Code), name+": "+of+term.Plain(s.Text)+behind(s.Requests))
}

// blindSpots are those between the systems of a study.
func (s *Study) blindSpots() block {
	b := block{title: blindSpotsTitle}
	for i := range s.BlindSpots {
		b.between(&s.BlindSpots[i], term.Plain(s.BlindSpots[i].Run))
	}
	return b
}
