package metrics

import "fermata/internal/stats"

// A dependence is what is known of how the requests of a run hang together. It is
// settled when all have been seen, before any rank is chosen.
type dependence struct {
	closed bool    // a closed loop: load has no ratio to saturation
	batch  bool    // all requests are due at once: they are the population, not a sample of a queue's steady state
	load   float64 // offered over saturation; 0 where that is unknown
	drifts bool    // there is no steady state to speak of
	taus   stats.Taus
}

// insufficient is the status of a figure that cannot be stated.
const insufficient = "insufficient"

// of is the correlation time of a metric that estimates of its own values gave:
// the relaxation time of a queue under that load, if it is known and longer.
func (d *dependence) of(own stats.Tau) stats.Tau {
	if d.batch {
		return stats.Population
	}
	if d.load > 0 {
		return own.Or(stats.Relaxation(d.load))
	}
	return own
}

// short says that a run of so many requests is too short for its correlation time
// to say anything.
func (d *dependence) short(requests int64, tau float64) bool {
	return !d.batch && (d.drifts || float64(requests) < stats.Correlated*tau)
}

// ranks are those of the ends of the interval of a percentile, in thousandths: in a
// batch, that of the percentile itself.
func (d *dependence) ranks(n int64, p int, nEff float64) (low, high int64) {
	if d.batch {
		return stats.Rank(n, p), stats.Rank(n, p)
	}
	return stats.OrderInterval(n, p, nEff)
}

// share is the interval of a share of which k of n were seen, all worth nEff.
func (d *dependence) share(k, n int64, nEff float64) (low, high float64) {
	if d.batch {
		return float64(k) / float64(n), float64(k) / float64(n)
	}
	worth := nEff / float64(n)
	return stats.ClopperPearson(float64(k)*worth, nEff)
}

// status says how far an interval of the percentile p, in thousandths, can be
// trusted.
func (d *dependence) status(requests int64, tau, nEff float64, p int, closed bool) string {
	switch {
	case d.batch:
		return "ok"
	case d.drifts, !stats.Sufficient(requests, tau, nEff, p):
		return insufficient
	case !closed:
		return "open"
	}
	return d.trust()
}

// trust is the status of what lacks nothing else.
func (d *dependence) trust() string {
	if d.batch || d.load > 0 {
		return "ok"
	}
	return "assumed"
}
