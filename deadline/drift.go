package deadline

import (
	"math"
	"math/rand/v2"
)

// A Drift is how a server's prefill has changed against an earlier curve.
type Drift struct {
	Scale     float64 // times over those of the earlier curve
	Low, High float64 // 90 % interval
	Alarm     bool    // more than 5 % off, and the interval excludes 1: fit anew from new probes
}

const driftFrom = 0.05

// Compare fits an earlier curve, scaled, to at least 15 new probes.
func Compare(earlier *Curve, probes []Probe, o FitOptions) (*Drift, error) {
	s, err := sampled(probes, minDriftProbes)
	if err != nil {
		return nil, err
	}
	if o.Noise == (Noise{}) {
		o.Noise = DefaultNoise()
	}
	if o.Resamples == 0 {
		o.Resamples = defaultResamples
	}
	f := fitShape(s, shape{name: "scaled", scaled: func(p float64) float64 { return earlier.shape.at(earlier.b, p) }}, o.Noise)
	rng := rand.New(rand.NewPCG(o.Seed, 0x6472_6966))
	var scales []float64
	for _, b := range f.resample(s, o.Resamples, rng.IntN) {
		scales = append(scales, b[0])
	}
	scales = sorted(scales)
	d := &Drift{Scale: f.b[0], Low: quantile(scales, 0.05), High: quantile(scales, 0.95)}
	d.Alarm = math.Abs(d.Scale-1) > driftFrom && (d.Low > 1 || d.High < 1)
	return d, nil
}
