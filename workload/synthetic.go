package workload

import (
	_ "embed"
	"math"
	"math/rand/v2"
	"strings"

	"fermata/internal/seed"
)

// The words of synthetic prompts: 1024 common English words of four to seven
// letters, in order of their length. Each is one token, with and without a
// space before it, in the vocabularies of GPT-2, GPT-4 (cl100k), GPT-4o
// (o200k), Llama 3 and SmolLM2, and one token in those of Llama 2 and Mistral.
//
//go:embed words.txt
var wordList string

const (
	listLen   = 1024
	leadWords = 4  // that name the request: enough for 2⁴⁰ of them
	strata    = 16 // words of nearly equal length; 64 words each
)

// synthetic makes prompts of an intended length that share no beginning.
type synthetic struct {
	seed        uint64
	prefixes    uint64 // seed of the texts that requests share
	words       []string
	order       []int // of the words that lead, drawn by seed
	calibration Calibration
}

func newSynthetic(runSeed uint64) *synthetic {
	return &synthetic{
		seed:     seed.Derive(runSeed, "workload: words"),
		prefixes: seed.Derive(runSeed, "workload: prefixes"),
		words:    strings.Fields(wordList),
		order:    seed.Rand(runSeed, "workload: first words").Perm(listLen),
	}
}

// prompt is one of so many tokens for a request.
func (s *synthetic) prompt(index int64, tokens int32) string {
	return s.text(index, s.calibration.words(tokens))
}

// later is the text of so many tokens for a turn that is not a conversation's
// first: what a server adds to every prompt stands there already.
func (s *synthetic) later(index int64, tokens int32) string {
	return s.text(index, Calibration{PerWord: s.calibration.PerWord}.words(tokens))
}

// blockTokens is the length of the blocks that traces have hashes of.
const blockTokens = 512

// blocks is a prompt of so many tokens made of blocks: two prompts share a
// beginning as long as their hashes are equal from the first on. What is longer
// than its blocks goes on with words of the request's own. In each further round
// of a trace all blocks are new, since a cache would know the old ones.
func (s *synthetic) blocks(index, round int64, hashes []int64, tokens int32) string {
	block := *s
	block.seed = mix(s.seed + uint64(round))
	left := s.calibration.words(tokens)
	size := max(1, int(math.Round(blockTokens/s.calibration.perWord())))
	var b strings.Builder
	b.Grow(left * 7)
	for _, hash := range hashes {
		if left == 0 {
			break
		}
		n := min(left, size)
		b.WriteString(block.text(hash+round, n))
		b.WriteByte(' ')
		left -= n
	}
	if left > 0 {
		b.WriteString(s.text(index, left))
	}
	return strings.TrimSuffix(b.String(), " ")
}

// text is the prompt of so many words for a request.
//
// Its first words spell the index in base 1024, lowest digit first, each digit
// shifted by a hash of the digits before it. So two requests differ in their
// first word unless their indices are equal modulo 1024, and in their first two
// unless they are equal modulo 1024²: a prefix cache, which shares whole blocks
// of tokens, has nothing to share. (Another run with the same seed asks the same
// prompts: a server that still has them cached needs another seed.)
//
// The other words are drawn so that each run of sixteen has one of each length
// class: prompts have nearly the same number of letters a word. This keeps
// the ratio of tokens to words steady with vocabularies that split these words,
// and with servers that count characters.
func (s *synthetic) text(index int64, n int) string {
	var b strings.Builder
	b.Grow(n * 7)
	rest, shift := uint64(index), uint64(0)
	for range min(n, leadWords) {
		digit := rest % listLen
		b.WriteString(s.words[s.order[(digit+shift)%listLen]])
		b.WriteByte(' ')
		rest, shift = rest/listLen, mix(s.seed^shift^digit)
	}
	r := rand.New(rand.NewPCG(s.seed, mix(uint64(index))))
	var classes [strata]int
	for i := range n - leadWords {
		k := i % strata
		if k == 0 {
			for j := range classes {
				classes[j] = j
			}
			r.Shuffle(strata, func(a, b int) { classes[a], classes[b] = classes[b], classes[a] })
		}
		b.WriteString(s.words[classes[k]*(listLen/strata)+r.IntN(listLen/strata)])
		b.WriteByte(' ')
	}
	return strings.TrimSuffix(b.String(), " ")
}

// mix scrambles the bits of x one to one (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A Calibration says how a server counts the tokens of synthetic prompts:
// Overhead + PerWord × words. The zero value is one token a word.
type Calibration struct {
	Overhead float64 // tokens that do not depend on the prompt, such as a chat template's
	PerWord  float64 // tokens a word; 0 means 1
}

// words is how many words make a prompt of so many tokens: at least one.
func (c Calibration) words(tokens int32) int {
	return int(max(1, math.Round((float64(tokens)-c.Overhead)/c.perWord())))
}

// tokens is how many tokens so many words make.
func (c Calibration) tokens(words int) int32 {
	return int32(max(1, math.Round(c.Overhead+c.perWord()*float64(words))))
}

func (c Calibration) perWord() float64 {
	if c.PerWord > 0 {
		return c.PerWord
	}
	return 1
}

// A Point is one measurement for a Calibration: a Probe of so many words had so
// many prompt tokens, as the server reported.
type Point struct{ Words, Tokens int }

// overheadMax is the most tokens that a chat template is believed to add, where
// one measurement cannot tell template from words.
const overheadMax = 100

// Fit is the calibration that agrees with points best: the line of least
// squares. Probes of two lengths, one near the intended length and one much
// shorter, give both of its numbers. One length gives one: then a word is taken
// as one token and the rest as overhead, or, where that rest is negative or
// more than a chat template has (100 tokens), everything as the words'. Either
// is right near the probe's own length. Points that are not positive are left
// out; without any, the result is the zero value.
func Fit(points []Point) Calibration {
	var n, meanW, meanT float64
	for _, p := range points {
		if p.Words > 0 && p.Tokens > 0 {
			n++
			meanW += (float64(p.Words) - meanW) / n
			meanT += (float64(p.Tokens) - meanT) / n
		}
	}
	if n == 0 {
		return Calibration{}
	}
	var ww, wt float64
	for _, p := range points {
		if p.Words > 0 && p.Tokens > 0 {
			ww += (float64(p.Words) - meanW) * (float64(p.Words) - meanW)
			wt += (float64(p.Words) - meanW) * (float64(p.Tokens) - meanT)
		}
	}
	// A line that does not rise says nothing about words.
	if ww > 0 && wt > 0 {
		slope := wt / ww
		return Calibration{Overhead: meanT - slope*meanW, PerWord: slope}
	}
	if rest := meanT - meanW; rest >= 0 && rest <= overheadMax {
		return Calibration{Overhead: rest, PerWord: 1}
	}
	return Calibration{PerWord: meanT / meanW}
}

// Calibrate makes the lengths of the synthetic prompts that At gives from now
// on agree with how the server counts. It is for before the load: not while At
// is being called. The texts of a data set stay as they are.
func (w *Workload) Calibrate(c Calibration) { w.synthetic.calibration = c }

// Words is the number of words that a synthetic prompt of the typical length has
// by the present calibration: a good length for a Probe. 0 for data sets with
// prompts of their own.
func (w *Workload) Words() int {
	if !w.Synthetic() {
		return 0
	}
	return w.synthetic.calibration.words(w.typical.input)
}

// Probe is a request to calibrate with, or to see whether the server answers: a
// synthetic prompt of so many words (at least one), unlike those of At, and one
// token of answer. Its ID is -1 - words. Data sets have probes too.
func (w *Workload) Probe(words int) Request {
	words = max(1, words)
	id := -1 - int64(words)
	return Request{
		ID:           id,
		Prompt:       w.synthetic.text(id, words),
		PromptTokens: w.synthetic.calibration.tokens(words),
		OutputTokens: 1,
	}
}
