package deadline

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reference is one curve for all endpoints of a model: at each length the least of
// their curves, over the lengths that all of them are valid for. Against it they can
// be ranked; against its own curve each is forgiven for being slow. Files that carry
// flags are left out, and skipped names them; an error says that fewer than two are
// left. Slack is for the caller to settle: one for all.
func Reference(files []*File, names []string) (f *File, skipped []string, err error) {
	var used []*File
	var kept []string
	for i, one := range files {
		if len(one.Flags) > 0 {
			skipped = append(skipped, names[i]+" ("+strings.Join(one.Flags, ", ")+")")
			continue
		}
		used, kept = append(used, one), append(kept, names[i])
	}
	if len(used) < 2 {
		return nil, skipped, fmt.Errorf("a reference of %d curves: two without flags are needed; left out: %s", len(files), orNone(skipped))
	}
	from, to := int64(1), int64(1<<30)
	var all []*Deadlines
	for i, one := range used {
		d := one.deadlines(kept[i])
		lo, hi, _ := d.Range()
		from, to = max(from, lo), min(to, hi)
		all = append(all, d)
	}
	if from >= to {
		return nil, skipped, fmt.Errorf("a reference of %s: no prompt length is valid for all of them", strings.Join(kept, ", "))
	}
	if to == 1<<30 {
		return nil, skipped, errors.New("a reference needs curves that say what lengths they are valid for (valid.prompt_tokens)")
	}
	f = &File{Schema: Schema, Shape: Monotone, Source: &Source{Plan: "reference", Text: ""}, Valid: Valid{PromptTokens: []int32{int32(from), int32(to)}}}
	for _, p := range geometric(int32(from), int32(to), knotPoints) {
		fit, low, high := least(all, EdgeFit, p), least(all, EdgeLow, p), least(all, EdgeHigh, p)
		f.Knots = append(f.Knots, Knot{p, fit})
		f.Band = append(f.Band, BandPoint{p, min(low, fit), max(high, fit)})
	}
	f.Source.Target = strings.Join(kept, " ")
	return f, skipped, nil
}

// least is the least of several curves at a length.
func least(all []*Deadlines, e Edge, tokens int32) time.Duration {
	at := all[0].Due(e, 0, tokens)
	for _, d := range all[1:] {
		at = min(at, d.Due(e, 0, tokens))
	}
	return time.Duration(at)
}

func orNone(v []string) string {
	if len(v) == 0 {
		return "none"
	}
	return strings.Join(v, ", ")
}

// CurveAt is the curve of a file that was read, in ns for a prompt of so many
// tokens, without slack.
func (f *File) CurveAt(tokens float64) float64 { return float64(f.curve().at(int64(tokens + 0.5))) }
