package report

import (
	"bytes"
	"strings"
	"testing"

	"fermata/cost"
	"fermata/metrics"
)

// The page goes from the list price to a good answer, and the document is what its
// schema says.
func TestCostsAreShown(t *testing.T) {
	p, err := cost.Read("p", []byte("currency: USD\ndate: 2026-08-01\nsource: list | of prices\ntokens: {input_per_million: \"1\", output_per_million: \"3\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	terms, err := p.Terms(map[string]string{"": "m"}, cost.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := terms.Account(cost.Judged{InTime: true})
	for i := range int64(100) {
		account.Add(cost.Answer{Answered: i%5 != 0, Input: 300, Output: 100, InputKnown: true, Late: i%10 == 1})
	}
	r := sample("priced", false)
	r.Cost = account.Statement(cost.Under{})
	for format, want := range map[string][]string{
		"terminal": {"1.50 [1.50–1.50] USD for input and output tokens", "failed requests", "× 1.25", "answers that missed an objective", "1 in, 3 out, USD a million", "good: in time"},
		"markdown": {"## Cost", "| list price |  | 1.50 |", `list \| of prices`},
	} {
		var b bytes.Buffer
		if err := Write(format, &b, []*metrics.Result{r}, TerminalOptions{Width: 120}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", format, w, &b)
			}
		}
	}
	var b bytes.Buffer
	if err := JSON(&b, []*metrics.Result{r}); err != nil {
		t.Fatal(err)
	}
	if err := ResultDocument.Validate(b.Bytes()); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := Write("terminal", &b, []*metrics.Result{r, sample("other", false)}, TerminalOptions{}); err != nil || !strings.Contains(b.String(), "Cost of priced") {
		t.Errorf("%v\n%s", err, &b)
	}
}
