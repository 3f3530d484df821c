package schedule

import (
	"strings"
	"testing"
	"time"
)

// Request k of constant gaps at 10/s is due at 100k ms: the phase has its requests
// and lasts until one is due so long after its start.
func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		requests int64
		atLeast  time.Duration
		warmup   string
		measured int64
	}{
		{5, 0, "0", 5},
		{5, 300 * time.Millisecond, "0", 5},
		{5, 400 * time.Millisecond, "0", 5}, // the fifth is due at 400 ms
		{5, 401 * time.Millisecond, "0", 6},
		{5, 2 * time.Second, "0", 21},
		{5, 2 * time.Second, "3", 21},
	} {
		s := mustNew(t, Options{Kind: Constant, Rate: 10, Requests: c.requests, AtLeast: c.atLeast, Warmup: c.warmup, Drain: "quiet"}, 1)
		if _, known := s.MeasuredTotal(); known != (c.atLeast == 0) {
			t.Errorf("%+v: the number of requests is known: %v", c, known)
		}
		measured := int64(0)
		for a, ok := s.Next(0); ok; a, ok = s.Next(0) {
			if a.Phase == Measured {
				measured++
			}
		}
		if measured != c.measured {
			t.Errorf("%+v: %d measured", c, measured)
		}
	}
}

// The requests of a query have one session and stay in one phase.
func TestStreams(t *testing.T) {
	s := mustNew(t, Options{Kind: Closed, Concurrency: 1, Streams: 4, Requests: 10, AtLeast: time.Second, Warmup: "3", Drain: "quiet"}, 1)
	if s.Streams() != 4 || s.Users() != 1 {
		t.Fatalf("%d streams of %d users", s.Streams(), s.Users())
	}
	var got []string
	for due := int64(0); ; due += 300 * ms {
		for range 4 {
			a, ok := s.Next(due)
			if !ok {
				// Queries every 300 ms: of the measured ones, from 300 ms on, that at 1500 ms
				// is the first which is due a second after the start.
				want := "w0 w0 w0 w0 m1 m1 m1 m1 m2 m2 m2 m2 m3 m3 m3 m3 m4 m4 m4 m4 m5 m5 m5 m5"
				if text := strings.Join(got, " "); text != want {
					t.Errorf("%s, want %s", text, want)
				}
				return
			}
			got = append(got, string(a.Phase[0])+a.Session)
		}
	}
}

func TestStreamsRoundUp(t *testing.T) {
	s := mustNew(t, Options{Kind: Closed, Concurrency: 1, Streams: 8, Requests: 100, Warmup: "0", Drain: "quiet"}, 1)
	if n, known := s.MeasuredTotal(); !known || n != 104 {
		t.Errorf("%d measured requests, known %v; want 13 queries of 8", n, known)
	}
}

func TestWrongQueries(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Kind: Poisson, Rate: 1, Streams: 2}, "streams: is for closed loops"},
		{Options{Concurrency: 1, Streams: -1}, "streams: must be between 1 and"},
		{Options{Concurrency: 1, AtLeast: -1}, "at_least: must be between 0 and"},
		{Options{Rate: 1, AtLeast: time.Second, Duration: time.Second}, "at_least: cannot be given beside duration"},
		{Options{Kind: All, AtLeast: time.Second}, "at_least: is for load that goes on"},
	} {
		if _, err := New(c.o, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}
