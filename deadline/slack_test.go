package deadline

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// The slack of the load rule is the same whatever load the curve was measured
// under.
func TestSlackDoesNotDependOnTheLoad(t *testing.T) {
	r := &dice{4242}
	lengths := make([]int32, 20000)
	for i := range lengths {
		lengths[i] = int32(chatLength(r))
	}
	for _, world := range []string{"idle", "fifo60", "fifo90"} {
		at := quadraticFit(sampleOf(t, probesOf("yi", world, 100, 1)))
		s, err := LoadSlack(lengths, func(p float64) float64 { return 1e9 * at(p) }, 1e9*roundTrip, Promise{Load: 0.6, Share: 0.9}, 99)
		if err != nil || s < 1.60e9 || s > 1.90e9 {
			t.Errorf("%s: %d, %v", world, s, err)
		}
		t.Logf("%s: %.3f s", world, float64(s)/1e9)
	}
}

// With exponential service P(W > x) = ρ·exp(−(1 − ρ)x/s).
func TestSlackIsTheWaitInAQueue(t *testing.T) {
	r := &dice{7}
	lengths := make([]int32, 20000)
	for i := range lengths {
		lengths[i] = int32(1e6 * r.exp())
	}
	for _, p := range []Promise{{0.6, 0.9}, {0.6, 0.95}, {0.8, 0.9}} {
		s, err := LoadSlack(lengths, func(l float64) float64 { return 1000 * l }, 0, p, 99)
		if want := 1e9 * math.Log(p.Load/(1-p.Share)) / (1 - p.Load); err != nil || math.Abs(float64(s)/want-1) > 0.05 {
			t.Errorf("%+v: %d, want %.0f", p, s, want)
		}
	}
	// Most find an idle server idle.
	if s, _ := LoadSlack(lengths, func(l float64) float64 { return 1000 * l }, 0, Promise{0.05, 0.9}, 99); s != 0 {
		t.Errorf("%d", s)
	}
	a, _ := LoadSlack(lengths, func(l float64) float64 { return 1000 * l }, 0, Promise{}, 1)
	b, _ := LoadSlack(lengths, func(l float64) float64 { return 1000 * l }, 0, Promise{0.6, 0.95}, 1)
	if a != b {
		t.Errorf("the default promise gives %d, want %d", a, b)
	}
	for want, p := range map[string]Promise{"a load of 1:": {Load: 1}, "a load of -0.1:": {Load: -0.1}, "a share of 1.5:": {Share: 1.5}} {
		if _, err := LoadSlack(lengths, func(l float64) float64 { return l }, 0, p, 1); err == nil || !strings.Contains(strings.Replace(err.Error(), "acceptable ", "", 1), strings.Replace(want, "a load", "load", 1)) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := LoadSlack(nil, nil, 0, Promise{}, 1); err == nil {
		t.Error("no prompts")
	}
}

func TestWhichTermBinds(t *testing.T) {
	limit, err := Cap("interactive")
	if err != nil || limit != time.Second {
		t.Error(limit, err)
	}
	r := SlackRule{Workload: "lmsys", ByLoad: 1700 * time.Millisecond, Class: "interactive", Cap: limit}
	if s := r.Settle(); s != time.Second || r.Binds != "cap" {
		t.Errorf("%v %+v", s, r)
	}
	r.Cap, _ = Cap("medium")
	if s := r.Settle(); s != 1700*time.Millisecond || r.Binds != "load" {
		t.Errorf("%v %+v", s, r)
	}
	r.Class, r.Cap = "", 0
	if s := r.Settle(); s != 1700*time.Millisecond || r.Binds != "load" {
		t.Errorf("without a cap: %v %+v", s, r)
	}
	if r = (SlackRule{Class: "low", Cap: 10 * time.Second}); r.Settle() != 10*time.Second || r.Binds != "cap" {
		t.Errorf("without a workload: %+v", r)
	}
	if _, err := Cap("vip"); err == nil {
		t.Error("no such class")
	}
	if !slices.IsSortedFunc(classes, func(a, b struct {
		name  string
		limit time.Duration
	},
	) int {
		return int(a.limit - b.limit)
	}) {
		t.Error("classes")
	}
}
