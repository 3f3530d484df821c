package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/recording"
)

// turnTrace is a turn of a conversation of so many.
func turnTrace(index int64, turn, turns int32, outcome recording.Outcome) recording.Trace {
	t := steadyTrace(index, 5, 100_000_000, 20_000_000)
	if outcome != recording.OK {
		t = failedTrace(index, outcome)
	}
	t.Turn, t.Turns = turn, recording.Some(turns)
	return t
}

func TestSessions(t *testing.T) {
	warm := turnTrace(0, 0, 4, recording.OK)
	warm.Phase = recording.Warmup
	lost := turnTrace(10, 0, 9, recording.StreamCut)
	lost.Phase = recording.Drain
	s := recording.Slice{
		warm, turnTrace(1, 1, 4, recording.Timeout), // began in the warm-up, ended two turns early
		turnTrace(2, 0, 3, recording.OK), turnTrace(3, 1, 3, recording.OK), turnTrace(4, 2, 3, recording.OK), // whole
		turnTrace(5, 0, 3, recording.HTTPError),                                     // two turns early
		turnTrace(6, 0, 2, recording.OK), turnTrace(7, 1, 2, recording.StreamError), // nothing was left
		turnTrace(8, 0, 5, recording.TruncatedByUs), turnTrace(9, 0, 5, recording.NotSent), // the run's end, not the server's
		lost,
	}
	r := evaluate(t, s, recording.Meta{}, Options{ExpectStop: true})
	if d := cmp.Diff(&Sessions{Started: 5, EndedEarly: 2, TurnsUnsent: 4}, r.Sessions); d != "" {
		t.Error(d)
	}
	if r.Load.Measured != 9 {
		t.Errorf("%d measured requests, want the 9 that were due", r.Load.Measured)
	}
	// Single requests are no conversations.
	if r := evaluate(t, recording.Slice{steadyTrace(0, 5, 1, 1)}, recording.Meta{}, Options{}); r.Sessions != nil {
		t.Errorf("%+v", r.Sessions)
	}
}
