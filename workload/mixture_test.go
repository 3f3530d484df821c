package workload

import (
	"math"
	"strings"
	"testing"
)

// Where an arrival stands is what adding up all before it gives, and place is the
// way back; the share of requests in conversations is the one asked for.
func TestMixture(t *testing.T) {
	for _, c := range []struct {
		turns int
		share float64
		p     float64 // of arrivals: worked out by hand
	}{
		{3, 0.3, 0.125}, // 0.375 of 0.375 + 0.875
		{2, 0.5, 1.0 / 3},
		{10, 0.01, 0.01 / 9.91},
		{5, 0.99, 0.99 / 1.04},
	} {
		m := newMixture(c.turns, c.share, 7)
		if math.Abs(m.p-c.p) > 1e-12 {
			t.Errorf("%+v: p is %v", c, m.p)
		}
		index, inTalks, begun := int64(0), int64(0), 0
		const arrivals = 20_000
		for i := range int64(arrivals) {
			first, turns := m.arrival(i)
			if first != index {
				t.Fatalf("%+v: arrival %d at %d, want %d", c, i, first, index)
			}
			for turn := range turns {
				if a, k, n := m.place(first + turn); a != i || k != turn || n != turns {
					t.Fatalf("%+v: request %d is turn %d of %d of %d", c, first+turn, k, n, a)
				}
			}
			if turns > 1 {
				inTalks, begun = inTalks+turns, begun+1
			}
			index += turns
		}
		// To one conversation a block at either end.
		if got := float64(inTalks) / float64(index); math.Abs(got-c.share) > 2*float64(c.turns)/float64(index)*float64(inBlock) {
			t.Errorf("%+v: a share of %v", c, got)
		}
		if math.Abs(float64(begun)-arrivals*c.p) > inBlock {
			t.Errorf("%+v: %d begun", c, begun)
		}
	}
}

func TestSessionShare(t *testing.T) {
	w := mustOpen(t, Options{Turns: 3, SessionShare: 0.3, Prefix: &Prefix{Tokens: 5, Share: 1}, Input: "7", Output: "5"}, 3)
	if mean, ok := w.MeanTurns(); !ok || math.Abs(mean-1.25) > 1e-9 {
		t.Errorf("%v turns", mean)
	}
	alone, turns := 0, 0
	for i := range int64(2000) {
		first, n, ok := w.Conversation(i)
		if !ok {
			t.Fatal(i)
		}
		for k := range n {
			q := mustAt(t, w, first+int64(k), 0, 0)
			if (q.Session == "") != (n == 1) || int(q.Turn) != k || (q.PromptTokens == 12) != (k == 0) {
				t.Fatalf("arrival %d of %d turns: %q, turn %d, %d tokens", i, n, q.Session, q.Turn, q.PromptTokens)
			}
		}
		if n == 1 {
			alone++
		} else {
			turns += n
		}
	}
	if math.Abs(float64(turns)/float64(turns+alone)-0.3) > 0.01 {
		t.Errorf("%d alone, %d turns", alone, turns)
	}
	if !strings.Contains(strings.Join(w.Notes(), "\n"), "30 % of the requests are turns of conversations of 3, which 12.5 % of the arrivals begin") {
		t.Error(w.Notes())
	}
	for _, o := range []Options{{SessionShare: 0.5}, {SessionShare: 1.5, Turns: 2}, {SessionShare: 0.5, Turns: 2, Dataset: "testdata/burstgpt.csv"}} {
		if o.Check() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
