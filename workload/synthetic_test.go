package workload

import (
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustOpen(t *testing.T, o Options, seed uint64) *Workload {
	t.Helper()
	w, err := Open(o, seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustAt(t *testing.T, w *Workload, index int64, prompt, output int32) Request {
	t.Helper()
	q, ok := w.At(index, prompt, output)
	if !ok {
		t.Fatalf("the workload ended before request %d", index)
	}
	return q
}

func TestWordList(t *testing.T) {
	list := strings.Fields(wordList)
	if len(list) != listLen {
		t.Fatalf("%d words, want %d", len(list), listLen)
	}
	seen := map[string]bool{}
	for i, word := range list {
		if seen[word] {
			t.Errorf("%s stands there twice", word)
		}
		seen[word] = true
		if len(word) < 4 || len(word) > 7 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q is not four to seven small letters", word)
		}
		if i > 0 && len(word) < len(list[i-1]) {
			t.Errorf("%s stands after the longer %s", word, list[i-1])
		}
	}
}

func TestSyntheticLengths(t *testing.T) {
	w := mustOpen(t, Options{}, 1)
	q := mustAt(t, w, 3, 0, 0)
	if q.ID != 3 || q.PromptTokens != 512 || q.OutputTokens != 128 || q.Messages != nil {
		t.Errorf("by default %d tokens in, %d out, ID %d", q.PromptTokens, q.OutputTokens, q.ID)
	}
	for _, c := range []struct {
		calibration Calibration
		tokens      int32
		want        int
	}{
		{Calibration{}, 0, 512},
		{Calibration{}, 1, 1},
		{Calibration{}, 4, 4},
		{Calibration{}, 5, 5},
		{Calibration{Overhead: 31}, 0, 481},
		{Calibration{Overhead: 31}, 20, 1},
		{Calibration{Overhead: 12, PerWord: 1.25}, 0, 400},
		{Calibration{Overhead: 12, PerWord: 1.25}, 4012, 3200},
	} {
		w.Calibrate(c.calibration)
		if got := len(strings.Split(mustAt(t, w, 7, c.tokens, 9).Prompt, " ")); got != c.want {
			t.Errorf("%+v, %d tokens: %d words, want %d", c.calibration, c.tokens, got, c.want)
		}
	}
	if q := mustAt(t, w, 7, 99, 9); q.PromptTokens != 99 || q.OutputTokens != 9 {
		t.Errorf("a schedule's lengths 99 and 9 became %d and %d", q.PromptTokens, q.OutputTokens)
	}
	if w.Rows() != 0 || w.Rounds(8) != 0 {
		t.Errorf("synthetic prompts have %d rows, %d rounds", w.Rows(), w.Rounds(8))
	}
	if w.Timed() != 0 {
		t.Error("synthetic prompts have times")
	}
}

// The same seed and index give the same request, in any order, from any
// goroutine.
func TestSyntheticIsDeterministic(t *testing.T) {
	o := Options{Input: Tokens(40)}
	a, b, other := mustOpen(t, o, 5), mustOpen(t, o, 5), mustOpen(t, o, 6)
	const n = 2000
	want := make([]Request, n)
	for i := range want {
		want[i] = mustAt(t, a, int64(i), 0, 0)
		if i < 100 && want[i].Prompt == mustAt(t, other, int64(i), 0, 0).Prompt {
			t.Errorf("request %d is the same with another seed", i)
		}
	}
	var wait sync.WaitGroup
	for k := range 4 {
		wait.Go(func() {
			for i := n - 1 - k; i >= 0; i -= 4 {
				q, _ := b.At(int64(i), 0, 0)
				if diff := cmp.Diff(want[i], q); diff != "" {
					t.Errorf("request %d: %s", i, diff)
				}
			}
		})
	}
	wait.Wait()
}

// 1024 requests in a row have 1024 first words, and no two of 10⁵ (of 1024²
// in fact) the same first two: 1024² is more than 10⁵, so pairs suffice.
func TestSyntheticPromptsShareNoBeginning(t *testing.T) {
	for _, seed := range []uint64{0, 9} {
		w := mustOpen(t, Options{Input: Tokens(8)}, seed)
		pairs, last := map[[2]string]int64{}, map[string]int64{}
		for i := range int64(100_000) {
			f := strings.Fields(mustAt(t, w, i, 0, 0).Prompt)
			pair := [2]string{f[0], f[1]}
			if j, ok := pairs[pair]; ok {
				t.Fatalf("seed %d: requests %d and %d begin with %v", seed, j, i, pair)
			}
			pairs[pair] = i
			if j, ok := last[f[0]]; ok && i-j < listLen {
				t.Fatalf("seed %d: requests %d and %d begin with %s", seed, j, i, f[0])
			}
			last[f[0]] = i
		}
	}
}

// Any two requests below 2⁴⁰ differ in their first four words, and from probes.
func TestFirstWordsNameTheRequest(t *testing.T) {
	w := mustOpen(t, Options{Input: Tokens(4)}, 3)
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.Int64Range(0, 1<<40-1_000_000).Draw(t, "i")
		step := rapid.SampledFrom([]int64{1, 1024, 1 << 20, 1 << 30}).Draw(t, "step")
		j := (i + step*rapid.Int64Range(1, 1023).Draw(t, "steps")) % (1 << 40)
		a, _ := w.At(i, 0, 0)
		b, _ := w.At(j, 0, 0)
		if i != j && a.Prompt == b.Prompt {
			t.Fatalf("requests %d and %d both begin with %q", i, j, a.Prompt)
		}
		probe := w.Probe(rapid.IntRange(4, 900_000).Draw(t, "words"))
		if i < 1<<40-1_000_000 && strings.HasPrefix(probe.Prompt, a.Prompt) {
			t.Fatalf("request %d begins like probe %d", i, probe.ID)
		}
	})
}

// Every word is drawn about as often as any other: χ² over 1024 words has
// mean 1023 and sd √2046, here within 5 sd (strata only make it smaller).
func TestWordsAreDrawnEvenly(t *testing.T) {
	w := mustOpen(t, Options{Input: Tokens(1004)}, 2)
	counts := map[string]float64{}
	const requests = 400
	for i := range int64(requests) {
		for _, word := range strings.Fields(mustAt(t, w, i, 0, 0).Prompt)[leadWords:] {
			counts[word]++
		}
	}
	if len(counts) != listLen {
		t.Fatalf("%d words of %d were drawn", len(counts), listLen)
	}
	expected := float64(requests*1000) / listLen
	var chi2 float64
	for _, n := range counts {
		chi2 += (n - expected) * (n - expected) / expected
	}
	if chi2 > 1023+5*math.Sqrt(2046) {
		t.Errorf("χ² = %.0f over 1024 words", chi2)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []Point
		want   Calibration
	}{
		{"none", nil, Calibration{}},
		{"nonsense", []Point{{0, 5}, {7, 0}, {-1, -1}}, Calibration{}},
		{"one, a template and a token a word", []Point{{512, 543}}, Calibration{31, 1}},
		{"one, no template", []Point{{512, 512}}, Calibration{0, 1}},
		{"one, fewer tokens than words", []Point{{512, 384}}, Calibration{0, 0.75}},
		{"one, too many for a template", []Point{{512, 768}}, Calibration{0, 1.5}},
		{"two", []Point{{32, 80}, {512, 800}}, Calibration{32, 1.5}},
		{"two, one of them nonsense", []Point{{32, 0}, {512, 543}}, Calibration{31, 1}},
		{"two of one length", []Point{{100, 129}, {100, 131}}, Calibration{30, 1}},
		{"two that do not rise", []Point{{32, 60}, {512, 60}}, Calibration{0, 60.0 / 272}},
		// Least squares by hand: means 200 and 230; slope 22000/20000.
		{"three", []Point{{100, 120}, {200, 230}, {300, 340}}, Calibration{10, 1.1}},
		{"three, not on a line", []Point{{100, 120}, {200, 233}, {300, 340}}, Calibration{11, 1.1}},
	} {
		got := Fit(c.points)
		if math.Abs(got.Overhead-c.want.Overhead) > 1e-9 || math.Abs(got.PerWord-c.want.PerWord) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Servers that count in their own ways: after calibration with two or three
// probes, and for those that give most words one token with one, what they
// count is within 3 % of what was intended, for every request from 256 tokens on.
func TestCalibratedWithin3Percent(t *testing.T) {
	byHash := func(share uint32) func(string) float64 { // splits a share of words, in ‰
		return func(prompt string) float64 {
			n := 0.0
			for _, word := range strings.Fields(prompt) {
				h := fnv.New32a()
				h.Write([]byte(word))
				n++
				if h.Sum32()%1000 < share {
					n++
				}
			}
			return n
		}
	}
	letters := func(each float64) func(string) float64 {
		return func(prompt string) float64 { return math.Ceil(float64(len(prompt)) / each) }
	}
	for _, server := range []struct {
		name     string
		overhead float64
		count    func(string) float64
		one      bool
	}{
		{"one token a word", 0, byHash(0), true},
		{"one token a word, template of 31", 31, byHash(0), true},
		{"1 % of words are two tokens", 38, byHash(10), true},
		{"all words are two tokens", 20, byHash(1000), false},
		{"two letters a token", 12, letters(2), false},
		{"four letters a token", 40, letters(4), false},
	} {
		reported := func(q Request) int { return int(server.overhead + server.count(q.Prompt)) }
		for _, input := range []int{256, 300, 512, 4096} {
			for probes := 1; probes <= 3; probes++ {
				if probes == 1 && !server.one {
					continue
				}
				w := mustOpen(t, Options{Input: Tokens(input)}, 11)
				var points []Point
				for _, words := range []int{input, 32, 0}[:probes] {
					if words == 0 { // once more, near the length by what is known now
						w.Calibrate(Fit(points))
						words = w.Words()
					}
					points = append(points, Point{words, reported(w.Probe(words))})
				}
				w.Calibrate(Fit(points))
				for i := range int64(100_000 / input) {
					q := mustAt(t, w, i, 0, 0)
					if off := float64(reported(q))/float64(input) - 1; math.Abs(off) > 0.03 {
						t.Errorf("%s, %d tokens, %d probes: request %d has %d (%+.1f %%)", server.name, input, probes, i, reported(q), 100*off)
						break
					}
				}
			}
		}
	}
}

func TestProbe(t *testing.T) {
	w := mustOpen(t, Options{}, 4)
	for _, words := range []int{-3, 0, 1, 2, 32, 512} {
		q := w.Probe(words)
		want := max(1, words)
		if got := len(strings.Fields(q.Prompt)); got != want || q.PromptTokens != int32(want) || q.OutputTokens != 1 || q.ID != int64(-1-want) {
			t.Errorf("Probe(%d) has %d words, %d tokens in, %d out, ID %d", words, got, q.PromptTokens, q.OutputTokens, q.ID)
		}
	}
	w.Calibrate(Calibration{Overhead: 10, PerWord: 1.5})
	if q := w.Probe(100); q.PromptTokens != 160 || w.Words() != 335 {
		t.Errorf("calibrated: %d tokens for 100 words, want 160; %d words for 512 tokens, want 335", q.PromptTokens, w.Words())
	}
}

func BenchmarkAt(b *testing.B) {
	w, err := Open(Options{}, 1)
	if err != nil {
		b.Fatal(err)
	}
	for i := range int64(b.N) {
		w.At(i, 0, 0)
	}
}
