package load

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

// after calls do once, when the recorder is told of the n-th such call.
func (r *tape) after(n int, call string, do func()) {
	seen := 0
	r.fail = func(c string) error {
		if c == call {
			if seen++; seen == n {
				do()
			}
		}
		return nil
	}
}

func endless(rate float64) schedule.Options {
	return schedule.Options{Kind: schedule.Constant, Rate: rate, Requests: 100_000, Warmup: "0", Drain: "load"}
}

// A stop ends arrivals and keeps what was measured: answers under way are
// awaited.
func TestStop(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, truth := scripted(t, "{ttft: 50ms, gap: 20ms}")
		r := newTape()
		stop := make(chan struct{})
		r.after(10, "end", func() { close(stop) })
		end, _ := offerUntil(t, t.Context(), stop, job(t, url, r, endless(100)))
		if len(r.traces) < 10 || len(r.traces) > 200 {
			t.Errorf("%d requests", len(r.traces))
		}
		var last int64
		for _, tr := range r.traces {
			last = max(last, tr.Due)
			if tr.Outcome != recording.OK && tr.Outcome != recording.NotSent || tr.Outcome == recording.OK && sum(tr.Tokens) != tokens {
				t.Errorf("request %d: %s %q, %d tokens", tr.Index, tr.Outcome, tr.Error, sum(tr.Tokens))
			}
		}
		if end.Interrupted != "interrupted" || end.ByFailures || end.Why != "the run was stopped: interrupted" || end.WindowEnd <= last {
			t.Errorf("%+v; the last request was due at %d", end, last)
		}
		truth.wait(t, 10)
	})
}

// Requests that were due and wait for a place when the run is stopped are not
// sent, and counted.
func TestStopWithWaiters(t *testing.T) {
	t.Parallel()
	url, truth := scripted(t, "{ttft: 60ms}")
	r := newTape()
	stop := make(chan struct{})
	r.after(4, "end", func() { close(stop) })
	j := job(t, url, r, endless(100))
	j.Options.MaxInFlight = 2
	offerUntil(t, t.Context(), stop, j)
	sent, not := 0, 0
	for _, tr := range r.traces {
		switch {
		case tr.Outcome == recording.OK:
			sent++
		case tr.Outcome == recording.NotSent && tr.FailedAt == recording.AtSend && !tr.Sent.OK && !tr.End.OK && tr.Error != "":
			not++
		default:
			t.Errorf("request %d: %s at %q, sent %v", tr.Index, tr.Outcome, tr.FailedAt, tr.Sent)
		}
	}
	if sent < 4 || not == 0 || len(truth.wait(t, sent)) != sent {
		t.Errorf("%d answered, %d not sent", sent, not)
	}
}

// A cut ends everything at once, and what had arrived stays.
func TestCut(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		for _, stopFirst := range []bool{false, true} {
			url, _ := scripted(t, "{gap: 20ms, fail: {kind: stall, after: 3}}")
			r := newTape()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := make(chan struct{})
			r.after(60, "arrive", func() {
				if stopFirst {
					close(stop)
				}
				time.AfterFunc(100*time.Millisecond, cancel)
			})
			began := time.Now()
			end, _ := offerUntil(t, ctx, stop, job(t, url, r, endless(100)))
			if took := time.Since(began); took > graceLimit/2 {
				t.Errorf("it took %s", took)
			}
			partial := 0
			for _, tr := range r.traces {
				switch {
				case tr.Outcome == recording.TruncatedByUs && tr.Error == errStopped.Error():
				case tr.Outcome == recording.NotSent:
					continue
				default:
					t.Errorf("request %d: %s %q", tr.Index, tr.Outcome, tr.Error)
				}
				if n := len(r.told[tr.Index]); n != int(sum(tr.Tokens)) || n > 3 {
					t.Errorf("request %d: %d arrivals recorded, %d in the trace", tr.Index, n, sum(tr.Tokens))
				}
				if tr.FailedAt == recording.AtMidStream && sum(tr.Tokens) == 3 {
					partial++
				}
			}
			if partial == 0 || end.Interrupted != "interrupted" || end.Live.Failed != 0 {
				t.Errorf("%d answers with their three tokens, %+v", partial, end)
			}
		}
	})
}

// An answer that had ended when the run was cut is whole: only its server kept
// the stream open.
func TestCutAfterTheEnd(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{steps: [{at: 0ms, text: a}, {at: 0ms, finish: stop}, {at: 0ms, done: true}, {at: 1ms, close: silent}]}")
		r := newTape()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.after(1, "arrive", func() { time.AfterFunc(300*time.Millisecond, cancel) })
		offerUntil(t, ctx, nil, job(t, url, r, once))
		if tr := r.traces[0]; tr.Outcome != recording.OK {
			t.Errorf("%s %q", tr.Outcome, tr.Error)
		}
	})
}

// A run that mostly fails ends, and says why.
func TestStopIfFailed(t *testing.T) {
	url, _ := scripted(t, "{fail: {}}")
	j := job(t, url, newTape(), endless(200))
	j.Options.StopIfFailed = "50%"
	end, r := offer(t, j)
	if !end.ByFailures || end.Interrupted != TooManyFailed || end.Live.Failed < fewest || len(r.traces) > 1000 {
		t.Errorf("%d requests, %+v", len(r.traces), end)
	}
	for _, wrong := range []string{"50", "-1%", "101%", "half", "NaN%"} {
		j.Options.StopIfFailed = wrong
		if _, err := Run(t.Context(), nil, j); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("stop_if_failed %s: %v", wrong, err)
		}
	}
}

// What cannot be recorded did not happen: the recorder's error ends the run, at
// whatever call it comes.
func TestRecorderFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, call := range []string{"begin", "sent", "first byte", "arrive", "end", "text"} {
		for _, when := range []schedule.Options{endless(100), {Kind: schedule.Closed, Concurrency: 2, Requests: 100_000}} {
			url, _ := scripted(t, "{ttft: 20ms, gap: 5ms}")
			r := newTape()
			n := 0
			r.fail = func(c string) error {
				if c == call {
					if n++; n >= 3 {
						return full
					}
				}
				return nil
			}
			j := job(t, url, r, when)
			j.KeepText = true
			if _, err := Run(t.Context(), nil, j); !errors.Is(err, full) {
				t.Errorf("%s fails: the run's error is %v", call, err)
			}
			if len(r.traces) != len(r.begun) || len(r.traces) > 1000 {
				t.Errorf("%s fails: %d begun, %d ended", call, len(r.begun), len(r.traces))
			}
		}
	}
}

// prompts answers At by a function.
type prompts func(index int64) (workload.Request, bool)

func (p prompts) At(index int64, _, _ int32) (workload.Request, bool) { return p(index) }
func (p prompts) Conversation(i int64) (int64, int, bool)             { return i, 1, true }

// A workload may end before the schedule does; a request that cannot be written
// down is an error.
func TestWorkloadEnds(t *testing.T) {
	url, _ := scripted(t, "{}")
	for _, when := range []schedule.Options{endless(500), {Kind: schedule.Closed, Concurrency: 2, Requests: 100_000, Warmup: "0"}, {Kind: schedule.All, Requests: 100_000}} {
		j := job(t, url, newTape(), when)
		j.Prompts = prompts(func(i int64) (workload.Request, bool) { return workload.Request{Prompt: "hello"}, i < 7 })
		if end, r := offer(t, j); len(r.traces) != 7 || end.Live.MeasuredDone == 0 || end.Interrupted != "" {
			t.Errorf("%s: %d requests, %+v", when.Kind, len(r.traces), end)
		}
		j = job(t, url, newTape(), when)
		j.Prompts = prompts(func(i int64) (workload.Request, bool) {
			return workload.Request{Prompt: "hello", Params: map[string]any{"n": make(chan int)}}, true
		})
		if _, err := Run(t.Context(), nil, j); err == nil || !strings.Contains(err.Error(), `body field "n"`) {
			t.Errorf("%s: a body that is no JSON: %v", when.Kind, err)
		}
	}
}

// A run leaves nothing behind.
func TestNoGoroutineStays(t *testing.T) {
	url, _ := scripted(t, "{ttft: 20ms, gap: 5ms}")
	silent, _ := scripted(t, "{fail: {kind: silent}}")
	refused := "http://" + closedPort(t)
	before := goroutines()
	var group sync.WaitGroup
	for _, c := range []struct {
		url  string
		when schedule.Options
		cut  time.Duration
	}{
		{url, schedule.Options{Kind: schedule.Poisson, Rate: 200, Requests: 20}, 0},
		{url, schedule.Options{Kind: schedule.Closed, Concurrency: 4, Requests: 20}, 0},
		{url, endless(2000), 150 * time.Millisecond},
		{silent, schedule.Options{Kind: schedule.All, Requests: 20}, 150 * time.Millisecond},
		{refused, schedule.Options{Kind: schedule.All, Requests: 20}, 0},
	} {
		group.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.cut > 0 {
				time.AfterFunc(c.cut, cancel)
			}
			if _, err := Run(ctx, nil, job(t, c.url, newTape(), c.when)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	after := goroutines()
	for try := 0; after > before && try < 50; try++ { // connections close in their own time
		after = goroutines()
	}
	if after > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

// goroutines is their number, once it stays the same for a moment.
func goroutines() int {
	n := runtime.NumGoroutine()
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		now := runtime.NumGoroutine()
		if now == n {
			break
		}
		n = now
	}
	return n
}

// A request that is on its way to the transport before it is due, when the run is
// stopped, leaves no trace.
func TestStopBeforeOneIsDue(t *testing.T) {
	stop := make(chan struct{})
	e := &eager{halted: make(chan struct{})}
	j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Constant, Rate: 100, Requests: 1000, Warmup: "0"})
	j.Witness = begins(func(index int64) {
		if index == 5 { // it is entered, and has not left
			close(stop)
			<-e.halted
		}
	})
	j.Transport = func(c wire.Clock) wire.Transport {
		e.stage = stage{clock: c, start: func(s *stage, f wire.Follower) { s.refuse(f) }}
		return e
	}
	end, r := offerUntil(t, t.Context(), stop, j)
	if len(r.traces) != 5 || end.Interrupted == "" || end.Live.MeasuredDue != 5 || end.Live.InFlight != 0 {
		t.Errorf("%d requests, %+v", len(r.traces), end)
	}
}

// An eager transport takes requests before they are due, until it is halted.
type eager struct {
	stage
	once   sync.Once
	halted chan struct{}
}

func (e *eager) Lead() time.Duration { return 50 * time.Millisecond }
func (e *eager) Halt()               { e.once.Do(func() { close(e.halted) }) }

func (e *eager) Start(req *wire.Request, f wire.Follower) wire.Call {
	select {
	case <-e.halted:
		f.End(wire.Result{End: e.clock.Now(), Err: wire.ErrWithdrawn})
		return e
	default:
		return e.stage.Start(req, f)
	}
}

// Begins are a witness of beginnings alone.
type begins func(index int64)

func (b begins) Begun(index, _ int64)   { b(index) }
func (b begins) First(int64, int64)     {}
func (b begins) Silent(int64)           {}
func (b begins) Ended(*recording.Trace) {}
