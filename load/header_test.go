package load

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fermata/recording"
	"fermata/schedule"
)

func TestFillHeader(t *testing.T) {
	t.Parallel()
	h := http.Header{"A": {"{index}-{session}-{seed}-{index}", "{turn}"}, "B": {`{"a": "index"}`}}
	got := FillHeader(h, "5", "{seed}", "7")
	if !slices.Equal(got["A"], []string{"5-{seed}-7-5", "{turn}"}) || got.Get("B") != h.Get("B") || h.Get("A") != "{index}-{session}-{seed}-{index}" {
		t.Errorf("%v from %v", got, h)
	}
	escaped := FillHeader(http.Header{"C": {"{{index}} {index} {{{seed}}}"}}, "5", "s", "7")
	if got := escaped.Get("C"); got != "{index} 5 {{seed}}" {
		t.Errorf("%q", got)
	}
	for value, want := range map[string]string{
		"{index}": "", "a{idnex}b": "{idnex}", "{{idnex}}": "", `{"a": {"b": 1}}`: "", "{}": "", "{1}": "", "{index}{turn}": "{turn}",
	} {
		if got := StrangePlaceholder(value); got != want {
			t.Errorf("%s: %q", value, got)
		}
	}
	plain := http.Header{"B": {"{}"}}
	if got := FillHeader(plain, "1", "2", "3"); fmt.Sprintf("%p", got) != fmt.Sprintf("%p", plain) {
		t.Error("a header without placeholders was copied")
	}
}

// Each request carries its own index and session, and every try of it the same.
func TestHeadersAreFilled(t *testing.T) {
	t.Parallel()
	s := &teller{fails: func(n int) bool { return n == 3 }, after: "0"}
	j := talking(t, s, "chat", threeTurns, schedule.Options{Concurrency: 1, Requests: 5, Warmup: "0", Drain: "quiet"})
	j.Header = j.Header.Clone()
	j.Header.Set("X-Where", "{seed}/{session}/{index}")
	j.Options.Retries, j.Seed = 1, 17
	_, r := offer(t, j)
	var want []string
	for index, tries := range r.tried(t) {
		if tries[0].Session == "" || tries[len(tries)-1].Outcome != recording.OK {
			t.Errorf("request %d: %+v", index, tries)
		}
		for range tries {
			want = append(want, fmt.Sprintf("17/%s/%d", tries[0].Session, index))
		}
	}
	slices.Sort(want)
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.Sorted(slices.Values(s.where))
	if !slices.Equal(got, want) || len(want) != 6 {
		t.Errorf("sent were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
