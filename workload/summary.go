package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fermata/internal/stats"
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
	inputs, outputs := make([]int32, n), make([]int32, n)
	for i := range n {
		p := w.drawer.at(int64(i))
		if w.data != nil {
			own := w.data.lengths.at(w.data.row(i))
			p = pair{own.input, firstOf(own.output, p.output)}
		}
		inputs[i], outputs[i] = p.input, p.output
	}
	s.Correlation, s.Correlated = spearman(inputs, outputs)
	s.Talks = w.talks(inputs, outputs)
	s.sharedPrefix(w, inputs)
	s.Input, s.Output = spread(inputs), spread(outputs)
	if w.data == nil {
		return s, nil
	}
	s.Estimated = w.data.estimated
	if timed := min(n, w.Timed()); timed > 0 {
		due := make([]int64, timed)
		for i := range due {
			due[i] = w.Time(i)
		}
		s.Arrivals = timingOf(due)
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

// spread sorts lengths; 0 is unknown.
func spread(lengths []int32) Spread {
	slices.Sort(lengths)
	zeros, _ := slices.BinarySearch(lengths, 1)
	known := lengths[zeros:]
	s := Spread{N: int64(len(known)), Missing: int64(zeros)}
	if s.N == 0 {
		return s
	}
	at := func(thousandths int) int64 { return int64(known[stats.Rank(s.N, thousandths)-1]) }
	s.Min, s.Max = int64(known[0]), int64(known[s.N-1])
	s.P10, s.P50, s.P90, s.P99 = at(100), at(500), at(900), at(990)
	s.Mean, s.SD = moments(known)
	for from := int64(1); from <= s.Max; from *= 2 {
		lo, _ := slices.BinarySearch(known, int32(from))
		hi, _ := slices.BinarySearch(known, int32(min(2*from, math.MaxInt32)))
		if n := int64(hi - lo); n > 0 || s.Bins != nil {
			s.Bins = append(s.Bins, Bin{from, 2 * from, n})
		}
	}
	return s
}

// moments are the mean and the standard deviation over n - 1.
func moments[T int32 | int64](values []T) (mean, sd float64) {
	var sum, squares float64
	for _, v := range values {
		sum += float64(v)
	}
	mean = sum / float64(len(values))
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, math.Sqrt(squares / max(1, float64(len(values)-1)))
}

// spearman is the rank correlation of the rows whose lengths are both known:
// Pearson's of the ranks, ties sharing their mean rank.
func spearman(a, b []int32) (rho float64, ok bool) {
	var x, y []int32
	for i := range a {
		if a[i] > 0 && b[i] > 0 {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	if len(x) < 2 {
		return 0, false
	}
	rx, ry := ranks(x), ranks(y)
	mean := float64(len(x)+1) / 2
	var xy, xx, yy float64
	for i := range rx {
		dx, dy := float64(rx[i])/2-mean, float64(ry[i])/2-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if !(xx > 0 && yy > 0) {
		return 0, false
	}
	return xy / math.Sqrt(xx*yy), true
}

// ranks are twice the mean ranks of values, from 1.
func ranks(values []int32) []int64 {
	sorted := slices.Sorted(slices.Values(values))
	twice := make([]int64, len(values))
	for i, v := range values {
		from, _ := slices.BinarySearch(sorted, v)
		to, _ := slices.BinarySearch(sorted, v+1)
		twice[i] = int64(from + to + 1)
	}
	return twice
}

func timingOf(due []int64) *Timing {
	last := len(due) - 1
	t := &Timing{FirstNs: due[0], LastNs: due[last]}
	gaps := make([]int64, last)
	for i := range gaps {
		if gaps[i] = due[i+1] - due[i]; gaps[i] == 0 {
			t.Together++
		}
	}
	span := due[last] - due[0]
	if span == 0 {
		return t
	}
	t.PerSecond = float64(last) / (float64(span) / 1e9)
	mean, sd := moments(gaps)
	t.GapCV = sd / mean
	window := int64(math.Round(100 * mean))
	if window == 0 || span/window < 10 {
		return t
	}
	counts := make([]int64, span/window)
	for _, at := range due {
		if k := (at - due[0]) / window; k < int64(len(counts)) {
			counts[k]++
		}
	}
	mean, sd = moments(counts)
	t.WindowNs, t.Dispersion = window, sd*sd/mean
	return t
}

// prefixes counts how much of the prompts a prefix cache without limit would know.
func (d *dataset) prefixes(n int) (Prefixes, error) {
	var p Prefixes
	var seenTokens, tokens int64
	seen := map[int64]bool{}
	for i := range n {
		it, err := d.item(d.row(i))
		if err != nil {
			return p, err
		}
		p.Blocks += int64(len(it.hashes))
		tokens += int64(it.promptTokens)
		known := 0
		for known < len(it.hashes) && seen[it.hashes[known]] {
			known++
		}
		p.Seen += int64(known)
		seenTokens += min(int64(known)*blockTokens, int64(it.promptTokens))
		for _, hash := range it.hashes {
			seen[hash] = true
		}
	}
	if tokens > 0 {
		p.TokenShare = float64(seenTokens) / float64(tokens)
	}
	return p, nil
}

// Text is the summary as lines, with a histogram of prompts and of answers.
func (s Summary) Text() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("lengths      %s", s.Source)
	if s.Format != "" {
		say("data set     %d rows that can be asked, %d with nothing to ask, %d that cannot be read", s.Rows, s.Skipped.Empty, s.Skipped.Bad)
	}
	if s.Skipped.FirstBad != "" {
		say("first bad    %s", s.Skipped.FirstBad)
	}
	if s.Cut != nil {
		say("filters      %s", strings.TrimPrefix(s.Cut.String(), "filters "))
	}
	if s.Estimated > 0 {
		say("estimated    lengths of %d rows, from their text at four letters a token", s.Estimated)
	}
	say("requests     %d described", s.Requests)
	if s.Correlated {
		say("correlation  %.3f between the ranks of prompt and answer lengths", s.Correlation)
	}
	if a := s.Arrivals; a != nil {
		say("arrivals     %.4g a second over %.4g s, gaps with coefficient of variation %.3g, %d at the same time as the one before", a.PerSecond, float64(a.LastNs-a.FirstNs)/1e9, a.GapCV, a.Together)
		if a.WindowNs > 0 {
			say("             index of dispersion %.3g in windows of %.4g s (1 for Poisson)", a.Dispersion, float64(a.WindowNs)/1e9)
		}
	}
	if t := s.Talks; t != nil {
		say("sessions     %d conversations of %.3g turns on average, %d at most, and %d requests that stand alone", t.Conversations, float64(t.Turns)/float64(max(1, t.Conversations)), t.MostTurns, t.Alone)
		if t.Conversations > 0 {
			say("             what is sent grows from %.4g tokens with the first turn to %.4g with the last, if answers are as long as they may be", t.FirstPrompt, t.LastPrompt)
		}
	}
	if p := s.Prefix; p != nil {
		say("prefixes     %s: %d begin so, %d with a text that came before", p, s.Shared.Blocks, s.Shared.Seen)
		say("             %.1f %% of the tokens that prompts add could come from a cache", 100*s.Shared.TokenShare)
	} else if p := s.Shared; p != nil {
		say("prefixes     %d of %d blocks came before: %.1f %% of prompt tokens could come from a cache", p.Seen, p.Blocks, 100*p.TokenShare)
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
	fmt.Fprintf(b, "  min %d, p10 %d, p50 %d, p90 %d, p99 %d, max %d; mean %.1f, sd %.1f", s.Min, s.P10, s.P50, s.P90, s.P99, s.Max, s.Mean, s.SD)
	if s.Missing > 0 {
		fmt.Fprintf(b, "; %d not known", s.Missing)
	}
	b.WriteByte('\n')
	most := int64(1)
	for _, bin := range s.Bins {
		most = max(most, bin.N)
	}
	for _, bin := range s.Bins {
		bar := strings.Repeat("█", int((bin.N*barWidth+most-1)/most))
		fmt.Fprintf(b, "  %8d to %-8d %8d  %s\n", bin.From, bin.To-1, bin.N, bar)
	}
}
