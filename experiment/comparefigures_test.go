package experiment

import (
	"fmt"
	"testing"

	"fermata/compare"
	"fermata/metrics"
)

// figuresOf is two systems of five runs each, paired by seed, of which write makes
// the results: side 0 or 1, run 0 to 4.
func figuresOf(write func(r *metrics.Result, side, run int)) []compare.System {
	systems := []compare.System{{Name: "a"}, {Name: "b"}}
	for side := range systems {
		for n := range 5 {
			seed := uint64(n + 1)
			r := &metrics.Result{Run: metrics.Run{Seed: &seed}, Window: metrics.Window{TimeScale: 1}, Outcomes: map[string]int64{"ok": 20}}
			r.Load.Measured = 20
			write(r, side, n)
			one := compare.Run{Name: fmt.Sprint(side, n), Result: r}
			for i := range int64(20) {
				one.Requests = append(one.Requests, metrics.Request{Index: i, Due: i, Good: true})
			}
			systems[side].Runs = append(systems[side].Runs, one)
		}
	}
	return systems
}

// compareFigures asks the statistics of them, as `fermata compare --metric` does.
func compareFigures(t *testing.T, systems []compare.System, names ...string) *compare.Comparison {
	t.Helper()
	statistics, err := parseStatistics("--metric", names)
	if err != nil {
		t.Fatal(err)
	}
	measures, _ := measuresOf(statistics, systems, make([][]metrics.Objective, 10), true)
	c, err := compare.Compare(systems, measures)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The fluid rate has an interval of its own: where half of a side's runs or more have
// too few requests for that, the difference is shown and nothing more is said of it,
// however plain it looks. The same of first tokens is not what is compared.
func TestFluidRateOfTooFewRequests(t *testing.T) {
	for few := range 6 {
		for _, variant := range []string{metrics.Decode, metrics.FirstToken} {
			c := compareFigures(t, figuresOf(func(r *metrics.Result, side, run int) {
				rate := float64(40 - 20*side + run + side*run%2)
				r.Rates.Fluid = &rate
				f := metrics.FluidRate{Variant: variant, Status: "ok"}
				if side == 1 && run < few {
					f.Status = "insufficient"
				}
				r.FluidRate = []metrics.FluidRate{f}
			}), "rates.fluid")
			e := c.Metrics[0]
			marked := variant == metrics.Decode && few >= 3
			if e.Difference == nil || *e.Difference >= 0 || (e.Why == compare.Insufficient) != marked || e.Resolved == marked || (e.P == nil) != marked || c.Worse() == marked {
				t.Errorf("%s, %d of 5 runs: %+v", variant, few, e)
			}
		}
	}
}
