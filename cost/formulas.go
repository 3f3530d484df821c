package cost

import "math"

// PerMillionByHour is what a million output tokens cost on GPUs of one's own that
// give so many tokens a second together: G·p/(3600·X)·10⁶. False where nothing
// comes.
func PerMillionByHour(gpus int, perHour Amount, tokensPerS float64) (Amount, bool) {
	if !(tokensPerS > 0) {
		return Amount{}, false
	}
	return perHour.scaled(float64(gpus) * 1e6 / 3600 / tokensPerS)
}

// PerMillion is what a million cost where so many tokens cost total.
func PerMillion(total Amount, tokens int64) (Amount, bool) {
	if tokens <= 0 {
		return Amount{}, false
	}
	return total.per(tokens), true
}

// Retries is by how much failed tries raise the cost of an answer: a try fails
// with probability f and then costs the share kappa of one that does not, so
// 1 + κ·f/(1 − f), whatever the number of tries that are allowed. +∞ where all fail.
func Retries(f, kappa float64) float64 {
	if f >= 1 && kappa > 0 {
		return math.Inf(1)
	}
	if f <= 0 || kappa <= 0 {
		return 1
	}
	return 1 + kappa*f/(1-f)
}

// Promise is how many times the offline cost of a token a promise costs: the
// throughput without it over that with it. A loss of 39 % of the throughput is
// Promise(1, .61) = 1.64. +∞ where nothing is left.
func Promise(offline, kept float64) float64 {
	if !(kept > 0) {
		return math.Inf(1)
	}
	return offline / kept
}
