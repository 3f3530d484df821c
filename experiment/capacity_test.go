package experiment

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/capacity"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/spec"
)

// oneAtATime serves a request in 25 ms: 20 of prefill and a gap of 5.
const oneAtATime = `cost: {flat: {ttft: 20ms, itl: 5ms}}
scheduler: {max_num_seqs: 1}
workload: {input: 16, output: 2}
seed: 3
`

func steeredSim(t testing.TB, text string, slo ...string) *spec.Sim {
	t.Helper()
	for i, s := range slo {
		if i == 0 {
			text += "slo:\n"
		}
		text += "  - \"" + s + "\"\n"
	}
	one, err := spec.ReadSteeredSim("system.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func plantOf(t testing.TB, s *spec.Sim) *virtualPlant {
	t.Helper()
	judge, err := s.Run().Judge()
	if err != nil {
		t.Fatal(err)
	}
	meets, err := metrics.NewPredicate(judge.SLO[0], judge, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newVirtualPlant(s, meets, s.Seed, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waits is the share of customers of an M/D/1 queue with load rho that wait longer
// than t service times: 1 − (1−ρ)·Σ e^(ρ(t−k))·(ρ(k−t))^k/k! over k up to t (Erlang,
// 1909).
func waits(rho, t float64) float64 {
	sum, factorial := 0.0, 1.0
	for k := 0.0; k <= t; k++ {
		if k > 0 {
			factorial *= k
		}
		sum += math.Exp(rho*(t-k)) * math.Pow(rho*(k-t), k) / factorial
	}
	return 1 - (1-rho)*sum
}

// A system that serves one request after the other, each in the same time, is an
// M/D/1 queue: the rate at which 1 in 10 waits too long is a formula's.
func TestCapacityOfASimulatedQueue(t *testing.T) {
	if w := waits(.5, 0); math.Abs(w-.5) > 1e-12 { // who finds it empty does not wait
		t.Fatalf("%v wait", w)
	}
	low, high := 0.0, 1.0
	for range 60 { // 220 ms to the first token leave 200 of waiting, eight services
		if rho := (low + high) / 2; waits(rho, 8) > .1 {
			high = rho
		} else {
			low = rho
		}
	}
	truth := low / .025
	s := steeredSim(t, oneAtATime, "ttft<=220ms @90%", "e2e<=225ms @p90")
	var said strings.Builder
	all, err := Capacity(context.Background(), SimulatedSite(s), CapacityOptions{
		Seeds: 2, Say: func(format string, args ...any) { said.WriteString(format) },
	})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	for i, r := range all {
		c := r.Capacity
		if r.Ending != capacity.Found || math.Abs(math.Log(c.RPS/truth)) > .05 || *c.Low > truth || truth > *c.High {
			t.Errorf("%s, seed %d: %+v where the truth is %.3f", r.Objective, *r.Seed, c, truth)
		}
		if math.Abs(*r.SaturationRPS-40) > .5 || *r.Seed != uint64(3+i%2) || r.Requests != int64(r.Budget.Total) {
			t.Errorf("saturation %v, seed %d, %d requests", *r.SaturationRPS, *r.Seed, r.Requests)
		}
		if math.Abs(*c.TokensPerS/c.RPS-2) > 1e-9 {
			t.Errorf("%v tokens a second at %v requests", *c.TokensPerS, c.RPS)
		}
	}
	if !strings.Contains(said.String(), "budget:") {
		t.Errorf("nothing was said before: %s", said.String())
	}
	if rps := all[0].Capacity.RPS; math.Abs(rps-all[1].Capacity.RPS) < 1e-9 {
		t.Error("two seeds are one")
	}
}

// One seed brings the same gaps, divided by whatever rate is set; outcomes come in
// order, each once, with what was under way.
func TestVirtualPlant(t *testing.T) {
	ctx := context.Background()
	s := steeredSim(t, oneAtATime, "ttft<=30ms")
	var all [2][]capacity.Outcome
	for k, rates := range [][]float64{{10, 30}, {20, 5}} {
		p := plantOf(t, s)
		for _, rate := range rates {
			if err := p.Send(ctx, 50, rate); err != nil {
				t.Fatal(err)
			}
			all[k] = append(all[k], p.Outcomes()...)
		}
		if err := p.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		all[k] = append(all[k], p.Outcomes()...)
		if now := p.Now(); now.Backlog != 0 || now.Sent != 100 || now.Tokens != 200 || len(all[k]) != 100 {
			t.Fatalf("%+v after %d outcomes", now, len(all[k]))
		}
		free := int64(0) // Lindley's recursion, by hand
		var ends []int64
		for i, o := range all[k] {
			start := max(free, o.At)
			free = start + 25e6
			ahead := 0
			for _, end := range ends {
				if end >= o.At {
					ahead++
				}
			}
			ends = append(ends, free)
			if missed := start+20e6-o.At > 30e6; o.Missed != missed || o.Failed || o.Ahead != ahead {
				t.Errorf("request %d: %+v, where %v and %d under way were expected", i, o, missed, ahead)
			}
		}
	}
	before := [2]int64{}
	for i := range 100 {
		ratio := 10. / 20
		if i >= 50 {
			ratio = 30. / 5
		}
		a, b := all[0][i].At-before[0], all[1][i].At-before[1]
		if math.Abs(float64(a)*ratio-float64(b)) > 10 {
			t.Errorf("gap %d is %d and %d ns", i, a, b)
		}
		before = [2]int64{all[0][i].At, all[1][i].At}
	}
	// Who is refused is told apart from who is late.
	p := plantOf(t, steeredSim(t, oneAtATime+"queue_limit: 2\n", "ttft<=1s"))
	if err := p.Send(ctx, 100, 400); err != nil {
		t.Fatal(err)
	}
	if err := p.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	turned := 0
	for _, o := range p.Outcomes() {
		if o.Turned != o.Failed || o.Turned && !o.Missed {
			t.Errorf("%+v", o)
		}
		if o.Turned {
			turned++
		}
	}
	if turned < 60 || turned > 97 {
		t.Errorf("%d of 100 were refused at ten times the saturation", turned)
	}
	b, err := p.Burst(ctx, 10)
	if err != nil || b.Asked != 10 || len(b.Ends)+b.Turned != 10 || b.Turned < 6 || len(p.Outcomes()) != 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// An interrupted search goes on from its file, and one that ended is not made again.
func TestCapacityGoesOn(t *testing.T) {
	s := steeredSim(t, oneAtATime, "ttft<=220ms @90%")
	o := CapacityOptions{State: filepath.Join(t.TempDir(), "state.json"), Search: capacity.Options{Precision: .10}}
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = func(_ string, s *capacity.State, _ capacity.Budget) {
		if s.Sent > 4000 {
			cancel()
		}
	}
	all, err := Capacity(ctx, SimulatedSite(s), o)
	if err != nil || all[0].Ending != capacity.Interrupted {
		t.Fatalf("%+v, %v", all, err)
	}
	blocks := len(all[0].Search)
	o.Progress = nil
	all, err = Capacity(context.Background(), SimulatedSite(s), o)
	if err != nil || all[0].Ending != capacity.Found || len(all[0].Search) <= blocks {
		t.Fatalf("%+v, %v", all, err)
	}
	again, err := Capacity(context.Background(), SimulatedSite(s), o)
	if err != nil || again[0].Requests != all[0].Requests {
		t.Errorf("made again: %+v, %v", again, err)
	}
	if err := os.WriteFile(o.State, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Capacity(context.Background(), SimulatedSite(s), o); err == nil || !strings.Contains(err.Error(), "state") {
		t.Errorf("a broken state: %v", err)
	}
}

// The three searches that a burst of one batch led astray: this system takes 256 at
// once, and 1,200 at once show that it serves 39 and 50 requests a second.
func TestRoughSearchKnowsSaturation(t *testing.T) {
	for _, c := range []struct {
		file, slo string
		mu, most  float64 // most is above what longer runs hold
	}{
		{"../examples/systems/llama3-8b-1xh100-stall-free.yaml", "ttft<=2s @p90", 39.02, 41},
		{"../examples/tune/tuned-llama3-8b.yaml", "ttft<=1s @p99", 49.98, 51},
		{"../examples/tune/tuned-llama3-8b.yaml", "error<=1%", 49.98, 51},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		one, err := spec.ReadSteeredSim(c.file, data, []conf.Setting{{Path: "slo", Value: "[\"" + c.slo + "\"]"}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := Capacity(t.Context(), SimulatedSite(one), CapacityOptions{Search: capacity.Options{Precision: .25}})
		if err != nil {
			t.Fatal(err)
		}
		r := all[0]
		if math.Abs(math.Log(*r.SaturationRPS/c.mu)) > .10 || r.Capacity == nil || r.Capacity.RPS > c.most {
			t.Errorf("%s of %s: saturated at %.4g, %+v", c.slo, c.file, *r.SaturationRPS, r.Capacity)
		}
	}
}
