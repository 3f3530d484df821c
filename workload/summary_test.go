package workload

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	w := mustOpen(t, Options{Dataset: write(t, "at_s,prompt_tokens,output_tokens\n0,1,7\n1,3,5\n1,4,5\n4,12,3\n"), Once: true}, 1)
	s, err := Describe(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Ranks of prompts 1 2 3 4, of answers 4 2.5 2.5 1: covariance -4.5, variances
	// 5 and 4.5. Squared distances from the mean 5 are 16 + 4 + 1 + 49 = 70.
	rho := -4.5 / math.Sqrt(5*4.5)
	if !s.Correlated || math.Abs(s.Correlation-rho) > 1e-12 {
		t.Errorf("correlation %v, want %v", s.Correlation, rho)
	}
	want := Spread{N: 4, Min: 1, Max: 12, P10: 1, P50: 3, P90: 12, P99: 12, Mean: 5, SD: math.Sqrt(70.0 / 3), Bins: []Bin{{1, 2, 1}, {2, 4, 1}, {4, 8, 1}, {8, 16, 1}}}
	if diff := cmp.Diff(want, s.Input); diff != "" {
		t.Error(diff)
	}
	// Gaps 1, 0, 3: mean 4/3, variance (1/9 + 16/9 + 25/9)/2 = 7/3.
	a := s.Arrivals
	if a == nil || a.PerSecond != 0.75 || a.Together != 1 || math.Abs(a.GapCV-math.Sqrt(7.0/3)*0.75) > 1e-12 || a.WindowNs != 0 || a.LastNs != 4e9 {
		t.Errorf("%+v", a)
	}
	if s, err := Describe(w, 2); err != nil || s.Requests != 2 || s.Rows != 4 || s.Input.Max != 3 || s.Arrivals.LastNs != 1e9 {
		t.Errorf("of two rows: %+v %v", s, err)
	}
	if s.Cut != nil || s.Shared != nil {
		t.Errorf("%+v", s)
	}
}

func TestSummaryText(t *testing.T) {
	w := mustOpen(t, Options{Dataset: write(t, `{"prompt":"Hello there","at_s":0}`+"\n{\n"+`{"prompt":"a","output_tokens":3,"at_s":2}`+"\n"), SkipBad: true, MaxInput: 100}, 1)
	s, err := Describe(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(s.Text(0), "\n")
	const want = `data set     2 rows that can be asked, 0 with nothing to ask, 1 that cannot be read
first bad    line 2: the JSON object is cut off
filters      dropped none of 2
estimated    lengths of 2 rows, from their text at four letters a token
requests     2 described
arrivals     0.5 a second over 2 s, gaps with coefficient of variation 0, 0 at the same time as the one before

prompt tokens
  min 1, p10 1, p50 1, p90 3, p99 3, max 3; mean 2.0, sd 1.4
         1 to 1               1  ████████████████████████████████████████
         2 to 3               1  ████████████████████████████████████████

answer tokens
  min 3, p10 3, p50 3, p90 3, p99 3, max 3; mean 3.0, sd 0.0; 1 not known
         2 to 3               1  ████████████████████████████████████████
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	if folded := "variation 0, 0 at the same\n             time as the one before\n"; !strings.Contains(s.Text(90), folded) {
		t.Errorf("no %q in\n%s", folded, s.Text(90))
	}
	fixed, err := Describe(mustOpen(t, Options{}, 1), 0)
	if err != nil || fixed.Requests != 10_000 || fixed.Correlated || fixed.Source != "prompts always 512 tokens; answers always 128 tokens" {
		t.Errorf("%+v %v", fixed, err)
	}
	mooncake, err := Describe(mustOpen(t, Options{Dataset: "testdata/mooncake_conversation.jsonl"}, 1), 0)
	if line := "prefixes     676 of 8,490 blocks came before: 8.1 % of prompt tokens could come from a cache\n"; err != nil || !strings.Contains(mooncake.Text(0), line) {
		t.Errorf("no %q in\n%s", line, mooncake.Text(0))
	}
}

func TestNotes(t *testing.T) {
	text := `{"prompt":"Hello there"}` + "\n{\n" + `{"prompt":"a","prompt_tokens":1,"output_tokens":3}` + "\n"
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, nil},
		{Options{Lengths: "azure-conv"}, []string{"lengths: " + PresetSource("azure-conv")}},
		{Options{Input: "5", MaxInput: 6}, []string{"filters dropped none of 4,096"}},
		{Options{Dataset: write(t, text), SkipBad: true, MaxInput: 2}, []string{
			"filters dropped 1 of 2 (max_input 1); median prompt 1 → 1 tokens, median answer 3 → 3",
			"1 rows of the data set cannot be read and were skipped; the first: line 2: the JSON object is cut off",
		}},
		{Options{Dataset: "testdata/sharegpt.json"}, []string{
			"1 rows of the data set have nothing to ask and were skipped",
			"lengths of 3 rows are estimated from their text, at four letters a token",
		}},
		{Options{Dataset: "testdata/azure_2023_code.csv"}, nil},
	} {
		if diff := cmp.Diff(c.want, mustOpen(t, c.o, 1).Notes()); diff != "" {
			t.Errorf("%+v: %s", c.o, diff)
		}
	}
}
