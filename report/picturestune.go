package report

import (
	"fmt"
	"slices"

	"fermata/internal/chart"
	"fermata/internal/term"
)

var trialColumns = []string{"system", "settings", "round", "requests", "good requests/s", "low", "high", "share good", "tokens/s", "TTFT p99 (ms)", "TBT p99 (ms)", "mean latency (ms)"}

// sections are the pictures of a tuning.
func (t *Tuning) sections() []section {
	best := section{ID: "best", Title: "Tuned beside default", Pictures: present(t.bests(), t.efforts())}
	each := section{ID: "tried", Title: "What was tried"}
	for i := range t.Systems {
		if p := t.Systems[i].tried(i); p != nil {
			each.Pictures = append(each.Pictures, *p)
		}
	}
	return filled(best, each)
}

// cells are a trial as a row of data.
func (x *TuneTrial) cells(system, round string) []string {
	return []string{
		term.Plain(system), x.words(), round, fmt.Sprint(x.Requests), numberOrNone(x.GoodRPS), numberOrNone(x.Low), numberOrNone(x.High), numberOrNone(x.Share),
		numberOrNone(x.TokensPerS), msOrNone(x.TTFTP99), msOrNone(x.TBTP99), msOrNone(x.E2EMean),
	}
}

// goodText is a trial's goodput with its interval, and the latency that it was had at.
func (x *TuneTrial) goodText() string {
	switch {
	case x.Failed != "":
		return "no run: " + term.Plain(x.Failed)
	case x.GoodRPS == nil:
		return "nothing could be judged"
	}
	text := term.Number(*x.GoodRPS, false) + " good/s"
	if x.Low != nil && x.High != nil {
		text += " [" + term.Number(*x.Low, false) + ", " + term.Number(*x.High, false) + "]"
	}
	return text
}

// latencyText is that of a trial: of all requests, and where enough of them claim it
// at the tail.
func (x *TuneTrial) latencyText() string {
	if x.TTFTP99 == nil && x.TBTP99 == nil {
		return "mean latency " + amountOrNone("ns", x.E2EMean)
	}
	return "TTFT p99 " + amountOrNone("ns", x.TTFTP99) + " · TBT p99 " + amountOrNone("ns", x.TBTP99)
}

func (x *TuneTrial) lane(class, name, system, round string) lane {
	l := lane{class: class, value: x.GoodRPS, low: x.Low, high: x.High, text: x.goodText() + prefixed(" · ", name), cells: x.cells(system, round)}
	if x.GoodRPS != nil && x.Failed == "" {
		l.text += " · " + x.latencyText()
	}
	return l
}

// bests sets each system's best settings beside its default ones.
func (t *Tuning) bests() *picture {
	p := &picture{
		ID: "best", Title: "Goodput of the best settings and of the default ones", Wide: true,
		Lead:    "Requests a second that met " + joined(" and ", t.Objectives...) + ", with 95 % intervals, all under the load of the last round. A p99 is left out where too few requests claim it.",
		columns: trialColumns, Legend: []legendKey{{"fill s0", "best settings"}, {"fill s7", "default settings, untuned"}},
	}
	var all []lane
	for i := range t.Systems {
		s := &t.Systems[i]
		all = append(all, lane{text: term.Plain(s.Name)})
		if s.Best != nil {
			all = append(all, s.Best.lane("s0", s.Best.words(), s.Name, fmt.Sprint(len(s.Rounds))))
		}
		if s.Default != nil {
			all = append(all, s.Default.lane("s7", s.Default.words(), s.Name, ""))
		}
	}
	return p.drawLanes(chart.Axis{Label: "good requests/s", Format: numberTick}, all)
}

// efforts are what the tuning of each system took.
func (t *Tuning) efforts() *picture {
	p := &picture{
		ID: "effort", Title: "What it took", Wide: true,
		Lead:    "Requests of all runs of a system, with warm-ups, drains and the default settings. A comparison is fair where these are alike.",
		columns: []string{"system", "requests", "runs", "minutes of load", "starts of a server", "combinations of settings"},
	}
	var all []lane
	for i := range t.Systems {
		s := &t.Systems[i]
		asked := float64(s.Effort.Requests)
		all = append(all, lane{
			class: "s7", value: &asked,
			text:  fmt.Sprintf("%s requests in %s, %.1f minutes · %s", term.Count(s.Effort.Requests), counted(s.Effort.Runs, "run"), s.Effort.Minutes, term.Plain(s.Name)),
			cells: []string{term.Plain(s.Name), fmt.Sprint(s.Effort.Requests), fmt.Sprint(s.Effort.Runs), fmt.Sprintf("%.1f", s.Effort.Minutes), fmt.Sprint(s.Effort.Starts), fmt.Sprint(s.Arms)},
		})
	}
	return p.drawLanes(chart.Axis{Label: "requests", Format: countTick, Whole: true}, all)
}

// tried are all trials of a system, setting by setting: a bar a round.
func (s *TunedSystem) tried(i int) *picture {
	p := &picture{
		ID: fmt.Sprintf("tried-%d", i), Title: "Goodput by setting: " + term.Plain(s.Name), Wide: true,
		Lead:    "A bar a round that the settings were in, with its 95 % interval; the better half of a round went on to the next, which has twice the requests and other prompts.",
		columns: trialColumns,
	}
	var names []string
	bars := map[string][]lane{}
	for k := range s.Rounds {
		for j := range s.Rounds[k].Trials {
			x := &s.Rounds[k].Trials[j]
			name := x.words()
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			round := fmt.Sprint(k + 1)
			bars[name] = append(bars[name], x.lane(seriesClass(k), "round "+round, s.Name, round))
		}
		p.Legend = append(p.Legend, legendKey{"fill " + seriesClass(k), fmt.Sprintf("round %d, %s requests each", k+1, term.Count(s.Rounds[k].Requests))})
	}
	var all []lane
	for _, name := range names {
		all = append(append(all, lane{text: name}), bars[name]...)
	}
	return p.drawLanes(chart.Axis{Label: "good requests/s", Format: numberTick}, all)
}
