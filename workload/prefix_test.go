package workload

import (
	"math"
	"strings"
	"testing"
)

// Of n requests the share begins with the text of a group, within what chance
// allows (5 standard deviations of a binomial), groups are equally likely, and
// nothing else is shared.
func TestPrefixes(t *testing.T) {
	const n, tokens, groups, share = 4000, 40, 4, 0.8
	o := Options{Input: "12", Output: "5", Prefix: &Prefix{Tokens: tokens, Groups: groups, Share: share}}
	w := mustOpen(t, o, 11)
	again := mustOpen(t, o, 11)
	other := mustOpen(t, o, 12)
	count := map[string]int{}
	rest := map[string]bool{}
	for i := range int64(n) {
		q := mustAt(t, w, i, 0, 0)
		if q.Prompt != mustAt(t, again, i, 0, 0).Prompt || q.Prompt == mustAt(t, other, i, 0, 0).Prompt {
			t.Fatalf("request %d is not the seed's", i)
		}
		words := strings.Fields(q.Prompt)
		if len(words) != int(q.PromptTokens) || len(words) != 12 && len(words) != 12+tokens {
			t.Fatalf("request %d has %d words and %d tokens intended", i, len(words), q.PromptTokens)
		}
		if len(words) > 12 {
			count[strings.Join(words[:tokens], " ")]++
			words = words[tokens:]
		}
		begin := strings.Join(words[:2], " ")
		if rest[begin] {
			t.Errorf("request %d shares %q with another", i, begin)
		}
		rest[begin] = true
	}
	all := 0
	firsts := map[string]bool{}
	for text, k := range count {
		all += k
		firsts[strings.Fields(text)[0]] = true
		if p := share / groups; math.Abs(float64(k)-n*p) > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("a group has %d requests of %d", k, n)
		}
	}
	if len(count) != groups || len(firsts) != groups || math.Abs(float64(all)-n*share) > 5*math.Sqrt(n*share*(1-share)) {
		t.Errorf("%d groups with %d first words; %d of %d requests share", len(count), len(firsts), all, n)
	}
	if p := w.Probe(20); len(strings.Fields(p.Prompt)) != 20 {
		t.Errorf("a probe of %q", p.Prompt)
	}
	// By the server's count: two tokens a word, and what the template adds once.
	w.Calibrate(Calibration{Overhead: 4, PerWord: 2})
	for i := range int64(20) {
		want := map[int32]int{12: 4, 12 + tokens: 4 + tokens/2}
		if q := mustAt(t, w, i, 0, 0); len(strings.Fields(q.Prompt)) != want[q.PromptTokens] {
			t.Errorf("%d tokens in %d words", q.PromptTokens, len(strings.Fields(q.Prompt)))
		}
	}
}

// Only a conversation's first turn brings the prefix; defaults are one text, for
// all.
func TestPrefixOfConversations(t *testing.T) {
	w := mustOpen(t, Options{Input: "6", Output: "5", Turns: 2, Prefix: &Prefix{Tokens: 10}}, 1)
	var shared string
	for i := range int64(6) {
		q := mustAt(t, w, i, 0, 0)
		words := strings.Fields(q.Prompt)
		if q.Turn > 0 {
			if len(words) != 6 || q.PromptTokens != 6 {
				t.Errorf("turn %d is %q", q.Turn, q.Prompt)
			}
			continue
		}
		begin := strings.Join(words[:10], " ")
		if shared == "" {
			shared = begin
		}
		if len(words) != 16 || begin != shared || q.PromptTokens != 16 {
			t.Errorf("%q begins otherwise than %q", q.Prompt, shared)
		}
	}
	for _, p := range []Prefix{{}, {Tokens: 5, Groups: -1}, {Tokens: 5, Share: 1.5}, {Tokens: 5, Share: math.NaN()}} {
		if found := (&Options{Prefix: &p}).Check(); len(found) != 1 || !strings.HasPrefix(found[0].Path, "prefix.") {
			t.Errorf("%+v: %v", p, found)
		}
	}
	if found := (&Options{Dataset: "x.jsonl", Prefix: &Prefix{Tokens: 5}}).Check(); len(found) != 1 || found[0].Path != "prefix" {
		t.Errorf("%v", found)
	}
}
