package workload

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const small = "\ufeff" + `{"prompt":"Häuser\n\"zählen\""}
{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"}]}],"prompt_tokens":12,"output_tokens":34,"session":"s1"}

{"prompt":"last","output_tokens":5}`

func TestDataSet(t *testing.T) {
	path := write(t, small)
	w := mustOpen(t, Options{Dataset: path, Output: Tokens(77)}, 1)
	messages := []json.RawMessage{
		json.RawMessage(`{"role":"system","content":"Be brief."}`),
		json.RawMessage(`{"role":"user","content":[{"type":"text","text":"Hi"}]}`),
	}
	for _, c := range []struct {
		index          int64
		prompt, output int32
		want           Request
	}{
		{0, 0, 0, Request{ID: 0, Prompt: "Häuser\n\"zählen\"", OutputTokens: 77}},
		{1, 0, 0, Request{ID: 1, Messages: messages, Session: "s1", PromptTokens: 12, OutputTokens: 34}},
		{2, 0, 0, Request{ID: 2, Prompt: "last", OutputTokens: 5}},
		{3, 0, 0, Request{ID: 3, Prompt: "Häuser\n\"zählen\"", OutputTokens: 77}},
		{1, 100, 200, Request{ID: 1, Messages: messages, Session: "s1", PromptTokens: 12, OutputTokens: 200}},
		{8, 100, 0, Request{ID: 8, Prompt: "last", PromptTokens: 100, OutputTokens: 5}},
	} {
		if diff := cmp.Diff(c.want, mustAt(t, w, c.index, c.prompt, c.output)); diff != "" {
			t.Errorf("request %d: %s", c.index, diff)
		}
	}
	w = mustOpen(t, Options{Dataset: path}, 1)
	if q := mustAt(t, w, 0, 0, 0); q.OutputTokens != 0 {
		t.Errorf("without any length, %d tokens are asked for", q.OutputTokens)
	}
	if w.Timed() != 0 {
		t.Error("a data set without at_s has times")
	}
	if w.Rows() != 3 || w.Words() != 0 {
		t.Errorf("%d rows, %d words", w.Rows(), w.Words())
	}
	if q := w.Probe(20); len(strings.Fields(q.Prompt)) != 20 {
		t.Errorf("a probe of %q", q.Prompt)
	}
}

func TestRoundsAndOnce(t *testing.T) {
	path := write(t, small)
	w := mustOpen(t, Options{Dataset: path}, 1)
	for _, c := range []struct{ requests, rounds int64 }{{0, 0}, {1, 0}, {3, 0}, {4, 1}, {6, 1}, {7, 2}, {30, 9}} {
		if got := w.Rounds(c.requests); got != c.rounds {
			t.Errorf("%d requests: %d rounds, want %d", c.requests, got, c.rounds)
		}
	}
	if got := mustAt(t, w, 4, 0, 0).Prompt; got != mustAt(t, w, 1, 0, 0).Prompt {
		t.Errorf("request 4 of 3 rows is %q", got)
	}
	w = mustOpen(t, Options{Dataset: path, Once: true}, 1)
	for i := range int64(6) {
		if _, ok := w.At(i, 0, 0); ok != (i < 3) {
			t.Errorf("request %d of 3, once: %v", i, ok)
		}
	}
}

// Lines with times are a schedule: in order of time, equal times in file order.
func TestTimes(t *testing.T) {
	w := mustOpen(t, Options{Dataset: write(t, `{"prompt":"c","at_s":2.5}
{"prompt":"a","at_s":0}
{"prompt":"d","at_s":2.5}
{"prompt":"b","at_s":0.000000001}`)}, 1)
	due := allTimes(w)
	if want := []int64{0, 1, 2_500_000_000, 2_500_000_000}; !slices.Equal(due, want) {
		t.Errorf("times %v, want %v", due, want)
	}
	got := ""
	for i := range w.Rows() {
		got += mustAt(t, w, i, 0, 0).Prompt
	}
	if got != "abcd" {
		t.Errorf("order %s", got)
	}
}

func TestDataSetErrors(t *testing.T) {
	good := `{"prompt":"x"}` + "\n"
	for _, c := range []struct{ text, want string }{
		{"", "no prompts in it"},
		{"\n \n", "no prompts in it"},
		{good + "what?\n", "line 2: invalid character 'w'"},
		{good + "\n[1]\n", "line 3: the row must be an object, not array"},
		{good + `{"prompt":`, "line 2: the JSON object is cut off"},
		{good + `{"prompt":"a"}{"prompt":"b"}`, "line 2: more than one JSON object"},
		{good + `{"prompt":"a","answer":"b"}`, `line 2: unknown field "answer"; a row has prompt or messages`},
		{good + `{"prompt":3}`, "line 2: prompt must be text, not number"},
		{good + `{"session":"a"}`, "line 2: neither a prompt nor messages"},
		{good + `{"prompt":""}`, "line 2: neither a prompt nor messages"},
		{good + `{"messages":[]}`, "line 2: neither a prompt nor messages"},
		{good + `{"prompt":"a","messages":[{"role":"user"}]}`, "line 2: both a prompt and messages"},
		{good + `{"messages":[{"role":"user"},{"content":"a"}]}`, "line 2: messages[1] is not an object with a role"},
		{good + `{"messages":["a"]}`, "line 2: messages[0] is not an object with a role"},
		{good + `{"messages":[null]}`, "line 2: messages[0] is not an object with a role"},
		{good + `{"prompt":"a","output_tokens":-1}`, "line 2: a length must not be negative"},
		{good + `{"prompt":"a","prompt_tokens":1.5}`, "line 2: prompt_tokens must be a whole number, not 1.5"},
		{`{"prompt":"a","at_s":-0.1}`, "line 1: at_s must be between 0 and 9000000000 seconds, not -0.1"},
		{`{"prompt":"a","at_s":1e300}`, "line 1: at_s must be between"},
		{good + good + `{"prompt":"a","at_s":1}`, "line 3 has at_s and line 1 has none"},
		{`{"prompt":"a","at_s":1}` + "\n" + good, "line 1 has at_s and line 2 has none"},
		{good + "{\"prompt\":\"\xff\"}", "line 2: not valid UTF-8"},
	} {
		path := write(t, c.text)
		_, err := Open(Options{Dataset: path}, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "reading the data set: "+path+": "+c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Open(Options{Dataset: filepath.Join(t.TempDir(), "none")}, 1); err == nil || !strings.HasPrefix(err.Error(), "reading the data set: open ") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, nil},
		{Options{Input: "1", Output: "1"}, nil},
		{Options{Dataset: "x", Output: "3", Once: true}, nil},
		{Options{Input: "-1", Output: "-1"}, []string{"input must be between 1 and 16777216 tokens, not -1", "output must be between"}},
		{Options{Input: "1073741824", Output: "1e12"}, []string{"input must be", "output must be"}},
		{Options{Input: "3", Dataset: "x"}, []string{"input cannot be given beside dataset"}},
		{Options{Once: true}, []string{"once is for data sets"}},
	} {
		var got []string
		for _, p := range c.o.Check() {
			got = append(got, p.Path+" "+p.Text)
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
		if _, err := Open(c.o, 1); c.want != nil && (err == nil || !strings.HasPrefix(err.Error(), "making a workload: ")) {
			t.Errorf("Open(%+v) says %v", c.o, err)
		}
	}
	if got, want := (Options{}).Filled(), (Options{Input: "512", Output: "128"}); got != want {
		t.Errorf("filled: %+v", got)
	}
	if o := (Options{Dataset: "x"}); o.Filled() != o {
		t.Errorf("filled: %+v", o.Filled())
	}
}
