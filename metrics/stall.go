package metrics

import "fermata/recording"

// Stalling is playback at the reading pace: how often, where and how long a
// reader waits for the next word.
type Stalling struct {
	Count     int64 // tokens that were not there when they were wanted
	First     int64 // position of the first of them, from 0; -1 where there is none
	LongestNs int64
	TotalNs   int64 // also the greatest lateness against the pace from the first token on
}

// Stall plays an answer back at a pace in ns a token, from its first token on.
func Stall(times []int64, pace int64) Stalling {
	s := Stalling{First: -1}
	if len(times) == 0 {
		return s
	}
	due, last := times[0], times[len(times)-1]
	for i, t := range times {
		late := t - due
		if late <= 0 {
			if due >= last {
				return s
			}
			due += pace
			continue
		}
		if s.Count == 0 {
			s.First = int64(i)
		}
		s.Count++
		s.LongestNs = max(s.LongestNs, late)
		s.TotalNs += late
		due = t + pace
	}
	return s
}

// stalls judges reading, over good answers.
type stalls struct {
	pace                            int64
	longest, total, count, position *series
	answers, withAny                int64
}

func newStalls(opt Options) *stalls {
	return &stalls{
		pace:    opt.PaceNs,
		longest: newSeries(opt, "ns", lower), total: newSeries(opt, "ns", lower),
		count: newSeries(opt, "stalls", lower), position: newSeries(opt, "tokens", neutral),
	}
}

func (s *stalls) see(a *answer) {
	if !a.good || len(a.times) == 0 {
		return
	}
	st := a.stalling(s.pace)
	s.longest.int(st.LongestNs)
	s.total.int(st.TotalNs)
	s.count.int(st.Count)
	if st.Count > 0 {
		s.position.int(st.First)
	}
	if !a.second {
		s.answers++
		if st.Count > 0 {
			s.withAny++
		}
	}
}

func (s *stalls) seek() recording.Columns {
	return seekAll(s.longest, s.total, s.count, s.position)
}

func (s *stalls) result(r *Result, measured int64) {
	m := &r.Metrics
	m.StallLongest, m.StallTotal = s.longest.dist(measured), s.total.dist(measured)
	m.StallsPerRequest, m.StallPosition = s.count.dist(measured), s.position.dist(measured)
	if s.answers > 0 {
		r.Stalls = &Stalls{PaceNs: s.pace, RequestsWithAny: s.withAny, Share: float64(s.withAny) / float64(s.answers)}
	}
}
