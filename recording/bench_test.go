package recording

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
)

// benchTraces are requests of tokens arrivals each, in order, as a server under
// load would give them: log-normal gaps, about a thousand in flight.
func benchTraces(requests, tokens int) iter.Seq[Trace] {
	return func(yield func(Trace) bool) {
		rng := rand.New(rand.NewPCG(1, 2))
		var t Trace
		for i := range requests {
			lists := t.Arrivals
			lists.Reset()
			t = Trace{
				Index: int64(i), Phase: Measured, Due: int64(i) * 11e6, Outcome: OK, FinishReason: "stop",
				HTTPStatus: 200, ResponseID: fmt.Sprintf("chatcmpl-%016x", rng.Uint64()), Arrivals: lists, ArrivalSource: ArrivalEvents,
			}
			t.Sent, t.FirstByte = Some(t.Due+rng.Int64N(1e5)), Some(t.Due+170e6+rng.Int64N(1e6))
			t.Prompt = Count{Intended: Some[int32](512), Reported: Some(int32(500 + rng.IntN(20)))}
			t.Output = Count{Intended: Some(int32(tokens)), Reported: Some(int32(tokens)), Counted: Some(int32(tokens))}
			t.Prompt.Settle(false)
			t.Output.Settle(false)
			at := t.Due
			for k := range tokens {
				gap := int64(11e6 * (0.5 + rng.ExpFloat64()/2))
				if k == 0 {
					gap = 180e6 + rng.Int64N(50e6)
				}
				at += gap
				t.DeltaNs = append(t.DeltaNs, gap)
				t.Tokens = append(t.Tokens, 1)
				t.Read = append(t.Read, int32(k+1))
				t.StampErrorNs = append(t.StampErrorNs, 50e3+rng.Int64N(30e3))
				t.Channel = append(t.Channel, ChannelAnswer)
				t.TextBytes = append(t.TextBytes, 1+rng.Int32N(8))
			}
			t.End = Some(at + 1e5)
			if !yield(t) {
				return
			}
		}
	}
}

func BenchmarkArrive(b *testing.B) {
	r, err := Create(b.TempDir(), Meta{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Abandon()
	const streams = 1000
	for i := range int64(streams) {
		if err := r.Begin(&Trace{Index: i, Due: i}); err != nil {
			b.Fatal(err)
		}
	}
	var at atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := at.Add(1)
			a := Arrival{At: n * 1e4, StampErrorNs: 50e3, Tokens: -1, Read: int32(n / streams), TextBytes: 4, Text: true}
			if err := r.Arrive(n%streams, 0, a); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// writeJournal records traces as a run would: arrivals of many requests mixed.
func writeJournal(tb testing.TB, r *Recorder, traces iter.Seq[Trace], inFlight int) {
	type running struct {
		t    Trace
		at   int64
		next int
	}
	var open []running
	step := func() {
		live := open[:0]
		for i := range open {
			q := &open[i]
			if q.next == q.t.Len() {
				if err := r.End(&q.t); err != nil {
					tb.Fatal(err)
				}
				continue
			}
			k := q.next
			q.at += q.t.DeltaNs[k]
			q.next++
			err := r.Arrive(q.t.Index, q.t.Try, Arrival{
				At: q.at, StampErrorNs: q.t.StampErrorNs[k], Tokens: -1,
				Read: q.t.Read[k], TextBytes: q.t.TextBytes[k], Channel: q.t.Channel[k], Text: true,
			})
			if err != nil {
				tb.Fatal(err)
			}
			live = append(live, *q)
		}
		open = live
	}
	for t := range traces {
		if err := r.Begin(&t); err != nil {
			tb.Fatal(err)
		}
		if t.Sent.OK {
			if err := r.Sent(t.Index, t.Try, t.Sent.V, t.Connected); err != nil {
				tb.Fatal(err)
			}
		}
		open = append(open, running{t: t.Clone(), at: t.Due})
		for len(open) > inFlight {
			step()
		}
	}
	for len(open) > 0 {
		step()
	}
}

func BenchmarkCompact(b *testing.B) {
	const requests, tokens = 10000, 200
	for b.Loop() {
		b.StopTimer()
		r, err := Create(filepath.Join(b.TempDir(), "run"), Meta{})
		if err != nil {
			b.Fatal(err)
		}
		writeJournal(b, r, benchTraces(requests, tokens), 500)
		runtime.GC()
		b.StartTimer()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(requests*tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkRead(b *testing.B) {
	const requests, tokens = 20000, 200
	path := filepath.Join(b.TempDir(), RequestsFile)
	if err := WriteParquet(path, Meta{}, benchTraces(requests, tokens)); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want Columns
	}{{"scalars", 0}, {"times", Times}, {"times+reads+errors", Times | Reads | Errors}, {"all", AllColumns}} {
		b.Run(c.name, func(b *testing.B) {
			r, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ReportAllocs()
			for b.Loop() {
				for range r.Traces(c.want) {
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
			}
			b.ReportMetric(float64(requests*tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	const requests, tokens = 10000, 200
	path := filepath.Join(b.TempDir(), RequestsFile)
	traces := make([]Trace, 0, requests)
	for t := range benchTraces(requests, tokens) {
		traces = append(traces, t.Clone())
	}
	for b.Loop() {
		if err := WriteParquet(path, Meta{}, Slice(traces).Traces(AllColumns)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(requests*tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
}
