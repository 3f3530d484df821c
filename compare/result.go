package compare

import "fermata/metrics"

// Schema is that of Comparison.
const Schema = "fermata.compare/1"

// A Comparison is what differs between systems, and how sure that is: the
// document of fermata compare. Differences are those of a further system from the
// first.
type Comparison struct {
	Schema   string       `json:"schema"`
	Tool     metrics.Tool `json:"tool"`
	Systems  []Side       `json:"systems"`
	Metrics  []Entry      `json:"metrics"`
	Pairings []Pairing    `json:"pairings"`
	Shifts   []Shift      `json:"shifts"`
	Refused  string       `json:"refused"`

	BlindSpots []BlindSpot `json:"blind_spots"`

	Warnings []metrics.Warning `json:"warnings"`
}

// A BlindSpot is one of a system's that shows beside another: the first one, or of
// the first one beside a further.
type BlindSpot struct {
	Code     string             `json:"code"`
	Run      string             `json:"run"`     // system whose readers bear what is hidden
	Against  string             `json:"against"` // the system beside it
	Pairs    int                `json:"pairs"`   // of runs that show it …
	Of       int                `json:"of"`      // … of so many
	Text     string             `json:"text"`    // this and the rest are those of the first of them
	Figures  map[string]float64 `json:"figures"`
	Requests []int64            `json:"requests"`
}

// A Side is a system with its runs.
type Side struct {
	Name     string   `json:"name"`
	Target   string   `json:"target,omitempty"`
	Model    string   `json:"model,omitempty"`
	Runs     []string `json:"runs"`
	Seeds    []uint64 `json:"seeds"`
	Requests int64    `json:"requests"`
	OK       int64    `json:"ok"`

	Costs []RunCost `json:"costs,omitempty"` // one a run; nil without prices
}

// How an entry was tested.
const (
	PairedRuns    = "paired_runs"
	PairedBatches = "paired_batches"
	Runs          = "runs"
	Batches       = "batches"
)

// Why an entry is not resolved.
const (
	Chance         = "chance"           // the difference may be chance
	TooFewRuns     = "too_few_runs"     // a percentile or a rate of fewer than five runs a side
	TooFewRequests = "too_few_requests" // of batches, or beyond a percentile
	Bursts         = "bursts"           // fewer than five batches of five correlation times each
	Insufficient   = "insufficient"     // its runs do not have the requests for the percentile
	Absent         = "absent"           // a system does not have the metric
	Unlike         = "unlike"           // costs of two kinds, which have no difference
	OfLoad         = "of_load"          // a cost by the hour at a load that somebody chose
	OfSearch       = "of_search"        // a cost at a capacity, whose chance is that of its search
)

// An Entry is one statistic of one further system beside the first. A, B, their
// difference, its interval and what would have been found are in the metric's
// unit.
type Entry struct {
	Metric    string `json:"metric"`
	Stat      string `json:"stat"`
	Objective string `json:"objective,omitempty"`
	Run       string `json:"run"`
	Unit      string `json:"unit"`

	A          *float64 `json:"a,omitempty"`
	B          *float64 `json:"b,omitempty"`
	Difference *float64 `json:"difference,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Relative   *Ratio   `json:"relative,omitempty"`

	P             *float64 `json:"p,omitempty"`
	PAdjusted     *float64 `json:"p_adjusted,omitempty"`
	VarianceRatio *float64 `json:"variance_ratio,omitempty"`
	MDE           *float64 `json:"mde,omitempty"`

	Resolved bool   `json:"resolved"`
	Better   string `json:"better"` // a, b or empty
	Why      string `json:"why,omitempty"`
	Method   string `json:"method,omitempty"`
	N        int    `json:"n"` // pairs of runs or of batches; unpaired, of the side that has fewer
}

// A Ratio is the same as shares of A: 0.02 is 2 % more.
type Ratio struct {
	Difference float64  `json:"difference"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	MDE        *float64 `json:"mde,omitempty"`
}

// A Pairing is how far the requests of a further system match those of the first.
type Pairing struct {
	Run         string  `json:"run"`
	Pairs       int     `json:"pairs"`    // of runs
	Requests    int64   `json:"requests"` // that both have
	OnlyAFailed int64   `json:"only_a_failed"`
	OnlyBFailed int64   `json:"only_b_failed"`
	BothFailed  int64   `json:"both_failed"`
	Worst       []Moved `json:"worst"` // by end-to-end time, the most worsened first
}

// A Moved is one request that took longer in the further system.
type Moved struct {
	Pair         int    `json:"pair"` // from 0
	Index        int64  `json:"index"`
	PromptTokens *int32 `json:"prompt_tokens,omitempty"`
	A            int64  `json:"a_ns"`
	B            int64  `json:"b_ns"`
}

// What requests are grouped by.
const (
	ByPrompt   = "prompt_tokens"
	ByPosition = "position"
)

// A Shift is how a metric moved for a group of paired requests. It has no
// interval: it says where to look.
type Shift struct {
	Run    string  `json:"run"`
	Metric string  `json:"metric"`
	By     string  `json:"by"`
	From   int64   `json:"from"` // tokens, or place in the run from 0
	To     int64   `json:"to"`   // inclusive
	N      int64   `json:"n"`    // requests that have it in both
	Median int64   `json:"median_difference_ns"`
	Worse  float64 `json:"share_worse"` // by more than 5 %
	Better float64 `json:"share_better"`
}
