package deadline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// FitOptions say how a curve is fitted. The zero value chooses the shape, takes
// DefaultNoise, and draws 100 resamples from seed 0.
type FitOptions struct {
	Shape     string // linear, quadratic, hinges or monotone; empty lets the probes choose
	Noise     Noise
	Resamples int    // of the band's bootstrap; default 100
	Seed      uint64 // of the bootstrap
	Isolated  bool   // the server had no other load, so that it matters not when it was probed
}

const (
	defaultResamples = 100
	bandLevel        = 0.90
)

// A Curve is a fitted prefill curve, network and fixed overhead included: the
// lowest TTFT by prompt length that the probes support. What is always there, on
// every probe, cannot be told from overhead.
type Curve struct {
	shape shape
	b     []float64
	low   func(p float64) float64 // edges of the band, s
	high  func(p float64) float64

	Shortest, Longest int32 // prompts that were probed
}

// At is the curve in ns for a prompt of so many tokens.
func (c *Curve) At(tokens float64) float64 { return 1e9 * c.shape.at(c.b, tokens) }

// Band is between which ends, in ns, the floor may lie: an identification band,
// wider than what chance alone would make it, since a floor may lie below the
// lowest probe.
func (c *Curve) Band(tokens float64) (low, high float64) {
	return 1e9 * c.low(tokens), 1e9 * c.high(tokens)
}

// Shape is the curve's: linear, quadratic, hinges or monotone.
func (c *Curve) Shape() string { return c.shape.name }

// InterceptNs is the curve's value for a prompt of no tokens: network, overhead
// and all that has nothing to do with length.
func (c *Curve) InterceptNs() float64 { return c.At(0) }

// A fitted is one shape's fit with what follows from it.
type fitted struct {
	*frontier
	*state
	bic float64
}

func fitShape(s *sample, sh shape, noise Noise) *fitted {
	f := newFrontier(s, &sh, noise)
	best := f.best()
	return &fitted{f, best, -2*best.ll + float64(f.k)*math.Log(float64(len(s.y)))}
}

// undelayed sums the probabilities of having met no queue, in all and by thirds
// of the lengths.
func (f *fitted) undelayed(s *sample) (all float64, thirds [3]float64) {
	for i, c := range f.clean {
		all += c
		thirds[s.third(s.p[i])] += c
	}
	return all, thirds
}

// supported says whether enough undelayed probes stand behind a shape that is
// richer than quadratic.
func (f *fitted) supported(s *sample) bool {
	if f.k <= 3 {
		return true
	}
	all, thirds := f.undelayed(s)
	if all < 3*float64(f.k) || min(thirds[0], thirds[1], thirds[2]) < 3 {
		return false
	}
	if f.shape.name != Monotone {
		return true
	}
	for _, at := range groups(s.p) {
		if mean(pick(f.clean, at))*float64(len(at)) < 1 {
			return false
		}
	}
	return true
}

// choose fits each of the shapes and takes the one of the least BIC that is
// supported; the only one is taken in any case. unsure says that another was
// better and lacked support.
func choose(s *sample, shapes []shape, noise Noise) (best *fitted, bics map[string]float64, unsure bool) {
	bics = map[string]float64{}
	least := math.Inf(1)
	for _, sh := range shapes {
		f := fitShape(s, sh, noise)
		bics[sh.name] = f.bic
		least = math.Min(least, f.bic)
		if (f.supported(s) || len(shapes) == 1) && (best == nil || f.bic < best.bic) {
			best = f
		}
	}
	return best, bics, best.bic > least
}

// Fit fits the prefill curve to probes by a spike and exponentials frontier, and
// says how far it can be trusted. It refuses fewer than 20 usable probes, fewer
// than three lengths or less than a factor of four between them.
func Fit(probes []Probe, o FitOptions) (*Curve, *Diagnosis, error) {
	s, err := sampled(probes, minProbes)
	if err == nil {
		err = s.spread()
	}
	if err != nil {
		return nil, nil, err
	}
	if o.Noise == (Noise{}) {
		o.Noise = DefaultNoise()
	}
	if o.Resamples == 0 {
		o.Resamples = defaultResamples
	}
	shapes := candidates(s)
	if o.Shape != "" {
		shapes = slices.DeleteFunc(shapes, func(sh shape) bool { return sh.name != o.Shape })
	}
	if len(shapes) == 0 {
		return nil, nil, fmt.Errorf("fitting a prefill curve: there is no shape %q for these lengths: it is linear, quadratic, hinges or, from 4 to %d lengths, monotone", o.Shape, mostGroups)
	}
	f, bics, unsure := choose(s, shapes, o.Noise)
	rng := rand.New(rand.NewPCG(o.Seed, 0x6465_6164))
	b := newBand(s, f, f.resample(s, o.Resamples, rng.IntN))
	c := &Curve{
		shape: *f.shape, b: f.b, low: func(p float64) float64 { lo, _ := b.at(p); return lo },
		high: func(p float64) float64 { _, hi := b.at(p); return hi }, Shortest: int32(s.shortest()), Longest: int32(s.longest()),
	}
	d := diagnose(s, f, b, bics, o.Isolated)
	if d.shift(s, f, rng.IntN); d.shifted {
		d.Flags = append(d.Flags, Shifted)
	}
	if unsure {
		d.Flags = append(d.Flags, ShapeUnsure)
	}
	return c, d, nil
}
