package sim

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func roofline(t testing.TB, o Options, host Host) *Roofline {
	t.Helper()
	p, problem := o.plan()
	if problem != nil {
		t.Fatal(*problem)
	}
	r, problem := p.roofline(o.Model, "model", host)
	if problem != nil {
		t.Fatal(*problem)
	}
	return r
}

// Weights and keys and values of the published shapes.
func TestModels(t *testing.T) {
	for _, c := range []struct {
		name   string
		params float64 // 10⁹
		kv     int64
	}{
		{"Yi-34B", 34.39, 240 << 10},
		{"Llama-3-8B", 8.03, 128 << 10},
		{"Llama-3-70B", 70.55, 320 << 10},
		{"Mixtral-8x7B", 46.70, 128 << 10},
		{"qwen3-32b", 32.76, 256 << 10},
	} {
		m, err := FindModel(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(m.Params()) / 1e9; math.Abs(got-c.params) > .011 {
			t.Errorf("%s: %.3f·10⁹ weights, want %.2f", c.name, got, c.params)
		}
		if got := m.KVBytes(2); got != c.kv {
			t.Errorf("%s: %d bytes a token, want %d", c.name, got, c.kv)
		}
	}
}

func TestCapacity(t *testing.T) {
	r := roofline(t, Options{Model: "Yi-34B", TP: 2}, Host{})
	for fraction, want := range map[float64]int64{.8: 246884, .9: 316002} {
		if got := r.Capacity(fraction, 3*gib); got != want {
			t.Errorf("room for %d tokens at %g, want %d", got, fraction, want)
		}
	}
}

// The prefill times that the constants were checked with.
func TestPrefillTimes(t *testing.T) {
	r := roofline(t, Options{Model: "Yi-34B", TP: 2}, hostPresets["2024"])
	for prompt, want := range map[int]time.Duration{2048: 140 * time.Millisecond, 8192: 595 * time.Millisecond, 16384: 1379 * time.Millisecond} {
		if got := time.Duration(r.Prefill(prompt)); (got - want).Abs() > time.Millisecond {
			t.Errorf("prefill of %d tokens takes %v, want %v", prompt, got, want)
		}
	}
	for prompt, figure := range map[int]float64{256: .027, 512: .040, 1024: .080, 2048: .134, 4096: .268, 8192: .576, 16384: 1.339, 32768: 4.11} {
		if ratio := float64(r.Prefill(prompt)) / 1e9 / figure; ratio < .85 || ratio > 1.21 {
			t.Errorf("prefill of %d tokens takes %.2f of what Etalon's figure says", prompt, ratio)
		}
	}
	if one := float64(r.Iteration(&Batch{Decodes: 1, Query: 1, Context: 7500})) / 1e6; math.Abs(one-24.4) > .15 {
		t.Errorf("a decode step at batch 1 takes %.2f ms, want 24.4", one)
	}
}

// Golden values of an independent implementation, computed in float64 and given
// to 0.1 µs.
func TestRooflineAgainstTheFormulas(t *testing.T) {
	for _, c := range []struct {
		model, gpu, preset string
		tp                 int
	}{{"Yi-34B", "H100", Etalon, 2}, {"Mixtral-8x7B", "A100-80G", Kernels, 4}, {"Llama-3-70B", "H200", Kernels, 8}} {
		r := roofline(t, Options{Model: c.model, GPU: c.gpu, TP: c.tp, Cost: CostOptions{Roofline: c.preset}}, hostPresets["modern"])
		b := Batch{Decodes: 20, Query: 60, Context: 50000, Chunks: []Chunk{{Tokens: 700, Cached: 1300}, {Tokens: 44}}}
		m, g, tp := r.Model, r.GPU, float64(c.tp)
		L, h, d, n := float64(m.Layers), float64(m.Hidden), float64(m.HeadDim), 60.0+744
		A, M := h*d*float64(2*m.Heads+2*m.KVHeads), 3*h*float64(m.FFN)
		E, k := float64(m.Experts), float64(m.TopK)
		Et := E * (1 - math.Pow(1-k/E, n))
		smooth := func(a, b float64) float64 {
			return math.Pow(math.Pow(a, g.Smoothness)+math.Pow(b, g.Smoothness), 1/g.Smoothness)
		}
		lin := smooth(2*n*(A+k*M)/tp/(g.Compute*g.FLOPS), 2*(A+Et*M)/tp/(g.Streaming*g.Bandwidth))
		elem := g.LayerNs/1e9 + 2*n*h*(10+18/tp)/(g.Streaming*g.Bandwidth)
		kappa := 2 * float64(m.KVHeads) * d * 2
		pre := 0.0
		for _, x := range b.Chunks {
			q, s := float64(x.Tokens), float64(x.Cached)
			pre += math.Max(4*(q*s+q*(q+1)/2)*float64(m.Heads)*d/(tp*g.Attention*g.FLOPS), (s+q)*kappa/(tp*g.KVReading*g.Bandwidth))
		}
		dec := 50000 * kappa / (tp * g.KVReading * g.Bandwidth)
		ar := 2 * (g.ReduceNs/1e9 + 2*n*h/g.Link)
		V, s := float64(m.Vocab), 62.0
		head := smooth(2*s*V*h/(tp*g.Compute*g.FLOPS), 2*V*h/(tp*g.Streaming*g.Bandwidth))
		want := .002 + .00002*22 + L*(lin+elem+pre+dec+ar) + head
		if got := r.Iteration(&b); math.Abs(float64(got)-want*1e9) > 1 {
			t.Errorf("%+v: %d ns, the formulas give %.1f", c, got, want*1e9)
		}
	}
}

// More work never takes less time, more GPUs never more.
func TestRooflineIsMonotone(t *testing.T) {
	for _, preset := range []string{Etalon, Kernels} {
		for _, model := range []string{"Yi-34B", "Mixtral-8x7B"} {
			last := int64(math.MaxInt64)
			for _, tp := range []int{1, 2, 4, 8} {
				r := roofline(t, Options{Model: model, TP: tp, Dtype: "fp8", Cost: CostOptions{Roofline: preset}}, Host{})
				big := r.Iteration(&Batch{Decodes: 32, Query: 32, Context: 64000, Chunks: []Chunk{{Tokens: 2000}}})
				if big >= last {
					t.Errorf("%s on %d GPUs takes %d ns, on fewer %d", model, tp, big, last)
				}
				last = big
				base := Batch{Decodes: 8, Query: 8, Context: 8000, Chunks: []Chunk{{Tokens: 100, Cached: 50}}}
				ns := r.Iteration(&base)
				for what, b := range map[string]Batch{
					"a decode":  {Decodes: 9, Query: 9, Context: 8000, Chunks: base.Chunks},
					"a draft":   {Decodes: 8, Query: 9, Context: 8000, Chunks: base.Chunks},
					"context":   {Decodes: 8, Query: 8, Context: 9000, Chunks: base.Chunks},
					"a token":   {Decodes: 8, Query: 8, Context: 8000, Chunks: []Chunk{{Tokens: 101, Cached: 50}}},
					"its cache": {Decodes: 8, Query: 8, Context: 8000, Chunks: []Chunk{{Tokens: 100, Cached: 1050}}},
					"a chunk":   {Decodes: 8, Query: 8, Context: 8000, Chunks: []Chunk{{Tokens: 100, Cached: 50}, {Tokens: 1}}},
				} {
					if more := r.Iteration(&b); more <= ns {
						t.Errorf("%s, %s, %d GPUs: one more of %s takes %d ns instead of %d", preset, model, tp, what, more, ns)
					}
				}
			}
		}
	}
}

// A GPU holds at least one head of keys and values.
func TestFewHeads(t *testing.T) {
	m := Model{Layers: 2, Hidden: 64, Heads: 8, KVHeads: 2, HeadDim: 16, FFN: 128, Vocab: 100, Experts: 1, TopK: 1}
	g, _ := FindGPU("A100")
	for tp, want := range map[int]int{1: 128, 2: 64, 4: 64, 8: 64} {
		r := Roofline{Model: m, GPU: g, TP: tp, Weight: 2, KV: 2}
		if got := r.kvRank(); got != want {
			t.Errorf("%d GPUs: %d bytes a token and layer on each, want %d", tp, got, want)
		}
	}
}

func TestFlat(t *testing.T) {
	f := Flat{TTFT: 5, ITL: 3}
	for want, b := range map[int64]Batch{
		0: {Chunks: []Chunk{{Tokens: 9}}},
		3: {Decodes: 4, Query: 4, Context: 100},
		5: {Chunks: []Chunk{{Tokens: 9}, {Tokens: 1, Last: true}}},
		8: {Decodes: 1, Query: 1, Context: 1, Chunks: []Chunk{{Tokens: 9, Last: true}, {Tokens: 2, Last: true}}},
	} {
		if got := f.Iteration(&b); got != want {
			t.Errorf("%+v takes %d ns, want %d", b, got, want)
		}
	}
}

func TestFitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cost.yaml")
	text := "prefill: {a_ns: 3000, b_ns: 20, c_ns: 0.5}\ndecode: {a_ns: 1000, b_ns: 0.25, c_ns: 40}\nabove: {sequences: 4, decode: {a_ns: 2000, b_ns: 0.5, c_ns: 30}}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFitted(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		b    Batch
		want int64
	}{
		{Batch{Chunks: []Chunk{{Tokens: 10}}}, 3000 + 200 + 50},
		{Batch{Chunks: []Chunk{{Tokens: 4}, {Tokens: 6}}}, 3000 + 200 + 26},
		{Batch{Decodes: 4, Query: 4, Context: 400}, 1000 + 100 + 160},
		{Batch{Decodes: 5, Query: 5, Context: 400}, 2000 + 200 + 150},
		{Batch{Decodes: 4, Query: 4, Context: 400, Chunks: []Chunk{{Tokens: 10}}}, 3250 + 1260 - 1000},
	} {
		if got := f.Iteration(&c.b); got != c.want {
			t.Errorf("%+v takes %d ns, want %d", c.b, got, c.want)
		}
	}
	// The chunks of a prompt cost what it costs whole, but for what each iteration costs.
	whole := f.Iteration(&Batch{Chunks: []Chunk{{Tokens: 100}}})
	parts := f.Iteration(&Batch{Chunks: []Chunk{{Tokens: 60}}}) + f.Iteration(&Batch{Chunks: []Chunk{{Tokens: 40, Cached: 60}}})
	if parts != whole+3000 {
		t.Errorf("two chunks take %d ns, the prompt whole %d", parts, whole)
	}
	if err := os.WriteFile(path, []byte("prefill: {a_ns: -3}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFitted(path); err == nil || !strings.Contains(err.Error(), "decode: is missing") || !strings.Contains(err.Error(), "cost.yaml:1:") {
		t.Errorf("%v", err)
	}
}

// Shapes as they stand in config.json files of several families.
func TestReadModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "Some-Model")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	for text, want := range map[string]Model{
		// Qwen3-32B: the head size is not 5120/64.
		`{"model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": false}`: {
			Layers: 64, Hidden: 5120, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 25600, Vocab: 151936, Experts: 1, TopK: 1, MaxLen: 40960,
		},
		// Qwen3-30B-A3B: experts narrower than a dense layer would be.
		`{"num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936}`: {
			Layers: 48, Hidden: 2048, Heads: 32, KVHeads: 4, HeadDim: 128, FFN: 768, Vocab: 151936, Experts: 128, TopK: 8,
		},
		// Without grouped queries, without a head size, inside a multimodal file.
		`{"text_config": {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 10, "tie_word_embeddings": true}}`: {
			Layers: 2, Hidden: 64, Heads: 4, KVHeads: 4, HeadDim: 16, FFN: 128, Vocab: 10, Experts: 1, TopK: 1, Tied: true,
		},
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		want.Name = "Some-Model"
		for _, p := range []string{path, dir} {
			if got, err := FindModel(p); err != nil || got != want {
				t.Errorf("%s\ngives %+v, %v\nwant %+v", text, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		`{}`:                      "it has no num_hidden_layers",
		`{"num_hidden_layers": 1`: "unexpected end",
		`{"num_hidden_layers": 1, "kv_lora_rank": 512, "model_type": "deepseek_v3"}`: "compressed keys and values",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := FindModel(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
