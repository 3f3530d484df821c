package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

const sweepSchemaFile = "../docs/schema/sweep.schema.json"

func swept() *Sweep {
	s := &Sweep{Schema: SweepSchemaName, Tool: metrics.Tool{Name: "fermata", Version: "test"}, System: "http://h:1", Knob: "rate", Seeds: "fresh", GPUs: 1, From: "nobody"}
	s.AddPoint(SweepPoint{Label: "rate-4", Value: ptr(4.0), Folder: "rate-4", Frontier: true}, sample("a", false))
	s.AddPoint(SweepPoint{Label: "rate-8", Value: ptr(8.0), Folder: "rate-8", Kept: true}, sample("b", true))
	s.Knee = &SweepKnee{At: "rate-4", Rule: "kleinrock_power"}
	s.Goodput = []SweepGoodput{{Objective: "all", Share: .9, At: "rate-4", RPSPerGPU: ptr(4.0), Loss: ptr(.39), CostFactor: ptr(1 / .61)}, {Objective: "all", Share: .99}}
	return s
}

func TestSweepSchema(t *testing.T) {
	text, err := SweepDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, sweepSchemaFile, text)
	var b bytes.Buffer
	if err := WriteSweep("json", &b, swept(), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := SweepDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}

// No throughput stands without its latencies and its load.
func TestSweepPages(t *testing.T) {
	for format, wants := range map[string][]string{
		"terminal": {"rate-4", "TTFT p99", "TBT p99", "finished/s", "knee, frontier", "kept", "90 %", "39.0%", "× 1.64", "not even the lowest lets 99 % of the requests meet all objectives", "as nobody said how many"},
		"markdown": {"| rate-4 |", "knee, frontier", "× 1.64"},
	} {
		var b bytes.Buffer
		if err := WriteSweep(format, &b, swept(), TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("%s: no %q in\n%s", format, want, &b)
			}
		}
	}
	if err := WriteSweep("csv", &bytes.Buffer{}, swept(), TerminalOptions{}); err == nil {
		t.Error("csv")
	}
}

// A goodput is told with the loads that hold and fail for certain.
func TestSweepHeadline(t *testing.T) {
	for want, g := range map[string]SweepGoodput{
		"2 loads; up to 4.00 requests/s a GPU (surely 2.00, less than 8.00), 99 % of them meet all objectives": {RPSPerGPU: ptr(4.0), SureRPSPerGPU: ptr(2.0), FailsRPSPerGPU: ptr(8.0)},
		"2 loads; up to 4.00 requests/s a GPU (surely 4.00), 99 % of them meet all objectives":                 {RPSPerGPU: ptr(4.0), SureRPSPerGPU: ptr(4.0)},
		"2 loads; up to 4.00 requests/s a GPU (surely none), 99 % of them meet all objectives":                 {RPSPerGPU: ptr(4.0)},
		"2 loads; not even the lowest lets 99 % of the requests meet all objectives (less than 8.00)":          {FailsRPSPerGPU: ptr(8.0)},
		"2 loads; not even the lowest lets 99 % of the requests meet all objectives":                           {},
	} {
		s := swept()
		g.Objective, g.Share = "all", .99
		s.Goodput = []SweepGoodput{g}
		if got := s.verdictText(); got != "http://h:1: "+want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// More good requests a second than finished ones are explained; else nothing is.
func TestSweepExplainsGood(t *testing.T) {
	for finished, explained := range map[float64]bool{16.5: true, 20: false} {
		s := swept()
		s.Points = s.Points[:1]
		s.Points[0].RequestsPerS = &finished
		s.Points[0].Shares = []SweepShare{{Objective: "all", Share: .99, GoodRPS: ptr(19.8)}}
		s.Stopped = "the money was spent before rate-8"
		var b bytes.Buffer
		if err := WriteSweep("terminal", &b, s, TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		if is := strings.Contains(b.String(), "good/s counts measured requests"); is != explained {
			t.Errorf("%v finished: explained %v", finished, is)
		}
		if !strings.Contains(b.String(), "1 load, stopped: the money was spent before rate-8") {
			t.Error(b.String())
		}
	}
}
