package experiment

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/report"
	"fermata/serve"
)

// Of M/M/1 at service rate 1 the mean response time is 1/(1 - ρ): power ρ(1 - ρ) is
// highest at half of it.
func TestKneeOfMM1(t *testing.T) {
	var points []report.SweepPoint
	for _, rho := range []float64{.9, .1, .5, .3, .7} {
		x := rho
		points = append(points, report.SweepPoint{Label: "rate", Value: &x, RequestsPerS: &x, E2E: &report.SweepTimes{Mean: 1e9 / (1 - rho)}})
		points[len(points)-1].Label += string(rune('0' + int(10*rho)))
	}
	k := knee(points)
	if k == nil || k.At != "rate5" || k.End {
		t.Errorf("%+v", k)
	}
	if p := points[2].Power; p == nil || math.Abs(*p-.25) > 1e-12 {
		t.Error("power is ρ(1 - ρ)")
	}
	if k := knee(points[:2]); k != nil {
		t.Errorf("two loads have a knee: %+v", k)
	}
	if k := knee(points[:3]); k == nil || !k.End && k.At != "rate5" {
		t.Errorf("%+v", k)
	}
}

// Goodput goes up to the first load that fails: 8 holds only by luck after 4 did not.
func TestGoodputOfASweep(t *testing.T) {
	point := func(rate, share, low, high float64) report.SweepPoint {
		return report.SweepPoint{Label: "r", Value: &rate, OfferedRPS: &rate, TokensPerS: &rate, Steady: true, Shares: []report.SweepShare{{Objective: "all", Share: share, Low: &low, High: &high}}}
	}
	points := []report.SweepPoint{point(8, .995, .98, 1), point(4, .97, .95, .98), point(2, .992, .985, .997), point(1, 1, .996, 1)}
	g := goodputAt(points, 2, "all", .99)
	if g.RPSPerGPU == nil || math.Abs(*g.RPSPerGPU-1) > 1e-12 || math.Abs(*g.SureRPSPerGPU-.5) > 1e-12 || math.Abs(*g.FailsRPSPerGPU-2) > 1e-12 {
		t.Errorf("%+v", g)
	}
	points[0].Steady = false
	if g := goodputAt(points, 2, "all", .9); math.Abs(*g.RPSPerGPU-2) > 1e-12 || math.Abs(*g.FailsRPSPerGPU-4) > 1e-12 {
		t.Errorf("a load that piles up holds: %+v", g)
	}
	if g := goodputAt(points, 2, "none", .9); g.RPSPerGPU != nil || g.At != "" {
		t.Errorf("%+v", g)
	}
	lost(&g, f64(61), f64(100))
	if math.Abs(*g.Loss-.39) > 1e-12 || math.Abs(*g.CostFactor-1/.61) > 1e-12 {
		t.Errorf("%+v", g)
	}
}

func f64(v float64) *float64 { return &v }

func TestFrontier(t *testing.T) {
	point := func(x, ttft, tbt float64) report.SweepPoint {
		return report.SweepPoint{TokensPerS: &x, TTFT: &report.SweepTimes{P99: ttft}, TBT: &report.SweepTimes{P99: tbt}}
	}
	points := []report.SweepPoint{point(10, 1, 1), point(20, 2, 1), point(15, 3, 1), point(25, 3, 1), point(5, 1, .5), {}}
	markFrontier(points)
	for i, want := range []bool{true, true, false, true, true, false} {
		if points[i].Frontier != want {
			t.Errorf("point %d: %v", i, points[i].Frontier)
		}
	}
}

const sweptSystem = `model: Llama-3-8B
gpu: H100
tp: 2
scheduler: {policy: stall-free, chunk: 512}
workload: {input: 1024, output: 32}
schedule: {requests: 300}
slo: ["ttft<=1s and tbt.p99<=60ms @99%", "e2e<=1m @99%"]
`

// A sweep in virtual time keeps what it measured: begun again it plays only what is
// new, and another spec in the same folder is refused.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	var said []string
	dir := filepath.Join(t.TempDir(), "sweep")
	o := Options{Out: dir, Version: "test", Say: func(f string, _ ...any) { said = append(said, f) }}
	subject := Subject{File: "system.yaml", Data: []byte(sweptSystem)}
	sweep := Sweep{Subject: subject, Rates: []string{"2", "200"}, Offline: true}
	first, _, err := sweep.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if first.GPUs != 2 || first.From != "spec" || len(first.Points) != 3 || first.Points[1].Seed != first.Points[0].Seed+1 || first.Points[0].Kept {
		t.Fatalf("%+v", first)
	}
	// At 200 requests a second everything piles up, and the server gives what it gives
	// offline.
	low, high, offline := first.Points[0], first.Points[1], first.Points[2]
	if share, _, _ := low.ShareOf("all"); share == nil || *share < .99 {
		t.Errorf("%+v", low)
	}
	if share, _, _ := high.ShareOf("all"); share == nil || *share > .9 {
		t.Errorf("%+v", high)
	}
	g := first.Goodput[len(first.Goodput)-1]
	if g.Objective != "all" || g.At != "rate-2" || g.Loss == nil || math.Abs(*g.Loss-(1 - *low.TokensPerS / *offline.TokensPerS)) > 1e-12 {
		t.Errorf("%+v", g)
	}
	// One that did not end is moved aside and played again.
	if err := os.Remove(filepath.Join(dir, "rate-200", "result.json")); err != nil {
		t.Fatal(err)
	}
	sweep.Rates = append(sweep.Rates, "4")
	sweep.Offline = false
	again, _, err := sweep.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := again.Points
	if len(p) != 3 || !p[0].Kept || p[1].Kept || p[2].Kept || *p[1].TokensPerS != *high.TokensPerS || !exists(filepath.Join(dir, "rate-200.unfinished", "requests.parquet")) {
		t.Errorf("%+v", p)
	}
	sweep.Sets = []conf.Setting{{Path: "scheduler.chunk", Value: "1024"}}
	if _, _, err := sweep.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "under another spec") {
		t.Error(err)
	}
	sweep.Sets = nil
	sweep.Rates = []string{"2", "2"}
	if _, _, err := sweep.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "rate-2 is given twice") {
		t.Error(err)
	}
	sweep.Rates = []string{"-1"}
	if _, _, err := sweep.Run(t.Context(), o); err == nil {
		t.Error("a negative rate")
	}
	if len(said) == 0 || !strings.Contains(said[0], "%s") {
		t.Error("no budget")
	}
}

// All loads of a sweep with a common seed have the same prompts.
func TestSweepWithACommonSeed(t *testing.T) {
	t.Parallel()
	sweep := Sweep{Subject: Subject{File: "system.yaml", Data: []byte(sweptSystem), Sets: []conf.Setting{{Path: "requests", Value: "40"}}}, Users: []string{"1", "3"}, Common: true}
	out, _, err := sweep.Run(t.Context(), Options{Out: filepath.Join(t.TempDir(), "s"), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if p := out.Points; len(p) != 2 || p[0].Seed != p[1].Seed || out.Knob != "concurrency" || p[0].Label != "users-1" || p[0].OfferedRPS == nil && p[0].RequestsPerS == nil {
		t.Errorf("%+v", out)
	}
	// One user has one request in flight, three have three.
	for i, want := range []float64{1, 3} {
		if v := out.Points[i].InFlightMean; v == nil || math.Abs(*v-want) > .2*want {
			t.Errorf("%d users: %v in flight", i, v)
		}
	}
}

// scripted is the address of a server that answers by a script until the test ends.
func scripted(t testing.TB, script string) string {
	t.Helper()
	url, _ := serving(t, script)
	return url
}

// serving is scripted with a way to end it before.
func serving(t testing.TB, script string) (url string, end func()) {
	t.Helper()
	engine, err := serve.NewScript("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve.New(engine, serve.Options{}).Serve(ctx, ln) }()
	end = sync.OnceFunc(func() { stop(); <-served })
	t.Cleanup(end)
	return "http://" + ln.Addr().String(), end
}

// A sweep of a real server: each load is a run in a folder of its own.
func TestSweepOfAServer(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url := scripted(t, "models: {m: {ttft: 2ms, gap: 1ms, tokens: max}}\n")
		var sets []conf.Setting
		for path, value := range map[string]string{"target.url": url, "target.model": "m", "workload.input": "12", "workload.output": "3", "schedule.requests": "20", "slo": "[ttft<=1m @50%]"} {
			sets = append(sets, conf.Setting{Path: path, Value: value})
		}
		dir := filepath.Join(t.TempDir(), "sweep")
		out, _, err := (&Sweep{Subject: Subject{Sets: sets}, Rates: []string{"100", "50"}, GPUs: 4}).Run(t.Context(), Options{Out: dir, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Points) != 2 || out.Points[0].Requests != 20 || out.GPUs != 4 || out.From != "flag" || out.Points[0].Seed == out.Points[1].Seed {
			t.Errorf("%+v", out)
		}
		for _, p := range out.Points {
			if r, err := Judge(filepath.Join(dir, p.Folder), nil, "test"); err != nil || r.Load.Measured != 20 || *r.Run.Seed != p.Seed {
				t.Errorf("%s: %v", p.Folder, err)
			}
		}
		if _, _, err := (&Sweep{Subject: Subject{Sets: sets[:0:0]}, Rates: []string{"1"}}).Run(t.Context(), Options{}); err == nil {
			t.Error("nobody is asked")
		}
	})
}
