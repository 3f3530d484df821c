package metrics

import "fermata/recording"

// slots count what became of requests over time. As the run grows, neighbours
// become one, so that there are never more than mostSlots.
type slots struct {
	width int64 // ns
	list  []Slot
	sends heap // not yet passed, each with its end
	ends  heap // of the requests that are under way
}

func (s *slots) see(a *answer) {
	t := a.t
	s.pass(t.Due)
	s.at(t.Due).Due++
	if t.Sent.OK && t.Outcome != recording.NotSent {
		s.at(t.Sent.V).Sent++
		end := t.End
		if !end.OK && a.first >= 0 {
			end = recording.Some(t.Due + a.times[len(a.times)-1])
		}
		s.sends.push(stay{t.Sent.V, end.Or(never)})
		if end.OK {
			switch slot := s.at(end.V); {
			case a.good:
				slot.Finished++
			case t.Stopped():
				slot.Stopped++
			default:
				slot.Finished++
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

// pass goes over the sends before a time: after one there may be more under way than
// there were before in its slot. Traces come in order of due time, and none is sent
// before it is due.
func (s *slots) pass(until int64) {
	for len(s.sends) > 0 && s.sends[0].at < until {
		send := s.sends.pop()
		for len(s.ends) > 0 && s.ends[0].at <= send.at {
			s.ends.pop()
		}
		s.ends.push(stay{at: send.end})
		slot := s.at(send.at)
		slot.InFlightMost = max(slot.InFlightMost, int64(len(s.ends)))
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
			one.Stopped += two.Stopped
			one.Tokens += two.Tokens
			one.InFlightMost = max(one.InFlightMost, two.InFlightMost)
		}
		s.list[i] = one
	}
	s.list = s.list[:half]
}

// finish fills in how many requests were under way.
func (s *slots) finish() []Slot {
	s.pass(never)
	var under int64
	for i := range s.list {
		slot := &s.list[i]
		slot.InFlightMost = max(slot.InFlightMost, under)
		under += slot.Sent - slot.Finished - slot.Stopped
		slot.InFlight = under
	}
	return s.list
}
