package metrics

import "fermata/internal/stats"

// A dependence is what is known of how the requests of a run hang together. It is
// settled when all have been seen, before any rank is chosen.
type dependence struct {
	closed bool    // a closed loop: load has no ratio to saturation
	load   float64 // offered over saturation; 0 where that is unknown
	drifts bool    // there is no steady state to speak of
	taus   stats.Taus
}

// insufficient is the status of a figure that cannot be stated.
const insufficient = "insufficient"

// of is the correlation time of a metric that estimates of its own values gave:
// the relaxation time of a queue under that load, if it is known and longer.
func (d *dependence) of(own stats.Tau) stats.Tau {
	if d.load > 0 {
		return own.Or(stats.Relaxation(d.load))
	}
	return own
}

// short says that a run of so many requests is too short for its correlation time
// to say anything.
func (d *dependence) short(requests int64, tau float64) bool {
	return d.drifts || float64(requests) < stats.Correlated*tau
}

// status says how far an interval of the percentile p, in thousandths, can be
// trusted.
func (d *dependence) status(requests int64, tau, nEff float64, p int, closed bool) string {
	switch {
	case d.drifts, !stats.Sufficient(requests, tau, nEff, p):
		return insufficient
	case !closed:
		return "open"
	}
	return d.trust()
}

// trust is the status of what lacks nothing else.
func (d *dependence) trust() string {
	if d.load > 0 {
		return "ok"
	}
	return "assumed"
}
