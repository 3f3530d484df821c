package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"fermata/compare"
	"fermata/internal/schema"
	"fermata/internal/term"
	"fermata/metrics"
)

// StudySchemaName is the schema that a Study names.
const StudySchemaName = "fermata.study/1"

// A Study is many runs as one: for each system and point of a grid, statistics
// over seeds, and what was to be shown with them.
type Study struct {
	Schema string       `json:"schema"`
	Tool   metrics.Tool `json:"tool"`
	Title  string       `json:"title,omitempty"`
	Points []StudyPoint `json:"points"`

	Endpoints []StudyEndpoint `json:"endpoints,omitempty"` // nil of simulated systems

	Claims []Claim `json:"claims"`
	Caveat string  `json:"caveat,omitempty"`

	BlindSpots []compare.BlindSpot `json:"blind_spots"`
}

// A StudyPoint is one system under one load, with all its seeds.
type StudyPoint struct {
	Name       string       `json:"name,omitempty"`
	System     string       `json:"system"`
	Settings   []Setting    `json:"settings"`
	Seeds      []uint64     `json:"seeds"`
	Statistics []StudyValue `json:"statistics"`
}

// A Setting is a key of a spec with its value in one point of a grid.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A StudyValue is a statistic over the seeds of a point.
type StudyValue struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit,omitempty"`
	Median *float64   `json:"median,omitempty"`
	Low    *float64   `json:"low,omitempty"`
	High   *float64   `json:"high,omitempty"`
	Runs   []StudyRun `json:"runs"`

	takes, had int64 // requests, where some run has too few to state it
}

// A StudyRun is a statistic of one run.
type StudyRun struct {
	Seed  uint64   `json:"seed"`
	Value *float64 `json:"value,omitempty"`

	Status string `json:"status,omitempty"` // insufficient where it cannot be stated
}

// A Claim is something that the study was to show.
type Claim struct {
	Text  string   `json:"text"`
	Paper string   `json:"paper,omitempty"`
	Ours  string   `json:"ours"`
	Value *float64 `json:"value,omitempty"`
	Unit  string   `json:"unit,omitempty"`
	Holds bool     `json:"holds"`
}

// NewStudy is a study without points.
func NewStudy(version, title string) *Study {
	return &Study{Schema: StudySchemaName, Tool: metrics.Tool{Name: "fermata", Version: version}, Title: title}
}

// Add adds a point from its results, one a seed.
func (s *Study) Add(name string, settings []Setting, statistics []Statistic, results []*metrics.Result) {
	p := StudyPoint{Name: name, Settings: settings}
	for _, r := range results {
		if r.Simulation != nil {
			p.System = r.Simulation.System
		}
		if r.Run.Seed != nil {
			p.Seeds = append(p.Seeds, *r.Run.Seed)
		}
	}
	for i := range statistics {
		v := StudyValue{Name: statistics[i].Name}
		var known []float64
		for _, r := range results {
			x, unit := statistics[i].Of(r)
			run := StudyRun{Value: x}
			if r.Run.Seed != nil {
				run.Seed = *r.Run.Seed
			}
			if x != nil {
				run.Status = v.few(&statistics[i], r)
			}
			v.Runs = append(v.Runs, run)
			if x != nil {
				v.Unit = unit
				known = append(known, *x)
			}
		}
		if len(known) > 0 {
			slices.Sort(known)
			median, low, high := middle(known), known[0], known[len(known)-1]
			v.Median, v.Low, v.High = &median, &low, &high
		}
		p.Statistics = append(p.Statistics, v)
	}
	s.Points = append(s.Points, p)
}

// few is the status of a statistic of r, with what it would take where r has too few
// requests for it.
func (v *StudyValue) few(s *Statistic, r *metrics.Result) string {
	if !s.Insufficient(r) {
		return ""
	}
	if s.rests != nil {
		d := s.rests(&r.Metrics)
		v.takes, v.had = max(v.takes, needed(d, at(d, s.p))), max(v.had, d.NRequests)
	}
	return statusInsufficient
}

// unstated says that the statistic cannot be stated of some run.
func (v *StudyValue) unstated() bool {
	return slices.ContainsFunc(v.Runs, func(r StudyRun) bool { return r.Status == statusInsufficient })
}

// cell is the statistic as reports show it: faint and marked where it is of too few
// requests to be stated.
func (v *StudyValue) cell() cell {
	c := text(v.text())
	if v.unstated() {
		c.mark, c.tone = marks[statusInsufficient], term.Faint
	}
	return c
}

// fewNotes say what the statistics that cannot be stated would take.
func (s *Study) fewNotes() []string {
	var takes []string
	had, few := int64(0), false
	for i, one := range s.statistics() {
		most := int64(0)
		for k := range s.Points {
			v := &s.Points[k].Statistics[i]
			few = few || v.unstated()
			most, had = max(most, v.takes), max(had, v.had)
		}
		if most > 0 {
			takes = append(takes, fmt.Sprintf("%s about %s", one.Name, term.Count(most)))
		}
	}
	switch {
	case !few:
		return nil
	case len(takes) == 0:
		return []string{noteFew}
	}
	return []string{fmt.Sprintf("%s, or no steady state; it takes %s (had %s)", noteFew, listed(takes), term.Count(had))}
}

// middle is the median of sorted values: of an even number, the mean of the two.
func middle(v []float64) float64 {
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Value is the median of a statistic of the first point of a name.
func (s *Study) Value(name, statistic string) (v float64, unit string, ok bool) {
	for i := range s.Points {
		if s.Points[i].Name != name {
			continue
		}
		for _, x := range s.Points[i].Statistics {
			if x.Name == statistic && x.Median != nil {
				return *x.Median, x.Unit, true
			}
		}
	}
	return 0, "", false
}

func studyTypes() map[string]string {
	return map[string]string{
		"Study":      "Many runs as one: statistics of each simulated system and grid point over seeds, or of each endpoint over hours, and what they were to show.",
		"Tool":       "What made the document.",
		"StudyPoint": "One system under one load, with all its seeds.",
		"Setting":    "A key of the spec with its value.",
		"StudyValue": "A statistic over the seeds of a point.",
		"StudyRun":   "A statistic of one run.",
		"BlindSpot":  blindSpotMeaning,
		"Claim":      "Something that the study was to show.",

		"StudyEndpoint": "One endpoint, asked again and again over hours.",
		"StudyRate":     "One way to say how fast an endpoint is, over all rounds.",
		"StudySpread":   "The middle, and between which values most lie.",
		"StudyTTFT":     "Time to first token, from the sending, of prompts of about one length.",
		"StudyFluidity": "The fluidity index at one target gap, decode only.",
	}
}

func studyKeys() map[string]string {
	return map[string]string{
		"Study.schema":        "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Study.caveat":        "What a reader must know of all the claims. Absent where nothing was said.",
		"Study.blind_spots":   "Between the first system and each further one at the same point of the grid.",
		"StudyPoint.name":     "Of the system in the study. Absent of a grid over one spec.",
		"StudyPoint.settings": "Where the point stands in the grid.",
		"StudyPoint.seeds":    "One run each.",
		"StudyValue.name":     "As --metric takes it, such as ttft_due.p99.",
		"StudyValue.unit":     "Of the values; times are nanoseconds. Absent where no run had the statistic.",
		"StudyValue.median":   "Over the runs that have it; absent where none has.",
		"StudyValue.low":      "The lowest of them.",
		"StudyValue.high":     "The highest of them.",
		"StudyValue.runs":     "One a seed, in their order.",
		"StudyRun.status":     "insufficient where the run has too few requests, or no steady state, to state it, as in result.json. Absent else.",
		"StudyRun.value":      "Absent where the run does not have it.",
		"Claim.paper":         "What was published.",
		"Claim.ours":          "The same here, in words.",
		"Claim.value":         "The same as a number. Absent where a statistic is missing.",
		"Claim.holds":         "The number lies where the study wanted it.",
		"Claim.unit":          "Of the value; 1 for a ratio.",

		"Study.endpoints":                  "Absent of simulated systems. Each is a point too, whose statistics are over all rounds.",
		"StudyEndpoint.target":             "Whom the last round asked.",
		"StudyEndpoint.model":              "Absent where the server names none.",
		"StudyEndpoint.from":               "When the first round began, RFC 3339.",
		"StudyEndpoint.to":                 "When the last one did.",
		"StudyEndpoint.rounds":             "That were recorded.",
		"StudyEndpoint.planned":            "That were to be; the others were missed or failed as a whole.",
		"StudyEndpoint.requests":           "Of all rounds.",
		"StudyEndpoint.failed":             "Of them, those without a good answer.",
		"StudyEndpoint.rates":              "tpot: 1/median TPOT; tail_tbt: 1/p99 TBT; fluid: the fluid token generation rate, decode.",
		"StudyEndpoint.tps":                "Tokens a second of single answers. Absent where none took any time.",
		"StudyEndpoint.same_event_share":   "Of decode tokens, those in the event of the token before. Absent without any.",
		"StudyEndpoint.same_read_share":    "The same of socket reads.",
		"StudyEndpoint.ttft":               "By octaves of the prompt's length.",
		"StudyEndpoint.fluidity":           "At each target gap.",
		"StudyRate.tokens_per_s":           "Absent where no gap is wide enough, or there is nothing to say.",
		"StudyRate.low":                    "Of the 95 % interval over all requests; absent where it has no such end.",
		"StudyRate.high":                   "The same.",
		"StudyRate.rounds":                 "Of the same rate in each round. Absent where no round has it.",
		"StudyFluidity.p1":                 "The index that 99 of 100 answers have at least. Absent where no answer has an index.",
		"StudyFluidity.p50":                "The median.",
		"StudyFluidity.share_at_least_0_9": "Of answers, those that are fluid.",
	}
}

func studyOptions() schema.Options {
	return schema.Options{
		ID: "urn:fermata:study:1", Title: "What Fermata's simulator says of several systems", Types: studyTypes(), Keys: withBlindSpots(studyKeys()),
		Enum: map[string][]string{"BlindSpot.code": metrics.BlindSpotCodes()},
	}
}

// WriteStudy writes s as format says, one of DocumentFormats.
func WriteStudy(format string, w io.Writer, s *Study, o TerminalOptions) error {
	return writeDocument("the study", format, w, s, s.page, o)
}

// AllHold says that every claim does.
func (s *Study) AllHold() bool {
	return !slices.ContainsFunc(s.Claims, func(c Claim) bool { return !c.Holds })
}

func (s *Study) page() *page {
	p := &page{verdict: fact{text: s.verdictText(), tone: term.Good}}
	if !s.AllHold() {
		p.verdict.tone = term.Bad
	}
	if len(s.Endpoints) > 0 {
		for _, b := range s.endpointBlocks() {
			p.add(b)
		}
	}
	p.add(s.table())
	p.add(s.claims())
	p.add(s.blindSpots())
	if s.Caveat != "" {
		p.add(block{title: "Caveat", notes: []string{term.Plain(s.Caveat)}})
	}
	return p
}

func (s *Study) verdictText() string {
	runs := 0
	for _, p := range s.Points {
		runs += len(p.Seeds)
	}
	text := fmt.Sprintf("%s: simulated, %s runs", term.Plain(orText(s.Title, "grid")), term.Count(int64(runs)))
	if len(s.Endpoints) > 0 {
		text = s.endpointsText()
	}
	if n := len(s.BlindSpots); n > 0 {
		text += ", " + counted(n, "blind spot")
	}
	if len(s.Claims) == 0 {
		return text
	}
	held := 0
	for _, c := range s.Claims {
		if c.Holds {
			held++
		}
	}
	return fmt.Sprintf("%s, %d of %d claims hold", text, held, len(s.Claims))
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// table has a row a statistic and a column a point where points are few, so that
// it can be read across.
func (s *Study) table() block {
	t := &table{columns: []column{{head: "statistic", left: true, flex: true}}} // folded where marks leave it no room
	seeds := 0
	for _, p := range s.Points {
		head := p.Name
		for _, set := range p.Settings {
			head = strings.TrimSpace(head + " " + set.Key[strings.LastIndexByte(set.Key, '.')+1:] + "=" + set.Value)
		}
		t.columns = append(t.columns, column{head: term.Plain(orText(head, "value"))})
		seeds = max(seeds, len(p.Seeds))
	}
	if len(s.Points) == 0 {
		return block{}
	}
	for i, v := range s.Points[0].Statistics {
		row := []cell{text(v.Name)}
		for _, p := range s.Points {
			row = append(row, p.Statistics[i].cell())
		}
		t.rows = append(t.rows, row)
	}
	b := block{title: "Statistics", table: t, notes: s.fewNotes()}
	if seeds > 1 {
		b.notes = append(b.notes, fmt.Sprintf("medians over %d seeds, with the lowest and the highest", seeds))
	}
	for _, p := range s.Points {
		b.fact(orText(p.Name, "system"), term.Plain(p.System))
		if p.Name == "" {
			break
		}
	}
	return b
}

// endpointsText says what endpoints were asked when: no speed without its date.
func (s *Study) endpointsText() string {
	from, to, requests := s.Endpoints[0].From, s.Endpoints[0].To, int64(0)
	for _, e := range s.Endpoints {
		from, to = min(from, e.From), max(to, e.To)
		requests += e.Requests
	}
	return fmt.Sprintf("%s: %d endpoints from %s to %s, %s requests", term.Plain(orText(s.Title, "study")), len(s.Endpoints), from, to, term.Count(requests))
}

func (v *StudyValue) text() string {
	if v.Median == nil {
		return term.None
	}
	s := amount(v.Unit, *v.Median)
	if len(v.Runs) > 1 {
		low, high := amount(v.Unit, *v.Low), amount(v.Unit, *v.High)
		if _, unit, ok := strings.Cut(s, " "); ok && strings.HasSuffix(low, " "+unit) && strings.HasSuffix(high, " "+unit) {
			low, high = strings.TrimSuffix(low, " "+unit), strings.TrimSuffix(high, " "+unit) // once is enough
		}
		s += " (" + low + "–" + high + ")"
	}
	return s
}

func (s *Study) claims() block {
	if len(s.Claims) == 0 {
		return block{}
	}
	t := &table{columns: []column{{head: "claim", left: true, flex: true}, {head: "published", left: true}, {head: "here", left: true}, {head: "", left: true}}}
	for _, c := range s.Claims {
		holds := cell{text: "holds", tone: term.Good}
		if !c.Holds {
			holds = cell{text: "does not", tone: term.Bad}
		}
		t.rows = append(t.rows, []cell{text(term.Plain(c.Text)), text(term.Plain(orText(c.Paper, term.None))), text(c.Ours), holds})
	}
	if !slices.ContainsFunc(s.Claims, func(c Claim) bool { return c.Paper != "" }) {
		t.columns = slices.Delete(t.columns, 1, 2)
		for i := range t.rows {
			t.rows[i] = slices.Delete(t.rows[i], 1, 2)
		}
	}
	return block{title: "Claims", table: t}
}

// ClaimOf is a claim about a number: it holds between the bounds, both included.
func ClaimOf(words, paper, unit string, value, low, high float64) Claim {
	c := Claim{Text: words, Paper: paper, Unit: unit, Holds: value >= low && value <= high}
	if !math.IsNaN(value) {
		c.Value, c.Ours = &value, amount(unit, value)
	}
	return c
}
