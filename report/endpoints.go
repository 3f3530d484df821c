package report

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"fermata/internal/term"
	"fermata/metrics"
	"fermata/recording"
)

// A StudyEndpoint is one endpoint of a study over all rounds: Etalon's figures 5a
// to 5d of it. A speed is never one number: it has its interval, the spread over
// rounds, and the dates between which it was seen.
type StudyEndpoint struct {
	Name     string `json:"name"`
	Target   string `json:"target"`
	Model    string `json:"model,omitempty"`
	From     string `json:"from,omitempty"` // the first round and the last, RFC 3339
	To       string `json:"to,omitempty"`
	Rounds   int    `json:"rounds"`  // that were recorded
	Planned  int    `json:"planned"` // that were to be
	Requests int64  `json:"requests"`
	Failed   int64  `json:"failed"`

	Rates          []StudyRate     `json:"rates"`                      // 5a: tpot, tail_tbt and fluid
	TPS            *StudySpread    `json:"tps,omitempty"`              // of single answers
	SameEventShare *float64        `json:"same_event_share,omitempty"` // 5b: of decode tokens
	SameReadShare  *float64        `json:"same_read_share,omitempty"`
	TTFT           []StudyTTFT     `json:"ttft"`     // 5c: by the length of the prompt
	Fluidity       []StudyFluidity `json:"fluidity"` // 5d: decode only

	rounds      map[string][]float64 // rates of each round
	first, last time.Time
}

// A StudyRate is one way to say how fast an endpoint is, over all rounds.
type StudyRate struct {
	Rate   string       `json:"rate"` // tpot, tail_tbt or fluid
	Value  *float64     `json:"tokens_per_s,omitempty"`
	Low    *float64     `json:"low,omitempty"` // 95 % interval
	High   *float64     `json:"high,omitempty"`
	Rounds *StudySpread `json:"rounds,omitempty"` // of the rounds' own
}

// A StudySpread is what lies in the middle, and between which values most do.
type StudySpread struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
}

// A StudyTTFT is the time to the first token of prompts of about one length, from
// the sending.
type StudyTTFT struct {
	From int32   `json:"from_tokens"` // a power of two …
	To   int32   `json:"to_tokens"`   // … and the next, which is not in it
	N    int     `json:"n"`
	P10  float64 `json:"p10_ns"`
	P50  float64 `json:"p50_ns"`
	P90  float64 `json:"p90_ns"`
	Max  float64 `json:"max_ns"`
}

// A StudyFluidity is the fluidity index at one target gap.
type StudyFluidity struct {
	TargetGapNs int64    `json:"target_gap_ns"`
	P1          *float64 `json:"p1,omitempty"` // the index that 99 of 100 answers have at least
	P50         *float64 `json:"p50,omitempty"`
	Share       *float64 `json:"share_at_least_0_9,omitempty"`
}

// A studyRate is one way to say how fast an endpoint is.
type studyRate struct {
	name, label string
	of          func(r *metrics.Result) *float64
}

// The rates of a study, in the order of Etalon's figure 5a.
var studyRates = []studyRate{
	{"tpot", "by TPOT", func(r *metrics.Result) *float64 { return r.Rates.TPOT }},
	{"tail_tbt", "by tail TBT", func(r *metrics.Result) *float64 { return r.Rates.TailTBT }},
	{"fluid", "fluid", func(r *metrics.Result) *float64 { return r.Rates.Fluid }},
}

// AddRound adds what one round said.
func (e *StudyEndpoint) AddRound(at time.Time, r *metrics.Result) {
	if e.rounds == nil {
		e.rounds = map[string][]float64{}
	}
	if e.Rounds++; e.Rounds == 1 || at.Before(e.first) {
		e.first = at
	}
	if at.After(e.last) {
		e.last = at
	}
	e.From, e.To = e.first.UTC().Format(time.RFC3339), e.last.UTC().Format(time.RFC3339)
	for _, rate := range studyRates {
		if v := rate.of(r); v != nil {
			e.rounds[rate.name] = append(e.rounds[rate.name], *v)
		}
	}
}

// Sum adds what all rounds say together; r judges all of their requests, whose
// times are to be multiplied by scale.
func (e *StudyEndpoint) Sum(r *metrics.Result, all recording.Slice, scale float64) {
	e.Requests = r.Load.Measured
	e.Failed = r.Load.Measured - r.Outcomes[outcomeOK]
	e.SameEventShare, e.SameReadShare = r.SameEventShare, r.SameReadShare
	for _, rate := range studyRates {
		one := StudyRate{Rate: rate.name, Value: rate.of(r), Rounds: spreadOf(e.rounds[rate.name])}
		switch rate.name {
		case "tpot":
			one.Low, one.High = reciprocals(at(r.Metrics.TPOT, 0.5))
		case "tail_tbt":
			one.Low, one.High = reciprocals(at(r.Metrics.TBT, 0.99))
		default:
			for _, f := range r.FluidRate {
				if f.Variant == metrics.Decode {
					one.Low, one.High = f.Low, f.High
				}
			}
		}
		e.Rates = append(e.Rates, one)
	}
	if d := r.Metrics.TPS; d != nil {
		low, mid, high := at(d, 0.1), at(d, 0.5), at(d, 0.9)
		if low != nil && mid != nil && high != nil {
			e.TPS = &StudySpread{low.Value, mid.Value, high.Value}
		}
	}
	for _, f := range r.Fluidity {
		if f.Variant != metrics.Decode {
			continue
		}
		one := StudyFluidity{TargetGapNs: f.TargetGapNs, Share: f.ShareAtLeast0_9}
		if q := at(f.Index, 0.01); q != nil {
			one.P1 = &q.Value
		}
		if q := at(f.Index, 0.5); q != nil {
			one.P50 = &q.Value
		}
		e.Fluidity = append(e.Fluidity, one)
	}
	e.TTFT = ttftByLength(all, scale)
}

// reciprocals are a gap's interval in ns as rates in tokens a second.
func reciprocals(q *metrics.Quantile) (low, high *float64) {
	if q == nil {
		return nil, nil
	}
	per := func(ns *float64) *float64 {
		if ns == nil || !(*ns > 0) {
			return nil
		}
		v := 1e9 / *ns
		return &v
	}
	return per(q.High), per(q.Low)
}

func spreadOf(v []float64) *StudySpread {
	if len(v) == 0 {
		return nil
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return &StudySpread{rankOf(v, 0.1), rankOf(v, 0.5), rankOf(v, 0.9)}
}

// rankOf is the value of rank ⌈np⌉ of sorted values.
func rankOf(v []float64, p float64) float64 {
	return v[max(0, int(math.Ceil(p*float64(len(v))-1e-9))-1)]
}

// ttftByLength groups first tokens by octaves of the prompt's length.
func ttftByLength(all recording.Slice, scale float64) []StudyTTFT {
	by := map[int][]float64{}
	for i := range all {
		t := &all[i]
		first := t.FirstToken()
		if first < 0 || !t.Sent.OK || !t.Prompt.Used.OK || t.Prompt.Used.V < 1 {
			continue
		}
		at := t.Due - t.Sent.V
		for _, gap := range t.DeltaNs[:first+1] {
			at += gap
		}
		octave := bits.Len32(uint32(t.Prompt.Used.V)) - 1
		by[octave] = append(by[octave], scale*float64(at))
	}
	out := []StudyTTFT{}
	for octave := range 31 {
		v := by[octave]
		if len(v) == 0 {
			continue
		}
		slices.Sort(v)
		out = append(out, StudyTTFT{1 << octave, 1 << min(octave+1, 30), len(v), rankOf(v, 0.1), rankOf(v, 0.5), rankOf(v, 0.9), v[len(v)-1]})
	}
	return out
}

// AddEndpoint adds an endpoint, with its statistics over all rounds as a point.
func (s *Study) AddEndpoint(e StudyEndpoint, statistics []Statistic, pooled *metrics.Result) {
	s.Endpoints = append(s.Endpoints, e)
	var results []*metrics.Result
	if pooled != nil { // else it was never reached
		results = append(results, pooled)
	}
	s.Add(e.Name, nil, statistics, results)
	p := &s.Points[len(s.Points)-1]
	if p.System = e.Target; e.Model != "" {
		p.System += ", " + e.Model
	}
}

// endpointBlocks are the blocks of a study of endpoints.
func (s *Study) endpointBlocks() []block {
	rates := block{title: "Tokens a second (95 % interval over all requests; p10–p90 of the rounds)", table: &table{columns: []column{{head: "endpoint", left: true}}}}
	for _, r := range studyRates {
		rates.table.columns = append(rates.table.columns, column{head: r.label}, column{head: "[95 %]", name: r.label + " [95 %]", left: true, drop: 1}, column{head: "rounds", name: r.label + " rounds", left: true, drop: 2})
	}
	rates.table.columns = append(rates.table.columns, column{head: "TPS p10–p90", left: true, drop: 3})
	together := block{title: "Tokens that come together", table: &table{columns: []column{{head: "endpoint", left: true}, {head: "same event"}, {head: "same read"}}}}
	ttft := block{title: "TTFT by the length of the prompt, from the sending", table: &table{columns: []column{{head: "endpoint", left: true}, {head: "tokens"}, {head: "n"}, {head: "p10"}, {head: "p50"}, {head: "p90"}, {head: "max"}}}}
	fluid := block{title: "Fluidity by the target gap (decode)", table: &table{columns: []column{{head: "endpoint", left: true}, {head: "gap"}, {head: "p1"}, {head: "p50"}, {head: "share ≥ 0.9"}}}}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		name := term.Plain(e.Name)
		if e.Rounds == 0 {
			rates.notes = append(rates.notes, e.seen())
			continue
		}
		row := []cell{text(name)}
		for _, r := range e.Rates {
			row = append(row, text(amountOrNone("tokens/s", r.Value)), cell{text: interval("tokens/s", r.Low, r.High), tone: term.Faint}, text(r.Rounds.text()))
		}
		rates.table.rows = append(rates.table.rows, append(row, text(e.TPS.text())))
		rates.notes = append(rates.notes, e.seen())
		together.table.rows = append(together.table.rows, []cell{text(name), text(amountOrNone("share", e.SameEventShare)), text(amountOrNone("share", e.SameReadShare))})
		for _, t := range e.TTFT {
			ttft.table.rows = append(ttft.table.rows, []cell{
				text(name), text(fmt.Sprintf("%d–%d", t.From, t.To-1)), text(term.Count(int64(t.N))),
				text(term.Duration(t.P10)), text(term.Duration(t.P50)), text(term.Duration(t.P90)), text(term.Duration(t.Max)),
			})
		}
		for _, f := range e.Fluidity {
			fluid.table.rows = append(fluid.table.rows, []cell{text(name), text(term.Bound(f.TargetGapNs)), text(amountOrNone("index", f.P1)), text(amountOrNone("index", f.P50)), text(amountOrNone("share", f.Share))})
		}
	}
	return []block{rates, together, ttft, fluid}
}

func (s *StudySpread) text() string {
	if s == nil {
		return term.None
	}
	return term.Number(s.P10, false) + "–" + term.Number(s.P90, false)
}

// seen says when an endpoint was asked, and how often.
func (e *StudyEndpoint) seen() string {
	if e.Rounds == 0 {
		return fmt.Sprintf("%s: %s%s, 0 of %d rounds: it was never reached", term.Plain(e.Name), term.Plain(e.Target), prefixed(" · model ", term.Plain(e.Model)), e.Planned)
	}
	text := fmt.Sprintf("%s: %s%s, %s to %s, %d of %d rounds, %s requests", term.Plain(e.Name), term.Plain(e.Target), prefixed(" · model ", term.Plain(e.Model)), e.From, e.To, e.Rounds, e.Planned, term.Count(e.Requests))
	if e.Failed > 0 {
		text += fmt.Sprintf(", %s of them failed", term.Count(e.Failed))
	}
	return text
}
