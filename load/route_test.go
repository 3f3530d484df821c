package load

import (
	"math"
	"testing"

	"fermata/recording"
	"fermata/schedule"
	"fermata/workload"
)

// Every block has each target as often as its weight says; the orders differ, each
// target standing first as often as chance has it.
func TestBlocks(t *testing.T) {
	t.Parallel()
	r := Route{Weights: []float64{1, 2, 1}, Block: true, Seed: 9}
	const blocks = 2000
	first := [3]int{}
	for b := range int64(blocks) {
		seen := [3]int{}
		for i := range int64(4) {
			seen[r.To(4*b+i)]++
		}
		if seen != [3]int{1, 2, 1} {
			t.Fatalf("block %d: %v", b, seen)
		}
		first[r.To(4*b)]++
	}
	for k, p := range []float64{0.25, 0.5, 0.25} {
		if off := (float64(first[k]) - blocks*p) / math.Sqrt(blocks*p*(1-p)); math.Abs(off) > 4 {
			t.Errorf("target %d stands first %d times of %d, %v standard deviations off", k, first[k], blocks, off)
		}
	}
}

// Shares follow the weights within the deviation of a binomial number, and the
// same seed gives the same targets.
func TestWeights(t *testing.T) {
	t.Parallel()
	r, same, other := Route{Weights: []float64{1, 0.5, 2.5}, Seed: 1}, Route{Weights: []float64{1, 0.5, 2.5}, Seed: 1}, Route{Weights: []float64{1, 0.5, 2.5}, Seed: 2}
	const n = 8000
	counts, differ := [3]int{}, 0
	for i := range int64(n) {
		counts[r.To(i)]++
		if r.To(i) != same.To(i) {
			t.Fatalf("request %d goes elsewhere by the same seed", i)
		}
		if r.To(i) != other.To(i) {
			differ++
		}
	}
	for k, p := range []float64{0.25, 0.125, 0.625} {
		if off := (float64(counts[k]) - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(off) > 4 {
			t.Errorf("target %d has %d of %d requests, %v standard deviations off", k, counts[k], n, off)
		}
	}
	if differ == 0 {
		t.Error("another seed changes nothing")
	}
	if one := (&Route{Weights: []float64{3}}); one.To(17) != 0 || (&Route{}).To(17) != 0 {
		t.Error("a single target")
	}
}

// Requests go where the route says, later turns and tries where the first went,
// and what is sent is what a single target would have been sent.
func TestSeveralTargets(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{1, 3} {
		a, b := &teller{}, &teller{fails: func(n int) bool { return n%2 == 0 }, after: "0"}
		what := workload.Options{Input: workload.Tokens(8), Output: workload.Tokens(tokens), Turns: turns}
		when := schedule.Options{Concurrency: 2, Requests: 24, Warmup: "0", Drain: "quiet"}
		j := job(t, "", newTape(), when)
		if turns > 1 {
			j = talking(t, &teller{}, "chat", what, when)
		}
		first, second := j.Target, j.Target
		first.Name, first.URL = "a", a.start(t)+first.Dialect.Path()
		second.Name, second.URL = "b", b.start(t)+second.Dialect.Path()
		j.Targets, j.Route = []Target{first, second}, Route{Weights: []float64{1, 1}, Block: true, Seed: 3}
		j.Options.Retries = 3
		_, r := offer(t, j)
		tries := map[string]int{}
		for index, all := range r.tried(t) {
			want := j.Targets[j.Route.To(index/int64(turns))].Name
			for _, tr := range all {
				tries[tr.Target]++
				if tr.Target != want {
					t.Errorf("request %d, try %d went to %s, want %s", index, tr.Try, tr.Target, want)
				}
			}
			if last := all[len(all)-1]; last.Outcome != recording.OK {
				t.Errorf("request %d: %s", index, last.Outcome)
			}
		}
		if len(a.got()) != tries["a"] || len(b.got()) != tries["b"] || tries["a"] == 0 || tries["b"] <= tries["a"] && turns == 1 {
			t.Errorf("the servers got %d and %d requests, recorded are %v", len(a.got()), len(b.got()), tries)
		}
	}
}
