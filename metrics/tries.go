package metrics

import (
	"iter"
	"math"

	"fermata/recording"
)

// A chain tells of the tries of the request that was passed on last.
type chain struct {
	earlier int64                  // of its tries, those before the last
	sent    recording.Maybe[int64] // when the first of them left
}

// tries passes on the last try of each request, due when its first one was, and
// tells c of the earlier ones, which go to earlier. Tries of one request stand
// together. Only a failed try can have another one after it, so only those are held
// back.
func tries(traces iter.Seq[recording.Trace], c *chain, earlier func(*recording.Trace)) iter.Seq[recording.Trace] {
	return func(yield func(recording.Trace) bool) {
		var held recording.Trace
		var of chain // that held ends
		holds := false
		for t := range traces {
			now := chain{sent: t.Sent}
			if holds {
				if t.Index == held.Index && t.Try > held.Try {
					earlier(&held)
					now = chain{of.earlier + 1, of.sent}
					t = moved(t, held.Due)
				} else {
					*c = of
					if !yield(held) {
						return
					}
				}
				holds = false
			}
			if t.Outcome != recording.OK {
				held, holds, of = t.Clone(), true, now
				continue
			}
			*c = now
			if !yield(t) {
				return
			}
		}
		if holds {
			*c = of
			yield(held)
		}
	}
}

// moved is t as due at another time.
func moved(t recording.Trace, due int64) recording.Trace {
	if len(t.DeltaNs) > 0 && t.Due != due {
		t = t.Clone()
		t.DeltaNs[0] += t.Due - due
	}
	t.Due = due
	return t
}

// A scale turns recorded time into the time that is judged.
type scale float64

func (s scale) one() bool { return s <= 0 || math.Abs(float64(s)-1) < 1e-12 }

func (s scale) ns(v int64) int64 {
	if s.one() {
		return v
	}
	if whole := math.Round(float64(s)); math.Abs(float64(s)-whole) < 1e-12 {
		return v * int64(whole)
	}
	return int64(math.Round(float64(v) * float64(s)))
}

func (s scale) maybe(m recording.Maybe[int64]) recording.Maybe[int64] {
	m.V = s.ns(m.V)
	return m
}

// traces multiplies every stamp and its bound; arrivals by their distance from
// the due time, so that rounding does not add up.
func (s scale) traces(in iter.Seq[recording.Trace]) iter.Seq[recording.Trace] {
	if s.one() {
		return in
	}
	return func(yield func(recording.Trace) bool) {
		var deltas, errors []int64
		for t := range in {
			t.Due = s.ns(t.Due)
			t.Sent, t.Connected, t.FirstByte, t.End = s.maybe(t.Sent), s.maybe(t.Connected), s.maybe(t.FirstByte), s.maybe(t.End)
			t.ServerReceived, t.ServerQueue, t.ServerPrefill = s.maybe(t.ServerReceived), s.maybe(t.ServerQueue), s.maybe(t.ServerPrefill)
			deltas, errors = deltas[:0], errors[:0]
			var at int64
			for _, d := range t.DeltaNs {
				before := s.ns(at)
				at += d
				deltas = append(deltas, s.ns(at)-before)
			}
			for _, e := range t.StampErrorNs {
				errors = append(errors, s.ns(e))
			}
			t.DeltaNs, t.StampErrorNs = deltas, errors
			if !yield(t) {
				return
			}
		}
	}
}
