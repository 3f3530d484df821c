package workload

import (
	"strings"
	"testing"
)

// Medians after the filters were computed with Python from the same 3,000 rows.
func TestFiltersOfADataSet(t *testing.T) {
	o := Options{Dataset: "testdata/sharegpt_lengths.csv", MinInput: 100, MaxInput: 6000, MinOutput: 50, MaxOutput: 900, MaxTotal: 4096}
	w := mustOpen(t, o, 1)
	want := Cut{
		Rows: 3000, Kept: 1665, BelowMinInput: 355, AboveMaxInput: 230, BelowMinOutput: 98, AboveMaxOutput: 175, AboveMaxTotal: 477,
		Before: Medians{1701, 435}, After: Medians{1345, 407},
	}
	got, ok := w.Cut()
	if !ok || got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if w.Rows() != want.Kept {
		t.Errorf("%d rows", w.Rows())
	}
	for i := range w.Rows() {
		q := mustAt(t, w, i, 0, 0)
		if in, out := q.PromptTokens, q.OutputTokens; in < 100 || in > 6000 || out < 50 || out > 900 || in+out > 4096 {
			t.Fatalf("request %d: %d in, %d out", i, in, out)
		}
	}
	if text := got.String(); text != "filters dropped 1,335 of 3,000 (min_input 355, max_input 230, min_output 98, max_output 175, max_total 477); median prompt 1,701 → 1,345 tokens, median answer 435 → 407" {
		t.Error(text)
	}
	if _, ok := mustOpen(t, Options{Dataset: o.Dataset}, 1).Cut(); ok {
		t.Error("a cut without filters")
	}
	none := mustOpen(t, Options{Dataset: o.Dataset, MinInput: 1}, 1)
	if c, ok := none.Cut(); !ok || c.String() != "filters dropped none of 3,000" {
		t.Errorf("%v %s", ok, c)
	}
	o.MinInput, o.MaxInput = 9000, 0
	o.MaxTotal = 0
	if _, err := Open(o, 1); err == nil || !strings.HasSuffix(err.Error(), "the filters leave none of its 3000 requests; widen min_input, min_output, max_output") {
		t.Error(err)
	}
}

// Filters of times keep the times of what is left.
func TestFiltersKeepTimes(t *testing.T) {
	w := mustOpen(t, Options{Dataset: write(t, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 00:00:00,5000,1\n2023-11-16 00:00:03,10,2\n2023-11-16 00:00:05,6000,3\n2023-11-16 00:00:07,20,4\n"), MaxInput: 100}, 1)
	if due := allTimes(w); len(due) != 2 || due[0] != 3e9 || due[1] != 7e9 {
		t.Errorf("times %v, want 3 s and 7 s after the file's first row", due)
	}
}

func TestFiltersOfDrawnLengths(t *testing.T) {
	w := mustOpen(t, Options{Input: "uniform:1,1000", Output: "uniform:1,100", MaxInput: 250, MinOutput: 51}, 1)
	c, ok := w.Cut()
	// A quarter and half of that pass; in 4,096 draws 512, give or take 21.
	if !ok || c.Rows != 4096 || c.Kept < 512-106 || c.Kept > 512+106 || c.AboveMaxInput < 3072-140 || c.AboveMaxInput > 3072+140 {
		t.Errorf("%+v", c)
	}
	for i := range int64(2000) {
		if q := mustAt(t, w, i, 0, 0); q.PromptTokens > 250 || q.OutputTokens < 51 {
			t.Fatalf("%d in, %d out", q.PromptTokens, q.OutputTokens)
		}
	}
	_, err := Open(Options{Input: "10", MinInput: 11}, 1)
	if err == nil || err.Error() != "making a workload: the filters leave none of 4096 drawn lengths; widen min_input" {
		t.Error(err)
	}
}

func TestFilterMistakes(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{MinInput: -1}, "min_input: must be between 1 and"},
		{Options{MinInput: 5, MaxInput: 4}, "min_input: is 5, above max_input 4"},
		{Options{MinOutput: 5, MaxOutput: 4}, "min_output: is 5, above max_output 4"},
		{Options{MinInput: 5, MinOutput: 5, MaxTotal: 9}, "max_total: is 9, below min_input and min_output together"},
		{Options{Lengths: "none"}, `lengths: must be arxiv, azure-code, azure-conv, lmsys or sharegpt, not "none"`},
		{Options{Lengths: "lmsys", Input: "5"}, "input: cannot be given beside lengths"},
		{Options{Lengths: "lmsys", Output: "5"}, "output: cannot be given beside lengths"},
		{Options{Lengths: "lmsys", Dataset: "x"}, "lengths: cannot be given beside dataset"},
		{Options{Dataset: "x", Format: "yaml"}, `format: must be fermata, sharegpt, lmsys, arxiv, mooncake, azure, burstgpt or lengths, not "yaml"`},
		{Options{Format: "azure"}, "format: is for data sets"},
		{Options{SkipBad: true}, "skip_bad: is for data sets"},
	} {
		if _, err := Open(c.o, 1); err == nil || !strings.HasPrefix(err.Error(), "making a workload: "+c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
