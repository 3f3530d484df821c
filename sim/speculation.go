package sim

import (
	"math"
	"math/rand/v2"

	"fermata/internal/seed"
)

// draftsFor is how many tokens are drafted for each of so many sequences.
func (i *instance) draftsFor(sequences int) int {
	s := i.Speculation
	if s == nil || s.OffAbove > 0 && sequences > s.OffAbove {
		return 0
	}
	return s.Gamma
}

// drafting is the time that drafting takes in an iteration: a pass of the draft
// model for each token, over the same contexts.
func (i *instance) drafting(b *Batch) int64 {
	drafts := b.Query - b.Decodes
	if drafts == 0 {
		return 0
	}
	passes := int64((drafts + b.Decodes - 1) / b.Decodes)
	if i.draft == nil {
		return passes * int64(i.Speculation.DraftStep)
	}
	alone := Batch{Decodes: b.Decodes, Query: b.Decodes, Context: b.Context}
	return passes * i.draft.Iteration(&alone)
}

// accepted is how many tokens a step brings to s: one, and one for each draft
// accepted before the first that is not (Leviathan et al., ICML 2023). Whether
// the draft of a token is accepted depends on the seed, the request and the
// token only, not on when it is tried.
func (e *Engine) accepted(s *sequence) int {
	n := 1
	for n <= s.drafts && uniform(e.acceptance^hash(uint64(s.Index))+uint64(s.generated+n)) < s.alpha {
		n++
	}
	return n
}

// uniform is a number in [0, 1) from a key.
func uniform(key uint64) float64 { return float64(hash(key)>>11) / (1 << 53) }

// chance is the acceptance of a request's drafts.
func (e *Engine) chance(index int64) float64 {
	s := e.Speculation
	if s == nil {
		return 0
	}
	if s.Beta == 0 {
		return s.Alpha
	}
	e.pcg.Seed(e.acceptance, hash(uint64(index)))
	a, b := gamma(e.rand, s.Alpha*s.Beta), gamma(e.rand, (1-s.Alpha)*s.Beta)
	if a+b <= 0 {
		return s.Alpha
	}
	return a / (a + b)
}

// gamma draws from a gamma distribution of that shape (Marsaglia and Tsang,
// 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(1-float64(r.Float64()), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - float64(r.Float64()); math.Log(u) < float64(0.5*x*x)+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v
		}
	}
}

// A noise disturbs the iterations of an instance, from a stream of its own.
type noise struct {
	sigma  float64
	hiccup *Hiccup
	shape  float64
	rand   *rand.Rand
}

func newNoise(o *Options, instance int) *noise {
	if o.Noise == 0 && o.Hiccup == nil {
		return nil
	}
	n := &noise{sigma: o.Noise, hiccup: o.Hiccup, rand: seed.Rand(seed.Derive(o.Seed, "sim: noise"), string(rune('a'+instance)))}
	if h := o.Hiccup; h != nil {
		if n.shape = h.Shape; n.shape == 0 {
			n.shape = 1.5
		}
	}
	return n
}

// disturb multiplies the time of an iteration, and what it would be without
// chunks, by exp(N(−σ²/2, σ²)), whose mean is 1, and adds a hiccup to both.
func (n *noise) disturb(ns, own int64) (noisyNs, noisyOwn int64) {
	if n.sigma > 0 {
		factor := math.Exp(float64(n.sigma*n.rand.NormFloat64()) - float64(n.sigma*n.sigma/2))
		ns = int64(math.Round(float64(float64(ns) * factor)))
		own = min(int64(math.Round(float64(float64(own)*factor))), ns)
	}
	if h := n.hiccup; h != nil && n.rand.Float64() < h.Probability {
		extra := math.Pow(1-float64(n.rand.Float64()), -1/n.shape)
		delay := int64(min(float64(h.AtLeast)*extra, float64(math.MaxInt64/1024)))
		if ns += delay; own > 0 {
			own += delay
		}
	}
	return ns, own
}
