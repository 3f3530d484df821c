package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fermata/internal/term"
	"fermata/metrics"
)

// hostile is a run whose words come from people who mean harm.
func hostile() *metrics.Result {
	r := sample("a\"b\\c\nd", true)
	r.Run.Model = "<script>alert(1)</script> & ]]> \x1b[2J \x00 \xff"
	r.SLO[0].Objective = `ttft<=1s and "e2e"<=2s \ @99%`
	r.SLO = append(r.SLO, r.SLO[0]) // given twice
	r.SLO[2].Verdict = metrics.Open
	r.Warnings[0].Text += " ]]> <b>"
	r.Targets = map[string]metrics.TargetResult{"x\"\\\n": {Outcomes: map[string]int64{"ok": 3}, Metrics: r.Metrics, SLO: r.SLO[:1]}}
	return r
}

// A caseXML is a test case as a CI system reads it.
type caseXML struct {
	Class   string `xml:"classname,attr"`
	Name    string `xml:"name,attr"`
	Time    string `xml:"time,attr"`
	Failure *struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	} `xml:"failure"`
	Error *struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	} `xml:"error"`
	Skipped *struct{} `xml:"skipped"`
}

type suitesXML struct {
	XMLName  xml.Name
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Suites   []struct {
		Name     string    `xml:"name,attr"`
		Tests    int       `xml:"tests,attr"`
		Failures int       `xml:"failures,attr"`
		Errors   int       `xml:"errors,attr"`
		Cases    []caseXML `xml:"testcase"`
		Out      string    `xml:"system-out"`
	} `xml:"testsuite"`
}

func junitRead(t *testing.T, results ...*metrics.Result) suitesXML {
	t.Helper()
	var b bytes.Buffer
	if err := Write("junit", &b, results, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(&b)
	d.Strict = true
	var s suitesXML
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if s.XMLName.Local != "testsuites" || len(s.Suites) != len(results) {
		t.Fatalf("%+v", s)
	}
	tests, failures, errs := 0, 0, 0
	for _, suite := range s.Suites {
		n, f, e := len(suite.Cases), 0, 0
		for _, c := range suite.Cases {
			if c.Failure != nil {
				f++
			}
			if c.Error != nil {
				e++
			}
			if seconds, err := strconv.ParseFloat(c.Time, 64); err != nil || seconds < 0 || c.Name == "" || c.Class == "" || c.Skipped != nil || c.Failure != nil && c.Error != nil {
				t.Errorf("case %+v", c)
			}
		}
		if suite.Tests != n || suite.Failures != f || suite.Errors != e {
			t.Errorf("suite %s says %d, %d, %d of %d cases, %d failures, %d errors", suite.Name, suite.Tests, suite.Failures, suite.Errors, n, f, e)
		}
		tests, failures, errs = tests+n, failures+f, errs+e
	}
	if s.Tests != tests || s.Failures != failures || s.Errors != errs {
		t.Errorf("the whole says %d, %d, %d; its suites %d, %d, %d", s.Tests, s.Failures, s.Errors, tests, failures, errs)
	}
	return s
}

// An objective is a case: met passes, missed fails, open is an error. What cannot
// be judged at all is told by the first.
func TestJUnit(t *testing.T) {
	s := junitRead(t, sample("smooth", false), hostile(), broken(), bare())
	state := func(c caseXML) string {
		switch {
		case c.Failure != nil:
			return c.Name + " failed: " + c.Failure.Type
		case c.Error != nil:
			return c.Name + " error: " + c.Error.Type
		}
		return c.Name + " passed"
	}
	odd := term.Plain(`ttft<=1s and "e2e"<=2s \ @99%`)
	for i, want := range [][]string{
		{"measurement passed", "ttft<=500ms @p90 passed", "tbt<=50ms @p99 passed"},
		{"measurement passed", odd + " passed", "tbt<=50ms @p99 failed: missed", odd + " error: open"},
		{"measurement error: client_bound", "ttft<=500ms @p90 passed", "tbt<=50ms @p99 passed"},
		{"measurement failed: no_success"},
	} {
		var got []string
		for _, c := range s.Suites[i].Cases {
			got = append(got, state(c))
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("suite %d: %q, want %q", i, got, want)
		}
	}
	if out := s.Suites[1].Out; !strings.Contains(out, "blind spot [stall_hidden]") || !strings.Contains(out, "]]> <b>") {
		t.Errorf("it says %q", out)
	}
	twice := junitRead(t, sample("same", false), sample("same", false), bare())
	if a, b, c := twice.Suites[0].Name, twice.Suites[1].Name, twice.Suites[2].Name; a != "same" || b != "same (2)" || c != "run 3" {
		t.Errorf("suites %s, %s, %s", a, b, c)
	}
}

// A sampleText is one line of the exposition format.
type sampleText struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	promName  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	promLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
)

// parseSample reads a line by the grammar of the text format, version 0.0.4.
func parseSample(line string) (s sampleText, err error) {
	s.labels = map[string]string{}
	s.name = promName.FindString(line)
	rest := line[len(s.name):]
	if s.name == "" {
		return s, fmt.Errorf("no name")
	}
	if strings.HasPrefix(rest, "{") {
		rest = rest[1:]
		for !strings.HasPrefix(rest, "}") {
			name := promLabel.FindString(rest)
			if name == "" || !strings.HasPrefix(rest[len(name):], `="`) {
				return s, fmt.Errorf("no label at %q", rest)
			}
			rest = rest[len(name)+2:]
			var v strings.Builder
			for {
				if rest == "" {
					return s, fmt.Errorf("label %s does not end", name)
				}
				c := rest[0]
				rest = rest[1:]
				if c == '"' {
					break
				}
				if c == '\\' {
					if rest == "" {
						return s, fmt.Errorf("label %s ends in a backslash", name)
					}
					switch rest[0] {
					case 'n':
						c = '\n'
					case '\\', '"':
						c = rest[0]
					default:
						return s, fmt.Errorf("label %s has the escape \\%c", name, rest[0])
					}
					rest = rest[1:]
				}
				v.WriteByte(c)
			}
			if _, twice := s.labels[name]; twice {
				return s, fmt.Errorf("label %s stands twice", name)
			}
			s.labels[name] = v.String()
			if strings.HasPrefix(rest, ",") {
				rest = rest[1:]
			} else if !strings.HasPrefix(rest, "}") {
				return s, fmt.Errorf("after label %s: %q", name, rest)
			}
		}
		rest = rest[1:]
	}
	if !strings.HasPrefix(rest, " ") || strings.Count(rest, " ") != 1 {
		return s, fmt.Errorf("the value is %q", rest)
	}
	s.value, err = strconv.ParseFloat(rest[1:], 64)
	return s, err
}

// promRead is all samples, after checking what the format asks for: HELP and TYPE
// once and first, families in one piece, no series twice.
func promRead(t *testing.T, results ...*metrics.Result) map[string][]sampleText {
	t.Helper()
	var b bytes.Buffer
	if err := Write("prometheus", &b, results, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasSuffix(text, "\n") || strings.Contains(text, "\r") {
		t.Error("lines end in line feeds")
	}
	all := map[string][]sampleText{}
	kinds, series := map[string]string{}, map[string]bool{}
	family, help := "", ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch words := strings.SplitN(line, " ", 4); {
		case strings.HasPrefix(line, "# HELP "):
			help, family = words[2], ""
			if kinds[help] != "" || promName.FindString(help) != help || len(words) < 4 || words[3] == "" {
				t.Errorf("%q", line)
			}
		case strings.HasPrefix(line, "# TYPE "):
			family = words[2]
			if family != help || words[3] != "gauge" && words[3] != "summary" {
				t.Errorf("%q after the help of %s", line, help)
			}
			kinds[family] = words[3]
		default:
			s, err := parseSample(line)
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			base := s.name
			if kinds[family] == "summary" {
				base = strings.TrimSuffix(strings.TrimSuffix(s.name, "_sum"), "_count")
				if q, ok := s.labels["quantile"]; ok == (base != s.name) {
					t.Errorf("%q in a summary", line)
				} else if p, err := strconv.ParseFloat(q, 64); ok && (err != nil || p < 0 || p > 1) {
					t.Errorf("quantile %q", q)
				}
			}
			if base != family {
				t.Errorf("%q stands among the series of %s", line, family)
			}
			key := fmt.Sprint(s.name, s.labels)
			if series[key] {
				t.Errorf("%q a second time", line)
			}
			series[key] = true
			all[s.name] = append(all[s.name], s)
		}
	}
	return all
}

func TestPrometheus(t *testing.T) {
	smooth, bad := sample("smooth", false), hostile()
	all := promRead(t, smooth, bad, broken(), bare())
	get := func(name string, labels ...string) float64 {
		t.Helper()
		for _, s := range all[name] {
			matches := len(labels)/2 == len(s.labels)
			for i := 0; i < len(labels); i += 2 {
				matches = matches && s.labels[labels[i]] == labels[i+1]
			}
			if matches {
				return s.value
			}
		}
		t.Errorf("no %s with %q", name, labels)
		return math.NaN()
	}
	same := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	d := smooth.Metrics.TTFTDue
	same("median", get("fermata_ttft_due_seconds", "run", "smooth", "quantile", "0.5"), d.Quantiles[0].Value/1e9)
	same("its end", get("fermata_ttft_due_low_seconds", "run", "smooth", "quantile", "0.5"), *d.Quantiles[0].Low/1e9)
	same("count", get("fermata_ttft_due_seconds_count", "run", "smooth"), 590)
	same("sum", get("fermata_ttft_due_seconds_sum", "run", "smooth"), *d.Mean*590/1e9)
	same("share", get("fermata_ttft_due_over_ratio", "run", "smooth", "bound", "5"), 0)
	for _, s := range all["fermata_ttft_due_seconds"] {
		if s.labels["quantile"] == "0.999" {
			t.Errorf("p99.9 of 590 values is told: %v", s)
		}
	}
	name := term.Plain("a\"b\\c\nd")
	objective := term.Plain(`ttft<=1s and "e2e"<=2s \ @99%`)
	same("met", get("fermata_objective_verdict", "run", name, "objective", objective, "verdict", "met"), 1)
	same("missed", get("fermata_objective_verdict", "run", name, "objective", "tbt<=50ms @p99", "verdict", "missed"), 1)
	same("not met", get("fermata_objective_verdict", "run", name, "objective", "tbt<=50ms @p99", "verdict", "met"), 0)
	same("outcome", get("fermata_requests", "run", "smooth", "outcome", "http_error"), 9)
	same("target", get("fermata_requests", "run", name, "outcome", "ok", "target", term.Plain("x\"\\\n")), 3)
	same("speed", get("fermata_answer_speed_tokens_per_second", "run", "smooth", "quantile", "0.5"), smooth.Metrics.TPS.Quantiles[3].Value)
	same("blind spot", get("fermata_blind_spot", "run", name, "code", "stall_hidden", "against", ""), 1)
	same("bottleneck", get("fermata_client_bound", "run", "broken"), 1)
	for name := range all {
		for _, wrong := range []string{"_ns", "_ms", "percent", "__"} {
			if strings.Contains(name, wrong) {
				t.Errorf("%s has %s in its name", name, wrong)
			}
		}
	}
}

// The reader above refuses what the format does not allow.
func TestParseSample(t *testing.T) {
	for _, line := range []string{
		`{a="b"} 1`, `a{b=c} 1`, `a{b="c} 1`, `a{b="\x"} 1`, `a{b="c"}1`, `a{b="c"} one`, `a{b="c",b="d"} 1`, `a{b="c"} 1 `, `9a 1`, `a`,
	} {
		if s, err := parseSample(line); err == nil {
			t.Errorf("%q is %+v", line, s)
		}
	}
	if s, err := parseSample(`a_b{c="d\"\\\n",e=""} +Inf`); err != nil || s.labels["c"] != "d\"\\\n" || !math.IsInf(s.value, 1) {
		t.Errorf("%+v, %v", s, err)
	}
}
