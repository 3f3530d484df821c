package schedule

import (
	"errors"
	"fmt"
	"sync"
)

// A Helm steers a schedule while it runs: it says, one leg after the other, how
// many requests come at which rate. Its gaps of mean 1 are drawn from the run's
// seed alone, so that two runs that are steered differently ask the same requests
// with the same gaps, each divided by the rate that held for it. NewSteered makes
// one; it is for any goroutine.
type Helm struct {
	mu     sync.Mutex
	open   *open
	legs   []Leg         // to come; of the first, Requests are those left
	ended  bool          // no more of them will
	change chan struct{} // closed when one of both changed
	began  bool          // the rate of the first leg is set

	last       int64 // due time of the latest measured request
	start, end int64 // of the measured phase
	measured   bool
	over       bool // end is known
}

// A Leg is a stretch of one rate.
type Leg struct {
	Requests  int64 // 0: until there is nobody who asks for more
	Rate      float64
	Phase     Phase
	NotBefore int64 // ns since time zero from which its first gap counts, where that is later than the last due time: after a pause
}

// NewSteered makes an open loop of the kind and shape of o. Its rates, its phases
// and its end come from the helm.
func NewSteered(o Options, runSeed uint64) (*Schedule, *Helm, error) {
	if o.Kind == "" && o.Rate == 0 && o.Burstiness == 0 && o.Shape == 0 {
		o.Kind = Poisson
	}
	kind := o.kind()
	if !isOpen(kind) || o.hasPlan() || o.Burst != nil {
		return nil, nil, errors.New("steering a schedule: its rate must be free, so it is poisson, gamma, weibull or constant, without ramp, steps or bursts")
	}
	alone := Options{Kind: kind, Rate: 1, Burstiness: o.Burstiness, Shape: o.Shape}
	s, err := New(alone, runSeed)
	if err != nil {
		return nil, nil, err
	}
	s.total = 0
	s.helm = &Helm{open: s.moments.(*open), change: make(chan struct{})}
	return s, s.helm, nil
}

// Go adds a leg. Its first gap begins where the last request of the leg before was
// due.
func (h *Helm) Go(l Leg) error {
	if !(l.Rate >= rateMin && l.Rate <= rateMax) {
		return fmt.Errorf("steering a schedule: %v requests a second is out of bounds", l.Rate)
	}
	if l.Requests < 0 {
		return fmt.Errorf("steering a schedule: a leg of %d requests", l.Requests)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.legs = append(h.legs, l)
	h.changed()
	return nil
}

// End says that no more legs will come.
func (h *Helm) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.changed()
}

func (h *Helm) changed() {
	close(h.change)
	h.change = make(chan struct{})
}

// Steered says that due times are known late: Next gives arrivals that Settle makes
// due, one after the other.
func (s *Schedule) Steered() bool { return s.helm != nil }

// Settle gives the next arrival of a steered schedule its due time and its phase,
// once there is a leg that it belongs to. False says that there will be none, or
// that stop was closed before.
func (s *Schedule) Settle(a *Arrival, stop <-chan struct{}) bool {
	h := s.helm
	for {
		h.mu.Lock()
		if len(h.legs) > 0 {
			h.settle(a)
			h.mu.Unlock()
			return true
		}
		change, ended := h.change, h.ended
		h.mu.Unlock()
		if ended {
			return false
		}
		select {
		case <-change:
		case <-stop:
			return false
		}
	}
}

// settle takes a request from the first leg.
func (h *Helm) settle(a *Arrival) {
	l := &h.legs[0]
	if !h.began {
		h.began = true
		h.open.due = max(h.open.due, l.NotBefore)
		h.open.setRate(l.Rate)
	}
	a.Due, a.Phase = h.open.next(0), l.Phase
	h.place(a.Due, a.Phase)
	if l.Requests == 0 {
		return
	}
	if l.Requests--; l.Requests == 0 {
		h.legs, h.began = h.legs[1:], false
	}
}

// place notes where the measured phase begins and ends: with its first request, and
// where the next is due.
func (h *Helm) place(due int64, p Phase) {
	switch {
	case p == Measured && !h.measured:
		h.measured, h.start, h.last = true, due, due
	case p == Measured:
		h.last = due
	case h.measured && !h.over:
		h.over, h.end = true, max(due, h.last+1)
	}
}

// window is Schedule.Window.
func (h *Helm) window() (start, end int64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended && h.measured && !h.over && len(h.legs) == 0 {
		return h.start, h.last + 1, true
	}
	return h.start, h.end, h.over
}
