package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/term"
	"fermata/metrics"
)

var update = flag.Bool("update", false, "write golden files and the generated parts of docs")

// golden compares got with a file, and leaves it beside the file as .got where
// they differ.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./report -update writes it)", err)
	}
	if !bytes.Equal(want, got) {
		if err := os.WriteFile(file+".got", got, 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("%s differs from %s.got:\n%s", file, file, cmp.Diff(string(want), string(got)))
	}
}

// broken is a run in which more than half of the requests failed.
func broken() *metrics.Result {
	r := sample("broken", false)
	r.Outcomes = map[string]int64{"ok": 210, "http_error": 390}
	r.Failures = []metrics.Failure{{
		Outcome: "http_error", FailedAt: "headers", HTTPStatus: 401, Count: 390,
		Error: "401 Unauthorized:\x1b[2J set\nan API key",
	}}
	r.Run.Interrupted = "more than 50 % of the requests had failed"
	r.Health.ClientBound, r.Health.Reasons = true, []string{"the tool used 1.9 of 2 cores"}
	return r
}

// bare is a result of a run that measured nothing.
func bare() *metrics.Result {
	return &metrics.Result{Schema: "fermata.result/1", Tool: metrics.Tool{Name: "fermata", Version: "v0.1.0"}}
}

func TestGolden(t *testing.T) {
	smooth, freezing := sample("smooth", false), sample("freezing", true)
	slower := sample("http://[::1]:8001/a/long/name", true)
	slower.Load.OfferedRPS = ptr(8.0)
	slower.Run.Labels["server"] = "vllm 0.11"
	freezing.Warnings[0].Text = strings.Replace(freezing.Warnings[0].Text, "212", "198", 1)
	for _, r := range []*metrics.Result{smooth, freezing} {
		r.Warnings = append(r.Warnings, metrics.Warning{
			Code: "assumed_intervals", Text: "intervals take requests as independent of each other",
			Help: "Waits in a queue come in bursts, so true intervals are wider.",
		})
	}
	for _, c := range []struct {
		file, format string
		o            TerminalOptions
		results      []*metrics.Result
	}{
		{"one-80.txt", "terminal", TerminalOptions{Width: 80}, []*metrics.Result{freezing}},
		{"one-100.txt", "terminal", TerminalOptions{}, []*metrics.Result{smooth}},
		{"one-150.txt", "terminal", TerminalOptions{Width: 150}, []*metrics.Result{freezing}},
		{"one-colour.txt", "terminal", TerminalOptions{Colour: true}, []*metrics.Result{freezing}},
		{"broken.txt", "terminal", TerminalOptions{}, []*metrics.Result{broken()}},
		{"bare.txt", "terminal", TerminalOptions{}, []*metrics.Result{bare()}},
		{"few-80.txt", "terminal", TerminalOptions{Width: 80}, []*metrics.Result{few("quick", 20*ms), few("slow", 30*ms)}},
		{"two-80.txt", "terminal", TerminalOptions{Width: 80}, []*metrics.Result{smooth, freezing}},
		{"two-120.txt", "terminal", TerminalOptions{Width: 120}, []*metrics.Result{smooth, freezing}},
		{"three-100.txt", "terminal", TerminalOptions{}, []*metrics.Result{smooth, freezing, slower}},
		{"one.md", "markdown", TerminalOptions{}, []*metrics.Result{freezing}},
		{"two.md", "markdown", TerminalOptions{}, []*metrics.Result{smooth, freezing}},
		{"one.csv", "csv", TerminalOptions{}, []*metrics.Result{freezing}},
		{"one.json", "json", TerminalOptions{}, []*metrics.Result{freezing}},
	} {
		t.Run(c.file, func(t *testing.T) {
			var b, again bytes.Buffer
			if err := Write(c.format, &b, c.results, c.o); err != nil {
				t.Fatal(err)
			}
			if err := Write(c.format, &again, c.results, c.o); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Fatalf("a second writing differs (%v)", err)
			}
			golden(t, filepath.Join("testdata", c.file), b.Bytes())
		})
	}
}

// few is a run of 30 requests, too few for any percentile.
func few(name string, gap float64) *metrics.Result {
	r := bare()
	r.Run.Name, r.Load.Measured, r.Outcomes = name, 30, map[string]int64{"ok": 30}
	r.Load.OfferedRPS, r.Load.AchievedRPS = ptr(2.0), ptr(2.0)
	r.Metrics.TPOT = dist("ns", "lower", 0, spread(30, gap, gap*1.1)...)
	r.Metrics.GapLongest = dist("ns", "lower", 0, spread(30, 2*gap, 9*gap)...)
	for _, d := range []*metrics.Dist{r.Metrics.TPOT, r.Metrics.GapLongest} {
		for i := range d.Quantiles {
			d.Quantiles[i].Status = statusInsufficient
		}
	}
	r.Rates.TPOT = ptr(1e9 / gap)
	r.Warnings = []metrics.Warning{{Code: "few_requests", Text: "30 measured requests are too few for any percentile of requests"}}
	return r
}

// TestFirstLine: what can be claimed at all is said before anything else.
func TestFirstLine(t *testing.T) {
	met, open, plain := sample("x", false), sample("x", false), sample("x", false)
	open.SLO[1].Verdict = "open"
	plain.SLO = nil
	endless := sample("x", false)
	endless.SLO = []metrics.Verdict{{Objective: "ttft<=2s and tbt.max<=1s", Verdict: "missed", Share: ptr(0.93)}}
	cut := sample("x", false)
	cut.Run.Interrupted = "SIGINT"
	stop := func(why string, outcomes map[string]int64) *metrics.Result {
		r := sample("x", false)
		r.SLO, r.Run.Interrupted, r.Outcomes, r.Load.Measured = nil, why, outcomes, 0
		for _, n := range outcomes {
			r.Load.Measured += n
		}
		r.Warnings = []metrics.Warning{{Code: "not_a_measurement", Text: "This is not a measurement"}}
		return r
	}
	judged := stop("interrupted", map[string]int64{"ok": 90, "not_sent": 10})
	judged.SLO = []metrics.Verdict{{Objective: "ttft<=1s @p90", Verdict: "open", Share: ptr(0.9)}}
	fluid := sample("x", false)
	fluid.SLO = []metrics.Verdict{{Objective: "fluidity>=0.9 gap=50ms", Verdict: "open", Value: ptr(1.0), Share: ptr(0.9)}}
	half := sample("x", false)
	half.SLO = nil
	half.Outcomes = map[string]int64{"ok": 300, "timeout": 300}
	for _, c := range []struct {
		r    *metrics.Result
		want string
	}{
		{met, "Objectives met (2 met, 0 missed, 0 open)."},
		{open, "Objectives open (1 met, 0 missed, 1 open): tbt<=50ms @p99 (24.1 ms)."},
		{sample("x", true), "Objectives missed (1 met, 1 missed, 0 open): tbt<=50ms @p99 (900 ms)."},
		{fluid, "Objective open: fluidity>=0.9 gap=50ms (90.0% of requests)."},
		{plain, "Measured: 588 of 600 requests ok (98.0%); no objective was given."},
		{endless, "Objective missed: ttft<=2s and tbt.max<=1s (93.0% of requests)."},
		{half, "Measured: 300 of 600 requests ok (50.0%); no objective was given."},
		{cut, "Partial: the run was interrupted. Objectives met (2 met, 0 missed, 0 open)."},
		{
			stop("interrupted", map[string]int64{"ok": 40, "truncated_by_us": 58, "not_sent": 2}),
			"Partial: the run was stopped by the user after 40 of 100 measured requests.",
		},
		{stop("interrupted", map[string]int64{"ok": 40}), "Partial: the run was stopped by the user after 40 measured requests."},
		{judged, "Partial: the run was stopped by the user after 90 of 100 measured requests. Objective open: ttft<=1s @p90 (90.0% of requests)."},
		{stop("the disk is full", map[string]int64{"ok": 40, "not_sent": 2}), "Partial: the run was cut short after 40 of 42 measured requests (the disk is full)."},
		{stop("interrupted", nil), "Stopped before anything was measured."},
		{stop("interrupted", map[string]int64{"not_sent": 3}), "Stopped before anything was measured."},
		{stop("too many requests failed", nil), "Stopped before anything was measured: too many requests failed."},
		{
			// Their first tokens may have been seen, so something was measured.
			stop("interrupted", map[string]int64{"truncated_by_us": 3}),
			"Partial: the run was stopped by the user after 0 of 3 measured requests.",
		},
		{
			stop("interrupted", map[string]int64{"ok": 40, "truncated_by_us": 58, "timeout": 2}),
			"Not a measurement of the server's speed: 60 of 100 requests failed (60.0%). Partial: the run was interrupted.",
		},
		{
			stop("too many requests failed", map[string]int64{"ok": 9, "not_sent": 1}),
			"Not a measurement of the server's speed: 1 of 10 requests failed (10.0%). Partial: the run was interrupted.",
		},
		{bare(), "Nothing was measured: no request was due in the measured phase."},
		{broken(), "Not a measurement of the server's speed: 390 of 600 requests failed (65.0%). " +
			"Partial: the run was interrupted. Client-bound, so not a claim about the server."},
	} {
		var b strings.Builder
		if err := Terminal(&b, []*metrics.Result{c.r}, TerminalOptions{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(b.String(), "\n"); got != c.want {
			t.Errorf("first line %q, want %q", got, c.want)
		}
	}
}

// TestFits: no line is wider than the terminal, and nothing from a server can
// steer it.
func TestFits(t *testing.T) {
	smooth, freezing := sample("smooth", false), sample("freezing", true)
	for _, rs := range [][]*metrics.Result{{freezing}, {broken()}, {bare()}, {smooth, freezing}, {smooth, freezing, broken()}} {
		for _, width := range []int{80, 100, 120, 160, 240} {
			var b strings.Builder
			if err := Terminal(&b, rs, TerminalOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := term.Cells(line); n > width {
					t.Errorf("%d runs, width %d: a line of %d cells: %q", len(rs), width, n, line)
				}
				if strings.ContainsRune(line, '\x1b') || line != strings.TrimRight(line, " ") {
					t.Errorf("escape or space at the end: %q", line)
				}
			}
		}
	}
}

// What too few requests say is shown, greyed and marked, with what it would take.
func TestInsufficientIsMarked(t *testing.T) {
	r := bare()
	r.Load.Measured, r.Outcomes = 60, map[string]int64{"ok": 60}
	r.Metrics.E2E = dist("ns", "lower", 0, spread(60, 1e9, 4.321e9)...)
	var b strings.Builder
	if err := Terminal(&b, []*metrics.Result{r}, TerminalOptions{Width: 200, Colour: true}); err != nil {
		t.Fatal(err)
	}
	// 60 requests allow p50 and, with six beyond it, p90; p95, p99 and p99.9 not.
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.Contains(line, "end to end") && (strings.Count(line, "s*\x1b[0m") != 3 || strings.Count(line, "\x1b[2m4.") != 3 || strings.Count(line, "*") != 3) {
			t.Errorf("want three grey figures with their marks: %q", line)
		}
	}
	const takes = "too few requests to state it: p95 takes about 100 requests, p99 about 500, p99.9 about 5,000 (had 60)"
	if !strings.Contains(b.String(), "* "+takes) {
		t.Errorf("the page does not say what the percentiles would take:\n%s", b.String())
	}
	b.Reset()
	if err := Markdown(&b, []*metrics.Result{r}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "s\\* |") != 3 || !strings.Contains(b.String(), "\\* "+takes) {
		t.Errorf("Markdown does not mark the three figures, or not say what they take:\n%s", b.String())
	}
}

func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		requests  int64
		p, neff   float64
		tau       *float64
		wantAbout int64
	}{
		{60, 0.99, 60, nil, 500},
		{60, 0.5, 3, ptr(20.0), 1000},    // 50 correlation times
		{1000, 0.99, 50, nil, 10_000},    // a twentieth of them is independent
		{60, 0.999, 60, ptr(1.0), 5000},  // five beyond one in a thousand
		{10, 0.01, 10, nil, 500},         // low percentiles as high ones
		{0, 0.9, 0, ptr(4.0), 200},       // no request at all
		{100, 0.9, 10, ptr(10.0), 500},   // both rules agree
		{100, 0.95, 10, ptr(10.0), 1000}, // five beyond one in twenty, ten each
	} {
		got := needed(&metrics.Dist{NRequests: c.requests}, &metrics.Quantile{P: c.p, NEff: c.neff, Tau: c.tau})
		if got != c.wantAbout {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestSideBySide(t *testing.T) {
	d := func(value, low, high float64) *metrics.Dist {
		return &metrics.Dist{
			Unit: "ns", Better: "lower", N: 600, NRequests: 600, Mean: ptr(value), Max: ptr(value),
			Quantiles: []metrics.Quantile{
				{P: 0.5, Value: value, Low: ptr(low), High: ptr(high), Status: "ok"},
				{P: 0.99, Value: value, Low: ptr(low), High: ptr(high), Status: "ok"},
			},
		}
	}
	for _, c := range []struct {
		name             string
		a, b             *metrics.Dist
		ratio            string
		differs, overlap bool
	}{
		{"within 5 %", d(100, 99, 101), d(104, 103, 105), "=", false, false},
		{"beyond", d(100, 99, 101), d(150, 140, 160), "×1.50", true, false},
		{"less", d(100, 99, 101), d(50, 49, 51), "×0.500", true, false},
		{"by chance", d(100, 80, 130), d(120, 90, 150), "×1.20≈", false, true},
		{"from nothing", d(0, 0, 0), d(120, 90, 150), "×∞", true, false},
		{"both nothing", d(0, 0, 0), d(0, 0, 0), "=", false, false},
		{"one run only", d(100, 99, 101), nil, "–", false, false},
		{"below zero", d(-100, -101, -99), d(100, 99, 101), "–", true, false},
	} {
		x := quantileContrast([]*metrics.Dist{c.a, c.b}, 0.5)
		cell := x.ratioCell()
		if cell.text+cell.mark != c.ratio || x.differs != c.differs || x.overlap != c.overlap {
			t.Errorf("%s: %s, differs %v, overlaps %v", c.name, cell.text+cell.mark, x.differs, x.overlap)
		}
	}
	// Where the stamps are coarser than chance, they decide.
	coarse := d(100, 99, 101)
	coarse.Quantiles[0].StampHigh = ptr(200.0)
	if x := quantileContrast([]*metrics.Dist{coarse, d(150, 149, 151)}, 0.5); x.differs {
		t.Error("medians within the bounds on stamps are said to differ")
	}
	// The largest value tells runs apart only together with the median.
	loose := d(100, 99, 101)
	loose.Quantiles[1].Status, loose.Max = statusInsufficient, ptr(900.0)
	if c := appendComparison(nil, "x", "", []*metrics.Dist{loose, d(104, 103, 105)})[0]; c.differs() || c.tail.ratioCell().text != "×0.116" {
		t.Errorf("a single maximum tells runs apart, or is hidden: %s", c.tail.ratioCell().text)
	}
	if c := appendComparison(nil, "x", "", []*metrics.Dist{loose, d(150, 149, 151)})[0]; !c.tail.differs {
		t.Error("a maximum is doubted though the medians differ")
	}
	// Without a median in each run nothing is claimed.
	loose.Quantiles[0].Status = statusInsufficient
	if c := appendComparison(nil, "x", "", []*metrics.Dist{loose, d(150, 149, 151)})[0]; !c.tooFew() || c.differs() || c.tail.ratioCell().text != "" {
		t.Error("runs are compared by a maximum alone")
	}
	// A p99 that one run cannot state gives way to the largest value.
	few := d(100, 99, 101)
	few.Quantiles[1].Status = statusInsufficient
	if c := appendComparison(nil, "x", "", []*metrics.Dist{few, d(150, 149, 151)}); c[0].tail.name != "max" {
		t.Errorf("tail is %s, want max", c[0].tail.name)
	}
}

func TestJSON(t *testing.T) {
	smooth := sample("smooth", false)
	var one, two, none bytes.Buffer
	for _, err := range []error{
		JSON(&one, []*metrics.Result{smooth}),
		JSON(&two, []*metrics.Result{smooth, broken()}),
		JSON(&none, []*metrics.Result{bare()}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []*bytes.Buffer{&one, &two, &none} {
		if err := ResultDocument.Validate(b.Bytes()); err != nil {
			t.Error(err)
		}
	}
	var back metrics.Result
	if err := json.Unmarshal(one.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(smooth, &back); d != "" {
		// bare lists were written as empty ones
		if d = cmp.Diff(whole(reflect.ValueOf(smooth)).Interface(), whole(reflect.ValueOf(&back)).Interface()); d != "" {
			t.Errorf("reading back: %s", d)
		}
	}
	if bytes.Contains(none.Bytes(), []byte("null")) {
		t.Errorf("null in %s", none.Bytes())
	}
	if b := bare(); b.Warnings != nil || b.Outcomes != nil {
		t.Error("JSON changed the result that it was given")
	}
	infinite := bare()
	infinite.SLO = []metrics.Verdict{{Verdict: "missed", Value: ptr(1 / zero())}}
	if err := JSON(io.Discard, []*metrics.Result{infinite}); err == nil {
		t.Error("an infinite value was written as JSON")
	}
}

func zero() float64 { return 0 }

func TestValidateRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, []*metrics.Result{sample("smooth", false)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, fault string }{
		{`"verdict": "met"`, `"verdict": "perhaps"`, "perhaps"},
		{`"status": "assumed"`, `"status": "fine"`, "fine"},
		{`"schema": "fermata.result/1"`, `"schema": "fermata.result/2"`, "fermata.result/2"},
		{`"measured": 600`, `"measured": "600"`, "integer"},
		{`"client_bound": false,`, ``, "client_bound"},
		{`"tool":`, `"tooling":`, "tool"},
	} {
		bad := strings.Replace(b.String(), c.old, c.new, 1)
		if bad == b.String() {
			t.Errorf("%s is not in the document", c.old)
		} else if err := ResultDocument.Validate([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

func TestCSV(t *testing.T) {
	r := sample("a \"run\", quoted", true)
	var b bytes.Buffer
	if err := CSV(&b, []*metrics.Result{r, bare()}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"run", "metric", "unit", "stat", "p", "value", "low", "high", "n", "missing", "status"}, rows[0]); d != "" {
		t.Error(d)
	}
	found := map[string][]string{}
	runs := map[string]bool{}
	for _, r := range rows[1:] {
		runs[r[0]] = true
		if r[0] == "run 2" {
			continue
		}
		id := strings.Join([]string{r[1], r[3], r[4]}, " ")
		if r[1] != "failures" && found[id] != nil {
			t.Errorf("two rows for %s", id)
		}
		found[id] = r
	}
	if !runs[r.Run.Name] || !runs["run 2"] {
		t.Errorf("runs %v", runs)
	}
	q := at(r.Metrics.TTFTDue, 0.99)
	for id, want := range map[string]string{
		"ttft_due quantile 0.99":                            strconv.FormatFloat(q.Value, 'f', -1, 64),
		"ttft_due over_1000000000_with_missing ":            strconv.FormatFloat(10.0/600, 'f', -1, 64),
		"fluidity/decode/25000000 missed ":                  "1000",
		"fluidity/first_token/100000000 quantile 0.5":       "0.88",
		"fluid_rate/first_token rate ":                      "",
		"slo/tbt<=50ms @p99 value ":                         "900000000",
		"goodput/ttft<=500ms and tbt.p99<=50ms @99% share ": "0.925",
		"outcomes http_error ":                              "9",
		"warnings seen ":                                    "1",
	} {
		if row := found[id]; row == nil || row[5] != want {
			t.Errorf("%q: %v, want value %q", id, row, want)
		}
	}
	if s := found["fluid_rate/first_token rate "][10]; s != "infeasible" {
		t.Errorf("status %q of an infeasible rate", s)
	}
	if row := found["ttft_due quantile 0.99"]; row[8] != "590" || row[9] != "10" || row[10] != "open" {
		t.Errorf("n, missing, status of a quantile: %v", row)
	}
}

// TestEveryMetricIsShown: a distribution that joins metrics.Metrics must join
// the tables, under its own key.
func TestEveryMetricIsShown(t *testing.T) {
	typ := reflect.TypeFor[metrics.Metrics]()
	byKey := map[string]measure{}
	for _, m := range measures {
		byKey[m.key] = m
	}
	if len(byKey) != typ.NumField() {
		t.Errorf("%d measures for %d metrics", len(byKey), typ.NumField())
	}
	for i := range typ.NumField() {
		tag, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		var m metrics.Metrics
		d := &metrics.Dist{}
		reflect.ValueOf(&m).Elem().Field(i).Set(reflect.ValueOf(d))
		if x, ok := byKey[tag]; !ok || x.of(&m) != d {
			t.Errorf("no measure shows %s", tag)
		}
	}
}

func TestErrors(t *testing.T) {
	err := Write("html", io.Discard, []*metrics.Result{bare()}, TerminalOptions{})
	if err == nil || !strings.Contains(err.Error(), `"html"`) || !strings.Contains(err.Error(), "terminal, json, csv, markdown") {
		t.Errorf("unknown format: %v", err)
	}
	for _, f := range ResultFormats.Names() {
		if err := ResultFormats.Check(f); err != nil {
			t.Error(err)
		}
		if err := Write(f, io.Discard, nil, TerminalOptions{}); !errors.Is(err, errNoResults) {
			t.Errorf("%s of nothing: %v", f, err)
		}
		full := &fullDisk{}
		if err := Write(f, full, []*metrics.Result{bare()}, TerminalOptions{}); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: %v", f, err)
		}
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (*fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A run without a steady state has enough requests and still no percentiles: the
// page says why instead of asking for more.
func TestLegendOfADrift(t *testing.T) {
	tau := 2.0
	d := &metrics.Dist{Unit: "ns", N: 2000, NRequests: 2000, Quantiles: []metrics.Quantile{{P: .5, Value: 1e9, Tau: &tau, NEff: 1000, Status: "insufficient"}}}
	notes := strings.Join(legend(shown{[]named{{"TTFT", "ns", d}}, []stat{{p: .5}}}), "\n")
	if !strings.Contains(notes, "no steady state") || strings.Contains(notes, "too few") {
		t.Error(notes)
	}
}

// The reason for a transport stands with it, not under the key that it is stored by.
func TestLabelTexts(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   string
	}{
		{map[string]string{"gpu": "h100", "transport": "h2", "transport_why": "as the server speaks it"}, "gpu h100 · transport h2 (as the server speaks it)"},
		{map[string]string{"transport": "h1"}, "transport h1"},
		{map[string]string{"transport_why": "mine"}, "transport_why mine"},
		{nil, ""},
	} {
		if got := strings.Join(labelTexts(c.labels), " · "); got != c.want {
			t.Errorf("%v: %s, want %s", c.labels, got, c.want)
		}
	}
}
