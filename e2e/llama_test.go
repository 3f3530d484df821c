package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"fermata/metrics"
	"fermata/recording"
)

// probeTokens is how long the answer to a preflight is; a calibration's has one.
const probeTokens = 16

var apis = []string{"chat", "completions"}

// All of it runs against one engine, started and stopped here.
func TestLlama(t *testing.T) {
	needEngine(t)
	e := startEngine(t)
	for _, api := range apis {
		for _, streams := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s/%d", api, streams), func(t *testing.T) { e.testRun(t, api, streams) })
		}
	}
	t.Run("lengths", e.testLengths)
	t.Run("conversation", e.testConversation)
	t.Run("counters", e.testCounters)
	t.Run("clocks", e.testClocks)
	t.Run("held back", e.testHeldBack)
	t.Run("disconnect", e.testDisconnect)
}

// testRun measures a closed loop of so many streams and holds the recording, the
// result and the engine's totals against each other.
func (e *engine) testRun(t *testing.T, api string, streams int) {
	const requests, input, output = 6, 48, 24
	objective := "ttft<=60s and tbt.max<=60s @50%" // 6 of 6 are enough to say so: the low end of their share is 0.54
	m := e.measure(t, e.url, "--api", api, "--concurrency", fmt.Sprint(streams), "--requests", fmt.Sprint(requests), "--warmup", "1",
		"--input", fmt.Sprint(input), "--output", fmt.Sprint(output), "--seed", fmt.Sprint(streams), "--slo", objective, "--deadlines", "fixed:5s")

	var tokens int64
	for i := range m.traces {
		checkAnswer(t, &m.traces[i], output)
		tokens += int64(m.traces[i].Output.Used.V)
	}
	// Preflight and calibration are not recorded: one answer of 16 tokens and two
	// of a single one.
	if wanted := float64(tokens + probeTokens + 2); m.server.predicted != wanted {
		t.Errorf("the engine generated %v tokens; the recording, the preflight and the calibration make %v", m.server.predicted, wanted)
	}

	r := m.result
	if n := r.Outcomes["ok"]; n != requests || len(r.Outcomes) != 1 || len(r.Failures) != 0 {
		t.Errorf("outcomes %v, failures %v; wanted ok: %d", r.Outcomes, r.Failures, requests)
	}
	if r.FinishReasons["length"] != requests {
		t.Errorf("finish reasons %v, wanted length: %d", r.FinishReasons, requests)
	}
	if n := r.Load.InFlightMax; n != int64(streams) {
		t.Errorf("at most %d requests were in flight, wanted %d", n, streams)
	}
	if r.Run.Model != "smollm2-135m" || r.Run.Labels["server.owner"] != "llamacpp" {
		t.Errorf("model %q and labels %v; wanted what the engine says of itself", r.Run.Model, r.Run.Labels)
	}
	if len(r.SLO) != 1 || r.SLO[0].Verdict != metrics.Met {
		t.Errorf("verdicts %+v, wanted one: met", r.SLO)
	}
	if len(r.Goodput) != 1 || r.Goodput[0].RequestsS == nil || !(*r.Goodput[0].RequestsS > 0) || r.Goodput[0].Share == nil || *r.Goodput[0].Share != 1 {
		t.Errorf("goodput %+v, wanted one above 0 with a share of 1", r.Goodput)
	}
	checkMetrics(t, &m, requests, requests*output)
	checkAgain(t, &m)
	t.Logf("%d requests recorded, %d tokens; engine: %v tokens; TTFT %s on average, gaps %s", len(m.traces), tokens, m.server.predicted,
		mean(r.Metrics.TTFTDue), mean(r.Metrics.TBT))
}

// checkAnswer checks what must hold of any full answer of the engine.
func checkAnswer(t *testing.T, tr *recording.Trace, output int32) {
	t.Helper()
	if tr.Outcome != recording.OK || tr.FinishReason != "length" || tr.HTTPStatus != 200 {
		t.Errorf("request %d: %s, finish %q, status %d (%s)", tr.Index, tr.Outcome, tr.FinishReason, tr.HTTPStatus, tr.Error)
		return
	}
	var arrived int32
	var last int64
	for i, k := range tr.Tokens {
		arrived += k
		last += tr.DeltaNs[i]
		if tr.DeltaNs[i] < 0 || i > 0 && tr.Read[i] < tr.Read[i-1] {
			t.Errorf("request %d: arrival %d is before the one before it", tr.Index, i)
		}
	}
	if arrived != output || tr.Output.Reported.V != output || tr.Output.Used.V != output {
		t.Errorf("request %d: %d tokens arrived, %d were reported and %d are used; wanted %d", tr.Index, arrived, tr.Output.Reported.V, tr.Output.Used.V, output)
	}
	if tr.ResponseID == "" || !tr.Cached.OK || tr.Prompt.Source != recording.SourceReported {
		t.Errorf("request %d: id %q, cached tokens %v, prompt tokens %+v", tr.Index, tr.ResponseID, tr.Cached, tr.Prompt)
	}
	first := tr.FirstToken()
	if first < 0 {
		t.Errorf("request %d: no token arrived", tr.Index)
		return
	}
	var ttft int64
	for _, gap := range tr.DeltaNs[:first+1] {
		ttft += gap
	}
	if !tr.ServerPrefill.OK || tr.ServerPrefill.V <= 0 || ttft < tr.ServerPrefill.V {
		t.Errorf("request %d: TTFT %s, but the engine's prompt took %s", tr.Index, time.Duration(ttft), time.Duration(tr.ServerPrefill.V))
	}
	if !(tr.Due <= tr.Sent.V && tr.Sent.V <= tr.FirstByte.V && tr.FirstByte.V <= tr.Due+ttft && tr.Due+last <= tr.End.V) {
		t.Errorf("request %d: due %d, sent %d, first byte %d, first token %d, last %d and end %d are out of order",
			tr.Index, tr.Due, tr.Sent.V, tr.FirstByte.V, tr.Due+ttft, tr.Due+last, tr.End.V)
	}
}

// How many values each metric has: one a request, one a token, or one a gap
// between tokens. What llama.cpp can't tell is not among them: when it received
// a request, its queue, the network, and reasoning, which the model has none of.
var (
	perRequest = []string{
		"ttft_due", "ttft_sent", "prefill", "tpot", "token_pace", "normalized_latency", "e2e", "stream_end", "tps", "gap_longest",
		"even_gap", "stall_longest", "stall_total", "stalls_per_request", "prompt_tokens", "output_tokens",
	}
	perGap   = []string{"tbt"}
	perEvent = []string{"tbt_event", "tokens_per_event", "events_per_read"} // any number
)

// checkMetrics checks that every metric that applies is there and finite, and
// how they hang together.
func checkMetrics(t *testing.T, m *measurement, requests, tokens int64) {
	t.Helper()
	var doc struct {
		Metrics map[string]metrics.Dist `json:"metrics"`
	}
	if err := json.Unmarshal(m.raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(perRequest, perGap, perEvent) {
		d, ok := doc.Metrics[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		checkDist(t, name, &d)
		switch {
		case slices.Contains(perRequest, name) && d.N != requests,
			slices.Contains(perGap, name) && d.N != tokens-requests,
			d.NRequests != requests, d.Missing != 0:
			t.Errorf("%s has %d values of %d requests, %d missing; wanted those of %d requests", name, d.N, d.NRequests, d.Missing, requests)
		}
	}
	for name := range maps.Keys(doc.Metrics) { // only where an answer stalled
		if name != "stall_position_first" && !slices.Contains(slices.Concat(perRequest, perGap, perEvent), name) {
			t.Errorf("%s is there, but the engine can't have told it", name)
		}
	}
	r := m.result
	checkDist(t, "lateness", r.Load.Lateness)
	for name, v := range map[string]*float64{
		"offered_rps": r.Load.OfferedRPS, "achieved_rps": r.Load.AchievedRPS,
		"requests_per_s": r.Throughput.RequestsPerS, "input_tokens_per_s": r.Throughput.InputTokensPerS,
		"output_tokens_per_s_finished": r.Throughput.OutputTokensPerSFinished, "output_tokens_per_s_arrived": r.Throughput.OutputTokensPerSArrived,
		"rates.tpot": r.Rates.TPOT, "rates.tail_tbt": r.Rates.TailTBT, "rates.fluid": r.Rates.Fluid,
	} {
		if v == nil || !(*v > 0) || math.IsInf(*v, 0) {
			t.Errorf("%s is not a finite number above 0", name)
		}
	}
	for name, v := range map[string]*float64{"same_event_share": r.SameEventShare, "same_read_share": r.SameReadShare, "exact_share": r.Health.ExactShare} {
		if v == nil || !(*v >= 0 && *v <= 1) {
			t.Errorf("%s is no share", name)
		}
	}
	checkDist(t, "bound_width", r.Health.BoundWidth)
	if r.Health.CPUMax == nil || r.Health.GCPauseMax == nil || r.Stalls == nil {
		t.Error("the processor's use, the collector's pauses or the stalls are missing")
	}
	variants := map[string]int{}
	for _, f := range r.Fluidity {
		variants[f.Variant]++
		checkDist(t, "fluidity", f.Index)
		// Decode judges every token but the first, the other variant all of them.
		if scored := f.Met + f.Missed; f.Variant == metrics.Decode && scored < tokens-requests || scored < tokens-requests {
			t.Errorf("fluidity %s at %d ns: %d met and %d missed, of %d tokens", f.Variant, f.TargetGapNs, f.Met, f.Missed, tokens)
		}
	}
	if len(variants) != 2 || variants[metrics.Decode] != 3 || len(r.Fluidity) != 6 {
		t.Errorf("fluidity has the variants %v, wanted two at three target gaps", variants)
	}
	if len(r.FluidRate) != 2 {
		t.Errorf("%d fluid rates, wanted one a variant", len(r.FluidRate))
	}
	for _, f := range r.FluidRate {
		if f.Feasible && (f.GapNs == nil || *f.GapNs <= 0 || f.TokensPS == nil || !(*f.TokensPS > 0)) || f.Variant == metrics.Decode && !f.Feasible {
			t.Errorf("fluid rate %+v is no rate", f)
		}
	}
	x := &r.Metrics
	if t.Failed() {
		return
	}
	// Of one answer: first token, then the gaps, then the end.
	if *x.E2E.Mean < *x.TTFTDue.Mean || *x.StreamEnd.Mean < *x.E2E.Mean || *x.TTFTSent.Mean > *x.TTFTDue.Mean || *x.Prefill.Mean > *x.TTFTDue.Mean {
		t.Error("the means of prefill, TTFT, end-to-end and the stream's end are out of order")
	}
	perAnswer := float64(tokens/requests - 1)
	// Means are whole ns, rounded down, and a request has many gaps.
	if spans := *x.TBT.Mean * perAnswer; math.Abs(spans-(*x.E2E.Mean-*x.TTFTDue.Mean)) > perAnswer+2 {
		t.Errorf("the mean gaps of an answer make %v ns, TTFT to the last token is %v", spans, *x.E2E.Mean-*x.TTFTDue.Mean)
	}
	if *x.GapLongest.Max != *x.TBTEvent.Max || *x.OutputTokens.Mean*float64(requests) != float64(tokens) {
		t.Errorf("the longest silence %v is not the longest gap %v, or %v tokens an answer are not %d in all", *x.GapLongest.Max, *x.TBTEvent.Max, *x.OutputTokens.Mean, tokens)
	}
}

func checkDist(t *testing.T, name string, d *metrics.Dist) {
	t.Helper()
	if d == nil || d.N <= 0 || d.Mean == nil || d.Min == nil || d.Max == nil || len(d.Quantiles) < 5 {
		t.Errorf("%s is missing or not whole: %+v", name, d)
		return
	}
	if !(*d.Min <= *d.Mean && *d.Mean <= *d.Max) || math.IsInf(*d.Min, 0) || math.IsInf(*d.Max, 0) {
		t.Errorf("%s: mean %v is not within %v and %v", name, *d.Mean, *d.Min, *d.Max)
	}
	before := *d.Min
	for _, q := range d.Quantiles {
		if !(q.Value >= before && q.Value <= *d.Max) {
			t.Errorf("%s: the quantile %v is %v, after %v and with a maximum of %v", name, q.P, q.Value, before, *d.Max)
		}
		before = q.Value
	}
}

// checkAgain checks that a recording alone gives the same result again.
func checkAgain(t *testing.T, m *measurement) {
	t.Helper()
	if m.stdout != string(m.raw) {
		t.Error("standard output is not result.json")
	}
	again := fermata(t, "report", m.dir, "-o", "json")
	if again.code != 0 || again.stdout != string(m.raw) {
		t.Errorf("fermata report says otherwise than result.json (exit code %d): %s", again.code, again.stderr)
	}
	if len(m.traces) < int(m.result.Load.Measured) || !m.meta.WindowEnd.OK {
		t.Errorf("the recording has %d requests and the window %+v", len(m.traces), m.meta)
	}
}

func mean(d *metrics.Dist) time.Duration {
	if d == nil || d.Mean == nil {
		return 0
	}
	return time.Duration(*d.Mean).Round(10 * time.Microsecond)
}

// testLengths checks that synthetic prompts have the length that was asked for,
// by the engine's own count, whatever its chat template adds.
func (e *engine) testLengths(t *testing.T) {
	const wanted = 256
	for _, api := range apis {
		m := e.measure(t, e.url, "--api", api, "--concurrency", "1", "--warmup", "0", "--requests", "2", "--input", fmt.Sprint(wanted), "--output", "4")
		var got []int32
		for i := range m.traces {
			tr := &m.traces[i]
			checkAnswer(t, tr, 4)
			n := tr.Prompt.Reported.V
			got = append(got, n)
			if math.Abs(float64(n)-wanted) > 0.03*wanted || tr.Prompt.Intended.V != wanted {
				t.Errorf("%s: a prompt has %d tokens and %d intended, wanted %d ± 3 %%", api, n, tr.Prompt.Intended.V, wanted)
			}
			// Prompts differ from their first word on: only the template is shared.
			if cached := tr.Cached.V; cached > 32 {
				t.Errorf("%s: %d of a prompt's tokens came from the engine's cache", api, cached)
			}
		}
		t.Logf("%s: prompts of %v tokens; %s", api, got, strings.TrimSpace(m.said))
	}
}

// testCounters checks a run whose preflight is known against all of the engine's
// totals: a data set needs no calibration, and its preflight asks its first line.
func (e *engine) testCounters(t *testing.T) {
	file := writeLines(t,
		`{"prompt": "Tell the story of a fox who learned to play the flute.", "output_tokens": 40}`,
		`{"prompt": "List the months.", "output_tokens": 24}`,
		`{"prompt": "Why is the sky blue? Explain it to a child of six, in plain words.", "output_tokens": 33}`)
	m := e.measure(t, e.url+"/v1", "--concurrency", "1", "--warmup", "0", "--requests", "6", "--dataset", file,
		"--set", "target.body={ignore_eos: true}")
	prompt, output, gaps := m.traces[0].Prompt.Reported.V, int32(0), 0
	var spans time.Duration
	for i := range m.traces {
		tr := &m.traces[i]
		checkAnswer(t, tr, tr.Output.Intended.V)
		prompt += tr.Prompt.Reported.V
		output += tr.Output.Used.V
		gaps += int(tr.Output.Used.V) - 1
		spans += span(tr)
	}
	if len(m.traces) != 6 || output != 2*(40+24+33) {
		t.Fatalf("%d requests with %d tokens, wanted 6 with %d", len(m.traces), output, 2*(40+24+33))
	}
	if m.server.predicted != float64(output+probeTokens) || m.server.prompt != float64(prompt) {
		t.Errorf("the engine read %v tokens and generated %v; the recording and the preflight make %d and %d",
			m.server.prompt, m.server.predicted, prompt, output+probeTokens)
	}
	// The preflight's gaps are like the others.
	whole := time.Duration(m.server.decoding * float64(time.Second))
	expected := time.Duration(float64(spans) / float64(gaps) * float64(gaps+probeTokens-1))
	if off := (whole - expected).Abs(); off > whole/10+150*time.Millisecond {
		t.Errorf("the engine decoded for %s, the gaps of the recording make %s", whole, expected)
	}
	t.Logf("prompt tokens %v, output tokens %v, decoding %s; gaps with the preflight's make %s", m.server.prompt, m.server.predicted, whole, expected)
}

// span is the time from the first token to the last.
func span(tr *recording.Trace) time.Duration {
	var sum int64
	for _, gap := range tr.DeltaNs[tr.FirstToken()+1:] {
		sum += gap
	}
	return time.Duration(sum)
}

// testHeldBack asks for emoji and Chinese, characters of several tokens: the
// engine sends nothing until a character is whole, and no token may get lost.
func (e *engine) testHeldBack(t *testing.T) {
	const output = 32
	file := writeLines(t, `{"prompt": "Write ten emoji."}`, `{"prompt": "用中文写一句关于春天的话。"}`)
	for _, api := range apis {
		for _, exact := range []bool{false, true} {
			body := "target.body={temperature: 0, ignore_eos: true, grammar: 'root ::= [一-龥😀-🙏]+'"
			source := recording.ArrivalShared
			if exact { // with a running count in every event
				body += ", timings_per_token: true"
				source = recording.ArrivalUsage
			}
			m := e.measure(t, e.url, "--api", api, "--concurrency", "2", "--warmup", "0", "--requests", "4", "--drain", "quiet", "--dataset", file,
				"--output", fmt.Sprint(output), "--set", body+"}")
			if wanted := float64(len(m.traces)*output + probeTokens); m.server.predicted != wanted {
				t.Errorf("%s: the engine generated %v tokens, wanted %v", api, m.server.predicted, wanted)
			}
			if n := m.result.Outcomes["ok"]; n != 4 || len(m.result.Outcomes) != 1 {
				t.Errorf("%s: outcomes %v, wanted ok: 4", api, m.result.Outcomes)
			}
			events, short := 0, int32(0)
			for i := range m.traces {
				lost := checkHeldBack(t, &m.traces[i], output, source)
				events += m.traces[i].Len()
				if m.traces[i].Phase == recording.Measured {
					short += lost
				}
			}
			for code, wanted := range map[string]bool{"usage_shared": !exact, "usage_differs": short > 0} {
				if got := slices.ContainsFunc(m.result.Warnings, func(w metrics.Warning) bool { return w.Code == code }); got != wanted {
					t.Errorf("%s: the warning %s is there: %v, wanted %v", api, code, got, wanted)
				}
			}
			t.Logf("%s: %d events brought %d tokens (%s), %d never came as text", api, events, len(m.traces)*output, source, short)
		}
	}
}

// checkHeldBack says how many tokens of an answer never came. That may be so
// where each event says what it brought and the answer ends within a character;
// shared out by bytes, all tokens of the usage have a place.
func checkHeldBack(t *testing.T, tr *recording.Trace, output int32, source string) (lost int32) {
	t.Helper()
	lost = output
	for i, k := range tr.Tokens {
		lost -= k
		if n := int(tr.TextBytes[i]); n > 0 && n < utf8.RuneLen('一') {
			t.Errorf("request %d: an arrival of %d bytes is no whole character", tr.Index, n)
		}
	}
	if tr.Outcome != recording.OK || tr.Output.Reported.V != output || tr.ArrivalSource != source || tr.Len() >= int(output) {
		t.Errorf("request %d: %s (%s), %d tokens reported, known by %s from %d arrivals; wanted ok, %d, by %s, from fewer",
			tr.Index, tr.Outcome, tr.Error, tr.Output.Reported.V, tr.ArrivalSource, tr.Len(), output, source)
	}
	if lost < 0 || lost > 0 && source == recording.ArrivalShared || lost >= utf8.UTFMax {
		t.Errorf("request %d: %d of %d tokens never came", tr.Index, lost, output)
	}
	return lost
}

// testDisconnect cuts a run in mid-answer: the recording keeps what came, and
// the engine's slot is free again.
func (e *engine) testDisconnect(t *testing.T) {
	const output = 1500
	dir := t.TempDir()
	c, stdout, stderr := command(t, "run", e.url, "--quiet", "-o", "json", "--out", dir, "--concurrency", "1", "--warmup", "0", "--requests", "1",
		"--input", "32", "--output", fmt.Sprint(output))
	before := e.counters(t)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for deadline := time.Now().Add(30 * time.Second); seen < 20; time.Sleep(20 * time.Millisecond) {
		for _, s := range e.slots(t) {
			if s.Busy && s.Params.MaxTokens == output && len(s.Next) > 0 {
				seen = s.Next[0].Decoded
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no long answer under way after 30 s; it said:\n%s", stderr)
		}
	}
	time.Sleep(time.Second) // what the engine has counted is on its way, on a busy machine too
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cut := time.Now()
	free := e.awaitIdle(t, 5*time.Second)
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, wanted 130; it said:\n%s%s", code, stderr, stdout)
	}
	m := readRun(t, dir)
	if len(m.traces) != 1 {
		t.Fatalf("the recording has %d requests, wanted one", len(m.traces))
	}
	tr := &m.traces[0]
	var arrived int
	for _, k := range tr.Tokens {
		arrived += int(k)
	}
	generated := e.counters(t).minus(before).predicted
	if tr.Outcome != recording.TruncatedByUs || tr.FailedAt != recording.AtMidStream || m.result.Outcomes[string(recording.TruncatedByUs)] != 1 {
		t.Errorf("the request is %s, failed at %q; outcomes %v; wanted one cut by us", tr.Outcome, tr.FailedAt, m.result.Outcomes)
	}
	if arrived < seen || float64(arrived) > generated {
		t.Errorf("%d tokens arrived; the engine had %d before the cut and %v in all", arrived, seen, generated)
	}
	t.Logf("cut after %d tokens (the engine had counted %d, and %v in all with preflight and calibration); slot free after %s, process ended after %s",
		arrived, seen, generated, free.Round(time.Millisecond), time.Since(cut).Round(time.Millisecond))
}
