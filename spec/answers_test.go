package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/check"
	"fermata/internal/conf"
)

// A check is written as one line or as a mapping; what is chosen on the command
// line takes the place of the file's, whichever kind that has.
func TestCheck(t *testing.T) {
	flag := func(value string) conf.Setting {
		return conf.Setting{Path: "check", Value: value, From: "--check"}
	}
	for _, c := range []struct {
		file string
		sets []conf.Setting
		want check.Options
	}{
		{"", nil, check.Options{}},
		{"check: 'regex:^a: b$'\n", nil, check.Options{Regex: "^a: b$"}},
		{"check: {text: 'regex:a'}\n", nil, check.Options{Text: "regex:a"}},
		{"", []conf.Setting{flag("command:grep -q '^{' | true # x")}, check.Options{Command: "grep -q '^{' | true # x"}},
		{"check: {text: yes}\n", []conf.Setting{flag("regex:^[yn]")}, check.Options{Regex: "^[yn]"}},
		{"check: {text: yes}\n", []conf.Setting{{Path: "check.regex", Value: "^y", From: "--set"}}, check.Options{Regex: "^y"}},
	} {
		r := read(t, base+c.file, c.sets...)
		if r.Check != c.want {
			t.Errorf("%q with %v: %+v, want %+v", c.file, c.sets, r.Check, c.want)
		}
		if judge, err := r.Judge(); err != nil || judge.Check != c.want.Kind() {
			t.Errorf("%q: judged as %q, %v", c.file, judge.Check, err)
		}
	}
}

func TestWrongChecks(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"check: {regex: '(a'}\n", "run.yaml:3:16: check.regex: is no regular expression"},
		{"check: 'regex:(a'\n", "run.yaml:3:8: check.regex: is no regular expression"},
		{"check: {schema: none.json}\n", "run.yaml:3:17: check.schema: cannot be read: open none.json"},
		{"check: {schema: none.json, regex: a}\n", "run.yaml:3:1: check: has several of schema, regex, text and command"},
		{"check: {json: none.json}\n", `check.json: unknown key "json"`},
		{"check: yes\n", `check: must be schema:FILE, regex:EXPRESSION, text:TEXT or command:COMMAND, not "yes"`},
		{"slo: ['schema>=99%']\n", "run.yaml:3:7: slo[0]: is about answers that pass their check, and there is none"},
	} {
		_, err := Read("run.yaml", []byte(base+c.file), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %s", c.file, err, c.want)
		}
	}
}

// A recording is judged again without what its answers were checked against, and
// one from elsewhere may have checks that no run file tells of.
func TestCheckIsJudgedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	saved := read(t, base+"check: {schema: "+file+"}\n").YAML()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r, err := Again("run.yaml", saved, nil)
	if err != nil || r.Check.Schema != file {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Again("", nil, []conf.Setting{{Path: "slo", Value: "schema>=99%", From: "--slo", Append: true}}); err != nil {
		t.Error(err)
	}
}
