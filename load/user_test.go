package load

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

// A stage is a transport whose requests end as the test has it.
type stage struct {
	clock wire.Clock
	start func(s *stage, f wire.Follower)
}

func (s *stage) Start(_ *wire.Request, f wire.Follower) wire.Call {
	if err := f.Due(); err != nil {
		f.End(wire.Result{End: s.clock.Now(), Step: recording.AtConnect, Err: err})
		return s
	}
	s.start(s, f)
	return s
}

// refuse ends a request as one that nobody listens to.
func (s *stage) refuse(f wire.Follower) {
	f.End(wire.Result{End: s.clock.Now(), Step: recording.AtConnect, Err: syscall.ECONNREFUSED})
}

func (s *stage) Exchange(context.Context, *wire.Request, wire.Sink) wire.Result {
	panic("a run only starts requests")
}

func (s *stage) Lead() time.Duration { return 0 }
func (s *stage) Halt()               {}
func (s *stage) Close()              {}
func (s *stage) Cut(error)           {}

// staged has a job's requests go to a stage.
func staged(j *Job, start func(s *stage, f wire.Follower)) {
	j.Transport = func(c wire.Clock) wire.Transport { return &stage{clock: c, start: start} }
}

// Requests that fail before their sending returns follow one another, and not one
// from within the other.
func TestFailuresDoNotStack(t *testing.T) {
	for _, users := range []int{1, 5} {
		const requests = 10_000
		j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: users, Requests: requests, Warmup: "0", Drain: "quiet"})
		deepest := 0
		var mu sync.Mutex
		staged(&j, func(s *stage, f wire.Follower) {
			var callers [100]uintptr
			depth := runtime.Callers(0, callers[:])
			mu.Lock()
			deepest = max(deepest, depth)
			mu.Unlock()
			s.refuse(f)
		})
		_, r := offer(t, j)
		if len(r.traces) != requests || deepest > 30 {
			t.Errorf("%d users: %d requests of %d, the deepest call was the %d-th", users, len(r.traces), requests, deepest)
		}
		for i, tr := range phases(r)[recording.Measured] {
			if tr.Index != int64(i) || tr.Outcome != recording.Refused || i > 0 && tr.Due < r.traces[i-1].Due {
				t.Fatalf("request %d: index %d, %s, due at %d", i, tr.Index, tr.Outcome, tr.Due)
			}
		}
	}
}

// Users stop at the answer that is one failure too many, and those who have none under
// way with them.
func TestUsersStopWhenTooManyFail(t *testing.T) {
	for _, users := range []int{1, 7} {
		j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: users, Requests: 10_000, Warmup: "0"})
		j.Options.StopIfFailed = "50%"
		staged(&j, func(s *stage, f wire.Follower) { s.refuse(f) })
		end, r := offer(t, j)
		if n := len(r.traces); n != fewest || !end.ByFailures || end.Live.Failed != fewest {
			t.Errorf("%d users: %d requests, %+v", users, n, end)
		}
	}
}

// Each request has the session of its row, or of its query.
func TestRowsHaveTheirSessions(t *testing.T) {
	for _, streams := range []int{1, 2} {
		j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 3, Streams: streams, Requests: 40, Warmup: "0", Drain: "quiet"})
		j.Prompts = rowsWithSessions{j.Prompts}
		staged(&j, func(s *stage, f wire.Follower) { s.refuse(f) })
		_, r := offer(t, j)
		if len(r.traces) != 40 {
			t.Errorf("%d requests", len(r.traces))
		}
		for _, tr := range r.traces {
			want := strconv.FormatInt(tr.Index/int64(streams), 10)
			if tr.Index%4 == 0 {
				want = "row " + strconv.FormatInt(tr.Index, 10)
			} else if streams == 1 {
				want = ""
			}
			if tr.Session != want {
				t.Errorf("%d streams: request %d has the session %q, not %q", streams, tr.Index, tr.Session, want)
			}
		}
	}
}

// Of rowsWithSessions every fourth has one.
type rowsWithSessions struct{ Prompts }

func (p rowsWithSessions) At(index int64, promptTokens, outputTokens int32) (q workload.Request, ok bool) {
	q, ok = p.Prompts.At(index, promptTokens, outputTokens)
	if index%4 == 0 {
		q.Session = "row " + strconv.FormatInt(index, 10)
	}
	return q, ok
}

// A run of fewer requests than it has users begins as soon as they stand ready.
func TestFewerRequestsThanUsers(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 50, Requests: 3, Warmup: "0", Drain: "quiet"})
		staged(&j, func(s *stage, f wire.Follower) { s.refuse(f) })
		began := time.Now()
		started := began
		j.Started = func(wire.Clock) { started = time.Now() }
		if _, r := offer(t, j); len(r.traces) != 3 || started.Sub(began) > 100*time.Millisecond {
			t.Errorf("%d requests; it began after %v", len(r.traces), started.Sub(began))
		}
	})
}

// Users are no goroutines, whether they wait for their answers or think.
func TestUsersAreNoGoroutines(t *testing.T) {
	const users, others = 400, 30 // the latter of the run itself
	for _, answered := range []bool{false, true} {
		j := job(t, "http://127.0.0.1:1", newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: users, Requests: 100_000, Warmup: "0", Think: "1h"})
		var left sync.WaitGroup
		left.Add(users)
		var mu sync.Mutex
		var held []func()
		staged(&j, func(s *stage, f wire.Follower) {
			if answered {
				s.refuse(f)
			} else {
				mu.Lock()
				held = append(held, func() { s.refuse(f) })
				mu.Unlock()
			}
			left.Done()
		})
		stop := make(chan struct{})
		before := runtime.NumGoroutine()
		go func() {
			left.Wait()
			if n := runtime.NumGoroutine() - before; n > others {
				t.Errorf("%d goroutines for %d users, all answered: %v", n, users, answered)
			}
			close(stop)
			for _, end := range held {
				end()
			}
		}()
		if _, r := offerUntil(t, t.Context(), stop, j); len(r.traces) != users {
			t.Errorf("%d requests", len(r.traces))
		}
	}
}

// Many users who think ask again in the order in which their answers ended, each
// after its think time to the nanosecond.
func TestManyThink(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		const users, think = 20, 60 * ms
		url, _ := scripted(t, "{ttft: 5ms, gap: 1ms}")
		j := job(t, url, newTape(), schedule.Options{Concurrency: users, Requests: 5 * users, Warmup: "0", Drain: "quiet", Think: "60ms"})
		_, r := offer(t, j)
		all := phases(r)[recording.Measured]
		var ends []int64
		for _, tr := range all {
			ends = append(ends, tr.End.V)
		}
		slices.Sort(ends)
		for k, tr := range all[users:] {
			if want := ends[k] + think; tr.Due != want || tr.Sent.V < tr.Due {
				t.Errorf("request %d was due at %d and left at %d; answer %d ended %d before that", tr.Index, tr.Due, tr.Sent.V, k, want)
			}
		}
		if len(all) != 5*users {
			t.Errorf("%d requests", len(all))
		}
	})
}

// A limit holds users back as it does an open loop's requests.
func TestUsersWaitForAPlace(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 10ms, gap: 1ms, fail: {every: 5}}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 8, Requests: 60, Warmup: "0", Drain: "quiet"})
		j.Options.MaxInFlight = 3
		end, r := offer(t, j)
		if n := most(r.traces); n != 3 || len(r.traces) != 60 || end.Live.Failed != 12 {
			t.Errorf("%d requests, %d failed, %d in flight together", len(r.traces), end.Live.Failed, n)
		}
		var held int
		for _, tr := range r.traces {
			if tr.Sent.V-tr.Due > 5*ms {
				held++
			}
		}
		if held < 30 { // 5 of 8 users wait at any time
			t.Errorf("%d requests waited for a place", held)
		}
	})
}

// A query is over when the last of its requests is, however often that is tried.
func TestQueriesRetry(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		const streams = 3
		url, _ := scripted(t, "{ttft: 5ms, gap: 1ms, fail: {every: 4, status: 503}}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 1, Streams: streams, Requests: 4 * streams, Warmup: "0", Drain: "quiet"})
		j.Options.Retries = 3
		end, r := offer(t, j)
		of := r.tried(t)
		tries, ended := 0, int64(0)
		for query := range int64(len(of) / streams) {
			last := ended
			for i := range int64(streams) {
				all := of[query*streams+i]
				tries += len(all)
				if all[0].Due < last || all[0].Due != of[query*streams][0].Due || all[len(all)-1].Outcome != recording.OK {
					t.Errorf("query %d, due at %d, its first request at %d, the answers before ended at %d: %s", query, all[0].Due, of[query*streams][0].Due, last, all[len(all)-1].Outcome)
				}
				ended = max(ended, all[len(all)-1].End.V)
			}
		}
		if len(of) != 4*streams || tries != 15 || end.Live.Failed != 0 { // 12 answers, and the 4th, 8th and 12th that failed
			t.Errorf("%d requests, %d tries, %+v", len(of), tries, end.Live)
		}
	})
}

// slowWriter takes its time for every request from a certain one on.
type slowWriter struct {
	Prompts
	from int64
	wait func()
}

func (w slowWriter) At(index int64, promptTokens, outputTokens int32) (workload.Request, bool) {
	if index >= w.from {
		w.wait()
	}
	return w.Prompts.At(index, promptTokens, outputTokens)
}

// A user for whom no request stands ready waits, and holds up nobody else's answer.
func TestUsersWaitForBodies(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 20ms, gap: 20ms, fail: {every: 2}}")
		r := newTape()
		enough := make(chan struct{})
		r.after(2, "end", sync.OnceFunc(func() { close(enough) })) // of both users' first answers
		j := job(t, url, r, schedule.Options{Kind: schedule.Closed, Concurrency: 2, Requests: 10, Warmup: "0", Drain: "quiet"})
		j.Prompts = slowWriter{j.Prompts, 2, func() {
			select {
			case <-enough:
			case <-time.After(10 * time.Second):
				t.Error("an answer did not end while the other user's request was not ready")
			}
		}}
		offer(t, j)
		all := phases(r)[recording.Measured]
		ok := 0
		for _, tr := range all {
			if tr.Outcome == recording.OK {
				ok++
			}
		}
		if len(all) != 10 || ok != 5 {
			t.Errorf("%d requests, %d answered", len(all), ok)
		}
		first := min(all[0].End.V, all[1].End.V)
		if due := all[2].Due; due != first {
			t.Errorf("the first who was free was due at %d, want %d, when the answer ended", due, first)
		}
	})
}

// Users who wait for their first bodies are due since they came, and make nobody else due
// later than that is: what this machine takes for bodies is lateness.
func TestFirstBodiesAreLate(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		const users = 8
		url, _ := scripted(t, "{ttft: 5ms, gap: 1ms}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: users, Requests: 2 * users, Warmup: "0", Drain: "quiet"})
		j.Prompts = slowWriter{j.Prompts, 0, func() { time.Sleep(60 * time.Millisecond) }}
		_, r := offer(t, j)
		all := phases(r)[recording.Measured]
		if len(all) != 2*users {
			t.Fatalf("%d requests", len(all))
		}
		var ends []int64
		for i, tr := range all {
			if i < users && tr.Due > all[0].Due+3*ms {
				t.Errorf("user %d came with the first, who was due at %d, and was due at %d", i, all[0].Due, tr.Due)
			}
			ends = append(ends, tr.End.V)
		}
		slices.Sort(ends)
		if last := all[users-1]; last.Sent.V-last.Due < 100*ms {
			t.Errorf("the last of the users left %d ns after it was due", last.Sent.V-last.Due)
		}
		for i, tr := range all[users:] {
			if tr.Due != ends[i] {
				t.Errorf("the %d. who was free was due at %d, want %d, when the answer ended", i, tr.Due, ends[i])
			}
		}
	})
}
