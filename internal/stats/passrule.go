package stats

import "math"

// A PassRule says when a run may stop and claim that its share of misses is below
// a limit, however often it looks: as soon as requests >= Start·tau + PerMiss·misses.
// The likelihood ratio of a lower share against the limit is a supermartingale
// for every share at or above it, so that by Ville's inequality the chance of ever
// passing wrongly is at most alpha. (LoadGen's n(t), asked again and again, passes
// wrongly in 13 % of cases instead of 1 %.)
type PassRule struct{ Start, PerMiss float64 }

// AlwaysValid is the rule for misses below a share q0 at error alpha, most powerful
// against a share of q0/ratio; ratio is above 1.
func AlwaysValid(q0, ratio, alpha float64) PassRule {
	q1 := q0 / ratio
	step := math.Log1p(-q1) - math.Log1p(-q0) // what a request that is no miss adds
	return PassRule{Start: -math.Log(alpha) / step, PerMiss: (step + math.Log(ratio)) / step}
}

// Needs is how many requests the rule takes at that many misses and correlation
// time.
func (r PassRule) Needs(misses int64, tau float64) int64 {
	return int64(math.Ceil(r.Start*tau + r.PerMiss*float64(misses) - 1e-9))
}

// CapacityRequests is how many requests spent at the capacity itself tell it
// within a share delta with confidence level, if misses come as in heavy traffic:
// n = z²·2/(delta²·q0·ln(1/q0)²·rho²). The load's ratio to saturation cancels but
// for rho². No method that counts misses does with fewer.
func CapacityRequests(delta, q0, rho, level float64) float64 {
	z, l := Normal((1+level)/2), math.Log(q0)
	return 2 * z * z / (delta * delta * q0 * l * l * rho * rho)
}

// SearchRequests is the budget of a capacity search to a share delta, 2.4 times
// the law at 95 %, and 8000 at least; 1500 for a first look, to over 10 %.
func SearchRequests(delta, q0 float64) float64 {
	l, least := math.Log(q0), 8000.
	if delta > .10+1e-12 {
		least = 1500
	}
	return max(least, 18.4/(delta*delta*q0*l*l))
}
