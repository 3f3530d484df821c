package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// variantNames are how people read the variants of the fluidity index.
var variantNames = map[string]string{"decode": "decode only", "first_token": "first token"}

func variantName(v string) string {
	if n := variantNames[v]; n != "" {
		return n
	}
	return v
}

// fluidity is the block of the fluidity index: variant by target gap, with the
// deadline of the first token and the slack that went into it.
func fluidity(r *metrics.Result) block {
	b := block{title: "Fluidity: the share of token deadlines met, per request"}
	t := &table{columns: []column{
		{head: "deadlines", left: true},
		{head: "gap"},
		{head: "F p50"},
		{head: "p10"},
		{head: "p1", drop: 3},
		{head: "mean", drop: 4},
		{head: "F ≥ 0.9"},
		{head: "met", drop: 2},
		{head: "missed", drop: 1},
		{head: "n"},
		{head: "without F", drop: 5},
	}}
	for _, f := range asStated(r) {
		d := f.Index
		if d == nil {
			d = &metrics.Dist{Missing: r.Load.Measured}
		}
		if d.N == 0 && d.Missing == 0 {
			continue // no request was measured
		}
		share := cell{text: amountOrNone("share", f.ShareAtLeast0_9)}
		if f.ShareAtLeast0_9 != nil && *f.ShareAtLeast0_9 < 0.9 {
			share.tone = term.Bad
		}
		t.rows = append(t.rows, []cell{
			text(fluidityName(f)), text(term.Bound(f.TargetGapNs)),
			quantileCell("index", d, 0.5), quantileCell("index", d, 0.1), quantileCell("index", d, 0.01),
			text(amountOrNone("index", d.Mean)), share, text(term.ShortCount(f.Met)), text(term.ShortCount(f.Missed)),
			text(term.ShortCount(d.N)), missingCell(d.Missing),
		})
		for _, fact := range deadlineFacts(f) {
			if !slices.Contains(b.facts, fact) {
				b.facts = append(b.facts, fact)
			}
		}
	}
	b.table = t
	if len(t.rows) == 0 {
		return block{}
	}
	b.notes = append(b.notes, "a failed request has F = 0; met and missed count the deadlines of ok answers")
	return b
}

// fluidityStats are the percentiles that the block shows.
var fluidityStats = []stat{{p: 0.5}, {p: 0.1}, {p: 0.01}}

func fluidityRows(r *metrics.Result) []named {
	var rows []named
	for _, f := range asStated(r) {
		if f.Index != nil {
			rows = append(rows, named{fluidityName(f), "index", f.Index})
		}
	}
	return rows
}

// asStated are the entries with the first token's deadline as it was given; those
// where it is moved stand behind the first of its variant and gap.
func asStated(r *metrics.Result) []*metrics.Fluidity {
	var all []*metrics.Fluidity
	for i := range r.Fluidity {
		f := &r.Fluidity[i]
		if !slices.ContainsFunc(all, func(o *metrics.Fluidity) bool { return o.Variant == f.Variant && o.TargetGapNs == f.TargetGapNs }) {
			all = append(all, f)
		}
	}
	return all
}

// moved is the block of what becomes of F where the first token's deadline is
// moved: other slack, the edges of the curve's band, nothing carried over.
func moved(r *metrics.Result) block {
	type place struct {
		edge  string
		slack int64
	}
	var places []place
	shares := map[string]map[place]*float64{}
	var order []string
	t := &table{columns: []column{{head: "gap"}, {head: "unused time", left: true}}}
	for i := range r.Fluidity {
		f := &r.Fluidity[i]
		if f.Variant != "first_token" || f.SlackNs == nil {
			continue
		}
		at, row := place{f.Edge, *f.SlackNs}, term.Bound(f.TargetGapNs)+"|"+carryName(f.Carry)
		if !slices.Contains(places, at) {
			places = append(places, at)
			head := "S = " + term.Bound(at.slack)
			if at.edge != "fit" {
				head = at.edge + " edge"
			}
			t.columns = append(t.columns, column{head: head})
		}
		if shares[row] == nil {
			shares[row] = map[place]*float64{}
			order = append(order, row)
		}
		shares[row][at] = f.ShareAtLeast0_9
	}
	if len(places) < 2 {
		return block{}
	}
	for _, row := range order {
		gap, carry, _ := strings.Cut(row, "|")
		cells := []cell{text(gap), text(carry)}
		for _, at := range places {
			cells = append(cells, text(amountOrNone("share", shares[row][at])))
		}
		t.rows = append(t.rows, cells)
	}
	return block{
		title: "Share of requests with F ≥ 0.9, the first token's deadline moved", table: t,
		notes: []string{"where columns differ, what is claimed hangs on the curve or the slack; where rows differ, unused time of the first token hides stalls"},
	}
}

// carryName is what becomes of the time that the first token left unused.
func carryName(carry string) string {
	if carry == "none" {
		return "forfeited"
	}
	return "carried over"
}

func fluidityName(f *metrics.Fluidity) string { return variantName(f.Variant) }

// deadlineFacts are the first token's deadline D_p and the slack S in it.
func deadlineFacts(f *metrics.Fluidity) []fact {
	var facts []fact
	if d := f.Deadline; d != nil {
		s := term.Plain(d.Text)
		if d.Source != "" {
			s += " (" + term.Plain(d.Source) + ")"
		}
		facts = append(facts, fact{key: "first token D_p", text: s})
	}
	if f.SlackNs != nil {
		facts = append(facts, fact{key: "slack S", text: term.Bound(*f.SlackNs)})
	}
	return facts
}

// rates are the tokens-a-second figures of one recording: what a mean, a tail
// and a reader make of the same arrivals.
func rates(r *metrics.Result) block {
	b := block{title: "Token rates of this one recording"}
	rate := func(key string, v *float64, of string, d *metrics.Dist, p float64) {
		if v != nil {
			if d != nil && claimed(d, p) == nil {
				of += ", from too few requests to state it"
			}
			b.fact(key, term.Number(*v, false)+" tokens/s — "+of)
		}
	}
	rate("1/median TPOT", r.Rates.TPOT, "what a mean pace promises", r.Metrics.TPOT, 0.5)
	rate("1/p99 TBT", r.Rates.TailTBT, "what one gap in a hundred allows", r.Metrics.TBT, 0.99)
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		b.fact("fluid rate", fluidText(f))
	}
	return b
}

func fluidText(f *metrics.FluidRate) string {
	condition := fmt.Sprintf("%s: %g%% of requests keep F ≥ %g", variantName(f.Variant), math.Round(f.Share*1e5)/1e3, f.Index)
	if !f.Feasible || f.TokensPS == nil {
		return "infeasible — " + condition + " at no gap (failed requests have F = 0)"
	}
	s := term.Number(*f.TokensPS, false) + " tokens/s"
	if f.Low != nil || f.High != nil {
		s += " " + interval("tokens/s", f.Low, f.High)
	}
	if f.GapNs != nil {
		condition += " at a gap of D_d* = " + term.Duration(float64(*f.GapNs))
	}
	return s + " — " + condition
}
