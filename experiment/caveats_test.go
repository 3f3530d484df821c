package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/metrics"
)

// warned says that a result has a warning of that code, with that text.
func warned(r *metrics.Result, code, text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == code && strings.Contains(w.Text, text) })
}

// Prices that have none for the model are told, on the way and in the result.
func TestNoPriceForTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prices := filepath.Join(dir, "prices.yaml")
	head := "currency: EUR\ndate: 2026-08-01\nsource: a list\n"
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"another model": {head + "models: {shop: {other: {tokens: {input_per_million: 1, output_per_million: 2}}}}\n", `there is no price for model "m"; there are prices for other`},
		"this model":    {head + "models: {shop: {m: {tokens: {input_per_million: 1, output_per_million: 2}}}}\n", ""},
		"by the hour":   {head + "gpu: {count: 1, per_hour: 2}\n", ""},
	} {
		if err := os.WriteFile(prices, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		done, _, said := ran(t, "{ttft: 1ms, gap: 1ms, tokens: 3}", map[string]string{
			"prices": prices, "schedule.kind": "all", "schedule.requests": "2", "workload.input": "8", "workload.output": "3",
		})
		if c.want == "" {
			if warned(done.Result, "no_price", "") || strings.Contains(strings.Join(said, "\n"), "not known") {
				t.Errorf("%s: %q, %+v", name, said, done.Result.Warnings)
			}
			continue
		}
		if !warned(done.Result, "no_price", c.want) || !strings.Contains(strings.Join(said, "\n"), c.want) || done.Result.Load.Spent != nil {
			t.Errorf("%s: %q, %+v", name, said, done.Result.Warnings)
		}
	}
}

// A trace, or a data set that is asked once, may be shorter than what was asked for.
func TestFewerRowsThanRequests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trace, rows := filepath.Join(dir, "trace.csv"), filepath.Join(dir, "rows.csv")
	for path, text := range map[string]string{trace: "at_s\n0\n0.01\n", rows: "prompt_tokens,output_tokens\n8,3\n8,3\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		settings map[string]string
		want     string
	}{
		{map[string]string{"schedule.file": trace, "schedule.requests": "9", "schedule.warmup": "0"}, "2 of 9 requests were measured: the trace has no more rows"},
		{map[string]string{"schedule.file": trace, "schedule.requests": "2", "schedule.warmup": "0"}, ""},
		{map[string]string{"workload.dataset": rows, "workload.once": "true", "schedule.kind": "all", "schedule.requests": "5"}, "2 of 5 requests were measured: the data set ended (--once)"},
	} {
		done, _, said := ran(t, "{ttft: 1ms, gap: 1ms, tokens: max}", c.settings)
		told := strings.Contains(strings.Join(said, "\n"), "requests were measured")
		if told != (c.want != "") || warned(done.Result, "too_few_rows", "") != told {
			t.Errorf("%v: %q, %+v", c.settings, said, done.Result.Warnings)
		}
		if told && (!slices.Contains(said, c.want) || !warned(done.Result, "too_few_rows", c.want)) {
			t.Errorf("%v: %q, %+v", c.settings, said, done.Result.Warnings)
		}
	}
}
