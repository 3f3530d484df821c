package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fermata/capacity"
	"fermata/compare"
	"fermata/deadline"
	"fermata/internal/chart"
	"fermata/metrics"
	"fermata/recording"
)

// A made run is a recording without a server, from a seed.
type made struct {
	name, model      string
	requests, tokens int
	rate             float64
	freeze           bool // every 20th answer stops for 4 s in its middle
	bunch            int  // tokens an event
	fail             bool // every 30th fails
	deadlines        string
}

// source is the recording: a server that takes 0.1 ms a prompt token and 30 ms a
// token, give or take.
func (m made) source() (recording.Slice, recording.Meta) {
	r := rand.New(rand.NewPCG(uint64(m.requests), uint64(m.tokens)))
	var all recording.Slice
	due := 0.0
	bunch := max(m.bunch, 1)
	for i := range m.requests {
		due += r.ExpFloat64() * 1e9 / m.rate
		t := recording.Trace{Index: int64(i), Phase: recording.Measured, Due: int64(due), Outcome: recording.OK, FinishReason: "length"}
		if i < m.requests/20 {
			t.Phase = recording.Warmup
		}
		prompt := 200 + r.IntN(3000)
		t.Prompt.Used, t.Sent = recording.Some(int32(prompt)), recording.Some(t.Due+50_000)
		t.ServerReceived, t.ServerQueue = recording.Some(t.Due+60_000), recording.Some(int64(r.ExpFloat64()*40e6))
		t.ServerPrefill = recording.Some(int64(prompt) * 100_000)
		first := 60_000 + t.ServerQueue.V + t.ServerPrefill.V
		for k := 0; k < m.tokens; k += bunch {
			gap := int64(bunch) * int64(30e6*math.Exp(r.NormFloat64()/4))
			switch {
			case k == 0:
				gap = first
			case m.freeze && i%20 == 7 && k >= m.tokens/2 && k < m.tokens/2+bunch:
				gap += 4e9
			}
			t.DeltaNs, t.Tokens = append(t.DeltaNs, gap), append(t.Tokens, int32(min(bunch, m.tokens-k)))
			t.Read, t.StampErrorNs = append(t.Read, int32(k)), append(t.StampErrorNs, 1000)
		}
		t.Output.Used = recording.Some(int32(m.tokens))
		if m.fail && i%30 == 11 {
			t.Outcome, t.FailedAt, t.HTTPStatus, t.Error = recording.HTTPError, recording.AtHeaders, 503, "</script><script>alert(1)</script>"
			t.DeltaNs, t.Tokens, t.Read, t.StampErrorNs, t.Output.Used = nil, nil, nil, nil, recording.Maybe[int32]{}
			t.End = recording.Some(t.Due + 5e6)
		}
		if at, ok := t.LastToken(); ok {
			t.End = recording.Some(at + 1000)
		}
		all = append(all, t)
	}
	start := int64(0)
	for i := range all {
		if all[i].Phase == recording.Measured {
			start = all[i].Due
			break
		}
	}
	return all, recording.Meta{TimeScale: 1, WindowStart: recording.Some(start), WindowEnd: recording.Some(int64(due) + 1), WindowWhy: "all requests were due"}
}

func (m made) portrayed(t testing.TB, show ...int64) Portrayed {
	t.Helper()
	src, meta := m.source()
	opt := metrics.Options{}
	for _, text := range []string{"ttft<=1s @90%", "fluidity>=0.9 gap=50ms"} {
		o, err := metrics.ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		opt.SLO = append(opt.SLO, o)
	}
	if m.deadlines != "" {
		d, err := deadline.Parse(m.deadlines)
		if err != nil {
			t.Fatal(err)
		}
		opt.Deadlines = d
	}
	r, err := metrics.Evaluate(src, meta, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	r.Run.Name, r.Run.Model, r.Run.Target = m.name, m.model, "http://127.0.0.1:8000"
	r.Tool = metrics.Tool{Name: "fermata", Version: "v0"}
	p, err := metrics.Portray(src, meta, r, opt, metrics.PortraitOptions{Show: show})
	if err != nil {
		t.Fatal(err)
	}
	return Portrayed{Result: r, Portrait: p}
}

func pageText(t testing.TB, runs ...Portrayed) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, runs, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	styleElement  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	scriptElement = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
)

// The page is the same for the same results. Style and script are files of their own
// and left out of the golden copy.
func TestHTMLGolden(t *testing.T) {
	one := made{name: "few", model: "m", requests: 12, tokens: 6, rate: 4, freeze: true, fail: true, deadlines: "fixed:300ms"}.portrayed(t)
	two := made{name: "bunched", model: "m", requests: 12, tokens: 6, rate: 8, bunch: 2}.portrayed(t)
	for _, runs := range [][]Portrayed{{one, two}, {one}} {
		text := pageText(t, runs...)
		if again := pageText(t, runs...); again != text {
			t.Errorf("a second page of %d runs differs", len(runs))
		}
		if len(runs) > 1 {
			continue
		}
		text = scriptElement.ReplaceAllString(styleElement.ReplaceAllString(text, "<style></style>"), "<script></script>")
		text = regexp.MustCompile(`sha256-[A-Za-z0-9+/&#;=]*`).ReplaceAllString(text, "sha256-")
		golden(t, filepath.Join("testdata", "one.html"), []byte(text))
	}
}

// The policy names exactly the style and the script of the page, and lets nothing
// else in; the page refers to nothing outside.
func TestHTMLIsSelfContained(t *testing.T) {
	text := pageText(t, made{name: "x", requests: 40, tokens: 10, rate: 4}.portrayed(t))
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;;") {
		t.Fatalf("the policy is %q", policy)
	}
	csp := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
	for _, e := range []*regexp.Regexp{styleElement, scriptElement} {
		found := e.FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%d elements %s", len(found), e)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(csp, want) {
			t.Errorf("%s is not in %s", want, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("the policy is %s", csp)
	}
	body := scriptElement.ReplaceAllString(styleElement.ReplaceAllString(text, ""), "")
	for _, bad := range []string{" src=", "<link", "<iframe", "@import", "url(", ` style="`, " onclick", " onload"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("it refers to %s", m[1])
		}
	}
}

// hostileName is what a server may say of itself.
const hostileName = `<script>alert(1)</script><img src=x onerror=alert(2)>"';--></style></script>`

// Text from servers is data wherever it comes to stand.
func TestHTMLEscapes(t *testing.T) {
	p := made{name: hostileName, model: hostileName, requests: 60, tokens: 8, rate: 4, fail: true}.portrayed(t)
	p.Result.Warnings = append(p.Result.Warnings, metrics.Warning{Code: hostileName, Text: hostileName, Help: hostileName},
		metrics.Warning{Code: "few_runs", Text: "one pair", Help: "In turns: `fermata run <x>`."})
	p.Result.Run.Labels = map[string]string{hostileName: hostileName}
	p.Result.SLO[0].Objective = hostileName
	q := p
	text := pageText(t, p, q)
	if n := strings.Count(text, "<script"); n != 2 { // ours, and the data's
		t.Errorf("%d script elements", n)
	}
	for _, bad := range []string{"<img", "<script>alert", "</style></script>", "</script><script>"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q stands in the page as markup", bad)
		}
	}
	if !strings.Contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the name is not shown")
	}
	if !strings.Contains(text, "In turns: <code>fermata run &lt;x&gt;</code>.") {
		t.Error("a command is not shown as one")
	}
}

// Pages of odd runs: of one request, of none that answered, of one without pictures.
func TestHTMLOfOddRuns(t *testing.T) {
	if err := HTML(&bytes.Buffer{}, nil, nil); err == nil {
		t.Error("a page of no run")
	}
	none := made{name: "none", requests: 3, tokens: 4, rate: 1}
	src, meta := none.source()
	for i := range src {
		src[i].Outcome, src[i].DeltaNs, src[i].Tokens, src[i].Read, src[i].StampErrorNs = recording.Refused, nil, nil, nil, nil
		src[i].Phase = recording.Measured
	}
	r, err := metrics.Evaluate(src, meta, nil, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := metrics.Portray(src, meta, r, metrics.Options{}, metrics.PortraitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, runs := range map[string][]Portrayed{
		"one request":    {made{name: "one", requests: 1, tokens: 1, rate: 1}.portrayed(t)},
		"one token each": {made{name: "one", requests: 30, tokens: 1, rate: 1}.portrayed(t)},
		"no answer":      {{Result: r, Portrait: p}},
		"no portrait":    {{Result: r}},
		"nothing":        {{Result: bare()}},
		"some of each":   {{Result: r}, {Result: r, Portrait: p}, made{name: "x", requests: 20, tokens: 3, rate: 2}.portrayed(t)},
	} {
		text := pageText(t, runs...)
		if !strings.Contains(text, "</html>") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf ") || strings.Contains(text, "%!") {
			t.Errorf("%s: the page is broken", name)
		}
		if empty := regexp.MustCompile(`</th></tr></thead><tbody>\s*</tbody>`).FindString(text); empty != "" {
			t.Errorf("%s: a table without a row: %s", name, empty)
		}
		if says := strings.Contains(text, "No measured request has a time."); says != (name == "nothing") {
			t.Errorf("%s: says that there is no time: %v", name, says)
		}
	}
}

// Of many runs a few are drawn by themselves, and the page says so above them.
func TestHTMLSaysWhatIsNotDrawn(t *testing.T) {
	run := made{name: "x", requests: 20, tokens: 3, rate: 2}.portrayed(t)
	const note = "Of 6 runs the first 4 are drawn by themselves; a page of the others draws those."
	if text := pageText(t, run, run, run, run, run, run); strings.Count(text, note) != 2 || strings.Contains(text, `id="raster-4"`) || !strings.Contains(text, `id="raster-3"`) {
		t.Errorf("%d notes", strings.Count(text, note))
	}
	if text := pageText(t, run, run, run, run); strings.Contains(text, "drawn by themselves") || !strings.Contains(text, `id="raster-3"`) {
		t.Error("all of four runs are drawn")
	}
	var all []*capacity.Result
	for range mostSearches + 1 {
		all = append(all, sampleCapacity())
	}
	for i, s := range capacitySections(all) {
		if want := "Of 13 searches the first 12 are drawn by themselves; the others stand in the table on top."; s.Note != want && i == 1 || s.Note != "" && i != 1 {
			t.Errorf("section %d: %q", i, s.Note)
		}
	}
}

// onPage is a page's picture of that ID.
func onPage(t *testing.T, id string, runs ...Portrayed) *picture {
	t.Helper()
	h, err := newHTMLPage(runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Sections {
		for i := range s.Pictures {
			if s.Pictures[i].ID == id {
				return &s.Pictures[i]
			}
		}
	}
	t.Fatalf("there is no picture %s", id)
	return nil
}

// A request that was given up as the run ended is a class of its own: neither failed
// nor finished.
func TestHTMLTellsWhatWasCut(t *testing.T) {
	src, meta := made{name: "cut", requests: 40, tokens: 6, rate: 4, fail: true}.source()
	for i := range src[30:] {
		one := &src[30+i]
		one.Outcome, one.DeltaNs, one.Tokens, one.Read, one.StampErrorNs = recording.TruncatedByUs, one.DeltaNs[:3], one.Tokens[:3], one.Read[:3], one.StampErrorNs[:3]
	}
	r, err := metrics.Evaluate(src, meta, nil, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	portrait, err := metrics.Portray(src, meta, r, metrics.Options{}, metrics.PortraitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run := Portrayed{Result: r, Portrait: portrait}
	raster := onPage(t, "raster-0", run)
	if !strings.HasSuffix(raster.Name, ", 1 failed, 10 cut by us at the end") {
		t.Error(raster.Name)
	}
	for _, key := range []legendKey{{"failed", "failed"}, {"cut", "cut by us at the end"}} {
		if !slices.Contains(raster.Legend, key) {
			t.Errorf("no %v in %v", key, raster.Legend)
		}
	}
	load := onPage(t, "load-0", run)
	total, rows := map[string]float64{}, map[string]int{}
	for _, row := range load.rows {
		total[row.cells[0]] += row.y
		rows[row.cells[0]]++
	}
	for rate, want := range map[string]float64{"achieved": 1, "finished": .75, "failed": 1. / 40, "cut by us": .25} {
		if got := total[rate] / total["offered"]; math.Abs(got-want) > 1e-9 || rows[rate] != rows["offered"] {
			t.Errorf("%s: %v of the offered requests in %d rows, want %v", rate, got, rows[rate], want)
		}
	}
	if n := len(load.Legend); n != 5 || load.Legend[4].Text != "cut by us at the end" {
		t.Errorf("legend %v", load.Legend)
	}
}

// One value is a mark too, and said in words; so are answers that missed everything.
func TestHTMLDrawsOneValue(t *testing.T) {
	one := made{name: "one", requests: 1, tokens: 8, rate: 1}.portrayed(t)
	rises := regexp.MustCompile(`<path class="line s\d" d="M([0-9.]+) ([0-9.]+)[^"]*V([0-9.]+)`)
	for _, c := range curves {
		if len(c.curve(one.Portrait).Points) == 0 {
			continue
		}
		p := onPage(t, "cdf-"+c.id, one)
		m := rises.FindStringSubmatch(string(p.SVG[0]))
		if m == nil || m[2] == m[3] {
			t.Errorf("%s: nothing rises in %s", c.id, p.SVG[0])
		}
		if len(c.curve(one.Portrait).Points) == 1 && !strings.Contains(strings.Join(p.Notes, "\n"), ": one value, ") {
			t.Errorf("%s: %v", c.id, p.Notes)
		}
	}
	if rows := onPage(t, "cdf-ttft", one).Rows(); rows != "1 row" {
		t.Error(rows)
	}
	src, meta := made{name: "late", requests: 20, tokens: 8, rate: 2}.source()
	opt := metrics.Options{TargetGapsNs: []int64{1000}} // no token comes within 1 µs of the one before
	r, err := metrics.Evaluate(src, meta, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	portrait, err := metrics.Portray(src, meta, r, opt, metrics.PortraitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := onPage(t, "cdf-misses", Portrayed{Result: r, Portrait: portrait})
	m := rises.FindStringSubmatch(string(p.SVG[0]))
	if x, _ := p.plot.At(1, 0); m == nil || m[2] == m[3] || x > 0.99 {
		t.Errorf("all missed: nothing is to be seen in %s", p.SVG[0])
	}
}

// No tick says the same as the one before it, where few whole numbers occur too.
func TestHTMLTicksDiffer(t *testing.T) {
	src, meta := made{name: "x", requests: 12, tokens: 2, rate: 1}.source()
	for i := range src {
		src[i].Prompt.Used = recording.Some(int32(50))
	}
	r, err := metrics.Evaluate(src, meta, nil, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	portrait, err := metrics.Portray(src, meta, r, metrics.Options{}, metrics.PortraitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHTMLPage([]Portrayed{{Result: r, Portrait: portrait}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tick := regexp.MustCompile(`<text class="tick" text-anchor="(end|middle)"[^>]*>([^<]*)<`)
	seen := 0
	pictures := []picture{h.Single.Picture}
	for _, s := range h.Sections {
		pictures = append(pictures, s.Pictures...)
	}
	for _, p := range pictures {
		for _, svg := range p.SVG {
			last := map[string]string{}
			for _, m := range tick.FindAllStringSubmatch(string(svg), -1) {
				if seen++; last[m[1]] == m[2] {
					t.Errorf("%s: %q stands twice on an axis", p.ID, m[2])
				}
				last[m[1]] = m[2]
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d ticks", seen)
	}
	for v, want := range map[float64]string{0: "0", 0.0005: "0.0005", 0.05: "0.05", 0.25: "0.25", 20000: "20000"} {
		if got := numberTick(v); got != want {
			t.Errorf("numberTick(%v) = %s, want %s", v, got, want)
		}
	}
}

// Requests that come and go within a stretch are drawn as the most that were under
// way at once.
func TestHTMLKeepsPeaks(t *testing.T) {
	run := made{name: "spikes", requests: 200, tokens: 3, rate: 2}.portrayed(t)
	most := 0.0
	for _, row := range onPage(t, "in-flight", run).rows {
		most = max(most, row.y)
	}
	if want := float64(run.Result.Load.InFlightMax); math.Abs(most-want) > 0 {
		t.Errorf("at most %v under way in the picture, %v in the result", most, want)
	}
}

// A part of the time to first token has the same name in the page as in the tables,
// and a colour that no other mark of it has.
func TestHTMLNamesParts(t *testing.T) {
	parts := &metrics.TTFTParts{Source: estimated, N: 2, MeanNs: 30e6, Parts: []metrics.TTFTPart{{Part: "network", MeanNs: 10e6}, {Part: "scheduling_delay", MeanNs: 20e6}}}
	run := made{name: "x", requests: 20, tokens: 3, rate: 2}.portrayed(t)
	run.Result.TTFTParts = parts
	for _, source := range []string{estimated, "server"} {
		parts.Source = source
		table, page := stacked(parts).table.rows, onPage(t, "ttft-parts", run).rows
		for i := range parts.Parts {
			if a, b := table[i][0].text, page[i].cells[1]; a != b {
				t.Errorf("%s: the table says %q, the page %q", source, a, b)
			}
		}
	}
	marks, keys := newRows(3).marks()
	if len(marks) != 0 || len(keys) != 0 {
		t.Error("marks of no request")
	}
	r := newRows(3)
	for _, s := range []*chart.Spans{&r.wait, &r.queue, &r.prefill, &r.decode, &r.stall} {
		span(s, 0, 1, 2)
	}
	seen := map[string]string{}
	_, keys = r.marks()
	for _, key := range keys {
		if other, ok := seen[key.Class]; ok {
			t.Errorf("%q and %q look the same", key.Text, other)
		}
		seen[key.Class] = key.Text
	}
}

// Every point of a distribution's table is the share that the recording has, and
// its interval holds it.
func TestHTMLDistribution(t *testing.T) {
	run := made{name: "x", requests: 400, tokens: 20, rate: 10, freeze: true}.portrayed(t)
	h, err := newHTMLPage([]Portrayed{run}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range h.Sections {
		for _, p := range s.Pictures {
			if !strings.HasPrefix(p.ID, "cdf-") || p.ID == "cdf-misses" {
				continue
			}
			seen++
			for _, r := range p.rows {
				var share, low, high float64
				if _, err := fmt.Sscan(strings.Join(r.cells[2:], " "), &share, &low, &high); err != nil {
					t.Fatal(err)
				}
				if low > share+1e-6 || high < share-1e-6 || share <= 0 || share > 1 {
					t.Fatalf("%s: %v", p.ID, r.cells)
				}
			}
		}
	}
	if seen != 6 {
		t.Errorf("%d distributions", seen)
	}
	// The curve reaches each exact percentile within a step of its scale.
	for _, q := range run.Result.Metrics.TTFTDue.Quantiles {
		below, at := run.Portrait.TTFT.At(int64(q.Value*0.997)), run.Portrait.TTFT.At(int64(q.Value*1.003))
		if below > q.P+1e-9 || at < q.P-0.02 {
			t.Errorf("p%v is %v, the curve is at %v to %v there", q.P, q.Value, below, at)
		}
	}
}

// Throughput is shown for several loads only, and with its latency.
func TestHTMLFrontier(t *testing.T) {
	ids := func(runs ...Portrayed) string {
		h, err := newHTMLPage(runs, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range h.Sections {
			for _, p := range s.Pictures {
				all = append(all, p.ID)
				if strings.HasPrefix(p.ID, "frontier") && !strings.Contains(strings.Join(p.columns, " "), "p99 (ms)") {
					t.Errorf("%s has no latency: %v", p.ID, p.columns)
				}
			}
		}
		return strings.Join(all, " ")
	}
	slow := made{name: "slow", requests: 100, tokens: 10, rate: 2}.portrayed(t)
	fast := made{name: "fast", requests: 100, tokens: 10, rate: 8}.portrayed(t)
	if got := ids(slow, fast); !strings.Contains(got, "frontier-ttft frontier-tbt frontier-goodput") {
		t.Errorf("two loads: %s", got)
	}
	if got := ids(slow, slow); strings.Contains(got, "frontier") {
		t.Errorf("one load twice: %s", got)
	}
	other := fast
	changed := *fast.Result
	changed.Run.Model = "another"
	other.Result = &changed
	if got := ids(slow, other); strings.Contains(got, "frontier") {
		t.Errorf("one load each of two systems: %s", got)
	}
}

// Ticks of a run's clock, by hand.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		least float64 // s
		step  float64
	}{{0.03, 0.05}, {0.6, 1}, {7, 10}, {25, 30}, {31, 60}, {100, 120}, {700, 1200}, {4000, 7200}, {50000, 86400}, {100000, 172800}} {
		if got := clockStep(c.least * 1e9); math.Abs(got-c.step*1e9) > 1 {
			t.Errorf("a step of at least %v s is %v s, want %v", c.least, got/1e9, c.step)
		}
	}
	for s, want := range map[float64]string{0: "0 s", 0.05: "50 ms", 30: "30 s", 60: "1 min", 90: "90 s", 1200: "20 min", 7200: "2 h"} {
		if got := clockTick(s * 1e9); got != want {
			t.Errorf("%v s is written %s, want %s", s, got, want)
		}
	}
}

// A comparison that is refused says so, and hides no blind spot of its runs; of one
// that is made, what it says of a system stands for the same of its run alone.
func TestHTMLOfAComparison(t *testing.T) {
	frozen, smooth := made{name: "a", requests: 120, tokens: 30, rate: 4, freeze: true}.portrayed(t), made{name: "b", requests: 120, tokens: 30, rate: 4}.portrayed(t)
	c := &compare.Comparison{Refused: "the runs are not alike", Systems: []compare.Side{{Name: "a", Runs: make([]string, 1)}, {Name: "b", Runs: make([]string, 1)}}}
	h, err := newHTMLPage([]Portrayed{frozen, smooth}, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Spots) != 1 || h.Spots[0].Code != metrics.StallHidden || h.Spots[0].Run != 0 || !strings.Contains(h.Verdict.text, "the runs are not alike") {
		t.Errorf("%+v under %q", h.Spots, h.Verdict.text)
	}
	c.Refused, c.BlindSpots = "", []compare.BlindSpot{{Code: metrics.StallHidden, Run: "a", Against: "b", Pairs: 1, Of: 1, Text: "differs"}}
	if h, err = newHTMLPage([]Portrayed{frozen, smooth}, c); err != nil {
		t.Fatal(err)
	}
	if len(h.Spots) != 1 || h.Spots[0].Text != "a: differs" {
		t.Errorf("%+v", h.Spots)
	}
	if len(h.titles) != 2 || h.titles[0] != "a" || h.titles[1] != "b" {
		t.Errorf("titles %q", h.titles)
	}
	// Its runs are called as it calls their systems, with what tells them apart.
	frozen.Result.Run.Labels, smooth.Result.Run.Labels = map[string]string{"engine": "1.4"}, map[string]string{"engine": "1.5"}
	c.Systems[0].Name, c.Systems[1].Name = "runs/before", "runs/after"
	if h, err = newHTMLPage([]Portrayed{frozen, smooth}, c); err != nil {
		t.Fatal(err)
	}
	if len(h.titles) != 2 || h.names[1] != "B" || h.titles[1] != "B · runs/after · engine=1.5" {
		t.Errorf("names %q, titles %q", h.names, h.titles)
	}
	c.Systems = []compare.Side{{Name: "old", Runs: []string{"runs/1", "runs/2"}}, {Name: "new", Runs: make([]string, 1)}}
	if h, err = newHTMLPage([]Portrayed{frozen, frozen, smooth}, c); err != nil {
		t.Fatal(err)
	}
	if h.names[1] != "old 2" || h.titles[1] != "old 2 · runs/2 · engine=1.4" || h.titles[2] != "new · engine=1.5" {
		t.Errorf("names %q, titles %q", h.names, h.titles)
	}
	c.Systems = []compare.Side{{Name: "a", Runs: make([]string, 1)}, {Name: "b", Runs: make([]string, 1)}}
	// What it says of the systems stands before what each run says by itself.
	var page bytes.Buffer
	if err := HTML(&page, []Portrayed{frozen, smooth}, c); err != nil {
		t.Fatal(err)
	}
	systems, each := strings.Index(page.String(), "<h3>Systems</h3>"), strings.Index(page.String(), "<h3>Times of each run</h3>")
	if systems < 0 || each < systems || strings.Count(page.String(), "<h3>Systems</h3>") != 1 {
		t.Errorf("the systems at %d, each run at %d", systems, each)
	}
}
