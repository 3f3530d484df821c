package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A stretch is a piece of schedule time over which the rate is linear.
type stretch struct {
	rate   float64 // at its start, in units of open.rate
	slope  float64 // change of the rate a second
	length int64   // ns
}

// endless is the length of a last stretch.
const endless = math.MaxInt64

// rates give the stretches of a schedule one after the other, without an end.
type rates interface{ next() stretch }

// plan is a list of stretches, the last of which is endless.
type plan []stretch

func (p *plan) next() stretch {
	s := (*p)[0]
	if len(*p) > 1 {
		*p = (*p)[1:]
	}
	return s
}

// bursts are the rates of a Markov-modulated Poisson process of two states:
// calm and bursting, each for an exponential time.
type bursts struct {
	rand   *rand.Rand
	rate   [2]float64 // calm and bursting, in units of their mean over time
	length [2]float64 // mean, ns
	begun  bool
	state  int // of the stretch to come: 1 is bursting
}

func newBursts(base float64, b *Burst, r *rand.Rand) *bursts {
	mean := b.meanRate(base)
	return &bursts{
		rand:   r,
		rate:   [2]float64{base / mean, b.Rate / mean},
		length: [2]float64{float64(b.Every - b.For), float64(b.For)},
	}
}

// next begins in a state drawn by its share of time, so that no burst is due at
// time zero more than at any other; what is left of that state is as long as a
// whole one, for exponential times have no memory.
func (b *bursts) next() stretch {
	if !b.begun && b.rand.Float64() < b.length[1]/(b.length[0]+b.length[1]) {
		b.state = 1
	}
	b.begun = true
	length := exponential{b.rand}.next() * b.length[b.state]
	s := stretch{rate: b.rate[b.state], length: max(1, int64(math.Round(length)))}
	b.state = 1 - b.state
	return s
}

// An open loop does not wait for answers: its due times depend on the gaps and
// the rates alone. Gaps of mean 1 are summed, and the sum is mapped through the
// inverse of the rate's integral over time: a Poisson process of changing rate
// is exact, also where the rate changes within a gap.
type open struct {
	gaps  gaps
	rates rates   // stretches to come
	rate  float64 // requests a second in the mean; 1 where stretches have rates of their own
	fixed bool    // its rates are planned

	unit float64 // sum of the gaps so far
	due  int64   // of the latest request, ns

	// The stretch holds from here on. Due times are computed from this point and
	// not from each other, so that rounding never accumulates.
	now      stretch
	fromUnit float64
	fromDue  int64
	toUnit   float64 // where it ends
}

// newOpen is an open loop at time zero.
func newOpen(g gaps, r rates, rate float64, fixed bool) *open {
	o := &open{gaps: g, rates: r, rate: rate, fixed: fixed}
	o.enter(r.next())
	return o
}

func (o *open) next(int64) int64 {
	o.unit += o.gaps.next()
	// A request on the seam of two stretches belongs to the later one: stretches
	// are half-open, and the later may begin with a rate of 0.
	for o.unit >= o.toUnit {
		o.fromUnit, o.fromDue = o.toUnit, later(o.fromDue, o.now.length)
		o.enter(o.rates.next())
	}
	o.due = later(o.fromDue, min(o.after(o.unit-o.fromUnit), o.now.length))
	return o.due
}

// enter begins a stretch at fromUnit and fromDue.
func (o *open) enter(s stretch) {
	o.now, o.toUnit = s, math.Inf(1)
	if s.length < endless {
		t := float64(s.length)
		o.toUnit = o.fromUnit + (s.rate+s.slope*t/2e9)*o.rate*t/1e9
	}
}

// after is the time from the start of the stretch, in ns, over which its rate
// adds up to unit. It solves rt + st²/2 = unit in the form that loses no digits.
func (o *open) after(unit float64) int64 {
	if unit <= 0 {
		return 0
	}
	r, s := o.now.rate*o.rate, o.now.slope*o.rate
	t := 2e9 * unit / (r + math.Sqrt(max(0, r*r+2*s*unit)))
	if !(t < float64(latestNs)) {
		return latestNs
	}
	return int64(math.Round(t))
}

// setRate changes the rate from the latest request on, of a loop of one stretch that
// has no end.
func (o *open) setRate(rate float64) {
	o.fromUnit, o.fromDue, o.rate = o.unit, o.due, rate
}

// later is b ns after a, or the latest time that there is.
func later(a, b int64) int64 {
	if b > latestNs-a {
		return latestNs
	}
	return a + b
}

// A Ramp is a rate that grows or falls evenly from time zero on.
type Ramp struct {
	From float64       `yaml:"from,zero"` // requests a second at time zero; may be 0
	To   float64       `yaml:"to"`        // at the end of the ramp and from then on
	Over time.Duration `yaml:"over"`
}

func (r *Ramp) plan() *plan {
	over := r.Over.Seconds()
	return &plan{{rate: r.From, slope: (r.To - r.From) / over, length: int64(r.Over)}, {rate: r.To, length: endless}}
}

// A Step is a stretch of one rate.
type Step struct {
	Rate float64       `yaml:"rate,zero"` // requests a second; may be 0, except in the last
	For  time.Duration `yaml:"for"`       // the last may go without
}

// stepsPlan is one rate after the other; the last goes on.
func stepsPlan(steps []Step) *plan {
	var p plan
	for _, s := range steps {
		p = append(p, stretch{rate: s.Rate, length: int64(s.For)})
	}
	p[len(p)-1].length = endless
	return &p
}

// A Burst is what happens on top of a base rate: a Markov-modulated Poisson
// process of two states (Fischer and Meier-Hellstern 1993), where gaps are
// exponential.
type Burst struct {
	Rate  float64       `yaml:"rate"`  // requests a second while it lasts, those of the base rate among them
	Every time.Duration `yaml:"every"` // mean time from the start of one burst to the start of the next
	For   time.Duration `yaml:"for"`   // mean length
}

// meanRate is the rate over all time, in requests a second.
func (b *Burst) meanRate(base float64) float64 {
	busy := float64(b.For) / float64(b.Every)
	return base*(1-busy) + b.Rate*busy
}

// planned is the length of the ramp or the steps, in time; 0 where the rates
// are not planned, or have no end.
func (o *Options) planned() time.Duration {
	if o.Ramp != nil {
		return o.Ramp.Over
	}
	var all time.Duration
	for _, s := range o.Steps {
		all += s.For
	}
	if n := len(o.Steps); n > 0 && o.Steps[n-1].For == 0 {
		return 0
	}
	return all
}

// plannedMeasured is how long the measured phase is if it ends with the plan.
// A warm-up of so many requests is not known in time, and takes nothing off.
func (o *Options) plannedMeasured() time.Duration {
	w, _ := parseWarmup(o.Warmup)
	return time.Duration(math.Round(float64(o.planned()-w.time) / (1 + w.share/100)))
}

// hasPlan says that the rate changes as planned: there is a ramp, or steps.
func (o *Options) hasPlan() bool { return o.Ramp != nil || len(o.Steps) > 0 }

// isOpen says whether a kind is an open loop, which has a rate.
func isOpen(kind string) bool {
	return slices.Contains([]string{Poisson, Gamma, Weibull, Constant}, kind)
}
