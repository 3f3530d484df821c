package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"fermata/internal/schema"
	"fermata/internal/term"
)

// PlanSchemaName is the schema that a Plan names.
const PlanSchemaName = "fermata.plan/1"

// A Plan is how many requests a claim needs.
type Plan struct {
	Schema     string  `json:"schema"`
	Percentile float64 `json:"percentile"`
	Confidence float64 `json:"confidence"`
	Margin     float64 `json:"margin"`
	Exact      float64 `json:"requests_exact"`
	Requests   int64   `json:"requests"`
	Rounded    int64   `json:"rounded"`

	Rate    *float64 `json:"rate_rps,omitempty"`
	Minutes *float64 `json:"minutes,omitempty"`

	EarlyStopping []PlanStop     `json:"early_stopping"`
	AlwaysValid   PlanPass       `json:"always_valid"`
	Claims        []PlanClaim    `json:"claims"`
	Load          *PlanLoad      `json:"load,omitempty"`
	Capacity      *PlanCapacity  `json:"capacity,omitempty"`
	Comparison    *PlanCompare   `json:"comparison,omitempty"`
	Have          *PlanHave      `json:"have,omitempty"`
	Notes         []string       `json:"notes"`
	Table         []PlanTableRow `json:"table"`
}

// A PlanTableRow is a row of MLPerf's table.
type PlanTableRow struct {
	Percentile float64 `json:"percentile"`
	Requests   int64   `json:"requests"`
	Rounded    int64   `json:"rounded"`
}

// A PlanStop is a minimum of MLPerf's early stopping.
type PlanStop struct {
	Over     int64 `json:"over"`
	Requests int64 `json:"requests"`
}

// A PlanPass is the rule by which a run may stop at any time.
type PlanPass struct {
	Share    float64 `json:"share"`
	Error    float64 `json:"error"`
	Start    float64 `json:"start"`
	PerMiss  float64 `json:"per_miss"`
	Tau      float64 `json:"tau"`
	Requests int64   `json:"requests_without_a_miss"`
}

// A PlanClaim is what it takes for a percentile to be more than insufficient, and
// for its 95 % interval to have both ends.
type PlanClaim struct {
	Percentile float64  `json:"percentile"`
	Requests   int64    `json:"requests"`
	Closed     int64    `json:"closed_from"`
	Minutes    *float64 `json:"minutes,omitempty"`
}

// A PlanLoad is what a load makes of it.
type PlanLoad struct {
	OfSaturation *float64 `json:"of_saturation,omitempty"`
	Tau          float64  `json:"tau"`
	Requests     int64    `json:"requests"`
	Minutes      *float64 `json:"minutes,omitempty"`
}

// A PlanCapacity is what a capacity to a certain share takes.
type PlanCapacity struct {
	Delta    float64  `json:"delta"`
	Share    float64  `json:"misses_allowed"`
	Law      int64    `json:"requests_at_capacity"`
	Search   int64    `json:"requests_of_a_search"`
	Minutes  *float64 `json:"minutes,omitempty"`
	WithRate *float64 `json:"of_saturation,omitempty"`
}

// A PlanCompare is what a comparison of paired runs finds.
type PlanCompare struct {
	SD         float64  `json:"sd"`
	Runs       int64    `json:"runs"`
	Detects    float64  `json:"detects"`
	Difference *float64 `json:"difference,omitempty"`
	RunsFor    *int64   `json:"runs_for_difference,omitempty"`
}

// A PlanHave is what a number of requests can support.
type PlanHave struct {
	Requests    int64        `json:"requests"`
	NEff        float64      `json:"n_eff"`
	Claims      []PlanStatus `json:"claims"`
	AllowedOver *int64       `json:"allowed_over,omitempty"`
	Estimate    *int64       `json:"early_stopping_rank,omitempty"`
	Margin      float64      `json:"margin"`
}

// A PlanStatus is what so many requests say of a percentile.
type PlanStatus struct {
	Percentile float64 `json:"percentile"`
	Status     string  `json:"status"`
	Rank       int64   `json:"rank"`
	Low        *int64  `json:"low_rank,omitempty"`
	High       *int64  `json:"high_rank,omitempty"`
	Needs      *int64  `json:"needs,omitempty"`
}

func planTypes() map[string]string {
	return map[string]string{
		"Plan":         "How many requests a claim needs.",
		"PlanTableRow": "A row of MLPerf's table of query counts, at the confidence asked for.",
		"PlanStop":     "A minimum of MLPerf's early stopping.",
		"PlanPass":     "The rule by which a run may look at any time and stop when it has passed: requests >= start*tau + per_miss*misses.",
		"PlanClaim":    "What a percentile takes before it is stated.",
		"PlanLoad":     "What the bursts of a load make of it.",
		"PlanCapacity": "What the highest rate that meets an objective takes, to a share delta.",
		"PlanCompare":  "What a comparison of paired runs finds.",
		"PlanHave":     "What a number of requests can support.",
		"PlanStatus":   "What so many requests say of a percentile.",
	}
}

func planKeys() map[string]string {
	return map[string]string{
		"Plan.schema":                       "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Plan.percentile":                   "The percentile that is asked about, as a share.",
		"Plan.confidence":                   "Confidence of the query count and of early stopping.",
		"Plan.margin":                       "Margin of the share beyond the percentile; (1 - percentile)/20 unless said.",
		"Plan.requests_exact":               "MLPerf's formula, z^2 p(1-p)/m^2 with z = |NormsInv((1-c)/2)|, for independent requests.",
		"Plan.requests":                     "The same to the nearest whole number, as MLPerf's table has it.",
		"Plan.rounded":                      "The smallest multiple of 2^13 that is not below it.",
		"Plan.rate_rps":                     "Requests a second (--rate). Absent where not said.",
		"Plan.minutes":                      "Minutes that requests take at that rate. Absent where no rate was said.",
		"Plan.early_stopping":               "The fewest requests that pass with so many over the latency.",
		"Plan.always_valid":                 "The rule for runs that end when they have passed.",
		"Plan.claims":                       "What each percentile takes at the correlation time in use.",
		"Plan.load":                         "What the load makes of it. Absent where neither --saturation nor --tau was given.",
		"Plan.capacity":                     "What a capacity takes. Absent where --capacity was not given.",
		"Plan.comparison":                   "What a comparison finds. Absent where --sd was not given.",
		"Plan.have":                         "What the requests at hand support. Absent where --have was not given.",
		"Plan.notes":                        "What a careful reader must know.",
		"Plan.table":                        "MLPerf's table.",
		"PlanStop.over":                     "Requests over the latency.",
		"PlanStop.requests":                 "Fewest requests with which that many over it pass.",
		"PlanPass.share":                    "The share of misses that is to be ruled out.",
		"PlanPass.error":                    "Chance of ever passing wrongly, however often one looks.",
		"PlanPass.tau":                      "Correlation time in use; 1 for independent requests.",
		"PlanPass.requests_without_a_miss":  "Requests after which a run without a miss passes.",
		"PlanClaim.requests":                "Requests from which the percentile is stated: 50 correlation times, five independent values beyond it, both ends of its interval.",
		"PlanClaim.closed_from":             "Requests from which its two-sided 95 % interval has an upper end.",
		"PlanClaim.minutes":                 "Minutes that they take. Absent where no rate was said.",
		"PlanLoad.of_saturation":            "Ratio of the rate to saturation. Absent where --tau was given instead.",
		"PlanLoad.tau":                      "Correlation time in requests: 2/(1 - ratio)^2, or as given.",
		"PlanLoad.requests":                 "Requests in use times the correlation time.",
		"PlanLoad.minutes":                  "Minutes that they take. Absent where no rate was said.",
		"PlanCapacity.delta":                "Wanted precision, as a share of the capacity.",
		"PlanCapacity.misses_allowed":       "Share of requests that may miss: 1 - percentile.",
		"PlanCapacity.requests_at_capacity": "z^2*2/(delta^2*q0*ln(1/q0)^2*ratio^2) at 95 %: requests at the capacity itself below which no method that counts misses does it. The ratio to saturation is 1 unless known.",
		"PlanCapacity.requests_of_a_search": "Budget of a search: max(8000, 18.4/(delta^2*q0*ln(1/q0)^2)).",
		"PlanCapacity.minutes":              "Minutes that a search takes at the rate. Absent where no rate was said.",
		"PlanCapacity.of_saturation":        "Ratio of the rate to saturation. Absent where it is unknown.",
		"PlanCompare.sd":                    "Standard deviation of the differences of pilot pairs (--sd).",
		"PlanCompare.runs":                  "Pairs of runs.",
		"PlanCompare.detects":               "The difference that so many pairs find in 80 % of cases at a level of 5 %: 2.8*sd/sqrt(runs).",
		"PlanCompare.difference":            "The difference to be found. Absent where not said.",
		"PlanCompare.runs_for_difference":   "Pairs that find it in 80 % of cases, two at least. Absent where no difference was said.",
		"PlanHave.requests":                 "The requests at hand.",
		"PlanHave.n_eff":                    "Independent ones that they are worth.",
		"PlanHave.claims":                   "What they say of each percentile.",
		"PlanHave.allowed_over":             "Most of them that may be over the latency for early stopping to pass. Absent where they are too few to pass at all.",
		"PlanHave.early_stopping_rank":      "Rank of the value that MLPerf's early stopping would estimate the percentile by. Absent where they are too few.",
		"PlanHave.margin":                   "Margin of the share beyond the percentile that they give at the confidence asked for.",
		"PlanStatus.status":                 "ok, open (no upper end) or insufficient, as of a quantile whose load is known.",
		"PlanStatus.rank":                   "Rank of the value.",
		"PlanStatus.low_rank":               "Rank of the 95 % interval's lower end. Absent where there is none.",
		"PlanStatus.high_rank":              "Rank of its upper end. Absent where there is none.",
		"PlanStatus.needs":                  "Requests that it would take. Absent where it can be stated.",
	}
}

func planOptions() schema.Options {
	return schema.Options{
		ID: "urn:fermata:plan:1", Title: "How many requests a claim needs, by fermata plan",
		Types: planTypes(), Keys: planKeys(),
		Enum: map[string][]string{"Plan.schema": {PlanSchemaName}, "PlanStatus.status": {"ok", "open", "insufficient"}},
	}
}

// WritePlan writes p as format says, one of PlanFormats; lines for people are folded to a width
// that is given.
func WritePlan(format string, w io.Writer, p *Plan, o TerminalOptions) error {
	if format == "json" {
		data, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the plan as JSON: %w", err)
		}
		_, err = w.Write(append(data, '\n'))
		return err
	}
	_, err := io.WriteString(w, folded(planText(p), o.Width))
	return err
}

// folded is text whose lines are no wider, with their indent; 0 leaves it alone.
func folded(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if term.Cells(line) <= width {
			b.WriteString(line + "\n")
			continue
		}
		for _, part := range term.Wrap(line[len(indent):], max(width, narrowest)-len(indent)) {
			b.WriteString(indent + part + "\n")
		}
	}
	return b.String()
}

// planText is a plan for people.
func planText(p *Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := percentile(p.Percentile)
	line("%s, confidence %s, margin %s: %s requests%s (%s in blocks of 8,192).", name, share(p.Confidence), share(p.Margin),
		term.Count(p.Requests), inMinutes(p.Minutes), term.Count(p.Rounded))
	line("")
	line("To state a percentile (95 %% interval)")
	for _, c := range p.Claims {
		line("  %-6s %12s requests%s; an upper end from %s on", percentile(c.Percentile), term.Count(c.Requests), inMinutes(c.Minutes), term.Count(c.Closed))
	}
	if l := p.Load; l != nil {
		line("")
		at := ""
		if l.OfSaturation != nil {
			at = fmt.Sprintf(" at %.3g of saturation", *l.OfSaturation)
		}
		line("Bursts%s: %s requests in a row are worth one. The formula then asks for %s%s.", at, term.Number(l.Tau, true), term.Count(l.Requests), inMinutes(l.Minutes))
	}
	line("")
	line("MLPerf's early stopping for %s: requests needed with 0, 1, 2 … over the latency", name)
	var stops []string
	for _, s := range p.EarlyStopping {
		stops = append(stops, term.Count(s.Requests))
	}
	line("  %s", strings.Join(stops, " "))
	a := p.AlwaysValid
	line("A run that looks at any time may pass from %.4g·tau + %.4g requests a miss on: %s without a miss.", a.Start, a.PerMiss, term.Count(a.Requests))
	if c := p.Capacity; c != nil {
		line("")
		line("The highest rate with at most %s of misses, to ±%s: %s requests at that rate itself, %s for a search%s.", share(c.Share), share(c.Delta), term.Count(c.Law), term.Count(c.Search), inMinutes(c.Minutes))
	}
	if c := p.Comparison; c != nil {
		line("")
		line("%d pairs of runs whose differences scatter by %s find %s in 80 %% of cases.", c.Runs, share(c.SD), share(c.Detects))
		if c.Difference != nil {
			line("To find %s takes %s pairs.", share(*c.Difference), term.Count(*c.RunsFor))
		}
	}
	if h := p.Have; h != nil {
		line("")
		writeHave(line, p, h)
	}
	line("")
	for _, n := range p.Notes {
		line("%s", n)
	}
	return b.String()
}

func writeHave(line func(string, ...any), p *Plan, h *PlanHave) {
	if p.Load != nil {
		line("With %s requests, worth %s independent ones", term.Count(h.Requests), term.Number(h.NEff, true))
	} else {
		line("With %s requests, if they were independent; under load, and near saturation most of all, waits come in bursts, and fewer can be stated (--rate with --saturation, or --tau)", term.Count(h.Requests))
	}
	for _, c := range h.Claims {
		text := "can be stated"
		switch c.Status {
		case statusOpen:
			text = "has no upper end"
		case statusInsufficient:
			text = "cannot be stated"
		}
		if c.Needs != nil {
			text += ": that takes " + term.Count(*c.Needs)
		} else if c.Low != nil && c.High != nil {
			text += fmt.Sprintf(": ranks %s to %s", term.Count(*c.Low), term.Count(*c.High))
		}
		line("  %-6s %s", percentile(c.Percentile), text)
	}
	switch name := percentile(p.Percentile); {
	case h.AllowedOver == nil:
		line("  MLPerf's early stopping of %s cannot pass", name)
	default:
		line("  MLPerf's early stopping of %s passes with up to %s over the latency", name, term.Count(*h.AllowedOver))
	}
	line("  the share beyond %s is known to ±%s", percentile(p.Percentile), share(h.Margin))
}

func inMinutes(m *float64) string {
	if m == nil {
		return ""
	}
	up := func(v float64) int64 { return int64(math.Ceil(v - 1e-6)) }
	switch {
	case *m >= 120:
		return fmt.Sprintf(" (%.3g hours)", *m/60)
	case *m > 2:
		return fmt.Sprintf(" (%d minutes)", up(*m))
	case up(*m*60) == 1:
		return " (a second)"
	}
	return fmt.Sprintf(" (%d seconds)", up(*m*60))
}

// share writes .0005 as 0.05 %.
func share(v float64) string {
	if v > 0.5 {
		return fmt.Sprintf("%g %%", math.Round(v*1e8)/1e6)
	}
	return fmt.Sprintf("%.3g %%", 100*v)
}
