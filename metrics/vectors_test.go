package metrics

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"fermata/deadline"
	"fermata/recording"
)

// A vector is one line of testdata/vectors/traces.jsonl.
type vector struct {
	ID           string  `json:"id"`
	DueNs        int64   `json:"due_ns"`
	SentNs       *int64  `json:"sent_ns"`
	EndNs        *int64  `json:"end_ns"`
	Outcome      string  `json:"outcome"`
	FinishReason string  `json:"finish_reason"`
	PromptTokens *int32  `json:"prompt_tokens"`
	OutputTokens *int32  `json:"output_tokens"`
	DeltaNs      []int64 `json:"delta_ns"`
	Tokens       []int32 `json:"tokens"`
	Read         []int32 `json:"read"`
	DeadlineNs   int64   `json:"deadline_ns"`
	Expect       struct {
		TTFT         *int64          `json:"ttft_ns"`
		TTFTSent     *int64          `json:"ttft_sent_ns"`
		TBT          []int64         `json:"tbt_ns"`
		E2E          *int64          `json:"e2e_ns"`
		TPOT         *int64          `json:"tpot_ns"`
		TokenPace    *int64          `json:"token_pace_ns"`
		Normalized   *int64          `json:"normalized_latency_ns"`
		TPS          *string         `json:"tps"`
		GapLongest   *int64          `json:"gap_longest_ns"`
		EvenGap      *int64          `json:"even_gap_ns"`
		Stalls       json.RawMessage `json:"stalls"`
		Fluidity     []vectorScore   `json:"fluidity"`
		SmallestGaps map[string]any  `json:"smallest_gap_ns"`
	} `json:"expect"`
}

type vectorScore struct {
	Variant     string `json:"variant"`
	TargetGapNs int64  `json:"target_gap_ns"`
	Met, Missed *int64
	Index       string `json:"index"`
}

func maybe[T any](p *T) recording.Maybe[T] {
	if p == nil {
		return recording.Maybe[T]{}
	}
	return recording.Some(*p)
}

func (v *vector) trace(index int64) recording.Trace {
	t := recording.Trace{
		Index: index, Phase: recording.Measured, Due: v.DueNs, Sent: maybe(v.SentNs), End: maybe(v.EndNs),
		Outcome: recording.Outcome(v.Outcome), FinishReason: v.FinishReason,
		Prompt: recording.Count{Used: maybe(v.PromptTokens)}, Output: recording.Count{Used: maybe(v.OutputTokens)},
	}
	t.DeltaNs, t.Tokens, t.Read = v.DeltaNs, v.Tokens, v.Read
	return t
}

func readVectors(t *testing.T) (vectors []vector, traces recording.Slice) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors/traces.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
		traces = append(traces, v.trace(int64(len(traces))))
	}
	if len(vectors) != 130 {
		t.Fatalf("%d vectors, want 130", len(vectors))
	}
	return vectors, traces
}

func TestVectors(t *testing.T) {
	vectors, traces := readVectors(t)
	for i := range vectors {
		v := &vectors[i]
		t.Run(v.ID, func(t *testing.T) { checkVector(t, v, &traces[i]) })
	}
}

func checkVector(t *testing.T, v *vector, trace *recording.Trace) {
	var a answer
	if err := a.read(trace, &Options{}); err != nil {
		t.Fatal(err)
	}
	x := &v.Expect
	same := func(name string, want *int64, got int64, ok bool) {
		t.Helper()
		switch {
		case want == nil && ok:
			t.Errorf("%s is %d, want none", name, got)
		case want != nil && (!ok || got != *want):
			t.Errorf("%s is %d (%v), want %d", name, got, ok, *want)
		}
	}
	check := func(name string, want *int64, f func() (int64, bool)) {
		t.Helper()
		got, ok := f()
		same(name, want, got, ok)
	}
	check("ttft", x.TTFT, a.ttft)
	check("ttft_sent", x.TTFTSent, a.ttftSent)
	if !slices.Equal(a.gaps, x.TBT) && len(a.gaps)+len(x.TBT) > 0 {
		t.Errorf("tbt is %v, want %v", a.gaps, x.TBT)
	}
	for j, at := range TokenTimes(trace, nil) {
		if at != a.times[j] {
			t.Errorf("token %d at %d and %d", j, at, a.times[j])
		}
	}
	if a.good {
		check("e2e", x.E2E, a.e2e)
		check("tpot", x.TPOT, a.tpot)
		check("normalized latency", x.Normalized, a.normalized)
		check("longest gap", x.GapLongest, a.longestGap)
		even, ok := EvenGap(a.times)
		same("even gap", x.EvenGap, even, ok)
		if int(a.used.V) == len(a.times) {
			check("token pace", x.TokenPace, a.tokenPace)
		}
		checkStalls(t, x.Stalls, Stall(a.times, 166_666_667))
	}
	for _, want := range x.Fluidity {
		a.due = []int64{v.DeadlineNs}
		s, ok := a.score(want.Variant, want.TargetGapNs)
		if !ok || want.Met != nil && (*want.Met != s.Met || *want.Missed != s.Missed) || math.Abs(fraction(t, want.Index)-s.Index()) > 0 {
			t.Errorf("%s at %d: %+v %v %v, want %+v", want.Variant, want.TargetGapNs, s, s.Index(), ok, want)
		}
	}
	checkSmallest(t, x.SmallestGaps, &a, v.DeadlineNs)
}

func checkStalls(t *testing.T, raw json.RawMessage, got Stalling) {
	t.Helper()
	want := struct {
		Count   int64  `json:"count"`
		First   *int64 `json:"first_position"`
		Longest int64  `json:"longest_ns"`
		Total   int64  `json:"total_ns"`
	}{}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	first := int64(-1)
	if want.First != nil {
		first = *want.First
	}
	if got != (Stalling{want.Count, first, want.Longest, want.Total}) {
		t.Errorf("stalls %+v, want %s", got, raw)
	}
}

func checkSmallest(t *testing.T, want map[string]any, a *answer, deadline int64) {
	t.Helper()
	for _, variant := range []string{Decode, FirstToken} {
		got, ok := int64(0), false
		switch {
		case !a.good:
		case variant == Decode:
			got, ok = SmallestGap(a.times)
		default:
			got, ok = SmallestGapFirst(a.times, deadline)
		}
		text := "infeasible"
		if ok {
			text = strconv.FormatInt(got, 10)
		}
		w, there := want[variant]
		if there && fmt.Sprint(w) != text || !there && ok {
			t.Errorf("smallest gap (%s) is %s, want %v", variant, text, w)
		}
	}
}

// fraction is a/b as the nearest float.
func fraction(t *testing.T, s string) float64 {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no fraction", s)
	}
	f, _ := r.Float64()
	return f
}

// number is a JSON number or a fraction in a string.
func number(t *testing.T, raw json.RawMessage) float64 {
	t.Helper()
	s := string(raw)
	if u, err := strconv.Unquote(s); err == nil {
		s = u
	}
	return fraction(t, s)
}

type aggregateDist struct {
	N, Missing *int64
	Min, Max   json.RawMessage
	Sum        json.RawMessage
	Quantiles  map[string]json.RawMessage
}

type aggregate struct {
	Requests int64
	Outcomes map[string]int64
	Metrics  map[string]aggregateDist
	Deadline int64 `json:"deadline_ns"`
	Fluidity []struct {
		Variant     string
		TargetGapNs int64 `json:"target_gap_ns"`
		Met, Missed int64
		Share       string `json:"share_at_least_0_9"`
		Index       aggregateDist
	}
	FluidRate []struct {
		Variant, Share string
		GapNs          any `json:"gap_ns"`
	} `json:"fluid_rate"`
	Goodput []struct {
		Objective string
		Requests  int64  `json:"good_requests"`
		Tokens    int64  `json:"good_tokens"`
		Share     string `json:"share"`
	}
	Stalls *struct {
		PaceNs  int64 `json:"pace_ns"`
		WithAny int64 `json:"requests_with_any"`
	}
	SameEvent string `json:"same_event_share"`
	SameRead  string `json:"same_read_share"`
	Over      map[string]map[string]string
	Rates     *struct {
		TPOT    string
		TailTBT string `json:"tail_tbt"`
	}
}

// The aggregate over all vectors, and over those that are ok and whose count in
// use is what arrived; in memory, and with so few values kept that everything
// takes a second pass.
func TestAggregate(t *testing.T) {
	b, err := os.ReadFile("testdata/vectors/aggregate.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]aggregate{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	_, all := readVectors(t)
	var ok recording.Slice
	for _, tr := range all {
		var n int32
		for _, k := range tr.Tokens {
			n += k
		}
		if tr.Outcome == recording.OK && tr.Output.Used.V == n {
			ok = append(ok, tr)
		}
	}
	for name, traces := range map[string]recording.Slice{"all": all, "ok_only": ok} {
		for _, keep := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("%s keeping %d", name, keep), func(t *testing.T) {
				checkAggregate(t, want[name], traces, keep)
			})
		}
	}
}

func checkAggregate(t *testing.T, want aggregate, traces recording.Slice, keep int) {
	deadlines, err := deadline.Parse(fmt.Sprintf("fixed:%dns", want.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Deadlines: deadlines, keepAtMost: keep}
	for _, f := range want.Fluidity {
		if !slices.Contains(opt.TargetGapsNs, f.TargetGapNs) {
			opt.TargetGapsNs = append(opt.TargetGapsNs, f.TargetGapNs)
		}
	}
	for _, g := range want.Goodput {
		o, err := ParseObjective(g.Objective)
		if err != nil {
			t.Fatal(err)
		}
		opt.SLO = append(opt.SLO, o)
	}
	r, err := Evaluate(traces, recording.Meta{}, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.Load.Measured != want.Requests {
		t.Errorf("%d measured, want %d", r.Load.Measured, want.Requests)
	}
	if fmt.Sprint(r.Outcomes) != fmt.Sprint(want.Outcomes) {
		t.Errorf("outcomes %v, want %v", r.Outcomes, want.Outcomes)
	}
	metrics := map[string]*Dist{}
	j, err := json.Marshal(r.Metrics)
	if err == nil {
		err = json.Unmarshal(j, &metrics)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want.Metrics {
		checkDist(t, name, metrics[name], w)
	}
	checkFluid(t, r, want)
	checkRest(t, r, want)
}

func checkFluid(t *testing.T, r *Result, want aggregate) {
	t.Helper()
	if len(r.Fluidity) != len(want.Fluidity) {
		t.Fatalf("%d fluidity entries, want %d", len(r.Fluidity), len(want.Fluidity))
	}
	for i, w := range want.Fluidity {
		f := r.Fluidity[i]
		if f.Variant != w.Variant || f.TargetGapNs != w.TargetGapNs || f.Met != w.Met || f.Missed != w.Missed {
			t.Errorf("fluidity %s at %d: %d met, %d missed, want %+v", f.Variant, f.TargetGapNs, f.Met, f.Missed, w)
		}
		near(t, "share of F >= 0.9", *f.ShareAtLeast0_9, fraction(t, w.Share), 0)
		checkDist(t, fmt.Sprintf("F %s at %d", f.Variant, f.TargetGapNs), f.Index, w.Index)
	}
	for _, w := range want.FluidRate {
		for _, f := range r.FluidRate {
			if f.Variant != w.Variant || w.Share != "99/100" {
				continue
			}
			got := "infeasible"
			if f.GapNs != nil {
				got = strconv.FormatInt(*f.GapNs, 10)
			}
			if got != fmt.Sprint(w.GapNs) || f.Feasible != (got != "infeasible") {
				t.Errorf("fluid rate %s: gap %s, want %v", w.Variant, got, w.GapNs)
			}
		}
	}
}

func checkRest(t *testing.T, r *Result, want aggregate) {
	t.Helper()
	seconds := float64(r.Window.EndNs-r.Window.StartNs) / 1e9
	for i, w := range want.Goodput {
		g := r.Goodput[i]
		near(t, "goodput share", *g.Share, fraction(t, w.Share), 0)
		near(t, "good requests", *g.RequestsS*seconds, float64(w.Requests), 1e-12)
		near(t, "good tokens", *g.TokensS*seconds, float64(w.Tokens), 1e-12)
	}
	if want.Stalls != nil && (r.Stalls.PaceNs != want.Stalls.PaceNs || r.Stalls.RequestsWithAny != want.Stalls.WithAny) {
		t.Errorf("stalls %+v, want %+v", r.Stalls, want.Stalls)
	}
	if want.SameEvent != "" {
		near(t, "same event", *r.SameEventShare, fraction(t, want.SameEvent), 0)
		near(t, "same read", *r.SameReadShare, fraction(t, want.SameRead), 0)
	}
	dists := map[string]*Dist{"ttft_due": r.Metrics.TTFTDue, "tbt": r.Metrics.TBT}
	for name, bounds := range want.Over {
		for _, o := range dists[name].Over {
			near(t, name+" over", o.Share, fraction(t, bounds[strconv.FormatFloat(o.Value, 'f', 0, 64)]), 0)
		}
	}
	if want.Rates != nil {
		near(t, "TPOT rate", *r.Rates.TPOT, fraction(t, want.Rates.TPOT), 1e-15)
		near(t, "tail TBT rate", *r.Rates.TailTBT, fraction(t, want.Rates.TailTBT), 1e-15)
	}
}

func checkDist(t *testing.T, name string, got *Dist, want aggregateDist) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is missing", name)
		return
	}
	if got.N != *want.N || want.Missing != nil && got.Missing != *want.Missing {
		t.Errorf("%s: n %d, missing %d, want %d, %v", name, got.N, got.Missing, *want.N, want.Missing)
	}
	tolerance := 0.0
	if got.Unit == "tokens/s" || got.Unit == "1" {
		tolerance = 1e-15 // the quotient is one of floats
	}
	near(t, name+" min", *got.Min, number(t, want.Min), tolerance)
	near(t, name+" max", *got.Max, number(t, want.Max), tolerance)
	mean := number(t, want.Sum) / float64(got.N)
	if got.Unit == "ns" {
		mean = math.Round(mean)
	}
	near(t, name+" mean", *got.Mean, mean, 1e-14)
	if len(got.Quantiles) != len(want.Quantiles) {
		t.Errorf("%s: %d quantiles, want %d", name, len(got.Quantiles), len(want.Quantiles))
	}
	for _, q := range got.Quantiles {
		p := strconv.FormatFloat(q.P, 'f', -1, 64)
		near(t, name+" at "+p, q.Value, number(t, want.Quantiles[p]), tolerance)
	}
}

func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}
