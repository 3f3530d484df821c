package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fermata/internal/coverage"
	"fermata/internal/stats"
	"fermata/sim"
)

// The simulated server whose intervals are held against the truth is one replica
// with chunked prefill of 512 and at most 64 requests at once, an iteration of 10 ms,
// 0.1 ms a sequence that decodes and 0.04 ms a token of a prompt, with 5 % of noise.
// Prompts and answers have log-normal lengths (medians 417 and 150).
const serverCost = `prefill: {a_ns: 1e7, b_ns: 40000, c_ns: 0}
decode: {a_ns: 1e7, b_ns: 0, c_ns: 100000}
`

const (
	serverSaturation = 13.36  // requests/s that it answers while some wait
	serverLongest    = 20_000 // requests of a run; shorter ones are beginnings of it
	serverFills      = 4      // relaxation times that pass before a run counts
)

// serverLoads are rates in requests/s with what long runs say of the time to first
// token: of 4, 6 and 12 million requests. Another simulator of the same server has
// its p99 at 2 s for 12.13/s and at 8 s for 13.00/s.
var serverLoads = []struct {
	rate          float64
	p50, p90, p99 time.Duration
}{
	{9.2, 63294 * time.Microsecond, 199407 * time.Microsecond, 384168 * time.Microsecond},
	{12.1, 118298 * time.Microsecond, 658452 * time.Microsecond, 1931906 * time.Microsecond},
	{13.0, 849270 * time.Microsecond, 4020920 * time.Microsecond, 8708399 * time.Microsecond},
}

// serverPlants are the server at those of its loads that are asked for.
func serverPlants(t testing.TB, loads int) []coverage.Plant {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cost.yaml")
	if err := os.WriteFile(file, []byte(serverCost), 0o644); err != nil {
		t.Fatal(err)
	}
	var plants []coverage.Plant
	for _, l := range serverLoads[:loads] {
		truth := map[float64]time.Duration{.5: l.p50, .9: l.p90, .99: l.p99}
		runs := map[uint64][]float32{}
		plants = append(plants, coverage.Plant{
			Name: fmt.Sprintf("server at %.4g/s", l.rate), Load: l.rate / serverSaturation,
			Truth: func(p float64) float64 { return float64(truth[p]) },
			Run: func(n int, seed uint64) []float32 {
				seed >>= 32 // the run; n stands below
				if runs[seed] == nil {
					warm := int(max(500, serverFills*stats.Relaxation(l.rate/serverSaturation).V))
					values, err := firstTokens(file, l.rate, warm, serverLongest, seed)
					if err != nil {
						panic(err) // a test's own options are wrong
					}
					runs[seed] = values
				}
				return slices.Clone(runs[seed][:n])
			},
		})
	}
	return plants
}

// firstTokens are the times to first token in ns of n requests, in the order in
// which they arrive, after so many that do not count.
func firstTokens(cost string, rate float64, warm, n int, seed uint64) ([]float32, error) {
	e, err := sim.New(sim.Options{
		Cost: sim.CostOptions{Fitted: cost}, Noise: .05, Memory: sim.Memory{Tokens: 120_000},
		Scheduler: sim.Scheduler{Policy: sim.StallFree, Chunk: 512, MaxNumSeqs: 64}, Seed: seed,
	})
	if err != nil {
		return nil, err
	}
	arrivals, values := make([]int64, warm+n), make([]float32, n)
	e.Observe(sim.Observer{Token: func(m sim.Emission) {
		if i := int(m.Index) - warm; m.First && i >= 0 {
			values[i] = float32(m.At - arrivals[m.Index])
		}
	}})
	rng := rand.New(rand.NewPCG(seed, uint64(1000*rate)))
	length := func(median, sigma float64, least, most int) int {
		return min(max(int(math.Round(median*math.Exp(sigma*rng.NormFloat64()))), least), most)
	}
	at := 0.0
	err = e.Run(func(yield func(sim.Request) bool) {
		for i := range arrivals {
			at += rng.ExpFloat64() / rate
			arrivals[i] = int64(at * 1e9)
			if !yield(sim.Request{Index: int64(i), Arrival: arrivals[i], Prompt: length(417, .955, 4, 4096), Output: length(150, .70, 2, 1024)}) {
				return
			}
		}
	})
	return values, err
}
