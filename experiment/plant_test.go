package experiment

import (
	"context"
	"math"
	"net"
	"path/filepath"
	"testing"
	"time"

	"fermata/capacity"
	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/recording"
	"fermata/serve"
	"fermata/spec"
)

// simulator is a simulated system behind a port, and its address.
func simulator(t testing.TB, system string, scale float64) string {
	t.Helper()
	engine, err := serve.NewSim("system.yaml", []byte(system), serve.SimOptions{TimeScale: scale})
	if err != nil {
		t.Fatal(err)
	}
	return served(t, engine)
}

// served is a server in this process, until the test ends.
func served(t testing.TB, engine serve.Engine) string {
	t.Helper()
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func(ln net.Listener) { over <- serve.New(engine, serve.Options{}).Serve(ctx, ln) }(ln)
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// readSettings is a run file of settings.
func readSettings(t testing.TB, settings map[string]string) *spec.Run {
	t.Helper()
	var sets []conf.Setting
	for path, value := range settings {
		sets = append(sets, conf.Setting{Path: path, Value: value})
	}
	s, err := spec.Read("", nil, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func predicate(t testing.TB, objective string, scale float64) *metrics.Predicate {
	t.Helper()
	o, err := metrics.ParseObjective(objective)
	if err != nil {
		t.Fatal(err)
	}
	p, err := metrics.NewPredicate(o, metrics.Options{}, scale)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rowsOf are the rows of a recording, which must be whole.
func rowsOf(t testing.TB, dir string) (rows []recording.Trace, meta recording.Meta) {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for tr := range rec.Traces(recording.AllColumns) {
		rows = append(rows, tr.Clone())
	}
	if err := rec.Err(); err != nil {
		t.Fatal(err)
	}
	return rows, rec.Meta()
}

// A system that serves one request at a time in .2 s of a time that runs twenty
// times as fast. What the plant tells of its requests is what the recording holds:
// who missed, how many were under way, when they were asked, at which rates.
func TestServerPlant(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		const scale = 20
		url := simulator(t, "cost: {flat: {ttft: 20ms, itl: 20ms}}\nscheduler: {max_num_seqs: 1}\n", scale)
		dir := filepath.Join(t.TempDir(), "run")
		s := readSettings(t, map[string]string{
			"target.url": url, "workload.input": "16", "workload.output": "10", "schedule.rate": "1", "seed": "3",
		})
		p, err := readyPlant(t.Context(), s, Options{Out: dir, Version: "test", Say: t.Logf}, predicate(t, "ttft<=300ms@p90", scale), 0)
		if err != nil {
			t.Fatal(err)
		}
		burst, err := p.Burst(t.Context(), 60)
		if err != nil {
			t.Fatal(err)
		}
		if rps, ok := capacity.ServedRate(burst.Ends); !ok || math.Abs(rps-5) > .75 || burst.Asked != 60 || burst.Tokens != 600 || burst.Turned != 0 {
			t.Errorf("%.4g/s of %+v", rps, burst)
		}
		if now := p.Now(); now != (capacity.Reading{}) {
			t.Errorf("before anything was asked: %+v", now)
		}
		send := func(n int, rate float64) {
			t.Helper()
			if err := p.Send(t.Context(), n, rate); err != nil {
				t.Fatal(err)
			}
		}
		var told []capacity.Outcome
		collect := func() { told = append(told, p.Outcomes()...) }
		send(30, 3)
		collect()
		send(20, 8) // a queue
		if now := p.Now(); now.Sent != 50 || now.Backlog < 5 {
			t.Errorf("with more than can be served: %+v", now)
		}
		collect()
		if err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		collect()
		if now := p.Now(); len(told) != 50 || now.Backlog != 0 || now.Tokens != 500 {
			t.Errorf("%d outcomes after draining, %+v", len(told), now)
		}
		resumed := p.Now().Ns
		p.Measure(true)
		send(30, 4)
		if err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		collect()
		end, ok, err := p.finish()
		if err != nil || !ok || end.Interrupted != "" {
			t.Fatalf("%+v %v %v", end, ok, err)
		}
		if err := p.Send(t.Context(), 1, 1); err == nil {
			t.Error("a load that is over took a request")
		}
		rows, meta := rowsOf(t, dir)
		if len(rows) != 80 || len(told) != 80 {
			t.Fatalf("%d rows, %d outcomes", len(rows), len(told))
		}
		for i, tr := range rows {
			ahead := 0
			for _, before := range rows[:i] {
				if before.End.V > tr.Due {
					ahead++
				}
			}
			missed := tr.Outcome != recording.OK || tr.DeltaNs[0]*scale > 300e6
			if o := told[i]; o.Missed != missed || o.Ahead != ahead || o.At != tr.Sent.V*scale && o.At != tr.Due*scale || o.Failed || o.Turned {
				t.Errorf("request %d: %+v, %d ahead, missed %v, sent %d", i, o, ahead, missed, tr.Sent.V*scale)
			}
			if phase := recording.Phase("warmup"); i >= 50 && tr.Phase != recording.Measured || i < 50 && tr.Phase != phase {
				t.Errorf("request %d is of phase %s", i, tr.Phase)
			}
		}
		if got := float64(rows[29].Due) * scale / 1e9; got < 4 || got > 20 { // 30 at 3/s take 10 s, sd 1.8
			t.Errorf("30 requests at 3/s took %.3g s", got)
		}
		if rows[50].Due*scale < resumed {
			t.Errorf("the first request after the pause was due at %d, in it", rows[50].Due*scale)
		}
		if meta.WindowStart.V != rows[50].Due || meta.WindowEnd.V != rows[79].Due+1 {
			t.Errorf("the window is [%d, %d)", meta.WindowStart.V, meta.WindowEnd.V)
		}
		r, err := Judge(dir, nil, "test")
		if err != nil {
			t.Fatal(err)
		}
		if r.Load.Measured != 30 || math.Abs(*r.Load.OfferedRPS-4) > 3 {
			t.Errorf("%+v", r.Load)
		}
		again := readRun(t, dir)
		if o := again.Schedule; math.Abs(o.Rate-4) > 1e-9 || o.Requests != 30 || o.Warmup != "50" {
			t.Errorf("the run file says %+v", o)
		}
	})
}

func readRun(t testing.TB, dir string) *spec.Run {
	t.Helper()
	a, err := reopen(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.rec.Close()
	return a.spec
}

// A request without its first token at the bound has missed, long before it ends,
// and holds up nobody behind it.
func TestServerPlantKnowsEarly(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		engine, err := serve.NewScript("test.yaml", []byte("models: {m: {ttft: 1200ms, gap: 1ms, tokens: 3}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := readSettings(t, map[string]string{"target.url": served(t, engine), "target.model": "m", "schedule.rate": "1", "seed": "3"})
		p, err := readyPlant(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "run"), Say: t.Logf}, predicate(t, "ttft<=50ms", 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), 20, 1000); err != nil {
			t.Fatal(err)
		}
		var early []capacity.Outcome
		for now := p.Now(); now.Backlog == 20 && len(early) < 20; now = p.Now() {
			early = append(early, p.Outcomes()...)
			time.Sleep(time.Millisecond)
		}
		if len(early) != 20 {
			t.Errorf("%d outcomes while all were under way", len(early))
		}
		for i, o := range early {
			if !o.Missed || o.Failed || o.Ahead != i {
				t.Errorf("%d: %+v", i, o)
			}
		}
		if err := p.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if more := p.Outcomes(); len(more) > 0 {
			t.Errorf("%d more outcomes", len(more))
		}
		if _, _, err := p.finish(); err != nil {
			t.Error(err)
		}
	})
}

// Who stops while a search sends need not wait for it, and the recording is whole.
func TestServerPlantStops(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		engine, err := serve.NewScript("test.yaml", []byte("models: {m: {ttft: 5ms, gap: 1ms, tokens: 3}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		dir, stop := filepath.Join(t.TempDir(), "run"), make(chan struct{})
		s := readSettings(t, map[string]string{"target.url": served(t, engine), "target.model": "m", "schedule.rate": "1", "seed": "3"})
		p, err := readyPlant(t.Context(), s, Options{Out: dir, Say: t.Logf, Stop: stop}, predicate(t, "ttft<=50ms", 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), 10, 1000); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(50*time.Millisecond, func() { close(stop) })
		if err := p.Send(t.Context(), 1000, 1); err == nil {
			t.Error("1000 requests were sent in a moment")
		}
		if end, ok, err := p.finish(); err != nil || !ok || end.Interrupted != "interrupted" {
			t.Errorf("%+v %v %v", end, ok, err)
		}
		if rows, meta := rowsOf(t, dir); len(rows) < 10 || len(rows) > 20 || meta.Interrupted == "" {
			t.Errorf("%d rows, %+v", len(rows), meta)
		}
	})
}
