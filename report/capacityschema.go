package report

import (
	"fermata/capacity"
	"fermata/internal/schema"
)

func capacityTypes() map[string]string {
	return map[string]string{
		"Result":   "The highest rate at which an objective holds in steady state. One search is one such document; several are an array of them.",
		"Capacity": "The rate with what is known of it.",
		"Probe":    "How the saturation was found.",
		"Held":     "The run at a fixed rate at the end of the search, which carries the interval.",
		"Drift":    "How the number of requests under way grew during it, as new ones found it.",
		"Budget":   "Requests that were planned beforehand.",
		"Step":     "One block of the search, or one trial of a bisection.",
		"Warning":  "What a careful reader must know.",

		"AtCapacity": "What output tokens cost at the capacity, and what they would cost if nothing were promised.",
		"Quoted":     "The prices as they were given.",
		"GPU":        "A price by the hour.",
		"Tokens":     "Prices by the token.",
	}
}

func capacityKeys() map[string]string {
	return map[string]string{
		"Result.schema":                  "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Result.objective":               "As it was written.",
		"Result.joint":                   "Its terms had to hold for the same request. Absent where there is one.",
		"Result.capacity":                "Absent where none was found.",
		"Result.saturation_rps":          "Requests/s that the system serves while others wait. Absent where it is unknown, as of a bisection.",
		"Result.requests":                "Asked in all, with warm-ups and the probe.",
		"Result.reason":                  "Why the search ended, in a sentence.",
		"Result.ending":                  "The same for programs; empty while it goes on.",
		"Result.search":                  "Block by block; of a bisection trial by trial.",
		"Result.method":                  "ht-rm or bisect.",
		"Result.allowed":                 "Share of requests that may miss: 0.01 for a p99.",
		"Result.precision":               "Half-width of the interval aimed at, as a share of the capacity.",
		"Result.rough":                   "Asked for to over 10 % only: a first look. Absent otherwise.",
		"Result.client_bound":            "This machine was the bottleneck at the rate found: nothing is known of the server. Absent otherwise.",
		"Result.saturation_limited":      "The rate is .97 of saturation or more. Absent otherwise.",
		"Result.probe":                   "Absent of a bisection, and where the search did not get so far.",
		"Result.held":                    "Absent of a bisection, and where the search did not get so far.",
		"Result.budget":                  "Fixed before the search began.",
		"Result.warnings":                "What limits the result's use.",
		"Result.duration_ns":             "On the clock of the system: simulated time of a simulated one.",
		"Result.failed":                  "Requests without a whole answer. Absent where there were none.",
		"Result.turned_away":             "Those of them that were refused for the load (429, 503). Absent where there were none.",
		"Result.seed":                    "Of arrivals, prompts and the simulation. Absent where unknown.",
		"Result.target":                  "The server, or what was simulated. Absent where unknown.",
		"Result.cost":                    "What the promise costs, by prices of GPUs. Absent without those, and without tokens a second.",
		"AtCapacity.currency":            "Of all amounts.",
		"AtCapacity.per_million":         "A million output tokens at the capacity: G·p/(3600·X)·10⁶, a decimal.",
		"AtCapacity.low":                 "Lower end of its interval: at the upper end of the rate's. Absent where that has none.",
		"AtCapacity.high":                "Upper end. Absent where the rate's has none.",
		"AtCapacity.per_million_offline": "The same at saturation, where nothing is promised. Absent where the saturation is unknown.",
		"AtCapacity.factor":              "per_million over per_million_offline. Absent where that is.",
		"AtCapacity.prices":              "As they were given.",
		"Quoted.date":                    "Day of the prices.",
		"Quoted.source":                  "Where they come from.",
		"Quoted.sha256":                  "Of their file. Absent where they stood in the spec.",
		"Quoted.gpu":                     "Absent by the token.",
		"Quoted.tokens":                  "Absent by the hour.",
		"GPU.count":                      "GPUs.",
		"GPU.per_hour":                   "Of one, as it was written.",
		"Tokens.input_per_million":       "As it was written.",
		"Tokens.output_per_million":      "As it was written.",
		"Capacity.rps":                   "Requests/s.",
		"Capacity.low":                   "Lower end of its 95 % interval. Absent where there is none.",
		"Capacity.high":                  "Upper end. Absent where there is none.",
		"Capacity.attainment":            "Share of the requests of held that met the objective; of a bisection, in the highest trial that passed. Absent where there was none.",
		"Capacity.attainment_low":        "Lower end of its 95 % interval (Clopper-Pearson at the effective counts). Absent where there is none.",
		"Capacity.attainment_high":       "Upper end. Absent where there is none.",
		"Capacity.tokens_per_s":          "Output tokens/s at that rate. Absent where unknown.",
		"Probe.rps":                      "Requests/s. Absent where nothing was found.",
		"Probe.asked":                    "At once, by the last of the bursts: each is twice the one before, until it is several times what the system holds.",
		"Probe.answered":                 "Of them.",
		"Probe.turned":                   "Refused for the load. Absent where none was.",
		"Probe.guessed":                  "Even the largest burst ended together, as one batch does: rps is its average, and the saturation may be higher. Absent otherwise.",
		"Probe.climbed":                  "The rate was doubled until requests failed, since asking at once said nothing. Absent otherwise.",
		"Held.rate":                      "Requests/s that were set.",
		"Held.realised":                  "That came of it, by the due times. Absent where unknown.",
		"Held.requests":                  "Without the warm-up.",
		"Held.misses":                    "Of them.",
		"Held.tau":                       "Correlation time of the misses: requests in a row that are worth one.",
		"Held.tau_by":                    "What says so: heavy-traffic, geyer, batch-10, batch-20 or independent.",
		"Held.drift":                     "Absent where there were fewer than 20 requests.",
		"Drift.per_request":              "Growth a request.",
		"Drift.t":                        "That over its standard error.",
		"Drift.unsteady":                 "It grew without end.",
		"Budget.probe":                   "At once, for the saturation.",
		"Budget.warmup":                  "Not judged.",
		"Budget.search":                  "At rates that the search sets; of a bisection the most it may take.",
		"Budget.fixed":                   "At the rate that it found.",
		"Budget.total":                   "All of them.",
		"Step.rate":                      "Requests/s that were set.",
		"Step.realised":                  "That came of it, by the due times. Absent where unknown.",
		"Step.requests":                  "Outcomes that became known meanwhile, in the order of due times.",
		"Step.misses":                    "Of them.",
		"Step.drained":                   "So much waited that nothing more was asked until it was empty. Absent otherwise.",
		"Warning.help":                   "What to do. Absent where nothing can be said.",
	}
}

func capacityOptions() schema.Options {
	return schema.Options{
		ID: "urn:fermata:capacity:1", Title: "The highest rate that meets an objective, by fermata capacity",
		Types: capacityTypes(), Keys: capacityKeys(),
		Enum: map[string][]string{
			"Result.schema": {capacity.Schema}, "Result.method": {capacity.HTRM, capacity.Bisect},
			"Result.ending": {
				"", string(capacity.Found), string(capacity.NeverMissed), string(capacity.AlwaysMiss), string(capacity.Unanswered), string(capacity.NoneJudged),
				string(capacity.Died), string(capacity.Stopped), string(capacity.Interrupted), string(capacity.Unsettled), string(capacity.NotBracketed),
			},
		},
	}
}
