package deadline

import "math"

// The model of a probe's TTFT: y = f(P) + W + e. W, all that load costs, is 0
// with a share of its own (the spike), or one of exponentials whose scales are
// fixed, in seconds or in units of f; e is normal with variance va + vm·f². A
// few probes may be too fast: anywhere between 0 and f. The spike is what a queue
// looks like to a probe that finds it empty, and what ordinary stochastic
// frontiers lack (compare zero-inefficiency frontiers: Kumbhakar, Parmeter and
// Tsionas 2013).
var (
	delays    = [...]float64{0.03, 0.1, 0.3, 1, 3, 10} // scales in s
	stretches = [...]float64{0.1, 0.3, 1, 3}           // scales over f
)

// Components by index: the spike, the delays, the stretches, the too fast.
const (
	spike        = 0
	delaysAt     = 1
	stretchesAt  = delaysAt + len(delays)
	tooFastAt    = stretchesAt + len(stretches)
	components   = tooFastAt + 1
	tooFastCap   = 0.03 // of the prior weight, so that a small clean cluster is never taken for too fast
	spikePrior   = 0.5  // probes that the spike has beforehand
	shortSweeps  = 25   // from every start
	longSweeps   = 400  // from the best
	bestStarts   = 2
	tolerance    = 1e-7
	leastTime    = 1e-6 // s, of a curve
	logTwoPi     = 1.8378770664093454835606594728112
	leastShrinks = 1e-9 // of a truncated normal's variance
)

// startTaus are the quantiles from which fits start, since the likelihood has
// local optima; the first, 0, stands for 1/n.
var startTaus = []float64{0, 0.03, 0.07, 0.15, 0.25, 0.35, 0.45, 0.55}

// A Noise bounds the scatter of undelayed probes: standard deviations, in seconds
// and as a share of the curve. It must stay tight, or the spike takes in the
// beginning of the delays. The zero value means DefaultNoise.
type Noise struct {
	AddMin, AddMax     float64 // s
	ShareMin, ShareMax float64
}

// DefaultNoise is for servers across a network whose usage tells prompt lengths.
func DefaultNoise() Noise {
	return Noise{AddMin: 0.0015, AddMax: 0.006, ShareMin: 0.004, ShareMax: 0.015}
}

// LocalNoise is for a server on this machine or beside it, where a TTFT may be a
// few milliseconds.
func LocalNoise() Noise {
	return Noise{AddMin: 0.0002, AddMax: 0.006, ShareMin: 0.004, ShareMax: 0.015}
}

// A state is a guess at the model's parameters.
type state struct {
	b      []float64
	share  [components]float64
	va, vm float64
	ll     float64
}

func startState(b []float64, n *Noise) *state {
	s := &state{b: b, ll: math.Inf(-1)}
	s.share[spike], s.share[tooFastAt] = 0.45, 0.05
	for j := delaysAt; j < tooFastAt; j++ {
		s.share[j] = 0.5 / float64(tooFastAt-delaysAt)
	}
	add, share := 2*n.AddMin, 2.5*n.ShareMin
	s.va, s.vm = add*add, share*share
	return s
}

// A frontier fits one shape to one sample. Its memory is used again.
type frontier struct {
	shape  *shape
	p, y   []float64
	x      []float64
	k      int
	weight []float64 // of each probe; nil for 1
	noise  Noise

	clean, tooFast []float64 // posterior probabilities after the last sweep

	target, against, spread, curve []float64 // what the next steps fit
	count                          [components]float64
}

func newFrontier(s *sample, sh *shape, noise Noise) *frontier {
	n := len(s.y)
	f := &frontier{shape: sh, p: s.p, y: s.y, x: sh.matrix(s.p), k: sh.columns(), noise: noise}
	buf := make([]float64, 6*n)
	for i, v := range []*[]float64{&f.clean, &f.tooFast, &f.target, &f.against, &f.spread, &f.curve} {
		*v = buf[i*n : (i+1)*n : (i+1)*n]
	}
	return f
}

// climb makes up to so many sweeps (expectation and conditional maximisation,
// Meng and Rubin 1993). A sweep may lower the likelihood a little, and never ends
// the climb when it does.
func (f *frontier) climb(s *state, sweeps int, tolerance float64) {
	for range sweeps {
		before := s.ll
		s.ll = f.expect(s)
		if math.Abs(s.ll-before) < tolerance*(1+math.Abs(s.ll)) && s.ll >= before-1e-9 {
			return
		}
		f.maximise(s)
	}
}

// A mixture is what one sweep needs to know of the components.
type mixture struct{ logShare, scale, logScale [components]float64 }

// logDelays and logStretches are the logarithms of the scales.
var (
	logDelays    = logs(delays[:])
	logStretches = logs(stretches[:])
)

func logs(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Log(x)
	}
	return out
}

// expect shares every probe out among the components, and is the log likelihood.
func (f *frontier) expect(s *state) float64 {
	var m mixture
	for j, v := range s.share {
		m.logShare[j] = math.Log(v + 1e-300)
	}
	copy(m.scale[delaysAt:], delays[:])
	copy(m.logScale[delaysAt:], logDelays)
	f.count = [components]float64{}
	ll := 0.0
	for i := range f.y {
		w := 1.0
		if f.weight != nil {
			if w = f.weight[i]; w <= 0 {
				f.against[i], f.spread[i], f.target[i] = 0, 0, 0
				continue
			}
		}
		at := math.Max(dot(f.x[i*f.k:i*f.k+f.k], s.b), leastTime)
		f.curve[i] = at
		logAt := math.Log(at)
		for j, phi := range stretches {
			m.scale[stretchesAt+j], m.logScale[stretchesAt+j] = phi*at, logStretches[j]+logAt
		}
		m.logScale[tooFastAt] = logAt
		ll += w * f.share(i, w, s, &m)
	}
	return ll
}

// negligible is a logarithm of a share that adds nothing to a float.
const negligible = -45

// share is expect for one probe.
func (f *frontier) share(i int, w float64, s *state, m *mixture) float64 {
	at := f.curve[i]
	r := f.y[i] - at
	variance := s.va + s.vm*at*at
	sd := math.Sqrt(variance)
	z0 := r / sd

	var l, z, below [components]float64 // log densities; where the exponential's normal is cut off, and log Φ of that
	l[spike] = m.logShare[spike] - 0.5*z0*z0 - 0.5*math.Log(variance) - 0.5*logTwoPi
	most := l[spike]
	for j := delaysAt; j < tooFastAt; j++ {
		q := sd / m.scale[j]
		z[j] = z0 - q
		below[j] = logPhi(z[j])
		l[j] = m.logShare[j] - m.logScale[j] + 0.5*q*q - r/m.scale[j] + below[j]
		most = max(most, l[j])
	}
	l[tooFastAt] = m.logShare[tooFastAt] - m.logScale[tooFastAt] + logPhi(-z0)
	most = max(most, l[tooFastAt])

	total := 0.0
	for j, v := range l {
		if l[j] = 0; v-most > negligible {
			l[j] = math.Exp(v - most)
		}
		total += l[j]
	}
	for j := range l {
		l[j] /= total
		f.count[j] += w * l[j]
	}
	g, delay, square := l[spike], 0.0, l[spike]*r*r
	for j := delaysAt; j < tooFastAt; j++ {
		if l[j] <= 0 {
			continue
		}
		// Mean and variance of the delay given the probe: a normal cut off at 0.
		h := math.Exp(-0.5*z[j]*z[j] - 0.5*logTwoPi - below[j])
		mean := sd * (z[j] + h)
		cut := variance * max(1-z[j]*h-h*h, leastShrinks)
		g += l[j]
		delay += l[j] * mean
		square += l[j] * (cut + (r-mean)*(r-mean))
	}
	some := max(g, 1e-12)
	f.target[i], f.against[i], f.spread[i] = f.y[i]-delay/some, w*g/variance, square/some
	f.clean[i], f.tooFast[i] = l[spike], l[tooFastAt]
	return most + math.Log(total)
}

// maximise fits the curve to the probes less their delays, the noise to what is
// left, and the shares to the counts.
func (f *frontier) maximise(s *state) {
	var a [4]float64
	var c [2]float64
	for i, w := range f.against {
		if w <= 0 {
			continue
		}
		square := f.curve[i] * f.curve[i]
		w /= s.va + s.vm*square
		a[0] += w
		a[1] += w * square
		a[3] += w * square * square
		c[0] += w * f.spread[i]
		c[1] += w * f.spread[i] * square
	}
	a[2] = a[1]
	s.b = nnls(f.x, f.k, f.target, f.against)
	v := solveNormal(a[:], c[:])
	n := &f.noise
	s.va = clamp(v[0], n.AddMin*n.AddMin, n.AddMax*n.AddMax)
	s.vm = clamp(v[1], n.ShareMin*n.ShareMin, n.ShareMax*n.ShareMax)

	f.count[spike] += spikePrior
	rest := 0.0
	for _, n := range f.count[:tooFastAt] {
		rest += n
	}
	f.count[tooFastAt] = math.Min(f.count[tooFastAt], tooFastCap/(1-tooFastCap)*rest)
	for j, n := range f.count {
		s.share[j] = n / (rest + f.count[tooFastAt])
	}
}

// best climbs from several starts and is the highest that was reached.
func (f *frontier) best() *state {
	var all []*state
	for _, tau := range startTaus {
		if tau <= 0 {
			tau = 1 / float64(len(f.y))
		}
		s := startState(quantileCurve(f.p, f.y, f.shape, tau), &f.noise)
		f.climb(s, shortSweeps, tolerance)
		all = append(all, s)
	}
	var top *state
	for range bestStarts {
		at := 0
		for i, s := range all {
			if s.ll > all[at].ll {
				at = i
			}
		}
		s := all[at]
		all = append(all[:at], all[at+1:]...)
		f.climb(s, longSweeps, tolerance)
		if top == nil || s.ll > top.ll {
			top = s
		}
	}
	f.expect(top)
	return top
}

func clamp(x, lo, hi float64) float64 { return math.Max(lo, math.Min(hi, x)) }

// logPhi is the logarithm of the normal distribution function, to full precision
// in both tails.
func logPhi(z float64) float64 {
	switch {
	case z > 6:
		return -0.5 * math.Erfc(z/math.Sqrt2)
	case z > -10:
		return math.Log(0.5 * math.Erfc(-z/math.Sqrt2))
	}
	q := 1 / (z * z)
	return -0.5*z*z - math.Log(-z) - 0.5*logTwoPi + math.Log1p(-q+3*q*q-15*q*q*q)
}
