package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fermata/internal/conf"
)

// Each wrong option has one clear error that names it.
func TestCheck(t *testing.T) {
	watermark := .7
	for want, o := range map[string]Options{
		`model: cannot be used: no model "GPT" is known: take one of Yi-34B, Llama-3-8B`:                                       {Model: "GPT"},
		`gpu: cannot be used: no GPU "TPU" is known: take one of A100-80G, H100, H200`:                                         {GPU: "TPU"},
		`model: Llama-3-70B needs 131.4 GiB for weights on each of 1 H100, of which 68.2 GiB may be used: take more GPUs (tp)`: {Model: "Llama-3-70B"},
		`tp: must divide the 56 attention heads of Yi-34B, not 3`:                                                              {Model: "Yi-34B", TP: 3},
		`dtype: must be bf16 on A100-80G`:                                                                                      {GPU: "A100", Dtype: "fp8"},
		`cost: must be etalon or kernels, not "roof"`:                                                                          {Cost: CostOptions{Roofline: "roof"}},
		`cost: gives several models of cost`:                                                                                   {Cost: CostOptions{Roofline: Etalon, Flat: &Flat{}}},
		`cost.flat.itl: must be 0 or more, not -1ns`:                                                                           {Cost: CostOptions{Flat: &Flat{ITL: -1}}},
		`cost.fitted: cannot be used: reading coefficients: open nowhere.yaml`:                                                 {Cost: CostOptions{Fitted: "nowhere.yaml"}},
		`memory.tokens: must be at least one block of 16 tokens, not 5`:                                                        {Memory: Memory{Tokens: 5}},
		`memory.fraction: must be from 0 to 1, not 1.2`:                                                                        {Memory: Memory{Fraction: 1.2}},
		`memory.watermark: must be from 0 to 0.5, not 0.7`:                                                                     {Memory: Memory{Watermark: &watermark}},
		`scheduler.policy: must be prefill-first, stall-free, unified, static or orca, not "vllm"`:                             {Scheduler: Scheduler{Policy: "vllm"}},
		`scheduler.chunk: is of policy stall-free and means nothing to unified: remove it, or change scheduler.policy`:         {Scheduler: Scheduler{Chunk: 5}},
		`admit: is of policy unified and means nothing to static`:                                                              {Admit: AdmitChunk, Scheduler: Scheduler{Policy: Static}},
		`max_model_len: is needed by policy orca`:                                                                              {Scheduler: Scheduler{Policy: Orca}},
		`max_model_len: of 9999999 tokens, which policy orca reserves for each request, is more than the`:                      {MaxModelLen: 9999999, Scheduler: Scheduler{Policy: Orca}},
		`max_model_len: is needed with scheduler.chunk_low`:                                                                    {Scheduler: Scheduler{Policy: StallFree, ChunkLow: 5}},
		`speculation.alpha: must be from 0 to 1, not 2`:                                                                        {Speculation: &Speculation{Alpha: 2}},
		`speculation.alpha: must be between 0 and 1 where beta spreads it, not 1`:                                              {Speculation: &Speculation{Alpha: 1, Beta: 2}},
		`speculation.draft_step: is what speculation.draft works out: give one of them`:                                        {Speculation: &Speculation{Draft: "Llama-3-8B", DraftStep: 1}},
		`speculation: is not done by policy static`:                                                                            {Speculation: &Speculation{Gamma: 1}, Scheduler: Scheduler{Policy: Static}},
		`replicas: and disaggregation exclude each other`:                                                                      {Replicas: 2, Disaggregation: &Disaggregation{}},
		`scheduler.policy: is always prefill-first for the prefill side of disaggregation: remove unified`:                     {Disaggregation: &Disaggregation{}, Scheduler: Scheduler{Policy: Unified}},
		`router: must be round-robin, least-loaded, session or prefix, not "random"`:                                           {Router: "random"},
		`queue_limit: must be 0 or more, not -1`:                                                                               {QueueLimit: -1},
		`noise: must be from 0 to 2, not -1`:                                                                                   {Noise: -1},
		`hiccup.probability: must be from 0 to 1, not 3`:                                                                       {Hiccup: &Hiccup{Probability: 3}},
		`host.fixed: must be 0 or more, not -1s`:                                                                               {Host: &Host{Fixed: -time.Second}},
	} {
		problems := o.Check()
		if len(problems) != 1 {
			t.Errorf("%d problems instead of %q: %v", len(problems), want, problems)
			continue
		}
		if got := problems[0].Path + ": " + problems[0].Text; !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if _, err := New(o); err == nil || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("New gives %v", err)
		}
	}
	if problems := (Options{}).Check(); len(problems) > 0 {
		t.Errorf("the zero value: %v", problems)
	}
}

// Options are written as people write them.
func TestOptionsAreRead(t *testing.T) {
	text := `
model: Yi-34B
gpu: H100
tp: 2
cost: etalon
noise: 0.05
host: 2024
memory: {fraction: 0.80}
scheduler: {policy: prefill-first, max_num_seqs: 128, max_num_batched_tokens: 8192}
speculation: {gamma: 4, alpha: 0.7}
prefix_cache: true
replicas: 2
router: session
queue_limit: 512
seed: 1
`
	var o Options
	if _, err := conf.Read("sim.yaml", []byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if problems := o.Check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if o.Cost.Roofline != Etalon || *o.Host != hostPresets["2024"] || o.Speculation.Gamma != 4 || o.Scheduler.MaxNumSeqs != 128 || o.Seed != 1 {
		t.Errorf("%+v", o)
	}
	// What is written back reads as the same.
	back, err := conf.Write(&o)
	if err != nil {
		t.Fatal(err)
	}
	var again Options
	if _, err := conf.Read("again.yaml", back, &again); err != nil {
		t.Fatalf("%v\n%s", err, back)
	}
	if again.Cost != o.Cost || *again.Host != *o.Host || again.Scheduler != o.Scheduler || *again.Speculation != *o.Speculation {
		t.Errorf("%s", back)
	}
	o = Options{}
	text = "cost: {flat: {ttft: 5ms, itl: 1ms}}\nhost: {fixed: 10ms, per_seq: 50us}\ndisaggregation: {prefill: 1, decode: 1, transfer: 20ms}\nadmit: full\n"
	if _, err := conf.Read("sim.yaml", []byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if *o.Cost.Flat != (Flat{5 * time.Millisecond, time.Millisecond}) || o.Host.PerSeq != 50*time.Microsecond || o.Disaggregation.Transfer != 20*time.Millisecond {
		t.Errorf("%+v", o)
	}
	if _, err := conf.Read("sim.yaml", []byte("host: old\n"), &o); err == nil || !strings.Contains(err.Error(), "sim.yaml:1:7: host: must be 2024") {
		t.Errorf("%v", err)
	}
}

// What can never be served is said before anything runs.
func TestFits(t *testing.T) {
	e, err := New(Options{Memory: Memory{Tokens: 1600}, MaxModelLen: 4000, Speculation: &Speculation{Gamma: 3, Alpha: .5}})
	if err != nil {
		t.Fatal(err)
	}
	// 100 blocks, one of them the watermark.
	if err := e.Fits(&Request{Prompt: 1500, Output: 84 - 3}); err != nil {
		t.Error(err)
	}
	for want, r := range map[string]Request{
		"memory has room for 1584 tokens in one request": {Index: 3, Prompt: 1500, Output: 82},
		"together they exceed max_model_len, 4000":       {Index: 3, Prompt: 3000, Output: 1001},
		"at least one token":                             {Index: 3, Prompt: 3},
	} {
		var unfit *UnfitError
		if err := e.Submit(r); !errors.As(err, &unfit) || unfit.Index != 3 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := e.Submit(Request{Index: 1, Prompt: 1, Output: 1}); err != nil {
		t.Error(err)
	}
	if err := e.Submit(Request{Index: 1, Prompt: 1, Output: 1}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("%v", err)
	}
	e.Advance(100)
	if err := e.Submit(Request{Index: 2, Arrival: 99, Prompt: 1, Output: 1}); err == nil || !strings.Contains(err.Error(), "are over") {
		t.Errorf("%v", err)
	}
	if err := e.Cancel(99, 1); err == nil || !strings.Contains(err.Error(), "are over") {
		t.Errorf("%v", err)
	}
}
