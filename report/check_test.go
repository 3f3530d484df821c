package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/metrics"
)

// The report says which check there was and shows one answer that failed it.
func TestChecksAreShown(t *testing.T) {
	r := sample("checked", false)
	r.Slow = ptr(int64(3))
	r.Checks = &metrics.Checks{
		Kind: "schema", Passed: 557, Failed: 30, Unchecked: 1, Share: 557. / 600,
		Example: &metrics.CheckExample{Index: 41, Detail: "breaks type\x1b[2J of the schema", Text: "I'm sorry,\nbut"},
	}
	shows := func(format string, results []*metrics.Result, wanted ...string) {
		t.Helper()
		var b bytes.Buffer
		if err := Write(format, &b, results, TerminalOptions{Width: 120}); err != nil {
			t.Fatal(err)
		}
		for _, w := range wanted {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", format, w, &b)
			}
		}
		if strings.Contains(b.String(), "\x1b[2J") {
			t.Errorf("%s: what a server said reaches the terminal as it is", format)
		}
	}
	one := []*metrics.Result{r}
	shows("terminal", one, "schema: 557 of 588 answers passed · 30 failed · 1 unchecked", "request 41: breaks type", `"I'm sorry,\nbut"`, "3 ok answers took longer than declared")
	shows("markdown", one, "schema: 557 of 588 answers passed", "request 41")
	shows("csv", one, "checked,checks,requests,passed,,557,", "checked,checks,requests,failed,,30,", "checked,slow,requests,slow,,3,")
	shows("terminal", []*metrics.Result{r, sample("other", false)}, "answers that passed their check", "92.8%", "slow answers", "0.5%")
	var b bytes.Buffer
	if err := JSON(&b, one); err != nil {
		t.Fatal(err)
	}
	if err := ResultDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
}
