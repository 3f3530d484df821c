package spec

import (
	"fmt"
	"strings"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/workload"
)

// A Kind says what a flag takes.
type Kind string

const (
	Text   Kind = "text"   // one value; the last one given counts
	Once   Kind = "once"   // one value; a second one is a mistake
	Switch Kind = "switch" // no value: true
	Many   Kind = "many"   // may be given several times; each adds to the run file's
)

// A Flag of `fermata run` and its relatives stands for a key of the run file.
type Flag struct {
	Name  string // without dashes
	Path  string // of the key
	Kind  Kind
	Usage string // one line; the value's name in backquotes
}

// Flags are all flags that stand for keys, in the order in which help shows
// them. The other keys of the run file are reached by --set.
func Flags() []Flag {
	return []Flag{
		{"model", "target.model", Text, "`NAME` of the model to ask"},
		{"api", "target.api", Text, "`API` to ask by: chat or completions"},
		{"transport", "target.transport", Text, "`TRANSPORT` to reach the server by: fast (plain http://, Linux) or compatible (anything); by itself fast where it can be"},
		{"api-key-env", "target.api_key_env", Text, "environment `VARIABLE` that holds the API key"},
		{"header", "target.headers", Many, "header to send, as `\"Name: value\"`"},

		{"rate", "schedule.rate", Text, "`REQUESTS` a second to offer"},
		{"concurrency", "schedule.concurrency", Text, "`USERS` of a closed loop, instead of a rate"},
		{"think", "schedule.think", Text, "`TIME` from an answer to its user's next request, or its conversation's next turn: 2s or exponential:2s"},
		{"burstiness", "schedule.burstiness", Text, "`SHAPE` of gamma gaps: 1 is Poisson, less comes in clumps"},
		{"trace", "schedule.file", Text, "`FILE` of given times instead of a rate: CSV, JSONL, or a trace as Azure, Mooncake and BurstGPT publish it"},
		{"speedup", "schedule.speedup", Text, "`FACTOR` by which given times go faster: 2 is twice as fast"},
		{"requests", "schedule.requests", Text, "measured requests: `N`"},
		{"duration", "schedule.duration", Text, "length of the measured phase: `TIME`"},
		{"schedule", "schedule.kind", Text, "`KIND` of schedule: poisson, gamma, weibull, constant, closed, all or a file of times"},
		{"warmup", "schedule.warmup", Text, "`HOW` long to warm up: 200, 10%, 30s or 0"},
		{"drain", "schedule.drain", Text, "`HOW` to end: load or quiet"},

		{"scenario", "mlperf.scenario", Text, "MLPerf `SCENARIO` to offer the load as and to judge it by too: single-stream, multi-stream, server, offline or interactive; of run, several: offline,server"},
		{"benchmark", "mlperf.benchmark", Text, "MLPerf `BENCHMARK` whose limits hold, such as llama2-70b"},
		{"min-duration", "mlperf.min_duration", Text, "`TIME` that a scenario lasts at least"},
		{"min-queries", "mlperf.min_queries", Text, "queries of a scenario at least: `N`"},

		{"input", "workload.input", Text, "`TOKENS` of each prompt: 512, uniform:100,500, normal:512,64, lognormal:417,1418 or empirical:FILE"},
		{"output", "workload.output", Text, "`TOKENS` of each answer, like --input"},
		{"turns", "workload.turns", Text, "turns of each conversation: `N`; each turn follows the answer before"},
		{"session-share", "workload.session_share", Text, "`SHARE` of the requests that are turns of conversations, such as 0.3; the others stand alone"},
		{"lengths", "workload.lengths", Text, "published `LENGTHS` of prompts with their answers: lmsys, sharegpt, arxiv, azure-conv or azure-code"},
		{"dataset", "workload.dataset", Text, "`FILE` of prompts or lengths, JSON, JSONL, CSV or Parquet"},
		{"format", "workload.format", Text, "`FORMAT` of the data set, where its content does not tell"},
		{"skip-bad", "workload.skip_bad", Switch, "count rows of the data set that cannot be read instead of stopping"},
		{"min-input", "workload.min_input", Text, "leave out prompts of fewer `TOKENS`"},
		{"max-input", "workload.max_input", Text, "leave out prompts of more `TOKENS`"},
		{"min-output", "workload.min_output", Text, "leave out answers of fewer `TOKENS`"},
		{"max-output", "workload.max_output", Text, "leave out answers of more `TOKENS`"},
		{"max-total", "workload.max_total", Text, "leave out prompts that have more `TOKENS` together with their answers"},
		{"once", "workload.once", Switch, "stop where the data set ends"},
		{"seed", "seed", Text, "`N` from which everything random follows"},

		{"slo", "slo", Many, "`OBJECTIVE` such as \"ttft<=2s and tbt.p99<=100ms @99%\""},
		{"target-gap", "judge.target_gap", Text, "gaps of the fluidity index: `TIMES` such as 25ms,50ms"},
		{"pace", "judge.pace", Text, "reading pace, `TOKENS` a second"},
		{"deadlines", "judge.deadlines", Text, "`WHEN` first tokens are due: fixed:300ms, linear:a,b, quadratic:a,b,c or a deadlines file"},
		{"over", "judge.over", Text, "further bounds whose share of exceedances is told: `TIMES` such as 25s"},
		{"slow", "judge.slow", Text, "answers that take longer than `TIME` are slow"},
		{"saturation", "judge.saturation", Text, "highest rate that the system serves, requests a second, or a capacity result that has it: `RATE|FILE`, what intervals need to know of bursts"},
		{"judge", "judge.verdict", Text, "`HOW` to judge objectives: interval or point"},
		{"expect", "expect", Text, "`HOW` a good answer ends: stop, length or any"},
		{"check", "check", Once, "`KIND:WHAT` that a right answer passes: schema:FILE, regex:EXPRESSION, text:TEXT or command:COMMAND"},

		{"max-in-flight", "load.max_in_flight", Text, "most requests in flight: `N`"},
		{"timeout", "load.timeout", Text, "`TIME` for a request in all"},
		{"silence-timeout", "load.silence_timeout", Text, "`TIME` without a token, from the first one on"},
		{"stop-if-failed", "load.stop_if_failed", Text, "`SHARE` of failed requests that ends the run, such as 50%"},
		{"stop-at-precision", "load.stop_at_precision", Many, "`PERCENTILE` that ends the run once its interval is so narrow, such as ttft.p99<=5%"},
		{"max-cost", "load.max_cost", Text, "`AMOUNT` that the run may cost by --prices, such as 2.50"},
		{"prices", "prices", Text, "`FILE` of what tokens or GPUs cost: ours, litellm's or models.dev's"},
		{"provider", "judge.provider", Text, "`NAME` of the provider whose prices hold, where several have some for the model"},
		{"capacity", "judge.capacity", Text, "`FILE` of the capacity that hours of GPUs are spread over, from fermata capacity -o json"},
		{"utilisation", "judge.utilisation", Text, "mean load over capacity of GPUs, which are paid when idle: a `SHARE` such as 0.6"},
		{"billed-failures", "judge.billed_failures", Text, "`SHARE` of an answer's price that a failed try costs, such as 0.5 (default 1 by the token)"},
		{"retries", "load.retries", Text, "times that a request is tried again which failed before its first token: `N`"},
		{"time-scale", "load.time_scale", Text, "simulated `SECONDS` a second, of a simulated server; default what it says"},
		{"probe-saturation", "load.probe_saturation", Switch, "find the saturation in a burst before the run (at most 600 requests and 60 s, not recorded), for intervals"},
		{"wait-ready", "load.wait_ready", Text, "`TIME` to wait for the server before starting"},

		{"http2", "connect.http2", Switch, "speak HTTP/2 and nothing else"},
		{"proxy", "connect.proxy", Text, "`URL` of a proxy, http, https or socks5; off for none (default that of the environment)"},
		{"unix-socket", "connect.unix_socket", Text, "`PATH` of a Unix socket to connect to, whatever the URL's host"},
		{"ca-file", "connect.ca_file", Text, "`FILE` of trusted authorities, instead of the system's"},
		{"insecure", "connect.insecure", Switch, "take any certificate; the report says so"},
		{"scrape", "record.scrape", Text, "the server's own figures once a second: auto, off or the `URL` of its Prometheus page"},

		{"name", "name", Text, "`NAME` of the run"},
		{"label", "labels", Many, "word for the result, as `NAME=VALUE`"},
		{"keep-text", "record.keep_text", Switch, "keep prompts and answers"},
	}
}

// values are those of flags that have only a few.
var values = map[string][]string{
	"api":       {"chat", "completions"},
	"schedule":  {"poisson", "gamma", "weibull", "constant", "closed", "all"},
	"drain":     {"load", "quiet"},
	"lengths":   workload.Presets(),
	"format":    workload.Formats(),
	"judge":     {"interval", "point"},
	"scenario":  metrics.Scenarios(),
	"benchmark": metrics.Benchmarks(),
	"expect":    {"stop", "length", "any"},
}

// Values are all the values that the flag takes, where they can be listed.
func (f Flag) Values() []string { return values[f.Name] }

// Setting is the flag's value as a setting.
func (f Flag) Setting(value string) conf.Setting {
	return conf.Setting{Path: f.Path, Value: value, From: "--" + f.Name, Append: f.Kind == Many}
}

// Set is a setting as --set takes it: key=value.
func Set(text string) (conf.Setting, error) {
	path, value, ok := strings.Cut(text, "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return conf.Setting{}, fmt.Errorf("--set takes key=value, such as schedule.rate=4, not %q", text)
	}
	return conf.Setting{Path: path, Value: value, From: "--set " + path}, nil
}
