package schedule

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// A turn's think time is the seed's, the user's and the turn's alone. The values
// come from coreutils, for example
// printf '\x07\0\0\0\0\0\0\0schedule: think 3 7' | sha256sum, and -ln(1-u)·2 s.
func TestThinkTimes(t *testing.T) {
	s := mustNew(t, Options{Concurrency: 20, Think: "exponential:2s"}, 7)
	for range 2 {
		for _, c := range []struct {
			user int
			turn int64
			want time.Duration
		}{{3, 7, 829383203}, {12, 1_000_000, 1777980148}, {0, 1, 2128140181}, {0, 0, 0}, {5, 0, 0}} {
			if got := s.Think(c.user, c.turn); got != c.want {
				t.Errorf("user %d thinks for %d ns before turn %d, want %d", c.user, got, c.turn, c.want)
			}
		}
	}
	constant := mustNew(t, Options{Concurrency: 2, Think: "1500ms"}, 7)
	none := mustNew(t, Options{Concurrency: 2}, 7)
	for turn := range int64(5) {
		want := 1500 * time.Millisecond
		if turn == 0 {
			want = 0
		}
		if constant.Think(1, turn) != want || none.Think(1, turn) != 0 {
			t.Errorf("turn %d: %v and %v", turn, constant.Think(1, turn), none.Think(1, turn))
		}
	}
}

// The mean of n exponential times has sd 1/√n, their CV too.
func TestThinkTimesAreExponential(t *testing.T) {
	const users, turns, n = 50, 400, 50 * 400
	s := mustNew(t, Options{Concurrency: users, Think: "exponential:2s"}, 1)
	var at []int64
	last := int64(0)
	for user := range users {
		for turn := range int64(turns) {
			at = append(at, last)
			last += int64(s.Think(user, turn+1))
		}
	}
	at = append(at, last)
	g, bound := Realised(at), z/math.Sqrt(n)
	if g.N != n || math.Abs(g.MeanNs/2e9-1) > bound || math.Abs(g.CV-1) > bound {
		t.Errorf("%d think times: mean %v ns, CV %v, bound %v", g.N, g.MeanNs, g.CV, bound)
	}
	if d := fromExponential(at, 2e9); d*math.Sqrt(n) > ks {
		t.Errorf("Kolmogorov-Smirnov statistic √n·D is %v, bound %v", d*math.Sqrt(n), ks)
	}
}

// Users who wake one after the other may ask a little out of order.
func TestClosedLoopOutOfOrder(t *testing.T) {
	for _, c := range []struct {
		o      Options
		due    []int64
		phases string
	}{
		{Options{Duration: 60 * time.Millisecond, Warmup: "40ms"}, []int64{10, 41, 39, 40, 99, 100, 99, 101}, "wmwmmdmd"},
		{Options{Requests: 3, Warmup: "2"}, []int64{0, 1, 20, 19, 21, 22, 21, 23}, "wwmwmmdd"},
	} {
		c.o.Concurrency, c.o.Think = 5, "exponential:5ms"
		s, got := mustNew(t, c.o, 1), ""
		for i, due := range c.due {
			a, ok := s.Next(due * ms)
			got += string(a.Phase[0])
			if !ok || a.Due != due*ms || a.Index != int64(i) {
				t.Errorf("%+v: %+v for %d ms", c.o, a, due)
			}
		}
		if got != c.phases {
			t.Errorf("%+v: phases %s, want %s", c.o, got, c.phases)
		}
	}
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		o    Options
		over []bool // after requests at 0, 10, 20 and 30 ms
	}{
		{Options{Requests: 2, Warmup: "1"}, []bool{false, false, true, true}},
		{Options{Requests: 9, Warmup: "1"}, []bool{false, false, false, false}},
		{Options{Duration: 10 * time.Millisecond, Warmup: "1"}, []bool{false, false, true, true}}, // from 10 to 20 ms
		{Options{Duration: 10 * time.Millisecond, Warmup: "5ms"}, []bool{false, false, true, true}},
	} {
		c.o.Concurrency = 1
		s := mustNew(t, c.o, 1)
		for i, want := range c.over {
			now := int64(i) * 10 * ms
			s.Next(now)
			if s.Over(now) != want {
				t.Errorf("%+v: over at %d ns: %v", c.o, now, !want)
			}
		}
	}
}

func TestCheckOfKinds(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		o    Options
		want string // path and the beginning of the text, one a problem
	}{
		{Options{Rate: 1, Burstiness: 0.25}, ""},
		{Options{Kind: Gamma, Rate: 1}, "burstiness must be given for kind gamma: 1 is Poisson"},
		{Options{Rate: 1, Burstiness: -1}, "burstiness must be between 0.01 and 10000, not -1"},
		{Options{Kind: Poisson, Rate: 1, Burstiness: 2}, "burstiness is for kind gamma, not for kind poisson"},
		{Options{Rate: 1, Burstiness: 2, Shape: 2}, "shape is for kind weibull, not for kind gamma"},
		{Options{Kind: Weibull, Rate: 1}, "shape must be given for kind weibull"},
		{Options{Rate: 1, Shape: 0.1}, "shape must be between 0.2 and 100, not 0.1"},
		{Options{Burstiness: 2}, "rate must be given"},
		{Options{Ramp: &Ramp{0, 2, second}}, ""},
		{Options{Rate: 1, Ramp: &Ramp{0, 2, second}}, "ramp cannot be given beside rate"},
		{Options{Ramp: &Ramp{-1, 0, 0}}, "ramp.from must be 0 or between|ramp.to must be between 0.000001 and 1000000 requests a second, not 0|ramp.over must be more than 0"},
		{Options{Ramp: &Ramp{1, 2, second}, Warmup: "1s"}, "duration must be given, or requests: warm-up takes all of the 1s that are planned"},
		{Options{Ramp: &Ramp{1, 2, second}, Warmup: "1s", Requests: 5}, ""},
		{Options{Steps: []Step{{1, second}, {0, second}, {2, second}}}, ""},
		{Options{Steps: []Step{{1, second}, {Rate: 2}}}, "duration must be given, or requests, where the last of the steps has no for"},
		{Options{Steps: []Step{{1, second}, {Rate: 2}}, Requests: 5}, ""},
		{Options{Steps: []Step{{1, 0}, {0, second}}}, "steps[0].for must be more than 0|steps[1].rate must be between"},
		{Options{Steps: []Step{{math.NaN(), second}, {1, -second}}}, "steps[0].rate must be 0 or between|steps[1].for must be more"},
		{Options{Steps: []Step{{1, 9000 * time.Hour}, {1, 9000 * time.Hour}}}, "steps must be at most 10000h in all"},
		{Options{Rate: 1, Steps: []Step{{1, second}}}, "steps cannot be given beside rate or ramp"},
		{Options{Rate: 1, Burst: &Burst{3, 3 * second, second}}, ""},
		{Options{Burst: &Burst{3, 3 * second, second}}, "rate must be given"},
		{Options{Rate: 4, Burst: &Burst{3, 3 * second, second}}, "burst.rate must be more than the base rate of 4"},
		{Options{Rate: 1, Burst: &Burst{3, second, second}}, "burst.for must be less than every"},
		{Options{Rate: 1, Burst: &Burst{}}, "burst.rate must be between|burst.every must be more than 0|burst.for must be more than 0"},
		{Options{Ramp: &Ramp{1, 2, second}, Burst: &Burst{3, 3 * second, second}}, "burst cannot be given beside ramp or steps"},
		{Options{Concurrency: 2, Ramp: &Ramp{1, 2, second}, Kind: Closed}, "ramp cannot be given: in a closed loop"},
		{Options{Kind: All, Burst: &Burst{3, 3 * second, second}, Steps: []Step{{1, second}}}, "steps cannot be given: all requests|burst cannot be given"},
		{Options{Concurrency: 1, Think: "exponential:2s"}, ""},
		{Options{Concurrency: 1, Think: "0"}, ""},
		{Options{Concurrency: 1, Think: "2"}, `think must be a time such as 2s, or exponential:2s, not "2"`},
		{Options{Concurrency: 1, Think: "gamma:2s"}, "think must be a time such as 2s"},
		{Options{Concurrency: 1, Think: "-2s"}, "think must be between 0 and 24h, not -2s"},
		{Options{Concurrency: 1, Think: "exponential:25h"}, "think must be between 0 and 24h, not 25h"},
		{Options{Rate: 1, Think: "2s"}, ""},
		{Options{File: "x.csv", Speedup: 2}, ""},
		{Options{File: "x.csv", Speedup: -2}, "speedup must be between"},
		{Options{Rate: 1, Speedup: 2}, "speedup is for given times, not for kind poisson"},
		{Options{Speedup: 2}, "rate must be given"},
	} {
		var got []string
		for _, p := range c.o.Check() {
			got = append(got, p.Path+" "+p.Text)
		}
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, "|")
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%+v:\n%q, want\n%q", c.o, got, want)
		}
		if _, err := New(c.o, 1); c.o.File == "" && (err == nil) != (want == nil) {
			t.Errorf("New(%+v) says %v", c.o, err)
		}
	}
}
