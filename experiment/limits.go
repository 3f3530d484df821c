package experiment

import (
	"fmt"
	"math"
	"time"

	"fermata/schedule"
	"fermata/spec"
	"fermata/wire"
)

const (
	ownFiles   = 32          // open files that are no streams: the recording, the standard three, the runtime's
	longAnswer = time.Minute // an open loop has room enough if answers may take so long
)

// limits are what this machine lets one process do.
type limits wire.Limits

// A demand is how many streams a run may want open at once.
type demand struct {
	streams int64   // never more; math.MaxInt64 where nobody knows
	rate    float64 // of an open loop, the highest, in requests a second; 0 for others
}

// demandOf is what the run's schedule and limits come to.
func demandOf(s *spec.Run, arrivals *schedule.Schedule) demand {
	d := demand{streams: math.MaxInt64}
	o := &s.Schedule
	total, known := arrivals.MeasuredTotal()
	switch {
	case arrivals.Users() > 0:
		d.streams = int64(arrivals.Users()) * int64(arrivals.Streams())
	case known && o.Kind == schedule.All:
		d.streams = total
	default:
		d.rate = o.Rate
		if r := o.Ramp; r != nil {
			d.rate = max(r.From, r.To)
		}
		for _, step := range o.Steps {
			d.rate = max(d.rate, step.Rate)
		}
		if o.Burst != nil {
			d.rate = max(d.rate, o.Burst.Rate)
		}
		if known && o.Drain == "quiet" {
			d.streams = total
		}
	}
	if most := int64(s.Load.MaxInFlight); most > 0 {
		d.streams = min(d.streams, most)
	}
	return d
}

// shortage says what may stand in the way of that many streams; empty if
// nothing does.
func (l limits) shortage(d demand) string {
	streams, why, remedy := int64(math.MaxInt64), "", ""
	if l.Files > 0 {
		streams = max(0, l.Files-ownFiles)
		why = fmt.Sprintf("this process may open %d files, which is enough for %d streams at once", l.Files, streams)
		remedy = "raise the limit (ulimit -n)"
	}
	if l.Ports > 0 && l.Ports < streams {
		streams = l.Ports
		why = fmt.Sprintf("this machine has %d ports for connections to one address, which is enough for as many streams at once", l.Ports)
		remedy = "widen the range of ports (net.ipv4.ip_local_port_range on Linux)"
	}
	if d.streams <= streams {
		return ""
	}
	if d.rate <= 0 {
		if d.streams == math.MaxInt64 {
			return "" // given times: nobody knows what they come to
		}
		return fmt.Sprintf("%s, and this run wants %d: %s, or ask for fewer", why, d.streams, remedy)
	}
	reached := float64(streams) / d.rate
	if reached >= longAnswer.Seconds() {
		return ""
	}
	return fmt.Sprintf("%s: at %g requests/s they are used up once answers take %.3g s; %s, or offer less", why, d.rate, reached, remedy)
}
