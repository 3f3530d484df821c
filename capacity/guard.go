package capacity

import (
	"fmt"
	"math"
)

// guards are what can make a result mean less than it says.
func (o *Options) guards(r *Result, s *State) {
	if r.Rough {
		r.warn("rough", fmt.Sprintf("asked for to %.3g%% only: a first look, no result to publish", 100*o.Precision), "Search with --precision 5% before relying on it.")
	}
	if r.ClientBound = s.BoundBy != ""; r.ClientBound {
		r.warn("client_bound", "this machine was the bottleneck at the rate found, not the server: "+s.BoundBy, "Search from a machine with more cores, or with nothing else to do.")
	}
	o.length(r, s)
	if h := r.Held; h != nil {
		if d := h.Drift; d != nil && d.Unsteady {
			r.warn("unsteady", fmt.Sprintf("at %.4g requests/s the requests under way kept growing, by %.3g a request: that rate has no steady state", h.Rate, d.PerRequest), "Take the lower end of the interval, or search with a smaller --precision.")
		}
		if h.Realised > 0 && h.Realised < unrealised*h.Rate && float64(h.Requests)*(1-h.Realised/h.Rate)*(1-h.Realised/h.Rate) > 9 {
			r.warn("unrealised", fmt.Sprintf("%.4g requests/s were set, %.4g came of it: the asker could not keep up, and what was found holds for the lower rate", h.Rate, h.Realised), "Ask from a faster machine, or from several.")
		}
	}
	if r.Saturated {
		r.warn("saturation_limited", fmt.Sprintf("the rate found is %.2g of saturation or more (%.4g requests/s): saturation limits it more than the objective, and nobody should run there", nearSaturation, s.Probe.RPS), "Promise less than that rate, or more than this objective.")
	}
	if p := s.Probe; p != nil && p.Climbed {
		r.warn("saturation_guessed", fmt.Sprintf("asking for all at once did not show the saturation (%d of %d were answered); doubling the rate until requests failed gave %.4g requests/s", p.Answered, p.Asked, p.RPS), "")
	}
	if p := s.Probe; p != nil && p.Guessed {
		r.warn("saturation_guessed", fmt.Sprintf("%d requests at once still ended together, as those of one batch do, so that the saturation is not known: %.4g requests/s, the average of that batch, is the least it can be", p.Asked, p.RPS), "Search with a smaller --precision, which asks for more at once.")
	}
	if s.Turned > 0 {
		text := fmt.Sprintf("%d of %d requests were turned away for the load (429 or 503), and count as misses", s.Turned, s.Sent)
		if 2*s.Turned > s.Misses {
			text += ": the limit that was found is the one at which the server refuses"
		}
		r.warn("turned_away", text, "Raise the server's limit to find what its hardware can do.")
	}
	if clips := s.clips(); clips > len(s.Steps)/4 && o.Method == HTRM && len(s.Steps) >= 4 && r.Ending != AlwaysMiss {
		r.warn("clipped", fmt.Sprintf("in %d of %d blocks the rate was held at an end of its range, from a twentieth of saturation to %.3g times it", clips, len(s.Steps), math.Exp(highestOver)), "")
	}
}

// length refuses to say that a rate holds where the run was too short to break it.
func (o *Options) length(r *Result, s *State) {
	if o.Patience <= 0 || r.Capacity == nil {
		return
	}
	n, mu := 0, r.Capacity.RPS
	switch {
	case o.Method == Bisect:
		n = o.TrialRequests
	case r.Held != nil:
		n, mu = r.Held.Requests, s.Probe.RPS
	default:
		return
	}
	if floor := LengthFloor(o.Patience, mu); n < floor {
		r.warn("short", fmt.Sprintf("%d requests at one rate cannot break a promise to wait no longer than %s: even 5%% above saturation the queue takes %d requests to get there, so that a rate that passes proves nothing", n, o.Patience, floor), "Ask for a smaller --precision, or longer trials.")
	}
}

// clips is how many blocks were asked at an end of the range.
func (s *State) clips() int {
	if s.Probe == nil || s.Probe.RPS <= 0 {
		return 0
	}
	n := 0
	for _, b := range s.Steps {
		if x := math.Log(b.Rate / s.Probe.RPS); x > highestOver-1e-9 || x < 1e-9-math.Log(lowestLoad) {
			n++
		}
	}
	return n
}
