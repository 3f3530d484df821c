package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"fermata/capacity"
	"fermata/compare"
	"fermata/metrics"
)

// sweptLoads is a sweep of four loads and everything at once, whose names are hostile.
func sweptLoads(knob string) *Sweep {
	s := &Sweep{Schema: SweepSchemaName, Tool: metrics.Tool{Name: "fermata", Version: "v0"}, System: hostileName, Knob: knob, Seeds: "fresh", GPUs: 2, From: "flag"}
	for i, rate := range []float64{2, 4, 6, 8, 0} {
		r := sample(hostileName, i >= 3)
		r.Load.OfferedRPS, r.Throughput.OutputTokensPerSFinished = ptr(rate*1.01), ptr(90*rate)
		r.Goodput = []metrics.Goodput{
			{Objective: hostileName, RequestsS: ptr(rate * .95), Share: ptr(.95), ShareLow: ptr(.93), ShareHigh: ptr(.97)},
			{Objective: "all", RequestsS: ptr(rate * (1 - float64(i)/10)), Share: ptr(1 - float64(i)/10), ShareLow: ptr(.97 - float64(i)/10), ShareHigh: ptr(min(1, 1.03-float64(i)/10))},
		}
		p := SweepPoint{Label: fmt.Sprintf("%s-%g", knob, rate), Value: ptr(rate)}
		if rate < 1 { // everything at once
			p.Label, p.Value, r.Load.OfferedRPS, r.Throughput.OutputTokensPerSFinished = "offline", nil, nil, ptr(1440.0)
		}
		s.AddPoint(p, r)
	}
	s.Knee = &SweepKnee{At: knob + "-4", Rule: "kleinrock_power"}
	s.Goodput = []SweepGoodput{
		{Objective: hostileName, Share: .9, At: knob + "-8", RPSPerGPU: ptr(4.04), TokensPerGPU: ptr(360.0), SureRPSPerGPU: ptr(3.0), Loss: ptr(.5), CostFactor: ptr(2.0)},
		{Objective: hostileName, Share: .99},
		{Objective: "all", Share: .9, At: knob + "-4", RPSPerGPU: ptr(2.02), TokensPerGPU: ptr(180.0), SureRPSPerGPU: ptr(1.01), FailsRPSPerGPU: ptr(3.03), Loss: ptr(.75), CostFactor: ptr(4.0)},
		{Objective: "all", Share: .99, At: knob + "-2", RPSPerGPU: ptr(1.01), TokensPerGPU: ptr(90.0), Loss: ptr(.875), CostFactor: ptr(8.0)},
	}
	return s
}

// searchedFor are searches: of one objective with two seeds, of another that found
// nothing, and a bisection.
func searchedFor() []*capacity.Result {
	none, bisected := sampleCapacity(), sampleCapacity()
	none.Objective, none.Target = hostileName, hostileName
	none.Capacity, none.Held, none.Ending, none.Reason = nil, nil, capacity.AlwaysMiss, hostileName
	none.Warnings = []metrics.Warning{{Code: "drift", Text: hostileName, Help: hostileName}}
	bisected.Method, bisected.Held, bisected.Objective, bisected.Capacity.Low, bisected.Capacity.High = capacity.Bisect, nil, "tpot<=30ms", nil, nil
	bisected.Search = []capacity.Step{{Rate: 1, Requests: 1000}, {Rate: 16, Requests: 1000, Misses: 900}, {Rate: 12, Requests: 1000, Misses: 5}}
	return []*capacity.Result{none, sampleCapacity(), sampleCapacity(), bisected}
}

func hostileTuning() *Tuning {
	t := tuning()
	s := &t.Systems[0]
	t.Title, s.Name, s.System = hostileName, hostileName, hostileName
	s.Rounds[0].Trials[1].Settings, s.Rounds[0].Trials[1].Failed = []Setting{{"scheduler.chunk", hostileName}}, hostileName
	again := *s.Best
	again.Requests = 1200
	s.Rounds = append(s.Rounds, TuneRound{Requests: 1200, Trials: []TuneTrial{again}})
	t.Systems = append(t.Systems, TunedSystem{Name: "dead", System: "x", Arms: 1, Rounds: []TuneRound{{Requests: 600, Trials: []TuneTrial{{Tuned: true, Failed: "no"}}}}})
	return t
}

// endpointStudy is Etalon's figure 5 of two endpoints, and one that was never reached.
func endpointStudy() *Study {
	s := NewStudy("v0", hostileName)
	rates := func(tpot, tail, fluid float64) []StudyRate {
		return []StudyRate{
			{Rate: "tpot", Value: &tpot, Low: ptr(tpot * .98), High: ptr(tpot * 1.02), Rounds: &StudySpread{tpot * .9, tpot, tpot * 1.1}},
			{Rate: "tail_tbt", Value: &tail, Low: ptr(tail * .5), High: nil, Rounds: nil},
			{Rate: "fluid", Value: &fluid, Low: ptr(fluid * .9), High: ptr(fluid * 1.1), Rounds: &StudySpread{fluid, fluid, fluid}},
		}
	}
	s.Endpoints = []StudyEndpoint{
		{
			Name: hostileName, Target: hostileName, Model: hostileName, From: "2026-11-29T00:00:00Z", To: "2026-11-30T00:00:00Z", Rounds: 24, Planned: 24, Requests: 480,
			Rates: rates(60, 2, 30), SameEventShare: ptr(.4), SameReadShare: ptr(.5),
			TTFT:     []StudyTTFT{{256, 512, 100, 1e8, 2e8, 4e8, 1e9}, {512, 1024, 100, 2e8, 3e8, 6e8, 1e9}},
			Fluidity: []StudyFluidity{{25e6, ptr(.2), ptr(.9), ptr(.5)}, {100e6, ptr(.9), ptr(1.0), ptr(.98)}},
		},
		{
			Name: "steady", Target: "http://b", From: "2026-11-29T00:00:00Z", To: "2026-11-30T00:00:00Z", Rounds: 23, Planned: 24, Requests: 460,
			Rates: rates(40, 35, 38), SameEventShare: ptr(0.0), TTFT: []StudyTTFT{{256, 512, 90, 1e8, 2e8, 4e8, 1e9}}, Fluidity: []StudyFluidity{{25e6, nil, nil, nil}, {100e6, ptr(.9), ptr(1.0), ptr(.98)}},
		},
		{Name: "gone", Target: "http://c", Planned: 24},
	}
	return s
}

// simulatedStudy has two systems under three seeds each.
func simulatedStudy(t testing.TB) *Study {
	t.Helper()
	var statistics []Statistic
	for _, name := range []string{"rates.tpot", "rates.tail_tbt", "rates.fluid", "tbt.p99", "failed_share", "scheduling_delay.p50"} {
		one, err := ParseStatistic(name)
		if err != nil {
			t.Fatal(err)
		}
		statistics = append(statistics, one)
	}
	s := NewStudy("v0", "")
	for _, name := range []string{"a", hostileName} {
		var results []*metrics.Result
		for range 3 {
			results = append(results, sample(name, name != "a"))
		}
		s.Add(name, []Setting{{"scheduler.chunk", "512"}}, statistics, results)
	}
	s.Claims = []Claim{ClaimOf(hostileName, hostileName, "ns", 1, 0, 2)}
	s.Caveat = hostileName
	s.BlindSpots = []compare.BlindSpot{{Code: metrics.StallHidden, Run: hostileName, Against: "a", Pairs: 2, Of: 3, Text: hostileName, Figures: map[string]float64{"tpot_p50_ns": 2e7}, Requests: []int64{1}}}
	return s
}

// A documentCase is a page about many runs, with the pictures that it must have.
type documentCase struct {
	name  string
	write func(io.Writer) error
	ids   []string
}

func documents(t testing.TB) []documentCase {
	return []documentCase{
		{"sweep", func(w io.Writer) error { return SweepHTML(w, sweptLoads("rate")) }, []string{"frontier-ttft", "frontier-tbt", "frontier-goodput", "attainment", "goodput", "offline-loss"}},
		{"users", func(w io.Writer) error { return SweepHTML(w, sweptLoads("concurrency")) }, []string{"frontier-ttft", "frontier-goodput", "attainment"}},
		{"capacity", func(w io.Writer) error { return CapacityHTML(w, searchedFor()[1:2], "v0") }, []string{"trace-0", "attainment-0"}},
		{"capacities", func(w io.Writer) error { return CapacityHTML(w, searchedFor(), "v0") }, []string{"capacities", "trace-0", "attainment-0", "trace-3", "attainment-3"}},
		{"tune", func(w io.Writer) error { return TuningHTML(w, hostileTuning()) }, []string{"best", "effort", "tried-0", "tried-1"}},
		{"study", func(w io.Writer) error { return StudyHTML(w, simulatedStudy(t)) }, []string{"rates", "statistic-0", "statistic-5"}},
		{"endpoints", func(w io.Writer) error { return StudyHTML(w, endpointStudy()) }, []string{"rates", "together", "ttft-prompt", "fluidity-gap"}},
	}
}

func textOf(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Pages about many runs have the same frame as those of runs: nothing from outside, no
// name that becomes markup, the same bytes twice.
func TestDocumentPages(t *testing.T) {
	for _, d := range documents(t) {
		text := textOf(t, d.write)
		if textOf(t, d.write) != text {
			t.Errorf("%s: a second page differs", d.name)
		}
		if n := strings.Count(text, "<script"); n != 1 {
			t.Errorf("%s: %d script elements", d.name, n)
		}
		body := scriptElement.ReplaceAllString(styleElement.ReplaceAllString(text, ""), "")
		for _, bad := range []string{"<img", "<script>", "<link", ` style="`, " onclick", "NaN", "Inf", "%!", "<no value>", "&lt;nil&gt;"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: %q stands in the page", d.name, bad)
			}
		}
		if d.name != "capacity" && !strings.Contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;") {
			t.Errorf("%s: the name is not shown", d.name)
		}
		if !strings.Contains(text, "default-src &#39;none&#39;;") {
			t.Errorf("%s: no policy", d.name)
		}
		for _, id := range d.ids {
			if !strings.Contains(text, `<figure class="chart`) || !strings.Contains(text, `id="`+id+`"`) {
				t.Errorf("%s: no picture %s", d.name, id)
			}
		}
	}
}

// Documents of which nothing is known make a page all the same.
func TestDocumentsOfNothing(t *testing.T) {
	none := sampleCapacity()
	none.Capacity, none.Held, none.Search, none.SaturationRPS = nil, nil, nil, nil
	for name, write := range map[string]func(io.Writer) error{
		"sweep":    func(w io.Writer) error { return SweepHTML(w, &Sweep{System: "x"}) },
		"capacity": func(w io.Writer) error { return CapacityHTML(w, []*capacity.Result{none}, "v0") },
		"tune":     func(w io.Writer) error { return TuningHTML(w, &Tuning{}) },
		"study":    func(w io.Writer) error { return StudyHTML(w, NewStudy("v0", "")) },
	} {
		if text := textOf(t, write); !strings.Contains(text, "</html>") || strings.Contains(text, "<figure") {
			t.Errorf("%s: the page is broken", name)
		}
	}
	if err := CapacityHTML(io.Discard, nil, "v0"); err == nil {
		t.Error("a page of no search")
	}
}

// column is a column of a picture's data.
func (p *picture) column(t *testing.T, name string) []string {
	t.Helper()
	i := slices.Index(p.columns, name)
	if i < 0 {
		t.Fatalf("%s has no column %s: %v", p.ID, name, p.columns)
	}
	var all []string
	for _, r := range p.rows {
		if len(r.cells) != len(p.columns) {
			t.Fatalf("%s: a row of %d cells under %d columns", p.ID, len(r.cells), len(p.columns))
		}
		all = append(all, r.cells[i])
	}
	return all
}

func inSections(t *testing.T, id string, sections []section) *picture {
	t.Helper()
	for _, s := range sections {
		for i := range s.Pictures {
			if s.Pictures[i].ID == id {
				return &s.Pictures[i]
			}
		}
	}
	t.Fatalf("there is no picture %s", id)
	return nil
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Of a sweep: no throughput without its latency in any row, everything at once by
// itself, and what a promise leaves of it a GPU.
func TestSweepPictures(t *testing.T) {
	h := sweptLoads("rate").htmlPage()
	ttft := inSections(t, "frontier-ttft", h.Sections)
	equal(t, "tokens", ttft.column(t, "output tokens/s"), "180", "360", "540", "720", "1440")
	equal(t, "offered", ttft.column(t, "offered requests/s")[:4], "2.02", "4.04", "6.06", "8.08")
	if n := strings.Count(string(ttft.SVG[0]), `class="line thick`); n != 2 {
		t.Errorf("%d lines: the loads are one, everything at once another", n)
	}
	if !strings.Contains(string(ttft.SVG[0]), ">knee: rate-4<") {
		t.Error("no knee")
	}
	good := inSections(t, "frontier-goodput", h.Sections)
	equal(t, "good", good.column(t, "good requests/s"), "2", "3.6", "4.8", "5.6")
	promised := inSections(t, "goodput", h.Sections)
	equal(t, "goodput", promised.column(t, "requests/s a GPU"), "4.04", "", "2.02", "1.01")
	equal(t, "less than", promised.column(t, "less than"), "", "", "3.03", "")
	loss := inSections(t, "offline-loss", h.Sections)
	equal(t, "tokens", loss.column(t, "tokens/s a GPU"), "720", "360", "180", "90")
	equal(t, "factor", loss.column(t, "cost over offline"), "", "2", "4", "8")
	for _, s := range h.Sections {
		for i := range s.Pictures {
			p := &s.Pictures[i]
			rates := slices.IndexFunc(p.columns, func(c string) bool { return strings.Contains(c, "s/s") })
			times := slices.IndexFunc(p.columns, func(c string) bool { return strings.Contains(c, "p99 (ms)") })
			if rates < 0 && p.ID == "attainment" {
				continue
			}
			if rates < 0 || times < 0 {
				t.Errorf("%s: columns %v", p.ID, p.columns)
				continue
			}
			for _, r := range p.rows {
				if r.cells[rates] != "" && r.cells[times] == "" {
					t.Errorf("%s: a throughput without its latency: %q", p.ID, r.cells)
				}
			}
		}
	}
	users := inSections(t, "frontier-goodput", sweptLoads("concurrency").htmlPage().Sections)
	equal(t, "users", users.column(t, "users"), "2", "4", "6", "8")
	if strings.Contains(string(users.SVG[0]), "ideal") {
		t.Error("users are not requests: there is no line on which all were good")
	}
}

// Of a search: every outcome is in the trace, and the blocks that are taken together
// for the attainment are the same outcomes.
func TestCapacityPictures(t *testing.T) {
	sections := capacitySections(searchedFor()[1:2])
	trace, attained := inSections(t, "trace-0", sections), inSections(t, "attainment-0", sections)
	if all := trace.column(t, "outcomes so far"); len(all) != 25 || all[23] != "2400" || all[24] != "17305" {
		t.Errorf("outcomes %v", all)
	}
	sum := func(p *picture, name string) int {
		n := 0
		for _, v := range p.column(t, name) {
			k, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		return n
	}
	for _, p := range []*picture{trace, attained} {
		if n, k := sum(p, "outcomes"), sum(p, "missed"); n != 2400+14905 || k != 4*30+131 {
			t.Errorf("%s: %d outcomes, %d missed", p.ID, n, k)
		}
	}
	// Blocks 20 to 23 missed 30 of 100 each, at the highest rates: two pairs.
	met := attained.column(t, "share that met it")
	equal(t, "attained", met[len(met)-4:], "1", "0.7", "0.7", "0.9912")
	if svg := string(trace.SVG[0]); strings.Count(svg[strings.Index(svg, "cross-mark"):], "M") < 8 {
		t.Error("four blocks missed more than may: no crosses")
	}
	long := sampleCapacity()
	for range 1000 {
		long.Search = append(long.Search, capacity.Step{Rate: 12, Requests: 10})
	}
	if n := len(inSections(t, "trace-0", capacitySections([]*capacity.Result{long})).rows); n != mostTraced+1 {
		t.Errorf("a trace of %d rows", n)
	}
	lanes := inSections(t, "capacities", capacitySections(searchedFor()))
	equal(t, "capacities", lanes.column(t, "requests/s"), "", "12.125", "12.125", "12.125")
	equal(t, "low", lanes.column(t, "low"), "", "11.5", "11.5", "")
}

// Of a tuning: every trial with its interval and its latency, failures by their words.
func TestTunePictures(t *testing.T) {
	x := tuning()
	best := inSections(t, "best", x.sections())
	equal(t, "best", best.column(t, "good requests/s"), "3.7", "3.7")
	equal(t, "low", best.column(t, "low"), "3.6", "3.6") // 0.9 of the 4 requests/s offered
	for _, v := range best.column(t, "mean latency (ms)") {
		if v == "" {
			t.Error("a goodput without its latency")
		}
	}
	tried := inSections(t, "tried-0", x.sections())
	equal(t, "settings", tried.column(t, "settings"), "chunk=512", "chunk=9")
	if !strings.Contains(string(tried.SVG[0]), "no run: it did not start") {
		t.Error("a failure is not told")
	}
	equal(t, "requests", inSections(t, "effort", x.sections()).column(t, "requests"), "1800")
}

// Of endpoints figure 5a to 5d: the three rates with their intervals side by side; who
// was never reached has no bar.
func TestStudyPictures(t *testing.T) {
	sections := endpointStudy().sections()
	rates := inSections(t, "rates", sections)
	equal(t, "rates", rates.column(t, "tokens a second"), "60", "2", "30", "40", "35", "38")
	equal(t, "high", rates.column(t, "high"), "61.2", "", "33", "40.8", "", "41.8")
	// The bar of 60 is 30 times as long as that of 2.
	var widths []float64
	for _, m := range regexp.MustCompile(`<rect class="bar s\d"[^>]* width="([0-9.]+)"`).FindAllStringSubmatch(string(rates.SVG[0]), -1) {
		w, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		widths = append(widths, w)
	}
	if len(widths) != 6 || math.Abs(widths[0]/widths[1]-30) > 0.2 {
		t.Errorf("bars %v", widths)
	}
	together := inSections(t, "together", sections)
	equal(t, "together", together.column(t, "share of tokens"), "0.4", "0.5", "0", "")
	equal(t, "TTFT", inSections(t, "ttft-prompt", sections).column(t, "p50 (ms)"), "200", "300", "200")
	equal(t, "fluid", inSections(t, "fluidity-gap", sections).column(t, "share with F ≥ 0.9"), "0.5", "0.98", "0.98")

	simulated := simulatedStudy(t).sections()
	equal(t, "rates", inSections(t, "rates", simulated).column(t, "rate"), "by TPOT", "by tail TBT", "fluid", "by TPOT", "by tail TBT", "fluid")
	equal(t, "p99", inSections(t, "statistic-3", simulated).column(t, "value (ms)"), inMs(at(sample("", false).Metrics.TBT, .99).Value), inMs(at(sample("", true).Metrics.TBT, .99).Value))
	equal(t, "what nobody has", inSections(t, "statistic-5", simulated).column(t, "value"), "", "")
}

// In a real browser, wide and narrow: every picture of these pages is drawn, named and
// inside the window; pointing reads a lane out.
func TestBrowserDrawsDocuments(t *testing.T) {
	b := startBrowser(t, 1280, 900)
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) {
			b.do(t, chromedp.EmulateViewport(1280, 900))
			b.load(t, textOf(t, d.write))
			b.wellDrawn(t, 1280, d.ids...)
			b.shoot(t, d.name+"-1280")
			b.do(t, chromedp.EmulateViewport(390, 900))
			b.wellDrawn(t, 390, d.ids...)
			b.shoot(t, d.name+"-390")
			if d.name != "tune" {
				return
			}
			b.js(t, `document.querySelector("#effort .stage").focus()`)
			b.do(t, chromedp.KeyEvent("\u0301"))
			if tip := eval[string](t, b, `document.querySelector("#effort .tip").textContent`); !strings.Contains(tip, "requests 1800") {
				t.Errorf("the arrow key reads %q", tip)
			}
		})
	}
}
