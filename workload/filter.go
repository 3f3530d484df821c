package workload

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"fermata/internal/stats"
	"fermata/internal/term"
)

// A filter drops requests by their lengths.
type filter struct{ minInput, maxInput, minOutput, maxOutput, maxTotal int32 }

func newFilter(o Options) filter {
	return filter{int32(o.MinInput), int32(o.MaxInput), int32(o.MinOutput), int32(o.MaxOutput), int32(o.MaxTotal)}
}

// The reasons for which a filter drops a request, in the order in which they
// are looked at.
const (
	passes = iota
	belowMinInput
	aboveMaxInput
	belowMinOutput
	aboveMaxOutput
	aboveMaxTotal
	reasons
)

func (f filter) any() bool { return f != filter{} }

// why is the first filter that p fails. A length that nobody knows fails none.
func (f filter) why(p pair) int {
	switch {
	case p.input > 0 && p.input < f.minInput:
		return belowMinInput
	case f.maxInput > 0 && p.input > f.maxInput:
		return aboveMaxInput
	case p.output > 0 && p.output < f.minOutput:
		return belowMinOutput
	case f.maxOutput > 0 && p.output > f.maxOutput:
		return aboveMaxOutput
	case f.maxTotal > 0 && p.input+p.output > f.maxTotal:
		return aboveMaxTotal
	}
	return passes
}

// Filters are the keys of o's filters of lengths that are on, such as "min_input,
// max_total".
func (o *Options) Filters() string { return newFilter(*o).names() }

// names are the keys of the filters that are on.
func (f filter) names() string {
	var names []string
	for _, one := range []struct {
		name  string
		bound int32
	}{
		{"min_input", f.minInput},
		{"max_input", f.maxInput},
		{"min_output", f.minOutput},
		{"max_output", f.maxOutput},
		{"max_total", f.maxTotal},
	} {
		if one.bound > 0 {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, ", ")
}

// A Cut says what the filters did. Each dropped row counts for the first filter
// that it fails, in the order of the fields.
type Cut struct {
	Rows, Kept     int64 // rows of the data set; of drawn lengths, trial draws
	BelowMinInput  int64
	AboveMaxInput  int64
	BelowMinOutput int64
	AboveMaxOutput int64
	AboveMaxTotal  int64
	Before, After  Medians
}

// Medians are the middle lengths in tokens, of those that are known: the
// ⌈n/2⌉-th smallest of n. 0 where none is.
type Medians struct{ Input, Output int64 }

// Dropped are the filters that dropped some, in the order of the fields.
func (c Cut) Dropped() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, one := range []struct {
			name string
			n    int64
		}{
			{"min_input", c.BelowMinInput},
			{"max_input", c.AboveMaxInput},
			{"min_output", c.BelowMinOutput},
			{"max_output", c.AboveMaxOutput},
			{"max_total", c.AboveMaxTotal},
		} {
			if one.n > 0 && !yield(one.name, one.n) {
				return
			}
		}
	}
}

// String says it in one line.
func (c Cut) String() string {
	var why []string
	for name, n := range c.Dropped() {
		why = append(why, fmt.Sprintf("%s %s", name, term.Count(n)))
	}
	if why == nil {
		return "filters dropped none of " + term.Count(c.Rows)
	}
	of := term.Count
	return fmt.Sprintf("filters dropped %s of %s (%s); median prompt %s → %s tokens, median answer %s → %s",
		of(c.Rows-c.Kept), of(c.Rows), strings.Join(why, ", "), of(c.Before.Input), of(c.After.Input), of(c.Before.Output), of(c.After.Output))
}

// A tally counts lengths before and after a filter. Lengths repeat, so that it
// stays small however many rows there are.
type tally struct {
	input, output, keptInput, keptOutput map[int32]int64
	dropped                              [reasons]int64
	rows                                 int64
}

func (t *tally) add(p pair, why int) {
	if t.input == nil {
		t.input, t.output = map[int32]int64{}, map[int32]int64{}
		t.keptInput, t.keptOutput = map[int32]int64{}, map[int32]int64{}
	}
	t.rows++
	t.dropped[why]++
	t.input[p.input]++
	t.output[p.output]++
	if why == passes {
		t.keptInput[p.input]++
		t.keptOutput[p.output]++
	}
}

func (t *tally) cut() Cut {
	return Cut{
		Rows: t.rows, Kept: t.dropped[passes],
		BelowMinInput: t.dropped[belowMinInput], AboveMaxInput: t.dropped[aboveMaxInput],
		BelowMinOutput: t.dropped[belowMinOutput], AboveMaxOutput: t.dropped[aboveMaxOutput],
		AboveMaxTotal: t.dropped[aboveMaxTotal],
		Before:        Medians{median(t.input), median(t.output)},
		After:         Medians{median(t.keptInput), median(t.keptOutput)},
	}
}

// median of the known lengths among counts.
func median(counts map[int32]int64) int64 {
	var n int64
	for length, k := range counts {
		if length > 0 {
			n += k
		}
	}
	left := stats.Rank(n, 500)
	for _, length := range slices.Sorted(maps.Keys(counts)) {
		if length <= 0 {
			continue
		}
		if left -= counts[length]; left <= 0 {
			return int64(length)
		}
	}
	return 0
}
