// Package metrics says what a recording means: one file a metric, all of them
// functions of traces alone. It never sees a socket.
package metrics

import "fermata/cost"

// A Result is what can be claimed from one recording: result.json, schema
// fermata.result/1. What does not apply is absent, never 0 or -1.
type Result struct {
	Schema string `json:"schema"`
	Tool   Tool   `json:"tool"`
	Run    Run    `json:"run"`
	Window Window `json:"window"`
	Load   Load   `json:"load"`

	DataSet *DataSet `json:"dataset,omitempty"` // that was asked; nil without one

	Outcomes      map[string]int64 `json:"outcomes"`
	Failures      []Failure        `json:"failures"`
	FinishReasons map[string]int64 `json:"finish_reasons"`

	Metrics   Metrics    `json:"metrics"`
	TTFTParts *TTFTParts `json:"ttft_parts,omitempty"` // what the time to the first token consists of; nil where nobody knows

	Stalls     *Stalls     `json:"stalls,omitempty"`
	Freezes    *Freezes    `json:"freezes,omitempty"`
	Checks     *Checks     `json:"checks,omitempty"`
	Slow       *int64      `json:"slow,omitempty"` // ok answers that took longer than declared
	Sessions   *Sessions   `json:"sessions,omitempty"`
	Throughput Throughput  `json:"throughput"`
	Fluidity   []Fluidity  `json:"fluidity"`
	FluidRate  []FluidRate `json:"fluid_rate"`
	Rates      Rates       `json:"rates"`
	Goodput    []Goodput   `json:"goodput"`
	SLO        []Verdict   `json:"slo"`

	Cost *cost.Statement `json:"cost,omitempty"` // what tokens cost; nil without prices

	MLPerf *MLPerf `json:"mlperf,omitempty"` // the same by MLPerf's rules; nil unless a scenario is named

	SameEventShare *float64 `json:"same_event_share,omitempty"` // of decode tokens, those that came in the event of the token before
	SameReadShare  *float64 `json:"same_read_share,omitempty"`  // … in the same socket read

	TogetherShare *float64 `json:"together_share,omitempty"` // … less than 1 ms after it

	BlindSpots []BlindSpot        `json:"blind_spots"`
	Worst      map[string][]int64 `json:"worst"` // indices of requests, the worst first, by wait, freeze and bunch

	Targets map[string]TargetResult `json:"targets,omitempty"` // by name, where there are several

	Simulation *Simulation `json:"simulation,omitempty"` // what the simulated system did, where it was one

	Server   *Server   `json:"server,omitempty"` // what the server said of itself
	Health   Health    `json:"health"`
	Warnings []Warning `json:"warnings"`
}

// Simulation is what a simulated system did as a whole: how near to capacity it
// stood is the first thing to know about its numbers.
type Simulation struct {
	System       string   `json:"system"`
	EndNs        int64    `json:"end_ns"` // of its last iteration
	Iterations   int64    `json:"iterations"`
	BusyShare    float64  `json:"busy_share"`             // of the time of all instances, from time zero to the end
	PrefillShare float64  `json:"prefill_share"`          // … in iterations that only prefilled
	MixedShare   float64  `json:"mixed_share"`            // … in those that prefilled and decoded
	MemoryShare  *float64 `json:"memory_share,omitempty"` // of the room for keys and values, over busy time
	Evictions    int64    `json:"evictions"`              // requests taken out of memory and begun again
	Recomputed   int64    `json:"recomputed_tokens"`      // tokens computed again

	LongestGap *SimulatedGap `json:"longest_gap,omitempty"` // between two tokens of one answer
}

// SimulatedGap is a gap between two tokens with what it consisted of.
type SimulatedGap struct {
	Index             int64 `json:"index"` // of the request
	Token             int   `json:"token"` // that ended it, from 1
	Ns                int64 `json:"ns"`
	PrefillNs         int64 `json:"prefill_ns"` // in iterations that only prefilled
	PrefillIterations int   `json:"prefill_iterations"`
	Prompts           int   `json:"prompts"` // of others, prefilled meanwhile
}

// TargetResult is what can be claimed of one target, from its measured requests
// alone.
type TargetResult struct {
	Outcomes map[string]int64 `json:"outcomes"`
	Metrics  Metrics          `json:"metrics"`
	SLO      []Verdict        `json:"slo"`
}

// DataSet is what became of a file of prompts or lengths.
type DataSet struct {
	Rows            int64    `json:"rows"`                       // that can be asked
	Rounds          int64    `json:"rounds,omitempty"`           // how often it was started over
	Unreadable      int64    `json:"unreadable,omitempty"`       // rows that were skipped (workload.skip_bad)
	FirstUnreadable string   `json:"first_unreadable,omitempty"` // which row, and why
	Empty           int64    `json:"empty,omitempty"`            // rows with nothing to ask
	Estimated       int64    `json:"estimated,omitempty"`        // rows whose lengths are estimated from text
	Filters         *Filters `json:"filters,omitempty"`
}

// Filters are what filters of lengths dropped.
type Filters struct {
	Rows         int64            `json:"rows"` // before them
	Kept         int64            `json:"kept"`
	Dropped      map[string]int64 `json:"dropped"` // by the first filter that a row failed
	InputBefore  int64            `json:"median_input_before,omitempty"`
	InputAfter   int64            `json:"median_input_after,omitempty"`
	OutputBefore int64            `json:"median_output_before,omitempty"`
	OutputAfter  int64            `json:"median_output_after,omitempty"`
}

// Tool is what made the result.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Run is what was run.
type Run struct {
	Name        string            `json:"name,omitempty"`
	Target      string            `json:"target,omitempty"`
	Model       string            `json:"model,omitempty"`
	Seed        *uint64           `json:"seed,omitempty"`
	Interrupted string            `json:"interrupted,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// Window is the measured phase, half-open, in ns since time zero.
type Window struct {
	StartNs   int64   `json:"start_ns"`
	EndNs     int64   `json:"end_ns"`
	Why       string  `json:"why"`
	TimeScale float64 `json:"time_scale"`
}

// Load is what was offered and what came of it.
type Load struct {
	OfferedRPS   *float64 `json:"offered_rps,omitempty"`  // measured requests due, over the length of their phase
	AchievedRPS  *float64 `json:"achieved_rps,omitempty"` // measured requests sent, over the same
	Sent         int64    `json:"sent"`                   // measured requests that left
	Measured     int64    `json:"measured"`               // measured requests
	InFlightMax  int64    `json:"in_flight_max"`
	InFlightMean *float64 `json:"in_flight_mean,omitempty"` // over the window
	Retried      int64    `json:"retried,omitempty"`        // measured requests that were tried again
	EarlierTries int64    `json:"earlier_tries,omitempty"`  // their tries before the last, which are not judged
	Lateness     *Dist    `json:"lateness,omitempty"`

	Arrivals  *Arrivals   `json:"arrivals,omitempty"`
	Spent     *Spent      `json:"spent,omitempty"`
	Precision []Precision `json:"precision,omitempty"` // in the order in which they were asked for

	Saturation    *Saturation `json:"saturation,omitempty"`
	SaturationRPS *float64    `json:"saturation_rps,omitempty"` // as it was given or probed
	OfSaturation  *float64    `json:"of_saturation,omitempty"`  // offered_rps over it
	Drift         *Drift      `json:"drift,omitempty"`
}

// Saturation is the highest rate that the system serves, and who says so.
type Saturation struct {
	RPS    float64 `json:"rps"`
	Source string  `json:"source"` // given, or probed before the run
}

// A Drift says whether the number of requests under way, as each new one found
// it, kept growing, from the 501st request on.
type Drift struct {
	Requests   int64    `json:"requests"`    // that were looked at
	PerRequest float64  `json:"per_request"` // growth of the number under way, a request
	PerS       *float64 `json:"per_s,omitempty"`
	T          float64  `json:"t"` // over its standard error
	FirstHalf  float64  `json:"first_half"`
	SecondHalf float64  `json:"second_half"`
	TTFTNsPerS *float64 `json:"ttft_ns_per_s,omitempty"` // growth of the time to first token
	Unsteady   bool     `json:"unsteady"`                // there is no steady state: percentiles depend on the run's length
}

// Spent is what a run cost by its prices: all of its requests, of every phase, with
// every try. Amounts are exact decimals.
type Spent struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Most     string `json:"most,omitempty"`    // that it was allowed (load.max_cost)
	Unknown  int64  `json:"unknown,omitempty"` // tries whose prompt is left out, as nobody told its length
}

// Precision is what came of a percentile that was to be known so well that the run
// could end (load.stop_at_precision). It is a claim about an interval's width, and
// no verdict.
type Precision struct {
	Statistic string   `json:"statistic"`         // such as ttft.p99
	Wanted    float64  `json:"wanted"`            // half the interval's width, as a share of the value
	Reached   *float64 `json:"reached,omitempty"` // the same, of all measured requests
	N         int64    `json:"n"`                 // values
	Met       bool     `json:"met"`
}

// Arrivals say how measured requests came by their due times, beside what the
// schedule was asked for. Index of dispersion: variance of the number of
// requests in windows of equal length over its mean; 1 for Poisson.
type Arrivals struct {
	Gaps            int64    `json:"gaps"` // one fewer than the requests
	MeanNs          int64    `json:"mean_ns"`
	CV              float64  `json:"cv"` // coefficient of variation of the gaps
	Dispersion      *float64 `json:"dispersion,omitempty"`
	WindowNs        int64    `json:"window_ns,omitempty"` // of the index of dispersion
	AskedMeanNs     *int64   `json:"asked_mean_ns,omitempty"`
	AskedCV         *float64 `json:"asked_cv,omitempty"`
	AskedDispersion *float64 `json:"asked_dispersion,omitempty"`
	KS              *float64 `json:"ks,omitempty"`   // Kolmogorov and Smirnov's distance from the exponential asked for
	KSP             *float64 `json:"ks_p,omitempty"` // chance of a distance as large in a Poisson process

	Sent *Sendings `json:"sent,omitempty"`
}

// Sendings are the same of the moments at which the requests left.
type Sendings struct {
	MeanNs int64    `json:"mean_ns"`
	CV     float64  `json:"cv"`
	KS     *float64 `json:"ks,omitempty"`
	KSP    *float64 `json:"ks_p,omitempty"`
}

// A Failure is a class of measured requests that were not ok.
type Failure struct {
	Outcome    string `json:"outcome"`
	FailedAt   string `json:"failed_at,omitempty"`
	HTTPStatus int32  `json:"http_status,omitempty"`
	Count      int64  `json:"count"`
	Tokens     int64  `json:"tokens"`          // that arrived before
	Error      string `json:"error,omitempty"` // of the first of them
}

// Metrics holds one distribution a metric; each covers the requests that have
// the value and says how many are missing.
type Metrics struct {
	TTFTDue           *Dist `json:"ttft_due,omitempty"`
	TTFTSent          *Dist `json:"ttft_sent,omitempty"`
	TTFTServer        *Dist `json:"ttft_server,omitempty"`
	TTFTAnswer        *Dist `json:"ttft_answer,omitempty"`
	Network           *Dist `json:"network,omitempty"`
	ServerQueue       *Dist `json:"server_queue,omitempty"`
	Prefill           *Dist `json:"prefill,omitempty"`
	SchedulingDelay   *Dist `json:"scheduling_delay,omitempty"`
	TBT               *Dist `json:"tbt,omitempty"`
	TBTEvent          *Dist `json:"tbt_event,omitempty"`
	TPOT              *Dist `json:"tpot,omitempty"`
	TokenPace         *Dist `json:"token_pace,omitempty"`
	NormalizedLatency *Dist `json:"normalized_latency,omitempty"`
	E2E               *Dist `json:"e2e,omitempty"`
	StreamEnd         *Dist `json:"stream_end,omitempty"` // end of the stream from the due time
	TPS               *Dist `json:"tps,omitempty"`
	GapLongest        *Dist `json:"gap_longest,omitempty"`
	EvenGap           *Dist `json:"even_gap,omitempty"`
	StallLongest      *Dist `json:"stall_longest,omitempty"`
	StallTotal        *Dist `json:"stall_total,omitempty"`
	StallsPerRequest  *Dist `json:"stalls_per_request,omitempty"`
	StallPosition     *Dist `json:"stall_position_first,omitempty"` // of requests that stalled
	TokensPerEvent    *Dist `json:"tokens_per_event,omitempty"`
	EventsPerRead     *Dist `json:"events_per_read,omitempty"`
	PromptTokens      *Dist `json:"prompt_tokens,omitempty"`
	OutputTokens      *Dist `json:"output_tokens,omitempty"`
}

// A Dist is a distribution. Values of unit "ns" and counts are whole numbers.
type Dist struct {
	Unit      string     `json:"unit"` // ns, tokens, tokens/s, events, 1 …
	N         int64      `json:"n"`
	NRequests int64      `json:"n_requests"`
	Missing   int64      `json:"missing"` // measured requests without the value
	Level     float64    `json:"level"`   // of the intervals: 0.95
	Mean      *float64   `json:"mean,omitempty"`
	SD        *float64   `json:"sd,omitempty"` // over n - 1
	Min       *float64   `json:"min,omitempty"`
	Max       *float64   `json:"max,omitempty"`
	Better    string     `json:"better,omitempty"` // lower or higher
	Source    string     `json:"source,omitempty"` // server or estimated, of the scheduling delay
	Quantiles []Quantile `json:"quantiles"`        // ascending p; the value of rank ceil(n p)
	Over      []Over     `json:"over,omitempty"`
}

// TTFTParts takes the mean time to first token apart, over requests of which all
// parts are known: lateness, earlier tries where there were any, network, scheduling
// delay and prefill add up to it.
type TTFTParts struct {
	Source string          `json:"source"` // server: it says; estimated: by a measured prefill curve
	N      int64           `json:"n"`      // requests
	MeanNs int64           `json:"mean_ns"`
	Parts  []TTFTPart      `json:"parts"`           // in the order of time
	Delay  []DelayQuantile `json:"delay,omitempty"` // of an estimate: percentiles by the edges of the curve's band
	Curve  *Deadline       `json:"curve,omitempty"` // of an estimate
}

// A TTFTPart is one part of the mean time to first token. Of an estimate, network
// is the curve's value for a prompt of no tokens, fixed overhead included.
type TTFTPart struct {
	Part   string `json:"part"` // lateness, earlier_tries, network, scheduling_delay or prefill
	MeanNs int64  `json:"mean_ns"`
	LowNs  *int64 `json:"low_ns,omitempty"` // by the edges of the curve's band
	HighNs *int64 `json:"high_ns,omitempty"`
}

// A DelayQuantile is a percentile of the estimated scheduling delay, and what it
// is by the edges of the curve's band.
type DelayQuantile struct {
	P     float64  `json:"p"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// A Quantile is a percentile with its interval. Low and High are statistical,
// StampLow and StampHigh the instrument's.
type Quantile struct {
	P         float64  `json:"p"`
	Value     float64  `json:"value"`
	Low       *float64 `json:"low,omitempty"`
	High      *float64 `json:"high,omitempty"`
	StampLow  *float64 `json:"stamp_low,omitempty"`
	StampHigh *float64 `json:"stamp_high,omitempty"`
	Tau       *float64 `json:"tau,omitempty"`
	NEff      float64  `json:"n_eff"`
	Rule      string   `json:"rule"`
	Status    string   `json:"status"` // ok, assumed, open, insufficient
}

// Over is the share of values above a bound.
type Over struct {
	Value            float64  `json:"value"`
	Share            float64  `json:"share"`              // of the requests that have the value
	ShareWithMissing float64  `json:"share_with_missing"` // requests without the value counted as above
	Low              *float64 `json:"low,omitempty"`      // Clopper–Pearson, of share
	High             *float64 `json:"high,omitempty"`
}

// Stalls sums up playback at the reading pace, over ok answers.
type Stalls struct {
	PaceNs          int64   `json:"pace_ns"`
	RequestsWithAny int64   `json:"requests_with_any"`
	Share           float64 `json:"share"`
}

// Freezes sum up silences that stopped ok answers (see Freeze).
type Freezes struct {
	OverNs          int64   `json:"over_ns"`
	RequestsWithAny int64   `json:"requests_with_any"`
	Answers         int64   `json:"answers"` // ok ones with a token
	Share           float64 `json:"share"`
	LongestNs       *int64  `json:"longest_ns,omitempty"`
}

// Checks sum up whether ok answers were right.
type Checks struct {
	Kind      string        `json:"kind,omitempty"` // schema, regex, text or command
	Passed    int64         `json:"passed"`
	Failed    int64         `json:"failed"`
	Unchecked int64         `json:"unchecked,omitempty"` // the run was cut before their turn
	Share     float64       `json:"share"`               // of measured requests, those whose answer passed
	Example   *CheckExample `json:"example,omitempty"`   // the first that failed
}

// A CheckExample is one answer that failed its check.
type CheckExample struct {
	Index  int64  `json:"index"`
	Detail string `json:"detail"`
	Text   string `json:"text,omitempty"` // the beginning of the answer, where texts were kept
}

// Sessions sums up conversations by their measured turns.
type Sessions struct {
	Started     int64 `json:"started"`      // first turns
	EndedEarly  int64 `json:"ended_early"`  // failed turns that others were to follow
	TurnsUnsent int64 `json:"turns_unsent"` // those others: no requests, and in no other count
}

// Throughput takes what finished or arrived in the window, of every phase.
type Throughput struct {
	RequestsPerS             *float64 `json:"requests_per_s,omitempty"`
	OutputTokensPerSFinished *float64 `json:"output_tokens_per_s_finished,omitempty"`
	OutputTokensPerSArrived  *float64 `json:"output_tokens_per_s_arrived,omitempty"`
	InputTokensPerS          *float64 `json:"input_tokens_per_s,omitempty"`
}

// Deadline is what first tokens were judged against.
type Deadline struct {
	Shape  string `json:"shape"`  // fixed, linear, quadratic, hinges, monotone
	Text   string `json:"text"`   // as given, such as fixed:300ms
	Source string `json:"source"` // where it came from

	SHA256 string   `json:"sha256,omitempty"` // of the deadlines file
	Flags  []string `json:"flags,omitempty"`  // what speaks against its curve
}

// Fluidity is the fluidity index at one target gap.
type Fluidity struct {
	Variant         string    `json:"variant"` // decode or first_token
	TargetGapNs     int64     `json:"target_gap_ns"`
	Deadline        *Deadline `json:"deadline,omitempty"`
	SlackNs         *int64    `json:"slack_ns,omitempty"`
	Edge            string    `json:"edge,omitempty"`
	Carry           string    `json:"carry"`
	Index           *Dist     `json:"index,omitempty"` // absent where no request has F
	ShareAtLeast0_9 *float64  `json:"share_at_least_0_9,omitempty"`
	Missed          int64     `json:"missed"`
	Met             int64     `json:"met"`
}

// FluidRate is the fluid token generation rate 1/D_d*.
type FluidRate struct {
	Variant  string   `json:"variant"`
	GapNs    *int64   `json:"gap_ns,omitempty"`
	TokensPS *float64 `json:"tokens_per_s,omitempty"`
	Share    float64  `json:"share"` // 0.99
	Index    float64  `json:"index"` // 0.9
	Feasible bool     `json:"feasible"`
	Low      *float64 `json:"low,omitempty"` // tokens a second
	High     *float64 `json:"high,omitempty"`
	Tau      *float64 `json:"tau,omitempty"`
	NEff     *float64 `json:"n_eff,omitempty"`
	Status   string   `json:"status,omitempty"` // of the interval, as a quantile's
}

// Rates are three tokens-a-second figures of one recording, side by side.
type Rates struct {
	TPOT    *float64 `json:"tpot,omitempty"`     // 1/median TPOT
	TailTBT *float64 `json:"tail_tbt,omitempty"` // 1/p99 TBT
	Fluid   *float64 `json:"fluid,omitempty"`    // 1/D_d*, decode
}

// Goodput is the rate of requests that met every term of an objective jointly.
type Goodput struct {
	Objective string   `json:"objective"`
	RequestsS *float64 `json:"requests_per_s,omitempty"`
	TokensS   *float64 `json:"tokens_per_s,omitempty"`
	Share     *float64 `json:"share,omitempty"` // absent where no request could be judged
	ShareLow  *float64 `json:"share_low,omitempty"`
	ShareHigh *float64 `json:"share_high,omitempty"`
	NotJudged int64    `json:"not_judged,omitempty"` // good answers whose prompts have no first-token deadline
}

// A Verdict judges one objective.
type Verdict struct {
	Objective string   `json:"objective"`
	Verdict   string   `json:"verdict"` // met, missed, open
	Share     *float64 `json:"share,omitempty"`
	ShareLow  *float64 `json:"share_low,omitempty"`
	ShareHigh *float64 `json:"share_high,omitempty"`
	Value     *float64 `json:"value,omitempty"` // the percentile, for one term
	Low       *float64 `json:"low,omitempty"`
	High      *float64 `json:"high,omitempty"`
	Unit      string   `json:"unit,omitempty"`       // of value
	WithoutIt int64    `json:"without_it,omitempty"` // good answers that had no value for a term, counted as meeting it
	Judged    *int64   `json:"judged,omitempty"`     // requests; absent where all were
	NotJudged int64    `json:"not_judged,omitempty"` // good answers whose prompts have no first-token deadline: neither met nor missed
	Tau       *float64 `json:"tau,omitempty"`        // requests that are worth one
	NEff      *float64 `json:"n_eff,omitempty"`      // independent values that the interval rests on
	Status    string   `json:"status,omitempty"`     // of the interval, as a quantile's

	Views []VerdictView `json:"views,omitempty"` // as it stands and with other first-token deadlines, where they have a band
}

// A VerdictView is what the verdict is with another deadline of the first token.
type VerdictView struct {
	Edge    string  `json:"edge"`
	SlackNs int64   `json:"slack_ns"`
	Verdict string  `json:"verdict"`
	Share   float64 `json:"share"`
}

// Health says how far the instrument itself can be trusted.
type Health struct {
	ClientBound    bool     `json:"client_bound"`
	Reasons        []string `json:"reasons"`
	ReadLag        *Dist    `json:"read_lag,omitempty"`      // from the kernel's receipt of bytes to their reading, one a read
	Canary         *Dist    `json:"canary,omitempty"`        // how late events of a known time were stamped, where the kernel does not
	ExactShare     *float64 `json:"exact_share,omitempty"`   // arrivals whose stamp's bound is 1 ms at most, those of the last read of their answer aside
	BoundWidth     *Dist    `json:"bound_width,omitempty"`   // bounds of all stamps
	BoundedWidth   *Dist    `json:"bounded_width,omitempty"` // bounds of the stamps that are not exact
	ReadsLeftShare *float64 `json:"reads_left_share,omitempty"`
	LoopTurnMax    *int64   `json:"loop_turn_max_ns,omitempty"`
	CPUMax         *float64 `json:"cpu_max,omitempty"`          // cores used in the busiest second
	CPUPressureMax *float64 `json:"cpu_pressure_max,omitempty"` // share of a second in which some task of the machine waited for a core
	GCPauseMax     *int64   `json:"gc_pause_max_ns,omitempty"`
	GCCycles       *int64   `json:"gc_cycles,omitempty"`
	ClockStepMax   *int64   `json:"clock_step_max_ns,omitempty"`
}

// The verdicts of MLPerf.
const (
	Valid   = "VALID"
	Invalid = "INVALID"
)

// MLPerf is a recording by the rules of MLPerf's LoadGen, whose percentiles are of
// rank floor(n p) + 1.
type MLPerf struct {
	Scenario     string             `json:"scenario"`
	Benchmark    string             `json:"benchmark,omitempty"`
	Verdict      string             `json:"verdict"` // VALID: every rule is met
	Rules        []MLPerfRule       `json:"rules"`
	Queries      int64              `json:"queries"`
	Requests     int64              `json:"requests"` // samples, as MLPerf says: several a query in multi-stream
	Percentiles  []MLPerfPercentile `json:"percentiles"`
	Estimates    []MLPerfEstimate   `json:"estimates"` // single-stream and multi-stream
	ScheduledRPS *float64           `json:"scheduled_rps,omitempty"`
	SamplesPerS  *float64           `json:"samples_per_s,omitempty"`
	TokensPerS   *float64           `json:"tokens_per_s,omitempty"`
	Loss         *MLPerfLoss        `json:"loss,omitempty"`
	Attainment   *Verdict           `json:"attainment,omitempty"` // ours, of the limits jointly
	Differences  []MLPerfDifference `json:"differences"`
}

// MLPerfRule is one rule with what it asks for.
type MLPerfRule struct {
	Rule  string `json:"rule"`
	Met   bool   `json:"met"`
	Asked *int64 `json:"asked,omitempty"`
	Seen  *int64 `json:"seen,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Text  string `json:"text"`
}

// MLPerfPercentile is that of one time.
type MLPerfPercentile struct {
	Metric string  `json:"metric"` // latency (of a query, to its last token), ttft, tpot
	P      float64 `json:"p"`
	N      int64   `json:"n"`
	Rank   int64   `json:"rank"` // from 1
	Value  *int64  `json:"value_ns,omitempty"`
	Bound  *int64  `json:"bound_ns,omitempty"`
	Over   *int64  `json:"over,omitempty"` // values above the bound
}

// MLPerfEstimate is an early-stopping estimate of a percentile.
type MLPerfEstimate struct {
	Metric    string  `json:"metric"`
	P         float64 `json:"p"`
	Rank      int64   `json:"rank"`
	Discarded int64   `json:"discarded"` // values above
	Value     *int64  `json:"value_ns,omitempty"`
}

// MLPerfLoss is how much less a server scenario gave than the offline one.
type MLPerfLoss struct {
	Against string   `json:"against"` // name of the offline run
	Samples *float64 `json:"samples,omitempty"`
	Tokens  *float64 `json:"tokens,omitempty"`
	Valid   bool     `json:"valid"` // both are
}

// MLPerfDifference is one between these rules and the rest of the result.
type MLPerfDifference struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// A Warning is what a careful reader must know: what was seen, and what to do.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Help string `json:"help,omitempty"`
}
