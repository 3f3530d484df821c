package schedule

import (
	"math"
	"math/rand/v2"
)

// moments are the due times of a schedule without an end, ascending. now is
// the time since time zero, for those that depend on it.
type moments interface {
	next(now int64) int64
}

// atOnce is due at time zero, always.
type atOnce struct{}

func (atOnce) next(int64) int64 { return 0 }

// whenFree is due when a user of a closed loop has thought: now.
type whenFree struct{}

func (whenFree) next(now int64) int64 { return now }

// gaps draw the times between requests in units of their mean, so that the
// rate may change under way. A kind of open loop is a kind of gaps.
type gaps interface {
	next() float64
	cv() float64 // coefficient of variation: standard deviation over mean
}

// exponential gaps make a Poisson process. They are drawn by inversion from 53
// random bits: nothing is capped (Etalon caps at 3 means, which raises the rate
// by 5.24 %) and nothing rescaled to hit the rate. The first gap is drawn too.
type exponential struct{ rand *rand.Rand }

func (e exponential) next() float64 { return -math.Log(1 - e.rand.Float64()) }
func (e exponential) cv() float64   { return 1 }

// even gaps put request k at exactly k: the first has no gap.
type even struct{ begun bool }

func (e *even) next() float64 {
	if !e.begun {
		e.begun = true
		return 0
	}
	return 1
}

func (e *even) cv() float64 { return 0 }

// gamma gaps of mean 1; their shape is what others call burstiness. Below 1
// requests come in clumps, 1 is Poisson, above 1 they come more evenly.
type gamma struct {
	rand  *rand.Rand
	shape float64
}

// next is Marsaglia and Tsang's method ("A simple method for generating gamma
// variables", ACM TOMS 26(3), 2000), with their step for shapes below 1: a
// gamma of shape k is one of shape k+1 times the k-th root of a uniform.
func (g gamma) next() float64 {
	k, root := g.shape, 1.0
	if k < 1 {
		root = math.Exp(-exponential{g.rand}.next() / k)
		k++
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := g.rand.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-g.rand.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v * root / g.shape
		}
	}
}

func (g gamma) cv() float64 { return 1 / math.Sqrt(g.shape) }

// weibull gaps of mean 1, by inversion. A shape of 1 is Poisson.
type weibull struct {
	rand  *rand.Rand
	shape float64
}

func (w weibull) next() float64 {
	return math.Pow(exponential{w.rand}.next(), 1/w.shape) / math.Gamma(1+1/w.shape)
}

func (w weibull) cv() float64 {
	m := math.Gamma(1 + 1/w.shape)
	return math.Sqrt(math.Gamma(1+2/w.shape)/(m*m) - 1)
}
