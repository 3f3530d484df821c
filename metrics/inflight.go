package metrics

import "fermata/recording"

// inFlight sweeps over the times at which requests were sent and ended. Traces
// come in order of due time and none is sent before it is due, so it only has to
// remember those that are waiting or in flight.
type inFlight struct {
	start, end int64 // of the window, half-open; the end is never where there is none
	sends      heap  // not yet passed, each with its end
	ends       heap
	most       int64
	area       float64 // requests times ns, within the window
	began      bool    // the window's start was passed
}

// see takes the next request in.
func (f *inFlight) see(t *recording.Trace) {
	if !t.Sent.OK {
		return
	}
	f.pass(t.Due)
	end := t.End.Or(never)
	f.sends.push(stay{t.Sent.V, end})
	if shared := min(end, f.end) - max(t.Sent.V, f.start); shared > 0 {
		f.area += float64(shared)
	}
}

// pass sweeps over all sends before a time.
func (f *inFlight) pass(until int64) {
	for len(f.sends) > 0 && f.sends[0].at < until {
		s := f.sends.pop()
		if s.at >= f.start && !f.began {
			f.began = true
			f.drop(f.start)
			f.most = max(f.most, int64(len(f.ends)))
		}
		f.drop(s.at)
		f.ends.push(stay{at: s.end})
		if s.at >= f.start && s.at < f.end {
			f.most = max(f.most, int64(len(f.ends)))
		}
	}
}

func (f *inFlight) drop(until int64) {
	for len(f.ends) > 0 && f.ends[0].at <= until {
		f.ends.pop()
	}
}

// result is the most requests in flight at once within the window, and the mean
// over it.
func (f *inFlight) result() (most int64, mean *float64) {
	f.pass(never)
	if !f.began && f.start < f.end { // all were sent before it
		f.drop(f.start)
		f.most = int64(len(f.ends))
	}
	if f.end <= f.start || f.end == never {
		return f.most, nil
	}
	return f.most, some(f.area/float64(f.end-f.start), true)
}

// A stay is from when to when a request was in flight.
type stay struct{ at, end int64 }

// A heap gives the earliest first.
type heap []stay

func (h *heap) push(v stay) {
	*h = append(*h, v)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].at <= s[i].at {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *heap) pop() stay {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < n && s[down+1].at < s[down].at {
			down++
		}
		if down >= n || s[i].at <= s[down].at {
			break
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
	*h = s
	return top
}
