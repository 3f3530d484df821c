package conf

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type share float64

func (s *share) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%g%%", s)
	if err != nil {
		return errors.New("must be a share such as 50%")
	}
	return nil
}

type host struct {
	Fixed  time.Duration `yaml:"fixed"`
	PerSeq time.Duration `yaml:"per_seq"`
}

// tokens is a number, or the word max.
type tokens struct{ n int }

func (t *tokens) UnmarshalText(b []byte) error {
	if string(b) == "max" {
		t.n = -1
		return nil
	}
	_, err := fmt.Sscanf(string(b), "%d", &t.n)
	return err
}

type target struct {
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Body    map[string]any    `yaml:"body"`
}

type house struct {
	Name   string          `yaml:"name"`
	Target target          `yaml:"target"`
	Rate   float64         `yaml:"rate"`
	Small  int8            `yaml:"small"`
	Count  uint32          `yaml:"count"`
	Big    int64           `yaml:"big"`
	On     bool            `yaml:"on"`
	Share  share           `yaml:"share"`
	Tokens tokens          `yaml:"tokens"`
	Host   *host           `yaml:"host"`
	Gaps   []time.Duration `yaml:"gaps"`
	Names  []string        `yaml:"names"`
	Models map[string]host `yaml:"models"`
	Steps  []host          `yaml:"steps"`
	Any    any             `yaml:"any"`
	Extra  host            `yaml:",inline"`
	Hidden string          `yaml:"-"`
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestReadValues(t *testing.T) {
	const file = `
name: 1.10
target:
  url: http://127.0.0.1:8000
  headers: {X-A: "b", X-Date: 2026-01-02}
  body: {temperature: 0, top_p: 0.5, stop: [a, 1, true, null], n: 18446744073709551615}
rate: 4
small: -128
count: 1_000
big: 1e6
on: true
share: 50%
tokens: max
host: &h {fixed: 10ms, per_seq: 0}
gaps: [25ms, 1.5s, 10m]
names: [a]
models:
  qwen2.5: *h
  other: {<<: *h, fixed: 1ms}
steps:
  - {<<: [{fixed: 3ms}, {fixed: 4ms, per_seq: 5ms}]}
any: ~
per_seq: 7us
`
	var got house
	doc, err := Read("run.yaml", []byte(file), &got)
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	want := house{
		Name: "1.10",
		Target: target{
			URL: "http://127.0.0.1:8000", Headers: map[string]string{"X-A": "b", "X-Date": "2026-01-02"},
			Body: map[string]any{"temperature": int64(0), "top_p": 0.5, "stop": []any{"a", int64(1), true, nil}, "n": uint64(18446744073709551615)},
		},
		Rate: 4, Small: -128, Count: 1000, Big: 1_000_000, On: true, Share: 50, Tokens: tokens{-1},
		Host: &host{Fixed: 10 * ms}, Gaps: []time.Duration{25 * ms, 1500 * ms, 10 * time.Minute}, Names: []string{"a"},
		Models: map[string]host{"qwen2.5": {Fixed: 10 * ms}, "other": {Fixed: ms}},
		Steps:  []host{{Fixed: 3 * ms, PerSeq: 5 * ms}}, Extra: host{PerSeq: 7 * time.Microsecond},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tokens{})); diff != "" {
		t.Error(diff)
	}
	for path, has := range map[string]bool{"rate": true, "models.qwen2.5.fixed": true, "gaps[2]": true, "gaps[3]": false, "any": false, "fixed": false} {
		if doc.Has(path) != has {
			t.Errorf("Has(%q) = %v", path, !has)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"number", "rate: fast", `f:1:7: rate: must be a number, not "fast"`},
		{"quoted number", `rate: "4"`, `f:1:7: rate: must be a number, not "4"; without quotes`},
		{"not finite", "rate: .inf", `f:1:7: rate: must be a number, not .inf`},
		{"whole", "big: 1.5", `f:1:6: big: must be a whole number, not 1.5`},
		{"small", "small: 128", `f:1:8: small: must be a whole number from -128 to 127, not 128`},
		{"negative", "count: -1", `f:1:8: count: must be a whole number from 0 to 4294967295, not -1`},
		{"bool", "on: yes", `f:1:5: on: must be true or false, not "yes"`},
		{"unit", "gaps: [5]", `f:1:8: gaps[0]: must be a duration such as 300ms or 10m, not 5; add a unit, such as 5ms or 5s`},
		{"duration", "fixed: 1d", `f:1:8: fixed: must be a duration such as 300ms or 10m, not "1d"`},
		{"own type", "share: half", `f:1:8: share: must be a share such as 50%`},
		{"text", "name: [a]", `f:1:7: name: must be text, not a list`},
		{"list", "names: a", `f:1:8: names: must be a list such as ["one", "two"], not "a"`},
		{"map", "models: 3", `f:1:9: models: must be a mapping such as {name: value}, not 3`},
		{"struct", "target: x", `f:1:9: target: must be a mapping with keys such as url, headers, body, not "x"`},
		{"nothing", "rate:", `f:1:6: rate: has no value; give one, or leave the key out`},
		{"typo", "target: {ulr: x}", `f:1:10: target.ulr: unknown key "ulr"; did you mean "url"?`},
		{"elsewhere", "headers: {}", `f:1:1: headers: unknown key "headers" here; did you mean target.headers?`},
		{"unknown", "target:\n  zebra: 1", `f:2:3: target.zebra: unknown key "zebra"; keys here are url, headers, body`},
		{"dotted", "target.url: x", `f:1:1: target.url: unknown key "target.url"; keys nest: write url below target`},
		{"begun", "target: {head: x}", `f:1:10: target.head: unknown key "head"; did you mean "headers"?`},
		{"hidden", "models: {a: {hidden: 1}}", `f:1:14: models.a.hidden: unknown key "hidden"; keys here are fixed, per_seq`},
		{"twice", "rate: 1\nname: a\nrate: 2", `f:3:1: rate: is given twice, first on line 1`},
		{"tag", "name: !env HOME", `f:1:7: name: the tag !env means nothing here`},
		{"unseen characters", `"a\nb": 1`, `f:1:1: "a\nb": unknown key "a b"; keys here are name, target, rate, small, count, big, on, share, tokens, host, gaps, names, models, steps, any, fixed, per_seq`},
		{"key", "? [a]\n: 1", `f:1:3: a key must be plain text`},
		{"merge", "<<: 3", `f:1:5: << must name a mapping, or a list of mappings`},
		{"root", "- a", `f:1:1: must be a mapping with keys such as name, target, rate, small, …, not a list`},
		{"empty", "", `f: the file is empty`},
		{"only comments", "# x\n", `f: the file is empty`},
		{"two documents", "rate: 1\n---\nrate: 2\n", `f:2:1: a second YAML document starts here; a file holds one`},
		{"tab", "target:\n\turl: x", `f:2:1: a tab cannot indent YAML; use spaces`},
		{"at sign", "name: @x", `f:1:7: a value cannot start with @; put it in quotes`},
		{"colon", "name: a: b", `f:1:8: a colon is out of place: check the indentation, or put the text in quotes`},
		{"open list", "names: [a\nrate: 1\n", `f:2:5: expected a comma or ] in the list that was opened on line 1`},
		{"open quotes", "name: 'x\n", `f:2:1: the file ends inside the quotes that were opened on line 1`},
		{"anchor", "name: *x", `f:1:7: a value that starts with * refers to an anchor, and there is none of that name; to mean the text, put it in quotes`},
		{"own anchor", "any: &x [*x]", `f:1:10: any[0]: the anchor *x contains itself`},
		{"not UTF-8", "name: a\nany: \xff", `f:2:6: the file is not text in UTF-8: invalid leading UTF-8 octet (value: 255)`},
		{"bomb", bomb(), `the file nests too deeply, or grows too large through its anchors`},
		{"deep", "any: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), `the file nests too deeply, or grows too large through its anchors`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h house
			doc, err := Read("f", []byte(c.file), &h)
			if doc == nil {
				t.Fatal("no Doc")
			}
			if err == nil || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// bomb grows tenfold with every line.
func bomb() string {
	var b strings.Builder
	b.WriteString("any:\n- &a0 x\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "- &a%d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestAllMistakesInOrder(t *testing.T) {
	var h house
	doc, err := ReadWith("f", []byte("rate: fast\nnmae: x\ngaps: [1ms, 2]\nsteps:\n  - {fixed: soon}\n"),
		[]Setting{{Path: "count", Value: "many", From: "--count"}}, &h)
	var ms Mistakes
	if !errors.As(err, &ms) {
		t.Fatalf("%T", err)
	}
	doc.Report("", []Problem{{"rate", "must be more than 0"}, {"steps[0]", "needs x"}, {"target.url", "must be given"}})
	want := []string{
		`f:1:1: target.url: must be given`,
		`f:1:7: rate: must be a number, not "fast"`,
		`f:2:1: nmae: unknown key "nmae"; did you mean "name"?`,
		`f:3:13: gaps[1]: must be a duration such as 300ms or 10m, not 2; add a unit, such as 2ms or 2s`,
		`f:5:5: steps[0]: needs x`,
		`f:5:13: steps[0].fixed: must be a duration such as 300ms or 10m, not "soon"`,
		`--count: count: must be a whole number from 0 to 4294967295, not "many"`,
	}
	if diff := cmp.Diff(want, lines(doc.Err())); diff != "" {
		t.Error(diff)
	}
	if h.Gaps[0] != time.Millisecond {
		t.Error("what could be read is missing")
	}
}

func TestAt(t *testing.T) {
	var h house
	doc, err := Read("f", []byte("target:\n  url: x\n  headers:\n    X-A.b: c\ngaps:\n- 1ms\n- 2ms\n"), &h)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"target.url":             "f:2:8",
		"target.headers":         "f:3:3",
		"target.headers.X-A.b":   "f:4:12",
		"target.headers.X-C":     "f:3:3",
		"gaps[1]":                "f:7:3",
		"gaps[7]":                "f:5:1",
		"schedule.rate":          "f:1:1",
		"target.url.deeper.than": "f:2:8",
	} {
		if got, _, _ := strings.Cut(doc.At(path, "x").Error(), ": "); got != want {
			t.Errorf("At(%q) is at %s, not %s", path, got, want)
		}
	}
}

// What a setting leaves out is not the setting's mistake; what it says wrong is.
func TestAtSettings(t *testing.T) {
	var h house
	doc, err := ReadWith("f", []byte("name: n"), []Setting{{Path: "target.url", Value: "x", From: "--url"}}, &h)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"target.url": "--url", "target": "--url", "target.headers": "f:1:1"} {
		if got, _, _ := strings.Cut(doc.At(path, "x").Error(), ": "); got != want {
			t.Errorf("At(%q) is at %s, not %s", path, got, want)
		}
	}
}

func TestSettings(t *testing.T) {
	var h house
	_, err := ReadWith("f", []byte("rate: 1\nnames: [a]\ntarget: {headers: {X-A: b}, body: {seed: 1}}\nmodels: {a: {fixed: 1ms}}\n"), []Setting{
		{Path: "rate", Value: "4.5"},
		{Path: "names", Value: "tbt<=50ms@p99 # x", Append: true},
		{Path: "target.headers", Value: "Accept: a: b", Append: true},
		{Path: "target.headers", Value: "k8s.io/x=1=2", Append: true},
		{Path: "target.headers.X-Dot.ted", Value: "{"},
		{Path: "target.url", Value: "true"},
		{Path: "target.body.stop", Value: "[a, b]"},
		{Path: "target.body.deep.er", Value: "2"},
		{Path: "models.a.fixed", Value: "2ms"},
		{Path: "gaps", Value: "25ms, 50ms"},
		{Path: "gaps[1]", Value: "60ms"},
		{Path: "gaps", Value: "70ms", Append: true},
		{Path: "steps[0].fixed", Value: "0"},
		{Path: "steps[1].fixed", Value: "1ms"},
		{Path: "tokens", Value: "max"},
		{Path: "host", Value: "{fixed: 3ms}"},
	}, &h)
	if err != nil {
		t.Error(err)
	}
	ms := time.Millisecond
	want := house{
		Name: "", Rate: 4.5, Names: []string{"a", "tbt<=50ms@p99 # x"},
		Target: target{
			URL: "true", Headers: map[string]string{"X-A": "b", "Accept": "a: b", "k8s.io/x": "1=2", "X-Dot.ted": "{"},
			Body: map[string]any{"seed": int64(1), "stop": []any{"a", "b"}, "deep": map[string]any{"er": int64(2)}},
		},
		Models: map[string]host{"a": {Fixed: 2 * ms}}, Gaps: []time.Duration{25 * ms, 60 * ms, 70 * ms},
		Tokens: tokens{-1}, Host: &host{Fixed: 3 * ms}, Steps: []host{{}, {Fixed: ms}},
	}
	if diff := cmp.Diff(want, h, cmp.AllowUnexported(tokens{})); diff != "" {
		t.Error(diff)
	}
}

func TestSettingMistakes(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"rate=fast", `--set: rate: must be a number, not "fast"`},
		{"rate=", `--set: rate: has no value; give one, or leave the key out`},
		{"rate=[", `--set: rate: cannot be read as YAML: did not find expected node content`},
		{"taregt.url=x", `--set: taregt: unknown key "taregt"; did you mean "target"?`},
		{"name.first=x", `--set: name.first: cannot be set: name is "n"`},
		{"steps[1].fixed=1ms", `--set: steps[1].fixed: cannot be set: steps is a list`},
		{"a..b=x", `--set: "a..b" is not the path of a key, such as schedule.rate`},
		{"+target.headers=x", `--set: target.headers: must be name=value or "name: value", not "x"`},
		{"+gaps=5", `--set: gaps[0]: must be a duration such as 300ms or 10m, not 5; add a unit, such as 5ms or 5s`},
	} {
		path, value, _ := strings.Cut(c.set, "=")
		path, add := strings.CutPrefix(path, "+")
		var h house
		_, err := ReadWith("f", []byte("name: n"), []Setting{{Path: path, Value: value, From: "--set", Append: add}}, &h)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.set, err, c.want)
		}
	}
	var h house
	if _, err := ReadWith("", nil, []Setting{{Path: "rate", Value: "2"}}, &h); err != nil || h.Rate != 2 {
		t.Error("without a file:", err)
	}
}

type written struct {
	Name  string          `yaml:"name"`
	Seed  uint64          `yaml:"seed,zero"`
	Rate  float64         `yaml:"rate"`
	For   time.Duration   `yaml:"for"`
	Gaps  []time.Duration `yaml:"gaps"`
	Texts []string        `yaml:"texts"`
	Map   map[string]any  `yaml:"map"`
	Host  host            `yaml:"host"`
	Ptr   *host           `yaml:"ptr"`
	In    host            `yaml:",inline"`
}

func TestWrite(t *testing.T) {
	w := written{
		Name: "yes", For: 10 * time.Minute, Gaps: []time.Duration{25 * time.Millisecond, 90 * time.Second},
		Texts: []string{"200", "10%", "1e3", "null", "~", "", "a: b", "# x", " y ", "<<", "@p99", "line\nline", "2026-01-02", "0x1f", "true", "*a", "\t", "é\u2028"},
		Map:   map[string]any{"b": int64(1), "a": []any{true, 0.5, "x", nil, map[string]any{"k": "1"}}, "c: d": 1e100},
		In:    host{Fixed: time.Microsecond},
	}
	data, err := Write(w)
	if err != nil {
		t.Fatal(err)
	}
	head := "name: yes\nseed: 0\nfor: 10m\ngaps: [25ms, 1m30s]\ntexts:\n"
	if !strings.HasPrefix(string(data), head) {
		t.Errorf("begins\n%s", data)
	}
	for _, absent := range []string{"rate", "host", "ptr", "per_seq"} {
		if strings.Contains(string(data), absent+":") {
			t.Errorf("%s is zero and was written", absent)
		}
	}
	var back written
	if _, err := Read("f", data, &back); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(w, back); diff != "" {
		t.Error(diff)
	}
	again, _ := Write(back)
	if string(again) != string(data) {
		t.Error("not stable")
	}
	if _, err := Write(map[string]any{"x": make(chan int)}); err == nil {
		t.Error("a channel has YAML")
	}
}

func TestKeys(t *testing.T) {
	got := strings.Join(Keys(house{}), " ")
	const want = "name target.url target.headers target.body rate small count big on share tokens host gaps names models steps any fixed per_seq"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"rate: 1", "a: &x {<<: *x}", "? [a]\n: 1", "gaps: [1ms, [2], {a: b}]", "- a", "\t", "&a a: *a", "<<: [{a: 1}, 2]"} {
		f.Add(s, "target.headers", "a=b", true)
		f.Add(s, "gaps[0].x", "[1", false)
	}
	f.Fuzz(func(t *testing.T, file, path, value string, add bool) {
		var h house
		doc, err := ReadWith("f", []byte(file), []Setting{{Path: path, Value: value, From: "--set", Append: add}}, &h)
		if (doc.Err() == nil) != (err == nil) {
			t.Fatal("two answers")
		}
		doc.At(path, "x")
		if err != nil {
			return
		}
		data, err := Write(h)
		if err != nil {
			t.Fatal(err)
		}
		var back house
		if _, err := Read("f", data, &back); err != nil && len(data) > 3 {
			t.Fatalf("%v\n%s", err, data)
		}
	})
}
