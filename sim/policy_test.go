package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// A static batch waits until it is full or has waited enough, decodes until its
// longest answer ends with everybody's place taken, and the next waits for it.
func TestStatic(t *testing.T) {
	o := small(100_000, Scheduler{Policy: Static, MaxNumSeqs: 3, FillWait: 200 * time.Millisecond})
	records := play(t, o,
		Request{Index: 0, Arrival: 0, Prompt: 100, Output: 3}, Request{Index: 1, Arrival: 50e6, Prompt: 200, Output: 30},
		Request{Index: 2, Arrival: 100e6, Prompt: 300, Output: 10}, Request{Index: 3, Arrival: 110e6, Prompt: 400, Output: 1})
	cost := roofline(t, Options{Model: "Llama-3-8B"}, hostPresets["modern"])
	for i, r := range records[:3] {
		if r.FirstScheduled != 100e6 {
			t.Errorf("request %d begins at %d, want when the third comes", i, r.FirstScheduled)
		}
	}
	prefill := cost.Iteration(&Batch{Chunks: []Chunk{{Tokens: 100}, {Tokens: 200}, {Tokens: 300}}})
	if got := records[1].PrefillEnd - 100e6; got != prefill {
		t.Errorf("the batch is prefilled in %d ns, want %d", got, prefill)
	}
	// After 2 steps the first is done, after 9 the third: their rows stay.
	context := []int{100, 200, 300}
	for g := range records[1].Gaps() {
		sum := 0
		for i, r := range records[:3] {
			sum += context[i] + min(g.Token-1, r.Request.Output-1) + 1
		}
		if want := cost.Iteration(&Batch{Decodes: 3, Query: 3, Context: int64(sum)}); g.Ns != want || g.OwnNs != want {
			t.Errorf("%+v, want a step of %d ns", g, want)
		}
	}
	for _, r := range records[:3] {
		if r.End != r.Tokens[len(r.Tokens)-1].At || len(r.Tokens) != r.Request.Output {
			t.Errorf("request %d ends at %d with %d tokens", r.Request.Index, r.End, len(r.Tokens))
		}
	}
	if got := records[3].FirstScheduled; got != max(records[1].End, 310e6) {
		t.Errorf("the fourth begins at %d, the batch ends at %d", got, records[1].End)
	}
}

// The budget of a prompt's chunks falls along it.
func TestFallingChunks(t *testing.T) {
	o := small(100_000, Scheduler{Policy: StallFree, Chunk: 1000, ChunkLow: 200})
	o.MaxModelLen = 8000
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	e.Observe(Observer{Iteration: func(it *Iteration) {
		for _, c := range it.Chunks {
			got = append(got, c.Tokens)
		}
	}})
	playOn(t, e, Request{Prompt: 3500, Output: 1})
	// 1000 − 800·s/8000 at s = 0, 1000, 1900, 2710; the rest.
	if want := []int{1000, 900, 810, 729, 61}; !slices.Equal(got, want) {
		t.Errorf("chunks of %v, want %v", got, want)
	}
}

// Of one prompt no more than the threshold goes into an iteration, and what it
// leaves others may take.
func TestLongPrefillThreshold(t *testing.T) {
	o := small(100_000, Scheduler{Policy: Unified, MaxNumBatchedTokens: 1000, LongPrefill: 600})
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	e.Observe(Observer{Iteration: func(it *Iteration) {
		for _, c := range it.Chunks {
			got += fmt.Sprintf("%d:%d ", c.Index, c.Tokens)
		}
		got += fmt.Sprintf("+%d | ", it.Decodes)
	}})
	playOn(t, e, Request{Index: 0, Prompt: 1500, Output: 2}, Request{Index: 1, Prompt: 500, Output: 2})
	if want := "0:600 1:400 +0 | 0:600 1:100 +0 | 0:300 +1 | +1 | "; got != want {
		t.Errorf("iterations %s, want %s", got, want)
	}
}

// A prompt that is longer than the budget of prefill-first goes alone.
func TestLongPromptAlone(t *testing.T) {
	o := small(100_000, Scheduler{Policy: PrefillFirst, MaxNumBatchedTokens: 1000})
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	e.Observe(Observer{Iteration: func(it *Iteration) {
		for _, c := range it.Chunks {
			got += fmt.Sprintf("%d:%d ", c.Index, c.Tokens)
		}
		got += "| "
	}})
	playOn(t, e, Request{Index: 0, Prompt: 3000, Output: 1}, Request{Index: 1, Prompt: 600, Output: 1}, Request{Index: 2, Prompt: 400, Output: 1}, Request{Index: 3, Prompt: 1, Output: 1})
	if want := "0:3000 | 1:600 2:400 | 3:1 | "; got != want {
		t.Errorf("iterations %s, want %s", got, want)
	}
}

// Where requests go, with one running on each replica for a second.
func TestRouters(t *testing.T) {
	for _, c := range []struct {
		router string
		want   []int
	}{
		{RoundRobin, []int{0, 1, 2, 0, 1, 2, 0, 1}},
		// The first of those with fewest: 0 has ended by the fifth.
		{LeastLoaded, []int{0, 1, 2, 0, 1, 2, 0, 1}},
	} {
		o := Options{Cost: CostOptions{Flat: &Flat{TTFT: time.Second}}, Replicas: 3, Router: c.router}
		var requests []Request
		for i := range int64(8) {
			requests = append(requests, Request{Index: i, Arrival: i * 1e6, Prompt: 1, Output: 1})
		}
		for i, r := range play(t, o, requests...) {
			if r.Replica != c.want[i] {
				t.Errorf("%s: request %d goes to replica %d, want %d", c.router, i, r.Replica, c.want[i])
			}
		}
	}

	// Replica 0 is kept busy by a long request; the short ones find the other.
	o := Options{Cost: CostOptions{Flat: &Flat{TTFT: time.Second, ITL: time.Second}}, Replicas: 2, Router: LeastLoaded}
	records := play(t, o, Request{Index: 0, Prompt: 1, Output: 100}, Request{Index: 1, Arrival: 2e9, Prompt: 1, Output: 1}, Request{Index: 2, Arrival: 4e9, Prompt: 1, Output: 1})
	if records[1].Replica != 1 || records[2].Replica != 1 {
		t.Errorf("short requests go to replicas %d and %d", records[1].Replica, records[2].Replica)
	}

	// Sessions stay where they are, and all replicas have some.
	o.Router = BySession
	o.Replicas = 4
	var requests []Request
	for i := range int64(200) {
		requests = append(requests, Request{Index: i, Arrival: i, Prompt: 1, Output: 1, Session: fmt.Sprint(i % 40)})
	}
	home, used := map[string]int{}, map[int]bool{}
	for _, r := range play(t, o, requests...) {
		if at, ok := home[r.Request.Session]; ok && at != r.Replica {
			t.Errorf("session %s is on replicas %d and %d", r.Request.Session, at, r.Replica)
		}
		home[r.Request.Session] = r.Replica
		used[r.Replica] = true
	}
	if len(used) != 4 {
		t.Errorf("40 sessions use %d of 4 replicas", len(used))
	}

	// A conversation goes where its beginning is cached.
	o = small(100_000, Scheduler{Policy: PrefillFirst})
	o.Replicas, o.Router, o.PrefixCache = 3, PrefixAffinity, true
	records = play(t, o,
		Request{Index: 0, Prompt: 10, Output: 1}, Request{Index: 1, Session: "a", Prompt: 100, Output: 1},
		Request{Index: 2, Arrival: 1e9, Session: "b", Prompt: 100, Output: 1}, Request{Index: 3, Arrival: 2e9, Session: "a", Prompt: 150, Output: 1})
	if records[1].Replica != 1 || records[2].Replica != 0 || records[3].Replica != 1 || records[3].Cached != 96 {
		t.Errorf("requests go to replicas %d, %d, %d, with %d cached", records[1].Replica, records[2].Replica, records[3].Replica, records[3].Cached)
	}
}

// Noise has mean 1 and moves no arrival; each of its streams is its own.
func TestNoise(t *testing.T) {
	const sigma = .3
	factor := func(seed uint64, replica int) (mean, variance float64) {
		n := newNoise(&Options{Noise: sigma, Seed: seed}, replica)
		const draws = 200_000
		for range draws {
			ns, own := n.disturb(1e6, 5e5)
			if off := own - (ns+1)/2; off < -1 || off > 1 {
				t.Fatalf("%d ns, without chunks %d", ns, own)
			}
			x := float64(ns) / 1e6
			mean += x
			variance += x * x
		}
		mean /= draws
		return mean, variance/draws - mean*mean
	}
	mean, variance := factor(1, 0)
	want := math.Exp(sigma*sigma) - 1 // variance of a log-normal of mean 1
	if math.Abs(mean-1) > 3*math.Sqrt(want/200_000) || math.Abs(variance/want-1) > .05 {
		t.Errorf("mean %.4f, variance %.4f, want 1 and %.4f", mean, variance, want)
	}
	if other, _ := factor(1, 1); other == mean {
		t.Error("two replicas have the same noise")
	}
	if other, _ := factor(2, 0); other == mean {
		t.Error("two seeds have the same noise")
	}

	// A share p of iterations has a hiccup of at least AtLeast, Pareto beyond.
	n := newNoise(&Options{Hiccup: &Hiccup{Probability: .1, AtLeast: time.Millisecond, Shape: 2}}, 0)
	hiccups, far := 0, 0
	for range 100_000 {
		if ns, own := n.disturb(1000, 0); ns > 1000 {
			hiccups++
			if ns < 1e6+1000 || own != 0 {
				t.Fatalf("a hiccup of %d ns, without chunks %d", ns-1000, own)
			}
			if ns > 2e6+1000 {
				far++
			}
		}
	}
	if math.Abs(float64(hiccups)-10_000) > 300 || math.Abs(float64(far)-float64(hiccups)/4) > 150 {
		t.Errorf("%d hiccups, %d of twice the least, want 10,000 and a quarter", hiccups, far)
	}
}

// What an engine says of itself while it runs and afterwards.
func TestUsage(t *testing.T) {
	e, err := New(small(16*1000, Scheduler{Policy: StallFree, Chunk: 512}))
	if err != nil {
		t.Fatal(err)
	}
	busy, prefill, mixed := int64(0), int64(0), int64(0)
	e.Observe(Observer{Iteration: func(it *Iteration) {
		ns := it.End - it.Start
		busy += ns
		if it.Decodes == 0 {
			prefill += ns
		} else if len(it.Chunks) > 0 {
			mixed += ns
		}
	}})
	if err := e.Submit(Request{Index: 0, Prompt: 1000, Output: 40}); err != nil {
		t.Fatal(err)
	}
	if err := e.Submit(Request{Index: 1, Arrival: 100e6, Prompt: 1000, Output: 10}); err != nil {
		t.Fatal(err)
	}
	e.Advance(1)
	if s := e.State()[0]; s != (State{Running: 1, BlocksFree: 1000 - 63, BlocksAll: 1000}) {
		t.Errorf("%+v", s)
	}
	e.Advance(1 << 62)
	u := e.Usage()[0]
	if u.BusyNs != busy || u.PrefillNs != prefill || u.MixedNs != mixed || mixed == 0 || u.Tokens != 50 || u.Ended != 2 {
		t.Errorf("%+v, want %d, %d and %d ns", u, busy, prefill, mixed)
	}
	if mean := u.BlockNs / float64(u.BusyNs); mean < 63 || mean > 130 {
		t.Errorf("%.1f blocks are held on average", mean)
	}
	if s := e.State()[0]; s != (State{BlocksFree: 1000, BlocksAll: 1000}) {
		t.Errorf("%+v", s)
	}
}
