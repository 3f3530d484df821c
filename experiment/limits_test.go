package experiment

import (
	"math"
	"strings"
	"testing"

	"fermata/internal/conf"
	"fermata/spec"
	"fermata/wire"
)

func demandFor(t testing.TB, settings ...string) demand {
	t.Helper()
	sets := []conf.Setting{{Path: "target.url", Value: "http://h:1"}}
	for _, text := range settings {
		set, err := spec.Set(text)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	s, err := spec.Read("", nil, sets)
	if err != nil {
		t.Fatal(err)
	}
	_, arrivals, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	return demandOf(s, arrivals)
}

func TestDemand(t *testing.T) {
	for _, c := range []struct {
		settings string
		want     demand
	}{
		{"schedule.concurrency=300", demand{300, 0}},
		{"schedule.concurrency=300 load.max_in_flight=20", demand{20, 0}},
		{"schedule.kind=all schedule.requests=500", demand{500, 0}},
		{"schedule.rate=4", demand{math.MaxInt64, 4}},
		{"schedule.rate=4 schedule.requests=90 schedule.drain=quiet", demand{90, 4}},
		{"schedule.rate=4 load.max_in_flight=7", demand{7, 4}},
		{"schedule.ramp.from=9 schedule.ramp.to=2 schedule.ramp.over=10s", demand{math.MaxInt64, 9}},
		{"schedule.steps[0].rate=3 schedule.steps[0].for=9s schedule.steps[1].rate=5 schedule.steps[1].for=9s", demand{math.MaxInt64, 5}},
		{"schedule.rate=4 schedule.burst.rate=40 schedule.burst.every=60s schedule.burst.for=5s", demand{math.MaxInt64, 40}},
	} {
		if got := demandFor(t, strings.Fields(c.settings)...); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.settings, got, c.want)
		}
	}
}

func TestShortage(t *testing.T) {
	const many = math.MaxInt64
	for _, c := range []struct {
		limits limits
		demand demand
		want   string // parts, divided by |; empty: nothing is short
	}{
		{limits{1024, 28232}, demand{300, 0}, ""},
		{limits{1024, 28232}, demand{992, 0}, ""},
		{limits{1024, 28232}, demand{993, 0}, "may open 1024 files|enough for 992 streams|wants 993|ulimit -n"},
		{limits{1 << 20, 28232}, demand{30000, 0}, "has 28232 ports|wants 30000|ip_local_port_range"},
		{limits{1024, 28232}, demand{many, 16}, ""},                                               // 62 s
		{limits{1024, 28232}, demand{many, 20}, "enough for 992 streams|at 20 requests/s|49.6 s"}, // 992/20
		{limits{1024, 28232}, demand{900, 20}, ""},
		{limits{20, 0}, demand{1, 0}, "enough for 0 streams"},
		{limits{}, demand{many, 1e6}, ""},
		{limits{1024, 28232}, demand{many, 0}, ""},
	} {
		got := c.limits.shortage(c.demand)
		if (got == "") != (c.want == "") {
			t.Errorf("%+v for %+v: %q, want %q", c.limits, c.demand, got, c.want)
		}
		for part := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(got, part) {
				t.Errorf("%+v for %+v: no %q in %q", c.limits, c.demand, part, got)
			}
		}
	}
	if l := wire.MachineLimits(); l.Files < 0 || l.Ports < 0 {
		t.Errorf("this machine has %+v", l)
	}
}
