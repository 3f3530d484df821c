package load

import "fermata/recording"

// A Witness is told how the requests of every phase fare while the run goes on.
// What it is told comes from any goroutine, off the timed path, and must not keep
// whoever tells it.
type Witness interface {
	// Begun tells of a request that is due, or soon will be, in the order of their
	// indexes in an open loop.
	Begun(index, due int64)
	// Silent tells, once, of one that has brought no token for as long as
	// Job.Patience.
	Silent(index int64)
	// Ended tells of one that is over and, where it is, checked; of one that was
	// tried again, the last try. Its arrivals stay as they are.
	Ended(t *recording.Trace)
}

// unstamped is how long after its stamp a token may take to be seen by the watch, on
// a machine with other things to do.
const unstamped = int64(10 * watchEvery)

// impatient says, once, that the request has brought no token for too long.
func (r *run) impatient(f *flight, now int64) bool {
	if r.Witness == nil || r.Patience <= 0 || f.silent || f.watch.token.Load() != 0 {
		return false
	}
	f.silent = now-f.trace.Due > r.Patience+unstamped
	return f.silent
}

// tell tells the witness of a request that is over.
func (r *run) tell(t *recording.Trace) {
	if r.Witness != nil {
		r.Witness.Ended(t)
	}
}
