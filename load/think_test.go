package load

import (
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
)

// A request of a closed loop is due when the user's answer before has ended and
// the think time is over, to the nanosecond, and leaves no earlier.
func TestThinkTimes(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 20ms}")
		for _, think := range []string{"30ms", "exponential:30ms"} {
			j := job(t, url, newTape(), schedule.Options{Concurrency: 1, Requests: 8, Warmup: "2", Drain: "quiet", Think: think})
			_, r := offer(t, j)
			if p := phases(r); len(p[recording.Warmup]) != 2 || len(p[recording.Measured]) != 8 {
				t.Fatalf("%s: %d requests", think, len(r.traces))
			}
			for k := 1; k < len(r.traces); k++ {
				before, tr := &r.traces[k-1], &r.traces[k]
				if got, want := tr.Due-before.End.V, int64(j.Schedule.Think(0, int64(k))); got != want || tr.Sent.V < tr.Due {
					t.Errorf("%s: turn %d is due %d ns after the answer before, want %d; sent %d ns later", think, k, got, want, tr.Sent.V-tr.Due)
				}
			}
		}
		// Nobody waits for users who think when the run is over, or was stopped.
		for _, c := range []struct {
			o    schedule.Options
			stop time.Duration
			want int
		}{
			{schedule.Options{Requests: 4}, time.Minute, 4},
			{schedule.Options{Requests: 5, Drain: "quiet"}, 300 * time.Millisecond, 4},
			{schedule.Options{Duration: 200 * time.Millisecond}, time.Minute, 4},
		} {
			c.o.Concurrency, c.o.Warmup, c.o.Think = 4, "0", "1h"
			stop := make(chan struct{})
			timer := time.AfterFunc(c.stop, func() { close(stop) })
			if _, r := offerUntil(t, t.Context(), stop, job(t, url, newTape(), c.o)); len(r.traces) != c.want {
				t.Errorf("%+v: %d requests, want %d", c.o, len(r.traces), c.want)
			}
			timer.Stop()
		}
	})
}
