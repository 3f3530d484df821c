package recording

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A life is a request as the property test plays it: events as they arrive, and
// the trace that shall come out.
type life struct {
	begun  Trace
	events []Arrival
	want   Trace
	ends   bool
	next   int // event to come; -1 before the begin
}

func drawLife(t *rapid.T, index int64) *life {
	l := &life{next: -1, ends: rapid.IntRange(0, 9).Draw(t, "ends") > 0}
	l.begun = Trace{Index: index, Try: rapid.SampledFrom([]int32{0, 0, 3}).Draw(t, "try"), Due: rapid.Int64Range(-5, 1000).Draw(t, "due"), Phase: Measured}
	at := l.begun.Due
	for range rapid.IntRange(0, 12).Draw(t, "events") {
		at += rapid.Int64Range(-2, 1<<40).Draw(t, "gap")
		l.events = append(l.events, Arrival{
			At: at, StampErrorNs: rapid.Int64Range(0, 1<<33).Draw(t, "error"),
			Tokens: rapid.SampledFrom([]int32{-1, -1, -1, 0, 1, 2, 300}).Draw(t, "tokens"), Read: rapid.Int32Range(0, 50).Draw(t, "read"),
			TextBytes: rapid.Int32Range(0, 300).Draw(t, "bytes"), Channel: rapid.Int8().Draw(t, "channel"), Text: rapid.Bool().Draw(t, "text"),
		})
	}
	l.want = l.begun
	if !l.ends {
		l.settle(func(a Arrival) bool { return a.Text || a.Tokens >= 0 })
		l.want.Outcome, l.want.FailedAt = Incomplete, AtSend
		var sum int32
		for _, k := range l.want.Tokens {
			if sum += k; k > 0 {
				l.want.FailedAt = AtMidStream
			}
		}
		for _, a := range l.events {
			if a.Tokens < 0 && a.Text {
				l.want.ArrivalSource = ArrivalAssumed
			}
		}
		l.want.Output = Count{Used: Some(sum), Counted: Some(sum), Source: SourceCounted}
		return l
	}
	l.want.Outcome = OK
	switch rapid.IntRange(0, 3).Draw(t, "settled") {
	case 0: // what stands
		l.settle(func(a Arrival) bool { return a.Text || a.Tokens >= 0 })
	case 1: // every event was a token
		l.settle(func(Arrival) bool { return true })
	case 2: // some of them
		l.settle(func(Arrival) bool { return rapid.Bool().Draw(t, "keep") })
	case 3: // the times were mended afterwards
		l.settle(func(Arrival) bool { return true })
		if l.want.Len() > 0 {
			l.want.DeltaNs[0]++
		}
	}
	if rapid.Bool().Draw(t, "retold") {
		for i := range l.want.Tokens {
			l.want.Tokens[i] = rapid.Int32Range(0, 5).Draw(t, "retold tokens")
		}
	}
	return l
}

// settle keeps some events, one token each where it is not known.
func (l *life) settle(keep func(Arrival) bool) {
	at := l.begun.Due
	for _, a := range l.events {
		if !keep(a) {
			continue
		}
		w := &l.want.Arrivals
		w.DeltaNs = append(w.DeltaNs, a.At-at)
		w.Tokens = append(w.Tokens, max(a.Tokens, 1))
		if a.Tokens == 0 {
			w.Tokens[len(w.Tokens)-1] = 0
		}
		w.Read = append(w.Read, a.Read)
		w.StampErrorNs = append(w.StampErrorNs, a.StampErrorNs)
		w.Channel = append(w.Channel, a.Channel)
		w.TextBytes = append(w.TextBytes, a.TextBytes)
		at = a.At
	}
}

// step plays the next thing that happens to the request; false after the last.
func (l *life) step(r *Recorder) (more bool, err error) {
	switch {
	case l.next < 0:
		err = r.Begin(&l.begun)
	case l.next < len(l.events):
		err = r.Arrive(l.begun.Index, l.begun.Try, l.events[l.next])
	case l.ends:
		return false, r.End(&l.want)
	default:
		return false, nil
	}
	l.next++
	return true, err
}

// Any interleaving of requests stitches back, whatever the segments' size and
// however little memory sorting has.
func TestAnyInterleaving(t *testing.T) {
	base, run := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		dir := filepath.Join(base, fmt.Sprint(run))
		size := rapid.SampledFrom([]int{256, 1024, 1 << 16}).Draw(t, "segment")
		r, err := create(dir, Meta{}, journalOptions{size: size, write: rapid.Bool().Draw(t, "write"), clocks: func() (int64, int64) { return 1, 2 }})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Abandon()
		var want []Trace
		var lives []*life
		for i := range rapid.IntRange(0, 8).Draw(t, "requests") {
			l := drawLife(t, int64(i*100))
			lives, want = append(lives, l), append(want, l.want)
		}
		var arrivals int64
		for len(lives) > 0 {
			i := rapid.IntRange(0, len(lives)-1).Draw(t, "who")
			more, err := lives[i].step(r)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				lives = slices.Delete(lives, i, i+1)
			}
		}
		for _, w := range want {
			arrivals += int64(w.Len())
		}
		if err := r.take().close(); err != nil {
			t.Fatal(err)
		}
		report, err := compact(dir, compactOptions{memory: rapid.SampledFrom([]int{1, 300, 1 << 20}).Draw(t, "memory")})
		if err != nil {
			t.Fatal(err)
		}
		if report.Requests != int64(len(want)) || report.Arrivals != arrivals || report.Torn != 0 || len(report.Damages) != 0 {
			t.Fatalf("report %+v, want %d requests, %d arrivals", report, len(want), arrivals)
		}
		rec, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		var got []Trace
		for tr := range rec.Traces(AllColumns) {
			got = append(got, tr.Clone())
		}
		slices.SortFunc(want, func(a, b Trace) int {
			return order{a.Due, a.Index, a.Try}.compare(order{b.Due, b.Index, b.Try})
		})
		if d := cmp.Diff(want, got, equateEmpty); d != "" || rec.Err() != nil {
			t.Fatalf("(-want +got):\n%s\n%v", d, rec.Err())
		}
	})
}
