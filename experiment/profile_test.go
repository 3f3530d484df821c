package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/deadline"
	"fermata/internal/calm"
	"fermata/internal/conf"
)

// A prefiller takes 50 ms and 100 µs a word to its first token, and remembers what
// it was asked.
type prefiller struct {
	mu       sync.Mutex
	words    []int
	firsts   map[string]bool
	inFlight int
	together bool
	repeated bool
	wordy    []string // answers that were to be longer than a token

	// What is unlike others of the n-th request; nil for nothing.
	cached func(n int) int                                     // tokens of the prompt that it says were cached
	takes  func(n, words int, was time.Duration) time.Duration // instead of what it was
	refuse func(n int) bool                                    // with a 429
	usage  func(n, words int) int                              // tokens that it reports
	seen   func(n int)                                         // before anything is answered

	perWord time.Duration // 0 for 100 µs
	noUsage bool
	longest int // longer prompts are refused; 0 for none
}

// anew is the same server, which nobody has asked yet.
func (p *prefiller) anew() *prefiller {
	return &prefiller{cached: p.cached, takes: p.takes, refuse: p.refuse, usage: p.usage, seen: p.seen, perWord: p.perWord, noUsage: p.noUsage, longest: p.longest}
}

func prefillTime(words int) time.Duration {
	return 50*time.Millisecond + time.Duration(words)*100*time.Microsecond
}

func (p *prefiller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct{ Content string }
		Max      int `json:"max_tokens"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Messages) == 0 {
		http.NotFound(w, r)
		return
	}
	words := strings.Fields(q.Messages[0].Content)
	p.mu.Lock()
	n := len(p.words)
	if r.Header.Get("X-Fermata-Purpose") == "" {
		p.words = append(p.words, len(words))
		first := strings.Join(words[:4], " ")
		p.repeated = p.repeated || p.firsts[first]
		p.firsts[first] = true
		if q.Max != 1 {
			p.wordy = append(p.wordy, fmt.Sprint(q.Max))
		}
	}
	p.inFlight++
	p.together = p.together || p.inFlight > 1
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.inFlight--
		p.mu.Unlock()
	}()
	if p.seen != nil {
		p.seen(n)
	}
	if p.refuse != nil && p.refuse(n) {
		http.Error(w, `{"error": {"message": "too many requests"}}`, http.StatusTooManyRequests)
		return
	}
	if p.longest > 0 && len(words) > p.longest {
		http.Error(w, `{"error": {"message": "the prompt is too long"}}`, http.StatusBadRequest)
		return
	}
	takes := prefillTime(len(words))
	if p.perWord > 0 {
		takes = 20*time.Millisecond + time.Duration(len(words))*p.perWord
	}
	if p.takes != nil {
		takes = p.takes(n, len(words), takes)
	}
	time.Sleep(takes)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "length"}]}`+"\n\n")
	if !p.noUsage {
		cached := 0
		if p.cached != nil {
			cached = p.cached(n)
		}
		tokens := len(words)
		if p.usage != nil {
			tokens = p.usage(n, tokens)
		}
		fmt.Fprintf(w, `data: {"choices": [], "usage": {"prompt_tokens": %d, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": %d}}}`+"\n\n", tokens, cached)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func profileOf(t testing.TB, p *prefiller) (*Profiled, string, error) {
	t.Helper()
	p.firsts = map[string]bool{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	var said []string
	o := Options{Out: filepath.Join(t.TempDir(), "p"), Say: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}
	sets := []conf.Setting{{Path: "target.url", Value: server.URL}, {Path: "target.model", Value: "m"}, {Path: "seed", Value: "5"}}
	plan := ProfilePlan{Shortest: 64, Longest: 1024, Lengths: 4, Rounds: 10, Most: 10, Slack: SlackPlan{Lengths: "lmsys", Class: "interactive"}}
	got, err := Profile(context.Background(), sets, plan, o)
	return got, strings.Join(said, "\n"), err
}

// The truth is known: a curve is never below it, and the band holds it, however
// busy the machine is that the test runs on.
func TestProfileOfAKnownServer(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		p := &prefiller{cached: func(n int) int {
			if n == 20 { // one hit, which is left out
				return 64
			}
			if n == 25 { // the first in its slot, which is one like the others
				return 0
			}
			return 24 // a template's, which is none
		}}
		got, said, err := profileOf(t, p)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		for _, words := range []int{64, 161, 406, 1024} {
			truth, at := float64(prefillTime(words)), got.Curve.At(float64(words))
			if at < 0.97*truth || at > 1.5*truth {
				t.Errorf("%d tokens: %.0f ns, truly %.0f and a little", words, at, truth)
			}
		}
		// Four lengths in a first round that is thrown away, then ten rounds of all.
		if n := len(p.words); n != 44 || p.together || p.repeated || len(p.wordy) > 0 {
			t.Errorf("%d probes; two at once: %v; a beginning twice: %v; longer answers: %v", n, p.together, p.repeated, p.wordy)
		}
		inOrder := 0
		for r := 4; r+4 <= len(p.words); r += 4 {
			round := map[int]int{}
			for _, n := range p.words[r : r+4] {
				round[n]++
			}
			if len(round) != 4 {
				t.Errorf("a round of %v", p.words[r:r+4])
			}
			if p.words[r] < p.words[r+1] && p.words[r+1] < p.words[r+2] && p.words[r+2] < p.words[r+3] {
				inOrder++
			}
		}
		if inOrder > 3 {
			t.Errorf("%d of 10 rounds go from short to long: %v", inOrder, p.words)
		}
		if d := got.Diagnosis; d.Probes != 39 || d.LeftOut != 1 {
			t.Errorf("%d probes fitted, %d left out", d.Probes, d.LeftOut)
		}
		for _, want := range []string{"isolated plan: 4 lengths from 64 to 1,024 tokens, 10 rounds", "about 18,205 prompt tokens", "has the first 24 tokens of prompts in its cache", "1 probes were left out: the server had part of their prompts in its cache"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q was not said:\n%s", want, said)
			}
		}
		data, err := os.ReadFile(got.Path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := deadline.Read(got.Path, data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		// The load rule's wait is some service times of 50 to 200 ms: below 1 s.
		if f.Source.Plan != "isolated" || f.Source.Probes != 39 || f.Source.LeftOut != 1 || f.SHA256 == "" || f.SlackRule.Binds != "load" || *f.Slack <= 0 || *f.Slack > time.Second {
			t.Errorf("%s", data)
		}
		if v := f.Valid.PromptTokens; len(v) != 2 || v[0] != 32 || v[1] != 1126 || len(f.Band) < 10 {
			t.Errorf("%s", data)
		}
	})
}

func TestProfileRefuses(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		for name, c := range map[string]struct {
			p    *prefiller
			says string
		}{
			"cache": {&prefiller{cached: func(int) int { return 128 }}, "the server had 40 of 40 prompts in its cache"},
			"short": {&prefiller{longest: 200}, "ended as http_error: "},
		} {
			_, said, err := profileOf(t, c.p)
			var f *Failure
			if !errors.As(err, &f) || !strings.Contains(f.Saw, c.says) || f.Help == "" {
				t.Errorf("%s: %v\n%s", name, err, said)
			}
		}
	})
}

func TestProfileWithoutUsage(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		got, said, err := profileOf(t, &prefiller{noUsage: true})
		if err != nil || !strings.Contains(said, "the server reports no usage: prompt lengths are counted by words") {
			t.Fatalf("%v\n%s", err, said)
		}
		if got.Diagnosis.Probes != 40 {
			t.Errorf("%+v", got.Diagnosis)
		}
	})
}

func TestPlansThatCannotBe(t *testing.T) {
	for want, p := range map[string]ProfilePlan{
		"--shortest 100, --longest 300": {Shortest: 100, Longest: 300},
		"--points 2":                    {Lengths: 2},
		"--rounds 9":                    {Rounds: 9},
		"--rounds 20, --most 15":        {Rounds: 20, Most: 15},
		"--within 2":                    {Within: 2},
		"--class: there is no class":    {Slack: SlackPlan{Class: "vip"}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := (ProfilePlan{}).Check(); err != nil {
		t.Error(err)
	}
}
