package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fermata/internal/chart"
	"fermata/internal/term"
)

// sections are the pictures of a study: of endpoints Etalon's figures 5a to 5d, of
// simulated systems each statistic side by side.
func (s *Study) sections() []section {
	speeds := section{ID: "speeds", Title: "How fast they are, and how that is measured", Pictures: present(s.endpointRates(), s.rateLanes())}
	how := section{ID: "how", Title: "How the answers come", Pictures: present(s.endpointTogether(), s.endpointTTFT(), s.endpointFluidity())}
	each := section{ID: "statistics", Title: "Each statistic side by side"}
	for i := range s.statistics() {
		if p := s.statistic(i); p != nil {
			each.Pictures = append(each.Pictures, *p)
		}
	}
	return filled(speeds, how, each)
}

// between is an interval in words, with a space before it.
func between(low, high *float64) string { return prefixed(" ", interval("tokens/s", low, high)) }

// endpointRates are Etalon's figure 5a: three rates of each endpoint side by side.
func (s *Study) endpointRates() *picture {
	p := &picture{
		ID: "rates", Title: "Three rates of each endpoint", Wide: true,
		Lead:    "Tokens a second that a reader may count on: by the median TPOT, by the 99th percentile of gaps, and by fluidity; with 95 % intervals over all requests.",
		columns: []string{"endpoint", "rate", "tokens a second", "low", "high", "rounds p10", "rounds p90", "from", "to"},
	}
	var all []lane
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Rounds == 0 {
			continue
		}
		name := term.Plain(e.Name)
		all = append(all, lane{text: name})
		for k, r := range e.Rates {
			label := studyRates[slices.IndexFunc(studyRates, func(o studyRate) bool { return o.name == r.Rate })].label
			l := lane{class: seriesClass(k), value: r.Value, low: r.Low, high: r.High, text: label + " " + amountOrNone("tokens/s", r.Value) + between(r.Low, r.High)}
			l.cells = []string{name, label, numberOrNone(r.Value), numberOrNone(r.Low), numberOrNone(r.High), "", "", e.From, e.To}
			if r.Rounds != nil {
				l.cells[5], l.cells[6] = plainNumber(r.Rounds.P10), plainNumber(r.Rounds.P90)
			}
			all = append(all, l)
		}
	}
	p.Legend = rateLegend()
	return p.drawLanes(chart.Axis{Label: "tokens/s", Format: numberTick}, all)
}

func rateLegend() []legendKey {
	var keys []legendKey
	for k, r := range studyRates {
		keys = append(keys, legendKey{"fill " + seriesClass(k), r.label})
	}
	return keys
}

// statisticOfRate are the statistics that are the three rates.
var statisticOfRate = []string{"rates.tpot", "rates.tail_tbt", "rates.fluid"}

// rateLanes are the three rates of simulated systems, where the study has more than
// one of them.
func (s *Study) rateLanes() *picture {
	if len(s.Endpoints) > 0 || s.rateStatistics() < 2 {
		return nil
	}
	p := &picture{
		ID: "rates", Title: "Three rates of each system", Wide: true,
		Lead:    "Tokens a second that a reader may count on: by the median TPOT, by the 99th percentile of gaps, and by fluidity.",
		columns: []string{"system", "rate", "tokens a second", "lowest", "highest", "runs", "status"},
		Legend:  rateLegend(),
	}
	var all []lane
	for i := range s.Points {
		point := &s.Points[i]
		all = append(all, lane{text: point.words()})
		for k, name := range statisticOfRate {
			at := slices.IndexFunc(point.Statistics, func(v StudyValue) bool { return v.Name == name })
			if at < 0 {
				continue
			}
			v := &point.Statistics[at]
			l := v.lane(studyRates[k].label+" ", point.words(), studyRates[k].label)
			l.class = seriesClass(k)
			all = append(all, l)
		}
	}
	if slices.ContainsFunc(s.Points, func(p StudyPoint) bool { return len(p.Seeds) > 1 }) {
		p.Lead += " " + overSeeds
	}
	return p.drawLanes(chart.Axis{Label: "tokens/s", Format: numberTick}, all)
}

func (s *Study) rateStatistics() int {
	n := 0
	for _, v := range s.statistics() {
		if slices.Contains(statisticOfRate, v.Name) {
			n++
		}
	}
	return n
}

// statistics are those that every point has.
func (s *Study) statistics() []StudyValue {
	if len(s.Points) == 0 {
		return nil
	}
	return s.Points[0].Statistics
}

const overSeeds = "Of several seeds the median, the thin line from the lowest to the highest."

// words name a point.
func (p *StudyPoint) words() string {
	return orText(strings.TrimSpace(term.Plain(p.Name)+" "+settingWords(p.Settings)), "value")
}

// lane is a statistic of a point; without its interval where there is one run.
func (v *StudyValue) lane(lead, point, column string) lane {
	l := lane{value: v.Median, text: lead + v.cell().Text(), cells: []string{point, column, "", "", "", fmt.Sprint(len(v.Runs)), ""}}
	if v.unstated() {
		l.cells[6] = statusInsufficient
	}
	if v.Median != nil {
		l.cells[2] = dataText(v.Unit, *v.Median)
	}
	if v.Median != nil && len(v.Runs) > 1 {
		l.low, l.high = v.Low, v.High
		l.cells[3], l.cells[4] = dataText(v.Unit, *v.Low), dataText(v.Unit, *v.High)
	}
	return l
}

// dataText writes a value of a table of data: times in ms.
func dataText(unit string, v float64) string {
	if unit == "ns" {
		return inMs(v)
	}
	return plainNumber(v)
}

// statistic is one statistic of all points.
func (s *Study) statistic(i int) *picture {
	name := s.statistics()[i].Name
	p := &picture{
		ID: "statistic-" + fmt.Sprint(i), Title: term.Plain(name),
		columns: []string{"system", "statistic", "value", "lowest", "highest", "runs", "status"},
	}
	unit := ""
	var all []lane
	several := false
	for k := range s.Points {
		v := &s.Points[k].Statistics[i]
		unit = orText(unit, v.Unit)
		several = several || len(v.Runs) > 1
		l := v.lane(s.Points[k].words()+": ", s.Points[k].words(), v.Name)
		l.class = seriesClass(s.system(k))
		all = append(all, l)
	}
	if several {
		p.Lead = overSeeds
	}
	if slices.ContainsFunc(s.Points, func(p StudyPoint) bool { return p.Statistics[i].unstated() }) {
		p.Notes = append(p.Notes, noteFew)
	}
	axis := chart.Axis{Label: unit, Format: numberTick}
	switch unit {
	case "ns":
		p.columns[2], p.columns[3], p.columns[4] = "value (ms)", "lowest (ms)", "highest (ms)"
		axis.Label, axis.Format = "time", timeTick
	case "share":
		axis.Format = percentTick
	case "1":
		axis.Label = ""
	}
	return p.drawLanes(axis, all)
}

// system is the number of a point's system among those of the study: it has their
// colour.
func (s *Study) system(k int) int {
	var names []string
	for _, p := range s.Points[:k+1] {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return slices.Index(names, s.Points[k].Name)
}

// endpointTogether is figure 5b: how many tokens come with the one before.
func (s *Study) endpointTogether() *picture {
	p := &picture{
		ID: "together", Title: "Tokens that come together",
		Lead:    "Of the tokens after the first, those in the same event, and in the same socket read, as the token before.",
		columns: []string{"endpoint", "together in one", "share of tokens"},
		Legend:  []legendKey{{"fill s0", "same event"}, {"fill s1", "same socket read"}},
	}
	var all []lane
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if e.Rounds == 0 || e.SameEventShare == nil && e.SameReadShare == nil {
			continue
		}
		name := term.Plain(e.Name)
		all = append(
			all, lane{text: name},
			lane{class: "s0", value: e.SameEventShare, text: "same event " + amountOrNone("share", e.SameEventShare), cells: []string{name, "event", numberOrNone(e.SameEventShare)}},
			lane{class: "s1", value: e.SameReadShare, text: "same read " + amountOrNone("share", e.SameReadShare), cells: []string{name, "socket read", numberOrNone(e.SameReadShare)}},
		)
	}
	return p.drawLanes(chart.Axis{Max: 0.01, Format: percentTick}, all)
}

// endpointTTFT is figure 5c: the time to the first token by the length of the prompt.
func (s *Study) endpointTTFT() *picture {
	p := &picture{
		ID: "ttft-prompt", Title: "Time to first token, by the prompt", Hover: "x",
		Lead:    "From the sending. The median of prompts of about one length, and from the 10th to the 90th percentile.",
		columns: []string{"endpoint", "prompt tokens, from", "to", "requests", "p10 (ms)", "p50 (ms)", "p90 (ms)", "longest (ms)"},
	}
	plot := chart.Plot{X: chart.Axis{Label: "prompt tokens", Scale: chart.Log, Format: countTick, Whole: true}, Y: logTimes()}
	short, long, least, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if len(e.TTFT) == 0 {
			continue
		}
		line, band := chart.Line{Class: "thick " + seriesClass(i)}, chart.Band{Class: seriesClass(i)}
		for _, t := range e.TTFT {
			x := math.Sqrt(float64(t.From) * float64(t.To)) // the middle of an octave
			line.X, line.Y = append(line.X, x), append(line.Y, max(t.P50, 1))
			band.X, band.Low, band.High = append(band.X, x), append(band.Low, max(t.P10, 1)), append(band.High, max(t.P90, 1))
			short, long, least, most = min(short, x), max(long, x), min(least, max(t.P10, 1)), max(most, t.P90)
			p.row(i, x, max(t.P50, 1), term.Plain(e.Name), fmt.Sprint(t.From), fmt.Sprint(t.To-1), fmt.Sprint(t.N), inMs(t.P10), inMs(t.P50), inMs(t.P90), inMs(t.Max))
		}
		plot.Marks = append(plot.Marks, band, line, chart.Dots{Class: seriesClass(i), X: line.X, Y: line.Y, Radius: 3})
		p.Legend = append(p.Legend, legendKey{seriesClass(i), term.Plain(e.Name)})
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.X.Min, plot.X.Max = bounds(short, long)
	plot.Y.Min, plot.Y.Max = bounds(least, most)
	p.Name = "Time to first token by prompt length of " + listed(legendTexts(p.Legend))
	p.draw(plot)
	return p
}

func legendTexts(keys []legendKey) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.Text)
	}
	return all
}

// endpointFluidity is figure 5d: how fluid answers are at each target gap.
func (s *Study) endpointFluidity() *picture {
	p := &picture{
		ID: "fluidity-gap", Title: "Fluidity by the target gap", Hover: "x",
		Lead:    "Decode only. Thick: the share of answers with F ≥ 0.9. Thin: the index that 99 of 100 answers have at least.",
		columns: []string{"endpoint", "target gap (ms)", "p1 of F", "median F", "share with F ≥ 0.9"},
	}
	plot := chart.Plot{X: logTimes(), Y: chart.Axis{Label: "index, share", Min: 0, Max: 1, Format: numberTick}}
	plot.X.Label = "target gap"
	least, most := math.Inf(1), 0.0
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if len(e.Fluidity) == 0 {
			continue
		}
		fluent, worst := chart.Line{Class: "thick " + seriesClass(i)}, chart.Line{Class: "thin " + seriesClass(i)}
		for _, f := range e.Fluidity {
			x := float64(f.TargetGapNs)
			least, most = min(least, x), max(most, x)
			if f.P1 != nil {
				worst.X, worst.Y = append(worst.X, x), append(worst.Y, *f.P1)
			}
			if f.Share == nil {
				continue
			}
			fluent.X, fluent.Y = append(fluent.X, x), append(fluent.Y, *f.Share)
			p.row(i, x, *f.Share, term.Plain(e.Name), inMs(x), numberOrNone(f.P1), numberOrNone(f.P50), plainNumber(*f.Share))
		}
		plot.Marks = append(plot.Marks, worst, fluent, chart.Dots{Class: seriesClass(i), X: fluent.X, Y: fluent.Y, Radius: 3})
		p.Legend = append(p.Legend, legendKey{seriesClass(i), term.Plain(e.Name)})
	}
	if len(p.rows) == 0 {
		return nil
	}
	plot.X.Min, plot.X.Max = bounds(least, most)
	p.Name = "Fluidity by the target gap of " + listed(legendTexts(p.Legend))
	p.draw(plot)
	return p
}
