package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"fermata/metrics"
)

const studySchemaFile = "../docs/schema/study.schema.json"

func studied(t *testing.T) *Study {
	t.Helper()
	var statistics []Statistic
	for _, name := range []string{"ttft_due.p99", "scheduling_delay.over25s", "busy_share", "rates.fluid"} {
		s, err := ParseStatistic(name)
		if err != nil {
			t.Fatal(err)
		}
		statistics = append(statistics, s)
	}
	var results []*metrics.Result
	for seed := range uint64(4) {
		ttft := metrics.Dist{Unit: "ns", Quantiles: []metrics.Quantile{{P: .99, Value: float64(seed+1) * 1e9}}}
		delay := metrics.Dist{Unit: "ns", Over: []metrics.Over{{Value: 25e9, Share: .25}}}
		results = append(results, &metrics.Result{
			Run: metrics.Run{Seed: &seed}, Metrics: metrics.Metrics{TTFTDue: &ttft, SchedulingDelay: &delay},
			Simulation: &metrics.Simulation{System: "S", BusyShare: .5},
		})
	}
	s := NewStudy("test", "a study")
	s.Add("a", []Setting{{"scheduler.chunk", "512"}}, statistics, results)
	s.Claims = append(s.Claims, ClaimOf("median", "about 2 s", "ns", 2.5e9, 2e9, 3e9), ClaimOf("missing", "", "ns", math.NaN(), 0, 1))
	s.Caveat = "only a test"
	return s
}

func TestStudySchema(t *testing.T) {
	text, err := StudyDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, studySchemaFile, text)
	var b bytes.Buffer
	if err := WriteStudy("json", &b, studied(t), TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := StudyDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}

// Of 1, 2, 3 and 4 s the median is 2.5 s; a claim about what nobody has does not
// hold; what no run has is null.
func TestStudy(t *testing.T) {
	s := studied(t)
	if v, unit, ok := s.Value("a", "ttft_due.p99"); !ok || unit != "ns" || math.Abs(v-2.5e9) > 1 {
		t.Errorf("median %g %s", v, unit)
	}
	if !s.Claims[0].Holds || s.Claims[1].Holds || s.Claims[1].Value != nil || s.AllHold() {
		t.Errorf("claims %+v", s.Claims)
	}
	fluid := s.Points[0].Statistics[3]
	if fluid.Median != nil || len(fluid.Runs) != 4 || fluid.Runs[0].Value != nil {
		t.Errorf("%+v", fluid)
	}
	for _, format := range []string{"terminal", "markdown"} {
		var b bytes.Buffer
		if err := WriteStudy(format, &b, s, TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1 of 2 claims", "2.50 s (1.00–4.00)", "25.0% (25.0%–25.0%)", "chunk=512", "about 2 s", "only a test"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", format, want, b.String())
			}
		}
	}
}

func TestStatisticsThatAreNone(t *testing.T) {
	for _, name := range []string{"", "ttft", "what.p99", "tbt.p100", "tbt.p0", "tbt.p99.99", "tbt.over", "tbt.over-1s", "tbt.sd", "slo0.share", "slo1.x", "slo.share"} {
		if _, err := ParseStatistic(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// A percentile of too few requests is shown, greyed and marked, with what it would
// take, in every format; its JSON says so by its status.
func TestStudyMarksWhatIsNotStated(t *testing.T) {
	one, err := ParseStatistic("tbt.p99")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStudy("test", "few")
	for _, status := range []string{statusInsufficient, "ok"} {
		d := metrics.Dist{Unit: "ns", NRequests: 60, Quantiles: []metrics.Quantile{{P: .99, Value: 1e9, NEff: 60, Status: status}}}
		s.Add(status, nil, []Statistic{one}, []*metrics.Result{{Metrics: metrics.Metrics{TBT: &d}}})
	}
	if a, b := s.Points[0].Statistics[0].Runs[0].Status, s.Points[1].Statistics[0].Runs[0].Status; a != statusInsufficient || b != "" {
		t.Errorf("status %q and %q", a, b)
	}
	// Five requests beyond a p99 are 500.
	const note = "too few requests to state it, or no steady state; it takes tbt.p99 about 500 (had 60)"
	for format, wants := range map[string][]string{
		"terminal": {"1.00 s*", "* " + note},
		"markdown": {note},
	} {
		var b bytes.Buffer
		if err := WriteStudy(format, &b, s, TerminalOptions{Width: 160}); err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(b.String(), want) || strings.Count(b.String(), "1.00 s") != 2 {
				t.Errorf("%s: no %q in\n%s", format, want, &b)
			}
		}
	}
	var b bytes.Buffer
	if err := StudyHTML(&b, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `faint">1.00 s*</td>`) || !strings.Contains(b.String(), note) {
		t.Error("the page does not mark it")
	}
}
