package deadline

import (
	"math"
	"slices"
	"testing"
)

func TestGate(t *testing.T) {
	var g Gate
	fast, slow := []int64{9, 8, 7, 6, 5}, []int64{5, 6, 7, 8, 9}
	for _, c := range []struct {
		canaries    []int64
		draw        float64
		open, gated bool
	}{
		{fast[:4], 0, false, false},               // too few are known
		{fast, 0.5, true, true},                   // the fastest of five
		{slow, 0.5, false, false},                 // the slowest
		{slow, 0.19, true, false},                 // passes all the same
		{fast, 0.19, true, false},                 // free, so that it counts as one at a random time
		{[]int64{5, 9, 7, 8, 6}, 0.5, true, true}, // the 30 % quantile is 6.2
		{[]int64{5, 9, 6, 8, 7}, 0.5, false, false},
	} {
		if open, gated := g.Open(c.canaries, c.draw); open != c.open || gated != c.gated {
			t.Errorf("%v, %v: open %v, gated %v", c.canaries, c.draw, open, gated)
		}
	}
	if p := g.Passes(); math.Abs(p-0.44) > 1e-12 {
		t.Errorf("%v pass", p)
	}
	// Of canaries whose waits are independent, as many pass as it says.
	r, n := &dice{11}, 0
	var all []int64
	for range 4000 {
		all = append(all, int64(1e9*r.exp()))
		if open, _ := g.Open(all, r.u()); open {
			n++
		}
	}
	if share := float64(n) / 4000; math.Abs(share-0.44) > 0.03 {
		t.Errorf("%v passed", share)
	}
}

// To a third of the probes whose times are next to nothing no curve is fitted, and no
// ratio to it is told: what is written down is a number.
func TestShiftFromNothing(t *testing.T) {
	s, err := sampled(probesOf("yi", "idle", 100, 1), minProbes)
	if err != nil {
		t.Fatal(err)
	}
	f, _, _ := choose(s, candidates(s), DefaultNoise())
	const third = 33
	for name, change := range map[string]func(y []float64){
		"first": func(y []float64) { clear(y[:third]) }, "last": func(y []float64) { clear(y[len(y)-third:]) },
	} {
		part, rng := *s, &dice{3}
		part.y = slices.Clone(s.y)
		change(part.y)
		var d Diagnosis
		if d.shift(&part, f, func(n int) int { return int(rng.u() * float64(n)) }); d.Shift > 0 || d.Shift < 0 || math.IsNaN(d.Shift) || d.shifted {
			t.Errorf("%s: a shift of %v, %v", name, d.Shift, d.shifted)
		}
	}
	var d Diagnosis
	rng := &dice{3}
	if d.shift(s, f, func(n int) int { return int(rng.u() * float64(n)) }); !(d.Shift > 0.9 && d.Shift < 1.1) {
		t.Errorf("without a change: %v", d.Shift)
	}
}

// An endpoint that changes its speed in the middle of the probing is told from one
// that does not, whatever it has to do beside.
func TestChangedMidway(t *testing.T) {
	flagged := func(world string, by float64, sets int) (n int) {
		up := make([]bool, sets)
		overSets(sets, func(r int) {
			probes := probesOf("yi", world, 100, r)
			for i := range probes {
				if probes[i].Block >= 84 {
					probes[i].TTFTNs += int64(1e9 * (by - 1) * prefillOf("yi", float64(probes[i].PromptTokens)))
				}
			}
			_, d, err := Fit(probes, FitOptions{Resamples: 10, Seed: uint64(r)})
			up[r] = err == nil && slices.Contains(d.Flags, Shifted)
		})
		for _, v := range up {
			if v {
				n++
			}
		}
		return n
	}
	sets, worlds := 4, []string{"fifo60"}
	if slow {
		sets, worlds = 12, []string{"idle", "fifo60", "burst", "fifo90"}
	}
	for _, world := range worlds {
		same, slower, faster := flagged(world, 1, sets), flagged(world, 1.3, sets), flagged(world, 0.75, sets)
		t.Logf("%s, of %d: flagged %d without a change, %d where it slows down by 30 %%, %d where it speeds up by 25 %%", world, sets, same, slower, faster)
		if world == "fifo90" {
			continue // a tenth of the probes meet no queue: too few to say
		}
		if 10*same > sets || 10*slower < 8*sets || 10*faster < 8*sets {
			t.Errorf("%s, of %d: flagged %d, %d, %d", world, sets, same, slower, faster)
		}
	}
}
