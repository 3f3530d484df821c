package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// placed are the first letters of the phases of turns; what is not to be sent is
// a dash.
func placed(s *Schedule, due ...int64) (got string) {
	for _, at := range due {
		p, ok := s.Place(at * ms)
		if !ok {
			p = "-"
		}
		got += string(p[0])
	}
	return got
}

func threeTurns(int64) (int, bool) { return 3, true }

// Phases count turns as they become due, whosoever they are: so many measured
// ones, whatever comes late.
func TestTurnsArePlaced(t *testing.T) {
	for _, c := range []struct {
		o           Options
		due         []int64 // ms
		want        string
		first, last int64 // of the window, ns
		known       bool
	}{
		{Options{Rate: 10, Requests: 3, Warmup: "2"}, []int64{0, 5, 9, 12, 20, 21, 22}, "wwmmmdd", 9 * ms, 21 * ms, true},
		{Options{Rate: 10, Requests: 3, Warmup: "2", Drain: "quiet"}, []int64{0, 5, 9, 12, 20, 21, 22}, "wwmmm--", 9 * ms, 21 * ms, true},
		{Options{Rate: 10, Requests: 3, Warmup: "2"}, []int64{0, 5, 9, 8, 12, 11, 11, 12}, "wwmwmmdd", 9 * ms, 12*ms + 1, true}, // some come late
		{Options{Rate: 10, Duration: 10 * time.Millisecond, Warmup: "5ms"}, []int64{0, 5, 14, 15, 14, 16}, "wmmdmd", 5 * ms, 15 * ms, true},
		{Options{Concurrency: 2, Requests: 2, Warmup: "1"}, []int64{0, 1, 2, 3}, "wmmd", 1 * ms, 0, false},
		{Options{Kind: All, Requests: 2}, []int64{0, 0, 7}, "mm-", 0, 0, false},
	} {
		s := mustNew(t, c.o, 1)
		if err := s.Converse(threeTurns); err != nil || !s.Converses() || s.Quiet() != strings.Contains(c.want, "-") {
			t.Errorf("%+v: %v", c.o, err)
		}
		if got := placed(s, c.due...); got != c.want {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
		if start, end, known := s.Window(); start != c.first || known != c.known || known && end != c.last {
			t.Errorf("%+v: window [%d, %d) %v, want [%d, %d)", c.o, start, end, known, c.first, c.last)
		}
	}
}

// Conversations begin when single requests would.
func TestStartsAreArrivals(t *testing.T) {
	for _, o := range []Options{{Rate: 10}, {Rate: 5, Burstiness: 0.5}, {Kind: All}} {
		plain, s := mustNew(t, o, 9), mustNew(t, o, 9)
		if err := s.Converse(threeTurns); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			want, _ := plain.Next(0)
			got, ok := s.Start(0)
			if got.Due != want.Due || got.Index != want.Index || got.Phase != "" || !ok {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	}
	if n, known := mustNew(t, Options{Kind: All, Requests: 40}, 1).Most(); n != 40 || !known {
		t.Errorf("at most %d turns, want 40", n)
	}
	if _, known := mustNew(t, Options{Rate: 4}, 1).Most(); known {
		t.Error("a rate knows how many turns there will be")
	}
}

// Given times measure every turn of their conversations, up to the last one.
func TestGivenTimesConverse(t *testing.T) {
	for _, c := range []struct {
		o     Options
		total int64
		want  string
		end   int64
	}{
		{Options{}, 6, "mmmmmm", 60*ms + 1},
		{Options{Warmup: "50%"}, 3, "wwwmmm", 60*ms + 1},
		{Options{Requests: 4}, 4, "mmmm--", 50 * ms},
		{Options{Requests: 9}, 6, "mmmmmm", 60*ms + 1},
		{Options{Duration: 30 * time.Millisecond}, 0, "mm----", 30 * ms},
		{Options{Duration: time.Second}, 0, "mmmmmm", 60*ms + 1},
	} {
		s, err := timed(c.o, []Arrival{{Due: 10 * ms}, {Due: 20 * ms}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Converse(threeTurns); err != nil {
			t.Fatal(err)
		}
		if n, known := s.MeasuredTotal(); n != c.total || known != (n > 0) {
			t.Errorf("%+v: %d turns to measure, want %d", c.o, n, c.total)
		}
		starts := ""
		for a, ok := s.Start(0); ok; a, ok = s.Start(0) {
			starts += fmt.Sprint(a.Index, a.Due/ms, a.Phase, " ")
		}
		if got := placed(s, 10, 20, 30, 40, 50, 60); got != c.want || starts != "0 10 1 20 " {
			t.Errorf("%+v: %s, want %s; starts %s", c.o, got, c.want, starts)
		}
		s.Finish()
		if _, end, known := s.Window(); end != c.end || !known {
			t.Errorf("%+v: the window ends at %d, want %d", c.o, end, c.end)
		}
	}
	s, err := timed(Options{Warmup: "1"}, []Arrival{{Due: 10 * ms}, {Due: 20 * ms}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	one := func(i int64) (int, bool) { return 1, i < 1 }
	if err := s.Converse(one); err == nil || !strings.Contains(err.Error(), "none of the 1 turns is left to measure (warm-up: 1 request)") {
		t.Errorf("%v", err)
	}
}
