package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/recording"
	"fermata/serve"
	"fermata/spec"
)

// simulatedRun offers the settings' load to a simulator behind a port and gives
// the run, its rows and the server's truth by the answers' ids.
func simulatedRun(t testing.TB, system string, scale float64, settings map[string]string) (*Done, []recording.Trace, map[string]serve.Truth) {
	t.Helper()
	engine, err := serve.NewSim("system.yaml", []byte(system), serve.SimOptions{TimeScale: scale})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve.New(engine, serve.Options{Truth: &log}).Serve(ctx, ln) }()
	sets := []conf.Setting{{Path: "target.url", Value: "http://" + ln.Addr().String()}}
	for path, value := range settings {
		sets = append(sets, conf.Setting{Path: path, Value: value})
	}
	dir := filepath.Join(t.TempDir(), "run")
	s, err := spec.Read("", nil, sets)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Run(t.Context(), s, Options{Out: dir, Version: "test"})
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]serve.Truth{}
	for line := range bytes.Lines(log.Bytes()) {
		var one serve.Truth
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		truth[one.ID] = one
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var rows []recording.Trace
	for tr := range rec.Traces(recording.AllColumns) {
		rows = append(rows, tr.Clone())
	}
	return done, rows, truth
}

// p99 is the value of rank ⌈.99 n⌉.
func p99(values []float64) float64 {
	slices.Sort(values)
	return values[int(math.Ceil(.99*float64(len(values))))-1]
}

// What the client recorded of a simulator that runs ten times as fast is what
// that did: beyond the stated errors of the stamps and the lateness that the
// server itself reports, delays, first tokens and gaps differ by less than half a
// millisecond in all but one of a hundred. A machine that gives neither of them a
// processor for some milliseconds, between the clock and the write, may be asked
// five times.
func TestRecordingIsTheTruth(t *testing.T) {
	calm.TryWithin(t, time.Millisecond/2, func(t testing.TB) {
		seconds := 4.0
		if os.Getenv("FERMATA_SLOW") != "" {
			seconds = 60
		}
		for try := range 5 {
			worst := recordedBeyondTruth(t, seconds)
			if worst < time.Millisecond/2 {
				return
			}
			t.Logf("try %d: %v beyond at p99", try, worst)
		}
		t.Error("five runs, and in none of them the recording was the truth")
	})
}

// recordedBeyondTruth is the largest p99 of how far delays, first tokens and gaps
// lie beyond what is stated.
func recordedBeyondTruth(t testing.TB, seconds float64) time.Duration {
	t.Helper()
	const scale, rate = 10, 3.0
	const system = `
model: Yi-34B
tp: 2
host: "2024"
scheduler: {policy: prefill-first, max_num_batched_tokens: 16384, max_num_seqs: 16}
`
	requests := fmt.Sprint(int(seconds * scale * rate))
	done, rows, truth := simulatedRun(t, system, scale, map[string]string{
		"schedule.rate": fmt.Sprint(rate), "schedule.requests": requests, "schedule.warmup": "0", "schedule.drain": "quiet",
		"workload.input": "lognormal:700,2000", "workload.output": "uniform:10,60", "workload.max_total": "16000", "seed": "5",
	})
	var delays, firsts, gaps, lateness []float64
	waited := 0
	for _, r := range rows {
		w, ok := truth[r.ResponseID]
		if !ok || r.Outcome != recording.OK || w.Simulated == nil || len(w.Events) != r.Len() {
			t.Fatalf("request %d: %s, %d arrivals of %d events, known to the server: %t", r.Index, r.Outcome, r.Len(), len(w.Events), ok)
		}
		late := func(i int) float64 { return math.Max(0, float64(w.Events[i].SentNs-w.Events[i].PlannedNs)) }
		m := w.Simulated
		received := m.ZeroWallNs + m.ArrivalNs/scale
		bump := math.Max(0, float64(received-w.ReceivedNs)) // the system took it in so much later
		delay := float64(*m.FirstScheduledNs-m.ArrivalNs) / scale
		delays = append(delays, math.Abs(float64(r.ServerQueue.V)-delay)-bump)
		if delay > 1e6 {
			waited++
		}
		ttft := float64(r.Due + r.DeltaNs[0] - r.ServerReceived.V) // the way there belongs to the network
		firsts = append(firsts, math.Abs(ttft-float64(*m.FirstTokenNs-m.ArrivalNs)/scale)-bump-late(0)-float64(r.StampErrorNs[0]))
		for i := range w.Events {
			lateness = append(lateness, late(i))
			if i > 0 {
				planned := float64(w.Events[i].PlannedNs - w.Events[i-1].PlannedNs)
				gaps = append(gaps, math.Abs(float64(r.DeltaNs[i])-planned)-late(i)-late(i-1)-float64(r.StampErrorNs[i]+r.StampErrorNs[i-1]))
			}
		}
	}
	if waited < len(rows)/20 {
		t.Errorf("%d of %d requests waited: the system was not loaded", waited, len(rows))
	}
	worst := time.Duration(0)
	for name, beyond := range map[string][]float64{"scheduling delay": delays, "TTFT": firsts, "gaps": gaps} {
		v := p99(beyond)
		worst = max(worst, time.Duration(v))
		t.Logf("%s: %.0f µs beyond the stated error and lateness at p99, of %d", name, v/1e3, len(beyond))
	}
	t.Logf("the server was %.0f µs late at p99; %d of %d requests waited", p99(lateness)/1e3, waited, len(rows))

	// Judged in simulated time: what was written as 3 a second was offered so.
	if w := done.Result.Window; w.TimeScale != scale {
		t.Errorf("time scale %g", w.TimeScale)
	}
	if got := *done.Result.Load.OfferedRPS; math.Abs(got-rate) > .25*rate {
		t.Errorf("%g requests a second were offered, want about %g", got, rate)
	}
	if a := done.Result.Load.Arrivals; a == nil || a.AskedMeanNs == nil || math.Abs(float64(*a.AskedMeanNs)-1e9/rate) > 1 {
		t.Errorf("arrivals %+v", a)
	}
	return worst
}

// A server that runs at another speed than somebody says is not measured.
func TestTimeScalesMustAgree(t *testing.T) {
	s := &spec.Run{}
	s.Load.TimeScale = 5
	if _, err := timeScale(s, []*target{{scale: 10}}); err == nil {
		t.Error("×10 was taken for ×5")
	}
	if scale, err := timeScale(s, []*target{{}}); err != nil || !same(scale, 5) {
		t.Errorf("a server that says nothing: %g, %v", scale, err)
	}
	s.Load.TimeScale = 0
	if _, err := timeScale(s, []*target{{scale: 10}, {}}); err == nil {
		t.Error("two targets at different speeds")
	}
	if scale, err := timeScale(s, []*target{{scale: 10}, {scale: 10}}); err != nil || !same(scale, 10) || !same(s.Load.TimeScale, 10) {
		t.Errorf("%g, %v", scale, err)
	}
}
