package metrics

import (
	"math"
	"testing"
	"time"

	"fermata/deadline"
	"fermata/recording"
)

// firstTokenAt is an answer of one token so long after its due time, sent 2 ms
// late, to a prompt of so many tokens.
func firstTokenAt(i int64, prompt int32, ttft time.Duration) recording.Trace {
	t := recording.Trace{
		Index: i, Phase: recording.Measured, Due: i * 1e9, Sent: recording.Some(i*1e9 + 2e6), Outcome: recording.OK, HTTPStatus: 200,
		Arrivals: recording.Arrivals{DeltaNs: []int64{int64(ttft)}, Tokens: []int32{1}, Read: []int32{0}, StampErrorNs: []int64{0}},
		End:      recording.Some(i*1e9 + int64(ttft)),
	}
	t.Prompt.Used, t.Output.Used = recording.Some(prompt), recording.Some[int32](1)
	return t
}

// By hand: f(P) = 100 ms + 1 ms a token; the band is [90, 130] ms at 10 tokens and
// [1080, 1120] at 1000.
func TestEstimatedSchedulingDelay(t *testing.T) {
	ms := func(v float64) int64 { return int64(v * 1e6) }
	src := recording.Slice{
		firstTokenAt(0, 10, 112*time.Millisecond),    // sent to first 110: no delay
		firstTokenAt(1, 10, 412*time.Millisecond),    // 300 of delay
		firstTokenAt(2, 1000, 1702*time.Millisecond), // 600
		firstTokenAt(3, 2000, 9*time.Second),         // beyond the curve: nobody knows
	}
	r, err := Evaluate(src, recording.Meta{}, nil, Options{Deadlines: banded(t, time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Metrics.SchedulingDelay
	if d == nil || d.Source != "estimated" || d.N != 3 || d.Missing != 1 || *d.Min != 0 || *d.Max != 600e6 || math.Abs(*d.Mean-300e6) > 1 {
		t.Fatalf("%+v", d)
	}
	p := r.TTFTParts
	if p == nil || p.Source != "estimated" || p.N != 3 || p.MeanNs != 742e6 || len(p.Parts) != 4 || p.Curve == nil || p.Curve.Text != "curve.yaml" {
		t.Fatalf("%+v", p)
	}
	// Means: 2 late; the curve at no tokens 100; delays 0, 300, 600; prefill 10, 10, 1000.
	sum := int64(0)
	for i, want := range []TTFTPart{
		{Part: "lateness", MeanNs: ms(2)},
		{Part: "network", MeanNs: ms(100)},
		{Part: "scheduling_delay", MeanNs: ms(300), LowNs: new(ms(280)), HighNs: new(ms(320))},
		{Part: "prefill", MeanNs: ms(340), LowNs: new(ms(320)), HighNs: new(ms(360))},
	} {
		got := p.Parts[i]
		sum += got.MeanNs
		if got.Part != want.Part || got.MeanNs != want.MeanNs || !sameInt(got.LowNs, want.LowNs) || !sameInt(got.HighNs, want.HighNs) {
			t.Errorf("%s: %d [%v, %v], want %+v", got.Part, got.MeanNs, got.LowNs, got.HighNs, want)
		}
	}
	if sum != p.MeanNs {
		t.Errorf("the parts make %d of %d", sum, p.MeanNs)
	}
	// The median request waited 300 ms by the curve; from 280 to 320 by its edges.
	if len(p.Delay) != 3 || p.Delay[0].Value != 300e6 || *p.Delay[0].Low != 280e6 || *p.Delay[0].High != 320e6 {
		t.Errorf("%+v", p.Delay)
	}
}

// Of a retried request the machine's own delay ends where its first try left; what
// those before the last took is a part of its own, and all parts add up.
func TestPartsOfRetries(t *testing.T) {
	type part struct {
		name string
		ms   int64
	}
	last := firstTokenAt(0, 10, 0)
	last.Try, last.Sent, last.DeltaNs[0] = 1, recording.Some[int64](802e6), 412e6
	last.Due = 800e6 // a try of its own in a recording: its arrivals count from it
	told := last
	told.ServerReceived, told.ServerPrefill = recording.Some[int64](812e6), recording.Some[int64](150e6)
	plain := firstTokenAt(1, 10, 412*time.Millisecond)
	for name, c := range map[string]struct {
		sent recording.Maybe[int64] // of the first try
		last recording.Trace
		more []recording.Trace
		want []part
	}{
		"sent":     {recording.Some[int64](6e6), told, nil, []part{{"lateness", 6}, {"earlier_tries", 796}, {"network", 10}, {"scheduling_delay", 250}, {"prefill", 150}}},
		"refused":  {recording.Maybe[int64]{}, told, nil, []part{{"lateness", 0}, {"earlier_tries", 802}, {"network", 10}, {"scheduling_delay", 250}, {"prefill", 150}}},
		"estimate": {recording.Some[int64](6e6), last, []recording.Trace{plain}, []part{{"lateness", 4}, {"earlier_tries", 398}, {"network", 100}, {"scheduling_delay", 300}, {"prefill", 10}}},
	} {
		first := failedTrace(0, recording.HTTPError)
		first.Due, first.Sent = 0, c.sent
		r, err := Evaluate(append(recording.Slice{first, c.last}, c.more...), recording.Meta{}, nil, Options{Deadlines: banded(t, time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		p := r.TTFTParts
		if p == nil || len(p.Parts) != len(c.want) {
			t.Fatalf("%s: %+v", name, p)
		}
		sum := int64(0)
		for i, want := range c.want {
			if sum += p.Parts[i].MeanNs; p.Parts[i].Part != want.name || p.Parts[i].MeanNs != want.ms*1e6 {
				t.Errorf("%s: %+v, want %+v", name, p.Parts[i], want)
			}
		}
		if sum != p.MeanNs {
			t.Errorf("%s: the parts make %d of %d", name, sum, p.MeanNs)
		}
	}
}

func sameInt(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// What the server says is exact and is never mixed with an estimate.
func TestToldSchedulingDelay(t *testing.T) {
	told := firstTokenAt(0, 10, 412*time.Millisecond)
	told.ServerReceived, told.ServerPrefill = recording.Some[int64](12e6), recording.Some[int64](150e6)
	for _, o := range []Options{{}, {Deadlines: banded(t, time.Second)}} {
		r, err := Evaluate(recording.Slice{told, firstTokenAt(1, 10, 500*time.Millisecond)}, recording.Meta{}, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		d, p := r.Metrics.SchedulingDelay, r.TTFTParts
		if d.Source != "server" || d.N != 1 || d.Missing != 1 || *d.Max != 250e6 {
			t.Errorf("%+v", d)
		}
		if p.Source != "server" || p.N != 1 || p.MeanNs != 412e6 || p.Parts[0].MeanNs != 2e6 || p.Parts[1].MeanNs != 10e6 || p.Parts[2].MeanNs != 250e6 || p.Parts[3].MeanNs != 150e6 || p.Parts[2].LowNs != nil || p.Curve != nil {
			t.Errorf("%+v", p)
		}
	}
	// Whole deadlines are no curve: nothing is estimated from them.
	fixed, err := deadline.Parse("fixed:300ms")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Evaluate(recording.Slice{firstTokenAt(1, 10, 500*time.Millisecond)}, recording.Meta{}, nil, Options{Deadlines: fixed})
	if err != nil || r.Metrics.SchedulingDelay != nil || r.TTFTParts != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
