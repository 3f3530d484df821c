package sim

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Drafting nothing is not speculating, bit for bit.
func TestNoDrafts(t *testing.T) {
	requests := load(200, 8, 5)
	for _, s := range everyPolicy[:3] {
		plain := play(t, Options{Scheduler: s, MaxModelLen: 16384}, requests...)
		for _, spec := range []Speculation{{Alpha: .9}, {Alpha: .9, DraftStep: time.Second}, {Alpha: .5, Beta: 3, Draft: "Llama-3-8B"}} {
			o := Options{Scheduler: s, MaxModelLen: 16384, Speculation: &spec}
			for i, r := range play(t, o, requests...) {
				if !slices.Equal(r.Tokens, plain[i].Tokens) {
					t.Fatalf("%s: request %d differs", s.Policy, i)
				}
			}
		}
	}
}

// steps are the numbers of tokens that decode steps brought, without the last
// step of an answer, which may be cut.
func steps(records []*Record) (n []int) {
	for _, r := range records {
		k := 1
		for i := 2; i < len(r.Tokens); i++ {
			if r.Tokens[i].Iteration == r.Tokens[i-1].Iteration {
				k++
				continue
			}
			n = append(n, k)
			k = 1
		}
	}
	return n
}

// Tokens a step are one and the accepted drafts before the first that is not
// (Leviathan et al.): their mean is (1 − α^(γ+1))/(1 − α), and tokens of a step
// share a stamp.
func TestAcceptance(t *testing.T) {
	for _, c := range []struct {
		gamma int
		alpha float64
	}{{4, .7}, {7, .9}, {1, .3}, {5, 1}, {3, 0}} {
		o := Options{Memory: Memory{Tokens: 2_000_000}, Speculation: &Speculation{Gamma: c.gamma, Alpha: c.alpha}, Scheduler: Scheduler{Policy: PrefillFirst}}
		var requests []Request
		for i := range int64(120) {
			requests = append(requests, Request{Index: i, Prompt: 100, Output: 8000})
		}
		records := play(t, o, requests...)
		n := steps(records)
		if c.alpha > 0 && c.alpha < 1 {
			n = n[:100_000]
		}
		counts, sum := make([]int, c.gamma+2), 0
		for _, k := range n {
			counts[k]++
			sum += k
		}
		mean, square, p := 0.0, 0.0, 1.0
		for k := 1; k <= c.gamma+1; k++ {
			pk := p * (1 - c.alpha)
			if k == c.gamma+1 {
				pk = p
			}
			mean += pk * float64(k)
			square += pk * float64(k*k)
			p *= c.alpha
			if e := pk * float64(len(n)); math.Abs(float64(counts[k])-e) > 4*math.Sqrt(e*(1-pk))+1e-9 {
				t.Errorf("γ = %d, α = %g: %d steps of %d tokens, want %.0f", c.gamma, c.alpha, counts[k], k, e)
			}
		}
		if c.alpha < 1 {
			if closed := (1 - math.Pow(c.alpha, float64(c.gamma+1))) / (1 - c.alpha); math.Abs(closed-mean) > 1e-12 {
				t.Fatalf("the test's own mean is %g, not %g", mean, closed)
			}
		}
		got, se := float64(sum)/float64(len(n)), math.Sqrt((square-mean*mean)/float64(len(n)))
		if math.Abs(got-mean) > 3*se+1e-12 {
			t.Errorf("γ = %d, α = %g: %.4f tokens a step, want %.4f ± %.4f", c.gamma, c.alpha, got, mean, 3*se)
		}
		for _, r := range records {
			for i, tok := range r.Tokens[1:] {
				if before := r.Tokens[i]; (tok.Iteration == before.Iteration) != (tok.At == before.At) {
					t.Fatalf("%+v after %+v", tok, before)
				}
			}
		}
	}
}

// With Beta each request has its own chance, of the same mean.
func TestBeta(t *testing.T) {
	e, err := New(Options{Seed: 3, Speculation: &Speculation{Gamma: 4, Alpha: .7, Beta: 5}})
	if err != nil {
		t.Fatal(err)
	}
	sum, square := 0.0, 0.0
	const n = 50_000
	for i := range int64(n) {
		x := e.chance(i)
		if x != e.chance(i) {
			t.Fatal("a request's chance changes")
		}
		sum += x
		square += x * x
	}
	// Beta(3.5, 1.5): mean .7, variance .7·.3/6; its fourth central moment bounds
	// the error of the variance.
	mean, variance := sum/n, square/n-sum/n*sum/n
	if want := .7 * .3 / 6; math.Abs(mean-.7) > 3*math.Sqrt(want/n) || math.Abs(variance-want) > 3*want*math.Sqrt(2.0/n) {
		t.Errorf("mean %.4f, variance %.5f, want .7 and %.5f", mean, variance, want)
	}
}

// What a step costs: verification of all drafts in one pass, and a pass of the
// draft for each; large batches decode plainly.
func TestStepsCost(t *testing.T) {
	cost := roofline(t, Options{Model: "Llama-3-70B", TP: 4}, hostPresets["modern"])
	draft := roofline(t, Options{Model: "Llama-3-8B", TP: 4}, Host{})
	for _, s := range []Speculation{{Gamma: 3, DraftStep: time.Millisecond}, {Gamma: 3, Draft: "Llama-3-8B"}, {Gamma: 3, OffAbove: 1}} {
		o := Options{Model: "Llama-3-70B", TP: 4, Speculation: &s, Scheduler: Scheduler{Policy: PrefillFirst}}
		for _, batch := range []int{1, 2} {
			var requests []Request
			for i := range int64(batch) {
				requests = append(requests, Request{Index: i, Prompt: 500, Output: 2})
			}
			g, _ := play(t, o, requests...)[0].Longest()
			b := Batch{Decodes: batch, Query: batch, Context: int64(501 * batch)}
			drafting := 3 * time.Millisecond.Nanoseconds()
			if s.Draft != "" {
				drafting = 3 * draft.Iteration(&b)
			}
			if s.OffAbove > 0 && s.OffAbove < batch {
				drafting = 0
			} else {
				b.Query *= 4
			}
			if s.OffAbove > 0 {
				drafting = 0
			}
			if want := cost.Iteration(&b) + drafting; g.Ns != want || g.OwnNs != want {
				t.Errorf("%+v, batch %d: a step takes %d ns, of it %d its own, want %d", s, batch, g.Ns, g.OwnNs, want)
			}
		}
	}
}
