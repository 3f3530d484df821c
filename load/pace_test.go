package load

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
)

// phases are the traces of each phase, in order of their index.
func phases(r *tape) map[recording.Phase][]recording.Trace {
	slices.SortFunc(r.traces, func(a, b recording.Trace) int { return cmp.Compare(a.Index, b.Index) })
	m := map[recording.Phase][]recording.Trace{}
	for _, tr := range r.traces {
		m[tr.Phase] = append(m[tr.Phase], tr)
	}
	return m
}

// most is the greatest number of requests that were in flight together.
func most(traces []recording.Trace) int {
	type edge struct {
		at int64
		by int
	}
	var edges []edge
	for _, tr := range traces {
		if tr.Sent.OK {
			edges = append(edges, edge{tr.Sent.V, 1}, edge{tr.End.V, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, top := 0, 0
	for _, e := range edges {
		now += e.by
		top = max(top, now)
	}
	return top
}

// An open loop keeps offering while the server hangs: that is when a closed one
// would look away.
func TestOpenLoopDoesNotWait(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, truth := scripted(t, "{fail: {kind: mute}}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Constant, Rate: 100, Requests: 25, Warmup: "0", Drain: "quiet"})
		j.Options.Timeout = time.Second
		end, r := offer(t, j)
		all := phases(r)[recording.Measured]
		if len(all) != 25 || len(truth.wait(t, 25)) != 25 || most(all) != 25 {
			t.Errorf("%d requests, %d together", len(all), most(all))
		}
		for i, tr := range all {
			if tr.Due != int64(i)*10*ms || tr.Sent.V < tr.Due {
				t.Errorf("request %d was due at %d and left at %d", i, tr.Due, tr.Sent.V)
			}
			if tr.Outcome != recording.Timeout || tr.End.V < tr.Due+1000*ms {
				t.Errorf("request %d: %s after %d ns", i, tr.Outcome, tr.End.V-tr.Due)
			}
		}
		if end.WindowStart != 0 || end.WindowEnd != 250*ms || end.Why != "the next request was due" || end.Interrupted != "" {
			t.Errorf("%+v", end)
		}
	})
}

// A limit holds requests back, counts those that wait, and leaves their due times
// alone: waiting is part of what the reader feels.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 100ms}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Constant, Rate: 100, Requests: 16, Warmup: "0", Drain: "quiet"})
		j.Options.MaxInFlight = 1
		_, r := offer(t, j)
		all := phases(r)[recording.Measured]
		if most(all) != 1 {
			t.Errorf("%d in flight together, at most 1 was allowed", most(all))
		}
		slices.SortFunc(all, func(a, b recording.Trace) int { return cmp.Compare(a.Sent.V, b.Sent.V) })
		for k, tr := range all {
			if tr.Due != tr.Index*10*ms || tr.Outcome != recording.OK {
				t.Errorf("request %d: due at %d, %s", tr.Index, tr.Due, tr.Outcome)
			}
			if least := int64(k+1) * 100 * ms; at(&tr)[0] < least {
				t.Errorf("the %d-th to leave had its token at %d ns, before %d", k, at(&tr)[0], least)
			}
		}
		if s := r.samples[0]; s.TimeNs < 900*ms || s.Waiting < 1 || s.InFlight > 1 || s.Due != 16 {
			t.Errorf("after a second: %+v", s)
		}
	})
}

// A closed loop keeps so many in flight, no more, and asks again at once.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, truth := scripted(t, "{ttft: 40ms}")
		for _, drain := range []string{"load", "quiet"} {
			before := len(truth.wait(t, 0))
			j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 3, Requests: 12, Warmup: "4", Drain: drain})
			end, r := offer(t, j)
			p := phases(r)
			if len(p[recording.Warmup]) != 4 || len(p[recording.Measured]) != 12 || (len(p[recording.Drain]) > 0) != (drain == "load") {
				t.Errorf("%s: %d, %d, %d requests a phase", drain, len(p[recording.Warmup]), len(p[recording.Measured]), len(p[recording.Drain]))
			}
			if n := most(r.traces); n != 3 {
				t.Errorf("%s: %d in flight together, want 3", drain, n)
			}
			var last int64
			for i, tr := range r.traces {
				if tr.Index != int64(i) || tr.Outcome != recording.OK && tr.Phase != recording.Drain {
					t.Errorf("%s: request %d is number %d, %s %q", drain, tr.Index, i, tr.Outcome, tr.Error)
				}
				if tr.Phase == recording.Measured {
					last = max(last, tr.End.V)
				}
			}
			if end.WindowStart != p[recording.Measured][0].Due || end.WindowEnd != last || end.Why != "the last measured request had ended" {
				t.Errorf("%s: %+v, want the window [%d, %d)", drain, end, p[recording.Measured][0].Due, last)
			}
			truth.wait(t, before+16)
		}
	})
}

// The requests of a query are due together, and the next query waits for all of
// them.
func TestQueries(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 40ms}")
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 1, Streams: 4, Requests: 10, Warmup: "0", Drain: "quiet"})
		_, r := offer(t, j)
		if len(r.traces) != 12 || most(r.traces) != 4 {
			t.Fatalf("%d requests, %d in flight together; want 3 queries of 4", len(r.traces), most(r.traces))
		}
		slices.SortFunc(r.traces, func(a, b recording.Trace) int { return cmp.Compare(a.Index, b.Index) })
		var ended, due int64
		for i, tr := range r.traces {
			if i%4 == 0 {
				if due = tr.Due; due < ended {
					t.Errorf("query %d is due at %d, before the last answer of the one before at %d", i/4, due, ended)
				}
			}
			if tr.Due != due || tr.Session != strconv.Itoa(i/4) || tr.Outcome != recording.OK || tr.Phase != recording.Measured {
				t.Errorf("request %d: due %d (its query %d), session %q, %s", i, tr.Due, due, tr.Session, tr.Outcome)
			}
			ended = max(ended, tr.End.V)
		}
	})
}

// All at once: every request is due at time zero.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 500ms}")
		end, r := offer(t, job(t, url, newTape(), schedule.Options{Kind: schedule.All, Requests: 20}))
		if len(r.traces) != 20 || most(r.traces) != 20 || end.Live.MeasuredDone != 20 || end.Live.Sent != 20 {
			t.Errorf("%d requests, %d together, %+v", len(r.traces), most(r.traces), end.Live)
		}
		var last int64
		for _, tr := range r.traces {
			last = max(last, tr.End.V)
			if tr.Due != 0 || tr.Phase != recording.Measured || tr.Outcome != recording.OK || tr.DeltaNs[0] < 500*ms {
				t.Errorf("request %d: due at %d, %s, first token after %d ns", tr.Index, tr.Due, tr.Outcome, tr.DeltaNs[0])
			}
		}
		if end.WindowStart != 0 || end.WindowEnd != last {
			t.Errorf("window [%d, %d), want [0, %d)", end.WindowStart, end.WindowEnd, last)
		}
	})
}

// During the drain, load goes on until the last measured answer has ended, so
// that the tail is served under the same load; quiet stops at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 400ms}")
		for _, drain := range []string{"load", "quiet"} {
			j := job(t, url, newTape(), schedule.Options{Kind: schedule.Constant, Rate: 50, Requests: 6, Warmup: "2", Drain: drain})
			end, r := offer(t, j)
			p := phases(r)
			if len(p[recording.Warmup]) != 2 || len(p[recording.Measured]) != 6 {
				t.Errorf("%s: %d and %d requests a phase", drain, len(p[recording.Warmup]), len(p[recording.Measured]))
			}
			if end.WindowStart != 40*ms || end.WindowEnd != 160*ms {
				t.Errorf("%s: window [%d, %d)", drain, end.WindowStart, end.WindowEnd)
			}
			var last int64
			for _, tr := range p[recording.Measured] {
				last = max(last, tr.End.V)
				if tr.Outcome != recording.OK || tr.Due < end.WindowStart || tr.Due >= end.WindowEnd {
					t.Errorf("%s: request %d, due at %d: %s %q", drain, tr.Index, tr.Due, tr.Outcome, tr.Error)
				}
			}
			extra := p[recording.Drain]
			if drain == "quiet" {
				if len(extra) > 0 {
					t.Errorf("%d requests during a quiet drain", len(extra))
				}
				continue
			}
			if len(extra) == 0 {
				t.Fatal("no load during the drain")
			}
			for i, tr := range extra {
				if tr.Due != end.WindowEnd+int64(i)*20*ms || tr.Due > last+100*ms {
					t.Errorf("drain request %d was due at %d; the last answer ended at %d", i, tr.Due, last)
				}
				if tr.Outcome != recording.OK && tr.Outcome != recording.TruncatedByUs && tr.Outcome != recording.NotSent {
					t.Errorf("drain request %d: %s %q", i, tr.Outcome, tr.Error)
				}
			}
			if until := extra[len(extra)-1].Due; until < last-100*ms {
				t.Errorf("the drain's load ended at %d, the last measured answer at %d", until, last)
			}
		}
	})
}

// Half of the answers fail, and every request is there.
func TestHalfFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when  schedule.Options
		limit string
	}{
		{schedule.Options{Kind: schedule.Poisson, Rate: 400, Requests: 60, Warmup: "0", Drain: "quiet"}, ""},
		{schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 60, Warmup: "0", Drain: "quiet"}, "50%"}, // one by one, never above
	} {
		url, truth := scripted(t, "{fail: {every: 2}}")
		j := job(t, url, newTape(), c.when)
		j.Options.StopIfFailed = c.limit
		end, r := offer(t, j)
		count := map[recording.Outcome]int{}
		for _, tr := range r.traces {
			count[tr.Outcome]++
			if tr.Phase != recording.Measured || (tr.Outcome == recording.HTTPError) != (tr.HTTPStatus == 503) {
				t.Errorf("request %d: %s, %s, status %d", tr.Index, tr.Phase, tr.Outcome, tr.HTTPStatus)
			}
		}
		if count[recording.OK] != 30 || count[recording.HTTPError] != 30 || end.Live.Failed != 30 || end.ByFailures || len(truth.wait(t, 60)) != 60 {
			t.Errorf("%s: %v, %+v", c.when.Kind, count, end)
		}
	}
}
