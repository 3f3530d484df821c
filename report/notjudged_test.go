package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

// What no deadline is known for is no pass, and is told wherever a verdict is.
func TestNotJudgedIsTold(t *testing.T) {
	of := func(v metrics.Verdict, g metrics.Goodput) (string, string) {
		r := sample("one", false)
		v.Objective, g.Objective = "fluidity.first>=0.9 gap=50ms @50%", "fluidity.first>=0.9 gap=50ms @50%"
		r.SLO, r.Goodput = []metrics.Verdict{v}, []metrics.Goodput{g}
		r.Fluidity = []metrics.Fluidity{{Variant: metrics.FirstToken, TargetGapNs: 50e6}}
		var junit bytes.Buffer
		if err := JUnit(&junit, []*metrics.Result{r}); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, f := range judgements(r).facts {
			said = append(said, f.text)
		}
		rows := fluidity(r).table.rows
		if len(rows) != 1 || rows[0][9].text != "0" {
			t.Errorf("the table of fluidity without one: %+v", rows)
		}
		return verdict(r).text + "\n" + strings.Join(said, "\n"), junit.String()
	}
	text, junit := of(metrics.Verdict{Verdict: metrics.Open, Status: statusInsufficient, Judged: ptr(int64(0)), NotJudged: 20}, metrics.Goodput{NotJudged: 20})
	for _, want := range []string{"Objective open: ", "not judged: none of 20 good answers", "not known: no good answer could be judged"} {
		if !strings.Contains(text, want) {
			t.Errorf("none judged: no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "too few requests") || !strings.Contains(junit, `type="open"`) || strings.Contains(junit, "% of requests") {
		t.Errorf("none judged: %s, %s", text, junit)
	}
	text, junit = of(metrics.Verdict{Verdict: metrics.Met, Share: ptr(0.9), Judged: ptr(int64(10)), NotJudged: 10}, metrics.Goodput{Share: ptr(0.9), NotJudged: 10})
	for _, said := range []string{text, junit} {
		if !strings.Contains(said, "judged by 10 of 20 requests: 10 good answers have no first-token deadline") {
			t.Errorf("half judged: %s", said)
		}
	}
}
