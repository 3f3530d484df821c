package experiment

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/spec"
)

// simulate plays a spec's text with settings and gives the result and the rows.
func simulate(t testing.TB, text string, settings map[string]string) (*Done, []recording.Trace) {
	t.Helper()
	var sets []conf.Setting
	for path, value := range settings {
		sets = append(sets, conf.Setting{Path: path, Value: value})
	}
	s, err := spec.ReadSim("system.yaml", []byte(text), sets)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	done, err := Simulate(t.Context(), s, Options{Out: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
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
	return done, rows
}

// The published comparisons, with the figures that an independent implementation
// of the same model came to.
func TestPublishedStudies(t *testing.T) {
	for file, values := range map[string]map[string]float64{
		"scheduling-delay.yaml": {
			"scheduling_delay.over25s@prefill-first": .574, "scheduling_delay.p50@prefill-first": 29.2e9, "scheduling_delay.max@prefill-first": 51.9e9,
			"scheduling_delay.over15s@stall-free": 0, "scheduling_delay.p50@stall-free": 6.8e9, "scheduling_delay.max@stall-free": 14.8e9,
			"normalized_latency.p50@prefill-first": .211e9, "normalized_latency.p50@stall-free": .121e9,
			"normalized_latency.p98@prefill-first": .559e9, "normalized_latency.p98@stall-free": .214e9,
		},
		"tbt-crossing.yaml": {
			"tbt.p50@prefill-first": 28.8e6, "tbt.p80@prefill-first": 31.4e6, "tbt.p90@prefill-first": 33.0e6, "tbt.p95@prefill-first": 35.7e6,
			"tbt.p98@prefill-first": 125e6, "tbt.p99@prefill-first": 617e6, "tbt.max@prefill-first": 9364e6, "longest_gap.prefill_iterations@prefill-first": 10,
			"tbt.p80@stall-free": 33.1e6, "tbt.p90@stall-free": 120e6, "tbt.p98@stall-free": 147e6, "tbt.max@stall-free": 178e6,
			"rates.tail_tbt@prefill-first": 1.6, "rates.fluid@prefill-first": 2.8, "rates.fluid@stall-free": 7.7,
		},
		"fluidity-capacity.yaml": {
			"slo1.share@prefill-first": .99, "slo1.met@prefill-first": 1, "slo1.met@stall-free": 1, "slo2.met@prefill-first": 1, "slo2.met@stall-free": 0,
			"tbt.p99@prefill-first": 16.4e6, "tbt.p99@stall-free": 26.9e6,
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("..", "examples", file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := spec.ReadStudy(path, data)
			if err != nil {
				t.Fatal(err)
			}
			for name := range values {
				statistic, _, _ := strings.Cut(name, "@")
				s.Statistics = append(s.Statistics, statistic)
			}
			done, err := Study(t.Context(), s, 0, "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range done.Claims {
				if !c.Holds {
					t.Errorf("%s: %s", c.Text, c.Ours)
				}
			}
			for name, want := range values {
				statistic, system, _ := strings.Cut(name, "@")
				got, _, ok := done.Value(system, statistic)
				if !ok || math.Abs(got-want) > .016*want { // given with two or three digits
					t.Errorf("%s: %g, want %g", name, got, want)
				}
			}
		})
	}
}

// The same spec and seed give the same bytes in every file, wherever and on
// however many processors.
func TestSimulationsRepeat(t *testing.T) {
	const text = `
noise: 0.1
prefix_cache: true
replicas: 2
router: least-loaded
workload: {input: "lognormal:400,1200", output: "uniform:5,60", turns: 3, prefix: {tokens: 64, groups: 4}}
schedule: {rate: 6, requests: 90, think: "exponential:1s"}
`
	sums := func() map[string][32]byte {
		done, _ := simulate(t, text, nil)
		all := map[string][32]byte{}
		files, err := os.ReadDir(done.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(done.Dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name()] = sha256.Sum256(data)
		}
		return all
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := sums()
	runtime.GOMAXPROCS(4)
	again := sums()
	for _, name := range []string{"requests.parquet", "truth_gaps.parquet", "truth_iterations.parquet", "run.yaml", "result.json"} {
		if one[name] == [32]byte{} || one[name] != again[name] {
			t.Errorf("%s differs or is missing", name)
		}
	}
}

// A closed loop keeps its users at work: Little's law says N = X·(R + Z), with the
// throughput X, the mean response time R and the mean think time Z.
func TestClosedLoopInVirtualTime(t *testing.T) {
	const users, think = 12, 2.0
	done, rows := simulate(t, "cost: {flat: {ttft: 30ms, itl: 10ms}}\nscheduler: {max_num_seqs: 4}\n", map[string]string{
		"schedule.concurrency": fmt.Sprint(users), "schedule.think": "exponential:2s", "schedule.requests": "20000", "schedule.warmup": "500",
		"workload.input": "10", "workload.output": "uniform:1,99",
	})
	var response, first, last float64
	n := 0
	inFlight := map[int64]int{}
	for _, r := range rows {
		if r.Phase != recording.Measured {
			continue
		}
		if n == 0 {
			first = float64(r.Due)
		}
		last = float64(r.Due)
		response += float64(r.End.V-r.Due) / 1e9
		inFlight[r.Due]++
		n++
	}
	x := float64(n-1) / (last - first) * 1e9
	if got := x * (response/float64(n) + think); math.Abs(got-users) > .01*users {
		t.Errorf("X (R + Z) = %g, want %d", got, users)
	}
	if n != 20000 || done.Result.Load.InFlightMax > users {
		t.Errorf("%d measured, at most %d in flight", n, done.Result.Load.InFlightMax)
	}
}

// A server that is never idle once the first request has come is busy from then to
// the end of its last iteration, in which the run may be over.
func TestBusyShareOfASimulation(t *testing.T) {
	done, rows := simulate(t, "cost: {flat: {ttft: 300ms, itl: 10ms}}\nscheduler: {max_num_seqs: 1}\n", map[string]string{
		"schedule.kind": "constant", "schedule.rate": "10", "schedule.requests": "5", "schedule.warmup": "0", "workload.input": "10", "workload.output": "1",
	})
	s := done.Result.Simulation
	if end := rows[0].Due + s.Iterations*300e6; s.EndNs != end || !same(s.BusyShare, float64(end-rows[0].Due)/float64(end)) {
		t.Errorf("%d iterations, busy for %g of %d ns from %d on", s.Iterations, s.BusyShare, s.EndNs, rows[0].Due)
	}
}

// One server with a queue: Pollaczek and Khinchine's mean wait
// λ E[S²] / (2 (1 − ρ)), with S = TTFT + (n − 1)·ITL and n uniform.
func TestQueueInVirtualTime(t *testing.T) {
	const rate, low, high = 9.0, 1, 19
	_, rows := simulate(t, "cost: {flat: {ttft: 20ms, itl: 6ms}}\nscheduler: {max_num_seqs: 1}\n", map[string]string{
		"schedule.rate": fmt.Sprint(rate), "schedule.requests": "60000", "schedule.warmup": "1000", "schedule.drain": "quiet",
		"workload.input": "10", "workload.output": fmt.Sprintf("uniform:%d,%d", low, high), "seed": "4",
	})
	var m1, m2 float64
	for n := low; n <= high; n++ {
		s := .020 + float64(n-1)*.006
		m1, m2 = m1+s/(high-low+1), m2+s*s/(high-low+1)
	}
	want := rate * m2 / 2 / (1 - rate*m1)
	var batches []float64 // means of 50 batches: their spread is the error of the mean
	sum, k := 0.0, 0
	for _, r := range rows {
		if r.Phase != recording.Measured {
			continue
		}
		sum += float64(r.ServerQueue.V) / 1e9
		if k++; k == 1200 {
			batches = append(batches, sum/1200)
			sum, k = 0, 0
		}
	}
	mean, square := 0.0, 0.0
	for _, b := range batches {
		mean += b / float64(len(batches))
	}
	for _, b := range batches {
		square += (b - mean) * (b - mean)
	}
	n := float64(len(batches))
	if se := math.Sqrt(square / (n - 1) / n); math.Abs(mean-want) > 3*se {
		t.Errorf("mean wait %g s over %g batches, want %g ± %g", mean, n, want, 3*se)
	}
}

// Conversations go on in virtual time as they do in real time: turn by turn, each
// after the answer before and the time to think, with all that was said.
func TestConversationsInVirtualTime(t *testing.T) {
	done, rows := simulate(t, "prefix_cache: true\n", map[string]string{
		"workload.turns": "4", "workload.input": "100", "workload.output": "32", "schedule.rate": "3", "schedule.requests": "80", "schedule.think": "500ms",
		"schedule.warmup": "0",
	})
	type key struct {
		session string
		turn    int32
	}
	all := map[key]recording.Trace{}
	for _, r := range rows {
		all[key{r.Session, r.Turn}] = r
	}
	later := 0
	for _, r := range rows {
		if want := int32(r.Turn)*(100+32) + 100; r.Prompt.Intended.V != want {
			t.Errorf("turn %d: a prompt of %d tokens, want %d", r.Turn, r.Prompt.Intended.V, want)
		}
		if before, ok := all[key{r.Session, r.Turn - 1}]; ok {
			later++
			if r.Due != before.End.V+5e8 {
				t.Errorf("turn %d is due %d ns after the answer before", r.Turn, r.Due-before.End.V)
			}
			if r.Outcome == recording.OK && r.Cached.V < before.Prompt.Intended.V {
				t.Errorf("turn %d: %d tokens cached of %d before", r.Turn, r.Cached.V, before.Prompt.Intended.V)
			}
		}
	}
	if later < 50 || done.Result.Load.Measured != 80 {
		t.Errorf("%d later turns, %d measured", later, done.Result.Load.Measured)
	}
}

// What can't run says so once, before anything does.
func TestSimulationsThatCannotRun(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"model: Llama-3-70B\nschedule: {rate: 1}\n", "take more GPUs"},
		{"max_model_len: 4000\nworkload: {input: 5000, output: 10}\nschedule: {rate: 1}\n", "can never be served: together they exceed max_model_len"},
		{"memory: {tokens: 1000}\nworkload: {input: 900, output: 200}\nschedule: {rate: 1}\n", "or give the system a larger memory.tokens"},
		{"schedule: {rate: 1}\nscheduler: {policy: odd}\n", "scheduler.policy"},
		{"workload: {file: nowhere.csv}\n", "workload.dataset"},
		{"workload: {input: 10}\n", "schedule.rate"},
	} {
		s, err := spec.ReadSim("system.yaml", []byte(c.text), nil)
		dir := filepath.Join(t.TempDir(), "run")
		if err == nil {
			_, err = Simulate(t.Context(), s, Options{Out: dir})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q left a folder", c.text)
		}
	}
	g := Grid{File: "system.yaml", Data: []byte("schedule: {rate: 2, requests: 20}\nworkload: {input: 100, output: 10}\n")}
	for _, c := range []struct {
		axes  []string
		seeds int
		want  string
	}{
		{[]string{"chunk=512,1024"}, 0, "is of policy stall-free"},
		{[]string{"tp=1,3"}, 0, "must divide"},
		{[]string{"tp"}, 0, "must be KEY=VALUE"},
		{[]string{"rate=1,2", "schedule.rate=3,4"}, 0, "gives schedule.rate a second time"},
		{[]string{"rate=2,3,2.0"}, 0, "has the value 2.0 twice"},
		{[]string{"policy=static,static"}, 0, "has the value static twice"},
		{[]string{"max_num_seqs=0,4"}, 0, "scheduler.max_num_seqs: must be more than 0"},
		{[]string{"odd.key=1"}, 0, "odd"},
		{[]string{"seed=1,2"}, 100_000, "more than"},
		{[]string{"max_model_len=90,200"}, 0, "with max_model_len=90"},
	} {
		g.Axes, g.Seeds = c.axes, c.seeds
		if _, err := g.Simulate(context.Background(), "test", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.axes, err, c.want)
		}
	}
}

// A grid has every combination, the last axis fastest, and the same numbers as
// single runs.
func TestGrid(t *testing.T) {
	text := "schedule: {rate: 20, requests: 60}\nworkload: {input: 300, output: 20}\nscheduler: {policy: stall-free, chunk: 512}\n"
	g := Grid{File: "system.yaml", Data: []byte(text), Seeds: 3, Axes: []string{"chunk=128,256", "rate=10,20"}, Statistics: []string{"ttft_due.p50", "tbt.p80"}}
	study, err := g.Simulate(t.Context(), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, p := range study.Points {
		seen = append(seen, p.Settings[0].Value+" "+p.Settings[1].Value)
		if len(p.Seeds) != 3 || p.Seeds[2] != 3 || p.Statistics[1].Median == nil {
			t.Errorf("%+v", p)
		}
	}
	if got := strings.Join(seen, ", "); got != "128 10, 128 20, 256 10, 256 20" {
		t.Error(got)
	}
	done, _ := simulate(t, text, map[string]string{"scheduler.chunk": "256", "schedule.rate": "10", "seed": "2"})
	var want *metrics.Quantile
	for i, q := range done.Result.Metrics.TTFTDue.Quantiles {
		if q.P < .51 && q.P > .49 {
			want = &done.Result.Metrics.TTFTDue.Quantiles[i]
		}
	}
	if got := study.Points[2].Statistics[0].Runs[1].Value; want == nil || math.Abs(*got-want.Value) > .5 {
		t.Errorf("TTFT p50 of seed 2 in the grid is %g ns, alone %v", *got, want)
	}
}

// The story of a silence: a request that decodes while a long prompt comes in
// before it under prefill-first waits for exactly that prompt.
func TestWhy(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "w.csv")
	if err := os.WriteFile(trace, []byte("arrival_s,prompt_tokens,output_tokens\n0,10,50\n0.2,4000,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := spec.ReadSim(filepath.Join(dir, "s.yaml"), []byte("scheduler: {policy: prefill-first}\nworkload: {file: w.csv}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Simulate(t.Context(), s, Options{Out: filepath.Join(dir, "run")})
	if err != nil {
		t.Fatal(err)
	}
	why, err := Why(done.Dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if sum := why.OwnNs + why.PrefillNs + why.PreemptedNs + why.RecomputeNs + why.TransferNs + why.MixedNs + why.WaitingNs; sum != why.GapNs || why.PromptTokens != 4000 || len(why.Culprits) != 1 || why.Culprits[0] != 1 || why.Iterations != 1 {
		t.Errorf("%+v", why)
	}
	story := why.Story
	for _, want := range []string{"Request 0 was silent for", "1 iteration that only prefilled, 1 prompt of other requests (4,000 prompt tokens: request 1)", "its own decode step"} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in %q", want, story)
		}
	}
	if _, err := Why(done.Dir, 9); err == nil {
		t.Error("there is no request 9")
	}
	if _, err := Why(filepath.Join(dir, "nothere"), 0); err == nil || !strings.Contains(err.Error(), "there is no folder or file") {
		t.Errorf("%v", err)
	}
}
