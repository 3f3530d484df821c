package schedule

import "testing"

// A busy process may place a request after one that is due later. The measured
// phase ends where the next request is due, not where the next one was placed.
func TestPhaseEndsAtEarliestDue(t *testing.T) {
	o := Options{Requests: 2, Warmup: "0"}
	end, err := o.warmupEnd(2)
	if err != nil {
		t.Fatal(err)
	}
	p := newPhases(phases{warmup: end, requests: 2})
	for _, c := range []struct {
		due   int64
		phase Phase
		end   int64 // of the phase afterwards; 0 while it is open
	}{{10, Measured, 0}, {20, Measured, 0}, {30, Drain, 30}, {25, Drain, 25}, {15, Drain, 21}, {40, Drain, 21}} {
		got := p.place(c.due)
		if got != c.phase || p.ended != (c.end > 0) || p.ended && p.end != c.end {
			t.Errorf("due at %d: %s, the phase ends at %d (%v)", c.due, got, p.end, p.ended)
		}
	}
}
