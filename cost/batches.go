package cost

import (
	"math"

	"fermata/internal/stats"
)

// mostBatches is how many batches there may be before each two become one.
const mostBatches = 40

// A batch is some answers that followed each other.
type batch struct{ tries, answers, cost, units, good float64 }

func (b *batch) take(c batch) {
	b.tries += c.tries
	b.answers += c.answers
	b.cost += c.cost
	b.units += c.units
	b.good += c.good
}

// batches are answers in 20 to 40 batches of equal size, in the order in which
// they come: what lies close together is alike, and batches are less so. The last
// one may be smaller.
type batches struct {
	all  []batch
	size int // requests of each
	in   int // of the last
}

func (b *batches) add(one batch) {
	b.size = max(b.size, 1)
	if len(b.all) == 0 || b.in == b.size {
		if len(b.all) == mostBatches {
			for i := range mostBatches / 2 {
				b.all[i] = b.all[2*i]
				b.all[i].take(b.all[2*i+1])
			}
			b.all, b.size = b.all[:mostBatches/2], 2*b.size
		}
		b.all, b.in = append(b.all, batch{}), 0
	}
	b.all[len(b.all)-1].take(one)
	b.in++
}

// A spread says how far a quotient of sums over the batches may be off.
type spread struct{ all []batch }

// fewestBatches is how many an interval rests on at least.
const fewestBatches = 20

func (b *batches) spread() spread {
	all := b.all
	if len(all) > fewestBatches && b.in < b.size {
		all = all[:len(all)-1]
	}
	if len(all) < fewestBatches {
		return spread{}
	}
	return spread{all}
}

// list is half the interval of the logarithm of the price of a token: cost over
// tokens.
func (s spread) list() (half float64, ok bool) {
	return s.half(func(b *batch) (float64, float64) { return b.cost, b.units })
}

// good is the same of the price of a good token, where a failed try costs kappa of
// a mean answer.
func (s spread) good(kappa float64) (half float64, ok bool) {
	var all batch
	for _, b := range s.all {
		all.take(b)
	}
	failed := kappa * all.cost / max(1, all.answers)
	return s.half(func(b *batch) (float64, float64) { return b.cost + failed*(b.tries-b.answers), b.good })
}

// half is half the 95 % interval of ln(Σx/Σy): the ratio estimator, with the t
// distribution of one batch fewer.
func (s spread) half(of func(*batch) (x, y float64)) (float64, bool) {
	n := float64(len(s.all))
	var sumX, sumY float64
	for i := range s.all {
		x, y := of(&s.all[i])
		sumX, sumY = sumX+x, sumY+y
	}
	if n < fewestBatches || !(sumX > 0) || !(sumY > 0) {
		return 0, false
	}
	ratio, squares := sumX/sumY, 0.0
	for i := range s.all {
		x, y := of(&s.all[i])
		e := x - ratio*y
		squares += e * e
	}
	return stats.StudentQuantile((1+stats.Level)/2, n-1) * math.Sqrt(n/(n-1)*squares) / sumX, true
}
