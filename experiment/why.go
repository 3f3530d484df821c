package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/recording"
	"fermata/sim"
)

// A Silence is the longest gap between two tokens of one request of a simulated
// run. Its parts add up to it.
type Silence struct {
	Request      int64   `json:"request"`
	Outcome      string  `json:"outcome"`
	Token        int32   `json:"token"` // that ended it, from 1; 0 where there was no gap
	GapNs        int64   `json:"gap_ns"`
	OwnNs        int64   `json:"own_ns"`
	PrefillNs    int64   `json:"prefill_ns"`
	PreemptedNs  int64   `json:"preempted_ns"`
	RecomputeNs  int64   `json:"recompute_ns"`
	TransferNs   int64   `json:"transfer_ns"`
	MixedNs      int64   `json:"mixed_ns"`
	WaitingNs    int64   `json:"waiting_ns"`
	Iterations   int32   `json:"prefill_iterations"` // in PrefillNs
	Culprits     []int64 `json:"culprits"`           // requests whose prompts they were
	PromptTokens int64   `json:"culprit_tokens"`     // of those prompts, computed meanwhile
	Story        string  `json:"story"`              // the same as a sentence
}

// Why tells the story of the longest silence of one request of a simulated run,
// from the truth beside its recording.
func Why(dir string, index int64) (*Silence, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nothingAt(dir)
	}
	if err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	gaps := filepath.Join(dir, sim.GapsFile)
	if _, err := os.Stat(gaps); errors.Is(err, fs.ErrNotExist) {
		return nil, &Misuse{Failure{fmt.Sprintf("%s does not know why: it has no %s", dir, sim.GapsFile), "Only a simulator knows what happened inside; `fermata sim` writes it down."}}
	}
	t, err := requestOf(dir, index)
	if err != nil {
		return nil, err
	}
	var longest sim.GapRow
	for row, err := range recording.ReadTable[sim.GapRow](gaps) {
		if err != nil {
			return nil, err
		}
		if row.Index == index && row.Gap > longest.Gap {
			longest = *row
			longest.Culprits = slices.Clone(row.Culprits)
		}
	}
	w := why{trace: t, gap: longest}
	if err := w.lookUp(filepath.Join(dir, sim.IterationsFile)); err != nil {
		return nil, err
	}
	g := &w.gap
	culprits := slices.Clone(g.Culprits)
	slices.Sort(culprits)
	return &Silence{
		Request: index, Outcome: string(t.Outcome), Token: g.Token, GapNs: g.Gap, OwnNs: g.Own, PrefillNs: g.Prefill, PreemptedNs: g.Preempted,
		RecomputeNs: g.Recompute, TransferNs: g.Transfer, MixedNs: g.Mixed, WaitingNs: g.Waiting, Iterations: g.Prefills,
		Culprits: append([]int64{}, slices.Compact(culprits)...), PromptTokens: w.tokens, Story: w.story(),
	}, nil
}

// requestOf is the last try of a request of a recording.
func requestOf(dir string, index int64) (*recording.Trace, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	var found *recording.Trace
	for t := range rec.Traces(recording.Times) {
		if t.Index == index {
			c := t.Clone()
			found = &c
		}
	}
	if err := rec.Err(); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, misusef("%s has no request %d: its %d requests count from 0", dir, index, rec.Rows())
	}
	return found, nil
}

// A why is what is known of one silence.
type why struct {
	trace  *recording.Trace
	gap    sim.GapRow
	tokens int64 // of prompts, that the iterations in it computed which only prefilled
}

// lookUp counts what was computed meanwhile.
func (w *why) lookUp(path string) error {
	until, token := w.trace.Due, int32(0)
	for i, d := range w.trace.DeltaNs {
		if token > w.gap.Token {
			break
		}
		until += d
		token += w.trace.Tokens[i]
	}
	from := until - w.gap.Gap
	for row, err := range recording.ReadTable[sim.IterationRow](path) {
		if err != nil {
			return err
		}
		if row.Decodes > 0 || row.Start < from || row.End > until {
			continue
		}
		for _, c := range row.Chunks {
			if slices.Contains(w.gap.Culprits, c.Index) {
				w.tokens += int64(c.Tokens)
			}
		}
	}
	return nil
}

func (w *why) story() string {
	t := w.trace
	wait := ""
	if q := t.ServerQueue; q.OK {
		wait = fmt.Sprintf(" Before its first token it had waited %s in the queue", duration(q.V))
		if p := t.ServerPrefill; p.OK {
			wait += fmt.Sprintf(" and %s for its prompt", duration(p.V))
		}
		wait += "."
	}
	if w.gap.Gap == 0 {
		return fmt.Sprintf("Request %d ended as %s without a gap between two tokens.%s", t.Index, t.Outcome, wait)
	}
	g := &w.gap
	var parts []string
	part := func(ns int64, format string, args ...any) {
		if ns != 0 {
			parts = append(parts, duration(ns)+" "+fmt.Sprintf(format, args...))
		}
	}
	part(g.Prefill, "passed in %s that only prefilled, %s of other requests (%s prompt tokens: %s), while it would have decoded",
		counted(int64(g.Prefills), "iteration"), counted(int64(distinct(g.Culprits)), "prompt"), term.Count(w.tokens), listed(g.Culprits))
	part(g.Preempted, "it was out of memory, evicted")
	part(g.Recompute, "went into computing again what the eviction had lost")
	part(g.Transfer, "its keys and values were on their way to the decode side")
	part(g.Waiting, "it waited for a place in an iteration")
	part(g.Own, "was its own decode step")
	part(g.Mixed, "were added to that step by pieces of prompts in the same batch")
	return fmt.Sprintf("Request %d was silent for %s before its token %d: %s.%s", t.Index, duration(g.Gap), g.Token, joinedWords(parts), wait)
}

func duration(ns int64) string { return term.Duration(float64(ns)) }

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return term.Count(n) + " " + what + "s"
}

// listed names a few of the requests.
func listed(all []int64) string {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	var names []string
	for i, n := range sorted {
		if i == 12 && len(sorted) > 13 {
			names = append(names, fmt.Sprintf("%d more", len(sorted)-i))
			break
		}
		names = append(names, fmt.Sprint(n))
	}
	if len(names) == 1 {
		return "request " + names[0]
	}
	return "requests " + joinedWords(names)
}

// joinedWords is "a, b and c".
func joinedWords(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
