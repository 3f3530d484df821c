package load

import "fermata/recording"

// A Witness is told how the requests of every phase fare while the run goes on.
// What it is told comes from any goroutine, off the timed path, and must not keep
// whoever tells it.
type Witness interface {
	// Begun tells of a request that is due, or soon will be, in the order of their
	// indexes in an open loop.
	Begun(index, due int64)
	// First tells, once, that the first token came so many ns after the due time, and
	// Silent, instead, that it has not for as long as Job.Patience. Either comes a
	// moment later, and neither of a request that has ended before.
	First(index, ns int64)
	Silent(index int64)
	// Ended tells of one that is over and, where it is, checked; of one that was
	// tried again, the last try. Its arrivals stay as they are.
	Ended(t *recording.Trace)
}

// unstamped is how long after its stamp a token may take to be seen by the watch, on
// a machine with other things to do.
const unstamped = int64(10 * watchEvery)

// A sight is what the watch saw of a request for the witness.
type sight struct {
	index int64
	first int64 // ns from the due time to the first token; negative for none
}

// see says what there is to tell, once, of a request under way.
func (r *run) see(f *flight, now int64) (s sight, ok bool) {
	if r.Witness == nil || f.told {
		return s, false
	}
	s = sight{f.index, -1}
	if first := f.watch.first.Load(); first != 0 {
		s.first = max(0, first-f.due)
		f.told = true
	} else {
		f.told = r.Patience > 0 && now-f.due > r.Patience+unstamped
	}
	return s, f.told
}

// show tells the witness what was seen.
func (r *run) show(all []sight) {
	for _, s := range all {
		if s.first < 0 {
			r.Witness.Silent(s.index)
		} else {
			r.Witness.First(s.index, s.first)
		}
	}
}

// tell tells the witness of a request that is over.
func (r *run) tell(t *recording.Trace) {
	if r.Witness != nil {
		r.Witness.Ended(t)
	}
}
