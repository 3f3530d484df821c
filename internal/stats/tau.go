package stats

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
)

// How a correlation time came to be, in Quantile.rule of results.
const (
	ByNothing      = "independent"   // nothing says that values depend on each other
	ByGeyer        = "geyer"         // Geyer's initial monotone sequence
	ByBatches10    = "batch-10"      // batch means, 10 batches
	ByBatches20    = "batch-20"      // batch means, 20 batches
	ByPopulation   = "population"    // the values are all there is, not a sample of a series
	ByHeavyTraffic = "heavy-traffic" // the relaxation time of a queue at that load
)

// A Tau is a correlation time: how many values in a row are worth one independent
// value, tau = 1 + 2·(the sum of autocorrelations), 1 at least, and what says so.
type Tau struct {
	V  float64
	By string
}

// Independent is the correlation time of independent values.
var Independent = Tau{1, ByNothing}

// Population stands for the correlation time of values that are all there is: of
// what is known of them nothing is left to chance.
var Population = Tau{1, ByPopulation}

// Or is the longer of two correlation times.
func (t Tau) Or(u Tau) Tau {
	if u.V > t.V {
		return u
	}
	return t
}

// mostLoad is the ratio of load to saturation that counts: at 1 the relaxation
// time has no end.
const mostLoad = 0.999

// Relaxation is the correlation time that heavy traffic gives a queue under a
// load of rho times its saturation: 2/(1-rho)². A run that is too short to hold a
// burst cannot know it from its own values.
func Relaxation(rho float64) Tau {
	idle := 1 - min(max(rho, 0), mostLoad)
	return Tau{2 / (idle * idle), ByHeavyTraffic}
}

// Tails are the percentiles, in thousandths, whose indicators are looked at for
// the correlation time of values.
type Tails []int

// The upper tail, and both of them, with the median.
var (
	UpperTail = Tails{500, 900, 990}
	BothTails = Tails{10, 100, 500, 900, 990}
)

// TauOf is the correlation time of values in the order of their due times: the
// longest that Geyer's estimator and batch means (10 and 20) find for any of the
// indicators 1{x <= q} of the percentiles. With batchesOnly it is batch means
// alone, as befits a closed loop.
func TauOf(values []float32, tails Tails, batchesOnly bool) Tau {
	return new(Taus).Of(values, tails, batchesOnly)
}

// Taus remembers the correlation times of indicators, for metrics of one run that
// differ by less than their order: of times to the first token and to the first of
// the answer, say. The zero value knows none. It is for one goroutine at a time.
type Taus struct{ known map[indicator]Tau }

// An indicator is one by a hash of all of it.
type indicator struct {
	n           int
	hash        uint64
	batchesOnly bool
}

var indicatorSeed = maphash.MakeSeed()

// Of is TauOf.
func (k *Taus) Of(values []float32, tails Tails, batchesOnly bool) Tau {
	tau := Independent
	n := len(values)
	if n < 2 {
		return tau
	}
	if k.known == nil {
		k.known = map[indicator]Tau{}
	}
	sorted := slices.Clone(values)
	from := 0
	var b bitSeries
	for _, p := range tails {
		at := int(Rank(int64(n), p)) - 1
		selectRank(sorted[from:], at-from)
		q := sorted[at]
		from = at
		b.upTo(values, q)
		key := indicator{n, maphash.Bytes(indicatorSeed, b.without(0)), batchesOnly}
		own, ok := k.known[key]
		if !ok {
			own = b.tau(batchesOnly)
			k.known[key] = own
		}
		tau = tau.Or(own)
	}
	return tau
}

// TauOfFlags is the correlation time of what each value did or did not do, in the
// order of due times.
func TauOfFlags(flags []bool, batchesOnly bool) Tau {
	var b bitSeries
	b.flags(flags)
	return b.tau(batchesOnly)
}

// TauOfSeries is the correlation time of numbers themselves.
func TauOfSeries(x []float64, batchesOnly bool) Tau {
	tau := Tau{TauBatches(x, 20), ByBatches20}.Or(Tau{TauBatches(x, 10), ByBatches10})
	if !batchesOnly {
		tau = tau.Or(Tau{TauGeyer(x), ByGeyer})
	}
	return Independent.Or(tau)
}

// TauBatches is the correlation time by batch means: how many times the variance
// of the means of b batches is that of independent values. Where batches would
// hold fewer than two values, or all values are the same, it is 1.
func TauBatches(x []float64, b int) float64 {
	m := len(x) / b
	if m < 2 {
		return 1
	}
	sums := make([]float64, b)
	for i := range sums {
		for _, v := range x[i*m : (i+1)*m] {
			sums[i] += v
		}
	}
	mean, v := meanOf(x), 0.0
	for _, x := range x {
		v += (x - mean) * (x - mean)
	}
	return batchEffect(sums, m, v/float64(len(x)))
}

// batchEffect is m·var(batch means)/var(x), of the sums of batches of m.
func batchEffect(sums []float64, m int, variance float64) float64 {
	if !(variance > 0) {
		return 1
	}
	mean, v := meanOf(sums), 0.0
	for _, s := range sums {
		v += (s - mean) * (s - mean)
	}
	return max(1, v/float64(len(sums)-1)/float64(m)/variance)
}

// TauGeyer is the correlation time by C. Geyer's initial monotone sequence
// ("Practical Markov chain Monte Carlo", 1992): sums of autocorrelations of pairs
// of lags, up to the first that is not positive, none larger than the one before.
func TauGeyer(x []float64) float64 {
	if len(x) < 2 {
		return 1
	}
	mean := meanOf(x)
	direct := func(k int) float64 {
		sum := 0.0
		for i, v := range x[k:] {
			sum += (v - mean) * (x[i] - mean)
		}
		return sum
	}
	return geyer(len(x), len(x), direct, func() []float64 { return x })
}

// geyer takes lags one by one, each of which costs so much, while that is cheaper
// than to have all of them at once from the values. Most series need only a few.
func geyer(n, cost int, lag func(int) float64, values func() []float64) float64 {
	size := 1 << bits.Len(uint(n+n/2))
	transform := 3 * size * bits.Len(uint(size))
	var all []float64
	at := func(k int) float64 {
		if all == nil && k*cost > transform {
			all = autocovariance(values(), n/2)
		}
		if all != nil {
			return all[k]
		}
		return lag(k)
	}
	variance := at(0)
	if !(variance > 0) {
		return 1
	}
	sum, before := 0.0, math.Inf(1)
	for j := 0; j < n/2/2; j++ {
		pair := (at(2*j) + at(2*j+1)) / variance
		if pair <= 0 {
			break
		}
		before = min(before, pair)
		sum += before
	}
	return max(1, 2*sum-1)
}

// selectRank puts the value of rank k, from 0, of a into its place, with none
// larger before it and none smaller behind (C. Hoare's quickselect).
func selectRank(a []float32, k int) {
	lo, hi := 0, len(a)-1
	for lo < hi {
		pivot := middle(a[lo], a[(lo+hi)/2], a[hi])
		i, j := lo, hi
		for i <= j {
			for a[i] < pivot {
				i++
			}
			for pivot < a[j] {
				j--
			}
			if i <= j {
				a[i], a[j] = a[j], a[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return
		}
	}
}

func middle(a, b, c float32) float32 { return max(min(a, b), min(max(a, b), c)) }

// A bitSeries is a series of yes and no. Its lagged products are counted 64 at a
// time, which makes a lag cost next to nothing.
type bitSeries struct {
	words   []uint64  // with one more than they need, so that each has one behind it
	sums    []int32   // yes before each word
	shifted [8][]byte // the words in little-endian order without their first bits, as many; empty until asked for
	n       int
}

// size makes room for n.
func (b *bitSeries) size(n int) {
	if b.n = n; len(b.words) != n/64+2 {
		b.words, b.sums = make([]uint64, n/64+2), make([]int32, n/64+2)
	}
	for i := range b.shifted {
		b.shifted[i] = b.shifted[i][:0]
	}
	clear(b.words)
}

// upTo is 1{x <= q}.
func (b *bitSeries) upTo(x []float32, q float32) {
	b.size(len(x))
	for w := range b.words {
		from := min(64*w, len(x))
		of := x[from:min(from+64, len(x))]
		var word uint64
		for _, v := range of {
			var bit uint64
			if v <= q {
				bit = 1 << 63
			}
			word = word>>1 | bit
		}
		b.words[w] = word >> (64 - len(of))
	}
	b.sum()
}

func (b *bitSeries) flags(flags []bool) {
	b.size(len(flags))
	for i, f := range flags {
		if f {
			b.words[i/64] |= 1 << (i & 63)
		}
	}
	b.sum()
}

func (b *bitSeries) sum() {
	sum := int32(0)
	for w, word := range b.words {
		b.sums[w] = sum
		sum += int32(bits.OnesCount64(word))
	}
}

// before counts the yes among the first k.
func (b *bitSeries) before(k int) int {
	return int(b.sums[k/64]) + bits.OnesCount64(b.words[k/64]&(1<<(k&63)-1))
}

// without is the series without its first bits, fewer than eight.
func (b *bitSeries) without(bits int) []byte {
	into := b.shifted[bits]
	if len(into) > 0 {
		return into
	}
	for i, w := range b.words {
		w >>= bits
		if i+1 < len(b.words) {
			w |= b.words[i+1] << (64 - bits)
		}
		into = binary.LittleEndian.AppendUint64(into, w)
	}
	b.shifted[bits] = into
	return into
}

// products counts the i at which both i and i + k are yes. Words may begin at any
// byte, so that eight shifted copies make every lag one of whole words.
func (b *bitSeries) products(k int) int {
	here := b.without(0)[:(b.n-k+63)/64*8]
	ahead := b.without(k & 7)[k/8:][:len(here)]
	var n0, n1, n2, n3, at int
	// Four at a time, for the counts not to wait for each other.
	for ; at <= len(here)-32; at += 32 {
		h, a := here[at:at+32:at+32], ahead[at:at+32:at+32]
		n0 += bits.OnesCount64(binary.LittleEndian.Uint64(h[0:8]) & binary.LittleEndian.Uint64(a[0:8]))
		n1 += bits.OnesCount64(binary.LittleEndian.Uint64(h[8:16]) & binary.LittleEndian.Uint64(a[8:16]))
		n2 += bits.OnesCount64(binary.LittleEndian.Uint64(h[16:24]) & binary.LittleEndian.Uint64(a[16:24]))
		n3 += bits.OnesCount64(binary.LittleEndian.Uint64(h[24:32]) & binary.LittleEndian.Uint64(a[24:32]))
	}
	for ; at < len(here); at += 8 {
		n0 += bits.OnesCount64(binary.LittleEndian.Uint64(here[at:]) & binary.LittleEndian.Uint64(ahead[at:]))
	}
	return n0 + n1 + n2 + n3
}

func (b *bitSeries) tau(batchesOnly bool) Tau {
	n, yes := b.n, b.before(b.n)
	if yes == 0 || yes == n {
		return Independent
	}
	p := float64(yes) / float64(n)
	tau := Independent
	for _, e := range []struct {
		batches int
		by      string
	}{{20, ByBatches20}, {10, ByBatches10}} {
		m := n / e.batches
		if m < 2 {
			continue
		}
		sums, before := make([]float64, e.batches), 0
		for i := range sums {
			upTo := b.before((i + 1) * m)
			sums[i], before = float64(upTo-before), upTo
		}
		tau = tau.Or(Tau{batchEffect(sums, m, p*(1-p)), e.by})
	}
	if batchesOnly {
		return tau
	}
	lag := func(k int) float64 {
		ends := b.before(n-k) + yes - b.before(k)
		return float64(b.products(k)) - p*float64(ends) + float64(n-k)*p*p
	}
	return tau.Or(Tau{geyer(n, len(b.words), lag, b.floats), ByGeyer})
}

func (b *bitSeries) floats() []float64 {
	x := make([]float64, b.n)
	for i := range x {
		x[i] = float64(b.words[i/64] >> (i & 63) & 1)
	}
	return x
}
