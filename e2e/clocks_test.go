package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/load"
	"fermata/recording"
	"fermata/wire"
	"fermata/workload"
)

// A listener is a dialect that also hears the engine's own clock, which stands
// in every event where timings_per_token asks for it.
type listener struct {
	dialect.Dialect
	dialect.Decoder
	told []timings // of the events that brought text
	last timings
}

type timings struct {
	PromptMs    float64 `json:"prompt_ms"`
	PredictedN  int32   `json:"predicted_n"`
	PredictedMs float64 `json:"predicted_ms"`
}

// NewDecoder implements dialect.Dialect: a listener is for one answer.
func (l *listener) NewDecoder() dialect.Decoder {
	l.Decoder = l.Dialect.NewDecoder()
	return l
}

// Event implements dialect.Decoder.
func (l *listener) Event(name string, data []byte) (dialect.Token, bool) {
	tok, ok := l.Decoder.Event(name, data)
	var c struct {
		Timings *timings `json:"timings"`
	}
	if json.Unmarshal(data, &c) == nil && c.Timings != nil {
		l.last = *c.Timings
		if ok {
			l.told = append(l.told, *c.Timings)
		}
	}
	return tok, ok
}

// testClocks asks 1, 2 and 4 questions at once and lays the arrivals beside the
// engine's own clock.
func (e *engine) testClocks(t *testing.T) {
	for _, api := range apis {
		for _, streams := range []int{1, 2, 4} {
			listeners, traces := e.ask(t, api, streams)
			var apart []time.Duration // of the two clocks, of all tokens
			var shares []float64
			for i, l := range listeners {
				tr := &traces[i]
				checkAnswer(t, tr, answerTokens)
				if t.Failed() {
					return
				}
				if l.last.PredictedN != answerTokens || len(l.told) != tr.Len() {
					t.Errorf("%s: the engine says %d tokens in %d events; %d tokens in %d arrived", api, l.last.PredictedN, len(l.told), tr.Output.Used.V, tr.Len())
					return
				}
				if want := time.Duration(l.last.PromptMs * 1e6); (time.Duration(tr.ServerPrefill.V) - want).Abs() > time.Microsecond {
					t.Errorf("%s: the recording says a prefill of %s, the engine %s", api, time.Duration(tr.ServerPrefill.V), want)
				}
				engine := time.Duration(l.last.PredictedMs * 1e6)
				if off := (span(tr) - engine).Abs(); off > engine/20+150*time.Millisecond { // a hiccup at either end
					t.Errorf("%s, %d streams: the gaps add up to %s, the engine's clock says %s", api, streams, span(tr), engine)
				}
				shares = append(shares, float64((span(tr)-engine).Abs()-20*time.Millisecond)/float64(engine))
				apart = append(apart, clocksApart(tr, l.told)...)
			}
			slices.Sort(shares)
			if middle := shares[(len(shares)-1)/2]; middle > 0.05 {
				t.Errorf("%s, %d streams: in the middle the gaps differ from predicted_ms by 20 ms and %.1f %%", api, streams, 100*middle)
			}
			slices.Sort(apart)
			median, worst := apart[len(apart)/2], apart[len(apart)-1]
			if median > 10*time.Millisecond {
				t.Errorf("%s, %d streams: in the middle the two clocks differ by %s", api, streams, median)
			}
			t.Logf("%s, %d streams: two clocks of %d tokens differ by %s in the middle, %s at most", api, streams, len(apart), median, worst)
		}
	}
}

// clocksApart is how far each arrival lies from where the engine's clock has it,
// both seen from the answer's middle one, so that no single stamp decides.
func clocksApart(tr *recording.Trace, told []timings) []time.Duration {
	var at int64
	off := make([]time.Duration, tr.Len())
	for i, gap := range tr.DeltaNs {
		at += gap
		off[i] = time.Duration(at) - time.Duration(told[i].PredictedMs*1e6)
	}
	middle := slices.Sorted(slices.Values(off))[len(off)/2]
	for i := range off {
		off[i] = (off[i] - middle).Abs()
	}
	return off
}

const answerTokens = 48

// ask sends one question a stream, all at once, outside any run.
func (e *engine) ask(t *testing.T, api string, streams int) ([]*listener, []recording.Trace) {
	t.Helper()
	e.awaitIdle(t, 10*time.Second)
	clock := wire.NewClock()
	transport := wire.NewHTTP(clock)
	defer transport.Close()
	listeners, traces := make([]*listener, streams), make([]recording.Trace, streams)
	var all sync.WaitGroup
	for i := range streams {
		d, err := dialect.New(dialect.Options{API: api, Model: "smollm2-135m", IgnoreEOS: true, Body: map[string]any{
			"timings_per_token": true,
			"temperature":       0, // always the same words: a sampled answer may end within a character, which the engine holds back
		}})
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = &listener{Dialect: d}
		probe := load.Probe{
			Dialect: listeners[i], Transport: transport, Clock: clock, URL: e.url + d.Path(),
			Header: http.Header{"Content-Type": {"application/json"}}, Timeout: time.Minute,
		}
		q := workload.Request{Prompt: fmt.Sprintf("%d children went into the wood and", i+2), OutputTokens: answerTokens}
		all.Go(func() {
			if traces[i], err = probe.Ask(t.Context(), &q); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return listeners, traces
}

// writeLines is a file of lines.
func writeLines(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
