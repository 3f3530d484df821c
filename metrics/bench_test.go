package metrics

import (
	"iter"
	"math"
	"runtime"
	"testing"
	"time"

	"fermata/deadline"
	"fermata/recording"
)

// A stream is a recording that is made up as it is read, so that only what
// Evaluate keeps takes memory: steady gaps of 20 ms with a jitter of a tenth, one
// pause in fifty tokens, tokens stamped within 50 µs.
type stream struct {
	requests, tokens int
	jitter           uint64
}

func (s stream) Err() error { return nil }

func (s stream) Traces(recording.Columns) iter.Seq[recording.Trace] {
	return func(yield func(recording.Trace) bool) {
		var t recording.Trace
		n := s.tokens
		t.DeltaNs, t.Tokens, t.Read = make([]int64, n), make([]int32, n), make([]int32, n)
		t.StampErrorNs, t.Channel = make([]int64, n), make([]int8, n)
		x := uint64(1)
		// Uneven gaps are made once and shifted a request, so that making them
		// costs little beside judging them.
		pool := make([]int64, 1<<16)
		for i := range pool {
			x = x*6364136223846793005 + 1442695040888963407
			pool[i] = 18_000_000 + int64(x>>33)%int64(s.jitter)
			if x>>60 == 0 {
				pool[i] += int64(x>>40) % 60_000_000
			}
		}
		for i := range n {
			t.Tokens[i], t.Read[i] = 1, int32(i)
			t.StampErrorNs[i] = 50_000 + int64(i%7)
		}
		for r := range s.requests {
			copy(t.DeltaNs, pool[(r*131)%(len(pool)-n):])
			t.DeltaNs[0] = 200_000_000 + int64(r*7919%100_000_000)
			t.Index, t.Due, t.Phase = int64(r), int64(r)*10_000_000, recording.Measured
			t.Sent, t.End = recording.Some(t.Due+20_000), recording.Some(t.Due+5_000_000_000)
			t.Outcome, t.FinishReason = recording.OK, "length"
			t.Prompt.Used, t.Output.Used = recording.Some(int32(512)), recording.Some(int32(n))
			if !yield(t) {
				return
			}
		}
	}
}

// BenchmarkEvaluate judges 100,000 requests of 200 tokens with everything that
// there is to judge, and prints tokens a second and the most memory in use.
func BenchmarkEvaluate(b *testing.B) {
	src := stream{requests: 100_000, tokens: 200, jitter: 4_000_000}
	deadlines, _ := deadline.Parse("quadratic:250ms,40us,1ns")
	objective, _ := ParseObjective("ttft<=2s and tbt.max<=100ms @99%")
	opt := Options{Deadlines: deadlines, SLO: []Objective{objective}}
	var peak uint64
	for b.Loop() {
		done := make(chan bool)
		most := make(chan uint64)
		go func() { most <- watchMemory(done) }()
		if _, err := Evaluate(src, recording.Meta{}, nil, opt); err != nil {
			b.Fatal(err)
		}
		close(done)
		peak = max(peak, <-most)
	}
	tokens := float64(b.N) * float64(src.requests*src.tokens)
	b.ReportMetric(tokens/b.Elapsed().Seconds()/1e6, "Mtokens/s")
	b.ReportMetric(math.Round(float64(peak)/(1<<20)), "MiB")
}

// watchMemory is the most memory that the heap took from the system until done.
func watchMemory(done chan bool) (most uint64) {
	var m runtime.MemStats
	for {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
		}
	}
}
