package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Turns of made-up conversations are the requests of one that has none, three at
// a time.
func TestSyntheticTurns(t *testing.T) {
	plain := mustOpen(t, Options{Input: "uniform:5,20", Output: "7"}, 3)
	w := mustOpen(t, Options{Input: "uniform:5,20", Output: "7", Turns: 3}, 3)
	if plain.Conversing() || !w.Conversing() {
		t.Fatal("who converses?")
	}
	for i := range int64(9) {
		want := mustAt(t, plain, i, 0, 0)
		want.Session, want.Turn = fmt.Sprint(i/3), int32(i%3)
		if d := cmp.Diff(want, mustAt(t, w, i, 0, 0)); d != "" {
			t.Error(d)
		}
		if first, turns, ok := w.Conversation(i); first != 3*i || turns != 3 || !ok {
			t.Errorf("conversation %d begins at %d and has %d turns", i, first, turns)
		}
		if first, turns, ok := plain.Conversation(i); first != i || turns != 1 || !ok {
			t.Errorf("request %d begins at %d and has %d turns", i, first, turns)
		}
	}
	// What a chat template adds is there once.
	w.Calibrate(Calibration{Overhead: 10, PerWord: 2})
	for i, want := range []int{15, 20, 20} {
		if n := len(strings.Fields(mustAt(t, w, int64(i), 40, 0).Prompt)); n != want {
			t.Errorf("turn %d of 40 tokens has %d words, want %d", i, n, want)
		}
	}
	if n, ok := w.MeanTurns(); n != 3 || !ok {
		t.Errorf("%v turns in the mean", n)
	}
}

// Rows of one session are one conversation, wherever they stand; the second time
// through it is another one.
func TestSessionsOfRows(t *testing.T) {
	file := write(t, `{"prompt":"first"}
{"prompt":"x0","session":"x"}
{"prompt":"y0","session":"y"}
{"prompt":"x1","session":"x","think_s":1.5}
{"prompt":"alone"}
{"prompt":"x2","session":"x"}
{"prompt":"y1","session":"y"}
`)
	w := mustOpen(t, Options{Dataset: file}, 1)
	var got []string
	for i := range w.Rows() * 2 {
		q := mustAt(t, w, i, 0, 0)
		got = append(got, fmt.Sprint(q.ID, q.Prompt, " ", q.Session, q.Turn))
		if want := map[string]int64{"x1": 15e8}[q.Prompt]; int64(q.Think) != want {
			t.Errorf("%s comes after %s", q.Prompt, q.Think)
		}
	}
	want := []string{
		"0first 0", "1x0 x0", "2x1 x1", "3x2 x2", "4y0 y0", "5y1 y1", "6alone 0",
		"7first 0", "8x0 x#10", "9x1 x#11", "10x2 x#12", "11y0 y#10", "12y1 y#11", "13alone 0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var spans []string
	for i := range int64(8) {
		first, turns, ok := w.Conversation(i)
		spans = append(spans, fmt.Sprint(first, turns, ok))
	}
	if d := cmp.Diff([]string{"0 1 true", "1 3 true", "4 2 true", "6 1 true", "7 1 true", "8 3 true", "11 2 true", "13 1 true"}, spans); d != "" {
		t.Error(d)
	}
	if n, ok := w.MeanTurns(); n != 7.0/4 || !ok {
		t.Errorf("%v turns in the mean", n)
	}
	once := mustOpen(t, Options{Dataset: file, Once: true}, 1)
	if _, _, ok := once.Conversation(3); !ok {
		t.Error("the last conversation is missing")
	}
	if _, _, ok := once.Conversation(4); ok {
		t.Error("a data set played once goes on")
	}
	// Rows that all stand alone are no conversations.
	if w := mustOpen(t, Options{Dataset: write(t, "{\"prompt\":\"a\",\"session\":\"1\"}\n{\"prompt\":\"b\",\"session\":\"2\"}\n")}, 1); w.Conversing() || mustAt(t, w, 1, 0, 0).Session != "2" {
		t.Error("single rows converse")
	}
	// Where rows have times, conversations come by that of their first row.
	timed := mustOpen(t, Options{Dataset: write(t, `{"at_s":5,"prompt":"a0","session":"a"}
{"at_s":1,"prompt":"a1","session":"a"}
{"at_s":2,"prompt":"b0","session":"b"}
`)}, 1)
	if due := allTimes(timed); !cmp.Equal(due, []int64{2e9, 5e9}) || mustAt(t, timed, 0, 0, 0).Prompt != "b0" || mustAt(t, timed, 2, 0, 0).Prompt != "a1" {
		t.Errorf("conversations begin at %v", due)
	}
	if _, err := Describe(timed, 0); err != nil {
		t.Error(err)
	}
}

// Published conversations give as many of their questions as are asked for.
func TestPublishedTurns(t *testing.T) {
	long := `{"conversation":[{"role":"user","content":"q0 of four"},{"role":"assistant","content":"yes"},{"role":"user","content":"q1"},{"role":"assistant","content":"a longer answer"},{"role":"user","content":"q2"}]}
{"conversation":[{"role":"user","content":"other"},{"role":"assistant","content":"no"}]}
{"conversation":[{"role":"user","content":"again"},{"role":"assistant","content":"no"},{"role":"user","content":"and this"}]}
`
	for turns, want := range map[int][]string{
		0: {"q0 of four/1 0", "other/1 0", "again/1 0"},
		2: {"q0 of four/1 00", "q1/4 01", "other/1 10", "again/1 20", "and this/0 21"},
		9: {"q0 of four/1 00", "q1/4 01", "q2/0 02", "other/1 10", "again/1 20", "and this/0 21"},
	} {
		w := mustOpen(t, Options{Dataset: write(t, long), Turns: turns}, 1)
		var got []string
		for i := range w.Rows() {
			q := mustAt(t, w, i, 0, 0)
			got = append(got, fmt.Sprint(q.Prompt, "/", q.OutputTokens, " ", q.Session, q.Turn))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d turns: %s", turns, d)
		}
	}
	_, err := Open(Options{Dataset: write(t, "{\"prompt\":\"a\"}\n"), Turns: 2}, 1)
	if err == nil || !strings.Contains(err.Error(), "rows of the same session") {
		t.Errorf("turns of a data set that has none: %v", err)
	}
}

func TestConversationSoFar(t *testing.T) {
	q := Request{Prompt: "c", Before: []Exchange{{Prompt: "a", Answer: "<b>"}}}
	all, err := json.Marshal(q.Chat())
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]string
	if err := json.Unmarshal(all, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{{"role": "user", "content": "a"}, {"role": "assistant", "content": "<b>"}, {"role": "user", "content": "c"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if text, ok := q.Text(); text != "a<b>\n\nc" || !ok {
		t.Errorf("%q %v", text, ok)
	}
	q.Before[0].Messages = []json.RawMessage{json.RawMessage(`{"role":"system"}`)}
	if _, ok := q.Text(); ok {
		t.Error("messages became text")
	}
}
