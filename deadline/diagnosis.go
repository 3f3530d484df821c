package deadline

import "math"

// A Diagnosis is what must be read with a curve, and what speaks against it.
type Diagnosis struct {
	Flags []string // in the order of Words; empty where nothing speaks against the curve

	Probes           int        // that the curve is fitted to
	LeftOut          int        // for their cached tokens
	Failed           int        // probes without a first token
	Undelayed        float64    // share of the probes sent at random times that met no queue
	UndelayedProbes  float64    // their expected number …
	UndelayedThirds  [3]float64 // … and that in each third of the lengths, on a log scale
	TooFast          float64    // expected number of probes faster than the curve allows
	NoiseNs          float64    // standard deviation of undelayed probes: a constant part …
	NoiseShare       float64    // … and one that grows with the curve
	HalfWidth        float64    // greatest half width of the band, about a relative error
	QuantileGap      float64    // greatest distance, on a log scale, from the regression of the lowest 5 %
	SupportRatio     float64    // share of long prompts at the floor over that of short ones
	Growth           float64    // curve at the longest prompt over that at the shortest
	Blocks           int        // of time that hold an undelayed probe
	TopBlock         float64    // share of the undelayed probes in the fullest of them
	TokensPerS       float64    // of prefill at the longest prompt, by the curve's slope
	DelayNs          [3]float64 // p50, p90, p99 of what load cost the probes that were sent at random; infinite where so many failed
	Shift            float64    // curve of the last third of the probes over that of the first; 0 where the probes cannot say
	BIC              map[string]float64
	stretched        float64 // weight of delays that grow with the curve
	supportP, slopes float64
	capped, strained bool
	shifted          bool
}

// Thresholds of the flags.
const (
	thinAll, thinThird     = 8, 2
	slowedRatio, slowedP   = 0.6, 0.05
	stretchedFrom          = 0.6
	tooFastFrom            = 2.5  // probes …
	tooFastShare           = 0.02 // … or of them
	disagreeFrom, wideFrom = 0.10, 0.10
	fewBlocks, oneBlock    = 5, 0.4
	leastGrowth            = 1.2
	leastSlopes            = 0.7
	atFloor                = 3    // standard deviations of the noise
	lossyFrom              = 0.05 // share of failed probes
)

func diagnose(s *sample, f *fitted, b *band, bics map[string]float64, isolated bool) *Diagnosis {
	d := &Diagnosis{
		Probes: len(s.y), LeftOut: s.left, Failed: s.failed, Undelayed: f.atRandom(s),
		NoiseNs: 1e9 * math.Sqrt(f.va), NoiseShare: math.Sqrt(f.vm), BIC: bics,
	}
	d.UndelayedProbes, d.UndelayedThirds = f.undelayed(s)
	for _, v := range f.frontier.tooFast {
		d.TooFast += v
	}
	d.support(s, f)
	d.blocks(s, f)
	d.shape(s, f, b)
	d.delays(s, f)
	d.capped = f.state.share[tooFastAt] >= 0.98*tooFastCap
	d.strained = math.Sqrt(f.vm) >= 0.999*f.noise.ShareMax || math.Sqrt(f.va) >= 0.999*f.noise.AddMax
	d.flag(f, isolated)
	return d
}

// atRandom is the share of the probes sent at random times that met no queue: the
// model's own where none was gated.
func (f *fitted) atRandom(s *sample) float64 {
	var n, clean float64
	for i, gated := range s.gated {
		if !gated {
			n++
			clean += f.clean[i]
		}
	}
	if int(n) == len(s.y) || n < 1 {
		return f.state.share[spike]
	}
	return clean / n
}

// support compares how many of the long prompts and of the short ones are at the
// floor, by a two-proportion test.
func (d *Diagnosis) support(s *sample, f *fitted) {
	var n, near [3]float64
	for i, p := range s.p {
		at, t := f.shape.at(f.b, p), s.third(p)
		n[t]++
		if math.Abs(s.y[i]-at) <= atFloor*math.Sqrt(f.va+f.vm*at*at) {
			near[t]++
		}
	}
	short, long := near[0]/math.Max(n[0], 1), near[2]/math.Max(n[2], 1)
	d.SupportRatio = math.Min(99, long/math.Max(short, 1e-9))
	both := (near[0] + near[2]) / math.Max(n[0]+n[2], 1)
	se := math.Sqrt(both*(1-both)*(1/math.Max(n[0], 1)+1/math.Max(n[2], 1))) + 1e-9
	d.supportP = 0.5 * math.Erfc((short-long)/se/math.Sqrt2)

	var fixed, grown float64
	for j := delaysAt; j < stretchesAt; j++ {
		fixed += f.state.share[j]
	}
	for j := stretchesAt; j < tooFastAt; j++ {
		grown += f.state.share[j]
	}
	d.stretched = grown / math.Max(fixed+grown, 1e-9)
}

func (d *Diagnosis) blocks(s *sample, f *fitted) {
	held := map[int64]float64{}
	for i, c := range f.clean {
		held[s.block[i]] += c
	}
	most := 0.0
	for _, v := range held {
		if v >= 0.5 {
			d.Blocks++
		}
		most = math.Max(most, v)
	}
	d.TopBlock = most / math.Max(d.UndelayedProbes, 1e-9)
}

// shape looks at the curve from end to end.
func (d *Diagnosis) shape(s *sample, f *fitted, b *band) {
	lo, hi := s.shortest(), s.longest()
	low5 := quantileCurve(s.p, s.y, f.shape, 0.05)
	const steps = 12
	for g := range steps + 1 {
		p := lo * math.Pow(hi/lo, float64(g)/steps)
		d.QuantileGap = math.Max(d.QuantileGap, math.Abs(math.Log(f.shape.at(f.b, p)/f.shape.at(low5, p))))
		d.HalfWidth = math.Max(d.HalfWidth, b.halfWidth(p))
	}
	first, middle, last := f.shape.at(f.b, lo), f.shape.at(f.b, hi/2), f.shape.at(f.b, hi)
	top := (last - middle) / (hi / 2)
	d.Growth = last / first
	d.slopes = top / math.Max((middle-first)/math.Max(hi/2-lo, 1), 1e-12)
	if top > 0 {
		d.TokensPerS = 1 / top
	}
}

// delays are those of probes that were not chosen for a quiet moment.
func (d *Diagnosis) delays(s *sample, f *fitted) {
	var over []float64
	for range s.lost {
		over = append(over, math.Inf(1))
	}
	for i, p := range s.p {
		if !s.gated[i] {
			over = append(over, math.Max(0, s.y[i]-f.shape.at(f.b, p)))
		}
	}
	over = sorted(over)
	for i, q := range []float64{0.5, 0.9, 0.99} {
		if n := len(over); n > 0 {
			d.DelayNs[i] = math.Round(1e9 * quantile(over[:n-s.lost], math.Min(1, q*float64(n-1)/math.Max(float64(n-s.lost-1), 1))))
			if q*float64(n-1) > float64(n-s.lost-1) {
				d.DelayNs[i] = math.Inf(1)
			}
		}
	}
}

func (d *Diagnosis) flag(f *fitted, isolated bool) {
	add := func(is bool, flag string) {
		if is {
			d.Flags = append(d.Flags, flag)
		}
	}
	t := d.UndelayedThirds
	add(d.UndelayedProbes < thinAll || min(t[0], t[1], t[2]) < thinThird, ThinSupport)
	add(d.SupportRatio < slowedRatio && d.supportP < slowedP ||
		d.stretched > stretchedFrom && d.Undelayed < 0.8 && d.SupportRatio < 0.9, LoadDependent)
	add(d.TooFast > math.Max(tooFastFrom, tooFastShare*float64(d.Probes)) || d.capped, TooFast)
	add(d.strained, NoiseBound)
	add(d.QuantileGap > disagreeFrom, Disagree)
	add(d.HalfWidth > wideFrom, WideBand)
	add(!isolated && (d.Blocks < fewBlocks || d.TopBlock > oneBlock), Clustered)
	add(d.Growth < leastGrowth || d.slopes < leastSlopes, Saturating)
	add(f.shape.name == Monotone, NotConvex)
	add(float64(d.Failed) > lossyFrom*float64(d.Probes+d.Failed), Lossy)
}
