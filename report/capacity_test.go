package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"fermata/capacity"
	"fermata/metrics"
)

func TestCapacitySchema(t *testing.T) {
	text, err := CapacityDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../docs/schema/capacity.schema.json", text)
}

// Keys are described, and those that may be absent say when.
func TestCapacityKeys(t *testing.T) {
	plain := " Warning.code Warning.text "
	fields(reflect.TypeFor[capacity.Result](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		json, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := typ.Name() + "." + json
		meaning, ok := capacityKeys()[name]
		switch {
		case !ok && !strings.Contains(plain, " "+name+" "):
			t.Errorf("%s is not described", name)
		case strings.Contains(options, "omitempty") && !strings.Contains(meaning, "Absent"):
			t.Errorf("%s may be absent and does not say when", name)
		}
	})
}

func sampleCapacity() *capacity.Result {
	of := func(v float64) *float64 { return &v }
	seed := uint64(7)
	r := &capacity.Result{
		Schema: capacity.Schema, Objective: "ttft<=2s @p99", Method: capacity.HTRM, Allowed: .01, Precision: .05, Ending: capacity.Found,
		Reason: "the budget was spent", Requests: 36605, DurationNs: 3e12, Seed: &seed, Target: "a server",
		Capacity: &capacity.Capacity{
			RPS: 12.125, Low: of(11.5), High: of(12.75), Attainment: of(.9912), AttainmentLow: of(.98), AttainmentHigh: of(.999), TokensPerS: of(2315.25),
		},
		SaturationRPS: of(13.36), Probe: &capacity.Probe{RPS: 13.36, Asked: 1200, Answered: 1200},
		Held: &capacity.Held{Rate: 12.1, Realised: 12.05, Requests: 14905, Misses: 131, Tau: 250, TauBy: "heavy-traffic"},
	}
	for i := range 24 {
		r.Search = append(r.Search, capacity.Step{Rate: 11 + float64(i)/10, Realised: 11 + float64(i)/10, Requests: 100, Misses: i / 20 * 30})
	}
	return r
}

// What was found, what limits it and how it was sought stand on the page; the JSON
// of one search is an object that the schema takes, of several an array.
func TestWriteCapacity(t *testing.T) {
	none := sampleCapacity()
	none.Capacity, none.Held, none.Ending, none.Reason = nil, nil, capacity.Unanswered, "none of 40 requests was answered"
	none.Warnings = []metrics.Warning{{Code: "turned_away", Text: "12 were turned away"}}
	write := func(format string, all ...*capacity.Result) string {
		t.Helper()
		var b bytes.Buffer
		if err := WriteCapacity(format, &b, all, TerminalOptions{Width: 110}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in\n%s", w, text)
			}
		}
	}
	one := write("terminal", sampleCapacity())
	has(one, "Capacity 12.12 requests/s (11.5–12.75): up to there ttft<=2s @p99 holds", "0.91 of saturation", "99.1%", "2,315 output tokens/s", "┤", "×", "held")
	has(write("terminal", none), "No capacity: none of 40 requests was answered")
	has(write("markdown", sampleCapacity()), "**Capacity 12.12", "```\n", "| held |")
	both := write("terminal", sampleCapacity(), sampleCapacity(), none)
	has(both, "3 searches, 2 capacities", "median 12.12 requests/s over 2 seeds", "none", "[turned_away]")
	other := sampleCapacity()
	other.Objective = "tpot<=30ms"
	var page bytes.Buffer
	if err := CapacityHTML(&page, []*capacity.Result{sampleCapacity(), sampleCapacity(), none, other}, "v0"); err != nil {
		t.Fatal(err)
	}
	has(page.String(), `<dt>ttft&lt;=2s @p99</dt><dd class="bad">median 12.12 requests/s over 2 seeds, from 12.12 to 12.12; none: none of 40 requests was answered</dd>`,
		`<dt>tpot&lt;=30ms</dt><dd class="good">12.12 requests/s (11.5–12.75)</dd>`)
	for _, r := range []*capacity.Result{sampleCapacity(), none} {
		if err := CapacityDocument.Validate([]byte(write("json", r))); err != nil {
			t.Error(err)
		}
	}
	var list []capacity.Result
	if err := json.Unmarshal([]byte(write("json", sampleCapacity(), none)), &list); err != nil || len(list) != 2 || list[1].Capacity != nil {
		t.Errorf("%v: %d results", err, len(list))
	}
	if err := DocumentFormats.Check("xml"); err == nil {
		t.Error("xml is no format")
	}
}
