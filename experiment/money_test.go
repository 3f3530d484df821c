package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/capacity"
	"fermata/cost"
	"fermata/internal/conf"
	"fermata/metrics"
)

func hasWarning(r *metrics.Result, code string) bool {
	return slices.ContainsFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == code })
}

// What was never missed may hold at any higher rate: its promise costs at most that,
// and no interval says by how little.
func TestCostOfALowerBound(t *testing.T) {
	low, high, tokens := 8.0, 12.5, 2000.0
	s := steeredSim(t, oneAtATime+`prices: {currency: USD, date: 2026-11-01, source: x, gpu: {count: 1, per_hour: "7.20"}}`+"\n", "ttft<=1s")
	r := &capacity.Result{Ending: capacity.Found, Capacity: &capacity.Capacity{RPS: 10, Low: &low, High: &high, TokensPerS: &tokens}}
	if c := costOfPromise(termsOf(s.Run()), r); c == nil || c.PerMillion != "1.00" || c.Low != "0.80" || c.High != "1.25" {
		t.Errorf("%+v", c)
	}
	r.Ending = capacity.NeverMissed
	if c := costOfPromise(termsOf(s.Run()), r); c == nil || c.PerMillion != "1.00" || c.Low != "" || c.High != "" {
		t.Errorf("%+v", c)
	}
}

// Prompts of 300 tokens and answers of 100 at 1 and 3 a million are 1.50 blended;
// every fifth request fails, which is billed as an answer: 1.50 · 1.25. Judged anew,
// the same recording has the cost of hours, and warns that its rate is no capacity.
func TestCostIsTold(t *testing.T) {
	t.Parallel()
	done, _, _ := ran(t, "{ttft: 1ms, gap: 100us, tokens: max, fail: {every: 5, status: 503}}", map[string]string{
		"schedule.kind": "closed", "schedule.concurrency": "2", "schedule.requests": "100", "workload.input": "300", "workload.output": "100",
		"schedule.warmup": "0", "schedule.drain": "quiet", "load.stop_if_failed": "90%", "seed": "5", "slo": "[ttft<=1m @50%]",
		"prices": `{currency: EUR, date: 2026-11-01, source: x, tokens: {input_per_million: "1", output_per_million: "3"}}`,
	})
	c := done.Result.Cost
	if c == nil || c.Basis != cost.ByToken || c.PerMillion != "1.50" || c.PerMillionGood != "1.875" || c.PerGoodRequest != "0.00075" || c.Good != cost.InTime || c.GoodAnswers != 80 {
		t.Fatalf("%+v", c)
	}
	if f := c.Steps[1]; f.Name != cost.StepFailures || f.Factor == nil || !same(*f.Factor, 1.25) {
		t.Errorf("%+v", c.Steps)
	}
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	judge := func(sets ...conf.Setting) *metrics.Result {
		t.Helper()
		r, err := Judge(done.Dir, sets, "test")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	hours := conf.Setting{Path: "prices", Value: file("prices.yaml", "currency: USD\ndate: 2019-08-01\nsource: list\ngpu: {count: 1, per_hour: \"7.20\"}\n")}
	if r := judge(hours); r.Cost == nil || r.Cost.Basis != cost.ByLoop || r.Cost.Low != "" || len(r.Cost.Prices.SHA256) != 64 || !hasWarning(r, "cost_fixed_rate") || !hasWarning(r, "old_prices") {
		t.Errorf("%+v %+v", r.Cost, r.Warnings)
	}
	found := conf.Setting{Path: "judge.capacity", Value: file("c.json", `{"schema": "fermata.capacity/1", "objective": "ttft<=1m", "capacity": {"rps": 10, "low": 8, "high": 12.5, "tokens_per_s": 2000}}`)}
	r := judge(hours, found)
	if r.Cost == nil || r.Cost.Basis != cost.ByCapacity || r.Cost.PerMillion != "1.00" || r.Cost.Low != "0.80" || r.Cost.High != "1.25" || r.Cost.PerMillionGood != "1.00" || hasWarning(r, "cost_fixed_rate") {
		t.Errorf("%+v %+v", r.Cost, r.Warnings)
	}
	// Its search was under another objective, which says a share of 99 % where none is.
	if !hasWarning(r, "cost_other_objective") || hasWarning(r, "cost_other_target") || hasWarning(r, "cost_no_interval") {
		t.Errorf("%+v", r.Warnings)
	}
	doubtful := conf.Setting{Path: "judge.capacity", Value: file("d.json", `[{"schema": "fermata.capacity/1", "objective": "tpot<=1s"},
 {"schema": "fermata.capacity/1", "objective": "ttft<=60s @p50", "target": "http://elsewhere", "rough": true, "client_bound": true, "ending": "never_missed", "held": {"drift": {"unsteady": true}},
  "capacity": {"rps": 10, "low": 8, "tokens_per_s": 2000}, "warnings": [{"code": "outside"}, {"code": "no_interval"}]}]`)}
	if r = judge(hours, doubtful); r.Cost == nil || r.Cost.Basis != cost.ByCapacity || r.Cost.Low != "" || r.Cost.High != "" || r.Cost.GoodLow != "" || hasWarning(r, "cost_other_objective") {
		t.Errorf("%+v %+v", r.Cost, r.Warnings)
	}
	for _, code := range []string{"cost_other_target", "cost_rough", "cost_client_bound", "cost_lower_bound", "cost_unsteady", "cost_no_interval", "cost_doubtful"} {
		if !hasWarning(r, code) {
			t.Errorf("no %s: %+v", code, r.Warnings)
		}
	}
	ahead := conf.Setting{Path: "prices", Value: file("ahead.yaml", "currency: USD\ndate: 2999-08-01\nsource: list\ngpu: {count: 1, per_hour: \"7.20\"}\n")}
	if r := judge(ahead); !hasWarning(r, "future_prices") || hasWarning(r, "old_prices") {
		t.Errorf("%+v", r.Warnings)
	}
	catalogue := conf.Setting{Path: "prices", Value: file("models.json", `{"other": {"litellm_provider": "o", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}`)}
	if r := judge(catalogue); r.Cost != nil || !hasWarning(r, "no_price") || hasWarning(r, "old_prices") {
		t.Errorf("an unknown price: %+v %+v", r.Cost, r.Warnings)
	}
}

// The run file keeps the prices of the model that was asked, not the catalogue.
func TestCatalogueIsNotKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "models.json")
	text := `{"a": {"models": {"m": {"cost": {"input": 1, "output": 3}}, "elsewhere": {"cost": {"input": 1, "output": 3}}}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	done, _, _ := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", map[string]string{
		"schedule.kind": "all", "schedule.requests": "3", "workload.input": "12", "workload.output": "3", "target.model": "m", "prices": path,
	})
	saved, err := os.ReadFile(filepath.Join(done.Dir, "run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if s := string(saved); strings.Contains(s, "elsewhere") || !strings.Contains(s, "models.dev's catalogue (models.json)") || !strings.Contains(s, "sha256") {
		t.Error(s)
	}
	again, err := Judge(done.Dir, nil, "test")
	if err != nil || again.Cost == nil || again.Cost.PerMillion != done.Result.Cost.PerMillion || again.Cost.PerMillion == "" {
		t.Errorf("%+v %v", again, err)
	}
}

// A simulated run has costs too.
func TestCostOfSimulation(t *testing.T) {
	t.Parallel()
	done, _ := simulate(t, "model: Llama-3-8B\ngpu: H100\nworkload: {input: 100, output: 20}\nschedule: {rate: 2, requests: 50}\nprices: {currency: USD, date: 2026-11-01, source: x, gpu: {count: 1, per_hour: \"3.60\"}}\n", nil)
	r := done.Result
	if r.Cost == nil || r.Cost.Basis != cost.ByRate || r.Cost.PerMillion == "" || !hasWarning(r, "cost_fixed_rate") {
		t.Errorf("%+v", r.Cost)
	}
}
