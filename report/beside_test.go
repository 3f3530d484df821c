package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/metrics"
)

// firstAndAll are the first line of a terminal page, unwrapped, and all of it.
func firstAndAll(t *testing.T, width int, rs ...*metrics.Result) (first, all string) {
	t.Helper()
	var b strings.Builder
	if err := Terminal(&b, rs, TerminalOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	first, _, _ = strings.Cut(b.String(), "\n")
	return first, b.String()
}

func TestHeadline(t *testing.T) {
	// A metric of 600 requests with the given p50 and p99, known to 1 %.
	d := func(p50, p99, greatest float64) *metrics.Dist {
		x := &metrics.Dist{Unit: "ns", Better: "lower", N: 600, NRequests: 600, Max: &greatest}
		for _, q := range []struct{ p, v float64 }{{0.5, p50}, {0.99, p99}} {
			x.Quantiles = append(x.Quantiles, metrics.Quantile{P: q.p, Value: q.v, Low: ptr(q.v * 0.99), High: ptr(q.v * 1.01), Status: "ok"})
		}
		return x
	}
	short := func(p50, greatest float64) *metrics.Dist {
		x := d(p50, 0, greatest)
		x.Quantiles[1].Status = statusInsufficient
		return x
	}
	run := func(tpot, silence *metrics.Dist) *metrics.Result {
		r := bare()
		r.Load.OfferedRPS = ptr(4.0)
		r.Metrics.TPOT, r.Metrics.GapLongest = tpot, silence
		return r
	}
	for _, c := range []struct {
		name string
		a, b *metrics.Result
		want string
	}{
		{
			"the medians decide", run(d(20, 30, 30), d(100, 100, 100)), run(d(40, 60, 60), d(300, 300, 300)),
			"2 of 2 metrics tell them apart, most of all longest silence (p50 ×3.00).",
		},
		{
			"a slower first run", run(d(80, 80, 80), d(100, 100, 100)), run(d(20, 20, 20), d(300, 300, 300)),
			"2 of 2 metrics tell them apart, most of all TPOT (p50 ×0.250).",
		},
		{
			"a greater tail stands beside them", run(d(20, 30, 30), d(100, 100, 100)), run(d(40, 60, 60), d(100, 1000, 1000)),
			"2 of 2 metrics tell them apart, most of all TPOT (p50 ×2.00), and in the tail longest silence (p99 ×10.0).",
		},
		{
			"tails alone", run(d(20, 30, 30), d(100, 100, 100)), run(d(20, 30, 30), d(100, 1000, 1000)),
			"1 of 2 metrics tell them apart, most of all longest silence (p99 ×10.0).",
		},
		{
			"a single maximum counts for nothing", run(short(20, 30), d(100, 100, 100)), run(short(20, 900), d(300, 300, 300)),
			"1 of 2 metrics tell them apart, most of all longest silence (p50 ×3.00).",
		},
		{
			"nor leads beside a median", run(short(20, 30), d(100, 100, 100)), run(short(40, 900), d(300, 300, 300)),
			"2 of 2 metrics tell them apart, most of all longest silence (p50 ×3.00).",
		},
		{
			"a percentile leads past a maximum", run(short(20, 30), d(100, 100, 100)), run(short(40, 900), d(100, 500, 500)),
			"2 of 2 metrics tell them apart, most of all TPOT (p50 ×2.00), and in the tail longest silence (p99 ×5.00).",
		},
		{
			"no difference", run(d(20, 30, 30), nil), run(d(20, 30, 30), nil),
			"no metric of 1 tells them apart.",
		},
		{"nothing in common", run(d(20, 30, 30), nil), run(nil, d(20, 30, 30)), "they have no metric in common."},
	} {
		got, _ := firstAndAll(t, 200, c.a, c.b)
		if want := "2 runs under the same load: " + c.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
	}
	if got, _ := firstAndAll(t, 200, few("a", 20), few("b", 30)); got != "2 runs under the same load: too few requests to tell them apart by any metric." {
		t.Error(got)
	}
	mixed := few("a", 20)
	mixed.Metrics.E2E = d(100, 100, 100)
	other := few("b", 20)
	other.Metrics.E2E = d(300, 300, 300)
	want := "2 runs under the same load: 1 of 1 metrics tell them apart, most of all end to end (p50 ×3.00); " +
		"for 2 more there are too few requests to tell."
	if got, _ := firstAndAll(t, 200, mixed, other); got != want {
		t.Error(got)
	}
}

func TestSameLoad(t *testing.T) {
	run := func(offered float64, asked int64, cv float64) *metrics.Result {
		r := bare()
		r.Load.OfferedRPS = &offered
		if asked > 0 {
			r.Load.Arrivals = &metrics.Arrivals{AskedMeanNs: &asked, AskedCV: &cv}
		}
		return r
	}
	for _, c := range []struct {
		a, b *metrics.Result
		want string
	}{
		{run(7.77, 125e6, 1), run(8.25, 125e6, 1), "under the same load"}, // 6 % by chance
		{run(7.77, 125e6, 1), run(8.25, 125e6, 3), "at the same rate in other bursts (CV 1.00, 3.00)"},
		{run(8, 125e6, 1), run(8.1, 120e6, 1), "under the same load"}, // within 5 %
		{run(4, 250e6, 1), run(8, 125e6, 1), "under different loads (4.00, 8.00 requests/s)"},
		{run(7.77, 0, 0), run(8.25, 0, 0), "under different loads (7.77, 8.25 requests/s)"},
		{run(7.77, 125e6, 1), run(8.25, 0, 0), "under different loads (7.77, 8.25 requests/s)"},
		{run(8, 0, 0), bare(), "side by side"},
	} {
		if got := sameLoad([]*metrics.Result{c.a, c.b}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTogether(t *testing.T) {
	run := func(ws ...metrics.Warning) *metrics.Result {
		r := bare()
		r.Warnings = ws
		return r
	}
	w := func(code, text string) metrics.Warning { return metrics.Warning{Code: code, Text: text, Help: "do it"} }
	rs := []*metrics.Result{
		run(w("same", "as it is"), w("failures", "12 of 600 requests failed"), w("stamp_bound", "late by 850 µs"), w("one", "1 of a kind")),
		run(w("same", "as it is"), w("failures", "9 of 600 requests failed"), w("stamp_bound", "late by 1.2 ms"), w("many_choices", "2 answers")),
		run(w("same", "as it is"), w("failures", "all 600 failed"), w("many_choices", "2 answers")),
	}
	want := []metrics.Warning{
		w("same", "as it is"),
		w("failures", "a and b: 12 of 600 and 9 of 600 requests failed"),
		w("stamp_bound", "a and b: late by 850 µs and 1.2 ms"),
		w("one", "a: 1 of a kind"),
		w("many_choices", "b and c: 2 answers"),
		w("failures", "c: all 600 failed"),
	}
	if d := cmp.Diff(want, together(rs, []string{"a", "b", "c"})); d != "" {
		t.Error(d)
	}
	// Two reasons of one run stay two.
	twice := run(w("client_bound", "core 1"), w("client_bound", "core 2"))
	if got := together([]*metrics.Result{twice}, []string{"a"}); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestBlurredRuns: what stamps blur is said of runs side by side too.
func TestBlurredRuns(t *testing.T) {
	a, b := sample("a", false), sample("b", false)
	q := at(b.Metrics.TBT, 0.5)
	q.Value, q.StampLow, q.StampHigh = 20*ms, ptr(15*ms), ptr(25*ms)
	_, page := firstAndAll(t, 240, a, b)
	if want := noteBlurred + "in b TBT p50 [15, 25] ms\n"; !strings.Contains(page, want) {
		t.Errorf("no %q in\n%s", want, page)
	}
}

// TestNarrow: what a narrow page leaves out is named, and goes in the order in
// which it can be missed.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		width       int
		head, named string
	}{
		{80, "metric p50 p90 p99 mean max n miss", ", p95, p99 [95 %], "},
		{90, "metric p50 p90 p95 p99 mean max n miss", ", p99 [95 %], "},
		{100, "metric p50 p90 p95 p99 [95 %] mean max n miss", "also shows: p50 [95 %], p90 [95 %], p99.9, sd"},
	} {
		_, page := firstAndAll(t, c.width, sample("x", false))
		page = strings.Join(strings.Fields(page), " ")
		_, times, _ := strings.Cut(page, "Times ")
		if !strings.HasPrefix(times, c.head+" TTFT") {
			t.Errorf("width %d: the times begin %.80s", c.width, times)
		}
		if _, said, _ := strings.Cut(page, "columns wide"); !strings.Contains(said, c.named) {
			t.Errorf("width %d: named are %s", c.width, said)
		}
	}
	if _, page := firstAndAll(t, 240, sample("x", false)); strings.Contains(page, "columns wide") {
		t.Error("a wide page asks for more width")
	}
}

func TestNeeds(t *testing.T) {
	takes := map[float64]int64{0.05: 100, 0.95: 100, 0.01: 500, 0.99: 500, 0.999: 5000}
	for _, c := range []struct {
		ps   []float64
		want string
	}{
		{[]float64{0.999, 0.99, 0.95, 0.05, 0.01}, "p5 and p95 take about 100 requests, p1 and p99 about 500, p99.9 about 5,000"},
		{[]float64{0.99, 0.999}, "p99 takes about 500 requests, p99.9 about 5,000"},
	} {
		if got := needs(c.ps, takes); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := listed([]string{"a", "b", "c"}); got != "a, b and c" {
		t.Error(got)
	}
}

// TestErrorsWrap: the end of a long error is what tells, so it is never cut.
func TestErrorsWrap(t *testing.T) {
	r := broken()
	r.Failures[0].Error = "status 400: {\"message\": \"This model's maximum context length is 4096 tokens\", \"param\": \"" +
		strings.Repeat("x", 90) + "\", \"code\": \"context_length_exceeded\"}"
	_, page := firstAndAll(t, 80, r)
	if !strings.Contains(page, "exceeded") || !strings.Contains(page, "context_length") || strings.Count(page, "x") < 90 {
		t.Errorf("the error is cut:\n%s", page)
	}
}
