package sim

import (
	"math"
	"time"
)

// A Host is the time of an iteration in which the GPU waits for the CPU.
type Host struct {
	Fixed  time.Duration `yaml:"fixed,zero"`
	PerSeq time.Duration `yaml:"per_seq,zero"` // for each sequence of the batch
}

// A Roofline is the cost of an iteration on one tensor-parallel group, from the
// model's shape and the GPU's peaks: for each layer the smooth maximum of the
// time to compute and the time to read the weights, plus element-wise kernels,
// attention, two all-reduces and the head. It is used through a pointer.
type Roofline struct {
	Model  Model
	GPU    GPU
	TP     int
	Weight int // bytes a weight: 2 for bf16, 1 for FP8
	KV     int // bytes an element of keys and values
	Host   Host

	// Coefficients, from prepare: seconds a token, a sequence and the like.
	computeToken, headComputeToken   float64 // compute time of a token in a layer, in the head
	readAttention, readExpert        float64 // time to read a layer's attention weights, one expert
	headRead                         float64
	elementFixed, elementToken       float64
	pairCompute, kvRead              float64 // prefill attention of a pair of tokens; reading a token's keys and values of a layer
	reduceFixed, reduceToken, layers float64
	hostFixed, hostSeq               float64
}

// prepare computes the coefficients. Here and below, products are converted
// before they are summed: that forbids fusing both into one rounding, which some
// platforms would do and others not.
func (r *Roofline) prepare() {
	m, g, tp := &r.Model, &r.GPU, float64(r.TP)
	peak := g.FLOPS
	if r.Weight == 1 {
		peak *= 2
	}
	compute, stream := g.Compute*peak, g.Streaming*g.Bandwidth
	h, vocab, weight := float64(m.Hidden), float64(m.Vocab), float64(r.Weight)
	r.layers = float64(m.Layers)
	r.computeToken = 2 * float64(m.attention()+int64(m.TopK)*m.ffn()) / tp / compute
	r.readAttention = weight * float64(m.attention()) / tp / stream
	r.readExpert = weight * float64(m.ffn()) / tp / stream
	r.headComputeToken = 2 * vocab * h / tp / compute
	r.headRead = weight * vocab * h / tp / stream
	r.elementFixed = g.LayerNs / 1e9
	r.elementToken = 2 * h * float64(10+18/tp) / stream
	r.pairCompute = 4 * float64(m.Heads) * float64(m.HeadDim) / tp / (g.Attention * g.FLOPS)
	r.kvRead = float64(r.kvRank()) / (g.KVReading * g.Bandwidth)
	if r.TP > 1 {
		r.reduceFixed = 2 * g.ReduceNs / 1e9
		r.reduceToken = 2 * 2 * h / g.Link
	}
	r.hostFixed, r.hostSeq = r.Host.Fixed.Seconds(), r.Host.PerSeq.Seconds()
}

// kvRank is the bytes of one token's keys and values of one layer on one GPU. A
// GPU holds at least one head.
func (r *Roofline) kvRank() int {
	heads := max((r.Model.KVHeads+r.TP-1)/r.TP, 1)
	return 2 * heads * r.Model.HeadDim * r.KV
}

// smoothMax is (aᵖ + bᵖ)^(1/p).
func smoothMax(a, b, p float64) float64 {
	switch p {
	case 2:
		return math.Sqrt(float64(a*a) + float64(b*b))
	case 1.5:
		root := math.Cbrt(float64(a*math.Sqrt(a)) + float64(b*math.Sqrt(b)))
		return float64(root * root)
	}
	return math.Pow(math.Pow(a, p)+math.Pow(b, p), 1/p)
}

// Terms are the parts of an iteration's time, in seconds, over all layers.
type Terms struct {
	Host, Linear, Elementwise, AllReduce, DecodeAttention, PrefillAttention, Head float64
}

func (t *Terms) seconds() float64 {
	return t.Host + t.Linear + t.Elementwise + t.AllReduce + t.DecodeAttention + t.PrefillAttention + t.Head
}

// Iteration implements Cost.
func (r *Roofline) Iteration(b *Batch) int64 {
	t := r.Terms(b)
	return int64(math.Round(t.seconds() * 1e9))
}

// Terms are what the time of an iteration consists of.
func (r *Roofline) Terms(b *Batch) Terms {
	n := b.Query
	var t Terms
	for i := range b.Chunks {
		c := &b.Chunks[i]
		n += c.Tokens
		q, s := int64(c.Tokens), int64(c.Cached)
		pairs := q*s + q*(q+1)/2
		t.PrefillAttention += max(float64(float64(pairs)*r.pairCompute), float64(float64(s+q)*r.kvRead))
	}
	tokens := float64(n)
	t.Host = r.hostFixed + float64(r.hostSeq*float64(b.Decodes+len(b.Chunks)))
	t.Linear = float64(r.layers * r.linear(n))
	t.Elementwise = float64(r.layers * (r.elementFixed + float64(tokens*r.elementToken)))
	t.AllReduce = float64(r.layers * (r.reduceFixed + float64(tokens*r.reduceToken)))
	t.DecodeAttention = float64(r.layers * float64(float64(b.Context)*r.kvRead))
	t.PrefillAttention = float64(t.PrefillAttention * r.layers)
	if sampled := float64(b.Query + len(b.Chunks)); sampled > 0 {
		t.Head = smoothMax(sampled*r.headComputeToken, r.headRead, r.GPU.Smoothness)
	}
	return t
}

// linear is the time of a layer's matrix products for n tokens.
func (r *Roofline) linear(n int) float64 {
	if n <= 0 {
		return 0
	}
	read := r.readAttention
	if m := &r.Model; m.Experts > 1 {
		missed := math.Pow(1-float64(m.TopK)/float64(m.Experts), float64(n))
		read += float64(float64(float64(m.Experts)*(1-missed)) * r.readExpert)
	} else {
		read += r.readExpert
	}
	return smoothMax(float64(n)*r.computeToken, read, r.GPU.Smoothness)
}

// Prefill is the time to prefill a prompt of so many tokens alone, in ns.
func (r *Roofline) Prefill(prompt int) int64 {
	return r.Iteration(&Batch{Chunks: []Chunk{{Tokens: prompt, Last: true}}})
}

// Capacity is how many tokens' keys and values fit beside the weights into the
// GPUs of the group, given the share of their memory that is used and the bytes
// of each that activations, the CUDA context and collectives take; negative
// where the weights alone do not fit.
func (r *Roofline) Capacity(fraction, reserved float64) int64 {
	room := float64(fraction*r.GPU.Memory) - float64(r.Weight)*float64(r.Model.Params())/float64(r.TP) - reserved
	return int64(math.Floor(room / float64(r.Model.Layers*r.kvRank())))
}
