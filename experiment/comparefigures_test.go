package experiment

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/compare"
	"fermata/cost"
	"fermata/internal/calm"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
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

// Five pairs of runs by the token, whose good tokens cost 1, 2, 4, 2 and 2 times as
// much: of the logarithms to base 2 the mean is 1, the standard error √.1, and t of 4
// degrees of freedom 2.776445, so that the ratio lies in 2^(1 ∓ .877990); t² is 10,
// and p = 1 − √(10/14)·(1 + 2/14). The list price is the same, and the same to all digits.
func TestCostsOfPairsAreTested(t *testing.T) {
	c := compareFigures(t, figuresOf(func(r *metrics.Result, side, run int) {
		good := []string{"1.00", "2.00", "4.00", "2.00", "2.00"}[run]
		if side == 0 {
			good = "1.00"
		}
		r.Cost = &cost.Statement{Currency: "USD", Basis: cost.ByToken, Unit: cost.AllTokens, PerMillion: "0.75", Good: cost.InTime, PerMillionGood: good}
	}), "cost.per_million_good", "cost.per_million", "cost.per_good_request")
	e := c.Metrics[0]
	if e.Metric != "cost" || e.Stat != "per_million_good" || e.Unit != "USD" || e.Method != compare.PairedRuns || e.N != 5 {
		t.Errorf("%+v", e)
	}
	for _, x := range []struct {
		what string
		got  *float64
		want float64
	}{
		{"a", e.A, 1},
		{"b", e.B, 2},
		{"low", e.Low, math.Exp2(1-.877990) - 1},
		{"high", e.High, math.Exp2(1.877990) - 1},
		{"p", e.P, 1 - math.Sqrt(10./14)*(1+2./14)},
		{"adjusted", e.PAdjusted, 2 * (1 - math.Sqrt(10./14)*(1+2./14))},
		{"list, a", c.Metrics[1].A, .75},
		{"list, difference", c.Metrics[1].Difference, 0},
		{"list, p", c.Metrics[1].P, 1},
	} {
		if x.got == nil || math.Abs(*x.got-x.want) > 1e-5 {
			t.Errorf("%s is %v, not %g", x.what, x.got, x.want)
		}
	}
	if e.Resolved || e.Why != compare.Chance || c.Metrics[2].Why != compare.Absent || c.Metrics[2].A != nil {
		t.Errorf("%+v", c.Metrics)
	}
	// Asked by itself it is resolved, and dearer is worse.
	alone := compareFigures(t, figuresOf(func(r *metrics.Result, side, run int) {
		r.Cost = &cost.Statement{Currency: "USD", Basis: cost.ByOffline, Unit: cost.OutputTokens, PerMillion: []string{"1.00", "2.00", "4.00", "2.00", "2.00"}[side*run]}
	}), "cost.per_million").Metrics[0]
	if !alone.Resolved || alone.Better != "a" {
		t.Errorf("%+v", alone)
	}
	// A price that is twice as high of the same tokens is so without any chance.
	twice := compareFigures(t, figuresOf(func(r *metrics.Result, side, run int) {
		r.Cost = &cost.Statement{Currency: "USD", Basis: cost.ByToken, Unit: cost.AllTokens, PerMillion: []string{"1.50", "3.00"}[side]}
	}), "cost.per_million").Metrics[0]
	if !twice.Resolved || twice.Better != "a" || !same(*twice.Relative.Low, 1) || !same(*twice.Relative.High, 1) {
		t.Errorf("%+v", twice)
	}
}

// What no test may be made of: hours at a load that was chosen, a capacity's cost,
// other currencies, tokens or bases; and another meaning of good, of good answers alone.
func TestCostsWithheld(t *testing.T) {
	usd := cost.Statement{Currency: "USD", Basis: cost.ByToken, Unit: cost.AllTokens, PerMillion: "1.00", Good: cost.InTime, PerMillionGood: "2.00"}
	of := func(change func(*cost.Statement)) cost.Statement {
		s := usd
		change(&s)
		return s
	}
	for name, x := range map[string]struct {
		a, b       cost.Statement
		list, good string
	}{
		"alike":    {usd, of(func(s *cost.Statement) { s.PerMillion, s.PerMillionGood = "1.10", "2.20" }), "", ""},
		"rate":     {of(func(s *cost.Statement) { s.Basis = cost.ByRate }), of(func(s *cost.Statement) { s.Basis, s.PerMillion = cost.ByRate, "3.00" }), compare.OfLoad, compare.OfLoad},
		"loop":     {of(func(s *cost.Statement) { s.Basis = cost.ByLoop }), of(func(s *cost.Statement) { s.Basis, s.PerMillion = cost.ByLoop, "3.00" }), compare.OfLoad, compare.OfLoad},
		"capacity": {of(func(s *cost.Statement) { s.Basis = cost.ByCapacity }), of(func(s *cost.Statement) { s.Basis, s.PerMillion = cost.ByCapacity, "3.00" }), compare.OfSearch, compare.OfSearch},
		"currency": {usd, of(func(s *cost.Statement) { s.Currency = "EUR" }), compare.Unlike, compare.Unlike},
		"tokens":   {usd, of(func(s *cost.Statement) { s.Unit = cost.OutputTokens }), compare.Unlike, compare.Unlike},
		"basis":    {usd, of(func(s *cost.Statement) { s.Basis = cost.ByOffline }), compare.Unlike, compare.Unlike},
		"good":     {usd, of(func(s *cost.Statement) { s.Good, s.PerMillion, s.PerMillionGood = cost.Right, "1.10", "2.20" }), "", compare.Unlike},
	} {
		c := compareFigures(t, figuresOf(func(r *metrics.Result, side, run int) {
			one := []cost.Statement{x.a, x.b}[side]
			r.Cost = &one
		}), "cost.per_million", "cost.per_million_good")
		for i, want := range []string{x.list, x.good} {
			e := c.Metrics[i]
			if e.Why != want || (e.P == nil) != (want != "") || e.Resolved != (want == "") || (e.Difference == nil) != (want == compare.Unlike) || want == compare.Unlike && (e.A != nil || e.Unit != "") {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// Recordings of two servers, of which one fails every fifth request and the other
// every fourth: prompts of 300 tokens and answers of 100 at 1 and 3 a million are 1.50
// blended, 1.875 and 2.00 a million good ones, and 400 of those 0.00075 and 0.0008 an answer.
func TestCostsOfRecordingsBesideEachOther(t *testing.T) {
	calm.Try(t, costsOfRecordings)
}

func costsOfRecordings(t testing.TB) {
	var sides []string
	for i, every := range []int{5, 4} {
		done, _, _ := ran(t, fmt.Sprintf("{ttft: 1ms, gap: 100us, tokens: max, fail: {every: %d, status: 503}}", every), map[string]string{
			"schedule.kind": "closed", "schedule.concurrency": "2", "schedule.requests": "100", "workload.input": "300", "workload.output": "100",
			"schedule.warmup": "0", "schedule.drain": "quiet", "load.stop_if_failed": "90%", "seed": "5", "slo": "[ttft<=1m @50%]", "name": []string{"five", "four"}[i],
			"prices": fmt.Sprintf(`{currency: %s, date: 2026-11-01, source: x, tokens: {input_per_million: "1", output_per_million: "3"}}`, []string{"EUR", "USD"}[i]),
		})
		sides = append(sides, done.Dir)
	}
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "prices.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	costs := func(prices string) (map[string]compare.Entry, *compare.Comparison, string) {
		t.Helper()
		asked := Comparison{Sides: sides, Version: "test"}
		if prices != "" {
			asked.Sets = []conf.Setting{{Path: "prices", Value: file(prices)}}
		}
		c, err := asked.Compare()
		if err != nil {
			t.Fatal(err)
		}
		if c.Refused != "" {
			t.Fatal("not compared: " + c.Refused) // as where the machine stood still
		}
		found := map[string]compare.Entry{}
		for _, e := range c.Metrics {
			if e.Metric == "cost" {
				found[e.Stat] = e
			}
		}
		var page strings.Builder
		if err := report.WriteComparison("terminal", &page, c, report.TerminalOptions{Width: 120}); err != nil {
			t.Fatal(err)
		}
		return found, c, page.String()
	}
	warns := func(c *compare.Comparison, code string) bool {
		return slices.ContainsFunc(c.Warnings, func(w metrics.Warning) bool { return w.Code == code })
	}

	found, c, page := costs("currency: USD\ndate: 2026-11-01\nsource: list\ntokens: {input_per_million: \"1\", output_per_million: \"3\"}\n")
	for stat, want := range map[string][2]float64{"per_million": {1.5, 1.5}, "per_million_good": {1.875, 2}, "per_good_request": {.00075, .0008}} {
		e := found[stat]
		if e.A == nil || e.B == nil || !same(*e.A, want[0]) || !same(*e.B, want[1]) || e.Why != compare.TooFewRuns || e.P != nil || e.Unit != "USD" {
			t.Errorf("%s: %+v", stat, e)
		}
	}
	if r := found["per_million_good"].Relative; r == nil || math.Abs(r.Difference-1./15) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if s := c.Systems[1].Costs; len(s) != 1 || s[0].Cost == nil || s[0].Cost.PerGoodRequest != "0.0008" || s[0].Cost.GoodAnswers != 75 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"\nCost\n", "in time", "0.750", "0.800", "USD a million good", "+6.67%"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}

	// The prices of the run files: in two currencies there is no difference.
	if found, _, page = costs(""); found["per_million"].Why != compare.Unlike || found["per_million"].A != nil || !strings.Contains(page, "EUR") || !strings.Contains(page, "USD") {
		t.Errorf("%+v\n%s", found, page)
	}
	// Hours at what two users gave: side by side, with the warning.
	if found, c, _ = costs("currency: USD\ndate: 2026-11-01\nsource: list\ngpu: {count: 1, per_hour: \"7.20\"}\n"); found["per_million"].Why != compare.OfLoad || found["per_million"].Difference == nil || !warns(c, "cost_fixed_rate") {
		t.Errorf("%+v %+v", found, c.Warnings)
	}
	// Prices for other models: what it costs is not known, and is not 0.
	if found, c, page = costs("currency: USD\ndate: 2026-11-01\nsource: list\nmodels: {p: {other: {tokens: {input_per_million: \"1\", output_per_million: \"2\"}}}}\n"); len(found) != 0 || !warns(c, "no_price") || len(c.Systems[0].Costs) != 1 || c.Systems[0].Costs[0].Cost != nil || !strings.Contains(page, "unknown") {
		t.Errorf("%+v %+v\n%s", found, c.Warnings, page)
	}
}
