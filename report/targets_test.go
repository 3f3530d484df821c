package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

// Several targets of a run stand in one table, a row each.
func TestTargetsAreShown(t *testing.T) {
	r := sample("both", false)
	quick, slow := sample("", false), sample("", true)
	r.Load.Retried, r.Load.EarlierTries = 4, 6
	r.Targets = map[string]metrics.TargetResult{
		"slow\x1b[2J": {Outcomes: map[string]int64{"ok": 90, "http_error": 10}, Metrics: slow.Metrics, SLO: []metrics.Verdict{{Objective: "ttft<=1s", Verdict: "missed"}, {Objective: "e2e<=9s", Verdict: "open"}}},
		"quick":       {Outcomes: map[string]int64{"ok": 200}, Metrics: quick.Metrics, SLO: []metrics.Verdict{{Objective: "ttft<=1s", Verdict: "met"}, {Objective: "e2e<=9s", Verdict: "met"}}},
	}
	shows := func(format string, wanted ...string) string {
		t.Helper()
		var b bytes.Buffer
		if err := Write(format, &b, []*metrics.Result{r}, TerminalOptions{Width: 140}); err != nil {
			t.Fatal(err)
		}
		for _, w := range wanted {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", format, w, &b)
			}
		}
		return b.String()
	}
	for _, format := range []string{"terminal", "markdown"} {
		page := shows(format, "Targets", "met, met", "missed, open", "4 of them tried again")
		if strings.Contains(page, "\x1b[2J") {
			t.Errorf("%s: a name reaches the terminal as it is", format)
		}
		quick, slow := strings.Index(page, "met, met"), strings.Index(page, "missed, open")
		if quick < 0 || slow < quick || slow-quick > 400 {
			t.Errorf("%s: the targets do not stand one below the other, by name", format)
		}
	}
	shows("csv", "both,targets/quick/outcomes,requests,ok,,200,", "both,targets/quick/ttft_due,ns,", "both,targets/quick/slo/ttft<=1s,,value,,,,,,,met", "both,load,requests,retried,,4,", "both,load,tries,earlier_tries,,6,")
	var b bytes.Buffer
	if err := JSON(&b, []*metrics.Result{r}); err != nil {
		t.Fatal(err)
	}
	if err := ResultDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}
