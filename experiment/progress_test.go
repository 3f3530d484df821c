package experiment

import (
	"math"
	"testing"
	"time"

	"fermata/load"
)

// at is a moment of a steady run of rate requests a second, of which warm are
// the warm-up's; each answer takes a second.
func at(second, rate, warm, measured int64) load.Live {
	due := second * rate
	l := load.Live{TimeNs: second * 1e9, Due: due, Sent: due - 1, Finished: due - rate}
	l.MeasuredDue = min(max(0, due-warm), measured)
	return l
}

func TestPace(t *testing.T) {
	const unknown = -time.Second
	for _, c := range []struct {
		name   string
		plan   Plan
		second int64 // of a run of 4 requests a second
		want   time.Duration
	}{
		{"warm-up by requests", Plan{Measured: 100, warmupRequests: 20, warmupNs: -1}, 2, 28 * time.Second},
		{"measured by requests", Plan{Measured: 100, warmupRequests: 20, warmupNs: -1}, 15, 15 * time.Second},
		{"all due", Plan{Measured: 100, warmupRequests: 20, warmupNs: -1}, 31, 0},
		{"by time, in the warm-up", Plan{Duration: time.Minute, warmupRequests: -1, warmupNs: 5e9}, 2, 63 * time.Second},
		{"by time", Plan{Duration: time.Minute, warmupRequests: -1, warmupNs: 5e9}, 15, 50 * time.Second},
		{"by time, warm-up by the earlier of two", Plan{Duration: time.Minute, warmupRequests: 20, warmupNs: 6e9}, 2, 63 * time.Second},
		{"by time, after it", Plan{Duration: time.Minute, warmupRequests: -1, warmupNs: 5e9}, 66, 0},
		{"given times", Plan{Measured: 100, endNs: 90e9, warmupRequests: 0, warmupNs: -1}, 15, 75 * time.Second},
		{"given times, after the last", Plan{Measured: 100, endNs: 9e9, warmupRequests: 0, warmupNs: -1}, 15, 0},
		{"nobody knows", Plan{warmupRequests: 20, warmupNs: -1}, 9, unknown},
	} {
		warm := c.plan.warmupRequests
		if warm < 0 {
			warm = 20
		}
		measured := c.plan.Measured
		if measured == 0 {
			measured = math.MaxInt64
		}
		p := Progress{Plan: c.plan}
		var pace Pace
		for s := int64(1); s <= c.second; s++ {
			pace = p.Take(at(s, 4, warm, measured))
		}
		if !pace.LeftKnown {
			pace.Left = unknown
		}
		if pace.Left != c.want || math.Abs(pace.Offered-4) > 1e-9 || math.Abs(pace.Achieved-4) > 1 {
			t.Errorf("%s: %+v, want 4 a second and %s left", c.name, pace, c.want)
		}
	}
}

// Rates are those of the last seconds, and a second run begins anew.
func TestPaceFollows(t *testing.T) {
	p := Progress{Plan: Plan{Measured: 1000, warmupNs: -1}}
	l := load.Live{}
	var pace Pace
	for s := int64(1); s <= 40; s++ {
		l.TimeNs = s * 1e9
		if l.Due += 2; s > 20 {
			l.Due += 6
		}
		l.Sent, l.MeasuredDue = l.Due/2, l.Due
		pace = p.Take(l)
	}
	// 20 s of 2 and 20 s of 8 make 200, so that 800 are left.
	if math.Abs(pace.Offered-8) > 1e-9 || math.Abs(pace.Achieved-4) > 1e-9 || pace.Left != 100*time.Second {
		t.Errorf("%+v, want 8 and 4 a second, 100 s left", pace)
	}
	pace = p.Take(load.Live{TimeNs: 1e9, Due: 5, Sent: 5, MeasuredDue: 5})
	if math.Abs(pace.Offered-5) > 1e-9 || pace.Left != 199*time.Second {
		t.Errorf("in another run %+v", pace)
	}
}
