package schedule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func drain(s *Schedule) []Arrival {
	var all []Arrival
	for a, ok := s.Next(0); ok; a, ok = s.Next(0) {
		all = append(all, a)
	}
	return all
}

// timed is a schedule of rows in any order, as a file has them.
func timed(o Options, rows []Arrival, runSeed uint64) (*Schedule, error) {
	var t table
	for _, r := range rows {
		t.add(r)
	}
	t.sort()
	return NewTimed(o, t.given(), runSeed)
}

func TestGivenFiles(t *testing.T) {
	full := []Arrival{
		{Index: 0, Due: 0, Session: "a", Phase: Measured, PromptTokens: 10, OutputTokens: 20},
		{Index: 1, Due: 250 * ms, Session: "b", Phase: Measured, PromptTokens: 11},
		{Index: 2, Due: 1500 * ms, Session: "c", Phase: Measured, OutputTokens: 22},
		{Index: 3, Due: 1500 * ms, Session: "d", Phase: Measured},
	}
	bare := []Arrival{{Index: 0, Due: 123456789, Phase: Measured}, {Index: 1, Due: 86400_000_000_001, Phase: Measured}}
	for _, c := range []struct {
		name, text string
		want       []Arrival
	}{
		{"full.csv", "at_s,prompt_tokens,output_tokens,session\n0,10,20,a\n1.5,,22,c\n0.25,11,,b\n1.5,,,d\n", full},
		{"crlf.csv", "\ufeffsession, output_tokens,prompt_tokens,at_s\r\na,20,10,0\r\nc,22,,1.5e0\r\nb,,11, .25\r\nd,,0,1.5", full},
		{"full.jsonl", `{"at_s":0,"prompt_tokens":10,"output_tokens":20,"session":"a"}
{"session":"c","at_s":1.5,"output_tokens":22}

{"at_s":0.25,"prompt_tokens":11,"session":"b"}
{"at_s":1.5,"session":"d"}`, full},
		{"bare.txt", "at_s\n0.123456789\n86400.000000001\n", bare},
	} {
		path := write(t, c.name, c.text)
		for _, o := range []Options{{Kind: path}, {File: path}, {Kind: Given, File: path}} {
			s := mustNew(t, o, 1)
			if diff := cmp.Diff(c.want, drain(s)); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			last := c.want[len(c.want)-1].Due
			if start, end, known := s.Window(); start != 0 || end != last+1 || !known {
				t.Errorf("%s: window [%d, %d) %v", c.name, start, end, known)
			}
			if n, known := s.MeasuredTotal(); n != int64(len(c.want)) || !known || s.WarmupText() != "none" {
				t.Errorf("%s: %d measured requests, %v, warm-up %s", c.name, n, known, s.WarmupText())
			}
		}
	}
}

func TestGivenFileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "no times in it"},
		{"at_s\n", "no times in it"},
		{"at_s,when\n1,2\n", `line 1: unknown column "when"; there are at_s, prompt_tokens, output_tokens, session`},
		{"at_s,at_s\n1,2\n", "line 1: column at_s stands there twice"},
		{"session\nx\n", "line 1: column at_s is missing"},
		{"at_s\n1\n-0.5\n", "line 3: at_s must be between 0 and 9000000000 seconds, not -0.5"},
		{"at_s\nNaN\n", "line 2: at_s must be between"},
		{"at_s\n1e12\n", "line 2: at_s must be between"},
		{"at_s,session\n1,a\n,b\n", `line 3: at_s must be a number of seconds, not ""`},
		{"at_s,session\n\n1,\"a\nb\"\nx,c\n", `line 5: at_s must be a number of seconds, not "x"`},
		{"at_s,prompt_tokens\n1,2.5\n", `line 2: prompt_tokens must be a whole number of tokens up to 16777216, not "2.5"`},
		{"at_s,output_tokens\n1,-2\n", `line 2: output_tokens must be a whole number`},
		{"at_s,output_tokens\n1,2000000000\n", `line 2: output_tokens must be a whole number`},
		{"at_s,output_tokens\n1,2,3\n", "line 2"},
		{"{\"at_s\":1}\n{\"at_s\":-1}\n", "line 2: at_s must be between"},
		{"{\"at_s\":1}\n\n{\"session\":\"a\"}\n", "line 3: at_s is missing"},
		{"{\"at_s\":1} {\"at_s\":2}\n", "line 1: more than one JSON object"},
		{"{\"at_s\":1,\"prompt_tokens\":-1}\n", "line 1: a length must be between 0 and 16777216 tokens, not -1"},
		{"{\"at_s\":1,\"at\":2}\n", `line 1: unknown field "at"; a row has at_s`},
		{"{\"at_s\":\"1\"}\n", "line 1: json: cannot unmarshal string"},
		{"{\"at_s\":1}\nsoon\n", "line 2: invalid character"},
	} {
		path := write(t, "given", c.text)
		_, err := New(Options{File: path}, 1)
		if err == nil || !strings.Contains(err.Error(), path+": "+c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := New(Options{File: filepath.Join(t.TempDir(), "none.csv")}, 1); err == nil || !strings.Contains(err.Error(), "reading the schedule: open ") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := New(Options{Kind: Given}, 1); err == nil || !strings.Contains(err.Error(), "need a file") {
		t.Errorf("given times without any: %v", err)
	}
}

func TestGivenPhases(t *testing.T) {
	rows := func(at ...int64) []Arrival {
		var rows []Arrival
		for _, a := range at {
			rows = append(rows, Arrival{Due: a * ms})
		}
		return rows
	}
	ten := []int64{5, 10, 20, 30, 30, 30, 60, 70, 80, 90}
	for _, c := range []struct {
		o          Options
		at         []int64
		phases     string
		start, end int64 // ns
	}{
		{Options{}, ten, "mmmmmmmmmm", 0, 90*ms + 1},
		{Options{}, []int64{0}, "m", 0, 1},
		{Options{Speedup: 2}, ten, "mmmmmmmmmm", 0, 45*ms + 1},
		{Options{Speedup: 0.5, Duration: 60 * time.Millisecond, Warmup: "15ms"}, ten, "wmmmmm", 15 * ms, 75 * ms}, // due at 10, 20, 40, 60 …
		{Options{Warmup: "2"}, ten, "wwmmmmmmmm", 20 * ms, 90*ms + 1},
		{Options{Warmup: "30%"}, ten, "wwwmmmmmmm", 30 * ms, 90*ms + 1},
		{Options{Warmup: "15ms"}, ten, "wwmmmmmmmm", 15 * ms, 90*ms + 1},
		{Options{Requests: 2}, ten, "mm", 0, 20 * ms},
		{Options{Requests: 4}, ten, "mmmm", 0, 30*ms + 1}, // the fifth is due with the fourth
		{Options{Requests: 10}, ten, "mmmmmmmmmm", 0, 90*ms + 1},
		{Options{Requests: 50}, ten, "mmmmmmmmmm", 0, 90*ms + 1},
		{Options{Requests: 5, Warmup: "40%"}, ten, "wwmmmmm", 20 * ms, 70 * ms},
		{Options{Duration: 60 * time.Millisecond}, ten, "mmmmmm", 0, 60 * ms},
		{Options{Duration: time.Second}, ten, "mmmmmmmmmm", 0, 90*ms + 1},
		{Options{Duration: 40 * time.Millisecond, Warmup: "50%"}, ten, "wwmmmm", 20 * ms, 60 * ms},
	} {
		s, err := timed(c.o, rows(c.at...), 1)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, a := range drain(s) {
			got += string(a.Phase[0])
		}
		if got != c.phases {
			t.Errorf("%+v: phases %s, want %s", c.o, got, c.phases)
		}
		if start, end, known := s.Window(); start != c.start || end != c.end || !known {
			t.Errorf("%+v: window [%d, %d) %v, want [%d, %d)", c.o, start, end, known, c.start, c.end)
		}
		if n, _ := s.MeasuredTotal(); int(n) != strings.Count(got, "m") {
			t.Errorf("%+v: %d measured requests in all, phases %s", c.o, n, got)
		}
	}
	for _, c := range []struct {
		o    Options
		at   []int64
		want string
	}{
		{Options{}, nil, "there are none"},
		{Options{}, []int64{4, -1}, "time 1 is before 0"},
		{Options{Warmup: "10"}, ten, "none of the 10 rows is left to measure (warm-up: 10 requests)"},
		{Options{Warmup: "1s"}, ten, "none of the 10 rows is left to measure"},
		{Options{Rate: 3}, ten, "rate: cannot be given"},
	} {
		if _, err := timed(c.o, rows(c.at...), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v with %v: %v, want %s", c.o, c.at, err, c.want)
		}
	}
}

// Times go faster to the nearest ns, and slower until there are no later ones.
func TestSpeedup(t *testing.T) {
	for _, c := range []struct {
		speedup float64
		at      string
		want    []int64
	}{
		{2, "0 1 2.000000001", []int64{0, 5e8, 1_000_000_001}}, // half up
		{10, "3 86400", []int64{3e8, 8640e9}},
		{3, "1", []int64{333_333_333}},
		{0.25, "1.5", []int64{6e9}},
		{1e-6, "9e9", []int64{9e18}},
	} {
		path := write(t, "given.csv", "at_s\n"+strings.ReplaceAll(c.at, " ", "\n"))
		var got []int64
		for _, a := range drain(mustNew(t, Options{File: path, Speedup: c.speedup}, 1)) {
			got = append(got, a.Due)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s at %v: %s", c.at, c.speedup, diff)
		}
	}
}

// An error of quotes names the line on which the quote begins.
func TestUnclosedQuote(t *testing.T) {
	for text, want := range map[string]string{
		"at_s,session\n1,a\n2,\"b\n3,c\n4,d\n": "line 3: a quote is opened and never closed",
		"at_s,session\n1,a\"b\n":               "line 2: a quote is opened and never closed, or stands where none belongs",
	} {
		if _, err := readRows(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken", text)
		} else if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
