package metrics

import (
	"fmt"

	"fermata/recording"
)

// What makes a run client-bound; docs/metrics.md says the same in words.
const (
	latenessOver  = 10e6 // ns, at the highest percentile that there are enough requests for …
	latenessShare = 0.02 // … and of the median TTFT from the due time
	unsentOver    = 0.05 // of the measured requests, for no reason of the server's
	cpuOver       = 0.90 // of the cores …
	cpuSeconds    = 0.05 // … in more than this share of seconds
)

// instrument sums up the once-a-second samples.
type instrument struct {
	seconds, busy int
	cpuMax        float64
	pauseMax      int64
	waiting       int64 // most requests held back at once
}

func readSamples(samples []recording.Sample) instrument {
	cores := 1.0 // at least as many as were ever in use by us or free
	for _, s := range samples {
		cores = max(cores, float64(s.Cores), s.CPU+max(0, s.CoresFree))
	}
	i := instrument{seconds: len(samples)}
	for _, s := range samples {
		i.cpuMax, i.pauseMax, i.waiting = max(i.cpuMax, s.CPU), max(i.pauseMax, s.GCPauseNs), max(i.waiting, s.Waiting)
		if s.CPU > cpuOver*cores {
			i.busy++
		}
	}
	return i
}

func (i instrument) judge(r *Result, unsent int64) {
	h := &r.Health
	h.Reasons = []string{}
	if i.seconds > 0 {
		h.CPUMax, h.GCPauseMax = &i.cpuMax, &i.pauseMax
	}
	p, late := highest(r.Load.Lateness)
	ttft, ok := r.Metrics.TTFTDue.of(0.5)
	if late > latenessOver && ok && late > latenessShare*ttft {
		h.Reasons = append(h.Reasons, fmt.Sprintf("requests left late: percentile %g of lateness is %s, %.1f %% of the median time to first token", 100*p, human(late), 100*late/ttft))
	}
	if l := r.Load; float64(unsent) > unsentOver*float64(l.Measured) && i.waiting == 0 && r.Run.Interrupted == "" {
		h.Reasons = append(h.Reasons, fmt.Sprintf("%d of %d requests never left, and no limit held them back", unsent, l.Measured))
	}
	if i.seconds > 0 && float64(i.busy) > cpuSeconds*float64(i.seconds) {
		h.Reasons = append(h.Reasons, fmt.Sprintf("this process used over 90 %% of the cores in %d of %d seconds", i.busy, i.seconds))
	}
	h.ClientBound = len(h.Reasons) > 0
}

// highest is the highest percentile that there are enough requests for, at least
// the median: one late request of fifty says nothing about the other runs that
// this client could make.
func highest(d *Dist) (p, value float64) {
	if d == nil {
		return 0, 0
	}
	for _, q := range d.Quantiles {
		if p == 0 || q.P < 0.995 && q.Status != "insufficient" {
			p, value = q.P, q.Value
		}
	}
	return p, value
}

// human is a time in ns for people to read.
func human(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.4g s", ns/1e9)
}
