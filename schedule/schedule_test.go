package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = int64(time.Millisecond)

// Constant at 10/s: request k is due at 100k ms, so every value is found by hand.
func TestPhasesOfOpenLoops(t *testing.T) {
	for _, c := range []struct {
		requests   int64
		duration   time.Duration
		warmup     string
		first      int64 // index of the first measured request
		measured   int64
		start, end int64 // ms
		text       string
	}{
		{requests: 20, first: 2, measured: 20, start: 200, end: 2200, text: "2 requests (10 %)"},
		{requests: 14, first: 1, measured: 14, start: 100, end: 1500, text: "1 request (10 %)"},
		{requests: 4, first: 0, measured: 4, start: 0, end: 400, text: "none"},
		{requests: 0, first: 10, measured: 100, start: 1000, end: 11000, text: "10 requests (10 %)"},
		{requests: 2000, first: 200, measured: 2000, start: 20000, end: 220000, text: "200 requests (10 %)"},
		{requests: 3000, first: 200, measured: 3000, start: 20000, end: 320000, text: "200 requests"},
		{requests: 20, warmup: "0", first: 0, measured: 20, start: 0, end: 2000, text: "none"},
		{requests: 20, warmup: "0%", first: 0, measured: 20, start: 0, end: 2000, text: "none"},
		{requests: 20, warmup: "0s", first: 0, measured: 20, start: 0, end: 2000, text: "none"},
		{requests: 20, warmup: "5", first: 5, measured: 20, start: 500, end: 2500, text: "5 requests"},
		{requests: 20, warmup: "50 %", first: 10, measured: 20, start: 1000, end: 3000, text: "10 requests (50 %)"},
		{requests: 1000, warmup: "29%", first: 290, measured: 1000, start: 29000, end: 129000, text: "290 requests (29 %)"},
		{requests: 20, warmup: "250ms", first: 3, measured: 20, start: 250, end: 2300, text: "250ms"},
		{requests: 20, warmup: "300ms", first: 3, measured: 20, start: 300, end: 2300, text: "300ms"},
		{duration: 10 * time.Second, first: 10, measured: 100, start: 1000, end: 11000, text: "1s (10 %) or 200 requests, whichever comes first"},
		{duration: 200 * time.Second, first: 200, measured: 2000, start: 20000, end: 220000, text: "20s (10 %) or 200 requests, whichever comes first"},
		{duration: 300 * time.Second, first: 200, measured: 3000, start: 20000, end: 320000, text: "30s (10 %) or 200 requests, whichever comes first"},
		{duration: 10 * time.Second, warmup: "0", first: 0, measured: 100, start: 0, end: 10000, text: "none"},
		{duration: 1050 * time.Millisecond, warmup: "0", first: 0, measured: 11, start: 0, end: 1050, text: "none"},
		{duration: 10 * time.Second, warmup: "7", first: 7, measured: 100, start: 700, end: 10700, text: "7 requests"},
		{duration: 10 * time.Second, warmup: "20%", first: 20, measured: 100, start: 2000, end: 12000, text: "2s (20 %)"},
		{duration: 10 * time.Second, warmup: "250ms", first: 3, measured: 100, start: 250, end: 10250, text: "250ms"},
		// Nothing is due in the measured phase: the first request after it is a drain one.
		{duration: 30 * time.Millisecond, warmup: "10ms", first: 1, measured: 0, start: 10, end: 40, text: "10ms"},
	} {
		for _, drain := range []string{"", "load", "quiet"} {
			name := fmt.Sprintf("requests %d, duration %v, warmup %q, drain %q", c.requests, c.duration, c.warmup, drain)
			s := mustNew(t, Options{Kind: Constant, Rate: 10, Requests: c.requests, Duration: c.duration, Warmup: c.warmup, Drain: drain}, 1)
			if got := s.WarmupText(); got != c.text {
				t.Errorf("%s: warm-up is %q, want %q", name, got, c.text)
			}
			for i := range c.first + c.measured + 3 {
				a, ok := s.Next(0)
				want := Measured
				switch {
				case i < c.first:
					want = Warmup
				case i >= c.first+c.measured:
					want = Drain
				}
				if ok != (want != Drain || drain != "quiet") || ok && (a.Phase != want || a.Index != i || a.Due != 100*i*ms) {
					t.Fatalf("%s: request %d is %+v, %v; want phase %s", name, i, a, ok, want)
				}
			}
			if start, end, known := s.Window(); start != c.start*ms || end != c.end*ms || !known {
				t.Errorf("%s: window [%d, %d) %v, want [%d, %d)", name, start, end, known, c.start*ms, c.end*ms)
			}
			n, known := s.MeasuredTotal()
			if want := c.duration == 0; known != want || known && n != c.measured {
				t.Errorf("%s: %d measured requests, known %v", name, n, known)
			}
		}
	}
}

func TestWindowIsKnownEarly(t *testing.T) {
	for _, c := range []struct {
		o          Options
		start, end int64
		known      bool
	}{
		{Options{Rate: 1, Duration: time.Second, Warmup: "0"}, 0, 1000, true},
		{Options{Rate: 1, Duration: time.Second, Warmup: "500ms"}, 500, 1500, true},
		{Options{Rate: 1, Duration: time.Second}, 0, 0, false},
		{Options{Rate: 1, Requests: 5, Warmup: "2s"}, 2000, 0, false},
		{Options{Concurrency: 1, Duration: time.Second, Warmup: "500ms"}, 500, 1500, true},
	} {
		s := mustNew(t, c.o, 1)
		if start, end, known := s.Window(); start != c.start*ms || end != c.end*ms || known != c.known {
			t.Errorf("%+v: window [%d, %d) %v before the first arrival", c.o, start, end, known)
		}
	}
}

// What a closed loop says when users become free at the given times.
func TestClosedLoop(t *testing.T) {
	free := []int64{0, 0, 0, 40, 55, 60, 90, 100, 101, 130}
	for _, c := range []struct {
		o          Options
		phases     string // first letter of each; . for none
		start, end int64
		known      bool
	}{
		{Options{Requests: 4, Warmup: "3"}, "wwwmmmmddd", 40, 0, false},
		{Options{Requests: 4, Warmup: "3", Drain: "quiet"}, "wwwmmmm...", 40, 0, false},
		{Options{Requests: 4, Warmup: "0"}, "mmmmdddddd", 0, 0, false},
		{Options{Requests: 4, Warmup: "50ms"}, "wwwwmmmmdd", 50, 0, false},
		{Options{Duration: 60 * time.Millisecond, Warmup: "40ms"}, "wwwmmmmddd", 40, 100, true},
		{Options{Duration: 60 * time.Millisecond, Warmup: "4"}, "wwwwmmmmmd", 55, 115, true},
		{Options{Duration: 100 * time.Millisecond, Warmup: "0", Drain: "quiet"}, "mmmmmmm...", 0, 100, true},
		{Options{Requests: 20}, "wwmmmmmmmm", 0, 0, false},
	} {
		c.o.Concurrency = 3
		s := mustNew(t, c.o, 1)
		if s.Users() != 3 {
			t.Errorf("%+v: %d users", c.o, s.Users())
		}
		got := ""
		for i, now := range free {
			a, ok := s.Next(now * ms)
			if !ok {
				got += "."
				continue
			}
			got += string(a.Phase[0])
			if a.Due != now*ms || a.Index != int64(i) {
				t.Errorf("%+v: %+v at %d ms", c.o, a, now)
			}
		}
		if got != c.phases {
			t.Errorf("%+v: phases %s, want %s", c.o, got, c.phases)
		}
		if start, end, known := s.Window(); start != c.start*ms || end != c.end*ms || known != c.known {
			t.Errorf("%+v: window [%d, %d) %v", c.o, start, end, known)
		}
	}
}

func TestAllAtOnce(t *testing.T) {
	for _, c := range []struct {
		warmup, phases string
	}{{"", "mmm"}, {"0", "mmm"}} {
		s := mustNew(t, Options{Kind: All, Requests: 3, Warmup: c.warmup}, 1)
		got := ""
		for a, ok := s.Next(99); ok; a, ok = s.Next(99) {
			got += string(a.Phase[0])
			if a.Due != 0 {
				t.Errorf("due at %d", a.Due)
			}
		}
		if got != c.phases {
			t.Errorf("warmup %q: phases %s, want %s", c.warmup, got, c.phases)
		}
		if start, _, known := s.Window(); start != 0 || known {
			t.Errorf("warmup %q: window from %d, end known %v", c.warmup, start, known)
		}
		if n, known := s.MeasuredTotal(); n != 3 || !known || s.Users() != 0 {
			t.Errorf("%d measured requests, %v, %d users", n, known, s.Users())
		}
	}
}

// Phases follow one another without a gap: warm-up before start, measured
// requests in [start, end), drain from end on.
func TestPhasesAreContiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Kind:   rapid.SampledFrom([]string{Poisson, Constant, Gamma, Weibull}).Draw(t, "kind"),
			Rate:   rapid.Float64Range(0.01, 1e5).Draw(t, "rate"),
			Warmup: rapid.SampledFrom([]string{"", "0", "1", "17", "3%", "100%", "1ms", "2s"}).Draw(t, "warmup"),
		}
		if rapid.Bool().Draw(t, "by count") {
			o.Requests = rapid.Int64Range(1, 500).Draw(t, "requests")
		} else {
			o.Duration = time.Duration(rapid.Float64Range(1, 300).Draw(t, "mean requests") / o.Rate * 1e9)
		}
		switch o.Kind {
		case Gamma:
			o.Burstiness = rapid.Float64Range(0.05, 20).Draw(t, "burstiness")
		case Weibull:
			o.Shape = rapid.Float64Range(0.4, 20).Draw(t, "shape")
		}
		rate, gap := o.Rate, func(n float64) time.Duration { return time.Duration(n / o.Rate * 1e9) }
		switch long := gap(rapid.Float64Range(1, 300).Draw(t, "length")); rapid.IntRange(0, 3).Draw(t, "rates") {
		case 1:
			o.Rate, o.Ramp = 0, &Ramp{To: rate, Over: long}
		case 2:
			o.Rate, o.Steps = 0, []Step{{rate / 3, long}, {0, long}, {2 * rate, long}, {Rate: rate}}
		case 3:
			o.Burst = &Burst{Rate: 1.5 * rate, Every: long + gap(5), For: long}
		}
		s, err := New(o, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		var all []Arrival
		for drained := 0; drained < 3 && len(all) < 300_000; {
			a, ok := s.Next(0)
			if !ok {
				t.Fatal("a loading drain ended")
			}
			if a.Phase == Drain {
				drained++
			}
			all = append(all, a)
		}
		start, end, known := s.Window()
		if drained := all[len(all)-1].Phase == Drain; !known || !drained || start > end {
			t.Fatalf("%+v: window [%d, %d) %v after %d requests", o, start, end, known, len(all))
		}
		measured := int64(0)
		for i, a := range all {
			if i > 0 && a.Due < all[i-1].Due || a.Index != int64(i) {
				t.Fatalf("%+v after %+v", a, all[max(0, i-1)])
			}
			var fits bool
			switch a.Phase {
			case Warmup:
				fits = a.Due <= start && measured == 0
			case Measured:
				fits = start <= a.Due && a.Due < end
				measured++
			case Drain:
				fits = end <= a.Due || a.Due == all[i-1].Due
			}
			if !fits {
				t.Fatalf("%+v does not fit the window [%d, %d)", a, start, end)
			}
		}
		if o.Requests > 0 && measured != o.Requests {
			t.Fatalf("%d measured requests, want %d", measured, o.Requests)
		}
		if o.Duration > 0 && end-start != int64(o.Duration) {
			t.Fatalf("the window is %d ns long, want %d", end-start, o.Duration)
		}
	})
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string // path and the beginning of the text, one a problem
	}{
		{Options{Rate: 1}, ""},
		{Options{Kind: Constant, Rate: 0.5, Duration: time.Minute, Warmup: "30s", Drain: "quiet"}, ""},
		{Options{Concurrency: 4, Requests: 10}, ""},
		{Options{Kind: All}, ""},
		{Options{Kind: "trace.csv"}, ""},
		{Options{Kind: "traces/monday"}, ""},
		{Options{Kind: Given}, ""},
		{Options{File: "trace.csv", Requests: 5, Warmup: "10%", Drain: "quiet"}, ""},
		{Options{}, "rate must be given"},
		{Options{Kind: "poison", Rate: 1}, `kind must be poisson, gamma, weibull, constant, closed, all or a file of given times, not "poison"`},
		{Options{Rate: -1}, "rate must be between"},
		{Options{Rate: 1e9}, "rate must be between"},
		{Options{Rate: 1, Concurrency: 3}, "rate cannot be given: in a closed loop"},
		{Options{Kind: Poisson, Rate: 1, Concurrency: 3}, "concurrency is for closed loops"},
		{Options{Kind: Closed}, "concurrency must be 1 or more"},
		{Options{Concurrency: -1}, "concurrency must be 1 or more"},
		{Options{Kind: Poisson, Rate: 1, File: "x.csv"}, "file cannot be combined"},
		{Options{Kind: "y.csv", File: "x.csv"}, "file cannot be given beside the file y.csv"},
		{Options{File: "x.csv", Rate: 3}, "rate cannot be given: given times"},
		{Options{File: "x.csv", Drain: "load"}, "drain must be quiet"},
		{Options{Kind: All, Warmup: "3s", Duration: time.Second}, "duration cannot be given|warmup must be 0 where all"},
		{Options{Rate: 1, Requests: 3, Duration: time.Second}, "requests cannot be given beside duration"},
		{Options{Rate: 1, Requests: -3}, "requests must not be negative"},
		{Options{Rate: 1, Duration: -time.Second}, "duration must not be negative, not -1s"},
		{Options{Rate: 1, Warmup: "some"}, "warmup must be requests, a share or a time"},
		{Options{Rate: 1, Warmup: "-1"}, "warmup must not be negative"},
		{Options{Rate: 1, Warmup: "120%"}, "warmup must be between 0% and 100%"},
		{Options{Rate: -1, Requests: -3, Duration: -1, Warmup: "x", Drain: "slow"}, "rate |requests |duration |warmup |drain must be load or quiet"},
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
		if _, err := New(c.o, 1); want != nil && (err == nil || !strings.Contains(err.Error(), strings.TrimSpace(strings.Replace(want[0], " ", ": ", 1)))) {
			t.Errorf("New(%+v) says %v", c.o, err)
		}
	}
}

func TestFilled(t *testing.T) {
	for _, c := range []struct{ o, want Options }{
		{Options{Rate: 2}, Options{Kind: Poisson, Rate: 2, Requests: 100, Drain: "load"}},
		{Options{Concurrency: 2, Duration: 5}, Options{Kind: Closed, Concurrency: 2, Duration: 5, Drain: "load"}},
		{Options{Kind: All}, Options{Kind: All, Requests: 100, Drain: "quiet"}},
		{Options{Kind: "a.csv"}, Options{Kind: Given, File: "a.csv", Drain: "quiet"}},
		{Options{File: "a.csv"}, Options{Kind: Given, File: "a.csv", Drain: "quiet"}},
	} {
		got := c.o.Filled()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v filled: %s", c.o, diff)
		}
		if diff := cmp.Diff(got, got.Filled()); diff != "" {
			t.Errorf("%+v is not filled: %s", got, diff)
		}
		if !(&Options{Requests: 3}).Unset() || c.o.Unset() {
			t.Errorf("%+v: Unset is wrong", c.o)
		}
	}
}
