package e2e

import (
	"fmt"
	"math"
	"testing"
)

// testConversation has conversations of three turns, one after the other. That a
// later turn carries the answer before it shows in the engine's prompt cache: it
// knows what it has read and written, to the token. Where the end of a prompt and
// the beginning of its answer are read again as one token, the cache ends before it:
// that is up to the words, so others are tried, three times in all.
func (e *engine) testConversation(t *testing.T) {
	const turns, input, output = 3, 64, 24
	carried := func(t *testing.T, api string, seed int) bool {
		all := true
		m := e.measure(t, e.url, "--api", api, "--seed", fmt.Sprint(seed), "--turns", "3", "--think", "20ms", "--concurrency", "1", "--warmup", "0", "--drain", "quiet",
			"--requests", "6", "--input", "64", "--output", "24", "--set", "target.body={temperature: 0}")
		if len(m.traces) != 6 {
			t.Fatalf("%s: %d requests, wanted two conversations of %d turns", api, len(m.traces), turns)
		}
		for i := range m.traces {
			tr := &m.traces[i]
			checkAnswer(t, tr, output)
			if tr.Index != int64(i) || int(tr.Turn) != i%turns || tr.Turns.V != turns {
				t.Errorf("%s: request %d is turn %d of %d", api, tr.Index, tr.Turn, tr.Turns.V)
			}
			wanted := tr.Turn*(input+output) + input
			if n := tr.Prompt.Reported.V; tr.Prompt.Intended.V != wanted || math.Abs(float64(n-wanted)) > 0.1*float64(wanted)+8 {
				t.Errorf("%s: turn %d has %d prompt tokens and %d intended, wanted %d", api, tr.Turn, n, tr.Prompt.Intended.V, wanted)
			}
			t.Logf("%s: turn %d: %d prompt tokens, %d of them cached", api, tr.Turn, tr.Prompt.Reported.V, tr.Cached.V)
			if tr.Turn == 0 {
				continue
			}
			before := &m.traces[i-1]
			// Where an answer stops, its last token was never read again.
			if least := before.Prompt.Reported.V + output - 1; tr.Cached.V < least {
				t.Logf("%s, seed %d: turn %d found %d tokens in the engine's cache, wanted the %d of the turn before and its answer", api, seed, tr.Turn, tr.Cached.V, least)
				all = false
			}
			if gap := tr.Due - before.End.V; gap != 20_000_000 {
				t.Errorf("%s: turn %d was due %d ns after the end of the one before, wanted 20 ms", api, tr.Turn, gap)
			}
		}
		if s := m.result.Sessions; s == nil || s.Started != 2 || s.EndedEarly != 0 || s.TurnsUnsent != 0 {
			t.Errorf("%s: sessions %+v, wanted 2 that went to their end", api, s)
		}
		return all
	}
	for _, api := range apis {
		if !carried(t, api, 1) && !carried(t, api, 2) && !carried(t, api, 3) {
			t.Errorf("%s: no conversation's later turns all carry the answers before them", api)
		}
	}
}
