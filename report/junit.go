package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// JUnit writes results as the XML that CI systems read: a suite a run, in it a test
// case an objective. A missed objective is a failure; an open one is an error and
// not skipped, since a gate that lets pass what could not be measured is none. The
// first case of each suite, measurement, says whether there is anything to judge.
// So there are failures or errors where the exit code is 3 or 4.
func JUnit(w io.Writer, results []*metrics.Result) error {
	if len(results) == 0 {
		return errNoResults
	}
	all := junitSuites{Name: "fermata"}
	names := runNames(results)
	for i, r := range results {
		s := junitOf(r, names[i])
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Suites = append(all.Suites, s)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("encoding results: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func junitOf(r *metrics.Result, name string) junitSuite {
	took := strconv.FormatFloat(float64(max(0, r.Window.EndNs-r.Window.StartNs))/1e9, 'f', 3, 64)
	s := junitSuite{Name: name, Time: took, Out: said(r)}
	for _, p := range []junitProperty{
		{"target", term.Plain(r.Run.Target)},
		{"model", term.Plain(r.Run.Model)},
		{"tool", term.Plain(joined(" ", r.Tool.Name, r.Tool.Version))},
		{"load", loadText(r)},
		{"window", windowText(&r.Window)},
	} {
		if p.Value != "" {
			s.Properties = append(s.Properties, p)
		}
	}
	add := func(c junitCase) {
		c.Class, c.Time = "fermata."+name, took
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		}
		s.Cases = append(s.Cases, c)
	}
	add(measurement(r))
	for i := range r.SLO {
		v := &r.SLO[i]
		add(junitVerdict(term.Plain(v.Objective), v.Verdict, judgement(v)))
	}
	if m := r.MLPerf; m != nil {
		c := junitCase{Name: "MLPerf " + term.Plain(m.Scenario), Out: mlperfText(m)}
		problem := &junitProblem{Message: m.Verdict, Type: m.Verdict, Text: mlperfText(m)}
		switch {
		case m.Verdict == metrics.Valid:
		case m.Missed():
			c.Failure = problem
		default:
			c.Error = problem
		}
		add(c)
	}
	return s
}

// measurement is the case of whether the run can carry any claim.
func measurement(r *metrics.Result) junitCase {
	c := junitCase{Name: "measurement"}
	text := verdict(r).text
	switch {
	case r.Health.ClientBound:
		c.Error = &junitProblem{Message: "this machine was the bottleneck", Type: "client_bound", Text: joined("\n", r.Health.Reasons...)}
	case r.Run.Interrupted != "":
		c.Error = &junitProblem{Message: "the run was cut short", Type: "interrupted", Text: interruptedText(r)}
	case r.Outcomes[outcomeOK] == 0:
		c.Failure = &junitProblem{Message: "no request succeeded", Type: "no_success", Text: text}
	default:
		c.Out = text
	}
	return c
}

func junitVerdict(name, verdict, text string) junitCase {
	c := junitCase{Name: name}
	problem := &junitProblem{Message: verdict + ": " + text, Type: verdict, Text: text}
	switch verdict {
	case metrics.Met:
		c.Out = text
	case metrics.Missed:
		c.Failure = problem
	default:
		c.Error = problem
	}
	return c
}

// said are the warnings and the blind spots, which no case tells.
func said(r *metrics.Result) string {
	var lines []string
	for _, w := range warnings(r) {
		lines = append(lines, "warning ["+term.Plain(w.Code)+"] "+term.Plain(w.Text))
	}
	for i := range r.BlindSpots {
		lines = append(lines, "blind spot ["+term.Plain(r.BlindSpots[i].Code)+"] "+term.Plain(r.BlindSpots[i].Text))
	}
	return strings.Join(lines, "\n")
}

// runNames are the names of runs, each its own.
func runNames(results []*metrics.Result) []string {
	var names []string
	taken := map[string]bool{}
	for i, r := range results {
		base := term.Plain(r.Run.Name)
		if base == "" {
			base = fmt.Sprintf("run %d", i+1)
		}
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s (%d)", base, n)
		}
		taken[name] = true
		names = append(names, name)
	}
	return names
}
