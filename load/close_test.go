package load

import (
	"sync/atomic"
	"testing"
	"time"

	"fermata/recording"
	"fermata/schedule"
)

// satisfied has enough once so many requests were seen.
type satisfied struct {
	of   int64
	seen atomic.Int64
}

func (s *satisfied) See(t *recording.Trace) {
	if t.Phase == recording.Measured {
		s.seen.Add(1)
	}
}

func (s *satisfied) Look() (string, bool) { return "so it is", s.seen.Load() >= s.of }

// The measured phase ends where enough is known: what was due before is measured
// and awaited, what is due after is drain, and none is in between.
func TestCloseWhenEnough(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]schedule.Options{
		"open":     {Kind: schedule.Poisson, Rate: 50, Requests: 100_000, Warmup: "0", Drain: "load"},
		"quiet":    {Kind: schedule.Poisson, Rate: 50, Requests: 100_000, Warmup: "0", Drain: "quiet"},
		"sparse":   {Kind: schedule.Constant, Rate: 0.01, Requests: 100_000, Warmup: "0", Drain: "quiet"},
		"closed":   {Kind: schedule.Closed, Concurrency: 3, Duration: time.Hour, Warmup: "0", Drain: "load"},
		"counted":  {Kind: schedule.Closed, Concurrency: 3, Requests: 100_000, Warmup: "0", Drain: "quiet"},
		"thinking": {Kind: schedule.Closed, Concurrency: 3, Think: "200ms", Requests: 100_000, Warmup: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, truth := scripted(t, "{ttft: 40ms, gap: 20ms}")
			r := newTape()
			j := job(t, url, r, o)
			enough := &satisfied{of: 20}
			if name == "sparse" {
				enough.of = 1
			}
			j.Enough = enough
			began := time.Now()
			end, _ := offerUntil(t, t.Context(), nil, j)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if !end.Closed || end.Why != "enough is known: so it is" || end.Interrupted != "" {
				t.Errorf("%+v", end)
			}
			measured, drained := int64(0), 0
			for _, tr := range r.traces {
				switch {
				case tr.Phase == recording.Measured && tr.Due < end.WindowEnd && tr.Outcome == recording.OK:
					measured++
				case tr.Phase == recording.Drain && tr.Due >= end.WindowEnd:
					drained++
				default:
					t.Errorf("request %d: %s, due at %d of %d, %s", tr.Index, tr.Phase, tr.Due, end.WindowEnd, tr.Outcome)
				}
			}
			if measured < enough.of || measured != end.Live.MeasuredDone || o.Drain == "quiet" && drained > 0 {
				t.Errorf("%d measured, %d drained, %+v", measured, drained, end.Live)
			}
			truth.wait(t, int(measured))
		})
	}
}

// A machine that stands still while the end of the phase is being set leaves no
// request on the wrong side of it.
func TestNothingIsPlacedWhileThePhaseEnds(t *testing.T) {
	t.Parallel()
	r := &run{}
	r.ending.Lock() // the clock has been read
	at := schedule.Arrival{Due: 150, Phase: schedule.Measured}
	placed := make(chan struct{})
	go func() { defer close(placed); r.rephase(&at) }()
	time.Sleep(20 * time.Millisecond)
	r.closed.Store(&closing{at: 100})
	r.ending.Unlock()
	if <-placed; at.Phase != schedule.Drain {
		t.Errorf("due at 150 of 100, it is %v", at.Phase)
	}
}

// Turns of conversations are placed when they are due, by the same rule.
func TestCloseConversations(t *testing.T) {
	t.Parallel()
	for _, drain := range []string{"load", "quiet"} {
		j := talking(t, &teller{}, "chat", threeTurns, schedule.Options{Kind: schedule.Poisson, Rate: 20, Requests: 100_000, Warmup: "0", Drain: drain, Think: "50ms"})
		r := j.Record.(*tape)
		j.Enough = &satisfied{of: 20}
		end, _ := offerUntil(t, t.Context(), nil, j)
		if !end.Closed {
			t.Errorf("%+v", end)
		}
		for _, tr := range r.traces {
			if (tr.Phase == recording.Measured) != (tr.Due < end.WindowEnd) || drain == "quiet" && tr.Phase == recording.Drain {
				t.Errorf("%s: turn %d of %s: %s, due at %d of %d", drain, tr.Turn, tr.Session, tr.Phase, tr.Due, end.WindowEnd)
			}
		}
	}
}
