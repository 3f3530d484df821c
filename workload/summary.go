package workload

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fermata/internal/stats"
	"fermata/internal/term"
)

// A Summary describes a workload without asking anything.
type Summary struct {
	Source    string // where the lengths come from
	Format    string // of the data set; empty without one
	Rows      int64  // of the data set
	Requests  int64  // that the figures are of
	Estimated int64  // rows whose lengths are estimated from text, four letters a token
	Skipped   Skips
	Cut       *Cut // what the filters did; nil without filters

	Input, Output Spread
	Correlation   float64 // Spearman's, of prompt and answer; only where Correlated
	Correlated    bool    // both lengths are known, and neither is always the same
	Arrivals      *Timing // nil where rows have no times
	Shared        *Prefixes
	Prefix        *Prefix // that made-up prompts begin with; nil for none. Then Shared counts texts in place of blocks
	Talks         *Talks  // nil where nobody converses
}

// Talks are conversations among the requests that are described, as they grow where
// every answer is as long as it may be and is kept whole.
type Talks struct {
	Conversations, Alone int64 // of several turns; requests of their own
	Turns                int64 // of the conversations
	MostTurns            int64
	FirstPrompt          float64 // mean tokens of what is sent with the first turn of a conversation …
	LastPrompt           float64 // … and with its last: all that was said before, and its own prompt
}

// A Spread is how lengths in tokens are distributed. Quantiles are order
// statistics: the ⌈n·p⌉-th smallest.
type Spread struct {
	N, Missing         int64 // known, unknown
	Min, Max           int64
	P10, P50, P90, P99 int64
	Mean, SD           float64 // sd over n - 1; 0 for one value
	Bins               []Bin   // by powers of two, from the smallest to the largest with anything in it
}

// A Bin counts lengths in [From, To).
type Bin struct{ From, To, N int64 }

// A Timing is when the rows of a trace are due.
type Timing struct {
	FirstNs, LastNs int64
	PerSecond       float64 // gaps over their sum; 0 where all rows come at once
	GapCV           float64 // coefficient of variation of the gaps: 1 for Poisson arrivals
	Together        int64   // rows due at the same ns as the one before
	WindowNs        int64   // of Dispersion: 100 mean gaps; 0 where the trace has not ten of them
	Dispersion      float64 // variance over mean of the arrivals in a window: 1 for Poisson arrivals
}

// Prefixes are the blocks that the prompts of a trace share.
type Prefixes struct {
	Blocks, Seen int64   // blocks in all; those at the beginning of a prompt whose like came before
	TokenShare   float64 // of prompt tokens in seen blocks: the best hit rate of a prefix cache without limit
}

// describeMost bounds how many requests Describe looks at.
const describeMost = 10_000_000

// Describe summarises the first n requests of w; n of 0 or less, or beyond the
// rows of a data set, means all of its rows, and 10,000 without one. The error is
// of reading the data set again.
func Describe(w *Workload, n int) (Summary, error) {
	s := Summary{Source: w.Source(), Format: w.Format(), Rows: w.Rows(), Skipped: w.Skipped()}
	if c, ok := w.Cut(); ok {
		s.Cut = &c
	}
	if n > describeMost {
		return s, fmt.Errorf("describing %d requests: at most %d can be looked at", n, describeMost)
	}
	rows := cmp.Or(int(s.Rows), 10_000)
	if n <= 0 || w.data != nil && n > rows {
		n = rows
	}
	s.Requests = int64(n)
	length := w.lengths()
	s.Correlation, s.Correlated = spearman(n, length)
	s.Talks = w.talks(n, length)
	s.sharedPrefix(w, n, length)
	inputs, outputs := lengthCounts{}, lengthCounts{}
	for i := range n {
		p := length(i)
		inputs[p.input]++
		outputs[p.output]++
	}
	s.Input, s.Output = inputs.spread(), outputs.spread()
	if w.data == nil {
		return s, nil
	}
	s.Estimated = w.data.estimated
	if timed := min(n, w.Timed()); timed > 0 {
		s.Arrivals = timingOf(timed, w.Times())
	}
	if w.data.hashed {
		shared, err := w.data.prefixes(n)
		if err != nil {
			return s, err
		}
		s.Shared = &shared
	}
	return s, nil
}

// lengths gives those of request i, 0 where they are not known; it is for one
// goroutine.
func (w *Workload) lengths() func(i int) pair {
	if w.data == nil {
		return func(i int) pair { return w.drawer.at(int64(i)) }
	}
	own := w.data.lengths.reader()
	return func(i int) pair {
		p := own(w.data.row(i))
		if p.output == 0 {
			p.output = w.drawer.at(int64(i)).output
		}
		return p
	}
}

// lengthCounts are how many requests have each length. Lengths repeat, so that
// they stay few however many requests there are.
type lengthCounts map[int32]int64

// spread is how the lengths are distributed; 0 is unknown.
func (c lengthCounts) spread() Spread {
	s := Spread{Missing: c[0]}
	known := slices.Sorted(maps.Keys(c))
	if s.Missing > 0 {
		known = known[1:]
	}
	if len(known) == 0 {
		return s
	}
	sum := int64(0)
	for _, v := range known {
		s.N += c[v]
		sum += c[v] * int64(v)
	}
	at := func(thousandths int) int64 {
		left := stats.Rank(s.N, thousandths)
		for _, v := range known {
			if left -= c[v]; left <= 0 {
				return int64(v)
			}
		}
		return s.Max
	}
	s.Min, s.Max = int64(known[0]), int64(known[len(known)-1])
	s.P10, s.P50, s.P90, s.P99 = at(100), at(500), at(900), at(990)
	s.Mean = float64(sum) / float64(s.N)
	squares := 0.0
	for _, v := range known {
		squares += float64(c[v]) * (float64(v) - s.Mean) * (float64(v) - s.Mean)
	}
	s.SD = math.Sqrt(squares / max(1, float64(s.N-1)))
	for from := int64(1); from <= s.Max; from *= 2 {
		n := int64(0)
		for len(known) > 0 && int64(known[0]) < 2*from {
			n, known = n+c[known[0]], known[1:]
		}
		if n > 0 || s.Bins != nil {
			s.Bins = append(s.Bins, Bin{from, 2 * from, n})
		}
	}
	return s
}

// ranks are twice the mean rank of each length, from 1.
func (c lengthCounts) ranks() map[int32]int64 {
	twice := make(map[int32]int64, len(c))
	below := int64(0)
	for _, v := range slices.Sorted(maps.Keys(c)) {
		twice[v] = 2*below + c[v] + 1
		below += c[v]
	}
	return twice
}

// spearman is the rank correlation of the first n requests, of those whose lengths
// are both known: Pearson's of the ranks, ties sharing their mean rank.
func spearman(n int, length func(i int) pair) (rho float64, ok bool) {
	inputs, outputs, known := lengthCounts{}, lengthCounts{}, 0
	for i := range n {
		if p := length(i); p.input > 0 && p.output > 0 {
			inputs[p.input]++
			outputs[p.output]++
			known++
		}
	}
	if known < 2 {
		return 0, false
	}
	rx, ry := inputs.ranks(), outputs.ranks()
	mean := float64(known+1) / 2
	var xy, xx, yy float64
	for i := range n {
		p := length(i)
		if p.input <= 0 || p.output <= 0 {
			continue
		}
		dx, dy := float64(rx[p.input])/2-mean, float64(ry[p.output])/2-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if !(xx > 0 && yy > 0) {
		return 0, false
	}
	return xy / math.Sqrt(xx*yy), true
}

// timingOf describes n due times in ascending order.
func timingOf(n int, due func(i int) int64) *Timing {
	first, last := due(0), due(n-1)
	t := &Timing{FirstNs: first, LastNs: last}
	gaps := func(each func(ns int64)) {
		before := first
		for i := 1; i < n; i++ {
			at := due(i)
			each(at - before)
			before = at
		}
	}
	gaps(func(ns int64) {
		if ns == 0 {
			t.Together++
		}
	})
	span := last - first
	if span == 0 {
		return t
	}
	t.PerSecond = float64(n-1) / (float64(span) / 1e9)
	mean, squares := float64(span)/float64(n-1), 0.0
	gaps(func(ns int64) { squares += (float64(ns) - mean) * (float64(ns) - mean) })
	t.GapCV = math.Sqrt(squares/max(1, float64(n-2))) / mean
	window := int64(math.Round(100 * mean))
	if window == 0 || span/window < 10 {
		return t
	}
	counts := make([]int64, span/window)
	for i := range n {
		if k := (due(i) - first) / window; k < int64(len(counts)) {
			counts[k]++
		}
	}
	mean, sd := moments(counts)
	t.WindowNs, t.Dispersion = window, sd*sd/mean
	return t
}

// moments are the mean and the standard deviation over n - 1.
func moments(counts []int64) (mean, sd float64) {
	var sum, squares float64
	for _, v := range counts {
		sum += float64(v)
	}
	mean = sum / float64(len(counts))
	for _, v := range counts {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, math.Sqrt(squares / max(1, float64(len(counts)-1)))
}

// blockSet is a set of the blocks of prompts. Traces number them from 0 on, so that
// neighbours stand together.
type blockSet map[int64]uint64

func (s blockSet) has(block int64) bool { return s[block>>6]>>(block&63)&1 == 1 }
func (s blockSet) add(block int64)      { s[block>>6] |= 1 << (block & 63) }

// prefixes counts how much of the prompts a prefix cache without limit would know.
func (d *dataset) prefixes(n int) (Prefixes, error) {
	var p Prefixes
	var seenTokens, tokens int64
	seen := blockSet{}
	for i := range n {
		it, err := d.item(d.row(i))
		if err != nil {
			return p, err
		}
		p.Blocks += int64(len(it.hashes))
		tokens += int64(it.promptTokens)
		known := 0
		for known < len(it.hashes) && seen.has(it.hashes[known]) {
			known++
		}
		p.Seen += int64(known)
		seenTokens += min(int64(known)*blockTokens, int64(it.promptTokens))
		for _, hash := range it.hashes {
			seen.add(hash)
		}
	}
	if tokens > 0 {
		p.TokenShare = float64(seenTokens) / float64(tokens)
	}
	return p, nil
}

// keyWidth is where the text of a line of a summary begins.
const keyWidth = 13

// Text is the summary as lines, with a histogram of prompts and of answers; lines
// that are wider than width are folded, with 0 none.
func (s Summary) Text(width int) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if width == 0 || term.Cells(line) <= width {
			b.WriteString(line + "\n")
			return
		}
		key := line[:keyWidth]
		for _, part := range term.Wrap(line[keyWidth:], max(width, 60)-keyWidth) {
			b.WriteString(key + part + "\n")
			key = strings.Repeat(" ", keyWidth)
		}
	}
	say("lengths      %s", s.Source)
	if s.Format != "" {
		say("data set     %s rows that can be asked, %s with nothing to ask, %s that cannot be read", term.Count(s.Rows), term.Count(s.Skipped.Empty), term.Count(s.Skipped.Bad))
	}
	if s.Skipped.FirstBad != "" {
		say("first bad    %s", s.Skipped.FirstBad)
	}
	if s.Cut != nil {
		say("filters      %s", strings.TrimPrefix(s.Cut.String(), "filters "))
	}
	if s.Estimated > 0 {
		say("estimated    lengths of %s rows, from their text at four letters a token", term.Count(s.Estimated))
	}
	say("requests     %s described", term.Count(s.Requests))
	if s.Correlated {
		say("correlation  %.3f between the ranks of prompt and answer lengths", s.Correlation)
	}
	if a := s.Arrivals; a != nil {
		say("arrivals     %.4g a second over %.4g s, gaps with coefficient of variation %.3g, %s at the same time as the one before", a.PerSecond, float64(a.LastNs-a.FirstNs)/1e9, a.GapCV, term.Count(a.Together))
		if a.WindowNs > 0 {
			say("             index of dispersion %.3g in windows of %.4g s (1 for Poisson)", a.Dispersion, float64(a.WindowNs)/1e9)
		}
	}
	if t := s.Talks; t != nil {
		say("sessions     %s conversations of %.3g turns on average, %s at most, and %s requests that stand alone", term.Count(t.Conversations), float64(t.Turns)/float64(max(1, t.Conversations)), term.Count(t.MostTurns), term.Count(t.Alone))
		if t.Conversations > 0 {
			say("             what is sent grows from %.4g tokens with the first turn to %.4g with the last, if answers are as long as they may be", t.FirstPrompt, t.LastPrompt)
		}
	}
	if p := s.Prefix; p != nil {
		say("prefixes     %s: %s begin so, %s with a text that came before", p, term.Count(s.Shared.Blocks), term.Count(s.Shared.Seen))
		say("             %.1f %% of the tokens that prompts add could come from a cache", 100*s.Shared.TokenShare)
	} else if p := s.Shared; p != nil {
		say("prefixes     %s of %s blocks came before: %.1f %% of prompt tokens could come from a cache", term.Count(p.Seen), term.Count(p.Blocks), 100*p.TokenShare)
	}
	s.Input.text(&b, "prompt tokens")
	s.Output.text(&b, "answer tokens")
	return b.String()
}

// barWidth is the length of a histogram's longest bar.
const barWidth = 40

func (s Spread) text(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\n%s\n", name)
	if s.N == 0 {
		b.WriteString("  not known\n")
		return
	}
	of := term.Count
	fmt.Fprintf(b, "  min %s, p10 %s, p50 %s, p90 %s, p99 %s, max %s; mean %.1f, sd %.1f", of(s.Min), of(s.P10), of(s.P50), of(s.P90), of(s.P99), of(s.Max), s.Mean, s.SD)
	if s.Missing > 0 {
		fmt.Fprintf(b, "; %s not known", of(s.Missing))
	}
	b.WriteByte('\n')
	most := int64(1)
	for _, bin := range s.Bins {
		most = max(most, bin.N)
	}
	for _, bin := range s.Bins {
		bar := strings.Repeat("█", int((bin.N*barWidth+most-1)/most))
		fmt.Fprintf(b, "  %8s to %-8s %8s  %s\n", of(bin.From), of(bin.To-1), of(bin.N), bar)
	}
}
