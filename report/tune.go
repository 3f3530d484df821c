package report

import (
	"fmt"
	"io"
	"strings"

	"fermata/internal/schema"
	"fermata/internal/term"
	"fermata/metrics"
)

// TuneSchemaName is the schema that a Tuning names.
const TuneSchemaName = "fermata.tune/1"

// A Tuning is each system's best settings, found with one budget for all.
type Tuning struct {
	Schema     string        `json:"schema"`
	Tool       metrics.Tool  `json:"tool"`
	Title      string        `json:"title,omitempty"`
	Objectives []string      `json:"objectives"`
	Budget     int           `json:"budget"` // measured requests of each system
	Rule       string        `json:"rule"`
	Systems    []TunedSystem `json:"systems"`
	Cut        bool          `json:"interrupted"`
}

// A TunedSystem is one system with what was tried.
type TunedSystem struct {
	Name    string       `json:"name"`
	System  string       `json:"system"`
	Arms    int          `json:"arms"` // combinations of settings
	Rounds  []TuneRound  `json:"rounds"`
	Best    *TuneTrial   `json:"best,omitempty"`
	Default *TuneTrial   `json:"default,omitempty"` // default settings, untuned
	Close   [][]Setting  `json:"close"`             // settings whose goodput is within the interval of the best
	Effort  TuneEffort   `json:"effort"`
	Notes   []TuneRemark `json:"notes"`
}

// A TuneRound is the trials of one round, all under the same load.
type TuneRound struct {
	Requests int64       `json:"requests"` // measured, of each trial
	Seed     uint64      `json:"seed"`
	Trials   []TuneTrial `json:"trials"`
}

// A TuneTrial is one run with its settings.
type TuneTrial struct {
	Settings   []Setting `json:"settings"`
	Tuned      bool      `json:"tuned"` // false: default settings
	Folder     string    `json:"folder"`
	Kept       bool      `json:"kept"`
	Requests   int64     `json:"requests"` // measured
	GoodRPS    *float64  `json:"good_rps,omitempty"`
	Low        *float64  `json:"low,omitempty"`
	High       *float64  `json:"high,omitempty"`
	Share      *float64  `json:"share,omitempty"`
	OfferedRPS *float64  `json:"offered_rps,omitempty"`
	TokensPerS *float64  `json:"tokens_per_s,omitempty"`
	TTFTP99    *float64  `json:"ttft_p99,omitempty"`
	TBTP99     *float64  `json:"tbt_p99,omitempty"`
	E2EMean    *float64  `json:"e2e_mean,omitempty"`
	Failed     string    `json:"failed,omitempty"` // why there is no run
}

// A TuneEffort is what the tuning of a system took.
type TuneEffort struct {
	Runs     int     `json:"runs"`
	Requests int64   `json:"requests"` // of all phases
	Minutes  float64 `json:"minutes"`  // of load; of a simulated system, of virtual time
	Starts   int     `json:"starts"`   // of a server
}

// A TuneRemark is what a reader must know of a system's tuning.
type TuneRemark struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// NewTrial is a trial with what its result says.
func NewTrial(settings []Setting, r *metrics.Result) TuneTrial {
	t := TuneTrial{Settings: settings, Tuned: len(settings) > 0, Requests: r.Load.Measured, OfferedRPS: r.Load.OfferedRPS, TokensPerS: r.Throughput.OutputTokensPerSFinished}
	if n := len(r.Goodput); n > 0 {
		g := r.Goodput[n-1] // all of them jointly, where there are several
		t.GoodRPS, t.Share = g.RequestsS, g.Share
		if t.OfferedRPS != nil && g.ShareLow != nil && g.ShareHigh != nil {
			low, high := *t.OfferedRPS**g.ShareLow, *t.OfferedRPS**g.ShareHigh
			t.Low, t.High = &low, &high
		}
	}
	if q := claimed(r.Metrics.TTFTDue, .99); q != nil {
		t.TTFTP99 = &q.Value
	}
	if q := claimed(r.Metrics.TBT, .99); q != nil {
		t.TBTP99 = &q.Value
	}
	if d := r.Metrics.E2E; d != nil {
		t.E2EMean = d.Mean
	}
	return t
}

func tuneTypes() map[string]string {
	return map[string]string{
		"Tuning":      "Each system's best settings, found with one budget for all.",
		"Tool":        "What made the document.",
		"TunedSystem": "One system with what was tried.",
		"TuneRound":   "The trials of one round, all under the same load and seed.",
		"TuneTrial":   "One run with its settings; everything else about it stands in result.json of its folder.",
		"TuneEffort":  "What the tuning of a system took, default settings included.",
		"TuneRemark":  "What a reader must know of a system's tuning.",
		"Setting":     "A setting with its value.",
	}
}

func tuneKeys() map[string]string {
	return map[string]string{
		"Tuning.schema":         "Name and version of this format. Keys may be added under the same version; meanings never change.",
		"Tuning.budget":         "Measured requests that the rounds of each system may take together; the trial of the default settings comes on top.",
		"Tuning.rule":           "sequential_halving: as many rounds as halvings, each with the same share of the budget; the better half by goodput goes on.",
		"TunedSystem.best":      "The trial that won the last round. Absent where no trial had a run.",
		"TunedSystem.default":   "The system as it is without tuning, under the load of the last round.",
		"TunedSystem.close":     "Settings of the last round whose goodput lies within the interval of the best: they are not told apart.",
		"TuneTrial.settings":    "Empty of default settings.",
		"TuneTrial.tuned":       "False of default settings.",
		"TuneTrial.good_rps":    "Goodput: requests a second that met all objectives jointly.",
		"TuneTrial.low":         "Lower end of its interval: that of the share, times the rate.",
		"TuneTrial.high":        "Upper end.",
		"TuneTrial.share":       "Share of the measured requests that met all objectives.",
		"TuneTrial.ttft_p99":    "Nanoseconds. Absent where too few requests claim it.",
		"TuneTrial.tbt_p99":     "Nanoseconds. Absent where too few requests claim it.",
		"TuneTrial.e2e_mean":    "Nanoseconds.",
		"TuneTrial.failed":      "Why there is no run, such as a server that did not start with these settings.",
		"TuneEffort.requests":   "Of warm-ups and drains too.",
		"TuneEffort.minutes":    "Of load, without the server's starts; of a simulated system in virtual time.",
		"TuneEffort.starts":     "How often a server was started.",
		"TuneRemark.code":       "too_light, at_an_end or close.",
		"Tuning.interrupted":    "The systems are those that were begun.",
		"TunedSystem.arms":      "Combinations of settings.",
		"TuneRound.requests":    "Measured requests of each trial.",
		"TuneTrial.kept":        "It had been measured before.",
		"TuneTrial.folder":      "Relative to the folder of the tuning.",
		"TuneTrial.offered_rps": "Rate of the measured requests.",
	}
}

func tuneOptions() schema.Options {
	return schema.Options{ID: "urn:fermata:tune:1", Title: "Each system's best settings, and what finding them took", Types: tuneTypes(), Keys: tuneKeys()}
}

// WriteTuning writes t as format says, one of DocumentFormats.
func WriteTuning(format string, w io.Writer, t *Tuning, o TerminalOptions) error {
	return writeDocument("the tuning", format, w, t, t.page, o)
}

func (t *Tuning) page() *page {
	text := orText(term.Plain(t.Title), "tuning") + ": " + counted(len(t.Systems), "system") + ", " + term.Count(int64(t.Budget)) + " measured requests each"
	if t.Cut {
		text += ", interrupted"
	}
	p := &page{verdict: fact{text: text, tone: term.Strong}}
	p.add(t.summary())
	for i := range t.Systems {
		p.add(t.Systems[i].rounds())
	}
	return p
}

// summary sets the systems side by side.
func (t *Tuning) summary() block {
	b := block{title: "Best settings", table: &table{columns: []column{
		{head: "system", left: true},
		{head: "settings", left: true, flex: true},
		{head: "good/s"},
		{head: "[95 %]", left: true},
		{head: "met"},
		{head: "tokens/s", drop: 1},
		{head: "TTFT p99", drop: 1},
		{head: "TBT p99", drop: 1},
		{head: "runs"},
		{head: "requests"},
		{head: "minutes", drop: 2},
	}}}
	for i := range t.Systems {
		s := &t.Systems[i]
		effort := []cell{text(term.Count(int64(s.Effort.Runs))), text(term.Count(s.Effort.Requests)), text(fmt.Sprintf("%.1f", s.Effort.Minutes))}
		if s.Best != nil {
			b.table.rows = append(b.table.rows, append(s.Best.row(s.Name), effort...))
			effort = []cell{{}, {}, {}}
		} else if s.Unmeasured() {
			none := text(term.None)
			b.table.rows = append(b.table.rows, append([]cell{text(term.Plain(s.Name)), text("none: nothing was measured"), none, {}, none, none, none, none}, effort...))
			if why := s.failure(); why != "" {
				b.notes = append(b.notes, s.Name+": "+term.Plain(why))
			}
			continue
		}
		if s.Default != nil {
			b.table.rows = append(b.table.rows, append(s.Default.row(s.Name), effort...))
		}
		for _, n := range s.Notes {
			b.notes = append(b.notes, s.Name+": "+n.Text)
		}
	}
	b.notes = append(b.notes, "good/s: requests a second that met "+joined(" and ", t.Objectives...)+"; runs, requests and minutes of load: all that the system's tuning took")
	return b
}

// Unmeasured says that no settings of the system could be measured, not even the
// default ones.
func (s *TunedSystem) Unmeasured() bool {
	if s.Best != nil || s.Default != nil && s.Default.GoodRPS != nil {
		return false
	}
	for _, r := range s.Rounds {
		for _, x := range r.Trials {
			if x.GoodRPS != nil {
				return false
			}
		}
	}
	return true
}

// failure is why the first of the system's trials failed; empty where none did.
func (s *TunedSystem) failure() string {
	for _, r := range s.Rounds {
		for _, x := range r.Trials {
			if x.Failed != "" {
				return x.Failed
			}
		}
	}
	return ""
}

// row is a trial in the summary.
func (x *TuneTrial) row(system string) []cell {
	rate := func(v *float64) cell {
		if v == nil {
			return text(term.None)
		}
		return text(term.Number(*v, false))
	}
	span := func(v *float64) cell {
		if v == nil {
			return text(term.None)
		}
		return text(term.Duration(*v))
	}
	met := text(term.None)
	if x.Share != nil {
		met = text(term.Percent(*x.Share))
	}
	between := cell{tone: term.Faint}
	if x.Low != nil && x.High != nil {
		between.text = term.Number(*x.Low, false) + "–" + term.Number(*x.High, false)
	}
	return []cell{text(term.Plain(system)), text(x.words()), rate(x.GoodRPS), between, met, rate(x.TokensPerS), span(x.TTFTP99), span(x.TBTP99)}
}

// words are the trial's settings.
func (x *TuneTrial) words() string {
	if !x.Tuned {
		return "default settings"
	}
	return settingWords(x.Settings)
}

func settingWords(all []Setting) string {
	var parts []string
	for _, set := range all {
		parts = append(parts, set.Key[strings.LastIndexByte(set.Key, '.')+1:]+"="+set.Value)
	}
	return term.Plain(strings.Join(parts, " "))
}

// rounds is what was tried of one system.
func (s *TunedSystem) rounds() block {
	b := block{title: "Tried: " + term.Plain(s.Name), table: &table{columns: []column{
		{head: "settings", left: true, flex: true}, {head: "round"}, {head: "requests"}, {head: "good/s"}, {head: "[95 %]", left: true}, {head: "met"}, {head: "", left: true},
	}}}
	b.fact("system", term.Plain(s.System))
	for i := range s.Rounds {
		for k := range s.Rounds[i].Trials {
			x := &s.Rounds[i].Trials[k]
			row := x.row("")
			mark := ""
			switch {
			case x.Failed != "":
				mark = term.Plain(x.Failed)
			case x.Kept:
				mark = "kept"
			}
			b.table.rows = append(b.table.rows, []cell{row[1], text(fmt.Sprint(i + 1)), text(term.Count(x.Requests)), row[2], row[3], row[4], text(mark)})
		}
	}
	return b
}
