package sim

import (
	"testing"
	"time"
)

func apart(d Disaggregation, tokens int64) Options {
	zero := 0.0
	return Options{
		Model: "Yi-34B", TP: 2, MaxModelLen: 16384, Memory: Memory{Tokens: tokens, Watermark: &zero},
		Host: &Host{Fixed: 10 * time.Millisecond, PerSeq: 50 * time.Microsecond}, Disaggregation: &d,
	}
}

// 7,000 tokens of Yi-34B at 40 GB/s take 43.0 ms, which the gap before the second
// token shows and nothing else does.
func TestTransfer(t *testing.T) {
	const latency = 2 * time.Millisecond
	cost := roofline(t, Options{Model: "Yi-34B", TP: 2}, hostPresets["2024"])
	for _, overlap := range []bool{false, true} {
		o := apart(Disaggregation{Transfer: latency, Bandwidth: 40, Overlap: overlap}, 100_000)
		r := play(t, o, Request{Prompt: 7000, Output: 30})[0]
		for g := range r.Gaps() {
			want := int64(0)
			if g.Token == 1 && !overlap {
				want = int64(latency) + 7000*240*1024/40
				if off := time.Duration(want) - latency - 43*time.Millisecond; off.Abs() > 50*time.Microsecond {
					t.Fatalf("transfer takes %v", time.Duration(want))
				}
			}
			own := cost.Iteration(&Batch{Decodes: 1, Query: 1, Context: int64(7000 + g.Token)})
			if g.TransferNs != want || g.OwnNs != own || g.Ns != want+own {
				t.Errorf("overlap %v: %+v, want a transfer of %d and a step of %d", overlap, g, want, own)
			}
		}
	}
}

// With a link that takes no time, the second token waits for the iteration that
// runs, and a step; decode gaps never contain a prefill.
func TestDecodeSideIsUndisturbed(t *testing.T) {
	e, err := New(apart(Disaggregation{}, 400_000))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64 // of iterations on the decode side
	e.Observe(Observer{Iteration: func(it *Iteration) {
		if it.Replica == 1 {
			ends = append(ends, it.Start, it.End)
			if len(it.Chunks) > 0 {
				t.Errorf("a prefill on the decode side: %+v", it)
			}
		} else if it.Decodes > 0 {
			t.Errorf("a decode on the prefill side: %+v", it)
		}
	}})
	busy := 0
	records := playOn(t, e, load(300, 1.5, 6)...)
	running := func(at int64) (left int64) {
		for i := 0; i < len(ends); i += 2 {
			if ends[i] < at && at < ends[i+1] {
				return ends[i+1] - at
			}
		}
		return 0
	}
	for _, r := range records {
		for g := range r.Gaps() {
			if g.PrefillNs+g.MixedNs+g.TransferNs+g.PreemptedNs+g.RecomputeNs > 0 {
				t.Fatalf("%+v", g)
			}
			want := int64(0)
			if g.Token == 1 {
				want = running(r.PrefillEnd)
			}
			if want > 0 {
				busy++
			}
			if g.WaitingNs != want || g.Ns != want+g.OwnNs {
				t.Fatalf("%+v, want a wait of %d ns", g, want)
			}
		}
	}
	if busy < 50 {
		t.Errorf("only %d requests found the decode side busy", busy)
	}
}

// The link takes one after another, and several decode instances have one each.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		decode int
		wait   int64 // of the second
	}{{1, 100e6}, {2, 0}} {
		o := apart(Disaggregation{Decode: c.decode, Transfer: 100 * time.Millisecond}, 100_000)
		o.Scheduler.MaxNumBatchedTokens = 16384
		records := play(t, o, Request{Index: 0, Prompt: 500, Output: 2}, Request{Index: 1, Prompt: 500, Output: 2})
		if a, b := records[0].PrefillEnd, records[1].PrefillEnd; a != b {
			t.Fatalf("prefills end at %d and %d", a, b)
		}
		g, _ := records[1].Longest()
		// On one instance it also waits for the first one's step, which began when that landed.
		if g.TransferNs != 100e6 || g.WaitingNs < c.wait || g.WaitingNs > c.wait+40e6*int64(2-c.decode) {
			t.Errorf("%d decode instances: %+v, want a wait of %d ns", c.decode, g, c.wait)
		}
	}
}

// A full decode side leaves keys and values on the prefill side, which stops
// when its own memory is full, and everything is served in the end.
func TestBackPressure(t *testing.T) {
	o := apart(Disaggregation{}, 3200)
	var requests []Request
	for i := range int64(6) {
		requests = append(requests, Request{Index: i, Prompt: 1500, Output: 100})
	}
	records := play(t, o, requests...)
	// Two fit on each side. The fifth can only be prefilled when the first has
	// ended and the third has moved over.
	if first, fifth := records[0].End, records[4].FirstScheduled; fifth < first {
		t.Errorf("the fifth is prefilled at %d, before the first ends at %d", fifth, first)
	}
	for i, r := range records {
		g, _ := r.Longest()
		if waits := g.WaitingNs > time.Second.Nanoseconds(); waits != (i >= 2) {
			t.Errorf("request %d: %+v", i, g)
		}
		if r.Evictions > 0 {
			t.Errorf("request %d was evicted", i)
		}
	}
}

// A decode side that runs out of memory moves the newest out and back, as it
// was: nothing is computed again.
func TestSwap(t *testing.T) {
	o := apart(Disaggregation{Decode: 1}, 16*100)
	records := play(t, o, Request{Index: 0, Prompt: 750, Output: 100}, Request{Index: 1, Prompt: 750, Output: 100})
	a, b := records[0], records[1]
	if a.Evictions != 0 || b.Evictions != 1 || b.Recomputed != 0 {
		t.Errorf("evictions %d and %d, %d tokens computed again", a.Evictions, b.Evictions, b.Recomputed)
	}
	g, _ := b.Longest()
	// There and back over PCIe at 25 GB/s.
	if want := int64(2 * float64(749+g.Token) * 240 * 1024 / 25); g.TransferNs < want-1 || g.TransferNs > want+1 || g.RecomputeNs != 0 ||
		g.PreemptedNs != a.End-b.Tokens[g.Token-1].At || g.Ns != g.PreemptedNs+g.TransferNs+g.OwnNs {
		t.Errorf("%+v, want a transfer of %d", g, want)
	}
}
