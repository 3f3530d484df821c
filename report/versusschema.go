package report

import (
	"maps"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/schema"
	"fermata/metrics"
)

func comparisonTypes() map[string]string {
	return withTypesOfCost(map[string]string{
		"RunCost":    "What the tokens of one run cost.",
		"Comparison": "What differs between systems that were offered the same load, and how sure that is.",
		"Tool":       "What made the document.",
		"Warning":    "What a careful reader must know.",
		"BlindSpot":  blindSpotMeaning,
		"Side":       "A system with its runs. The others are compared with the first.",
		"Entry":      "One statistic of a further system (b) beside the first (a). Values, difference, interval and mde are in the entry's unit; times are ns.",
		"Ratio":      "The same as shares of a: 0.02 is 2 % more.",
		"Pairing":    "How far requests match those of the first system, by index, in runs with the same seed and load.",
		"Moved":      "A request that took longer.",
		"Shift":      "How a time moved for a group of paired requests. It has no interval: it says where to look.",
	})
}

func comparisonKeys() map[string]string {
	return withKeysOfCost(map[string]string{
		"Side.costs":                 "What its tokens cost, run by run, as result.json has it. Absent where no run of any system has prices.",
		"RunCost.run":                "Name of the run.",
		"RunCost.cost":               "Absent where the price of its model is unknown, or it has no prices.",
		"Comparison.schema":          "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Comparison.metrics":         "What was asked, for each further system: one family of questions, whose p values are adjusted together.",
		"Comparison.shifts":          "Who got worse, by prompt length and by place in the run.",
		"Comparison.refused":         "Why nothing is compared (exit code 4); empty otherwise.",
		"Comparison.blind_spots":     "Those that at least half of the pairs of runs show.",
		"Side.name":                  "What it is called in run of other lists.",
		"Side.target":                "Of its first run. Absent where unknown.",
		"Side.model":                 "Of its first run. Absent where none was named.",
		"Side.seeds":                 "Of its runs, as far as known.",
		"Side.requests":              "Measured requests of all runs.",
		"Side.ok":                    "Those that succeeded.",
		"Entry.metric":               "A key of metrics in result.json, failed_share, output_tokens_per_s, cost, or slo with a number.",
		"Entry.stat":                 "mean, p50 and other percentiles, over25s, share; per_million, per_million_good and per_good_request of cost; empty for single numbers.",
		"Entry.objective":            "That the share is of. Absent elsewhere.",
		"Entry.run":                  "Name of the further system.",
		"Entry.unit":                 "ns, tokens/s, share …; of cost its currency, and empty where there is no one.",
		"Entry.a":                    "Mean over the first system's runs, the geometric one of times, rates and costs; over paired requests with paired_batches. Absent where it has none.",
		"Entry.b":                    "The same of the further system. Absent where it has none.",
		"Entry.difference":           "b - a. Absent where one of them is.",
		"Entry.low":                  "Lower end of the 95 % interval of the difference, not widened for several questions. Absent where nothing could be tested.",
		"Entry.high":                 "Its upper end. Absent where nothing could be tested.",
		"Entry.relative":             "The same as shares of a. Absent for shares, and where a is 0.",
		"Entry.p":                    "Two-sided p value of the t test, by itself. Absent where nothing could be tested.",
		"Entry.p_adjusted":           "The same after Holm's correction. Absent where nothing could be tested.",
		"Entry.variance_ratio":       "Variance without pairs over variance with: (var a + var b)/var(b - a). Absent without pairs, or where differences do not vary.",
		"Entry.mde":                  "Least difference that 80 % of such comparisons find at 5 %, before correction: 2.8 standard errors. Absent where nothing could be tested.",
		"Entry.resolved":             "p_adjusted < 0.05.",
		"Entry.better":               "Which side is better, where that is resolved and one direction is better; empty otherwise.",
		"Entry.why":                  "Why it is not resolved: chance, too_few_runs, too_few_requests, insufficient, bursts, absent; of costs also unlike (of two kinds), of_load (by the hour, at a load that somebody chose), of_search (at a capacity). Absent where it is.",
		"Entry.method":               "paired_runs, runs (Welch), paired_batches, batches (Welch). Absent where nothing could be tested.",
		"Entry.n":                    "Pairs of runs or of batches; without pairs those of the side that has fewer. 0 where nothing could be tested.",
		"Ratio.difference":           "Over a.",
		"Ratio.low":                  "Over a. Absent where nothing could be tested.",
		"Ratio.high":                 "Over a. Absent where nothing could be tested.",
		"Ratio.mde":                  "Over a. Absent where nothing could be tested.",
		"Pairing.run":                "Name of the further system.",
		"Pairing.pairs":              "Of runs.",
		"Pairing.requests":           "Measured requests that both runs of a pair have.",
		"Pairing.only_a_failed":      "Those that failed in the first system alone.",
		"Pairing.worst":              "Those that worsened most in end-to-end time, by more than 5 %, the largest ratio first.",
		"Moved.pair":                 "Number of the pair of runs, from 0.",
		"Moved.prompt_tokens":        "Of the request. Absent where unknown.",
		"Moved.a_ns":                 "End-to-end time in the first system.",
		"Moved.b_ns":                 "The same in the further one.",
		"Shift.run":                  "Name of the further system.",
		"Shift.metric":               "ttft_due, tpot or e2e.",
		"Shift.by":                   "prompt_tokens: groups of about equal size. position: fifths of the run.",
		"Shift.from":                 "First of the group: tokens, or place among measured requests from 0.",
		"Shift.to":                   "Last of the group.",
		"Shift.n":                    "Requests of the group that have the time in both.",
		"Shift.median_difference_ns": "Median of b - a over them.",
		"Shift.share_worse":          "Share of them that took over 5 % longer in b.",
		"Shift.share_better":         "Share of them that took over 5 % longer in a.",
		"Warning.help":               "What to do. Absent where nothing can be said.",
	})
}

const blindSpotMeaning = "A case in which one metric hides what another shows, by docs/blindspots.md, between two systems: of the first one, or of a further one beside it. It says what was recorded."

func blindSpotKeys() map[string]string {
	return map[string]string{
		"BlindSpot.run":      "System whose readers bear what is hidden.",
		"BlindSpot.against":  "The system beside it.",
		"BlindSpot.pairs":    "Pairs of runs that show it.",
		"BlindSpot.of":       "Pairs of runs.",
		"BlindSpot.text":     "What is hidden, in words with figures, of the first pair that shows it.",
		"BlindSpot.figures":  "Of the same, by name; times in ns, shares of 1.",
		"BlindSpot.requests": "Indices of the requests behind it, the worst first, 10 at most.",
	}
}

// withBlindSpots are the descriptions of a document's keys with those of blind
// spots between systems.
func withBlindSpots(keys map[string]string) map[string]string {
	all := maps.Clone(keys)
	maps.Copy(all, blindSpotKeys())
	return all
}

// typesOfCost are those of a cost in result.json.
var typesOfCost = []string{"Statement", "Step", "Promised", "Quoted", "GPU", "Tokens"}

// withTypesOfCost are the descriptions of a document's types with those of a cost.
func withTypesOfCost(types map[string]string) map[string]string {
	all := resultOptions().Types
	for _, name := range typesOfCost {
		types[name] = all[name]
	}
	return types
}

// withKeysOfCost are the descriptions of a document's keys with those of a cost.
func withKeysOfCost(keys map[string]string) map[string]string {
	for name, meaning := range resultOptions().Keys {
		if of, _, _ := strings.Cut(name, "."); slices.Contains(typesOfCost, of) {
			keys[name] = meaning
		}
	}
	return keys
}

func comparisonOptions() schema.Options {
	return schema.Options{
		ID: "urn:fermata:compare:1", Title: "What differs between runs, by fermata compare",
		Types: comparisonTypes(), Keys: withBlindSpots(comparisonKeys()),
		Enum: map[string][]string{
			"Statement.basis": enums()["Statement.basis"], "Statement.unit": enums()["Statement.unit"], "Statement.good": enums()["Statement.good"], "Step.name": enums()["Step.name"],
			"BlindSpot.code":    metrics.BlindSpotCodes(),
			"Comparison.schema": {compare.Schema}, "Entry.better": {"a", "b", ""},
			"Entry.why":    {compare.Chance, compare.TooFewRuns, compare.TooFewRequests, compare.Insufficient, compare.Bursts, compare.Absent, compare.Unlike, compare.OfLoad, compare.OfSearch},
			"Entry.method": {compare.PairedRuns, compare.PairedBatches, compare.Runs, compare.Batches},
		},
	}
}
