package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"fermata/internal/schema"
	"fermata/internal/term"
	"fermata/metrics"
)

// SweepSchemaName is the schema that a Sweep names.
const SweepSchemaName = "fermata.sweep/1"

// A Sweep is one load at several rates, or numbers of users, and what follows from
// all of them together.
type Sweep struct {
	Schema string       `json:"schema"`
	Tool   metrics.Tool `json:"tool"`
	System string       `json:"system"`
	Knob   string       `json:"knob"`  // rate or concurrency
	Seeds  string       `json:"seeds"` // fresh or common
	GPUs   int          `json:"gpus"`
	From   string       `json:"gpus_from"` // who says how many: flag, prices, spec or nobody

	Points  []SweepPoint   `json:"points"`
	Goodput []SweepGoodput `json:"goodput"`
	Knee    *SweepKnee     `json:"knee,omitempty"`
	Cut     bool           `json:"interrupted"`
	Stopped string         `json:"stopped,omitempty"`

	results []*metrics.Result // of the points
}

// A SweepPoint is the load at one rate or number of users.
type SweepPoint struct {
	Label  string   `json:"label"`
	Value  *float64 `json:"value,omitempty"` // requests/s or users; nil of everything at once
	Folder string   `json:"folder"`
	Seed   uint64   `json:"seed"`
	Kept   bool     `json:"kept"` // it had been measured before

	Requests     int64    `json:"requests"`
	Failed       int64    `json:"failed"`
	OfferedRPS   *float64 `json:"offered_rps,omitempty"`
	RequestsPerS *float64 `json:"requests_per_s,omitempty"`
	TokensPerS   *float64 `json:"tokens_per_s,omitempty"`
	InFlightMean *float64 `json:"in_flight_mean,omitempty"`
	Steady       bool     `json:"steady"` // nothing says that requests piled up

	TTFT *SweepTimes `json:"ttft,omitempty"`
	TBT  *SweepTimes `json:"tbt,omitempty"`
	E2E  *SweepTimes `json:"e2e,omitempty"`

	Shares   []SweepShare `json:"shares"`
	Power    *float64     `json:"power,omitempty"`
	Frontier bool         `json:"frontier"`

	Currency       string `json:"currency,omitempty"`
	PerMillion     string `json:"per_million,omitempty"`
	PerMillionGood string `json:"per_million_good,omitempty"`

	Warnings []string `json:"warnings"`
}

// SweepTimes are percentiles in ns, each with a status as in result.json.
type SweepTimes struct {
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	Mean      float64 `json:"mean"`
	P99Status string  `json:"p99_status"`
}

// A SweepShare is how many of a point's requests met an objective.
type SweepShare struct {
	Objective string   `json:"objective"`
	Share     float64  `json:"share"`
	Low       *float64 `json:"low,omitempty"`
	High      *float64 `json:"high,omitempty"`
	GoodRPS   *float64 `json:"good_rps,omitempty"`
}

// A SweepGoodput is the highest load of a sweep at which a share of the requests
// meets an objective, joint in all its terms.
type SweepGoodput struct {
	Objective      string   `json:"objective"`
	Share          float64  `json:"share"` // 0.9 or 0.99
	At             string   `json:"at,omitempty"`
	RPSPerGPU      *float64 `json:"rps_per_gpu,omitempty"`
	TokensPerGPU   *float64 `json:"tokens_per_s_per_gpu,omitempty"`
	SureRPSPerGPU  *float64 `json:"sure_rps_per_gpu,omitempty"`
	FailsRPSPerGPU *float64 `json:"fails_rps_per_gpu,omitempty"`
	Loss           *float64 `json:"loss,omitempty"`
	CostFactor     *float64 `json:"cost_factor,omitempty"`
}

// A SweepKnee is the point of most power.
type SweepKnee struct {
	At   string `json:"at"`
	Rule string `json:"rule"`
	End  bool   `json:"at_an_end"` // it is the first or the last: the knee may lie beyond
}

// AddPoint adds a point with its result.
func (s *Sweep) AddPoint(p SweepPoint, r *metrics.Result) {
	p.Requests = r.Load.Measured
	p.Failed = failed(r)
	p.OfferedRPS, p.InFlightMean = r.Load.OfferedRPS, r.Load.InFlightMean
	p.RequestsPerS, p.TokensPerS = r.Throughput.RequestsPerS, r.Throughput.OutputTokensPerSFinished
	if r.Run.Seed != nil {
		p.Seed = *r.Run.Seed
	}
	p.TTFT, p.TBT, p.E2E = sweepTimes(r.Metrics.TTFTDue), sweepTimes(r.Metrics.TBT), sweepTimes(r.Metrics.E2E)
	p.Steady = true
	for _, w := range r.Warnings {
		p.Warnings = append(p.Warnings, w.Code)
		if w.Code == "drift" || w.Code == "backlog" || w.Code == "not_a_measurement" {
			p.Steady = false
		}
	}
	for _, g := range r.Goodput {
		if g.Share == nil {
			continue // nothing could be judged
		}
		p.Shares = append(p.Shares, SweepShare{g.Objective, *g.Share, g.ShareLow, g.ShareHigh, g.RequestsS})
	}
	if c := r.Cost; c != nil {
		p.Currency, p.PerMillion, p.PerMillionGood = c.Currency, c.PerMillion, c.PerMillionGood
	}
	s.Points = append(s.Points, p)
	s.results = append(s.results, r)
}

func sweepTimes(d *metrics.Dist) *SweepTimes {
	p50, p99 := at(d, .5), at(d, .99)
	if p50 == nil || p99 == nil || d.Mean == nil {
		return nil
	}
	return &SweepTimes{P50: p50.Value, P99: p99.Value, Mean: *d.Mean, P99Status: p99.Status}
}

func sweepTypes() map[string]string {
	return map[string]string{
		"Sweep":        "One load at several rates or numbers of users, and what follows from all of them together.",
		"Tool":         "What made the document.",
		"SweepPoint":   "The load at one rate or number of users; everything else about it stands in result.json of its folder.",
		"SweepTimes":   "Percentiles in nanoseconds.",
		"SweepShare":   "How many of a point's requests met an objective, in all its terms.",
		"SweepGoodput": "DistServe's goodput: the highest load per GPU at which a share of the requests meets the objective jointly.",
		"SweepKnee":    "Where throughput stops being cheap in latency.",
	}
}

func sweepKeys() map[string]string {
	return map[string]string{
		"Sweep.schema":     "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Sweep.knob":       "What differs between the points: rate (requests a second, an open loop) or concurrency (users of a closed loop).",
		"Sweep.seeds":      "fresh: each point has a seed of its own, so that no cache has seen its prompts. common: all have the same, so that they differ in nothing but the load.",
		"Sweep.gpus":       "GPUs of the system, by which goodput is divided.",
		"Sweep.gpus_from":  "Who says so: flag, prices, spec, or nobody, for which it is 1.",
		"Sweep.goodput":    "One entry an objective and share, of objectives that are about requests; `all` is all of them jointly.",
		"Sweep.stopped":    "Why the sweep ended before its last load, where nobody interrupted it, such as money that was spent; absent where it did not.",
		"Sweep.knee":       "Absent with fewer than three points.",
		"SweepPoint.label": "Such as rate-4, users-16 or offline.",
		"SweepPoint.value": "Requests a second, or users. Absent of the offline point.",

		"SweepPoint.steady":           "Neither a backlog nor a drift was seen; only such a point counts for goodput.",
		"SweepPoint.requests_per_s":   "Finished in the window.",
		"SweepPoint.tokens_per_s":     "Output tokens of the requests that finished in the window.",
		"SweepPoint.power":            "Requests finished a second over their mean end-to-end latency in seconds.",
		"SweepPoint.frontier":         "No other point of the sweep has more tokens a second with p99 TTFT and p99 TBT that are no worse.",
		"SweepPoint.per_million":      "Cost of a million tokens at this load (key cost of result.json).",
		"SweepPoint.per_million_good": "The same of good answers.",
		"SweepPoint.warnings":         "Codes of the point's warnings.",
		"SweepTimes.p99_status":       "As in result.json: ok, assumed, open or insufficient.",
		"SweepShare.good_rps":         "Requests a second that met it, passed their check and were not slow.",

		"SweepGoodput.at":                   "The point. Absent where not even the lowest load holds.",
		"SweepGoodput.rps_per_gpu":          "Its rate (of a closed loop what was finished), a GPU.",
		"SweepGoodput.tokens_per_s_per_gpu": "Its output tokens a second, a GPU.",
		"SweepGoodput.sure_rps_per_gpu":     "The highest load whose share is above with its whole interval: goodput is this, at least.",
		"SweepGoodput.fails_rps_per_gpu":    "The lowest load whose share is below with its whole interval: goodput is less. Absent where none is.",
		"SweepGoodput.loss":                 "Share of the offline point's tokens a second that is lost. Absent without one.",
		"SweepGoodput.cost_factor":          "1/(1 - loss): how many times the offline cost a token costs under the promise.",
		"SweepKnee.rule":                    "kleinrock_power: the point of most power (Kleinrock 1979).",
	}
}

func sweepOptions() schema.Options {
	return schema.Options{ID: "urn:fermata:sweep:1", Title: "What Fermata says of one load at several rates", Types: sweepTypes(), Keys: sweepKeys()}
}

// WriteSweep writes s as format says, one of DocumentFormats.
func WriteSweep(format string, w io.Writer, s *Sweep, o TerminalOptions) error {
	return writeDocument("the sweep", format, w, s, s.page, o)
}

func (s *Sweep) page() *page {
	p := &page{verdict: fact{text: s.verdictText(), tone: term.Strong}}
	p.add(s.about())
	p.add(s.frontier())
	p.add(s.promises())
	return p
}

func (s *Sweep) verdictText() string {
	text := fmt.Sprintf("%s: %s", term.Plain(s.System), counted(len(s.Points), "load"))
	if s.Cut {
		text += ", interrupted"
	}
	if s.Stopped != "" {
		text += ", stopped: " + s.Stopped
	}
	for i := range s.Goodput {
		g := &s.Goodput[i]
		if last := s.Goodput[len(s.Goodput)-1]; g.Objective == last.Objective && g.Share > .95 {
			if g.RPSPerGPU == nil {
				return text + fmt.Sprintf("; not even the lowest lets %s of the requests meet %s", wholePercent(g.Share), words(g.Objective)) + g.bounds()
			}
			return text + fmt.Sprintf("; up to %s requests/s a GPU%s, %s of them meet %s", term.Number(*g.RPSPerGPU, false), g.bounds(), wholePercent(g.Share), words(g.Objective))
		}
	}
	return text
}

// bounds are the loads between which a goodput lies: one that holds with its whole
// interval, and one that fails with it.
func (g *SweepGoodput) bounds() string {
	sure, less := "", ""
	switch {
	case g.SureRPSPerGPU != nil:
		sure = "surely " + term.Number(*g.SureRPSPerGPU, false)
	case g.RPSPerGPU != nil:
		sure = "surely none"
	}
	if g.FailsRPSPerGPU != nil {
		less = "less than " + term.Number(*g.FailsRPSPerGPU, false)
	}
	if sure+less == "" {
		return ""
	}
	return " (" + joined(", ", sure, less) + ")"
}

func moneyOrNone(text string) string {
	if text == "" {
		return term.None
	}
	return shortMoney(text)
}

// counted is a number of things.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// words are an objective's, of all of them together too.
func words(objective string) string {
	if objective == "all" {
		return "all objectives"
	}
	return term.Plain(objective)
}

func (s *Sweep) about() block {
	b := block{title: "Sweep"}
	gpus := fmt.Sprintf("%d, by the %s", s.GPUs, s.From)
	if s.From == "nobody" {
		gpus = "1, as nobody said how many (--gpus)"
	}
	b.fact("GPUs", gpus)
	if s.Seeds == "common" {
		b.fact("seeds", "the same at every load: they differ in nothing but the load")
	} else {
		b.fact("seeds", "another at every load: no cache has seen its prompts")
	}
	if k := s.Knee; k != nil {
		text := "at " + k.At + ", the load of most power: requests a second over their mean latency (Kleinrock)"
		if k.End {
			text += "; it is an end of the sweep, so that the knee may lie beyond"
		}
		b.fact("knee", text)
	}
	return b
}

// frontier is the table of all loads: never a throughput without its latency.
func (s *Sweep) frontier() block {
	t := &table{columns: []column{
		{head: "load", left: true},
		{head: "offered/s", drop: 3},
		{head: "finished/s"},
		{head: "tokens/s"},
		{head: "in flight", drop: 4},
		{head: "TTFT p50", drop: 1},
		{head: "TTFT p99"},
		{head: "TBT p50", drop: 1},
		{head: "TBT p99"},
		{head: "failed", drop: 3},
	}}
	objectives := 0
	currency := ""
	for i := range s.Points {
		objectives = max(objectives, len(s.Points[i].Shares))
		currency += s.Points[i].Currency
	}
	if objectives > 0 {
		t.columns = append(t.columns, column{head: "met"}, column{head: "[95 %]", left: true, drop: 2}, column{head: "good/s"})
	}
	if currency != "" {
		t.columns = append(t.columns, column{head: "a million", drop: 3}, column{head: "good", name: "a million good", drop: 3})
	}
	t.columns = append(t.columns, column{head: "", left: true})
	rate := func(v *float64) cell {
		if v == nil {
			return text(term.None)
		}
		return text(term.Number(*v, false))
	}
	for i := range s.Points {
		p, m := &s.Points[i], &s.results[i].Metrics
		row := []cell{
			text(p.Label), rate(p.OfferedRPS), rate(p.RequestsPerS), rate(p.TokensPerS), rate(p.InFlightMean),
			quantileCell("ns", m.TTFTDue, .5), quantileCell("ns", m.TTFTDue, .99), quantileCell("ns", m.TBT, .5), quantileCell("ns", m.TBT, .99), text(term.Count(p.Failed)),
		}
		if objectives > 0 {
			met := []cell{text(term.None), {}, text(term.None)}
			if n := len(p.Shares); n > 0 && n == len(s.results[i].Goodput) {
				g := p.Shares[n-1]
				met = []cell{text(term.Percent(g.Share)), {text: interval("share", g.Low, g.High), tone: term.Faint}, rate(g.GoodRPS)}
			}
			row = append(row, met...)
		}
		if currency != "" {
			row = append(row, text(moneyOrNone(p.PerMillion)), text(moneyOrNone(p.PerMillionGood)))
		}
		t.rows = append(t.rows, append(row, text(strings.Join(s.marks(p), ", "))))
	}
	b := block{title: "Throughput, latency and what was good", table: t, notes: t.markNotes()}
	if objectives > 0 {
		last := ""
		for i := range s.Points {
			if n := len(s.Points[i].Shares); n > 0 {
				last = s.Points[i].Shares[n-1].Objective
			}
		}
		b.notes = append(b.notes, "met: share of the requests that met "+words(last)+", failures among those that did not")
	}
	if slices.ContainsFunc(s.Points, SweepPoint.late) {
		b.notes = append(b.notes, "good/s counts measured requests, over the measured time; finished/s what ended within that time. In short runs good ones that ended after it make the former more")
	}
	b.notes = append(b.notes, "frontier: no other load gave more tokens a second with p99 TTFT and TBT that are no worse")
	return b
}

// late says that more good requests came of the measured time than ended in it.
func (p SweepPoint) late() bool {
	n := len(p.Shares)
	return n > 0 && p.Shares[n-1].GoodRPS != nil && p.RequestsPerS != nil && *p.Shares[n-1].GoodRPS > *p.RequestsPerS
}

func (s *Sweep) marks(p *SweepPoint) []string {
	var all []string
	if s.Knee != nil && s.Knee.At == p.Label {
		all = append(all, "knee")
	}
	if p.Frontier {
		all = append(all, "frontier")
	}
	if !p.Steady {
		all = append(all, "not steady")
	}
	if p.Kept {
		all = append(all, "kept")
	}
	return all
}

// promises are the objectives side by side: they disagree.
func (s *Sweep) promises() block {
	if len(s.Goodput) == 0 {
		return block{}
	}
	t := &table{columns: []column{
		{head: "objective", left: true, flex: true},
		{head: "share"},
		{head: "requests/s a GPU"},
		{head: "surely", drop: 1},
		{head: "less than", drop: 1},
		{head: "tokens/s a GPU"},
		{head: "lost", name: "lost of offline"},
		{head: "cost", name: "cost over offline"},
	}}
	rate := func(v *float64) string {
		if v == nil {
			return term.None
		}
		return term.Number(*v, false)
	}
	for _, g := range s.Goodput {
		lost, factor := "", ""
		if g.Loss != nil {
			lost = term.Percent(*g.Loss)
		}
		if g.CostFactor != nil {
			factor = fmt.Sprintf("× %.3g", *g.CostFactor)
		}
		t.rows = append(t.rows, []cell{
			text(words(g.Objective)), text(wholePercent(g.Share)), text(rate(g.RPSPerGPU)), text(rate(g.SureRPSPerGPU)), text(rate(g.FailsRPSPerGPU)),
			text(rate(g.TokensPerGPU)), text(lost), text(factor),
		})
	}
	t.dropIfEmpty(7)
	t.dropIfEmpty(6)
	return block{
		title: "Goodput: the highest load at which a share of the requests meets an objective", table: t,
		notes: []string{"Of the loads that were tried, up to the first that fails; surely: with the whole interval; less than: the lowest load that fails with the whole interval. A search says more: fermata capacity."},
	}
}

// ShareOf is how many of the point's requests met the objective, with the interval;
// nil where it was not judged.
func (p *SweepPoint) ShareOf(objective string) (share, low, high *float64) {
	for i := range p.Shares {
		if one := &p.Shares[i]; one.Objective == objective {
			return &one.Share, one.Low, one.High
		}
	}
	return nil, nil, nil
}
