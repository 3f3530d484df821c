package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fermata/deadline"
	"fermata/recording"
)

// banded are deadlines of a measured curve: 100 ms and 1 ms a token, the band 20 ms
// to either side, valid from 10 to 1000 tokens.
func banded(t *testing.T, slack time.Duration, flags ...string) *deadline.Deadlines {
	t.Helper()
	o := deadline.Options{Name: "curve.yaml", File: deadline.File{
		Schema: deadline.Schema, Shape: deadline.Linear,
		Curve: &deadline.Coefficients{A: "100ms", B: "1ms"},
		Band: []deadline.BandPoint{
			{Tokens: 10, Low: 90 * time.Millisecond, High: 130 * time.Millisecond},
			{Tokens: 1000, Low: 1080 * time.Millisecond, High: 1120 * time.Millisecond},
		},
		Slack: &slack, Flags: flags, Valid: deadline.Valid{PromptTokens: []int32{10, 1000}},
	}}
	d, err := o.Deadlines()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// gapForm is algorithm 1 as the paper writes it, by gaps and slack; carry bounds
// what of the first token's slack is handed on.
func gapForm(gaps []int64, first, gap, carry int64) Score {
	var s Score
	var slack int64
	for i, t := range gaps {
		due := gap
		if i == 0 {
			due = first
		}
		if t <= due+slack {
			slack += due - t
			s.Met++
			if i == 0 {
				slack = min(slack, carry)
			}
			continue
		}
		s.Missed += (t-slack-due)/gap + 1
		slack = 0
	}
	return s
}

func TestViewsOfABand(t *testing.T) {
	const ms = 1_000_000
	// A prompt of 100 tokens: D_p = 200 ms + S, 180 and 220 at the edges. The first
	// token comes at 310 ms, the third stalls for 600 ms.
	tr := steadyTrace(0, 4, 310*ms, 20*ms)
	tr.DeltaNs[2] = 600 * ms
	opt := Options{Deadlines: banded(t, 200*time.Millisecond), TargetGapsNs: []int64{25 * ms}}
	r := evaluate(t, recording.Slice{tr}, recording.Meta{}, opt)
	var got []string
	for _, f := range r.Fluidity {
		slack := "-"
		if f.SlackNs != nil {
			slack = fmt.Sprint(*f.SlackNs / ms)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %d/%d", f.Variant, f.Edge, slack, f.Carry, f.Met, f.Met+f.Missed))
	}
	// By hand. Strict, the stall is 570 ms late (600 less the gap and the 5 ms before),
	// which is 23 misses, and three tokens are in time; 110 ms of lateness at half the
	// slack and 10 ms are 1 miss. What is carried over: at S 90 ms of 400, at 2S 290,
	// at the edges 70 and 110: 480, 280, 500 and 460 ms late, 20, 12, 21 and 19 misses.
	want := []string{
		"decode  - unlimited 2/25",
		"first_token fit 200 unlimited 3/23", "first_token fit 200 none 3/26",
		"first_token fit 100 unlimited 2/26", "first_token fit 100 none 2/26",
		"first_token fit 400 unlimited 3/15", "first_token fit 400 none 3/26",
		"first_token low 200 unlimited 3/24", "first_token low 200 none 3/26",
		"first_token high 200 unlimited 3/22", "first_token high 200 none 3/26",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := r.Fluidity[1].Deadline; d.Text != "curve.yaml" || d.Shape != "linear" || d.Source != "file" {
		t.Errorf("%+v", d)
	}
}

// Two answers with a stall of 0.6 s after a slack of 2 s: none missed with what is
// carried over, 23 without.
func TestUnusedSlackHidesStalls(t *testing.T) {
	times := []int64{100e6, 120e6, 720e6, 740e6}
	if s, ok := PlayFirst(times, 2100e6, 25e6); !ok || s != (Score{Met: 4}) {
		t.Errorf("carried over: %+v", s)
	}
	if s, ok := PlayDecode(times, 25e6); !ok || s.withFirst(times[0]-2100e6, 25e6) != (Score{Met: 3, Missed: 23}) {
		t.Errorf("forfeited: %+v", s)
	}
}

func TestViewsProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		tr := steadyTrace(0, n, 0, 0)
		for i := range tr.DeltaNs {
			tr.DeltaNs[i] = rapid.SampledFrom([]int64{0, 1, 9, 10, 11, 25, 200}).Draw(rt, "gap") * 1_000_000
		}
		tr.DeltaNs[0] += rapid.Int64Range(0, 900_000_000).Draw(rt, "ttft")
		tr.Prompt.Used = recording.Some(rapid.Int32Range(10, 1000).Draw(rt, "prompt"))
		slack := time.Duration(rapid.Int64Range(0, 500_000_000).Draw(rt, "slack"))
		gap := rapid.SampledFrom([]int64{7, 10, 25}).Draw(rt, "target") * 1_000_000
		d := banded(t, slack)
		r := evaluate(t, recording.Slice{tr}, recording.Meta{}, Options{Deadlines: d, TargetGapsNs: []int64{gap}})
		index := map[string]float64{}
		for _, f := range r.Fluidity[1:] {
			carry := int64(math.MaxInt64)
			if f.Carry == "none" {
				carry = 0
			}
			first := d.Due(deadline.Edge(f.Edge), *f.SlackNs, tr.Prompt.Used.V)
			if want := gapForm(tr.DeltaNs, first, gap, carry); f.Met != want.Met || f.Missed != want.Missed {
				rt.Fatalf("%s %s at slack %d: %d met %d missed, want %+v", f.Edge, f.Carry, *f.SlackNs, f.Met, f.Missed, want)
			}
			index[fmt.Sprint(f.Edge, *f.SlackNs, f.Carry)] = *f.Index.Mean
		}
		s := int64(slack)
		for _, pair := range [][2]string{
			{fmt.Sprint("fit", s/2, "unlimited"), fmt.Sprint("fit", s, "unlimited")},
			{fmt.Sprint("fit", s, "unlimited"), fmt.Sprint("fit", 2*s, "unlimited")},
			{fmt.Sprint("low", s, "none"), fmt.Sprint("fit", s, "none")},
			{fmt.Sprint("fit", s, "none"), fmt.Sprint("high", s, "none")},
			{fmt.Sprint("high", s, "none"), fmt.Sprint("high", s, "unlimited")},
		} {
			if index[pair[0]] > index[pair[1]] {
				rt.Fatalf("F %v at %s, %v at %s", index[pair[0]], pair[0], index[pair[1]], pair[1])
			}
		}
	})
}

// Of 2000 answers as many come between the curve's low edge and its fit as the
// verdict can bear, or more.
func TestVerdictNotEstablished(t *testing.T) {
	const ms = 1_000_000
	run := func(between int, slack time.Duration, opt Options, slo string) *Result {
		var s recording.Slice
		for i := range int64(2000) {
			ttft := int64(150 * ms)
			if i*7919%2000 < int64(between) { // scattered: in a row they would count as one burst
				ttft = 395 * ms // D_p = 400, 380 at the low edge, at a slack of 200
			}
			s = append(s, steadyTrace(i, 1, ttft, 0))
		}
		opt.Deadlines, opt.SLO = banded(t, slack), objectivesOf(t, slo)
		return evaluate(t, s, recording.Meta{}, opt)
	}
	const share, rank = "fluidity>=0.9 gap=25ms @99%", "fluidity.first>=0.9 gap=25ms @p99"
	for _, slo := range []string{share, rank, "fluidity>=0.9 gap=25ms and ttft<=1s @99%"} {
		r := run(0, 200*time.Millisecond, Options{}, slo)
		if v := r.SLO[0]; v.Verdict != Met || len(v.Views) != 5 || strings.Contains(codes(r), "established") {
			t.Errorf("%s, none between: %+v, %s", slo, v, codes(r))
		}
		r = run(60, 200*time.Millisecond, Options{}, slo)
		v := r.SLO[0]
		if v.Verdict != Open || v.Views[0].Verdict != Met || v.Views[1].Verdict != Missed || v.Views[3].Verdict != Missed || v.Views[4].Verdict != Met {
			t.Errorf("%s, 3 %% between: %+v", slo, v)
		}
		if math.Abs(v.Views[3].Share-0.97) > 0 || math.Abs(*v.Share-1) > 0 {
			t.Errorf("%s: %+v", slo, v)
		}
		text := ""
		for _, w := range r.Warnings {
			if w.Code == "verdict_not_established" {
				text = w.Text
			}
		}
		if !strings.Contains(text, "met as it stands, but missed with a slack of 100 ms, missed with the curve's low edge") {
			t.Errorf("%s: %q", slo, text)
		}
		if r = run(60, 200*time.Millisecond, Options{PointVerdict: true}, slo); r.SLO[0].Verdict != Met || !strings.Contains(codes(r), "verdict_not_established") {
			t.Errorf("%s by the point: %+v", slo, r.SLO[0])
		}
		if r = run(60, time.Second, Options{}, slo); r.SLO[0].Verdict != Met {
			t.Errorf("%s with room: %+v", slo, r.SLO[0])
		}
	}
	if r := run(60, 200*time.Millisecond, Options{}, "fluidity.decode>=0.9 gap=25ms"); r.SLO[0].Views != nil {
		t.Errorf("decode has views: %+v", r.SLO[0])
	}
}

func TestDeadlinesHaveARange(t *testing.T) {
	in, out, bad := steadyTrace(0, 5, 100e6, 10e6), steadyTrace(1, 5, 100e6, 10e6), failedTrace(2, recording.HTTPError)
	out.Prompt.Used = recording.Some[int32](1001)
	r := evaluate(t, recording.Slice{in, out, bad}, recording.Meta{}, Options{Deadlines: banded(t, 0, deadline.ThinSupport)})
	// The failed one has F = 0 whatever its prompt.
	for _, f := range r.Fluidity {
		if f.Variant == FirstToken && (f.Index.N != 2 || f.Index.Missing != 1) {
			t.Errorf("%+v", f.Index)
		}
	}
	// Without slack there is nothing to halve: three views, two carries, three gaps.
	if n := len(r.Fluidity); n != 3+3*3*2 {
		t.Errorf("%d entries", n)
	}
	if c := codes(r); !strings.Contains(c, "deadline_range deadline_curve") {
		t.Errorf("warnings %s", c)
	}
}
