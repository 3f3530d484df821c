package schedule

import "slices"

// phases places due times, in ascending order, into half-open stretches of
// schedule time: warm-up [0, start), measured [start, end), drain from end on.
// In a closed loop a due time may come a little after a later one, as users wake
// one after the other; it still belongs to the phase in which it lies.
type phases struct {
	warmup   warmupEnd
	requests int64 // measured requests; 0: not limited by count
	duration int64 // of the measured phase, ns; 0: not limited by time
	atLeast  int64 // besides requests: how long after the start one of them is due, ns
	block    int64 // requests that are in one phase together; 0 is 1
	outside  bool  // after so many requests the phase is over, but when it ended is for the load to say

	now        Phase
	warm       int64 // warm-up requests so far
	measured   int64 // measured requests so far
	last       int64 // due time of the latest measured one
	start, end int64
	ended      bool // end is known
	ranOut     bool // end follows the last of given times
}

// newPhases starts the phases, with what is known before the first arrival.
func newPhases(p phases) phases {
	p.now = Warmup
	switch w := p.warmup; {
	case w.count == 0:
		p.begin(0)
	case w.count < 0 && p.duration > 0:
		p.start, p.end, p.ended = w.at, w.at+p.duration, true
	case w.count < 0:
		p.start = w.at
	}
	return p
}

func (p *phases) begin(at int64) {
	p.now, p.start = Measured, at
	if p.duration > 0 {
		p.end, p.ended = at+p.duration, true
	}
}

// place is the phase of the next request, which is due at due.
func (p *phases) place(due int64) Phase {
	if p.now == Warmup {
		// Where both bounds are reached with this request, the time came first.
		switch w := p.warmup; {
		case w.at >= 0 && due >= w.at:
			p.begin(w.at)
		case w.count >= 0 && p.warm >= w.count && p.whole(p.warm):
			p.begin(due)
		default:
			p.warm++
			return Warmup
		}
	}
	if due < p.start {
		p.warm++
		return Warmup
	}
	if p.now == Drain && p.duration > 0 && due < p.end {
		p.measured++
		return Measured
	}
	if p.now == Drain && p.ended && p.duration == 0 && due < p.end {
		p.end = max(due, p.last+1) // placed late: the phase ends where the next request is due
	}
	if p.now == Measured && p.over(due) {
		p.now = Drain
	}
	if p.now == Measured {
		p.measured++
		p.last = max(p.last, due)
	}
	return p.now
}

// over says whether the measured phase is over at due, and notes its end.
func (p *phases) over(due int64) bool {
	if p.duration > 0 {
		return due >= p.end
	}
	if !p.enough() {
		return false
	}
	if !p.outside {
		// Two requests may be due in the same nanosecond; the phase still holds
		// all of its own.
		p.end, p.ended = max(due, p.last+1), true
	}
	return true
}

// allGiven says whether every measured request has been placed, if nothing is
// placed before now any more.
func (p *phases) allGiven(now int64) bool {
	if p.duration > 0 {
		return p.ended && now >= p.end
	}
	return p.now == Drain || p.enough()
}

// enough says that the measured phase has all of its requests, where their number
// ends it.
func (p *phases) enough() bool {
	return p.requests > 0 && p.measured >= p.requests && p.whole(p.measured) && p.last-p.start >= p.atLeast
}

// whole says that so many requests are whole blocks.
func (p *phases) whole(n int64) bool { return p.block < 2 || n%p.block == 0 }

// finish ends the measured phase with its last request, as given times do when
// they run out.
func (p *phases) finish() {
	if !p.ended || p.end > p.last+1 {
		p.end, p.ended, p.ranOut = p.last+1, true, true
	}
}

// Why a measured phase ended where it did, as its schedule has it.
const (
	NextWasDue   = "the next request was due"
	TimeWasUp    = "its time was up"
	GivenRanOut  = "the given times had come to their last"
	LastHadEnded = "the last measured request had ended"
)

// Planned says that a phase ended as its schedule has it, for one of these reasons.
func Planned(why string) bool {
	return slices.Contains([]string{NextWasDue, TimeWasUp, GivenRanOut, LastHadEnded}, why)
}

// why is the reason for the end.
func (p *phases) why() string {
	switch {
	case !p.ended:
		return LastHadEnded
	case p.ranOut:
		return GivenRanOut
	case p.duration > 0:
		return TimeWasUp
	}
	return NextWasDue
}
