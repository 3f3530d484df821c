package experiment

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"fermata/report"
)

func plan(t testing.TB, q Question) *report.Plan {
	t.Helper()
	p, err := q.Answer()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.PlanDocument.Validate(data); err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	return p
}

// MLPerf's table and its early stopping.
func TestPlanIsMLPerfs(t *testing.T) {
	for _, c := range []struct {
		p                 float64
		requests, rounded int64
		first, second     int64
	}{
		{.9, 23_886, 24_576, 44, 64},
		{.95, 50_425, 57_344, 90, 130},
		{.97, 85_811, 90_112, 152, 219},
		{.99, 262_742, 270_336, 459, 662},
	} {
		p := plan(t, Question{Percentile: c.p})
		if p.Requests != c.requests || p.Rounded != c.rounded || p.EarlyStopping[0].Requests != c.first || p.EarlyStopping[1].Requests != c.second {
			t.Errorf("p%v: %+v", 100*c.p, p)
		}
	}
	p := plan(t, Question{})
	if len(p.Table) != 4 || p.Table[3].Rounded != 270_336 || p.Percentile < .99 || math.Abs(p.AlwaysValid.Start-914) > 0.5 || math.Abs(p.AlwaysValid.PerMiss-138.6) > 0.05 {
		t.Errorf("%+v", p)
	}
}

// At .69 of saturation tau is 20.8, and a p99 takes 500 times that: 10,400; at .9,
// 100,000.
func TestPlanForALoad(t *testing.T) {
	p := plan(t, Question{Percentile: .99, Rate: 6.9, Saturation: 10})
	if p.Load == nil || math.Abs(p.Load.Tau-2/(.31*.31)) > 1e-9 || math.Abs(float64(p.Load.Requests)-262741.9054*2/(.31*.31)) > 1 {
		t.Errorf("%+v", p.Load)
	}
	claim := func(p *report.Plan, at float64) report.PlanClaim {
		for _, c := range p.Claims {
			if math.Abs(c.Percentile-at) < 1e-12 {
				return c
			}
		}
		t.Fatalf("nothing about %v", at)
		return report.PlanClaim{}
	}
	if c := claim(p, .99); c.Requests != 10_406 || c.Minutes == nil || math.Abs(*c.Minutes-10_406/6.9/60) > 1e-9 {
		t.Errorf("%+v", c)
	}
	if c := claim(plan(t, Question{Tau: 200}), .99); c.Requests != 100_000 || c.Closed != 73_600 {
		t.Errorf("%+v", c)
	}
	if c := claim(plan(t, Question{}), .999); c.Requests != 5000 || c.Closed != 3688 {
		t.Errorf("%+v", c)
	}
	// p2 mirrors p98.
	if c := claim(plan(t, Question{Percentile: .02}), .02); c.Requests != 250 || c.Closed != 183 {
		t.Errorf("%+v", c)
	}
}

func TestPlanForACapacityAndAComparison(t *testing.T) {
	p := plan(t, Question{Capacity: .05, SD: .019, Difference: .01})
	if c := p.Capacity; c == nil || c.Law < 14_400 || c.Law > 14_600 || c.Search < 34_600 || c.Search > 34_800 {
		t.Errorf("%+v", c)
	}
	// 2.8·1.9 %/√10 = 1.68 %; (2.8·1.9)² = 28.3.
	if c := p.Comparison; c == nil || c.Runs != 10 || math.Abs(c.Detects-.016823) > 1e-6 || *c.RunsFor != 29 {
		t.Errorf("%+v", c)
	}
}

func TestPlanForRequestsAtHand(t *testing.T) {
	h := plan(t, Question{Have: 10_000}).Have
	if h == nil || *h.AllowedOver != 77 || *h.Estimate != 9924 || math.Abs(h.NEff-10_000) > 0 {
		t.Fatalf("%+v", h)
	}
	if c := h.Claims[3]; c.Status != "ok" || c.Rank != 9900 || *c.Low != 9880 || *c.High != 9920 || c.Needs != nil {
		t.Errorf("p99: %+v", c)
	}
	five := plan(t, Question{Have: 5}).Have
	for _, c := range five.Claims {
		if c.Status != "insufficient" || c.Needs == nil {
			t.Errorf("five requests: %+v", c)
		}
	}
	if five.AllowedOver != nil || five.Estimate != nil {
		t.Errorf("%+v", five)
	}
	// The worth of 10,000 requests at tau 50 is 200: no end above p99.
	if c := plan(t, Question{Have: 10_000, Tau: 50}).Have.Claims; c[3].High != nil || c[3].Status != "insufficient" || *c[3].Needs != 25_000 || c[0].Status != "ok" {
		t.Errorf("%+v", c)
	}
}

func TestWrongQuestions(t *testing.T) {
	for want, q := range map[string]Question{
		"between p0 and p100":                  {Percentile: 1.2},
		"a confidence lies between":            {Confidence: 1},
		"a margin is a share":                  {Margin: 2},
		"more than 10¹⁵":                       {Margin: 1e-12},
		"that a share of 0.01 lies beyond":     {Margin: .5},
		"give --rate too":                      {Saturation: 3},
		"grow without end":                     {Rate: 3, Saturation: 3},
		"the one follows from the other":       {Rate: 1, Saturation: 3, Tau: 4},
		"it is 1 at least":                     {Tau: .5},
		"says nothing":                         {Capacity: 1},
		"one pair of runs has no spread":       {SD: .1, Runs: 1},
		"give --sd":                            {Difference: .1},
		"must be more than 0":                  {Have: -1},
		"finite":                               {Rate: math.Inf(1)},
		"between p0 and p100, both excluded, ": {Percentile: -1},
	} {
		if _, err := q.Answer(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
}
