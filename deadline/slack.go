package deadline

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Promise is the acceptable load from which slack follows, declared before
// anything is measured. The zero value means a utilisation of 0.6, and 95 % of
// requests that wait less.
type Promise struct {
	Load  float64 // ρ*
	Share float64 // q
}

const (
	promisedLoad    = 0.6
	promisedShare   = 0.95
	queueArrivals   = 300_000
	queueWarmup     = queueArrivals / 50
	shortestService = 1e5 // ns
)

// Filled is p with its defaults.
func (p Promise) Filled() Promise {
	if p.Load == 0 {
		p.Load = promisedLoad
	}
	if p.Share == 0 {
		p.Share = promisedShare
	}
	return p
}

// LoadSlack is the slack S in ns by the load rule: the wait that a share q of
// requests stays below in one first-come-first-served queue with Poisson arrivals
// at utilisation ρ*, whose service times are the curve, less the network's part,
// at the prompt lengths of a declared workload. It follows from the curve and
// from what was declared alone, never from delays of the endpoint that is judged:
// a slack from those would be kept at any load.
//
// Lengths should be 20,000 or more, tail included: with fewer the far quantiles
// come out low.
func LoadSlack(lengths []int32, curve func(tokens float64) (ns float64), networkNs float64, p Promise, seed uint64) (int64, error) {
	p = p.Filled()
	switch {
	case len(lengths) == 0:
		return 0, errors.New("computing the slack: the declared workload has no prompts")
	case !(p.Load > 0 && p.Load < 1):
		return 0, fmt.Errorf("computing the slack: an acceptable load of %v: it must be between 0 and 1", p.Load)
	case !(p.Share > 0 && p.Share < 1):
		return 0, fmt.Errorf("computing the slack: a share of %v: it must be between 0 and 1", p.Share)
	}
	service, sum := make([]float64, len(lengths)), 0.0
	for i, l := range lengths {
		service[i] = math.Max(curve(float64(l))-networkNs, shortestService)
		sum += service[i]
	}
	gap := sum / float64(len(service)) / p.Load
	rng := rand.New(rand.NewPCG(seed, 0x736c_6163))
	waits, w := make([]float64, 0, queueArrivals), 0.0
	for i := range queueWarmup + queueArrivals { // Lindley's recursion
		w = math.Max(0, w+service[rng.IntN(len(service))]-gap*rng.ExpFloat64())
		if i >= queueWarmup {
			waits = append(waits, w)
		}
	}
	return int64(math.Round(quantile(sorted(waits), p.Share))), nil
}

// SharedDue is when a first token is due, in ns, by the rule for a server that works
// on all its requests at once, which no constant slack fits: r + (f − r)/(1 − ρ*), f
// the curve and r the network's part of it, both in ns. It is the mean response of a
// processor-sharing server at utilisation ρ* to a request that takes f − r alone,
// whatever the others ask (Kleinrock, Queueing Systems II, 4.4). Zero fields of the
// promise have their defaults.
func SharedDue(curveNs, networkNs float64, p Promise) int64 {
	return int64(math.Round(networkNs + math.Max(0, curveNs-networkNs)/(1-p.Filled().Load)))
}

// classes of users and the slack that each accepts: conventions, after Miller
// (1968) and Nielsen (1993).
var classes = []struct {
	name  string
	limit time.Duration
}{{"interactive", time.Second}, {"medium", 3 * time.Second}, {"low", 10 * time.Second}}

// Cap is the most slack that a class of user accepts: 1 s interactive, 3 s
// medium, 10 s low priority.
func Cap(class string) (time.Duration, error) {
	for _, c := range classes {
		if c.name == class {
			return c.limit, nil
		}
	}
	return 0, fmt.Errorf("there is no class of user %q: it is interactive (1 s), medium (3 s) or low (10 s)", class)
}

// Settle makes the slack of the terms that there are, and says which binds.
func (r *SlackRule) Settle() time.Duration {
	switch {
	case r.Workload == "", r.Class != "" && r.Cap < r.ByLoad:
		r.Binds = "cap"
		return r.Cap
	}
	r.Binds = "load"
	return r.ByLoad
}
