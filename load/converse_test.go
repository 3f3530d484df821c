package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/recording"
	"fermata/schedule"
	"fermata/serve"
	"fermata/workload"
)

// A teller answers each request with words of its own, and fails some.
type teller struct {
	fails func(n int) bool // request n, from 1; may be nil
	after string           // header retry-after, if any

	mu     sync.Mutex
	n      int
	bodies []map[string]json.RawMessage
	where  []string // header x-where
}

func (s *teller) Models() []string { return []string{"m"} }

// answer is what request n is answered with, in so many words.
func answerOf(n, words int) (all []string) {
	for i := range words {
		all = append(all, fmt.Sprintf("a%d<%d> ", n, i))
	}
	return all
}

func (s *teller) Answer(_ context.Context, q *serve.Request) (iter.Seq[serve.Event], error) {
	n := 0
	if _, err := fmt.Sscan(q.Header.Get("X-Number"), &n); err != nil {
		return nil, err
	}
	if s.fails != nil && s.fails(n) {
		return nil, &serve.Refusal{Status: http.StatusServiceUnavailable, Fault: serve.Fault{Message: "not now"}}
	}
	return func(yield func(serve.Event) bool) {
		at := 5 * time.Millisecond
		if !yield(serve.Event{Reasoning: "hm ", Tokens: 1}) {
			return
		}
		for _, word := range answerOf(n, q.MaxTokens-1) {
			if !yield(serve.Event{At: at, Text: word, Tokens: 1}) {
				return
			}
			at += time.Millisecond
		}
		_ = yield(serve.Event{At: at, Finish: "length"}) && yield(serve.Event{At: at, Usage: &serve.Usage{Prompt: q.PromptTokens, Completion: q.MaxTokens}}) &&
			yield(serve.Event{At: at, Done: true})
	}, nil
}

// start serves in this process and keeps every body that comes.
func (s *teller) start(t testing.TB) string {
	t.Helper()
	h := serve.New(s, serve.Options{}).Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal(data, &body); err != nil {
			t.Errorf("the body %s: %v", data, err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.where = append(s.where, r.Header.Get("X-Where"))
		s.n++
		r.Header.Set("X-Number", fmt.Sprint(s.n))
		s.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		if s.after != "" {
			w.Header().Set("Retry-After", s.after)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// got are the bodies in the order in which they came.
func (s *teller) got() []map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// begin are the due times of a workload's conversations as arrivals.
func begin(prompts *workload.Workload) func(i int) schedule.Arrival {
	due := prompts.Times()
	return func(i int) schedule.Arrival { return schedule.Arrival{Due: due(i)} }
}

// talking is a job of conversations, with dialect and path of the interface.
func talking(t testing.TB, s *teller, api string, what workload.Options, when schedule.Options) Job {
	t.Helper()
	j := job(t, "", newTape(), when)
	j.Dialect = chat(t, dialect.Options{Model: "m", API: api})
	j.URL = s.start(t) + j.Dialect.Path()
	j.Transport = transport(t, j.URL)
	prompts, err := workload.Open(what, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := prompts.Timed(); n > 0 {
		if j.Schedule, err = schedule.NewTimed(schedule.Options{Think: when.Think}, schedule.Rows{N: n, At: begin(prompts)}, 1); err != nil {
			t.Fatal(err)
		}
	}
	err = j.Schedule.Converse(func(i int64) (int, bool) {
		_, turns, ok := prompts.Conversation(i)
		return turns, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	j.Prompts = prompts
	return j
}

var threeTurns = workload.Options{Input: workload.Tokens(8), Output: workload.Tokens(tokens), Turns: 3}

// conversations are the traces by session, in order of their turns, each turn
// once and none left out.
func conversations(t testing.TB, r *tape) map[string][]*recording.Trace {
	t.Helper()
	all := map[string][]*recording.Trace{}
	slices.SortFunc(r.traces, func(a, b recording.Trace) int { return int(a.Index - b.Index) })
	for i := range r.traces {
		tr := &r.traces[i]
		if int(tr.Turn) != len(all[tr.Session]) || !tr.Turns.OK || tr.Turn >= tr.Turns.V {
			t.Errorf("request %d is turn %d of %v, the one before was %d", tr.Index, tr.Turn, tr.Turns, len(all[tr.Session])-1)
		}
		all[tr.Session] = append(all[tr.Session], tr)
	}
	return all
}

// Each later turn carries everything before it, the answers as they were
// streamed, and is due when the one before has ended plus its think time.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, when := range []schedule.Options{
		{Kind: schedule.Constant, Rate: 100, Requests: 30, Warmup: "6", Drain: "load", Think: "exponential:20ms"},
		{Kind: schedule.Poisson, Rate: 60, Requests: 30, Warmup: "6", Drain: "quiet"},
		{Kind: schedule.Closed, Concurrency: 1, Requests: 14, Warmup: "0", Drain: "quiet", Think: "exponential:10ms"},
		{Kind: schedule.Closed, Concurrency: 3, Requests: 20, Warmup: "6", Drain: "load"},
		{Kind: schedule.All, Requests: 10, Warmup: "0"},
	} {
		t.Run(when.Kind, func(t *testing.T) {
			t.Parallel()
			s := &teller{}
			j := talking(t, s, "chat", threeTurns, when)
			end, r := offer(t, j)
			p := phases(r)
			// A turn that was due before the warm-up ended may come to be placed after.
			if int64(len(p[recording.Measured])) != when.Requests || fmt.Sprint(min(len(p[recording.Warmup]), 6)) != when.Warmup {
				t.Errorf("%d measured, %d to warm up", len(p[recording.Measured]), len(p[recording.Warmup]))
			}
			if when.Drain == "quiet" && len(p[recording.Drain]) > 0 || end.Interrupted != "" {
				t.Errorf("%d in the drain; %+v", len(p[recording.Drain]), end)
			}
			talks := conversations(t, r)
			if when.Kind == schedule.All && len(talks) != 4 {
				t.Errorf("%d conversations began, want the 4 that have 10 turns", len(talks))
			}
			for _, turns := range talks {
				for k := 1; k < len(turns); k++ {
					gap := turns[k].Due - turns[k-1].End.V
					want := int64(j.Schedule.Think(int(turns[0].Index/3), int64(k)))
					if when.Kind == schedule.Closed {
						want = int64(j.Schedule.Think(0, turns[k].Index)) // right for a single user
					}
					if gap != want {
						t.Errorf("turn %d is due %d ns after the end of the one before, want %d", turns[k].Index, gap, want)
					}
				}
			}
			for i := range r.traces {
				if tr := &r.traces[i]; tr.Outcome == recording.OK && tr.Sent.V < tr.Due {
					t.Errorf("request %d left before it was due", tr.Index)
				}
			}
			j.carries(t, s, r)
		})
	}
}

// carries checks what the server got against what it streamed.
func (j *Job) carries(t testing.TB, s *teller, r *tape) {
	t.Helper()
	type message struct{ Role, Content string }
	number := map[string]int{} // of the request, by its last prompt
	var asked [][]message
	for i, body := range s.got() {
		var messages []message
		if err := json.Unmarshal(body["messages"], &messages); err != nil {
			t.Fatal(err)
		}
		last := messages[len(messages)-1]
		if _, twice := number[last.Content]; twice || last.Role != "user" {
			t.Fatalf("%+v was asked twice, or nobody asks", last)
		}
		number[last.Content] = i + 1
		asked = append(asked, messages)
	}
	later := 0
	for i := range r.traces {
		tr := &r.traces[i]
		var want []message
		intended := int32(0)
		for k := tr.Index - int64(tr.Turn); k <= tr.Index; k++ {
			q, _ := j.Prompts.At(k, 0, 0)
			if intended += q.PromptTokens; len(strings.Fields(q.Prompt)) != 8 {
				t.Errorf("the prompt of turn %d is %q", k, q.Prompt)
			}
			want = append(want, message{"user", q.Prompt})
			if k < tr.Index {
				want = append(want, message{"assistant", strings.Join(answerOf(number[q.Prompt], tokens-1), "")})
				intended += tokens
				later++
			}
		}
		n := number[want[len(want)-1].Content]
		if n == 0 && (tr.Outcome == recording.NotSent || tr.Outcome == recording.TruncatedByUs) {
			continue // it never came so far
		}
		if n == 0 || !slices.Equal(asked[n-1], want) {
			t.Errorf("request %d asked %+v, want %+v", tr.Index, asked[max(n, 1)-1], want)
		}
		if tr.Prompt.Intended.V != intended {
			t.Errorf("request %d was to have %d tokens, want %d", tr.Index, tr.Prompt.Intended.V, intended)
		}
	}
	if later == 0 {
		t.Error("no conversation had a second turn")
	}
}

// A failed turn ends its conversation: what was to follow is never sent, and
// other conversations take its place.
func TestConversationFails(t *testing.T) {
	t.Parallel()
	for _, when := range []schedule.Options{
		{Kind: schedule.Constant, Rate: 200, Requests: 40, Warmup: "0", Drain: "quiet"},
		{Kind: schedule.Closed, Concurrency: 3, Requests: 40, Warmup: "0", Drain: "quiet"},
	} {
		s := &teller{fails: func(n int) bool { return n%4 == 0 }}
		_, r := offer(t, talking(t, s, "chat", threeTurns, when))
		failed := 0
		for _, turns := range conversations(t, r) {
			for k, tr := range turns {
				if tr.Outcome == recording.OK {
					continue
				}
				if failed++; k+1 < len(turns) {
					t.Errorf("%s: turn %d failed, and another followed it", when.Kind, tr.Index)
				}
			}
		}
		if n := len(r.traces); n != 40 || failed != 10 {
			t.Errorf("%s: %d requests, of which %d failed, want 10 of 40", when.Kind, n, failed)
		}
	}
}

// Rows of a session are the turns of a conversation: in their order, with their
// times, think times and fields, whatever stands between them.
func TestConversationRows(t *testing.T) {
	t.Parallel()
	rows := `{"session":"b","at_s":0.06,"prompt":"b0","think_s":9}
{"session":"a","at_s":0.02,"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}],"tools":[{"n":1.0}],"response_format":{"type":"json"}}
{"at_s":0.03,"prompt":"alone"}
{"session":"b","at_s":0.0,"prompt":"b1","think_s":0.025,"body":{"top_k":1e2}}
{"session":"a","at_s":0.01,"prompt":"a1"}
`
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &teller{}
	j := talking(t, s, "chat", workload.Options{Dataset: file, Output: workload.Tokens(2)}, schedule.Options{Kind: schedule.All, Requests: 1, Think: "10ms"})
	if n, ok := j.Schedule.MeasuredTotal(); n != 5 || !ok {
		t.Errorf("%d turns to measure, want 5", n)
	}
	end, r := offer(t, j)
	slices.SortFunc(r.traces, func(a, b recording.Trace) int { return int(a.Index - b.Index) })
	if len(r.traces) != 5 {
		t.Fatalf("%d requests, want 5", len(r.traces))
	}
	a0, a1, alone, b0, b1 := &r.traces[0], &r.traces[1], &r.traces[2], &r.traces[3], &r.traces[4]
	for _, c := range []struct {
		tr      *recording.Trace
		session string
		turn    int32
		due     int64
		turns   recording.Maybe[int32]
	}{
		{a0, "a", 0, 20 * ms, recording.Some[int32](2)},
		{a1, "a", 1, a0.End.V + 10*ms, recording.Some[int32](2)},
		{alone, "", 0, 30 * ms, recording.Maybe[int32]{}},
		{b0, "b", 0, 60 * ms, recording.Some[int32](2)},
		{b1, "b", 1, b0.End.V + 25*ms, recording.Some[int32](2)},
	} {
		if c.tr.Session != c.session || c.tr.Turn != c.turn || c.tr.Due != c.due || c.tr.Turns != c.turns || c.tr.Phase != recording.Measured {
			t.Errorf("%+v, want %+v", c.tr, c)
		}
	}
	if want := max(a1.Due, b1.Due) + 1; end.WindowEnd != want {
		t.Errorf("the window ends at %d, want 1 ns after the last due time, %d", end.WindowEnd, want)
	}
	opaque := `{"role":"system","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}`
	var first, second, last map[string]json.RawMessage
	number := 0
	for i, b := range s.got() {
		switch messages := string(b["messages"]); {
		case messages == "["+opaque+"]":
			first, number = b, i+1
		case strings.Contains(messages, `"a1"`):
			second = b
		case strings.Contains(messages, `"b1"`):
			last = b
		}
	}
	for _, c := range []struct{ got, want string }{
		{string(first["messages"]), "[" + opaque + "]"},
		{string(first["tools"]), `[{"n":1.0}]`},
		{string(first["response_format"]), `{"type":"json"}`},
		{string(second["messages"]), fmt.Sprintf(`[%s,{"role":"assistant","content":"a%d<0> "},{"role":"user","content":"a1"}]`, opaque, number)},
		{string(second["tools"]), ""},
		{string(last["top_k"]), "1e2"},
	} {
		if c.got != c.want {
			t.Errorf("the body has %s, want %s", c.got, c.want)
		}
	}
}

// In Completions a conversation is one text that grows.
func TestConversationText(t *testing.T) {
	t.Parallel()
	s := &teller{}
	j := talking(t, s, "completions", threeTurns, schedule.Options{Concurrency: 1, Requests: 3, Warmup: "0", Drain: "quiet"})
	j.KeepText = true
	_, r := offer(t, j)
	if len(r.traces) != 3 {
		t.Fatalf("%d requests", len(r.traces))
	}
	var want string
	for k, body := range s.got() {
		q, _ := j.Prompts.At(int64(k), 0, 0)
		want += q.Prompt
		var got string
		if err := json.Unmarshal(body["prompt"], &got); err != nil || got != want {
			t.Errorf("turn %d: %q, want %q (%v)", k, got, want, err)
		}
		want += strings.Join(answerOf(k+1, tokens-1), "") + "\n\n"
	}
}

// Nobody waits for those who think when the run is over, or was stopped.
func TestConversationsThatThink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    schedule.Options
		stop time.Duration
	}{
		{schedule.Options{Kind: schedule.Constant, Rate: 50, Requests: 5}, time.Minute},
		{schedule.Options{Kind: schedule.Constant, Rate: 50, Duration: 150 * time.Millisecond}, time.Minute},
		{schedule.Options{Kind: schedule.Constant, Rate: 50, Requests: 1000}, 200 * time.Millisecond},
		{schedule.Options{Kind: schedule.All, Requests: 9}, 200 * time.Millisecond},
		{schedule.Options{Concurrency: 4, Requests: 9, Drain: "quiet"}, 200 * time.Millisecond},
		{schedule.Options{Concurrency: 4, Duration: 200 * time.Millisecond}, time.Minute},
	} {
		c.o.Warmup, c.o.Think = "0", "1h"
		stop := make(chan struct{})
		timer := time.AfterFunc(c.stop, func() { close(stop) })
		began := time.Now()
		_, r := offerUntil(t, t.Context(), stop, talking(t, &teller{}, "chat", threeTurns, c.o))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%+v: it took %s", c.o, took)
		}
		for i := range r.traces {
			if tr := &r.traces[i]; tr.Turn != 0 || tr.Outcome != recording.OK && tr.Outcome != recording.TruncatedByUs && tr.Outcome != recording.NotSent {
				t.Errorf("%+v: %s at turn %d", c.o, tr.Outcome, tr.Turn)
			}
		}
		timer.Stop()
	}
}

// The same seed asks the same of whatever depends on no answer. How many
// conversations begin before the last measured turn, the server decides.
func TestConversationsRepeat(t *testing.T) {
	t.Parallel()
	var due [2]map[int64]int64
	var asked [2][]string
	for i := range due {
		s := &teller{}
		_, r := offer(t, talking(t, s, "chat", threeTurns, schedule.Options{Kind: schedule.Poisson, Rate: 100, Requests: 12, Warmup: "0", Drain: "quiet"}))
		due[i] = map[int64]int64{}
		for k := range r.traces {
			if tr := &r.traces[k]; tr.Turn == 0 {
				due[i][tr.Index] = tr.Due
			}
		}
		for _, b := range s.got() {
			if !strings.Contains(string(b["messages"]), "assistant") {
				asked[i] = append(asked[i], string(b["messages"]))
			}
		}
	}
	few, many := 0, 1
	if len(asked[0]) > len(asked[1]) {
		few, many = 1, 0
	}
	if len(asked[few]) == 0 {
		t.Error("nothing was asked")
	}
	for _, messages := range asked[few] {
		if !slices.Contains(asked[many], messages) {
			t.Errorf("%s was asked in one run only", messages)
		}
	}
	for index, at := range due[few] {
		if due[many][index] != at {
			t.Errorf("request %d was due at %d and at %d", index, at, due[many][index])
		}
	}
}
