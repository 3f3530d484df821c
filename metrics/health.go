package metrics

import (
	"fmt"

	"fermata/internal/stats"
	"fermata/recording"
)

// What makes a run client-bound; docs/metrics.md says the same in words.
const (
	latenessOver = 10e6  // ns, at the highest percentile that there are enough requests for
	lagOver      = 100e6 // ns, of reads after the kernel's receipt, likewise …
	lagGaps      = 2     // … or so many median gaps, whichever is more
	unsentOver   = 0.05  // of the measured requests, for no reason of the server's
	cpuOver      = 0.90  // of the cores, where nobody knows how late sockets were read …
	cpuSeconds   = 0.05  // … in more than this share of seconds
)

// What is worth a warning before that.
const (
	lateFrom  = 1e6   // ns, of lateness, likewise …
	lateShare = 0.02  // … or so much of the median TTFT from the due time, whichever is less
	exactFrom = 0.999 // least share of exact arrivals
	cpuFrom   = 0.80  // of the cores, in more than cpuSeconds of seconds
	stepFrom  = 1e6   // ns that the wall clock moved in a second
)

// instrument sums up the once-a-second samples.
type instrument struct {
	seconds, busy, full int // seconds, those over cpuFrom and over cpuOver
	cpuMax              float64
	pauseMax            int64
	waiting             int64 // most requests held back at once

	lag, canary       recording.Histogram
	reads, left       int64
	cycles, turn      *int64
	step              *int64
	pressure          *float64
	samples           []recording.Sample
	lagDist, birdDist *Dist
}

func readSamples(samples []recording.Sample) *instrument {
	cores := 1.0 // at least as many as were ever in use by us or free
	for i := range samples {
		s := &samples[i]
		cores = max(cores, float64(s.Cores), s.CPU+max(0, s.CoresFree))
	}
	i := &instrument{seconds: len(samples), samples: samples}
	for k := range samples {
		s := &samples[k]
		i.cpuMax, i.pauseMax, i.waiting = max(i.cpuMax, s.CPU), max(i.pauseMax, s.GCPauseNs), max(i.waiting, s.Waiting)
		if s.CPU > cpuFrom*cores {
			i.busy++
		}
		if s.CPU > cpuOver*cores {
			i.full++
		}
		i.lag.Merge(s.ReadLag())
		i.canary.Merge(s.Canary())
		if s.Reads != nil && s.ReadsLeft != nil {
			i.reads, i.left = i.reads+*s.Reads, i.left+*s.ReadsLeft
		}
		if s.GCCycles != nil {
			i.cycles = sumOf(i.cycles, *s.GCCycles)
		}
		i.turn, i.pressure = most(i.turn, s.LoopTurnNs), most(i.pressure, s.CPUPressure)
		if s.ClockStepNs != nil {
			far := max(*s.ClockStepNs, -*s.ClockStepNs)
			i.step = most(i.step, &far)
		}
	}
	i.lagDist, i.birdDist = histogramDist(&i.lag), histogramDist(&i.canary)
	return i
}

func sumOf(sum *int64, v int64) *int64 {
	if sum != nil {
		v += *sum
	}
	return &v
}

// most is the larger of two numbers that may be missing.
func most[T int64 | float64](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// judge says how the instrument fared and whether it was the bottleneck.
func (i *instrument) judge(r *Result, y *tally) {
	h := &r.Health
	h.Reasons = []string{}
	if i.seconds > 0 {
		h.CPUMax, h.GCPauseMax = &i.cpuMax, &i.pauseMax
	}
	h.ReadLag, h.Canary = i.lagDist, i.birdDist
	h.GCCycles, h.LoopTurnMax, h.CPUPressureMax, h.ClockStepMax = i.cycles, i.turn, i.pressure, i.step
	if i.reads > 0 {
		share := float64(i.left) / float64(i.reads)
		h.ReadsLeftShare = &share
	}
	if p, late := highest(r.Load.Lateness); late > latenessOver {
		h.Reasons = append(h.Reasons, fmt.Sprintf("requests left late: percentile %g of lateness is %s", 100*p, human(late)))
	}
	i.judgeLag(r)
	if y.noRoom > 0 {
		h.Reasons = append(h.Reasons, fmt.Sprintf("%d of %d requests were not sent, as this machine had no room for their connections", y.noRoom, y.measured))
	}
	if l := r.Load; float64(y.unsent) > unsentOver*float64(l.Measured) && i.waiting == 0 && r.Run.Interrupted == "" {
		h.Reasons = append(h.Reasons, fmt.Sprintf("%d of %d requests never left, and no limit held them back", y.unsent, l.Measured))
	}
	if i.lagDist == nil && i.birdDist == nil && float64(i.full) > cpuSeconds*float64(i.seconds) {
		h.Reasons = append(h.Reasons, fmt.Sprintf("this process used over 90 %% of the cores in %d of %d seconds", i.full, i.seconds))
	}
	h.ClientBound = len(h.Reasons) > 0
}

// judgeLag judges how late sockets were read: by the kernel's word, else by what
// a canary heard.
func (i *instrument) judgeLag(r *Result) {
	d, what := i.lagDist, "sockets were read late"
	if d == nil {
		d, what = i.birdDist, "arrivals were stamped late, as a canary stream shows"
	}
	p, lag := highest(d)
	limit := lagOver
	if gap, ok := r.Metrics.TBTEvent.of(0.5); ok {
		limit = max(limit, lagGaps*gap)
	}
	if lag > limit {
		r.Health.Reasons = append(r.Health.Reasons, fmt.Sprintf("%s: percentile %g of the delay is %s", what, 100*p, human(lag)))
	}
}

// histogramDist is the distribution of times that were counted by bucket, each of
// them said too large by up to recording.HistogramError; nil where none were.
func histogramDist(h *recording.Histogram) *Dist {
	n := h.N()
	if n == 0 {
		return nil
	}
	sum := stats.NewInts(1) // for the moments: ranks are asked of the histogram
	for i, bucket := range h.Buckets {
		sum.AddN(recording.BucketEnd(bucket), h.Counts[i])
	}
	s := series{unit: "ns", better: lower, ints: sum, requests: n}
	d := &Dist{Unit: s.unit, N: n, NRequests: n, Level: stats.Level, Better: s.better}
	d.Mean, d.SD, d.Min, d.Max = s.moments()
	at := func(rank int64) (float64, bool) { v, ok := h.At(rank); return float64(v), ok }
	for _, p := range percentiles {
		q := Quantile{P: float64(p) / 1000, NEff: float64(n), Rule: "histogram"}
		q.Value, _ = at(stats.Rank(n, p))
		low, high := stats.OrderInterval(n, p, float64(n))
		q.Low, q.High = some(at(low)), some(at(high))
		q.Status = new(dependence).status(n, 1, float64(n), p, q.Low != nil && q.High != nil)
		d.Quantiles = append(d.Quantiles, q)
	}
	return d
}

// warnings says what a reader should know before the run is client-bound.
func (i *instrument) warnings(w *list, r *Result) {
	h := &r.Health
	if p, late := highest(r.Load.Lateness); late <= latenessOver {
		limit := lateFrom
		if ttft, ok := r.Metrics.TTFTDue.of(0.5); ok {
			limit = min(limit, lateShare*ttft)
		}
		if late > limit {
			w.add("late_sending", fmt.Sprintf("requests left late by %s at percentile %g", human(late), 100*p),
				"That is in ttft_due and e2e; ttft_sent leaves it out. Other work on this machine, or too much of it here, keeps the sender from its time.")
		}
	}
	if s := h.ExactShare; s != nil && *s < exactFrom {
		w.add("exact_share", fmt.Sprintf("%.3g %% of arrivals have an exact time, last events of answers aside", 100**s),
			"The others are bounded: stamp_low and stamp_high of each percentile say how far that matters. This machine reads later than tokens follow each other, or the way here (TLS, HTTP/2, a proxy) merges them.")
	}
	if i.seconds > 0 && float64(i.busy) > cpuSeconds*float64(i.seconds) && !h.ClientBound {
		w.add("client_busy", fmt.Sprintf("this process used over 80 %% of the cores in %d of %d seconds", i.busy, i.seconds),
			"There is little left before arrivals are read late. Offer less from this machine, or give it more cores.")
	}
	if d := h.Canary; d != nil {
		p, late := highest(d)
		w.add("user_stamps", fmt.Sprintf("the kernel does not stamp arrivals here: times are the reader's, late by %s at percentile %g as a canary stream shows", human(late), 100*p),
			"Bounds go back to when each connection was last read, which is a whole gap. What the canary heard (health.canary) is the usual error, not a bound.")
	}
	if s := h.ClockStepMax; s != nil && float64(*s) > stepFrom {
		w.add("clock_step", fmt.Sprintf("the wall clock moved by %s within a second of the run", human(float64(*s))),
			"Times are on the monotonic clock, which does not; but times that the server told (server_received_ns), and kernel stamps of that second, are off or lost.")
	}
}

// highest is the highest percentile that there are enough requests for, at least
// the median: one late request of fifty says nothing about the other runs that
// this client could make.
func highest(d *Dist) (p, value float64) {
	if d == nil {
		return 0, 0
	}
	for _, q := range d.Quantiles {
		// Late requests in a row are late all the same: their number counts, not
		// what they are worth.
		if p == 0 || q.P < 0.995 && d.NRequests >= stats.Correlated && float64(d.NRequests)*(1-q.P) >= stats.Beyond-1e-9 {
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
