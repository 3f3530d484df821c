package report

import (
	"bytes"
	"encoding/csv"
	"reflect"
	"strings"
	"testing"

	"fermata/compare"
	"fermata/cost"
	"fermata/internal/term"
	"fermata/metrics"
)

// compared is a comparison with an entry of every kind.
func compared() *compare.Comparison {
	ratio := func(d, low, high, mde float64) *compare.Ratio {
		return &compare.Ratio{Difference: d, Low: &low, High: &high, MDE: &mde}
	}
	money := func(million, good, answer string) *cost.Statement {
		return &cost.Statement{
			Currency: "USD", Basis: cost.ByToken, Unit: cost.AllTokens, PerMillion: million, Good: cost.InTime, PerMillionGood: good, PerGoodRequest: answer,
			Steps: []cost.Step{}, Prices: cost.Quoted{Date: "2026-11-01", Source: "list", Tokens: &cost.Tokens{InputPerMillion: "1", OutputPerMillion: "3"}},
		}
	}
	one := money("1.60", "1.80", "0.0008")
	one.Low, one.High, one.GoodLow, one.GoodHigh = "1.55", "1.65", "1.70", "1.90"
	costs := []compare.RunCost{{Run: "x/a/01", Cost: money("1.00", "2.00", "0.0004")}, {Run: "x/a/02", Cost: money("4.00", "8.00", "0.0009")}, {Run: "x/b/01", Cost: one}, {Run: "x/b/02"}}
	return &compare.Comparison{
		Schema: compare.Schema, Tool: metrics.Tool{Name: "fermata", Version: "test"},
		Systems: []compare.Side{
			{Name: "before", Target: "http://127.0.0.1:8000", Model: "m", Runs: []string{"x/a/01"}, Seeds: []uint64{1, 2, 3, 4, 5, 6}, Requests: 3000, OK: 3000, Costs: costs[:2]},
			{Name: "after", Target: "http://127.0.0.1:8001", Model: "m", Runs: []string{"x/b/01"}, Seeds: []uint64{1, 2, 3, 4, 5, 6}, Requests: 3000, OK: 2970, Costs: costs[2:]},
		},
		Metrics: []compare.Entry{
			{
				Metric: "ttft_due", Stat: "p50", Run: "after", Unit: "ns", A: ptr(200e6), B: ptr(210e6), Difference: ptr(10e6), Low: ptr(8e6), High: ptr(12e6),
				Relative: ratio(.05, .04, .06, .012), P: ptr(1e-5), PAdjusted: ptr(6e-5), VarianceRatio: ptr(71.4), MDE: ptr(2.4e6),
				Resolved: true, Better: "a", Method: compare.PairedRuns, N: 6,
			},
			{
				Metric: "ttft_due", Stat: "p99", Run: "after", Unit: "ns", A: ptr(2e9), B: ptr(1.9e9), Difference: ptr(-1e8), Low: ptr(-5e8), High: ptr(3e8),
				Relative: ratio(-.05, -.25, .15, .3), P: ptr(.4), PAdjusted: ptr(.8), VarianceRatio: ptr(1.7), MDE: ptr(6e8), Why: compare.Chance, Method: compare.PairedRuns, N: 6,
			},
			{
				Metric: "longest_silence", Stat: "p99", Run: "after", Unit: "ns", A: ptr(2e9), Why: compare.Absent,
			},
			{
				Metric: "failed_share", Run: "after", Unit: "share", A: ptr(0.0), B: ptr(.01), Difference: ptr(.01), Low: ptr(.008), High: ptr(.012),
				P: ptr(1e-4), PAdjusted: ptr(3e-4), MDE: ptr(.0024), Resolved: true, Better: "a", Method: compare.PairedRuns, N: 6,
			},
			{
				Metric: "slo1", Stat: "share", Objective: "ttft<=2s and tbt.p99<=100ms @99%", Run: "after", Unit: "share", A: ptr(.98), B: ptr(.99), Difference: ptr(.01),
				Low: ptr(.005), High: ptr(.015), P: ptr(.001), PAdjusted: ptr(.002), VarianceRatio: ptr(4.0), MDE: ptr(.006), Resolved: true, Better: "b", Method: compare.PairedRuns, N: 6,
			},
			{Metric: "e2e", Stat: "p99", Run: "after", Unit: "ns", A: ptr(20e9), B: ptr(21e9), Difference: ptr(1e9), Relative: &compare.Ratio{Difference: .05}, Why: compare.TooFewRequests},
			{
				Metric: "cost", Stat: "per_million_good", Run: "after", Unit: "USD", A: ptr(4.0), B: ptr(1.8), Difference: ptr(-2.2), Relative: &compare.Ratio{Difference: -.55}, Why: compare.TooFewRuns,
			},
			{Metric: "cost", Stat: "per_million", Run: "after", Why: compare.Unlike},
		},
		Pairings: []compare.Pairing{{
			Run: "after", Pairs: 6, Requests: 3000, OnlyBFailed: 30,
			Worst: []compare.Moved{{Pair: 2, Index: 317, PromptTokens: ptr(int32(4096)), A: 4e9, B: 12e9}, {Pair: 0, Index: 12, A: 4e9, B: 5e9}},
		}},
		Shifts: []compare.Shift{
			{Run: "after", Metric: "ttft_due", By: compare.ByPrompt, From: 12, To: 480, N: 1500, Median: 2e6, Worse: .11, Better: .02},
			{Run: "after", Metric: "e2e", By: compare.ByPrompt, From: 12, To: 480, N: 1490, Median: -30e6, Worse: .05, Better: .06},
			{Run: "after", Metric: "ttft_due", By: compare.ByPosition, From: 0, To: 99, N: 600, Median: 20e6, Worse: .61, Better: 0},
			{Run: "after", Metric: "e2e", By: compare.ByPosition, From: 0, To: 99, N: 590, Median: 0, Worse: 0, Better: 0},
		},
		Warnings: []metrics.Warning{{Code: "labels_missing", Text: "labels that not all have: gpu (not in after)", Help: "Name what differs with --label."}},
	}
}

func TestComparisonPages(t *testing.T) {
	for file, format := range map[string]string{"versus.terminal": "terminal", "versus.md": "markdown", "versus.json": "json", "versus.csv": "csv"} {
		var b bytes.Buffer
		if err := WriteComparison(format, &b, compared(), TerminalOptions{Width: 100}); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/"+file, b.Bytes())
	}
	var b bytes.Buffer
	if err := WriteComparison("terminal", &b, compared(), TerminalOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := term.Cells(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d cells: %s", n, line)
		}
	}
}

// The figures of the page, by hand: 0.01 of a share is a point, 0.05 is 5 %.
func TestComparisonFigures(t *testing.T) {
	e := compared().Metrics
	for i, want := range map[int][3]string{
		0: {"+5.00%", "+4.00…+6.00%", "1.20%"},
		1: {"−5.00%", "−25.0…+15.0%", "30.0%"},
		2: {"–", "", "–"},
		3: {"+1.00 pt", "+0.80…+1.20", "0.24 pt"},
		5: {"+5.00%", "", "–"},
	} {
		d, in, mde := entryDifference(&e[i])
		if got := [3]string{d, in, mde}; got != want {
			t.Errorf("entry %d: %q, not %q", i, got, want)
		}
	}
}

func TestRefusedComparison(t *testing.T) {
	c := &compare.Comparison{Schema: compare.Schema, Refused: "they asked for something else", Systems: []compare.Side{{Name: "a"}, {Name: "b"}}}
	var page, document bytes.Buffer
	if err := WriteComparison("terminal", &page, c, TerminalOptions{}); err != nil || !strings.HasPrefix(page.String(), "not compared: they asked for something else\n") {
		t.Errorf("%v %s", err, page.String())
	}
	if err := WriteComparison("json", &document, c, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ComparisonDocument.Validate(document.Bytes()); err != nil {
		t.Error(err)
	}
	if err := WriteComparison("xml", &page, c, TerminalOptions{}); err == nil {
		t.Error("xml is no format")
	}
}

func TestComparisonSchema(t *testing.T) {
	text, err := ComparisonDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../docs/schema/compare.schema.json", text)
	var b bytes.Buffer
	if err := WriteComparison("json", &b, compared(), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ComparisonDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
	if err := ComparisonDocument.Validate(bytes.Replace(b.Bytes(), []byte(`"better": "a"`), []byte(`"better": "c"`), 1)); err == nil {
		t.Error("better c passed the schema")
	}
}

// Keys that may be absent say when.
func TestComparisonKeys(t *testing.T) {
	fields(reflect.TypeFor[compare.Comparison](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		json, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name := typ.Name() + "." + json; strings.Contains(options, "omitempty") && !strings.Contains(comparisonKeys()[name], "Absent") {
			t.Errorf("%s may be absent and does not say when", name)
		}
	})
}

func TestComparisonCSV(t *testing.T) {
	var b bytes.Buffer
	if err := WriteComparison("csv", &b, compared(), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 1+len(compared().Metrics) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[1][5] != "200000000" || rows[1][14] != "true" || rows[3][6] != "" || rows[3][16] != "absent" {
		t.Errorf("%q", rows)
	}
}

// What each system costs, by hand: of 1 and 4 the geometric mean is 2, of 2 and 8 it is 4,
// and of 1,000 answers at 4 and 9 ten-thousandths it is 0.6. A run without a price is unknown beside one that has
// one, what nobody says is good is price only, and runs of two currencies stand apart.
func TestCostsBesideEachOther(t *testing.T) {
	c := compared()
	rows := func() (all [][]string) {
		for _, r := range costsBeside(c, []string{"before", "after"}).table.rows {
			var texts []string
			for _, cell := range r {
				texts = append(texts, cell.text)
			}
			all = append(all, texts)
		}
		return all
	}
	want := [][]string{
		{"before", "2", "2.00 (1.00–4.00)", "4.00 (2.00–8.00)", "0.600 (0.400–0.900)", "USD"},
		{"after", "1", "1.60 [1.55–1.65]", "1.80 [1.70–1.90]", "0.800", "USD"},
		{"after", "1", "unknown", "unknown", "unknown", ""},
	}
	if got := rows(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	first, second := c.Systems[0].Costs[0].Cost, c.Systems[0].Costs[1].Cost
	first.Currency, first.Good, first.PerMillionGood, first.PerGoodRequest = "EUR", cost.PriceOnly, "", ""
	second.PerMillion, second.PerMillionGood, second.PerGoodRequest = "0.00", "", ""
	want = append([][]string{
		{"before", "1", "1.00", "price only", "price only", "EUR"},
		{"before", "1", "0.00", "none good", "none good", "USD"},
	}, want[1:]...)
	if got := rows(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}
