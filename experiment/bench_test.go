package experiment

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
)

// BenchmarkJudge goes from Parquet to the printed result, for 100,000 requests
// of 200 tokens. Run it alone to have its peak memory:
//
//	go test -run '^$' -bench Judge -benchtime 1x ./experiment
func BenchmarkJudge(b *testing.B) {
	const requests, tokens = 100_000, 200
	path := filepath.Join(b.TempDir(), "requests.parquet")
	if err := recording.WriteParquet(path, recording.Meta{}, made(requests, tokens)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		r, err := Judge(path, nil, "bench")
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.Terminal(&out, []*metrics.Result{r}, report.TerminalOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*requests*tokens/b.Elapsed().Seconds()/1e6, "Mtokens/s")
	b.ReportMetric(peakMiB(), "peak-MiB")
}

// made are answers with log-normal gaps, a freeze in one of twenty.
func made(requests, tokens int) iter.Seq[recording.Trace] {
	return func(yield func(recording.Trace) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		var t recording.Trace
		due := int64(0)
		for i := range requests {
			due += int64(r.ExpFloat64() * 11e6)
			t.Arrivals.Reset()
			t.Index, t.Phase, t.Due, t.Outcome, t.FinishReason = int64(i), recording.Measured, due, recording.OK, "length"
			t.Sent = recording.Some(due + 50_000)
			end := due
			for k := range tokens {
				gap := int64(18e6 + r.NormFloat64()*1e6)
				switch {
				case k == 0:
					gap = int64(200e6 + r.ExpFloat64()*50e6)
				case k == 60 && i%20 == 0:
					gap += 2e9
				}
				end += gap
				t.DeltaNs = append(t.DeltaNs, gap)
				t.Tokens = append(t.Tokens, 1)
				t.Read = append(t.Read, int32(k+2))
				t.StampErrorNs = append(t.StampErrorNs, 50_000)
				t.Channel = append(t.Channel, 0)
				t.TextBytes = append(t.TextBytes, 5)
			}
			t.End = recording.Some(end)
			t.Prompt.Reported, t.Output.Reported = recording.Some(int32(512)), recording.Some(int32(tokens))
			t.Output.Counted = t.Output.Reported
			t.Prompt.Settle(true)
			t.Output.Settle(false)
			t.ArrivalSource = recording.ArrivalEvents
			if !yield(t) {
				return
			}
		}
	}
}

// peakMiB is the most memory that this process has had, 0 where the system does
// not say.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	if err != nil {
		return 0
	}
	return kb / 1024
}
