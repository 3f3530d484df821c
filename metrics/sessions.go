package metrics

import "fermata/recording"

// sessions sums up conversations, request by request, so that it needs no memory
// of each: a row says how many turns its conversation was to have.
type sessions struct {
	any bool
	sum Sessions
}

// see takes a measured request in. A failed turn ends its conversation; what the
// end of the run cut off does not count as failed here, and a good answer that
// ended by length goes on, whatever the run expects.
func (s *sessions) see(t *recording.Trace) {
	if !t.Turns.OK {
		return
	}
	s.any = true
	if t.Turn == 0 {
		s.sum.Started++
	}
	switch t.Outcome {
	case recording.OK, recording.TruncatedByUs, recording.Incomplete:
		return
	case recording.NotSent:
		if !t.NoRoom() {
			return
		}
	}
	if left := int64(t.Turns.V) - int64(t.Turn) - 1; left > 0 {
		s.sum.EndedEarly++
		s.sum.TurnsUnsent += left
	}
}

// result is absent where the workload has no conversations.
func (s *sessions) result() *Sessions {
	if !s.any {
		return nil
	}
	sum := s.sum
	return &sum
}
