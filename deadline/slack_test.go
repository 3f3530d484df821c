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

// By the formula, and as the mean response of a server that shares its time equally,
// played event by event.
func TestSharedDue(t *testing.T) {
	for tokens, want := range map[float64]float64{512: 0.1643, 32768: 25.0513} { // 0.040 + 2.5·(0.0497, 10.0045)
		got := SharedDue(1e9*(roundTrip+prefillOf("yi", tokens)), 1e9*roundTrip, Promise{})
		if math.Abs(float64(got)/1e9/want-1) > 0.001 {
			t.Errorf("%v tokens: %d ns, want %v s", tokens, got, want)
		}
	}
	if got := SharedDue(30e6, 40e6, Promise{}); got != 40e6 {
		t.Errorf("below the network: %d", got)
	}
	for _, load := range []float64{0.3, 0.6} {
		r := &dice{11}
		type job struct{ size, left, came float64 }
		var in []job
		var sum, count float64
		now, next := 0.0, r.exp()/load
		for count < 100_000 {
			least := math.Inf(1)
			for _, j := range in {
				least = math.Min(least, j.left)
			}
			step := math.Min(next-now, least*float64(len(in)))
			if len(in) == 0 {
				step = next - now
			}
			for i := range in {
				in[i].left -= step / float64(len(in))
			}
			if now += step; now >= next-1e-12 {
				size := 0.5 // half of them short, half long: one second on average
				if r.u() < 0.5 {
					size = 1.5
				}
				in, next = append(in, job{size, size, now}), now+r.exp()/load
			}
			in = slices.DeleteFunc(in, func(j job) bool {
				if j.left > 1e-9 {
					return false
				}
				sum, count = sum+(now-j.came)/j.size, count+1
				return true
			})
		}
		want := float64(SharedDue(1e9, 0, Promise{Load: load})) / 1e9
		if got := sum / count; math.Abs(got/want-1) > 0.03 {
			t.Errorf("load %v: requests take %.3f times as long as alone, want %.3f", load, got, want)
		}
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
