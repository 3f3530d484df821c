package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Model is the shape of a decoder-only transformer with gated feed-forward
// networks, as its config.json gives it.
type Model struct {
	Name    string
	Layers  int
	Hidden  int
	Heads   int // query heads
	KVHeads int
	HeadDim int // its own number: not Hidden/Heads in every model
	FFN     int // width of the feed-forward network, or of one expert
	Vocab   int
	Experts int  // 1 for a dense model
	TopK    int  // experts that a token takes
	Tied    bool // input and output embeddings are one
	MaxLen  int  // positions it was made for; 0 where nobody said
}

// Models are the shapes that are known by name, from the models' own
// config.json.
func Models() []Model {
	return []Model{
		{Name: "Yi-34B", Layers: 60, Hidden: 7168, Heads: 56, KVHeads: 8, HeadDim: 128, FFN: 20480, Vocab: 64000, Experts: 1, TopK: 1},
		{Name: "Llama-3-8B", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 128256, Experts: 1, TopK: 1},
		{Name: "Llama-3-70B", Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 28672, Vocab: 128256, Experts: 1, TopK: 1},
		{Name: "Mixtral-8x7B", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 32000, Experts: 8, TopK: 2},
		{Name: "Qwen3-32B", Layers: 64, Hidden: 5120, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 25600, Vocab: 151936, Experts: 1, TopK: 1},
	}
}

// attention is the number of attention weights of a layer.
func (m *Model) attention() int64 {
	return int64(m.Hidden) * int64(m.HeadDim) * int64(2*m.Heads+2*m.KVHeads)
}

// ffn is the number of weights of one feed-forward network, or of one expert.
func (m *Model) ffn() int64 { return 3 * int64(m.Hidden) * int64(m.FFN) }

// Params is the number of all weights, embeddings included.
func (m *Model) Params() int64 {
	embeddings := int64(m.Vocab) * int64(m.Hidden)
	if !m.Tied {
		embeddings *= 2
	}
	router := int64(0)
	if m.Experts > 1 {
		router = int64(m.Hidden) * int64(m.Experts)
	}
	return int64(m.Layers)*(m.attention()+int64(m.Experts)*m.ffn()+router) + embeddings
}

// KVBytes is the size of the keys and values of one token in all layers, with
// so many bytes an element.
func (m *Model) KVBytes(element int) int64 {
	return int64(m.Layers) * 2 * int64(m.KVHeads) * int64(m.HeadDim) * int64(element)
}

// FindModel is the model of that name (in any case), or the one that a Hugging
// Face config.json (a file, or a folder that has one) describes.
func FindModel(name string) (Model, error) {
	models := Models()
	if at := slices.IndexFunc(models, func(m Model) bool { return strings.EqualFold(m.Name, name) }); at >= 0 {
		return models[at], nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return ReadModel(filepath.Join(name, "config.json"))
	}
	if strings.HasSuffix(name, ".json") {
		return ReadModel(name)
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Name
	}
	return Model{}, fmt.Errorf("no model %q is known: take one of %s, or the path of a config.json", name, strings.Join(names, ", "))
}

// A config is what matters of a config.json; several names for one number come
// from several families of models.
type config struct {
	Layers    int     `json:"num_hidden_layers"`
	Hidden    int     `json:"hidden_size"`
	Heads     int     `json:"num_attention_heads"`
	KVHeads   int     `json:"num_key_value_heads"`
	HeadDim   int     `json:"head_dim"`
	FFN       int     `json:"intermediate_size"`
	MoEFFN    int     `json:"moe_intermediate_size"`
	Vocab     int     `json:"vocab_size"`
	Experts   int     `json:"num_local_experts"`
	Experts2  int     `json:"num_experts"`
	TopK      int     `json:"num_experts_per_tok"`
	Tied      *bool   `json:"tie_word_embeddings"`
	MaxLen    int     `json:"max_position_embeddings"`
	Type      string  `json:"model_type"`
	KVRank    int     `json:"kv_lora_rank"`
	TextModel *config `json:"text_config"`
}

// ReadModel reads the config.json of a model in Hugging Face's format. The head
// size is Hidden/Heads only where the file has none.
func ReadModel(path string) (Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Model{}, fmt.Errorf("reading the model: %w", err)
	}
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		return Model{}, fmt.Errorf("reading the model from %s: %w", path, err)
	}
	if c.Layers == 0 && c.TextModel != nil {
		c = *c.TextModel
	}
	m, err := c.model()
	if err != nil {
		return Model{}, fmt.Errorf("reading the model from %s: %w", path, err)
	}
	m.Name = filepath.Base(filepath.Dir(path))
	if m.Name == "." || m.Name == string(filepath.Separator) {
		m.Name = c.Type
	}
	return m, nil
}

func (c *config) model() (Model, error) {
	if c.KVRank > 0 {
		return Model{}, fmt.Errorf("%s keeps compressed keys and values (kv_lora_rank %d), which the cost model does not know", c.Type, c.KVRank)
	}
	m := Model{
		Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		FFN: c.FFN, Vocab: c.Vocab, Experts: max(c.Experts, c.Experts2, 1), TopK: max(c.TopK, 1),
		Tied: c.Tied != nil && *c.Tied, MaxLen: c.MaxLen,
	}
	if m.Experts > 1 && c.MoEFFN > 0 {
		m.FFN = c.MoEFFN
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 {
		m.HeadDim = m.Hidden / m.Heads
	}
	for _, need := range []struct {
		key   string
		value int
	}{
		{"num_hidden_layers", m.Layers},
		{"hidden_size", m.Hidden},
		{"num_attention_heads", m.Heads},
		{"intermediate_size", m.FFN},
		{"vocab_size", m.Vocab},
	} {
		if need.value <= 0 {
			return Model{}, fmt.Errorf("it has no %s: is it the config.json of a decoder-only model?", need.key)
		}
	}
	if m.TopK > m.Experts {
		return Model{}, fmt.Errorf("num_experts_per_tok is %d of %d experts", m.TopK, m.Experts)
	}
	return m, nil
}
