package sim_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"fermata/sim"
)

// rows reads a CSV file of numbers with a header.
func rows(t testing.TB, name string) [][]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	table := make([][]float64, len(all)-1)
	for i, row := range all[1:] {
		for _, cell := range row {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			table[i] = append(table[i], v)
		}
	}
	return table
}

// nanoseconds of a time that was written in seconds with six decimals.
func nanoseconds(s float64) int64 { return int64(s*1e6+.5) * 1000 }

// pinned reads one of the workloads with 1,000 requests each.
func pinned(t testing.TB, name string) []sim.Request {
	t.Helper()
	var requests []sim.Request
	for i, row := range rows(t, name+"_workload.csv") {
		requests = append(requests, sim.Request{Index: int64(i), Arrival: nanoseconds(row[0]), Prompt: int(row[1]), Output: int(row[2])})
	}
	return requests
}

// yi is Yi-34B on two H100 with the host of 2024, as in the published
// comparison.
func yi(s sim.Scheduler) sim.Options {
	s.MaxNumSeqs = 128
	return sim.Options{
		Model: "Yi-34B", TP: 2, Host: &sim.Host{Fixed: 10 * time.Millisecond, PerSeq: 50 * time.Microsecond},
		Memory: sim.Memory{Fraction: .8}, Scheduler: s,
	}
}

// llama is Llama-3-8B on one H100.
func llama(s sim.Scheduler) sim.Options {
	return sim.Options{
		Model: "Llama-3-8B", Host: &sim.Host{Fixed: 6 * time.Millisecond, PerSeq: 100 * time.Microsecond},
		Scheduler: s,
	}
}

func prefillFirst(budget int) sim.Scheduler {
	return sim.Scheduler{Policy: sim.PrefillFirst, MaxNumBatchedTokens: budget}
}

func stallFree(chunk int) sim.Scheduler {
	return sim.Scheduler{Policy: sim.StallFree, Chunk: chunk}
}

// play runs requests to the end and keeps all records, in the order in which
// they ended.
func play(t testing.TB, o sim.Options, requests []sim.Request) []*sim.Record {
	t.Helper()
	e, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var records []*sim.Record
	e.Observe(sim.Observer{Ended: func(r *sim.Record) { records = append(records, r.Clone()) }})
	if err := e.Run(slices.Values(requests)); err != nil {
		t.Fatal(err)
	}
	return records
}

func long(o sim.Options) sim.Options {
	o.MaxModelLen = 8192
	return o
}

func batches(wait time.Duration) sim.Options {
	o := yi(sim.Scheduler{Policy: sim.Static, FillWait: wait})
	o.Scheduler.MaxNumSeqs = 24
	return o
}

// The schedules of an independent implementation in Python, whose results were
// written with six decimals.
func TestGolden(t *testing.T) {
	thrashing := yi(sim.Scheduler{Policy: sim.Unified, MaxNumBatchedTokens: 2048})
	thrashing.Admit = sim.AdmitChunk
	tight := yi(prefillFirst(8192))
	none := 0.0
	tight.Memory = sim.Memory{Tokens: 30_000, Watermark: &none}
	for _, c := range []struct {
		workload, result string
		options          sim.Options
	}{
		{"yi34b_1p5qps_8k", "vllm0", yi(prefillFirst(8192))},
		{"yi34b_1p5qps_8k", "sarathi1536", yi(stallFree(1536))},
		{"yi34b_1p5qps_8k", "vllm1_2048", yi(sim.Scheduler{Policy: sim.Unified, MaxNumBatchedTokens: 2048})},
		{"yi34b_0p7qps_16k", "vllm0", yi(prefillFirst(16384))},
		{"yi34b_0p7qps_16k", "sarathi1536", yi(stallFree(1536))},
		{"llama3_8b_0p6qps_8k", "vllm0", llama(prefillFirst(8192))},
		{"llama3_8b_0p6qps_8k", "sarathi512", llama(stallFree(512))},
		{"yi34b_1p5qps_8k", "orca", long(yi(sim.Scheduler{Policy: sim.Orca}))},
		{"yi34b_1p5qps_8k", "chunk", thrashing},
		{"yi34b_1p5qps_8k", "tight", tight},
		{"yi34b_1p5qps_8k", "static24", batches(0)},
		{"yi34b_1p5qps_8k", "static24_wait5", batches(5 * time.Second)},
	} {
		t.Run(c.workload+"_"+c.result, func(t *testing.T) {
			golden := rows(t, fmt.Sprintf("%s_%s_golden.csv", c.workload, c.result))
			records := play(t, c.options, pinned(t, c.workload)[:len(golden)])
			slices.SortFunc(records, func(a, b *sim.Record) int { return int(a.Request.Index - b.Request.Index) })
			if len(records) != len(golden) {
				t.Fatalf("%d records, want %d", len(records), len(golden))
			}
			worst := time.Duration(0)
			for i, want := range golden {
				r := records[i]
				longest, _ := r.Longest()
				for k, got := range []int64{r.FirstScheduled, r.Tokens[0].At, r.End, longest.Ns} {
					off := time.Duration(got - nanoseconds(want[k+1])).Abs()
					worst = max(worst, off)
					if off > 5*time.Microsecond {
						t.Fatalf("request %d, column %d: %d ns, want %d, off by %v", i, k+1, got, nanoseconds(want[k+1]), off)
					}
				}
				if r.Evictions != int(want[5]) {
					t.Fatalf("request %d: %d evictions, want %g", i, r.Evictions, want[5])
				}
			}
			t.Logf("largest difference %v", worst)
		})
	}
}

func BenchmarkGolden(b *testing.B) {
	requests := pinned(b, "yi34b_1p5qps_8k")
	b.ReportAllocs()
	tokens := int64(0)
	for b.Loop() {
		e, err := sim.New(yi(prefillFirst(8192)))
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Run(slices.Values(requests)); err != nil {
			b.Fatal(err)
		}
		tokens = e.Usage()[0].Tokens
	}
	b.ReportMetric(float64(tokens), "tokens")
}
