package schedule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Gaps say how requests came in the end: what was drawn, or what was sent.
type Gaps struct {
	N      int     // gaps: one fewer than the requests
	MeanNs float64 // rate is 1e9/MeanNs
	CV     float64 // coefficient of variation: standard deviation (over N-1) over mean; with N of 2 or more

	// The index of dispersion is the variance of the numbers of requests in
	// windows of equal length over their mean. It is 1 for Poisson, whatever the
	// windows, and sees bursts longer than a gap, which the CV does not. There are
	// about √N windows, so that both their number and their contents are large.
	Dispersion float64
	WindowNs   int64
	Windows    int // fewer than 2: there is no index

	Asked *Asked // nil where nothing was asked: times were given, or follow from the answers
}

// Asked are the values of the process that a schedule draws from.
type Asked struct {
	MeanNs, CV float64
	Dispersion float64 // for the windows of Gaps; of gamma and Weibull gaps its limit for long windows, CV²

	// Distance is the largest difference between the shares of gaps up to a
	// length and those of the exponential distribution asked for (Kolmogorov and
	// Smirnov's D), and Chance how often a distance at least as large comes from
	// gaps that are exponential. They are there for Poisson alone.
	Distance, Chance *float64
}

// fewestGaps are enough for windows that say something.
const fewestGaps = 16

// Realised are the gaps between due times, or other moments in ns, in any order.
func Realised(due []int64) Gaps {
	at := sorted(due)
	n := len(at) - 1
	if n < 1 {
		return Gaps{}
	}
	span := at[n] - at[0]
	g := Gaps{N: n, MeanNs: float64(span) / float64(n)}
	if n > 1 && span > 0 {
		squares := 0.0
		for i := range n {
			d := float64(at[i+1]-at[i]) - g.MeanNs
			squares += d * d
		}
		g.CV = math.Sqrt(squares/float64(n-1)) / g.MeanNs
	}
	if n >= fewestGaps && span > 0 {
		windows := int64(math.Round(math.Sqrt(float64(n))))
		g.WindowNs = (span + windows - 1) / windows
		g.Dispersion, g.Windows = dispersion(at, g.WindowNs, int(windows))
	}
	return g
}

// dispersion counts what comes after the first moment, in windows that contain
// their ends; the first moment is where the windows begin.
func dispersion(at []int64, window int64, windows int) (float64, int) {
	counts := make([]float64, windows)
	for _, t := range at[1:] {
		i := max(0, (t-at[0]-1)/window) // of the same ns as the first: with the first window
		counts[min(int(i), windows-1)]++
	}
	mean := float64(len(at)-1) / float64(windows)
	squares := 0.0
	for _, c := range counts {
		squares += (c - mean) * (c - mean)
	}
	return squares / float64(windows-1) / mean, windows
}

// Realised is Realised with what s asks for beside it.
func (s *Schedule) Realised(due []int64) Gaps {
	g := Realised(due)
	mean, cv, ok := s.Asked()
	if !ok {
		return g
	}
	g.Asked = &Asked{MeanNs: mean, CV: cv, Dispersion: s.askedDispersion(g.WindowNs, cv)}
	if _, poisson := s.moments.(*open).gaps.(exponential); poisson && s.burst == nil && g.N > 0 {
		d := fromExponential(sorted(due), mean)
		p := kolmogorov(d, g.N)
		g.Asked.Distance, g.Asked.Chance = &d, &p
	}
	return g
}

// fromExponential is the largest distance of the gaps' distribution from the
// exponential one of a mean in ns.
func fromExponential(at []int64, mean float64) float64 {
	gaps := make([]int64, len(at)-1)
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
	}
	slices.Sort(gaps)
	n, d := float64(len(gaps)), 0.0
	for i, g := range gaps {
		f := -math.Expm1(-float64(g) / mean)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d
}

// kolmogorov is the chance that n values have a distance of at least d from the
// distribution that they are drawn from: Kolmogorov's 2 Σ (-1)^(k-1) exp(-2k²λ²)
// with Stephens' λ = d(√n + 0.12 + 0.11/√n) ("EDF statistics for goodness of fit",
// 1974), good from n of about 5 on.
func kolmogorov(d float64, n int) float64 {
	root := math.Sqrt(float64(n))
	lambda := d * (root + 0.12 + 0.11/root)
	if lambda < 0.2 { // the series converges slowly, to 1
		return 1
	}
	p, sign := 0.0, 1.0
	for k := 1.0; k <= 100; k++ {
		term := math.Exp(-2 * k * k * lambda * lambda)
		p += 2 * sign * term
		if term < 1e-12 {
			break
		}
		sign = -sign
	}
	return min(max(p, 0), 1)
}

// Asked are the mean in ns and the coefficient of variation of the gaps that s
// draws from, at its latest rate. ok is false where gaps are not drawn from one
// distribution: a ramp, steps, bursts of gaps other than exponential, given
// times, a closed loop, all at once.
func (s *Schedule) Asked() (meanNs, cv float64, ok bool) {
	o, isOpen := s.moments.(*open)
	if !isOpen || o.fixed {
		return 0, 0, false
	}
	if s.burst == nil {
		return 1e9 / o.rate, o.gaps.cv(), true
	}
	if _, poisson := o.gaps.(exponential); !poisson {
		return 0, 0, false
	}
	// Of the gap from one request to the next (Fischer and Meier-Hellstern, "The
	// Markov-modulated Poisson process cookbook", 1993).
	m := s.modulated()
	squared := 1 + 2*m.calm*m.busy*m.apart*m.apart/
		((m.calm+m.busy)*(m.calm+m.busy)*(m.base*m.burst+m.base*m.busy+m.burst*m.calm))
	return 1e9 / o.rate, math.Sqrt(squared), true
}

// A modulated is a Markov-modulated Poisson process: rates of requests in both
// states, and the rates, a second, at which they are left.
type modulated struct{ base, burst, apart, calm, busy float64 }

func (s *Schedule) modulated() modulated {
	scale := s.moments.(*open).rate / s.burst.meanRate(s.base)
	m := modulated{
		base: s.base * scale, burst: s.burst.Rate * scale,
		calm: 1 / (s.burst.Every - s.burst.For).Seconds(), busy: 1 / s.burst.For.Seconds(),
	}
	m.apart = m.burst - m.base
	return m
}

// askedDispersion is the index of dispersion of counts over a window. Of bursts,
// with λ the mean rate and σ the sum of both rates of change, it is
//
//	1 + 2·Var(rate)/(λσ) · (1 - (1-exp(-σt))/(σt))
//
// since the rate's autocovariance decays as exp(-σt).
func (s *Schedule) askedDispersion(windowNs int64, cv float64) float64 {
	if s.burst == nil {
		return cv * cv
	}
	m := s.modulated()
	change := m.calm + m.busy
	st := change * float64(windowNs) / 1e9
	if st <= 0 {
		return 1
	}
	variance := m.calm * m.busy / (change * change) * m.apart * m.apart
	return 1 + 2*variance/(s.moments.(*open).rate*change)*(1+math.Expm1(-st)/st)
}

// String is one line for people.
func (g Gaps) String() string {
	if g.N == 0 {
		return "no gaps: fewer than two requests"
	}
	human := func(ns float64) string {
		d := time.Duration(ns)
		digits := time.Duration(1)
		for d/digits >= 1000 {
			digits *= 10
		}
		return d.Round(digits).String()
	}
	parts := []string{strconv.Itoa(g.N) + " gaps"}
	if g.N == 1 {
		parts[0] = "1 gap"
	}
	var mean, cv, dispersed string
	if a := g.Asked; a != nil {
		mean = " (asked " + human(a.MeanNs) + ")"
		cv = fmt.Sprintf(" (asked %.3g)", a.CV)
		dispersed = fmt.Sprintf(" (asked %.3g)", a.Dispersion)
	}
	parts = append(parts, "mean "+human(g.MeanNs)+mean)
	if g.N > 1 {
		parts = append(parts, fmt.Sprintf("coefficient of variation %.3g", g.CV)+cv)
	}
	if g.Windows > 1 {
		parts = append(parts, fmt.Sprintf("index of dispersion over %s %.3g", human(float64(g.WindowNs)), g.Dispersion)+dispersed)
	}
	if g.Asked != nil && g.Asked.Distance != nil {
		parts = append(parts, fmt.Sprintf("distance from exponential %.2g (5 %% of such runs exceed %.2g)", *g.Asked.Distance, 1.358/math.Sqrt(float64(g.N))))
	}
	return strings.Join(parts, ", ")
}

func sorted(at []int64) []int64 {
	if slices.IsSorted(at) {
		return at
	}
	at = slices.Clone(at)
	slices.Sort(at)
	return at
}
