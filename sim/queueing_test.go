package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"fermata/sim"
)

// flat is a server with known numbers that runs so many requests at once.
func flat(ttft, itl time.Duration, seqs int) sim.Options {
	return sim.Options{
		Cost:      sim.CostOptions{Flat: &sim.Flat{TTFT: ttft, ITL: itl}},
		Scheduler: sim.Scheduler{Policy: sim.PrefillFirst, MaxNumSeqs: seqs},
	}
}

// One request at a time and Poisson arrivals are an M/G/1 queue: the mean wait is
// λ·E[S²]/(2(1 − ρ)) (Pollaczek and Khinchine).
func TestPollaczekKhinchine(t *testing.T) {
	const (
		runs, requests = 60, 10_000
		ttft, itl      = 5e6, 1e6 // ns
		rho            = .7
	)
	outputs := []int{1, 20, 100} // equally likely
	s, s2 := 0.0, 0.0
	for _, n := range outputs {
		service := ttft + itl*float64(n-1)
		s += service / 3
		s2 += service * service / 3
	}
	lambda := rho / s
	want := lambda * s2 / (2 * (1 - rho))
	sum, squares := 0.0, 0.0
	for run := range uint64(runs) {
		r := rand.New(rand.NewPCG(run, 0))
		e, err := sim.New(flat(ttft, itl, 1))
		if err != nil {
			t.Fatal(err)
		}
		wait := 0.0
		e.Observe(sim.Observer{Ended: func(r *sim.Record) { wait += float64(r.FirstScheduled - r.Request.Arrival) }})
		at := 0.0
		err = e.Run(func(yield func(sim.Request) bool) {
			for i := range int64(requests) {
				at += r.ExpFloat64() / lambda
				if !yield(sim.Request{Index: i, Arrival: int64(at), Prompt: 10, Output: outputs[r.IntN(3)]}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		wait /= requests
		sum += wait
		squares += wait * wait
	}
	mean := sum / runs
	se := math.Sqrt((squares/runs - mean*mean) / (runs - 1))
	if math.Abs(mean-want) > 3*se {
		t.Errorf("mean wait %.3f ms, want %.3f ± %.3f", mean/1e6, want/1e6, 3*se/1e6)
	}
	t.Logf("mean wait %.3f ms, Pollaczek–Khinchine %.3f, standard error %.3f", mean/1e6, want/1e6, se/1e6)
}

// In a closed loop of N users who think, N = X·(R + Z) (Little).
func TestLittle(t *testing.T) {
	for _, c := range []struct {
		options sim.Options
		users   int64
		think   float64 // ns
	}{
		{flat(20*time.Millisecond, 2*time.Millisecond, 4), 10, 50e6},
		{yi(stallFree(1536)), 30, 3e9},
		{yi(prefillFirst(8192)), 60, 1e9},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		e, err := sim.New(c.options)
		if err != nil {
			t.Fatal(err)
		}
		next, ended, response, end := c.users, 0, 0.0, int64(0)
		thought := 0.0
		ask := func(at int64, index int64) sim.Request {
			return sim.Request{Index: index, Arrival: at, Prompt: 1 + r.IntN(2000), Output: 1 + r.IntN(200)}
		}
		e.Observe(sim.Observer{Ended: func(rec *sim.Record) {
			ended++
			response += float64(rec.End - rec.Request.Arrival)
			end = rec.End
			if next < 20_000 {
				z := r.ExpFloat64() * c.think
				thought += z
				if err := e.Submit(ask(rec.End+int64(z), next)); err != nil {
					t.Error(err)
				}
				next++
			}
		}})
		var first []sim.Request
		for i := range c.users {
			first = append(first, ask(0, i))
		}
		if err := e.Run(slices.Values(first)); err != nil {
			t.Fatal(err)
		}
		n := float64(ended)
		if got := n / float64(end) * (response/n + thought/n); math.Abs(got/float64(c.users)-1) > .01 {
			t.Errorf("%s: X·(R + Z) = %.3f of %d users", fmt.Sprint(c.options.Scheduler.Policy), got, c.users)
		}
	}
}

// lengths resemble ShareGPT's.
func lengths(r *rand.Rand) (prompt, output int) {
	draw := func(median, p90 float64, most int) int {
		for {
			if n := int(median * math.Exp(math.Log(p90/median)/1.2816*r.NormFloat64())); n >= 4 && n <= most {
				return n
			}
		}
	}
	return draw(1000, 3000, 8000), draw(300, 700, 2000)
}

// Offline, requests a second: everybody is there at the beginning.
func offline(t *testing.T, o sim.Options, n int) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(9, 9))
	var requests []sim.Request
	for i := range int64(n) {
		p, out := lengths(r)
		requests = append(requests, sim.Request{Index: i, Prompt: p, Output: out})
	}
	end := int64(0)
	for _, rec := range play(t, o, requests) {
		end = max(end, rec.End)
	}
	return float64(n) / (float64(end) / 1e9)
}

// servable is the highest rate, to 2 %, at which 99 % of requests have their
// first token within ttft and then a token each tpot, and how many are served a
// second at that rate until the last has ended: a finite run flatters the rate.
func servable(t *testing.T, o sim.Options, n int, ttft, tpot time.Duration, high float64) (rate, served float64) {
	t.Helper()
	holds := func(rate float64) bool {
		r := rand.New(rand.NewPCG(9, 9))
		var requests []sim.Request
		at := 0.0
		for i := range int64(n) {
			at += r.ExpFloat64() / rate
			p, out := lengths(r)
			requests = append(requests, sim.Request{Index: i, Arrival: int64(at * 1e9), Prompt: p, Output: out})
		}
		good, end := 0, int64(0)
		for _, rec := range play(t, o, requests) {
			first, last := rec.Tokens[0].At, rec.End
			if first-rec.Request.Arrival <= int64(ttft) && last-first <= int64(tpot)*int64(len(rec.Tokens)-1) {
				good++
			}
			end = max(end, last)
		}
		if good*100 < n*99 {
			return false
		}
		served = float64(n) / (float64(end) / 1e9)
		return true
	}
	for high-rate > .02*high {
		if mid := (rate + high) / 2; holds(mid) {
			rate = mid
		} else {
			high = mid
		}
	}
	return rate, served
}

// Batches by the request are slower offline than continuous ones, promises cost
// throughput, and tighter ones cost more.
func TestOfflineAgainstServer(t *testing.T) {
	const n = 600
	continuous := sim.Options{Scheduler: prefillFirst(16384)}
	chunked := sim.Options{Scheduler: stallFree(512)}
	batches := sim.Options{Scheduler: sim.Scheduler{Policy: sim.Static, MaxNumSeqs: 64}}
	best := offline(t, continuous, n)
	if static := offline(t, batches, n); static >= best {
		t.Errorf("static batches serve %.2f requests/s, continuous ones %.2f", static, best)
	} else {
		t.Logf("offline: static %.2f requests/s, prefill-first %.2f, stall-free %.2f", static, best, offline(t, chunked, n))
	}
	for _, o := range []sim.Options{continuous, chunked} {
		top := offline(t, o, n)
		last := 2 * top
		for _, limits := range [][2]time.Duration{{2 * time.Second, 50 * time.Millisecond}, {time.Second, 25 * time.Millisecond}, {500 * time.Millisecond, 20 * time.Millisecond}} {
			rate, served := servable(t, o, n, limits[0], limits[1], 2*top)
			t.Logf("%s within %v and %v: %.2f requests/s offered, %.2f served, offline %.2f", o.Scheduler.Policy, limits[0], limits[1], rate, served, top)
			if served > top || rate > last {
				t.Errorf("%s within %v and %v: %.2f requests/s offered and %.2f served; offline %.2f, with wider limits %.2f", o.Scheduler.Policy, limits[0], limits[1], rate, served, top, last)
			}
			last = rate
		}
	}
}

// A million requests of the flat model, 128 tokens each. The heap that they need
// does not grow with their number.
func BenchmarkFlat(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		e, err := sim.New(flat(5*time.Millisecond, time.Millisecond, 256))
		if err != nil {
			b.Fatal(err)
		}
		var m runtime.MemStats
		tokens, ended, heap := 0, 0, uint64(0)
		e.Observe(sim.Observer{Ended: func(r *sim.Record) {
			tokens += len(r.Tokens)
			if ended++; ended%100_000 == 0 {
				runtime.ReadMemStats(&m)
				heap = max(heap, m.HeapSys)
			}
		}})
		if err := e.Run(stream(n, 120)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(tokens)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
		b.ReportMetric(float64(heap)/1e6, "MB-heap")
	}
}

// stream is Poisson arrivals of n requests, made as they are taken.
func stream(n int64, rate float64) func(yield func(sim.Request) bool) {
	return func(yield func(sim.Request) bool) {
		r := rand.New(rand.NewPCG(1, 1))
		at := 0.0
		for i := range n {
			at += r.ExpFloat64() / rate * 1e9
			if !yield(sim.Request{Index: i, Arrival: int64(at), Prompt: 512, Output: 128}) {
				return
			}
		}
	}
}
