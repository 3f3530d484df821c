package stats

// Clusters are pooled values, of which each request brings many: how many it
// brought, and how many of those lay below each of some thresholds. The request
// is what is drawn at random, not the value, so that the variance of a share comes
// from sums over requests (W. Cochran, "Sampling Techniques", chapter 9).
type Clusters struct {
	Sizes []uint32   // by request, in the order of due times
	Below [][]uint32 // by threshold, then by request: values at or below it
}

// Effect is the design effect of the i-th threshold and the correlation time of
// requests: n values are worth n/(effect·tau) independent ones for a percentile
// near the threshold. With P the share of all values below, a request's residual
// is z = below - P·size, and the effect is R·var(z)/(n·P·(1-P)), 1 at least. tau
// is that of z over requests. Of a threshold that has all values on one side
// nothing is known: then the values of a request count as one.
func (c *Clusters) Effect(i int, batchesOnly bool) (effect float64, tau Tau) {
	var n, below, whole float64
	for r, size := range c.Sizes {
		n += float64(size)
		whole += float64(size) * float64(size)
		below += float64(c.Below[i][r])
	}
	p := below / n
	if !(p > 0 && p < 1) {
		return max(1, whole/n), Independent
	}
	z, squares := make([]float64, len(c.Sizes)), 0.0
	for r, size := range c.Sizes {
		z[r] = float64(c.Below[i][r]) - p*float64(size)
		squares += z[r] * z[r]
	}
	return max(1, squares/(n*p*(1-p))), TauOfSeries(z, batchesOnly)
}
