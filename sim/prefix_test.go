package sim

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// A line of Mooncake's trace.
type line struct {
	Timestamp int64   `json:"timestamp"`
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	Hashes    []int64 `json:"hash_ids"`
}

func mooncake(t *testing.T) (lines []line) {
	t.Helper()
	f, err := os.Open("testdata/mooncake_conversation_first2500.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(z)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// The share of tokens that a cache of so many blocks of 512 finds, one request
// after another: values of an independent LRU.
func TestMooncakeHitRates(t *testing.T) {
	lines := mooncake(t)
	for capacity, want := range map[int]float64{1 << 30: .3061, 10000: .2084, 5000: .1107, 2000: .0487} {
		m := memory{blockSize: 512, total: capacity, free: capacity, cache: newCache()}
		hit, all := 0, 0
		for _, l := range lines {
			// All blocks count here, also the last one that is not full.
			s := sequence{Request: Request{Prompt: len(l.Hashes) * 512, Hashes: l.Hashes, HashTokens: 512}, target: len(l.Hashes)*512 + 1}
			chain := m.cached(&s)
			hit += min(len(chain)*512, l.Input)
			all += l.Input
			if !m.admits(m.costs(chain, s.Prompt)) {
				t.Fatalf("%d blocks have no room for %d", capacity, len(l.Hashes))
			}
			m.admit(&s, chain, s.Prompt)
			s.computed = s.Prompt
			m.remember(&s)
			m.release(&s)
		}
		if rate := float64(hit) / float64(all); math.Abs(rate-want) > .00005 {
			t.Errorf("%d blocks: hit rate %.4f, want %.4f", capacity, rate, want)
		}
	}
}

// Through the engine the same trace finds what is full and was computed in time.
func TestMooncakeThroughTheEngine(t *testing.T) {
	lines := mooncake(t)[:600]
	o := small(1<<26, Scheduler{Policy: PrefillFirst, MaxNumBatchedTokens: 1 << 20})
	o.MaxModelLen, o.PrefixCache, o.Memory.BlockSize = 1<<20, true, 512
	var requests []Request
	seen, hit, all := map[int64]bool{}, 0, 0
	for i, l := range lines {
		// Far apart, so that each has ended before the next comes.
		requests = append(requests, Request{Index: int64(i), Arrival: int64(i) * 1e12, Prompt: l.Input, Output: 2, Hashes: l.Hashes, HashTokens: 512})
		k := 0
		for k < len(l.Hashes) && (k+1)*512 <= l.Input-1 && seen[l.Hashes[k]] {
			k++
		}
		for j, h := range l.Hashes {
			if (j+1)*512 <= l.Input {
				seen[h] = true
			}
		}
		hit += k * 512
		all += l.Input
	}
	got := 0
	for _, r := range play(t, o, requests...) {
		got += r.Cached
	}
	if got != hit || hit == 0 {
		t.Errorf("%d of %d prompt tokens were cached, want %d", got, all, hit)
	}
}

// A turn finds its conversation so far, whole blocks of it, and pays for the
// rest only; a shared beginning is found by everyone.
func TestConversationsAreCached(t *testing.T) {
	o := small(1<<16, Scheduler{Policy: PrefillFirst})
	o.PrefixCache = true
	cost := roofline(t, Options{Model: "Llama-3-8B"}, hostPresets["modern"])
	records := play(t, o,
		Request{Index: 0, Session: "a", Prompt: 100, Output: 61},
		Request{Index: 1, Arrival: 1e10, Session: "a", Turn: 1, Prompt: 200, Output: 2}, // 100 + 61 before it, of which 160 were computed
		Request{Index: 2, Arrival: 2e10, Session: "b", Prompt: 200, Output: 2},
		Request{Index: 3, Arrival: 3e10, Session: "a", Turn: 2, Prompt: 96, Output: 2}, // all of it is there, but its last token is computed
		Request{Index: 4, Arrival: 4e10, Prefix: "system", PrefixTokens: 70, Prompt: 100, Output: 2},
		Request{Index: 5, Arrival: 5e10, Prefix: "system", PrefixTokens: 70, Prompt: 100, Output: 2},
	)
	for i, want := range []int{0, 160, 0, 80, 0, 64} {
		r := records[i]
		if r.Cached != want {
			t.Errorf("request %d: %d tokens were cached, want %d", i, r.Cached, want)
		}
		ns := cost.Iteration(&Batch{Chunks: []Chunk{{Tokens: r.Request.Prompt - want, Cached: want}}})
		if got := r.PrefillEnd - r.FirstScheduled; got != ns {
			t.Errorf("request %d: prefill took %d ns, want %d", i, got, ns)
		}
	}
}

// Of idle blocks the least recently used goes first, and of one chain the
// deepest; what is held stays.
func TestWhoIsForgotten(t *testing.T) {
	m := memory{blockSize: 1, total: 6, free: 6, cache: newCache()}
	use := func(stream string, tokens int) *sequence {
		s := &sequence{Request: Request{Prompt: tokens}, stream: hashText(stream), target: tokens + 1}
		m.admit(s, m.cached(s), tokens)
		s.computed = tokens
		m.remember(s)
		return s
	}
	has := func(stream string) int {
		s := &sequence{stream: hashText(stream), target: 100}
		return len(m.cached(s))
	}
	m.release(use("a", 3))
	held := use("b", 2)
	m.release(use("c", 1))
	check := func(want string) {
		t.Helper()
		if got := fmt.Sprint(has("a"), has("b"), has("c"), m.free); got != want {
			t.Errorf("kept %s, want %s", got, want)
		}
	}
	check("3 2 1 4")
	m.release(use("d", 1)) // the deepest of a goes
	check("2 2 1 4")
	m.release(use("a", 1)) // that of a is used again
	m.release(use("d", 3)) // the other of a goes, then c
	check("1 2 0 4")
	m.release(held)
	check("1 2 0 6")
	m.release(use("e", 6))
	check("0 0 0 6")
}

// Nothing is reused where prompts are all different, and then the cache changes
// nothing: what it keeps gives way.
func TestCacheTakesNoRoom(t *testing.T) {
	requests := load(300, 40, 4)
	for _, policy := range []string{PrefillFirst, StallFree, Unified} {
		watermark := .3 // room to grow
		o := Options{Memory: Memory{Tokens: 60_000, Watermark: &watermark}, Scheduler: Scheduler{Policy: policy}}
		plain := play(t, o, requests...)
		o.PrefixCache = true
		cached := play(t, o, requests...)
		evictions, waited := 0, 0
		for i := range plain {
			evictions += plain[i].Evictions
			if plain[i].FirstScheduled > plain[i].Request.Arrival+1e9 {
				waited++
			}
		}
		if evictions > 0 || waited < 100 {
			t.Errorf("%s: %d evictions, %d requests waited: this load says nothing", policy, evictions, waited)
		}
		for i := range plain {
			if !slices.Equal(plain[i].Tokens, cached[i].Tokens) {
				t.Fatalf("%s: request %d has other tokens with a cache", policy, i)
			}
		}
	}
}
