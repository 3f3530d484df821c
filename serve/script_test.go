package serve

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func script(t testing.TB, text string) *Script {
	t.Helper()
	s, err := NewScript("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func events(t testing.TB, s *Script, q *Request) []Event {
	t.Helper()
	seq, err := s.Answer(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(seq)
}

// tokens are the arrivals among events, as time and tokens.
type arrival struct {
	At     time.Duration
	Tokens int
}

func arrivals(events []Event) (a []arrival) {
	for _, e := range events {
		if e.isArrival() {
			a = append(a, arrival{e.At, e.Tokens})
		}
	}
	return a
}

func TestTimesOfTokens(t *testing.T) {
	tests := []struct {
		name, model string
		max         int
		want        []arrival
		finish      string
	}{
		{"steady", "{ttft: 200ms, gap: 20ms}", 3, []arrival{{200 * ms, 1}, {220 * ms, 1}, {240 * ms, 1}}, "length"},
		{"nothing said", "{}", 2, []arrival{{0, 1}, {0, 1}}, "length"},
		{"shorter than asked", "{gap: 1ms, tokens: 2}", 5, []arrival{{0, 1}, {1 * ms, 1}}, "stop"},
		{"exactly as asked", "{gap: 1ms, tokens: 2}", 2, []arrival{{0, 1}, {1 * ms, 1}}, "length"},
		{"cut by max_tokens", "{gap: 1ms, tokens: 9}", 2, []arrival{{0, 1}, {1 * ms, 1}}, "length"},
		{"finish said", "{tokens: 1, finish: content_filter}", 9, []arrival{{0, 1}}, "content_filter"},
		{"no tokens", "{ttft: 5ms, tokens: 0}", 9, nil, "stop"},
		{"burst", "{ttft: 200ms, gap: 80ms, per_chunk: 4}", 10, []arrival{{200 * ms, 4}, {280 * ms, 4}, {360 * ms, 2}}, "length"},
		{
			"freeze", "{ttft: 200ms, gap: 20ms, freeze: [{at: 2, for: 1500ms}, {at: 3, for: 0s}]}", 5,
			[]arrival{{200 * ms, 1}, {220 * ms, 1}, {1720 * ms, 1}, {1720 * ms, 1}, {1740 * ms, 1}},
			"length",
		},
		{
			"freeze inside a chunk", "{gap: 80ms, per_chunk: 4, freeze: [{at: 6, for: 1s}, {at: 7, for: 2s}]}", 9,
			[]arrival{{0, 4}, {2000 * ms, 4}, {2080 * ms, 1}},
			"length",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := script(t, "models: {m: "+test.model+"}")
			got := events(t, s, &Request{Model: "m", API: Chat, MaxTokens: test.max})
			if d := cmp.Diff(test.want, arrivals(got)); d != "" {
				t.Errorf("arrivals (-want +got):\n%s", d)
			}
			finish := got[len(got)-3]
			if finish.Finish != test.finish {
				t.Errorf("third event from the end has finish %q, want %q", finish.Finish, test.finish)
			}
			last := time.Duration(0)
			if n := len(test.want); n > 0 {
				last = test.want[n-1].At
			} else {
				last = 5 * ms // its ttft
			}
			if finish.At != last || !got[len(got)-1].Done || got[len(got)-1].At != last {
				t.Errorf("the stream ends with %+v, want an end at %v", got[len(got)-3:], last)
			}
		})
	}
}

func TestTokensWithoutMax(t *testing.T) {
	got := events(t, script(t, "models: {m: {}}"), &Request{Model: "m", API: Completions})
	if n := len(arrivals(got)); n != 128 {
		t.Errorf("%d arrivals without max_tokens, want 128", n)
	}
}

// Whatever a model says, times never fall, all tokens come, and the answer's
// length in time is ttft plus its gaps.
func TestStreamProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{
			TTFT:     time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "ttft")),
			Gap:      time.Duration(rapid.Int64Range(0, 1e8).Draw(t, "gap")),
			PerChunk: rapid.IntRange(0, 5).Draw(t, "per_chunk"),
		}
		q := &Request{API: rapid.SampledFrom([]string{Chat, Completions}).Draw(t, "api"), MaxTokens: rapid.IntRange(1, 60).Draw(t, "max")}
		frozen := rapid.IntRange(m.perChunk(), 70).Draw(t, "at")
		m.Freeze = []freeze{{frozen, time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "for"))}}
		chunks := (q.MaxTokens + m.perChunk() - 1) / m.perChunk()
		end := m.TTFT + time.Duration(chunks-1)*m.Gap
		if frozen < q.MaxTokens {
			end += m.Freeze[0].For - m.Gap
		}
		last, tokens := time.Duration(0), 0
		for e := range m.stream(q, ending{}) {
			if e.At < last {
				t.Fatalf("an event at %v after one at %v", e.At, last)
			}
			last, tokens = e.At, tokens+e.Tokens
		}
		if tokens != q.MaxTokens || last != end {
			t.Fatalf("%d tokens until %v, want %d until %v", tokens, last, q.MaxTokens, end)
		}
	})
}

func TestRoleChunk(t *testing.T) {
	for _, test := range []struct {
		role string
		want int // position of the role chunk, -1 for none
		at   time.Duration
	}{{"", 0, 200 * ms}, {"role: true, ", 0, 0}, {"role: false, ", -1, 0}} {
		s := script(t, "models: {m: {"+test.role+"ttft: 200ms}}")
		got := events(t, s, &Request{Model: "m", API: Chat, MaxTokens: 2})
		if i := slices.IndexFunc(got, func(e Event) bool { return e.Role }); i != test.want || (i >= 0 && got[i].At != test.at) {
			t.Errorf("%q: role chunk at position %d: %+v", test.role, i, got[0])
		}
		for _, e := range events(t, s, &Request{Model: "m", API: Completions, MaxTokens: 2}) {
			if e.Role {
				t.Errorf("%q: a role chunk in Completions", test.role)
			}
		}
	}
}

func TestReportedUsage(t *testing.T) {
	for _, test := range []struct {
		text string
		want *Usage
	}{
		{"usage: true", &Usage{Prompt: 7, Completion: 3}},
		{"usage: false", nil},
		{"usage: always", &Usage{Prompt: 7, Completion: 3, Forced: true}},
		{"usage: 9", &Usage{Prompt: 7, Completion: 9}},
		{"usage: +1", &Usage{Prompt: 7, Completion: 4}},
		{"usage: -2", &Usage{Prompt: 7, Completion: 1}},
		{"usage: {prompt: 1, completion: 2, always: true}", &Usage{Prompt: 1, Completion: 2, Forced: true}},
		{"usage: {prompt: 1}", &Usage{Prompt: 1, Completion: 3}},
		{"overhead: 11", &Usage{Prompt: 18, Completion: 3}},
		{"prompt_tokens: 40, overhead: 11", &Usage{Prompt: 40, Completion: 3}},
		{"steps: [{at: 0s, text: a, tokens: 3}, {usage: +1}]", &Usage{Prompt: 7, Completion: 4}},
	} {
		s := script(t, "models: {m: {"+test.text+"}}")
		var got *Usage
		for _, e := range events(t, s, &Request{Model: "m", API: Chat, PromptTokens: 7, MaxTokens: 3}) {
			if e.Usage != nil {
				got = e.Usage
			}
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, d)
		}
	}
}

func TestEachUsage(t *testing.T) {
	s := script(t, "models: {m: {per_chunk: 2}}")
	var got []int
	for _, e := range events(t, s, &Request{Model: "m", API: Chat, MaxTokens: 5, EachUsage: true}) {
		if e.Usage != nil {
			got = append(got, e.Usage.Completion)
		}
	}
	if want := []int{0, 2, 4, 5, 5, 5}; !slices.Equal(got, want) {
		t.Errorf("cumulative usage %v, want %v", got, want)
	}
}

func TestEveryNthFails(t *testing.T) {
	s := script(t, "models: {m: {fail: {every: 3}}, n: {fail: {}}}")
	ask := func(model, purpose string) bool {
		return events(t, s, &Request{Model: model, API: Chat, MaxTokens: 1, Purpose: purpose})[0].Instead != nil
	}
	var failed []int
	for i := 1; i <= 7; i++ {
		if ask("m", "preflight") {
			t.Errorf("the preflight before request %d failed", i)
		}
		if ask("m", "") {
			failed = append(failed, i)
		}
	}
	if !slices.Equal(failed, []int{3, 6}) {
		t.Errorf("requests %v failed, want 3 and 6", failed)
	}
	if !ask("n", "") {
		t.Error("without every, all requests should fail")
	}
}

func TestWhereFailuresCome(t *testing.T) {
	for _, test := range []struct {
		fail string
		want []arrival
		last Event
	}{
		{"kind: cut", nil, Event{At: 200 * ms, Close: Cut}},
		{"kind: cut, after: 2", []arrival{{200 * ms, 2}}, Event{At: 230 * ms, Close: Cut}},
		{"kind: reset, after: 3", []arrival{{200 * ms, 2}, {230 * ms, 1}}, Event{At: 260 * ms, Close: Reset}},
		{"kind: stall, after: 4", []arrival{{200 * ms, 2}, {230 * ms, 2}}, Event{At: 260 * ms, Close: Silent}},
		{"kind: cut, after: 99", []arrival{{200 * ms, 2}, {230 * ms, 2}, {260 * ms, 2}}, Event{At: 260 * ms, Close: Cut}},
		{"kind: silent", nil, Event{Close: Silent}},
		{"kind: mute", nil, Event{Close: Mute}},
		{"kind: no_finish", []arrival{{200 * ms, 2}, {230 * ms, 2}, {260 * ms, 2}}, Event{At: 260 * ms, Done: true}},
		{"kind: no_finish, after: 3", []arrival{{200 * ms, 2}, {230 * ms, 1}}, Event{At: 230 * ms, Done: true}},
		{"kind: no_done", []arrival{{200 * ms, 2}, {230 * ms, 2}, {260 * ms, 2}}, Event{At: 260 * ms, Usage: &Usage{Completion: 6}}},
		{"steps: [{at: 5ms, text: a}, {close: reset}]", []arrival{{5 * ms, 1}}, Event{At: 5 * ms, Close: Reset}},
	} {
		s := script(t, "models: {m: {ttft: 200ms, gap: 30ms, per_chunk: 2, fail: {"+test.fail+"}}}")
		got := events(t, s, &Request{Model: "m", API: Chat, MaxTokens: 6})
		if d := cmp.Diff(test.want, arrivals(got)); d != "" {
			t.Errorf("%s: arrivals (-want +got):\n%s", test.fail, d)
		}
		if d := cmp.Diff(test.last, got[len(got)-1]); d != "" {
			t.Errorf("%s: last event (-want +got):\n%s", test.fail, d)
		}
		if strings.Contains(test.fail, "no_finish") && slices.ContainsFunc(got, func(e Event) bool { return e.Finish != "" }) {
			t.Errorf("%s: has a finish reason", test.fail)
		}
	}
}

func TestMistakesOfAScript(t *testing.T) {
	_, err := NewScript("bad.yaml", []byte(`modles: {}
models:
  a: {ttft: 200, gap: -20ms}
  b:
    tokens: many
    per_chunk: 4
    freeze: [{at: 3, for: 1s}]
  c: {fail: {kind: explode}}
  d:
    ttft: 1ms
    steps:
      - {at: 20ms, text: a, comment: b}
      - {at: 10ms, role: true}
      - {close: maybe}
      - {}
      - {at: 30ms, close: eof}
      - {at: 40ms, status: 999}
  e: {usage: sometimes, fail: {kind: cut, status: 503}}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`bad.yaml:1:1: modles: `,
		`bad.yaml:3:13: models.a.ttft: must be a duration`,
		`bad.yaml:3:23: models.a.gap: must not be negative, but is -20ms`,
		`bad.yaml:5:13: models.b.tokens: must be a number of tokens or max, not "many"`,
		`bad.yaml:7:19: models.b.freeze[0].at: must be 4 or more`,
		`bad.yaml:8:20: models.c.fail.kind: must be one of status, html`,
		`bad.yaml:11:5: models.d.steps: are the whole answer`,
		`bad.yaml:12:9: models.d.steps[0]: must send one thing`,
		`bad.yaml:13:14: models.d.steps[1].at: must not be before the step above`,
		`bad.yaml:14:17: models.d.steps[2].close: must be one of eof, cut`,
		`bad.yaml:15:9: models.d.steps[3]: must send something`,
		`bad.yaml:16:9: models.d.steps[4]: ends the answer`,
		`bad.yaml:17:28: models.d.steps[5].status: must be from 200 to 599, not 999`,
		`bad.yaml:18:14: models.e.usage: must be true, false, always`,
		`bad.yaml:18:51: models.e.fail.status: goes together with the kinds status and html only, not cut`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no mistake %q", want)
		}
	}
	if t.Failed() {
		t.Logf("mistakes:\n%v", err)
	}
	if _, err := NewScript("empty.yaml", []byte("api_key: x\n")); err == nil || !strings.Contains(err.Error(), "at least one model") {
		t.Errorf("a script without models: %v", err)
	}
}

// The examples of the manual are scripts, and say what the manual says.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d examples in the manual", len(blocks))
	}
	for _, b := range blocks {
		if _, err := NewScript("serve.md", []byte(b[1])); err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
		}
	}
	for _, kind := range failKinds {
		if !strings.Contains(string(text), "| `"+kind+"` |") {
			t.Errorf("the manual does not describe fail kind %s", kind)
		}
	}
}

func TestWordsAreTokens(t *testing.T) {
	for _, test := range []struct {
		api, body string
		want      int
	}{
		{Chat, `{"messages":[{"role":"system","content":"be  brief"},{"role":"user","content":[{"type":"text","text":"one two"},{"type":"image_url"}]}]}`, 4},
		{Chat, `{"messages":[{"role":"assistant","content":null}]}`, 0},
		{Completions, `{"prompt":" one two\nthree "}`, 3},
		{Completions, `{"prompt":["one two","three"]}`, 3},
		{Completions, `{"prompt":[11,12,13,14]}`, 4},
	} {
		q, err := readRequest(test.api, http.Header{}, []byte(test.body))
		if err != nil || q.PromptTokens != test.want {
			t.Errorf("%s: %+v, %v; want %d prompt tokens", test.body, q, err, test.want)
		}
	}
}
