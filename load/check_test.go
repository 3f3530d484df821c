package load

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
	"fermata/schedule"
)

func (r *tape) begunSoFar() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.begun)
}

// Every third answer is another text. Each measured answer is checked once, off
// the path of those who ask: the check of the first one waits for the last
// request, which in a closed loop of one could not come if anybody waited for it.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	const warm, requests = 2, 9
	url, _ := scripted(t, `{ttft: 2ms, gap: 1ms, tokens: max, text: "good ", fail: {every: 3, steps: [{at: 2ms, text: "bad"}, {at: 3ms, finish: stop}, {at: 3ms, done: true}]}}`)
	r := newTape()
	j := job(t, url, r, schedule.Options{Concurrency: 1, Requests: requests, Warmup: "2", Drain: "quiet"})
	var atOnce, most, checked atomic.Int64
	j.Check = func(_ context.Context, answer string) (bool, string) {
		most.Store(max(most.Load(), atOnce.Add(1)))
		defer atOnce.Add(-1)
		for end := time.Now().Add(20 * time.Second); r.begunSoFar() < warm+requests; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the last request waited for the check of the first")
				break
			}
		}
		checked.Add(1)
		return answer == strings.Repeat("good ", tokens), "it says\nsomething  else"
	}
	end, _ := offer(t, j)
	if most.Load() != 1 || checked.Load() != requests {
		t.Errorf("%d checks, up to %d at once; want %d, one by one", checked.Load(), most.Load(), requests)
	}
	if end.Live.Finished != warm+requests || end.Live.Unchecked != 0 {
		t.Errorf("at the end %+v", end.Live)
	}
	for i := range r.traces {
		tr := &r.traces[i]
		check, detail := recording.Pass, ""
		switch {
		case tr.Index < warm:
			check = ""
		case tr.Index%3 == 2:
			check, detail = recording.Fail, "it says something else"
		}
		if tr.Outcome != recording.OK || tr.Check != check || tr.CheckDetail != detail || tr.Slow.OK {
			t.Errorf("request %d: %s, check %q (%q), slow %v; want %q (%q)", tr.Index, tr.Outcome, tr.Check, tr.CheckDetail, tr.Slow, check, detail)
		}
	}
	if len(r.texts) > 0 {
		t.Errorf("texts were kept that nobody asked for: %v", r.texts)
	}
}

// A failed answer is no answer to check.
func TestFailedAnswersAreNotChecked(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, "{ttft: 2ms, gap: 1ms, tokens: max, fail: {every: 2, kind: cut, after: 3}}")
	j := job(t, url, newTape(), schedule.Options{Kind: schedule.All, Requests: 6})
	j.KeepText = true
	j.Check = func(context.Context, string) (bool, string) { return true, "" }
	_, r := offer(t, j)
	for i := range r.traces {
		if tr := &r.traces[i]; (tr.Outcome == recording.OK) != (tr.Check == recording.Pass) || tr.Check == recording.Fail {
			t.Errorf("request %d: %s, check %q", tr.Index, tr.Outcome, tr.Check)
		}
	}
	if len(r.texts) != 6 {
		t.Errorf("the texts of %d requests were kept, not of 6", len(r.texts))
	}
}

// A run that is cut leaves the answers unchecked that it had no time for, and
// loses none of them.
func TestCutLeavesAnswersUnchecked(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		url, _ := scripted(t, "{ttft: 1ms, gap: 1ms, tokens: max}")
		ctx, cut := context.WithCancel(t.Context())
		j := job(t, url, newTape(), schedule.Options{Kind: schedule.All, Requests: 5})
		j.Check = func(ctx context.Context, _ string) (bool, string) {
			cut()
			<-ctx.Done()
			return false, "ended with the run"
		}
		end, r := offerUntil(t, ctx, nil, j)
		if end.Interrupted == "" || len(r.traces) != 5 {
			t.Errorf("%d requests were kept of an %q run", len(r.traces), end.Interrupted)
		}
		for i := range r.traces {
			if tr := &r.traces[i]; tr.Check != "" || tr.CheckDetail != "" {
				t.Errorf("request %d: check %q (%q)", tr.Index, tr.Check, tr.CheckDetail)
			}
		}
	})
}

// Slow is measured from the due time to the last token.
func TestSlow(t *testing.T) {
	t.Parallel()
	trace := recording.Trace{
		Due:      1000,
		Arrivals: recording.Arrivals{DeltaNs: []int64{50, 20, 30, 900}, Tokens: []int32{1, 2, 1, 0}},
	}
	for _, c := range []struct {
		threshold int64
		want      recording.Maybe[bool]
	}{{99, recording.Some(true)}, {100, recording.Some(false)}, {0, recording.Maybe[bool]{}}} {
		if got := slow(&trace, c.threshold); got != c.want {
			t.Errorf("over %d ns: %+v, want %+v", c.threshold, got, c.want)
		}
	}
	if got := slow(&recording.Trace{Due: 1000}, 1); got.OK {
		t.Errorf("without a token: %+v", got)
	}
	url, _ := scripted(t, "{ttft: 1ms, gap: 10ms, tokens: 6, fail: {every: 2, status: 503}}")
	j := job(t, url, newTape(), schedule.Options{Kind: schedule.Closed, Concurrency: 1, Requests: 4, Warmup: "0", Drain: "quiet"})
	j.SlowNs = 40 * ms // the script takes 51 ms, and nothing is early
	_, r := offer(t, j)
	for i := range r.traces {
		if tr := &r.traces[i]; tr.Slow != (recording.Maybe[bool]{V: tr.Outcome == recording.OK, OK: tr.Outcome == recording.OK}) {
			t.Errorf("request %d: %s, slow %+v", tr.Index, tr.Outcome, tr.Slow)
		}
	}
}

// A server may repeat the key in its answer: what is kept of it does not.
func TestKeptTextHidesSecrets(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, `{ttft: 1ms, tokens: 2, text: "key k-4321 "}`)
	j := job(t, url, newTape(), once)
	j.KeepText, j.Secrets = true, []string{"k-4321"}
	j.Check = func(_ context.Context, answer string) (bool, string) { return false, "not right: " + answer }
	_, r := offer(t, j)
	if got := r.texts[0][1]; got != "key [secret] key [secret] " {
		t.Errorf("kept %q", got)
	}
	if got := r.traces[0].CheckDetail; got != "not right: key [secret] key [secret]" {
		t.Errorf("detail %q", got)
	}
}
