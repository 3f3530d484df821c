package report

import (
	"fmt"
	"io"
	"slices"

	"fermata/capacity"
	"fermata/internal/term"
)

// SweepHTML writes the page of a sweep, as HTML does that of runs: what its other formats
// say, and pictures of it.
func SweepHTML(w io.Writer, s *Sweep) error {
	return s.htmlPage().write(w, s.page(), s.Tool.Version, term.Plain(s.System)+", sweep")
}

// CapacityHTML writes the page of searches; version is that of the program.
func CapacityHTML(w io.Writer, all []*capacity.Result, version string) error {
	if len(all) == 0 {
		return errNoResults
	}
	h := &htmlPage{Sections: capacitySections(all)}
	if len(all) > 1 {
		h.Verdicts = capacityHeads(all)
	}
	return h.write(w, capacityPage(all), version, term.Plain(all[0].Target)+", capacity")
}

// TuningHTML writes the page of a tuning.
func TuningHTML(w io.Writer, t *Tuning) error {
	h := &htmlPage{Sections: t.sections()}
	return h.write(w, t.page(), t.Tool.Version, orText(term.Plain(t.Title), "tuning"))
}

// StudyHTML writes the page of a study.
func StudyHTML(w io.Writer, s *Study) error {
	h := &htmlPage{Sections: s.sections(), Spots: s.spots()}
	return h.write(w, s.page(), s.Tool.Version, orText(term.Plain(s.Title), "study"))
}

// write writes a document's page: the verdict and the warnings of p on top, then its
// blocks, then the pictures that h has.
func (h *htmlPage) write(w io.Writer, p *page, version, title string) error {
	if err := h.frame(version, title); err != nil {
		return err
	}
	h.Verdict = p.verdict
	for _, b := range p.blocks {
		for _, one := range b.warnings {
			if !slices.Contains(h.Warnings, one) {
				h.Warnings = append(h.Warnings, one)
			}
		}
		b.warnings, b.picture = nil, nil
		if b.title == blindSpotsTitle {
			continue // they have a place of their own
		}
		if len(b.facts) > 0 || b.table != nil || len(b.notes) > 0 {
			h.Summary = append(h.Summary, b)
		}
	}
	if err := htmlTemplate().Execute(w, h); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// spots are the blind spots of a study; the requests behind them are in its runs.
func (s *Study) spots() []spot {
	var all []spot
	for i := range s.BlindSpots {
		b := &s.BlindSpots[i]
		all = append(all, spotOf(inPairs(b), b.Code, b.Text, b.Figures))
	}
	return all
}
