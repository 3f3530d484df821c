package cost

// A Statement is what tokens cost under a load, from the list price to the cost of
// a good answer: key cost of result.json. Amounts are decimals in Currency.
type Statement struct {
	Currency string `json:"currency"`
	Basis    string `json:"basis"` // tokens, capacity, offline, fixed_rate, closed_loop
	Unit     string `json:"unit"`  // which tokens are counted: output, or input_and_output

	PerMillion string  `json:"per_million,omitempty"`
	Low        string  `json:"low,omitempty"`
	High       string  `json:"high,omitempty"`
	Level      float64 `json:"level"`

	Good           string `json:"good"` // what good answers are: a way of GoodMeans
	PerMillionGood string `json:"per_million_good,omitempty"`
	GoodLow        string `json:"good_low,omitempty"`
	GoodHigh       string `json:"good_high,omitempty"`
	PerGoodRequest string `json:"per_good_request,omitempty"`

	Steps []Step `json:"steps"`

	InputTokens    int64     `json:"input_tokens"` // of the answers that the figures rest on
	OutputTokens   int64     `json:"output_tokens"`
	Answers        int64     `json:"answers"`
	GoodAnswers    int64     `json:"good_answers"`
	Unknown        int64     `json:"unknown,omitempty"`
	TokensPerS     *float64  `json:"tokens_per_s,omitempty"` // X, that the hours are spread over
	Capacity       *Promised `json:"capacity,omitempty"`
	Utilisation    *float64  `json:"utilisation,omitempty"`
	BilledFailures *float64  `json:"billed_failures,omitempty"`

	Prices Quoted `json:"prices"`
}

// A Step leads from one value to the next: value is the one before times factor.
type Step struct {
	Name   string   `json:"name"`
	Factor *float64 `json:"factor,omitempty"` // nil where nothing was left to divide by
	Value  string   `json:"value,omitempty"`  // a million tokens
}

// Promised is the capacity that hours were spread over.
type Promised struct {
	Objective string   `json:"objective,omitempty"`
	RPS       float64  `json:"rps"`
	Low       *float64 `json:"low,omitempty"`
	High      *float64 `json:"high,omitempty"`
}

// Quoted are the prices as they were given.
type Quoted struct {
	Date   string  `json:"date"`
	Source string  `json:"source"`
	SHA256 string  `json:"sha256,omitempty"` // of their file
	GPU    *GPU    `json:"gpu,omitempty"`
	Tokens *Tokens `json:"tokens,omitempty"` // nil also where several targets have different ones
}

// The bases of a cost.
const (
	ByToken    = "tokens"      // a price list
	ByCapacity = "capacity"    // the hours of GPUs, over a capacity
	ByOffline  = "offline"     // … over what came of a load that is all there at once
	ByRate     = "fixed_rate"  // … over what came at the rate that was offered, which says nothing about capacity
	ByLoop     = "closed_loop" // … over what came of as many users as were asked for, which says little more
)

// The units of a cost.
const (
	OutputTokens = "output"
	AllTokens    = "input_and_output"
)

// The steps of a Statement, in order.
const (
	StepList        = "list"        // the price itself, blended by the mix of tokens; or the hours over the tokens of a second
	StepUtilisation = "utilisation" // GPUs are paid when idle
	StepFailures    = "failures"    // requests without an answer, as far as they are billed
	StepRetries     = "retries"     // tries before a request's last
	StepTruncation  = "truncation"  // answers cut by their length limit, where that is a failure
	StepLate        = "late"        // answers that missed an objective
	StepSlow        = "slow"        // answers above the declared threshold
	StepCheck       = "check"       // answers that did not pass their check
)

// The ways to be good.
const (
	PriceOnly   = "price only" // nobody said what a good answer is
	InTime      = "in time"
	Right       = "passing its check"
	InTimeRight = "in time and passing its check"
)

// GoodMeans are the values of Statement.Good.
var GoodMeans = []string{PriceOnly, InTime, Right, InTimeRight}
