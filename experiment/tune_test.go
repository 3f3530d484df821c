package experiment

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/recording"
	"fermata/report"
	"fermata/spec"
)

// ⌈log2 8⌉ = 3 rounds with a third of the budget each, shared by 8, 4 and 2 arms.
func TestHalving(t *testing.T) {
	for _, c := range []struct {
		arms, budget int
		want         string
	}{
		{8, 2400, "[{8 100} {4 200} {2 400}]"},
		{5, 300, "[{5 20} {3 33} {2 50}]"},
		{1, 300, "[{1 300}]"},
		{2, 300, "[{2 150}]"},
	} {
		if got := fmt.Sprint(halving(c.arms, c.budget)); got != c.want {
			t.Errorf("%d arms, %d requests: %s, want %s", c.arms, c.budget, got, c.want)
		}
	}
}

const tunedSystem = `model: Llama-3-8B
gpu: H100
host: modern
scheduler: {policy: stall-free, chunk: 2048}
schedule: {rate: 6}
`

// The chunk size that tuning finds is the one that a full grid finds, or one whose
// goodput there is within the interval of the grid's best, at a third of its
// requests at most, default settings and warm-ups counted.
func TestTuneFindsWhatTheGridFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "system.yaml"), []byte(tunedSystem), 0o600); err != nil {
		t.Fatal(err)
	}
	const file = `budget: 2400
slo: ["ttft<=1s and tbt.p99<=40ms @99%%"]
set: {workload.input: "lognormal:1500,4000", workload.output: "lognormal:60,200", schedule.kind: poisson, schedule.rate: "8"}
seed: %d
systems: [{name: a, spec: system.yaml, settings: ["chunk=128,256,512,768,1024,1536,2048,4096"]}]
`
	tune := func(seed int) *report.Tuning {
		what, err := spec.ReadTune(filepath.Join(dir, "tune.yaml"), fmt.Appendf(nil, file, seed), 0)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := Tune(t.Context(), what, Options{Out: filepath.Join(dir, fmt.Sprint("tuned", seed)), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// The grid, with other seeds than the tuning has.
	what, err := spec.ReadTune(filepath.Join(dir, "tune.yaml"), fmt.Appendf(nil, file, 100), 0)
	if err != nil {
		t.Fatal(err)
	}
	systems, err := tunedOf(what)
	if err != nil {
		t.Fatal(err)
	}
	grid, spent := map[string]report.TuneTrial{}, int64(0)
	best := report.TuneTrial{}
	systems[0].rounds = []round{{8, 1200}}
	for n := range 8 {
		p, err := systems[0].trialPlay(combination(systems[0].axes, n), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		done, err := p.into(t.Context(), filepath.Join(dir, "grid", fmt.Sprint(n)), Options{Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		x := report.NewTrial(settingsOf(combination(systems[0].axes, n)), done.Result)
		grid[x.Settings[0].Value] = x
		spent += rowCount(t, done.Dir)
		if best.GoodRPS == nil || *x.GoodRPS > *best.GoodRPS {
			best = x
		}
	}
	for seed := 1; seed <= 3; seed++ {
		s := tune(seed).Systems[0]
		if s.Best == nil || s.Best.Low == nil || !s.Best.Tuned || len(s.Rounds) != 3 {
			t.Fatalf("%+v", s)
		}
		found := grid[s.Best.Settings[0].Value]
		if *found.GoodRPS < *best.Low {
			t.Errorf("seed %d: tuning found %v with %.3g/s in the grid, whose best is %v with %.3g/s from %.3g on", seed, s.Best.Settings, *found.GoodRPS, best.Settings, *best.GoodRPS, *best.Low)
		}
		if s.Effort.Runs != 15 || 3*s.Effort.Requests > spent {
			t.Errorf("seed %d: %d runs, %d requests, the grid %d", seed, s.Effort.Runs, s.Effort.Requests, spent)
		}
		// As it is, with chunks of 2,048, the system is far worse.
		if d := s.Default; d == nil || d.Tuned || *d.GoodRPS > .5**s.Best.GoodRPS {
			t.Errorf("default settings: %+v", d)
		}
		t.Logf("seed %d: %s, %d of %d requests; the grid's best is %s", seed, s.Best.Settings[0].Value, s.Effort.Requests, spent, best.Settings[0].Value)
	}
}

func rowCount(t testing.TB, dir string) (n int64) {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for range rec.Traces(0) {
		n++
	}
	return n
}

func TestRanked(t *testing.T) {
	v := func(good, e2e float64) report.TuneTrial { return report.TuneTrial{GoodRPS: &good, E2EMean: &e2e} }
	all := []report.TuneTrial{{Failed: "did not start"}, v(2, 5), v(3, 9), v(3, 8), v(2, 5)}
	if got := fmt.Sprint(ranked(all)); got != "[3 2 1 4 0]" {
		t.Error(got)
	}
}

// What cannot be tuned is said, with its place.
func TestTuneMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"budget: 100\nslo: [\"error<=1%\"]\nsystems: [{name: a, spec: s.yaml, settings: [\"chunk=1,2\"]}]":                                                 "t:2:7: slo[0]: is not about single requests",
		"budget: 100\nslo: [\"ttft<=1s\"]\nsystems: [{name: a, settings: [\"chunk=1,2\"]}]":                                                                "t:3:11: systems[0]: needs a spec",
		"budget: 100\nslo: [\"ttft<=1s\"]\nsystems: [{name: a, command: \"x {{n}} {{m}}\", settings: [\"n=1,2\"]}]":                                        "systems[0].command: has {{m}}, which no setting gives",
		"budget: 100\nslo: [\"ttft<=1s\"]\nsystems: [{name: a, command: \"x {{n}}\", default: {k: 1}, settings: [\"n=1,2\"]}]":                             "systems[0].default.k: is not among the settings",
		"budget: 100\nslo: [\"ttft<=1s\"]\nsystems: [{name: a/b, spec: s, settings: [\"n=1,2\"]}, {name: a/b, spec: s, ready: 2s, settings: [\"n=1,2\"]}]": "systems[1].ready: is for a command",
		"slo: [\"ttft<=1s\"]\nsystems: [{name: a, spec: s.yaml, settings: [\"chunk=1,2\"]}]":                                                               "budget: must be how many requests",
		"budget: 100\nsystems: [{name: a, spec: s.yaml, settings: [\"chunk=1,2\"]}]":                                                                       "slo: is missing",
	} {
		if _, err := spec.ReadTune("t", []byte(file), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", file, err, want)
		}
	}
}

// A server is ended with what it started; its last words are told where it ends by
// itself, and its silence where it never gets ready.
func TestLaunch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	at := launch{URL: url, Health: "/health", Ready: 30 * time.Second, Log: filepath.Join(dir, "a.log")}
	at.Command = "echo no room for that >&2; exit 3"
	if _, err := at.start(t.Context()); err == nil || !strings.Contains(err.Error(), "ended before it was ready (exit status 3): no room for that") {
		t.Error(err)
	}
	at.Command, at.Ready = "sleep 100 & echo $! >"+filepath.Join(dir, "pid")+"; wait", 2*time.Second
	if _, err := at.start(t.Context()); err == nil || !strings.Contains(err.Error(), "was not ready within 2s: nothing listened at /health") {
		t.Error(err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	// It was killed; a busy machine may take a while to carry that out.
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("what the server started is left: %s", stat)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	at.Ready = 30 * time.Second
	if _, err := at.start(ctx); err == nil || !strings.Contains(err.Error(), ErrInterrupted.Error()) {
		t.Error(err)
	}
}

// Another's server is not measured for one that was to be started.
func TestLaunchBesideAnother(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at := launch{Command: "true", URL: other.URL, Health: "/health", Ready: time.Second, Log: filepath.Join(t.TempDir(), "log")}
	if _, err := at.start(t.Context()); err == nil || !strings.Contains(err.Error(), "something listens at "+strings.TrimPrefix(other.URL, "http://")+" already") {
		t.Error(err)
	}
}
