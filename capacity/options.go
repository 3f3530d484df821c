package capacity

import (
	"fmt"
	"math"
	"time"

	"fermata/internal/stats"
)

// Methods of a search.
const (
	HTRM   = "ht-rm"  // Robbins-Monro in one continuous run, its gain scaled by heavy traffic
	Bisect = "bisect" // a trial of fixed length a rate, as Etalon and DistServe do
)

// Options say what is sought and how exactly. The zero value but for Allowed is
// HT-RM to 5 %.
type Options struct {
	Method    string        // HTRM (default) or Bisect
	Allowed   float64       // share of requests that may miss: .01 for a p99
	Precision float64       // half-width aimed at, as a share of the capacity; default .05
	Patience  time.Duration // how long a request can wait and still meet the objective; 0 where nothing bounds it

	TrialRequests int     // of Bisect, requests a trial; default 1000
	Start         float64 // requests/s of Bisect's first trial, and of HT-RM's where no burst tells the saturation; default 1

	Progress func(*State)  // called when something is known, by the goroutine of Search; it may save the state
	Enough   func() string // asked between blocks: a reason to stop now, empty to go on; nil never stops
}

// BlockRequests is how many are asked between two settings of the rate.
const BlockRequests = 100

// A Budget is how many requests a search will take, which is fixed beforehand: a
// search that stopped when it looks good would be biased.
type Budget struct {
	Probe  int `json:"probe"`  // at once, for the saturation
	Warmup int `json:"warmup"` // of both runs, ignored
	Search int `json:"search"` // at rates that the search sets
	Fixed  int `json:"fixed"`  // at the rate that it found
	Total  int `json:"total"`  // of Bisect the most it may take
}

const (
	block           = BlockRequests
	roughOver       = .10 // precision above which a result is rough
	defaultTrial    = 1000
	mostTrials      = 40
	defaultStart    = 1.0
	defaultAim      = .05
	phaseOneWarmup  = 200
	phaseTwoWarmup  = 500
	roughWarmup     = 100
	probeRequests   = 1200
	roughProbe      = 150
	shareOfSearch   = 4. / 7
	bracketOfAim    = .8 // Bisect ends when its bracket is this share of the precision wide
	shortestRequest = 2  // blocks that any search has
)

// Filled is o with its defaults, or what is wrong with it.
func (o Options) Filled() (Options, error) {
	if o.Method == "" {
		o.Method = HTRM
	}
	if o.Method != HTRM && o.Method != Bisect {
		return o, fmt.Errorf("searching for capacity: the method must be %s or %s, not %q", HTRM, Bisect, o.Method)
	}
	if !(o.Allowed > 0 && o.Allowed < 1) {
		return o, fmt.Errorf("searching for capacity: a share of %g may miss; it must lie between 0 and 1, such as .01 for a p99", o.Allowed)
	}
	if o.Precision == 0 {
		o.Precision = defaultAim
	}
	if !(o.Precision >= .005 && o.Precision <= .5) {
		return o, fmt.Errorf("searching for capacity: a precision of %g%%; it must lie between 0.5%% and 50%%", 100*o.Precision)
	}
	if o.TrialRequests == 0 {
		o.TrialRequests = defaultTrial
	}
	if o.TrialRequests < 20 {
		return o, fmt.Errorf("searching for capacity: trials of %d requests; they must have 20 or more", o.TrialRequests)
	}
	if o.Start == 0 {
		o.Start = defaultStart
	}
	if !(o.Start > 0) || math.IsInf(o.Start, 1) {
		return o, fmt.Errorf("searching for capacity: a first rate of %g requests/s; it must be above 0", o.Start)
	}
	return o, nil
}

// Rough says that the precision is too low for the result to be more than a first
// look.
func (o *Options) Rough() bool { return o.Precision > roughOver+1e-12 }

// Budget is what a search will take. o is filled in.
func (o *Options) Budget() Budget {
	if o.Method == Bisect {
		return Budget{Search: o.TrialRequests * mostTrials, Total: o.TrialRequests * mostTrials}
	}
	n := stats.SearchRequests(o.Precision, o.Allowed)
	b := Budget{Probe: probeRequests, Warmup: phaseOneWarmup + phaseTwoWarmup}
	if o.Rough() {
		b.Probe, b.Warmup = roughProbe, 2*roughWarmup
	}
	b.Search = max(shortestRequest, int(math.Round(n*shareOfSearch/block))) * block
	b.Fixed = max(block, int(math.Round(n))-b.Search)
	b.Total = b.Probe + b.Warmup + b.Search + b.Fixed
	return b
}

// warmups are how many requests of each run are ignored.
func (o *Options) warmups() (search, fixed int) {
	if o.Rough() {
		return roughWarmup, roughWarmup
	}
	return phaseOneWarmup, phaseTwoWarmup
}

// LengthFloor is how many requests it takes for an overload of 5 % to be able to
// break a promise about waiting: from empty, the queue reaches the patience X of
// requests only after X·mu·rho/(rho−1) of them. A shorter run that passes says
// nothing. 0 where nothing bounds the waiting.
func LengthFloor(patience time.Duration, saturationRPS float64) int {
	const rho = 1.05
	return int(math.Ceil(patience.Seconds() * saturationRPS * rho / (rho - 1)))
}
