package load

import (
	"cmp"
	"net/http"
	"slices"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
	"fermata/workload"
)

// tried are the rows of a tape, each request's tries in order. It checks what
// holds of all: tries count from 0, have the place of the first, and come one after
// the other.
func (r *tape) tried(t testing.TB) map[int64][]recording.Trace {
	t.Helper()
	of := map[int64][]recording.Trace{}
	slices.SortFunc(r.traces, func(a, b recording.Trace) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Try, b.Try))
	})
	for _, tr := range r.traces {
		before := of[tr.Index]
		if int(tr.Try) != len(before) {
			t.Errorf("request %d: try %d after %d others", tr.Index, tr.Try, len(before))
		}
		if n := len(before); n > 0 {
			last := before[n-1]
			if tr.Due != last.Due || tr.Phase != last.Phase || tr.Session != last.Session || tr.Turn != last.Turn || tr.Output.Intended != last.Output.Intended {
				t.Errorf("request %d: try %d is %+v, the one before %+v", tr.Index, tr.Try, tr, last)
			}
			if !worthAnother(&last) || tr.Sent.OK && tr.Sent.V < last.End.V {
				t.Errorf("request %d: try %d left at %v, after %s at %v", tr.Index, tr.Try, tr.Sent, last.Outcome, last.End)
			}
		}
		of[tr.Index] = append(before, tr)
	}
	return of
}

// Every second request that reaches the server fails. Three at once are one
// failure, whose second try is the fourth request and fails too.
func TestRetries(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, truth := scripted(t, "{ttft: 20ms, gap: 1ms, fail: {every: 2, status: 503}}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.All, Requests: 3})
		j.Options.Retries, j.Options.MaxInFlight, j.Seed = 2, 3, 7
		end, r := offer(t, j)
		truth.wait(t, 5)
		counts := map[int]int{}
		for index, tries := range r.tried(t) {
			counts[len(tries)]++
			last := tries[len(tries)-1]
			waited := int64(0)
			for i, tr := range tries[:len(tries)-1] {
				wait := int64(backOff(7, index, int32(i)))
				if tr.HTTPStatus != 503 || tries[i+1].Sent.V < tr.End.V+wait {
					t.Errorf("request %d: try %d left at %d, %d ns after a status %d at %d", index, i+1, tries[i+1].Sent.V, wait, tr.HTTPStatus, tr.End.V)
				}
				waited += wait
			}
			if last.Outcome != recording.OK || sum(last.Tokens) != tokens || at(&last)[0]-last.Due < waited+20*ms {
				t.Errorf("request %d: %s, %d tokens, the first %d ns after its due time; it waited for %d ns", index, last.Outcome, sum(last.Tokens), at(&last)[0]-last.Due, waited)
			}
		}
		if counts[1] != 2 || counts[3] != 1 || len(r.traces) != 5 {
			t.Errorf("requests by their tries: %v", counts)
		}
		if l := end.Live; l.Due != 3 || l.Sent != 3 || l.Finished != 3 || l.MeasuredDone != 3 || l.Failed != 0 {
			t.Errorf("%+v", l)
		}
	})
}

// Without being asked for, and once they are used up, tries end.
func TestTriesEnd(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{0, 2} {
		s := &teller{fails: func(int) bool { return true }, after: "0"}
		j := job(t, s.start(t)+"/v1/chat/completions", newTape(), schedule.Options{Kind: schedule.All, Requests: 4})
		j.Options.Retries = retries
		end, r := offer(t, j)
		for index, tries := range r.tried(t) {
			if len(tries) != retries+1 || tries[retries].Outcome != recording.HTTPError {
				t.Errorf("request %d had %d tries of %d", index, len(tries), retries+1)
			}
		}
		if end.Live.Failed != 4 || end.Live.Finished != 4 || len(s.got()) != 4*(retries+1) {
			t.Errorf("%+v, %d requests", end.Live, len(s.got()))
		}
	}
	j := job(t, "http://"+closedPort(t), newTape(), once)
	j.Options.Retries = 1
	if _, r := offer(t, j); len(r.tried(t)[0]) != 2 || r.traces[1].Outcome != recording.Refused {
		t.Errorf("nobody listens: %+v", r.traces)
	}
}

// A server says how long to wait, longer here than any first back-off; meanwhile the place in flight is another's.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		s := &teller{fails: func(n int) bool { return n == 1 }, after: "0.8"}
		j := job(t, s.start(t)+"/v1/chat/completions", newTape(), schedule.Options{Kind: schedule.All, Requests: 2})
		j.Options.Retries, j.Options.MaxInFlight = 1, 1
		_, r := offer(t, j)
		for index, tries := range r.tried(t) {
			switch {
			case tries[len(tries)-1].Outcome != recording.OK:
				t.Errorf("request %d: %s", index, tries[len(tries)-1].Outcome)
			case len(tries) == 2 && tries[1].Sent.V-tries[0].End.V < 800*ms:
				t.Errorf("tried again after %d ns", tries[1].Sent.V-tries[0].End.V)
			case len(tries) == 2:
				if other := r.tried(t)[1-index][0]; other.End.V > tries[1].Sent.V {
					t.Errorf("the other request ended at %d, after the second try had left at %d", other.End.V, tries[1].Sent.V)
				}
			}
		}
		if len(r.traces) != 3 {
			t.Errorf("%d tries", len(r.traces))
		}
	})
}

// Half of all tries fail, and every request ends well: no reason to stop the run.
func TestFailuresAreThoseOfLastTries(t *testing.T) {
	t.Parallel()
	s := &teller{fails: func(n int) bool { return n%2 == 1 }, after: "0"}
	j := job(t, s.start(t)+"/v1/chat/completions", newTape(), schedule.Options{Concurrency: 1, Requests: 20, Warmup: "0", Drain: "quiet"})
	j.Options.Retries, j.Options.StopIfFailed = 1, "10%"
	end, r := offer(t, j)
	if end.ByFailures || end.Interrupted != "" || end.Live.MeasuredDone != 20 || len(r.traces) != 40 {
		t.Errorf("%+v, %d tries", end, len(r.traces))
	}
	r.tried(t)
}

// Who waits for another try when the run is stopped, or cut, gives up: the try
// before stands.
func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	s := &teller{fails: func(int) bool { return true }, after: "3600"}
	r := newTape()
	stop := make(chan struct{})
	r.after(3, "end", func() { close(stop) })
	j := job(t, s.start(t)+"/v1/chat/completions", r, schedule.Options{Kind: schedule.All, Requests: 3})
	j.Options.Retries = 5
	end, _ := offerUntil(t, t.Context(), stop, j)
	for index, tries := range r.tried(t) {
		if len(tries) != 1 || tries[0].Outcome != recording.HTTPError {
			t.Errorf("request %d: %d tries, %s", index, len(tries), tries[0].Outcome)
		}
	}
	if end.Interrupted != "interrupted" || end.Live.Finished != 3 || end.Live.Failed != 3 || len(r.traces) != 3 {
		t.Errorf("%+v, %d tries", end, len(r.traces))
	}
}

// Nobody waits for the tries of requests that are not measured.
func TestDrainWaitsForNoTries(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		for _, when := range []schedule.Options{
			{Kind: schedule.Constant, Rate: 20, Requests: 6, Warmup: "2", Drain: "quiet"},
			{Concurrency: 2, Requests: 6, Warmup: "2", Drain: "quiet"},
		} {
			s := &teller{fails: func(n int) bool { return n == 1 }, after: "3600"}
			j := job(t, s.start(t)+"/v1/chat/completions", newTape(), when)
			j.Options.Retries = 1
			end, r := offer(t, j)
			if end.Interrupted != "" || end.Live.MeasuredDone != 6 || len(r.traces) != 8 {
				t.Errorf("%+v, %d tries", end, len(r.traces))
			}
			r.tried(t)
		}
	})
}

// A conversation goes on from the last try of a turn.
func TestConversationsRetry(t *testing.T) {
	t.Parallel()
	s := &teller{fails: func(n int) bool { return n%2 == 0 }, after: "0.05"}
	what := workload.Options{Input: workload.Tokens(8), Output: workload.Tokens(tokens), Turns: 3}
	j := talking(t, s, "chat", what, schedule.Options{Concurrency: 1, Requests: 3, Warmup: "0", Drain: "quiet"})
	j.Options.Retries = 1
	end, r := offer(t, j)
	of := r.tried(t)
	if len(of[0]) != 1 || len(of[1]) != 2 || len(of[2]) != 2 || end.Live.MeasuredDone != 3 {
		t.Fatalf("%d, %d and %d tries; %+v", len(of[0]), len(of[1]), len(of[2]), end.Live)
	}
	for i := 1; i < 3; i++ {
		before, tr := of[int64(i-1)], of[int64(i)][1]
		if tr.Due != before[len(before)-1].End.V || tr.Outcome != recording.OK || tr.Turns != recording.Some[int32](3) {
			t.Errorf("turn %d: %s, due %d; the turn before ended at %v", i, tr.Outcome, tr.Due, before[len(before)-1].End)
		}
	}
	// Both tries of the last turn hold what the last try of the turn before said.
	bodies := s.got()
	if n := len(bodies); n != 5 || string(bodies[3]["messages"]) != string(bodies[4]["messages"]) {
		t.Errorf("%d requests; the last two are %s and %s", n, bodies[3]["messages"], bodies[4]["messages"])
	}
}

func TestWorthAnother(t *testing.T) {
	t.Parallel()
	begun := recording.Arrivals{DeltaNs: []int64{5}, Tokens: []int32{1}}
	for _, c := range []struct {
		trace recording.Trace
		want  bool
	}{
		{recording.Trace{Outcome: recording.OK, HTTPStatus: 200}, false},
		{recording.Trace{Outcome: recording.Refused}, true},
		{recording.Trace{Outcome: recording.ConnectFailed}, true},
		{recording.Trace{Outcome: recording.TLSFailed}, false},
		{recording.Trace{Outcome: recording.Timeout}, false},
		{recording.Trace{Outcome: recording.StreamCut}, true},
		{recording.Trace{Outcome: recording.StreamCut, HTTPStatus: 200, Arrivals: begun}, false},
		{recording.Trace{Outcome: recording.StreamError, HTTPStatus: 200}, false},
		{recording.Trace{Outcome: recording.Empty, HTTPStatus: 200}, false},
		{recording.Trace{Outcome: recording.TruncatedByUs}, false},
		{recording.Trace{Outcome: recording.NotSent}, false},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 400}, false},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 429}, true},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 500}, true},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 501}, false},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 502}, true},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 503}, true},
		{recording.Trace{Outcome: recording.HTTPError, HTTPStatus: 504}, true},
	} {
		if got := worthAnother(&c.trace); got != c.want {
			t.Errorf("%s, status %d, %d arrivals: %v", c.trace.Outcome, c.trace.HTTPStatus, c.trace.Len(), got)
		}
	}
}

// 0.5 s, 1 s, 2 s, … each within a quarter, evenly: the mean of many is the middle,
// within four of its standard errors.
func TestBackOff(t *testing.T) {
	t.Parallel()
	const n = 4000
	for try, middle := range []float64{0.5, 1, 2, 4} {
		mean := 0.0
		for i := range int64(n) {
			wait := backOff(3, i, int32(try)).Seconds()
			if wait < 0.75*middle || wait > 1.25*middle {
				t.Fatalf("%v s after try %d", wait, try)
			}
			mean += wait / n
		}
		// An even distribution of width w has standard deviation w/sqrt(12).
		if off := (mean - middle) / (0.5 * middle / 3.4641 / 63.2456); off < -4 || off > 4 {
			t.Errorf("try %d: the mean is %v s, %v standard errors away", try, mean, off)
		}
	}
	here := backOff(3, 5, 1)
	if here != backOff(3, 5, 1) || here == backOff(4, 5, 1) || here == backOff(3, 6, 1) {
		t.Error("the wait follows from seed, request and try")
	}
	if backOff(3, 5, 20) != time.Minute {
		t.Errorf("after many tries %s", backOff(3, 5, 20))
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	const in9s, server = "Wed, 04 Mar 2026 05:06:16 GMT", "Wed, 04 Mar 2026 05:06:11 GMT"
	for _, c := range []struct {
		header http.Header
		want   time.Duration
		ok     bool
	}{
		{http.Header{}, 0, false},
		{http.Header{"Retry-After": {"2"}}, 2 * time.Second, true},
		{http.Header{"Retry-After": {" 0.25 "}}, 250 * time.Millisecond, true},
		{http.Header{"Retry-After": {"0"}}, 0, true},
		{http.Header{"Retry-After": {"86400"}}, time.Minute, true},
		{http.Header{"Retry-After": {"1e300"}}, time.Minute, true},
		{http.Header{"Retry-After": {"-1"}}, 0, false},
		{http.Header{"Retry-After": {"NaN"}}, 0, false},
		{http.Header{"Retry-After": {"soon"}}, 0, false},
		{http.Header{"Retry-After": {in9s}}, 9 * time.Second, true},
		{http.Header{"Retry-After": {in9s}, "Date": {server}}, 5 * time.Second, true},
		{http.Header{"Retry-After": {server}, "Date": {in9s}}, 0, true},
		{http.Header{"Retry-After": {"Sun, 29 Nov 2020 00:00:00 GMT"}}, 0, true}, // past: at once
		{http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond, true},
	} {
		if got, ok := retryAfter(c.header, now); got != c.want || ok != c.ok {
			t.Errorf("%v: %s, %v; want %s, %v", c.header, got, ok, c.want, c.ok)
		}
	}
}
