package report

import (
	"regexp"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// brief are warnings that hold for nearly every run: they are notes below the
// tables, without their help.
var brief = []string{"few_requests", "assumed_intervals"}

// warnings are the result's own, with the reasons why the instrument was at its
// limit first.
func warnings(r *metrics.Result) []metrics.Warning {
	var all []metrics.Warning
	for _, reason := range r.Health.Reasons {
		all = append(all, metrics.Warning{
			Code: "client_bound", Text: reason,
			Help: "offer the load from a machine with more room, or offer less: these numbers hold this machine's delays too",
		})
	}
	for _, w := range r.Warnings {
		// Requests that a stop cut off say nothing against the others.
		if w.Code == codeInvalid && stopped(r) {
			continue
		}
		all = append(all, w)
	}
	return all
}

// split parts the warnings that stand on top of a page from its notes.
func split(ws []metrics.Warning) (said, noted []metrics.Warning) {
	for _, w := range ws {
		if slices.Contains(brief, w.Code) {
			noted = append(noted, w)
		} else {
			said = append(said, w)
		}
	}
	return said, noted
}

// notes are warnings of a line each.
func notes(ws []metrics.Warning) block {
	b := block{title: "Notes"}
	for _, w := range ws {
		b.notes = append(b.notes, "["+term.Plain(w.Code)+"] "+term.Plain(w.Text))
	}
	return b
}

// A heard is one warning with the runs that gave it, and what each said.
type heard struct {
	warning metrics.Warning
	runs    []int
	texts   []string
}

// together are the warnings of all runs, each stated once where the runs differ
// in its numbers alone, with the names of those that it is about unless every
// run says the same.
func together(rs []*metrics.Result, names []string) []metrics.Warning {
	var all []heard
	for i, r := range rs {
		for _, w := range warnings(r) {
			k := slices.IndexFunc(all, func(h heard) bool {
				return h.warning.Code == w.Code && h.warning.Help == w.Help && h.runs[len(h.runs)-1] != i && shape(h.warning.Text) == shape(w.Text)
			})
			if k < 0 {
				all = append(all, heard{warning: w})
				k = len(all) - 1
			}
			all[k].runs, all[k].texts = append(all[k].runs, i), append(all[k].texts, w.Text)
		}
	}
	var ws []metrics.Warning
	for _, h := range all {
		w := h.warning
		w.Text = merged(h.texts)
		if len(h.runs) < len(rs) || w.Text != h.texts[0] {
			var who []string
			for _, i := range h.runs {
				who = append(who, names[i])
			}
			w.Text = listed(who) + ": " + w.Text
		}
		ws = append(ws, w)
	}
	return ws
}

// numbers are what two texts of one warning may differ in: counts, "3 of 60",
// durations.
var numbers = regexp.MustCompile(`\d+(?:[.,]\d+)*(?:e[+-]\d+)?(?: of \d+)?(?: (?:ns|µs|ms|s)\b)?`)

// shape is text without its numbers.
func shape(text string) string { return numbers.ReplaceAllString(text, "#") }

// merged is one text out of several of the same shape: a number in which they
// differ becomes the list of them, in the order of texts.
func merged(texts []string) string {
	found := make([][]string, len(texts))
	for i, t := range texts {
		found[i] = numbers.FindAllString(t, -1)
	}
	var b strings.Builder
	for i, between := range numbers.Split(texts[0], -1) {
		b.WriteString(between)
		if i == len(found[0]) {
			break
		}
		var values []string
		differ := false
		for k := range texts {
			values = append(values, found[k][i])
			differ = differ || found[k][i] != found[0][i]
		}
		if differ {
			b.WriteString(listed(values))
		} else {
			b.WriteString(found[0][i])
		}
	}
	return b.String()
}
