package metrics

import (
	"math"

	"fermata/deadline"
	"fermata/recording"
)

// Where the parts of a TTFT come from.
const (
	partsServer    = "server"    // it says when it received a request and how long it prefilled
	partsEstimated = "estimated" // a measured prefill curve stands in for it
)

// The parts of a TTFT, in the order of time.
const (
	partLateness = "lateness"
	partTries    = "earlier_tries" // and the pauses after them
	partNetwork  = "network"
	partDelay    = "scheduling_delay"
	partPrefill  = "prefill"
)

// partQuantiles are those of the delay whose edges are told.
var partQuantiles = []float64{0.5, 0.9, 0.99}

// A stack sums parts up over requests that have all of them.
type stack struct {
	n                                              int64
	ttft, lateness, tries, network, delay, prefill float64
	delayLow, delayHigh                            float64 // where prefill takes as long as the band allows, and as short
}

// firstTokens takes TTFTs apart: by what the server says where it says it, and by
// a measured prefill curve. What the curve lacks of a TTFT is delay; its value at
// a prompt of no tokens is network and fixed overhead, which it cannot tell apart.
type firstTokens struct {
	curve           *deadline.Deadlines // nil without a measured one
	told, estimated stack
	fit, low, high  *series // estimated delays, by the curve and by the edges of its band
	intercept       int64
}

func newFirstTokens(opt Options) *firstTokens {
	f := &firstTokens{fit: newSeries(opt, "ns", lower).exceeding(opt), low: newSeries(opt, "ns", lower), high: newSeries(opt, "ns", lower)}
	if d := opt.Deadlines; d != nil {
		if _, measured := d.Slack(); measured {
			f.curve = d
			f.intercept = d.Intercept()
		}
	}
	return f
}

func (f *firstTokens) see(a *answer) {
	if a.first < 0 || !a.t.Sent.OK {
		return
	}
	t := a.t
	sent, ttft := t.Sent.V-t.Due, a.times[0]
	late := sent
	if a.tried.earlier > 0 {
		late = a.tried.sent.Or(t.Due) - t.Due // where the first try never left, all until the last is the tries'
	}
	if t.ServerReceived.OK && t.ServerPrefill.OK && !a.second {
		network := t.ServerReceived.V - t.Sent.V
		f.told.add(ttft, late, sent-late, network, t.ServerPrefill.V, 0, 0)
	}
	p := t.Prompt.Used
	if f.curve == nil || !p.OK || !f.curve.Covers(p.V) {
		return
	}
	fit := f.curve.Due(deadline.EdgeFit, 0, p.V)
	low, high := fit, fit
	if f.curve.Banded() {
		low, high = f.curve.Due(deadline.EdgeLow, 0, p.V), f.curve.Due(deadline.EdgeHigh, 0, p.V)
	}
	answered := ttft - sent
	f.fit.int(answered - fit)
	f.low.int(answered - high)
	f.high.int(answered - low)
	if !a.second {
		network := min(f.intercept, fit)
		f.estimated.add(ttft, late, sent-late, network, fit-network, high-fit, fit-low)
	}
}

// add adds a request whose prefill may take so much more and less.
func (s *stack) add(ttft, late, tries, network, prefill, more, less int64) {
	delay := float64(ttft - late - tries - network - prefill)
	s.n++
	s.ttft += float64(ttft)
	s.lateness += float64(late)
	s.tries += float64(tries)
	s.network += float64(network)
	s.prefill += float64(prefill)
	s.delay += delay
	s.delayLow += delay - float64(more)
	s.delayHigh += delay + float64(less)
}

func (f *firstTokens) seek() recording.Columns { return seekAll(f.fit, f.low, f.high) }

func (f *firstTokens) result(r *Result, measured int64) {
	switch {
	case f.told.n > 0:
		if d := r.Metrics.SchedulingDelay; d != nil {
			d.Source = partsServer
		}
		r.TTFTParts = f.told.parts(partsServer, false)
	case f.estimated.n > 0:
		r.Metrics.SchedulingDelay = f.fit.dist(measured)
		r.Metrics.SchedulingDelay.Source = partsEstimated
		p := f.estimated.parts(partsEstimated, f.curve.Banded())
		p.Curve = &Deadline{Shape: f.curve.Shape(), Text: f.curve.Text(), Source: f.curve.Source(), SHA256: f.curve.Sum(), Flags: f.curve.Flags()}
		low, high := f.low.dist(measured), f.high.dist(measured)
		for _, at := range partQuantiles {
			q := percentileOf(r.Metrics.SchedulingDelay, at)
			if q == nil {
				continue
			}
			edge := DelayQuantile{P: at, Value: q.Value}
			if l, h := percentileOf(low, at), percentileOf(high, at); f.curve.Banded() && l != nil && h != nil {
				edge.Low, edge.High = &l.Value, &h.Value
			}
			p.Delay = append(p.Delay, edge)
		}
		r.TTFTParts = p
	}
}

// parts are the means, which add up to the mean TTFT.
func (s *stack) parts(source string, banded bool) *TTFTParts {
	n := float64(s.n)
	p := &TTFTParts{Source: source, N: s.n, MeanNs: rounded(s.ttft / n)}
	p.Parts = append(p.Parts, TTFTPart{Part: partLateness, MeanNs: rounded(s.lateness / n)})
	if s.tries > 0 {
		p.Parts = append(p.Parts, TTFTPart{Part: partTries, MeanNs: rounded(s.tries / n)})
	}
	p.Parts = append(p.Parts,
		TTFTPart{Part: partNetwork, MeanNs: rounded(s.network / n)},
		TTFTPart{Part: partDelay, MeanNs: rounded(s.delay / n)},
		TTFTPart{Part: partPrefill, MeanNs: rounded(s.prefill / n)})
	if banded {
		delay, prefill := &p.Parts[len(p.Parts)-2], &p.Parts[len(p.Parts)-1]
		low, high := rounded(s.delayLow/n), rounded(s.delayHigh/n)
		delay.LowNs, delay.HighNs = &low, &high
		least, most := prefill.MeanNs-(high-delay.MeanNs), prefill.MeanNs+(delay.MeanNs-low)
		prefill.LowNs, prefill.HighNs = &least, &most
	}
	return p
}

func percentileOf(d *Dist, p float64) *Quantile {
	if d == nil {
		return nil
	}
	for i := range d.Quantiles {
		if q := &d.Quantiles[i]; q.P > p-1e-9 && q.P < p+1e-9 {
			return q
		}
	}
	return nil
}

func rounded(ns float64) int64 { return int64(math.Round(ns)) }
