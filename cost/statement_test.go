package cost

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v ± %v", what, got, want, within)
	}
}

// MLPerf's servers keep 61 % and 45 % of the offline throughput where they lose
// 39 % and 55 %: their tokens cost 1.6 and 2.2 times as much.
func TestPromise(t *testing.T) {
	near(t, "39 %", Promise(1, 1-.39), 1.6, .05)
	near(t, "55 %", Promise(1, 1-.55), 2.2, .05)
	if !math.IsInf(Promise(1, 0), 1) {
		t.Error("nothing kept")
	}
}

// Published: Qwen3-32B for 7,355 yuan, or 4,577 under another scheduler, over
// 1.66 billion tokens at least: 37.8 % less, 4.43 and 2.76 yuan a million at most.
func TestPublishedBills(t *testing.T) {
	before, after := amount(t, "7355"), amount(t, "4577")
	near(t, "saved", before.Minus(after).Float()/before.Float(), .378, .0005)
	for total, want := range map[Amount]float64{before: 4.43, after: 2.76} {
		c, ok := PerMillion(total, 1_660_000_000)
		if !ok {
			t.Fatal("no price")
		}
		near(t, total.String(), c.Float(), want, .005)
	}
}

// 1 + f/(1 - f) of the failure rates that providers show.
func TestRetries(t *testing.T) {
	for f, want := range map[float64]float64{.003: 1.003, .0149: 1.015, .05: 1.053, .20: 1.25} {
		near(t, "retries", Retries(f, 1), want, .0005)
	}
	near(t, "half billed", Retries(.2, .5), 1.125, 1e-12)
	near(t, "not billed", Retries(.2, 0), 1, 0)
	if !math.IsInf(Retries(1, 1), 1) {
		t.Error("all fail")
	}
}

// Eight GPUs at 2.50 an hour that give 1,000 tokens a second: 20/3600/1000 a token.
func TestPerMillionByHour(t *testing.T) {
	c, ok := PerMillionByHour(8, amount(t, "2.50"), 1000)
	if !ok || c.Figures() != "5.55556" {
		t.Error(c.Figures(), ok)
	}
	if _, ok := PerMillionByHour(8, amount(t, "2.50"), 0); ok {
		t.Error("no tokens have a price")
	}
}

func TestFigures(t *testing.T) {
	third, _ := PerMillion(amount(t, "0.000001"), 3)
	for text, a := range map[string]Amount{"0.00": {}, "2.50": amount(t, "2.5"), "1234.57": amount(t, "1234.567"), "0.333333": third, "0.0000123457": amount(t, "0.0000123456789")} {
		if a.Figures() != text {
			t.Errorf("%s, want %s", a.Figures(), text)
		}
	}
}

func terms(t *testing.T, file string, o Options) *Terms {
	t.Helper()
	p, err := Read("p", []byte("currency: USD\ndate: 2026-08-01\nsource: list\n"+file))
	if err != nil {
		t.Fatal(err)
	}
	terms, err := p.Terms(map[string]string{"": "m"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

func ptr(v float64) *float64 { return &v }

func factors(s *Statement) map[string]float64 {
	m := map[string]float64{}
	for _, one := range s.Steps {
		if one.Factor != nil {
			m[one.Name] = *one.Factor
		}
	}
	return m
}

// 100 requests of 300 + 100 tokens at 1 and 3 a million, so 1.50 blended: of them 20
// fail, 10 are late and 10 more wrong. What all 80 answers cost, and a quarter for
// the failures, is borne by 60: 1.50 · 1.25 · 80/60 = 2.50.
func TestWaterfallByToken(t *testing.T) {
	account := terms(t, `tokens: {input_per_million: "1", output_per_million: "3"}`, Options{}).Account(Judged{InTime: true, Check: true})
	for i := range int64(100) {
		account.Add(Answer{Answered: i%5 != 0, Input: 300, Output: 100, InputKnown: true, Late: i%10 == 1, Wrong: i%10 == 2})
	}
	s := account.Statement(Under{Basis: ByRate, TokensPerS: ptr(10)})
	if s.Basis != ByToken || s.Unit != AllTokens || s.Good != InTimeRight || s.PerMillion != "1.50" || s.PerMillionGood != "2.50" {
		t.Errorf("%+v", s)
	}
	// 400 tokens at 2.50 a million.
	if s.PerGoodRequest != "0.001" {
		t.Error(s.PerGoodRequest)
	}
	f := factors(s)
	near(t, "failures", f[StepFailures], 1.25, 1e-12)
	near(t, "late", f[StepLate], 8./7, 1e-12)
	near(t, "check", f[StepCheck], 7./6, 1e-12)
	if _, is := f[StepRetries]; is || len(f) != 4 {
		t.Error(f)
	}
	if s.Steps[len(s.Steps)-1].Value != s.PerMillionGood {
		t.Error(s.Steps)
	}
	// The mix never varies: the interval has no width.
	if s.Low != "1.50" || s.High != "1.50" || s.GoodLow == "" || s.GoodLow > s.PerMillionGood {
		t.Errorf("%s–%s, %s–%s", s.Low, s.High, s.GoodLow, s.GoodHigh)
	}
}

// 100 requests, each tried a second time: f = 1/2, so 1 + κ·f/(1 − f) = 1 + κ.
func TestRetriesOfARun(t *testing.T) {
	for kappa, want := range map[float64]string{1: "2.00", .5: "1.50", 0: "1.00"} {
		account := terms(t, `tokens: {input_per_million: "1", output_per_million: "1"}`, Options{BilledFailures: &kappa}).Account(Judged{})
		for range 100 {
			account.Add(Answer{Answered: true, EarlierTries: 1, Input: 1, Output: 1, InputKnown: true})
		}
		s := account.Statement(Under{})
		last := s.Steps[len(s.Steps)-1]
		if s.Good != PriceOnly || s.PerMillionGood != "" || last.Name != StepRetries || last.Value != want {
			t.Errorf("κ %v: %+v", kappa, s.Steps)
		}
	}
}

// A capacity of 10 requests/s in [8, 12.5] that is 2,000 tokens/s: one GPU at 7.20
// an hour costs 1.00 a million, from 0.80 (10/12.5) to 1.25 (10/8); busy half the
// time, twice as much.
func TestWaterfallByCapacity(t *testing.T) {
	c, err := ReadCapacity([]byte(`{"schema": "fermata.capacity/1", "objective": "ttft<=2s @99%", "capacity": {"rps": 10, "low": 8, "high": 12.5, "attainment": 0.99, "tokens_per_s": 2000}, "reason": "precise enough"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	account := terms(t, `gpu: {count: 1, per_hour: "7.20"}`, Options{Capacity: c, Utilisation: ptr(.5)}).Account(Judged{InTime: true, Slow: true})
	for i := range 100 {
		account.Add(Answer{Answered: true, Output: 50, Late: i%10 == 0, Slow: i%10 == 0 || i%10 == 1})
	}
	s := account.Statement(Under{Basis: ByRate, TokensPerS: ptr(10)})
	if s.Basis != ByCapacity || s.Unit != OutputTokens || s.PerMillion != "1.00" || s.Low != "0.80" || s.High != "1.25" || s.PerMillionGood != "2.50" {
		t.Errorf("%+v", s)
	}
	f := factors(s)
	near(t, "utilisation", f[StepUtilisation], 2, 1e-12)
	near(t, "slow", f[StepSlow], 9./8, 1e-12)
	if _, is := f[StepFailures]; is {
		t.Error("hours pay for failures already")
	}
}

// At a rate that was offered there is a figure, and no interval that would claim
// to be one of capacity.
func TestFixedRateHasNoInterval(t *testing.T) {
	account := terms(t, `gpu: {count: 1, per_hour: "7.20"}`, Options{}).Account(Judged{})
	for range 100 {
		account.Add(Answer{Answered: true, Output: 50})
	}
	if s := account.Statement(Under{Basis: ByRate, TokensPerS: ptr(2000)}); s.Basis != ByRate || s.PerMillion != "1.00" || s.Low != "" || s.High != "" {
		t.Errorf("%+v", s)
	}
	if s := account.Statement(Under{Basis: ByRate}); s.PerMillion != "" || len(s.Steps) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestNothingGood(t *testing.T) {
	account := terms(t, `tokens: {input_per_million: "1", output_per_million: "1"}`, Options{}).Account(Judged{Check: true})
	account.Add(Answer{Answered: true, Input: 1, Output: 1, InputKnown: true, Wrong: true})
	account.Add(Answer{Answered: true, Output: 1})
	s := account.Statement(Under{})
	last := s.Steps[len(s.Steps)-1]
	if s.PerMillion != "1.00" || s.PerMillionGood != "" || last.Factor != nil || last.Value != "" || s.Unknown != 1 {
		t.Errorf("%+v", s)
	}
}

// The interval of a blended price holds the truth: inputs of mean 500 at 1, outputs
// exponential of mean 100 at 10 a million, so (500 + 1000)/600 = 2.5.
func TestBlendedInterval(t *testing.T) {
	held, seed := 0, uint64(1)
	uniform := func() float64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return (float64(seed>>11) + .5) / (1 << 53)
	}
	const runs = 400
	for range runs {
		account := terms(t, `tokens: {input_per_million: "1", output_per_million: "10"}`, Options{}).Account(Judged{})
		for range 400 {
			account.Add(Answer{Answered: true, InputKnown: true, Input: int64(1000 * uniform()), Output: int64(math.Round(-100 * math.Log(uniform())))})
		}
		s := account.Statement(Under{})
		if amount(t, s.Low).Float() <= 2.5 && 2.5 <= amount(t, s.High).Float() {
			held++
		}
	}
	if share := float64(held) / runs; share < .92 || share > .98 {
		t.Errorf("95 %% intervals held the truth in %v", share)
	}
}

func TestBatches(t *testing.T) {
	var b batches
	for range 10_001 {
		b.add(batch{units: 1})
	}
	sum := 0.
	for _, one := range b.all {
		sum += one.units
	}
	if n := len(b.all); n < fewestBatches || n > mostBatches || math.Abs(sum-10_001) > .5 {
		t.Error(n, sum)
	}
	if n := len(b.spread().all); n != len(b.all)-1 {
		t.Error("the last batch is not whole, and was counted")
	}
}

const litellm = `{
 "sample_spec": {"litellm_provider": "one of", "input_cost_per_token": 0.0000, "output_cost_per_token": 0.000},
 "gpt-4o": {"litellm_provider": "openai", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "mode": "chat"},
 "azure/gpt-4o": {"litellm_provider": "azure", "input_cost_per_token": 2.75e-06, "output_cost_per_token": 1.1e-05},
 "deepseek/deepseek-chat": {"litellm_provider": "deepseek", "input_cost_per_token": 1.4e-07, "output_cost_per_token": 2.8e-07},
 "ollama/llama3": {"litellm_provider": "ollama", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
 "text-embedding-3-small": {"litellm_provider": "openai", "input_cost_per_token": 2e-08}
}`

const modelsDev = `{"deepseek": {"id": "deepseek", "env": [], "models": {
  "deepseek-chat": {"id": "deepseek-chat", "cost": {"input": 0.28, "output": 0.42, "cache_read": 0.028}},
  "free": {"id": "free", "cost": {"input": 0, "output": 0}}, "none": {"id": "none"}}}}`

func TestCatalogues(t *testing.T) {
	for _, c := range []struct{ file, provider, model, in, out, wrong string }{
		{litellm, "openai", "gpt-4o", "2.50", "10.00", ""},
		{litellm, "azure", "gpt-4o", "2.75", "11.00", ""},
		{litellm, "", "azure/gpt-4o", "2.75", "11.00", ""},
		{litellm, "", "deepseek-chat", "0.14", "0.28", ""},
		{litellm, "", "gpt-4o", "", "", "azure and openai have prices"},
		{litellm, "", "llama3", "", "", "there is no price"},
		{litellm, "", "text-embedding-3-small", "", "", "there is no price"},
		{modelsDev, "", "deepseek-chat", "0.28", "0.42", ""},
		{modelsDev, "", "free", "", "", "there is no price"},
		{modelsDev, "", "none", "", "", "there is no price"},
	} {
		p, err := Read("some/prices.json", []byte(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if p.Currency != "USD" || !strings.Contains(p.Source, "prices.json") || strings.Contains(p.Source, "some/") || len(p.SHA256) != 64 {
			t.Errorf("%+v", p)
		}
		r, err := p.Rate(c.provider, c.model)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || r.input.String() != c.in || r.output.String() != c.out:
			t.Errorf("%+v: %v %v %v", c, r.input, r.output, err)
		}
	}
}

// A run file keeps the prices of its models, not the catalogue, but a short list
// whole where it lacks one; a model without a price is still one without.
func TestOnly(t *testing.T) {
	p, err := Read("c.json", []byte(litellm))
	if err != nil {
		t.Fatal(err)
	}
	short := len(p.Models)
	if p.Only("strange"); len(p.Models) != short {
		t.Error("a short list was cut", p.Models)
	}
	p.Models["many"] = map[string]Entry{}
	for i := range mostListed {
		p.Models["many"][strconv.Itoa(i)] = Entry{Unknown: true}
	}
	p.Only("deepseek-chat", "strange")
	p.Date = "2026-08-01"
	if found := p.Check(); len(found) > 0 {
		t.Error(found)
	}
	if _, err := p.Rate("", "strange"); err == nil || !strings.Contains(err.Error(), `no price for model "strange"`) {
		t.Error(err)
	}
	if _, err := p.Rate("", "deepseek-chat"); err != nil || len(p.Models) != 2 {
		t.Error(err, p.Models)
	}
}

func TestBadCapacities(t *testing.T) {
	for file, want := range map[string]string{
		`{`:                              "no JSON",
		`{"schema": 1}`:                  "is not what `fermata capacity -o json` wrote",
		`[]`:                             "is an empty list",
		`{"schema": "fermata.result/1"}`: `"fermata.result/1", not fermata.capacity/1`,
		`{"schema": "fermata.capacity/1", "reason": "fails at any rate"}`:                                        "no capacity",
		`{"schema": "fermata.capacity/1", "capacity": {"rps": 3}}`:                                               "tokens_per_s",
		`{"schema": "fermata.capacity/1", "capacity": {"rps": 3, "low": 5, "high": 4, "tokens_per_s": 9}}`:       "from 5 to 4 requests/s, which is none",
		`{"schema": "fermata.capacity/1", "capacity": {"rps": 0, "low": 0, "high": 5, "tokens_per_s": 9}}`:       "above 0",
		`{"schema": "fermata.capacity/1", "capacity": {"rps": 3, "low": -1, "high": 2.75, "tokens_per_s": 900}}`: "which is none",
	} {
		if _, err := ReadCapacity([]byte(file), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// 7.20 an hour over 2,000 tokens/s is 1.00 a million at 6.1 requests/s; a system
// that serves 10 offline loses 39 % to the promise, which costs 1.64 times as much.
func TestAtCapacity(t *testing.T) {
	gpu := terms(t, `gpu: {count: 1, per_hour: "7.20"}`, Options{})
	c := Capacity{RPS: 6.1, Low: 6.1 / 1.25, High: 6.1 / .8, TokensPerS: 2000}
	a := gpu.AtCapacity(c, 10)
	if a == nil || a.PerMillion != "1.00" || a.Low != "0.80" || a.High != "1.25" || a.Offline != "0.61" || a.Factor == nil {
		t.Fatalf("%+v", a)
	}
	near(t, "factor", *a.Factor, 1/.61, 1e-12)
	if a := gpu.AtCapacity(Capacity{RPS: 6.1, TokensPerS: 2000}, 0); a == nil || a.Low != "" || a.Factor != nil || a.Offline != "" {
		t.Errorf("%+v", a)
	}
	if gpu.AtCapacity(Capacity{}, 10) != nil || terms(t, `tokens: {input_per_million: "1", output_per_million: "3"}`, Options{}).AtCapacity(c, 10) != nil || (*Terms)(nil).AtCapacity(c, 10) != nil {
		t.Error("a cost out of nothing")
	}
}

// Of several capacities the one is taken whose objective the run has; its caveats
// come along, and one that is only known to be at least so high has no interval.
func TestCapacityOfSeveral(t *testing.T) {
	file := []byte(`[
 {"schema": "fermata.capacity/1", "objective": "ttft<=2s @p99", "target": "s", "rough": true, "capacity": {"rps": 3, "low": 2, "high": 4, "tokens_per_s": 9}, "warnings": [{"code": "rough"}, {"code": "short"}, {"code": "turned_away"}]},
 {"schema": "fermata.capacity/1", "objective": "tpot<=25ms", "ending": "never_missed", "client_bound": true, "held": {"drift": {"unsteady": true}}, "capacity": {"rps": 10, "low": 8, "high": 12, "tokens_per_s": 2000}},
 {"schema": "fermata.capacity/1", "objective": "e2e<=9s"}, {"schema": "fermata.capacity/1", "objective": "e2e<=9s"}]`)
	is := func(names ...string) func(string) bool {
		return func(objective string) bool { return slices.Contains(names, objective) }
	}
	c, err := ReadCapacity(file, is("ttft<=2s @p99"))
	if err != nil || c.RPS > 3 || c.Target != "s" || !slices.Equal(c.Caveats, []string{"rough", "short"}) || c.AtLeast() {
		t.Errorf("%+v %v", c, err)
	}
	c, err = ReadCapacity(file, is("tpot<=25ms"))
	if err != nil || !slices.Equal(c.Caveats, []string{"client_bound", "never_missed", "unsteady"}) || !c.AtLeast() {
		t.Errorf("%+v %v", c, err)
	}
	account := terms(t, `gpu: {count: 1, per_hour: "7.20"}`, Options{Capacity: c}).Account(Judged{InTime: true})
	for range 100 {
		account.Add(Answer{Answered: true, Output: 50})
	}
	if s := account.Statement(Under{Basis: ByRate}); s.PerMillion != "1.00" || s.PerMillionGood != "1.00" || s.Low+s.High+s.GoodLow+s.GoodHigh != "" {
		t.Errorf("%+v", s)
	}
	for want, wanted := range map[string]func(string) bool{
		`under "ttft<=2s @p99", "tpot<=25ms", "e2e<=9s", and the run has none`: is("x"),
		`several objectives of the run, "ttft<=2s @p99", "tpot<=25ms"`:         is("ttft<=2s @p99", "tpot<=25ms"),
		`holds 2 capacities under "e2e<=9s", of several seeds`:                 is("e2e<=9s"),
	} {
		if _, err := ReadCapacity(file, wanted); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A provider that is in no list of prices is told.
func TestCheckProvider(t *testing.T) {
	p, err := Read("c.json", []byte(litellm))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckProvider("gamma"); err == nil || err.Error() != `is "gamma", of which there is no price; there are prices of azure, deepseek, openai` {
		t.Error(err)
	}
	for _, name := range []string{"", "openai"} {
		if err := p.CheckProvider(name); err != nil {
			t.Error(err)
		}
	}
	if err := (&Prices{}).CheckProvider("gamma"); err != nil {
		t.Error(err)
	}
}
