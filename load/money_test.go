package load

import (
	"strings"
	"testing"

	"fermata/cost"
	"fermata/recording"
	"fermata/schedule"
)

func money(t testing.TB, text string) cost.Amount {
	t.Helper()
	a, err := cost.ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// dear prices tokens at 1,000 a prompt's million and 10,000 an answer's: a request
// of 8 and 6 tokens costs 0.068.
func dear(t testing.TB, j *Job, most string) {
	t.Helper()
	p, err := cost.Read("prices", []byte("currency: USD\ndate: 2026-08-01\nsource: x\ntokens: {input_per_million: 1000, output_per_million: 10000}"))
	if err != nil {
		t.Fatal(err)
	}
	rate, err := p.Rate("", "m")
	if err != nil {
		t.Fatal(err)
	}
	j.Rate = &rate
	if most != "" {
		m := money(t, most)
		j.Budget = Budget{Most: &m, Currency: "USD"}
	}
}

// Ten requests cost 0.68: whatever the schedule, an eleventh does not leave for
// 0.7479, and the money of those that were cheaper than they might have been, or
// free, is spent on others.
func TestMoneyEndsARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, model string
		when        schedule.Options
		sent, ok    int
		spent       string
	}{
		{"open", "{ttft: 5ms, gap: 1ms, tokens: max}", schedule.Options{Kind: schedule.Constant, Rate: 100, Requests: 1000, Warmup: "0"}, 10, 10, "0.68"},
		{"at once", "{ttft: 200ms, gap: 1ms, tokens: max}", schedule.Options{Kind: schedule.All, Requests: 1000}, 10, 10, "0.68"},
		{"closed", "{ttft: 5ms, gap: 1ms, tokens: max}", schedule.Options{Kind: schedule.Closed, Concurrency: 3, Requests: 1000, Warmup: "0"}, 10, 10, "0.68"},
		// 8 + 30 in place of 60: 0.038. One at a time 18 cost 0.684, and a 19th may not cost 0.068 more.
		{"short", "{ttft: 1ms, gap: 1ms, tokens: 3}", schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 1000, Warmup: "0"}, 18, 18, "0.684"},
		// Every second is refused and costs nothing.
		{"free failures", "{ttft: 1ms, gap: 1ms, tokens: max, fail: {every: 2, status: 503}}", schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 1000, Warmup: "0"}, 19, 10, "0.68"},
		// Cut after three tokens: the server may have made six.
		{"cut", "{ttft: 1ms, gap: 1ms, tokens: max, fail: {kind: cut, after: 3}}", schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 1000, Warmup: "0"}, 10, 0, "0.68"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, _ := scripted(t, c.model)
			r := newTape()
			j := job(t, url, r, c.when)
			dear(t, &j, "0.7479")
			end, _ := offerUntil(t, t.Context(), nil, j)
			ok := 0
			for _, tr := range r.traces {
				if tr.Outcome == recording.OK {
					ok++
				}
				if tr.Phase != recording.Measured || tr.Due >= end.WindowEnd {
					t.Errorf("request %d: %s, due at %d of %d", tr.Index, tr.Phase, tr.Due, end.WindowEnd)
				}
			}
			if len(r.traces) != c.sent || ok != c.ok {
				t.Errorf("%d sent, %d ok", len(r.traces), ok)
			}
			if end.Live.Spent == nil || end.Live.Spent.Cmp(money(t, c.spent)) != 0 {
				t.Errorf("spent %v, want %s", end.Live.Spent, c.spent)
			}
			if !end.Closed || end.Interrupted != "" || !strings.Contains(end.Why, "the money was spent: of 0.7479 USD, ") || !strings.Contains(end.Why, "may cost 0.068") {
				t.Errorf("%+v", end)
			}
		})
	}
}

// Further tries cost too, where what is tried again is not free.
func TestTriesCost(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 1ms, gap: 1ms, tokens: max, fail: {kind: cut, after: 0}}")
	r := newTape()
	j := job(t, url, r, schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 1, Warmup: "0", Drain: "quiet"})
	j.Options.Retries = 5
	dear(t, &j, "0.15") // two tries are 0.136
	end, _ := offerUntil(t, t.Context(), nil, j)
	if len(r.traces) != 2 || end.Live.Spent.String() != "0.136" || !end.Closed {
		t.Errorf("%d tries, spent %v, %+v", len(r.traces), end.Live.Spent, end)
	}
}

// Without a bound it is only counted.
func TestMoneyIsCounted(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 1ms, gap: 1ms, tokens: max}")
	j := job(t, url, newTape(), schedule.Options{Kind: schedule.All, Requests: 7})
	dear(t, &j, "")
	if end, _ := offer(t, j); end.Closed || end.Live.Spent.String() != "0.476" {
		t.Errorf("%v, %+v", end.Live.Spent, end)
	}
}
