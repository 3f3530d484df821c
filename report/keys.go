package report

// A key describes one key of result.json: the descriptions of the published
// schema and the tables of docs/result.md both come from here.
type key struct {
	name    string // Go type and JSON key
	unit    string // empty for texts, lists and objects
	meaning string
	absent  string // when it is absent; empty for keys that are always there
}

// typeMeanings say what each object is.
var typeMeanings = []struct{ name, meaning string }{
	{"Result", "What can be claimed from one recording."},
	{"Tool", "What made the result."},
	{"Run", "What was run."},
	{"Window", "The measured phase, half-open, in ns since time zero (the start of the schedule)."},
	{"Load", "What was offered and what came of it."},
	{"Arrivals", "How measured requests came, by their due times."},
	{"Failure", "A class of measured requests that were not ok."},
	{"Metrics", "One distribution a metric, over the requests that have the value. A metric is absent where no request has it."},
	{"Dist", "A distribution, with how many requests lack the value."},
	{"Quantile", "A percentile with two kinds of interval: chance, and the instrument's bounds on its stamps."},
	{"Over", "The share of values above a bound."},
	{"Stalls", "Playback at the reading pace, over ok answers."},
	{"Checks", "Whether ok answers were right."},
	{"CheckExample", "One answer that failed its check."},
	{"Sessions", "Conversations."},
	{"Throughput", "What finished or arrived in the window, from requests of every phase."},
	{"Fluidity", "The fluidity index at one target gap: the share of token deadlines that playback met."},
	{"Deadline", "What first tokens were judged against."},
	{"FluidRate", "The fluid token generation rate: the reciprocal of the smallest target gap at which enough requests are fluid."},
	{"Rates", "Three figures in tokens a second from one recording, side by side."},
	{"Goodput", "The rate of requests that met every term of an objective jointly."},
	{"Verdict", "One objective judged."},
	{"Health", "How far the instrument itself can be trusted."},
	{"Warning", "What a careful reader must know: what was seen, and what to do."},
}

// ofMetric stands for the unit of the distribution or verdict around a key.
const ofMetric = "of the metric"

const (
	noRequest  = "no measured request has it"
	noInterval = "too few requests for that end, or none was computed"
	notTold    = "the run did not say"
)

var keys = []key{
	{"Result.schema", "", "Name and version of this format: fermata.result/1. Keys may be added under the same version; meanings never change.", ""},
	{"Result.tool", "", "What made the result.", ""},
	{"Result.run", "", "What was run.", ""},
	{"Result.window", "", "The measured phase.", ""},
	{"Result.load", "", "What was offered and what came of it.", ""},
	{"Result.outcomes", "requests", "Measured requests by outcome. `ok` alone is success; every other class counts against objectives.", ""},
	{"Result.failures", "", "The classes of failure, with the step at which they failed; empty if all went well.", ""},
	{"Result.finish_reasons", "requests", "Measured requests by the finish reason that the server gave.", ""},
	{"Result.metrics", "", "The distributions.", ""},
	{"Result.stalls", "", "Stalls at the reading pace.", "no answer was ok"},
	{"Result.checks", "", "Whether ok answers were right, where they were checked.", "the run checked none"},
	{"Result.slow", "requests", "Ok answers whose last token came later after the due time than declared (`judge.slow`).", "nothing was declared"},
	{"Result.sessions", "", "Conversations.", "the workload has none"},
	{"Result.throughput", "", "Rates over the window.", ""},
	{"Result.fluidity", "", "The fluidity index, one entry a variant and target gap.", ""},
	{"Result.fluid_rate", "", "The fluid token generation rate, one entry a variant.", ""},
	{"Result.rates", "", "Three rates side by side.", ""},
	{"Result.goodput", "", "One entry a joint objective.", ""},
	{"Result.slo", "", "One verdict an objective.", ""},
	{"Result.same_event_share", "1", "Of the tokens after an answer's first, those that came in the event of the token before.", "no answer has a second token"},
	{"Result.same_read_share", "1", "The same for the socket read of the token before.", "no answer has a second token"},
	{"Result.health", "", "The instrument.", ""},
	{"Result.warnings", "", "What a careful reader must know.", ""},

	{"Tool.name", "", "fermata.", ""},
	{"Tool.version", "", "Version of the tool.", ""},

	{"Run.name", "", "Name that was given to the run.", notTold},
	{"Run.target", "", "Address that was measured.", notTold},
	{"Run.model", "", "Model that was asked for.", notTold},
	{"Run.seed", "", "Seed of schedule and workload.", "nothing was drawn from a seed"},
	{"Run.interrupted", "", "Why the run was cut short.", "it ran to its end"},
	{"Run.labels", "", "What the user and the server said about the run, by name.", "nothing was said"},

	{"Window.start_ns", "ns", "Start of the measured phase.", ""},
	{"Window.end_ns", "ns", "End of the measured phase, itself outside.", ""},
	{"Window.why", "", "Why the phase ended there.", ""},
	{"Window.time_scale", "1", "Seconds of judged time a second of recorded time; 1 unless time was simulated. All times in the result are judged time.", ""},

	{"Load.offered_rps", "requests/s", "Measured requests due, over the length of their phase.", "the phase has no length"},
	{"Load.achieved_rps", "requests/s", "Measured requests sent, over the same length.", "the phase has no length"},
	{"Load.sent", "requests", "Measured requests that left.", ""},
	{"Load.measured", "requests", "Measured requests.", ""},
	{"Load.in_flight_max", "requests", "Most requests in flight at once.", ""},
	{"Load.in_flight_mean", "requests", "Requests in flight on average over the window.", "the phase has no length"},
	{"Load.lateness", "", "Sent minus due: the instrument's own delay.", "no request was sent"},
	{"Load.arrivals", "", "How measured requests came, beside what the schedule was asked for.", "fewer than three were due, or they were due when users were free"},
	{"Arrivals.gaps", "gaps", "Gaps between due times.", ""},
	{"Arrivals.mean_ns", "ns", "Mean gap.", ""},
	{"Arrivals.cv", "1", "Coefficient of variation of the gaps: 1 for Poisson, 0 for constant.", ""},
	{"Arrivals.dispersion", "1", "Index of dispersion: variance over mean of the requests in windows of equal length; 1 for Poisson.", "there are fewer than 16 gaps"},
	{"Arrivals.window_ns", "ns", "Length of those windows; about as many as the root of the gaps.", "there is no index of dispersion"},
	{"Arrivals.asked_mean_ns", "ns", "Mean gap that the schedule draws from.", "the schedule draws from no single distribution"},
	{"Arrivals.asked_cv", "1", "Coefficient of variation that it draws from.", "the schedule draws from no single distribution"},
	{"Arrivals.asked_dispersion", "1", "Index of dispersion to expect in such windows.", "the schedule draws from no single distribution"},
	{"Arrivals.ks", "1", "Largest distance between the gaps' distribution and the exponential asked for (Kolmogorov–Smirnov).", "the schedule is not Poisson"},

	{"Failure.outcome", "", "Class: http_error, refused, connect_failed, tls_failed, timeout, empty, filtered, not_streamed, stream_cut, stream_error, bad_stream, truncated_by_us, not_sent, incomplete; more may come.", ""},
	{"Failure.failed_at", "", "Step at which it failed.", "it was never sent, or no step applies"},
	{"Failure.http_status", "", "HTTP status.", "no response came"},
	{"Failure.count", "requests", "Requests of this class.", ""},
	{"Failure.tokens", "tokens", "Tokens that had arrived before.", ""},
	{"Failure.error", "", "Error of the first of them.", "there was no text"},

	{"Metrics.ttft_due", "", "Time to first token from the due time: first token - due.", noRequest},
	{"Metrics.ttft_sent", "", "First token - sent.", noRequest},
	{"Metrics.ttft_server", "", "First token - the moment at which the server says the request reached it.", "the server does not say"},
	{"Metrics.ttft_answer", "", "First token of the answer itself - due, where reasoning comes first.", "no answer began with reasoning"},
	{"Metrics.network", "", "The network's part of the time to first token.", "it is not known"},
	{"Metrics.server_queue", "", "First scheduled - received, as the server says.", "the server does not say"},
	{"Metrics.prefill", "", "First token - first scheduled, as the server says, or the prefill curve's value.", "neither is known"},
	{"Metrics.scheduling_delay", "", "First token - sent - prefill - network: time spent waiting in the server.", "prefill is not known"},
	{"Metrics.tbt", "", "Time between tokens; tokens of one arrival are 0 apart.", noRequest},
	{"Metrics.tbt_event", "", "Time between arrivals, whatever each brought.", noRequest},
	{"Metrics.tpot", "", "Time per output token: (last token - first)/(n - 1).", noRequest},
	{"Metrics.token_pace", "", "(last token - first)/(n - tokens of the first arrival).", noRequest},
	{"Metrics.normalized_latency", "", "(last token - due)/n.", noRequest},
	{"Metrics.e2e", "", "Last token - due.", noRequest},
	{"Metrics.stream_end", "", "End of the stream - due.", noRequest},
	{"Metrics.tps", "", "Tokens a second of single answers: n/(last token - first).", noRequest},
	{"Metrics.gap_longest", "", "Longest silence of a request: its longest gap between arrivals.", noRequest},
	{"Metrics.even_gap", "", "Smallest constant gap at which a reader's screen never starves: max over i of (token i - first)/i, rounded up.", noRequest},
	{"Metrics.stall_longest", "", "Longest stall of a request at the reading pace; 0 without one.", noRequest},
	{"Metrics.stall_total", "", "Sum of a request's stalls.", noRequest},
	{"Metrics.stalls_per_request", "", "Stalls of a request.", noRequest},
	{"Metrics.stall_position_first", "", "Token, from 0, that the first stall held up.", "no answer stalled"},
	{"Metrics.tokens_per_event", "", "Tokens that one arrival brought.", noRequest},
	{"Metrics.events_per_read", "", "Arrivals that one socket read brought.", noRequest},
	{"Metrics.prompt_tokens", "", "Prompt tokens of a request.", noRequest},
	{"Metrics.output_tokens", "", "Output tokens of a request.", noRequest},

	{"Dist.unit", "", "Unit of mean, sd, min, max and values: ns, tokens, tokens/s, events, or 1.", ""},
	{"Dist.n", "values", "Values.", ""},
	{"Dist.n_requests", "requests", "Requests that they come from.", ""},
	{"Dist.missing", "requests", "Measured requests without the value.", ""},
	{"Dist.level", "1", "Confidence level of the intervals: 0.95.", ""},
	{"Dist.mean", ofMetric, "Mean.", "n is 0"},
	{"Dist.sd", ofMetric, "Standard deviation over n - 1.", "n is below 2"},
	{"Dist.min", ofMetric, "Smallest value.", "n is 0"},
	{"Dist.max", ofMetric, "Largest value.", "n is 0"},
	{"Dist.better", "", "Whether lower or higher values are better.", "neither is"},
	{"Dist.quantiles", "", "Percentiles, ascending.", ""},
	{"Dist.over", "", "Shares above fixed bounds.", "the metric has no bounds"},

	{"Quantile.p", "1", "Which quantile: 0.99 is p99.", ""},
	{"Quantile.value", ofMetric, "The value of rank ceil(n p): a value that occurred.", ""},
	{"Quantile.low", ofMetric, "Lower end of the interval of chance.", noInterval},
	{"Quantile.high", ofMetric, "Upper end.", noInterval},
	{"Quantile.stamp_low", ofMetric, "The quantile if every stamp were as early as its bound allows.", "the metric does not depend on stamps"},
	{"Quantile.stamp_high", ofMetric, "The same, as late as allowed.", "the metric does not depend on stamps"},
	{"Quantile.tau", "requests", "Correlation time: how many requests make an independent one.", "it was not estimated"},
	{"Quantile.n_eff", "1", "Effective number of independent values.", ""},
	{"Quantile.rule", "", "How the interval came to be.", ""},
	{"Quantile.status", "", "ok; assumed: the load's ratio to saturation is unknown; open: an end of the interval is missing; insufficient: too few requests to claim the value.", ""},

	{"Over.value", ofMetric, "The bound.", ""},
	{"Over.share", "1", "Share of the requests that have the value and lie above.", ""},
	{"Over.share_with_missing", "1", "The same with requests without the value counted as above.", ""},
	{"Over.low", "1", "Lower end of the Clopper-Pearson interval of share.", noInterval},
	{"Over.high", "1", "Upper end.", noInterval},

	{"Stalls.pace_ns", "ns", "Reading pace, a token.", ""},
	{"Stalls.requests_with_any", "requests", "Ok answers that stalled.", ""},
	{"Stalls.share", "1", "Their share of the ok answers.", ""},

	{"Checks.kind", "", "By what: schema, regex, text or command.", "the recording does not say"},
	{"Checks.passed", "requests", "Ok answers that passed.", ""},
	{"Checks.failed", "requests", "Ok answers that failed.", ""},
	{"Checks.unchecked", "requests", "Ok answers whose turn did not come before the run was cut; they count as not good.", "there are none"},
	{"Checks.share", "1", "Share of all measured requests whose answer passed, failures counted as not.", ""},
	{"Checks.example", "", "The first of those that failed, by due time.", "none failed"},

	{"CheckExample.index", "", "Its index in the recording.", ""},
	{"CheckExample.detail", "", "What the check found.", ""},
	{"CheckExample.text", "", "Beginning of the answer.", "texts were not kept"},

	{"Sessions.started", "sessions", "Conversations whose first turn was measured.", ""},
	{"Sessions.ended_early", "sessions", "Conversations that a failed measured turn ended although turns were left. What the end of the run cut off is none.", ""},
	{"Sessions.turns_unsent", "turns", "Turns that were therefore never sent. They are no requests and stand in no other count.", ""},

	{"Throughput.requests_per_s", "requests/s", "Requests that finished in the window.", "the window has no length"},
	{"Throughput.output_tokens_per_s_finished", "tokens/s", "Output tokens of the requests whose last token fell into the window.", "the window has no length"},
	{"Throughput.output_tokens_per_s_arrived", "tokens/s", "Tokens that arrived in the window.", "the window has no length"},
	{"Throughput.input_tokens_per_s", "tokens/s", "Prompt tokens of the requests that finished in the window.", "prompt lengths or the window's are not known"},

	{"Fluidity.variant", "", "decode: from the first token on; first_token: with the first token's deadline.", ""},
	{"Fluidity.target_gap_ns", "ns", "D_d: the gap at which tokens fall due.", ""},
	{"Fluidity.deadline", "", "D_p: the first token's deadline.", "the variant is decode, or no deadline was given"},
	{"Fluidity.slack_ns", "ns", "S: scheduling slack in the first token's deadline.", "none was given"},
	{"Fluidity.edge", "", "Which edge of the prefill curve's band the deadline follows.", "the deadline is no measured curve"},
	{"Fluidity.carry", "", "Whether time gained by early tokens is carried over: unlimited or none.", ""},
	{"Fluidity.index", "", "F of the requests: met/(met + missed); a failed request has 0.", ""},
	{"Fluidity.share_at_least_0_9", "1", "Share of requests with F of 0.9 or more.", "no request has F"},
	{"Fluidity.missed", "deadlines", "Deadlines missed, over all ok answers.", ""},
	{"Fluidity.met", "deadlines", "Deadlines met, over all ok answers.", ""},

	{"Deadline.shape", "", "Its form: fixed, linear, quadratic, hinges or monotone.", ""},
	{"Deadline.text", "", "As it was given, such as fixed:300ms.", ""},
	{"Deadline.source", "", "Where it came from.", ""},

	{"FluidRate.variant", "", "decode (the headline) or first_token.", ""},
	{"FluidRate.gap_ns", "ns", "D_d*: the smallest target gap at which the share of requests reaches the index.", "infeasible"},
	{"FluidRate.tokens_per_s", "tokens/s", "1/D_d*.", "infeasible"},
	{"FluidRate.share", "1", "Share of requests that must be fluid: 0.99.", ""},
	{"FluidRate.index", "1", "F from which a request is fluid: 0.9.", ""},
	{"FluidRate.feasible", "", "Whether any gap is large enough.", ""},
	{"FluidRate.low", "tokens/s", "Lower end of the interval.", noInterval},
	{"FluidRate.high", "tokens/s", "Upper end.", noInterval},

	{"Rates.tpot", "tokens/s", "1/median TPOT.", noRequest},
	{"Rates.tail_tbt", "tokens/s", "1/p99 TBT.", "no request has it, or it is 0"},
	{"Rates.fluid", "tokens/s", "The fluid rate, decode only.", "infeasible"},

	{"Goodput.objective", "", "The objective, as it was given.", ""},
	{"Goodput.requests_per_s", "requests/s", "Requests that met it.", "the phase has no length"},
	{"Goodput.tokens_per_s", "tokens/s", "Their output tokens.", "the phase has no length"},
	{"Goodput.share", "1", "Share of all measured requests that met it, failures counted as not.", ""},
	{"Goodput.share_low", "1", "Lower end of the interval of share.", noInterval},
	{"Goodput.share_high", "1", "Upper end.", noInterval},

	{"Verdict.objective", "", "The objective, as it was given.", ""},
	{"Verdict.verdict", "", "met, missed, or open: the interval spans the bound.", ""},
	{"Verdict.share", "1", "Share of measured requests that meet every term; of those that failed, or that passed their check, where the objective is about that.", "gaps of all requests are pooled, or no request was measured"},
	{"Verdict.share_low", "1", "Lower end of its interval.", noInterval},
	{"Verdict.share_high", "1", "Upper end.", noInterval},
	{"Verdict.value", ofMetric, "The percentile, failures counted as infinite.", "the objective has several terms or bounds a share, or failures make the percentile infinite"},
	{"Verdict.low", ofMetric, "Lower end of its interval.", noInterval},
	{"Verdict.high", ofMetric, "Upper end.", noInterval},
	{"Verdict.unit", "", "Unit of value, low and high.", "the objective has no percentile"},
	{"Verdict.without_it", "requests", "Good answers without a value for a term, counted as meeting it.", "there are none"},
	{"Verdict.status", "", "Status of the interval, as that of a quantile.", "there is no interval"},

	{"Health.client_bound", "", "The measuring side was the bottleneck: numbers hold its delays too.", ""},
	{"Health.reasons", "", "Why, if so.", ""},
	{"Health.read_lag", "", "Time between the arrival of bytes and their reading.", "it was not measured"},
	{"Health.exact_share", "1", "Share of arrivals whose stamp is exact.", "nothing arrived"},
	{"Health.bound_width", "", "Bounds on the stamps of the others.", "all are exact, or none arrived"},
	{"Health.cpu_max", "cores", "Cores that the tool used in its busiest second.", "there is no series of samples"},
	{"Health.gc_pause_max_ns", "ns", "Longest pause of the tool's garbage collector in one second.", "there is no series of samples"},

	{"Warning.code", "", "Stable name of the warning.", ""},
	{"Warning.text", "", "What was seen and what it means.", ""},
	{"Warning.help", "", "What to do.", "there is nothing to do"},
}

// enums are the only values of keys that are words. Outcomes and units are left
// open, for more may come.
var enums = map[string][]string{
	"Result.schema":     {"fermata.result/1"},
	"Checks.kind":       {"schema", "regex", "text", "command"},
	"Failure.failed_at": {"connect", "tls", "send", "headers", "first_token", "mid_stream"},
	"Dist.better":       {"lower", "higher"},
	"Quantile.status":   {"ok", "assumed", "open", "insufficient"},
	"Verdict.status":    {"ok", "assumed", "open", "insufficient"},
	"Fluidity.variant":  {"decode", "first_token"},
	"Fluidity.edge":     {"fit", "low", "high"},
	"Fluidity.carry":    {"unlimited", "none"},
	"FluidRate.variant": {"decode", "first_token"},
	"Verdict.verdict":   {"met", "missed", "open"},
}
