package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"fermata/metrics"
)

const selftestFile = "../docs/schema/selftest.schema.json"

func TestSelftestSchema(t *testing.T) {
	text, err := SelftestDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, selftestFile, text)
}

// Keys whose name does not say everything are described; those of Tool and Warning
// are those of a result.
func TestSelftestKeys(t *testing.T) {
	plain := "Selftest.tool Selftest.machine Selftest.verdict Selftest.warnings " +
		"Machine.os Machine.arch Machine.kernel Machine.processor Machine.cores " +
		"SelftestStep.streams SelftestStep.events_per_s_per_stream SelftestStep.events " +
		"SelftestDispatch.requests_per_s SelftestDispatch.requests_per_s_realised SelftestVerdict.text"
	fields(reflect.TypeFor[Selftest](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		json, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := typ.Name() + "." + json
		meaning, ok := selftestKeys()[name]
		switch {
		case !ok && strings.Contains(" "+plain+" ", " "+name+" "), typ == reflect.TypeFor[metrics.Tool](), typ == reflect.TypeFor[metrics.Warning](), typ == reflect.TypeFor[Spread]():
		case !ok:
			t.Errorf("%s is not described", name)
		case strings.Contains(options, "omitempty") && f.Type.Kind() == reflect.Pointer && !strings.Contains(meaning, "Absent"):
			if name != "SelftestStep.setup_cpu_per_stream_ns" && name != "SelftestStep.memory_per_stream_bytes" {
				t.Errorf("%s may be absent and does not say when", name)
			}
		}
	})
}

func sampleSelftest() *Selftest {
	f := func(v float64) *float64 { return &v }
	quoted := int64(10_000)
	s := Spread{N: 1000, P50: 2000, P99: 8000, P999: 20_000, Max: 150_000}
	return &Selftest{
		Schema: SelftestSchemaName, Tool: metrics.Tool{Name: "fermata", Version: "test"}, Transport: "fast",
		Machine:   Machine{OS: "linux", Arch: "amd64", Cores: 2, ServerCores: []int{0}, ClientCores: []int{1}, Realtime: true},
		PassesLow: f(20_000), PassesHigh: f(200_000), HighestValid: f(200_000),
		Steps: []SelftestStep{
			{Streams: 1000, PerStream: 20, Asked: 20_000, Sent: 19_998, Events: 60_000, Sender: s, Error: s, ErrorExact: &s, ExactShare: .99, Bound: s, GapError: s, TTFTError: s, CPUPerEvent: f(6100), TimedPerEvent: f(4200), SetupCPU: f(25_000), Memory: f(900), InFlight: 1000},
			{Streams: 10_000, PerStream: 20, Asked: 200_000, Sent: 180_000, Events: 540_000, Void: true, Sender: s, Error: s, Bound: s},
		},
		Dispatch: &SelftestDispatch{Rate: 1000, Realised: 1003, CV: 1.01, KS: 0.02, Root: 1.1, Lateness: s, Wire: s},
		Verdict:  SelftestVerdict{Text: "This machine can quote TTFT and gaps to ±10 µs up to 1,000 streams at 20 tokens/s each.", Streams: 1000, ErrorNs: &quoted},
	}
}

func TestSelftestDocument(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSelftest("json", &b, sampleSelftest(), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := SelftestDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
	if strings.Contains(b.String(), "null") {
		t.Error("what is absent stands as null")
	}
	if err := WriteSelftest("csv", &b, sampleSelftest(), TerminalOptions{}); err == nil {
		t.Error("a self-test was written as CSV")
	}
	golden(t, "testdata/selftest.json", b.Bytes())
}

func TestSelftestPages(t *testing.T) {
	for _, format := range []string{"terminal", "markdown"} {
		var b bytes.Buffer
		if err := WriteSelftest(format, &b, sampleSelftest(), TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/selftest."+format, b.Bytes())
	}
}
