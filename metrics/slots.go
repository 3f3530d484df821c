package metrics

import "fermata/recording"

// slots count what became of requests over time. As the run grows, neighbours
// become one, so that there are never more than mostSlots.
type slots struct {
	width int64 // ns
	list  []Slot
}

func (s *slots) see(a *answer) {
	t := a.t
	s.at(t.Due).Due++
	if t.Sent.OK && t.Outcome != recording.NotSent {
		s.at(t.Sent.V).Sent++
		end := t.End
		if !end.OK && a.first >= 0 {
			end = recording.Some(t.Due + a.times[len(a.times)-1])
		}
		if end.OK {
			slot := s.at(end.V)
			if slot.Finished++; !a.good {
				slot.Failed++
			}
		}
	}
	at := t.Due
	for i, d := range t.DeltaNs {
		at += d
		if k := t.Tokens[i]; k > 0 {
			s.at(at).Tokens += int64(k)
		}
	}
}

func (s *slots) at(ns int64) *Slot {
	ns = max(ns, 0)
	for ns/s.width >= mostSlots {
		s.double()
	}
	i := int(ns / s.width)
	for len(s.list) <= i {
		s.list = append(s.list, Slot{})
	}
	return &s.list[i]
}

func (s *slots) double() {
	s.width *= 2
	half := (len(s.list) + 1) / 2
	for i := range half {
		one := s.list[2*i]
		if 2*i+1 < len(s.list) {
			two := s.list[2*i+1]
			one.Due += two.Due
			one.Sent += two.Sent
			one.Finished += two.Finished
			one.Failed += two.Failed
			one.Tokens += two.Tokens
		}
		s.list[i] = one
	}
	s.list = s.list[:half]
}

// finish fills in how many requests were under way.
func (s *slots) finish() []Slot {
	var under int64
	for i := range s.list {
		under += s.list[i].Sent - s.list[i].Finished
		s.list[i].InFlight = under
	}
	return s.list
}
