package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

const tuneSchemaFile = "../docs/schema/tune.schema.json"

func tuning() *Tuning {
	best := NewTrial([]Setting{{"scheduler.chunk", "512"}}, sample("a", false))
	base := NewTrial(nil, sample("b", true))
	return &Tuning{
		Schema: TuneSchemaName, Tool: metrics.Tool{Name: "fermata", Version: "test"}, Objectives: []string{"ttft<=1s"}, Budget: 2400, Rule: "sequential_halving",
		Systems: []TunedSystem{{
			Name: "a", System: "simulated", Arms: 2, Best: &best, Default: &base, Effort: TuneEffort{Runs: 3, Requests: 1800, Minutes: 2.5},
			Rounds: []TuneRound{{Requests: 600, Trials: []TuneTrial{best, {Settings: []Setting{{"scheduler.chunk", "9"}}, Tuned: true, Failed: "it did not start"}}}},
			Notes:  []TuneRemark{{Code: "too_light", Text: "the load is too light"}},
		}},
	}
}

func TestTuneSchema(t *testing.T) {
	text, err := TuneDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, tuneSchemaFile, text)
	var b bytes.Buffer
	if err := WriteTuning("json", &b, tuning(), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := TuneDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}

// Untuned results are marked, effort stands beside what it brought.
func TestTunePages(t *testing.T) {
	for format, wants := range map[string][]string{
		"terminal": {"chunk=512", "default settings", "1,800", "2.5", "it did not start", "a: the load is too light"},
		"markdown": {"| a | default settings |", "| chunk=512 | 1 | 600 |"},
	} {
		var b bytes.Buffer
		if err := WriteTuning(format, &b, tuning(), TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", format, want, &b)
			}
		}
	}
}
