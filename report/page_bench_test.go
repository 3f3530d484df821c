package report

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"fermata/metrics"
	"fermata/recording"
)

// A long recording is made as it is read, so that what is measured is the page's
// memory and not the recording's.
type long struct {
	requests, tokens int
	rate             float64
}

// Traces implements recording.Source: every 500th answer stops for 4 s.
func (l long) Traces(recording.Columns) iter.Seq[recording.Trace] {
	return func(yield func(recording.Trace) bool) {
		t := recording.Trace{Phase: recording.Measured, Outcome: recording.OK, FinishReason: "length"}
		for range l.tokens {
			t.DeltaNs, t.Tokens, t.Read = append(t.DeltaNs, 0), append(t.Tokens, 1), append(t.Read, int32(len(t.Read)))
		}
		x := uint64(1)
		noise := func(below int64) int64 {
			x = x*6364136223846793005 + 1442695040888963407
			return int64(x>>33) % below
		}
		for i := range l.requests {
			t.Index, t.Due = int64(i), int64(float64(i)*1e9/l.rate)
			t.Sent = recording.Some(t.Due + 20_000)
			t.Prompt.Used, t.Output.Used = recording.Some(int32(100+noise(4000))), recording.Some(int32(l.tokens))
			at := t.Due
			for k := range t.DeltaNs {
				gap := 20e6 + noise(20e6)
				if k == 0 {
					gap = 100e6 + noise(900e6)
				} else if k == l.tokens/2 && i%500 == 250 {
					gap = 4e9
				}
				t.DeltaNs[k] = gap
				at += gap
			}
			t.End = recording.Some(at)
			if !yield(t) {
				return
			}
		}
	}
}

// Err implements recording.Source.
func (long) Err() error { return nil }

func (l long) portrayed(t testing.TB) Portrayed {
	meta := recording.Meta{TimeScale: 1}
	r, err := metrics.Evaluate(l, meta, nil, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Run.Name = "long"
	p, err := metrics.Portray(l, meta, r, metrics.Options{}, metrics.PortraitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Portrayed{Result: r, Portrait: p}
}

// BenchmarkPage is the size of a page of 10,000 requests of 200 tokens, and how soon
// a browser has it ready to be pointed at and to show another request.
func BenchmarkPage(b *testing.B) {
	run := long{requests: 10_000, tokens: 200, rate: 50}.portrayed(b)
	began := time.Now()
	text := pageText(b, run)
	wrote := time.Since(began)
	tab := openTab(b, "<!DOCTYPE html><html data-ready=\"yes\"></html>", 1280, 900) // the browser's own start is not the page's
	path := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	var ready, pointed, picked float64
	for b.Loop() {
		tab.do(b, chromedp.Navigate("file://"+path))
		// From the navigation's start to the end of the page's script, as the browser tells.
		ready += eval[float64](b, tab, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`)
		pointed += eval[float64](b, tab, `(() => { const from = performance.now(); const s = document.querySelector("#cdf-tbt .stage"), r = s.getBoundingClientRect();
			s.dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + 100, clientY: r.top + 50, bubbles: true})); return performance.now() - from; })()`)
		picked += eval[float64](b, tab, `(() => { const from = performance.now(); const e = document.getElementById("pick-kind"); e.value = "typical"; e.dispatchEvent(new Event("change")); return performance.now() - from; })()`)
	}
	n := float64(b.N)
	b.ReportMetric(float64(len(text))/1e6, "MB")
	b.ReportMetric(wrote.Seconds()*1e3, "ms-to-write")
	b.ReportMetric(ready/n, "ms-to-interactive")
	b.ReportMetric(pointed/n, "ms-to-point")
	b.ReportMetric(picked/n, "ms-to-pick")
}

// BenchmarkPageOfAMillion is the page of a million requests: its size, the time that
// its pass over the recording takes, and the memory it holds at its end.
func BenchmarkPageOfAMillion(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := long{requests: n, tokens: 20, rate: 50}
			meta := recording.Meta{TimeScale: 1}
			r, err := metrics.Evaluate(l, meta, nil, metrics.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var held, size float64
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				p, err := metrics.Portray(l, meta, r, metrics.Options{}, metrics.PortraitOptions{})
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				held = max(held, float64(after.HeapAlloc)-float64(before.HeapAlloc))
				size = float64(len(pageText(b, Portrayed{Result: r, Portrait: p})))
			}
			b.ReportMetric(held/1e6, "MB-held")
			b.ReportMetric(size/1e6, "MB-page")
		})
	}
}
