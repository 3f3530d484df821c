package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/internal/calm"
)

const person = `{
  "type": "object", "required": ["name"], "additionalProperties": false,
  "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}}
}`

func write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func open(t testing.TB, o Options) *Checker {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswers(t *testing.T) {
	file := write(t, "person.json", person)
	for _, c := range []struct {
		o      Options
		answer string
		want   string // part of the detail; empty: it passes
	}{
		{Options{Schema: file}, `{"name": "Ada", "age": 36}`, ""},
		{Options{Schema: file}, " {\"name\": \"Ada\"}\n", ""},
		{Options{Schema: file}, `{"age": 36}`, `breaks required: missing properties: ["name"]`},
		{Options{Schema: file}, `{"name": "Ada", "age": -1}`, "breaks minimum of the schema at /properties/age"},
		{Options{Schema: file}, `{"name": 7}`, "breaks type of the schema at /properties/name"},
		{Options{Schema: file}, `{"name": "Ada", "born": 1815}`, "breaks additionalProperties"},
		{Options{Schema: file}, `"Ada"`, "breaks type"},
		{Options{Schema: file}, `{"name": "Ada"`, "is no JSON"},
		{Options{Schema: file}, "", "is no JSON"},
		{Options{Schema: file}, `{"name": "Ada"} and more`, "more follows"},

		{Options{Regex: `(?i)^yes\b`}, "Yes, indeed", ""},
		{Options{Regex: `\d{3}`}, "call 112 now", ""},
		{Options{Regex: `^yes$`}, "yes\nno", `no match of ^yes$ in 6 characters`},
		{Options{Regex: `x`}, "é", "in 1 character"},

		{Options{Text: "tok tok "}, "tok tok ", ""},
		{Options{Text: "tok tok "}, "tok tok", "ends after 7 of 8 characters"},
		{Options{Text: "tok"}, "tok tok", "goes on after the text, for 4 characters"},
		{Options{Text: "tök a"}, "tök b", "differs from the text in character 5"},
		{Options{Text: "tok"}, "", "ends after 0 of 3"},

		{Options{Command: "grep -q hello"}, "well, hello there\n", ""},
		{Options{Command: "grep -q hello"}, "goodbye\n", "exit status 1"},
		{Options{Command: "wc -c | grep -qx ' *5'"}, "12345", ""},
		{Options{Command: "echo too  short >&2; exit 3"}, "x", "exit status 3: too short"},
		{Options{Command: "true"}, strings.Repeat("never read ", 1<<16), ""},
		{Options{Command: "cat >&2; exit 1"}, strings.Repeat("a", 1<<20), "exit status 1: " + strings.Repeat("a", mostSaid)},
		{Options{Command: "read -r x && kill -9 $$"}, "x\n", "signal: killed"},
	} {
		pass, detail := open(t, c.o).Answer(t.Context(), c.answer)
		if pass != (c.want == "") || !strings.Contains(detail, c.want) || pass && detail != "" {
			t.Errorf("%+v: %v, %q; want %q", c.o, pass, detail, c.want)
		}
	}
}

// What is said of an answer repeats nothing of it: it is kept where texts are not.
func TestDetailHoldsNoAnswer(t *testing.T) {
	file := write(t, "any.json", `{"anyOf": [{"type": "integer"}, {"enum": ["a"]}], "not": {"const": "secret"}, "maxLength": 3}`)
	for _, o := range []Options{{Schema: file}, {Schema: write(t, "p.json", person)}, {Regex: "^a$"}, {Text: "a"}} {
		for _, answer := range []string{"secret", `"secret"`, `{"name": "Ada", "secret": 1}`, `{"name": ["secret"]}`} {
			if pass, detail := open(t, o).Answer(t.Context(), answer); pass || strings.Contains(detail, "secret") {
				t.Errorf("%+v of %s: %q", o, answer, detail)
			}
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		line, wrong string
		want        Options
	}{
		{"schema:a.json", "", Options{Schema: "a.json"}},
		{"regex:^a: b$", "", Options{Regex: "^a: b$"}},
		{"text: two words", "", Options{Text: " two words"}},
		{"command:jq -e .name", "", Options{Command: "jq -e .name"}},
		{"a.json", "must be schema:FILE, regex:EXPRESSION", Options{}},
		{"json:a.json", "must be schema:FILE, regex:EXPRESSION", Options{}},
		{"regex:", `nothing after "regex:"`, Options{}},
	} {
		var o Options
		err := o.UnmarshalText([]byte(c.line))
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) || c.wrong == "" && err != nil || o != c.want {
			t.Errorf("%s: %+v, %v", c.line, o, err)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		path string
		want string
	}{
		{Options{Regex: "(a"}, "regex", "missing closing ): `(a`"},
		{Options{Schema: filepath.Join(t.TempDir(), "none.json")}, "schema", "no such file"},
		{Options{Schema: t.TempDir()}, "schema", "cannot be read"},
		{Options{Schema: write(t, "a.json", "{")}, "schema", "reading a JSON schema"},
		{Options{Schema: write(t, "b.json", `{"pattern": "("}`)}, "schema", "b.json"},
		{Options{Schema: write(t, "c.json", `{"$ref": "https://example.com/other.json"}`)}, "schema", "c.json"},
		{Options{Regex: "a", Text: "b"}, "", "give one"},
	} {
		found := c.o.Check()
		if len(found) != 1 || found[0].Path != c.path || !strings.Contains(found[0].Text, c.want) {
			t.Errorf("%+v: %+v; want %s: %s", c.o, found, c.path, c.want)
		}
		if _, err := Open(t.Context(), c.o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v was opened: %v", c.o, err)
		}
	}
	if c, err := Open(t.Context(), Options{}); c != nil || err != nil {
		t.Errorf("no check: %v, %v", c, err)
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	for command, want := range map[string]string{
		"surely-no-such-command --now":        "not found",
		write(t, "plain.txt", "no program\n"): "ermission denied",
		"exit 127":                            "exit status 127",
	} {
		_, err := Open(t.Context(), Options{Command: command})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot be run") {
			t.Errorf("%s: %v; want %s", command, err, want)
		}
	}
	if _, err := Open(t.Context(), Options{Command: "exit 1"}); err != nil {
		t.Errorf("a command that does not like an empty answer: %v", err)
	}
}

// A command that hangs is ended, with what it started.
func TestCommandIsEnded(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		mark := filepath.Join(t.TempDir(), "mark")
		began := time.Now()
		_, err := shell(t.Context(), "(sleep 1; echo late > "+mark+") & sleep 60", "", 100*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("ended with %v", err)
		}
		if time.Since(began) > 30*time.Second {
			t.Error("it was awaited")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Open(ctx, Options{Command: "sleep 60"}); err == nil {
			t.Error("opened though the run was cancelled")
		}
		time.Sleep(time.Until(began.Add(1500 * time.Millisecond)))
		if _, err := os.Stat(mark); err == nil {
			t.Error("what the command started lived on")
		}
	})
}
