package schedule

import "fmt"

// Converse makes s a schedule of conversations: what it gives are their
// beginnings, by Start, and what its phases count are their turns, by Place, in
// the order in which they become due. It is for before the first arrival.
// The function says how many turns the conversation of arrival i has, and false where
// there is none: given times have so many measured requests unless their options
// say otherwise.
func (s *Schedule) Converse(turns func(i int64) (int, bool)) error {
	s.converse = true
	if s.moments != nil {
		return nil
	}
	var all int64
	for i := range s.given.N {
		n, ok := turns(int64(i))
		if !ok {
			break
		}
		all += int64(n)
	}
	o := s.options
	base := o.Requests
	if base == 0 && o.Duration == 0 {
		base = all
	}
	end, err := o.warmupEnd(base)
	if err != nil {
		return fmt.Errorf("making a schedule of given times: %w", err)
	}
	s.phases = newPhases(phases{warmup: end, requests: o.Requests, duration: int64(o.Duration)})
	switch left := all - max(0, end.count); {
	case o.Duration > 0 || end.at > 0:
		s.total = 0 // time decides
	case left <= 0:
		return fmt.Errorf("making a schedule of given times: none of the %d turns is left to measure (warm-up: %s)", all, end.text)
	default:
		s.total = left
		if o.Requests > 0 {
			s.total = min(left, o.Requests)
		}
	}
	return nil
}

// Converses says that s is one of conversations.
func (s *Schedule) Converses() bool { return s.converse }

// Start is Next for conversations: when the next one begins, without a phase; its
// Index counts conversations.
func (s *Schedule) Start(now int64) (Arrival, bool) {
	var a Arrival
	switch {
	case s.moments != nil:
		a.Due = s.moments.next(now)
	case s.index < int64(s.given.N):
		a = s.given.At(int(s.index))
	default:
		return Arrival{}, false
	}
	a.Index = s.index
	s.index++
	return a, true
}

// Place is the phase of a turn that has become due at due. A turn that becomes
// due when an answer ends may be placed a little after later ones. False says
// that nothing more is to be sent.
func (s *Schedule) Place(due int64) (Phase, bool) {
	p := s.phases.place(due)
	return p, p != Drain || !s.quiet
}

// Quiet says that nothing is sent once the measured phase is over.
func (s *Schedule) Quiet() bool { return s.quiet }

// Most is how many turns there will be at most where all conversations begin at
// once: no more of them need begin than have so many.
func (s *Schedule) Most() (n int64, known bool) {
	if _, once := s.moments.(atOnce); !once {
		return 0, false
	}
	return s.phases.requests, true
}

// Finish says that no more turns will come. Given times then end their measured
// phase 1 ns after its last turn was due.
func (s *Schedule) Finish() {
	if s.moments == nil && s.phases.now == Measured {
		s.phases.finish()
	}
}
