package load

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fermata/cost"
	"fermata/internal/seed"
	"fermata/recording"
)

// How long a request waits before it is tried again, where the server does not
// say: firstWait, twice that after each further try, each drawn from within
// jitter of it, so that requests that failed together do not come back together.
const (
	firstWait = 500 * time.Millisecond
	jitter    = 0.25
	mostWait  = time.Minute // whoever says how long
)

// retries says whether a request is to be tried again.
func (r *run) retries(t *recording.Trace) bool {
	return int(t.Try) < r.Options.Retries && !r.halted() && worthAnother(t)
}

// worthAnother says whether a request that ended so may fare better a little
// later: the server was not there, was too busy, or lost the answer before a token
// of it came. An answer that a reader has begun to read is not asked for again.
func worthAnother(t *recording.Trace) bool {
	switch t.Outcome {
	case recording.Refused, recording.ConnectFailed:
		return true
	case recording.NotSent:
		return t.NoRoom()
	case recording.StreamCut:
		return t.FirstToken() < 0
	case recording.HTTPError:
		switch t.HTTPStatus {
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return false
}

// again is the next try of a request, once it may leave; nil says that the run was
// over first, so that the try before was the last.
func (r *run) again(f *flight) *flight {
	if !r.sitOut(r.pause(f), f.phase) {
		return nil
	}
	if f.to.Rate != nil && !r.purse.hold(f.worst, r.Budget.left()) {
		r.outOfMoney(r.clock.Now(), f.worst)
		return nil
	}
	if !r.admit() {
		r.purse.settle(f.worst, cost.Amount{})
		return nil
	}
	next := &flight{run: r, to: f.to, errand: f.errand, worst: f.worst}
	next.origin = f.origin
	next.try++
	next.counted = f.counted
	r.arm(next, f.words != nil && f.words.heard)
	next.begin()
	return next
}

// sitOut waits; false says that nobody waits for the request any longer: the run
// was stopped, or no measured request is left and this is none.
func (r *run) sitOut(wait time.Duration, phase recording.Phase) bool {
	for end := r.clock.Now() + int64(wait); ; {
		left := time.Duration(end - r.clock.Now())
		switch {
		case r.halted(), phase != recording.Measured && r.drained():
			return false
		case left <= 0:
			return true
		}
		timer := time.NewTimer(min(left, thinkSlice))
		select {
		case <-timer.C:
		case <-r.halt:
		}
		timer.Stop()
	}
}

// pause is how long a request waits for its next try.
func (r *run) pause(f *flight) time.Duration {
	if wait, ok := retryAfter(f.refusal, time.Now()); ok {
		return min(wait, mostWait)
	}
	return backOff(r.Seed, f.index, f.try)
}

// backOff is the wait after a try whose server did not say: the same for the same
// seed, whatever else goes on.
func backOff(of uint64, index int64, try int32) time.Duration {
	draw := seed.Rand(of, fmt.Sprintf("load: retry %d after try %d", index, try)).Float64()
	wait := math.Ldexp(float64(firstWait), int(try)) * (1 + jitter*(2*draw-1))
	return time.Duration(min(wait, float64(mostWait)))
}

// retryAfter is how long the server asks to wait: retry-after-ms, as OpenAI's own
// clients read it, or retry-after in seconds, whole or not, or as a date. A date is
// taken from the server's own clock where it tells that.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	for _, c := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		n, err := strconv.ParseFloat(strings.TrimSpace(h.Get(c.name)), 64)
		if err == nil && n >= 0 {
			return time.Duration(min(n*float64(c.unit), float64(mostWait))), true
		}
	}
	at, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return 0, false
	}
	if told, err := http.ParseTime(h.Get("Date")); err == nil {
		now = told
	}
	return max(0, at.Sub(now)), true
}
