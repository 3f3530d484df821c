package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/report"
	"fermata/serve"
	"fermata/spec"
)

// providers serves the three simulated providers of the trial, and gives its study
// with their addresses.
func providers(t testing.TB) *spec.Study {
	t.Helper()
	const dir = "../examples/trial/"
	data, err := os.ReadFile(dir + "study.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i, name := range []string{"speculative", "queued", "bursty"} {
		file := dir + name + ".yaml"
		about, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var engine serve.Engine
		if name == "bursty" {
			engine, err = serve.NewScript(file, about)
		} else {
			engine, err = serve.NewSim(file, about, serve.SimOptions{TimeScale: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- serve.New(engine, serve.Options{}).Serve(ctx, ln) }()
		t.Cleanup(func() {
			end()
			<-over
		})
		text = strings.Replace(text, fmt.Sprintf(`"http://127.0.0.1:800%d"`, i+1), fmt.Sprintf("%q", "http://"+ln.Addr().String()), 1)
	}
	s, err := spec.ReadStudy("study.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A study of endpoints is killed after a round and gone on with. What it says of
// providers whose speed is known is right.
func TestStudyOfEndpoints(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		s := providers(t)
		s.Every, s.For = 15*time.Second, 30*time.Second
		stop := make(chan struct{})
		var once sync.Once
		o := Options{Out: filepath.Join(t.TempDir(), "s"), Stop: stop, Say: func(f string, a ...any) {
			if strings.HasPrefix(fmt.Sprintf(f, a...), "round 1 of 2") {
				once.Do(func() { close(stop) })
			}
		}}
		_, err := AskHourly(context.Background(), s, o)
		if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "interrupted in round 2 of 2") {
			t.Fatal(err)
		}
		first := filepath.Join(o.Out, "bursty", "000", "result.json")
		before, err := os.ReadFile(first)
		if err != nil {
			t.Fatal(err)
		}
		o.Stop = nil
		got, err := AskHourly(context.Background(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		if after, _ := os.ReadFile(first); !bytes.Equal(before, after) {
			t.Error("the first round was run again")
		}
		by := map[string]*report.StudyEndpoint{}
		for i := range got.Endpoints {
			e := &got.Endpoints[i]
			by[e.Name] = e
			if e.Rounds != 2 || e.Planned != 2 || e.Requests != 12 || e.Failed != 0 || e.From >= e.To || len(e.Rates) != 3 || len(e.TTFT) == 0 || len(e.Fluidity) != 5 || e.TPS == nil || e.TPS.P10 > e.TPS.P90 {
				t.Errorf("%+v", e)
			}
			for _, r := range e.Rates {
				if r.Value == nil || r.Rounds == nil || r.Rounds.P10 > r.Rounds.P90 {
					t.Errorf("%s: %+v", e.Name, r)
				}
			}
		}
		// Bunches of four every 40 ms, 32 tokens: the last 280 ms after the first. By TPOT
		// 31/280 ms = 111/s; the longest gaps give 25/s; a reader who takes one each 10 ms
		// never waits: 100/s at least.
		// A busy machine can only slow the tail and the slowest answer down.
		bursty := by["bursty"]
		if v := *bursty.Rates[0].Value; v < 0.7*31/0.28 || v > 1.35*31/0.28 {
			t.Errorf("bursty by TPOT: %.1f tokens/s, want about %.1f", v, 31/0.28)
		}
		if tail, fluid := *bursty.Rates[1].Value, *bursty.Rates[2].Value; tail > 1.35/0.04 || fluid > 1.35*100 || fluid < tail {
			t.Errorf("bursty by tail TBT: %.1f tokens/s, want 25 at most; fluid %.1f, want 100 at most", tail, fluid)
		}
		if v := *bursty.SameEventShare; math.Abs(v-24./31) > 0.01 { // of 31 tokens after the first, 24 begin no event
			t.Errorf("%v of the tokens came in the event of the one before", v)
		}
		// Drafts come in bunches too; a queue does not make anybody read more slowly, but
		// wait: one of them for several services of 255 ms.
		if v := by["speculative"].SameEventShare; v == nil || *v < 0.3 {
			t.Errorf("drafts: %v", v)
		}
		worst := 0.0
		for _, at := range by["queued"].TTFT {
			worst = math.Max(worst, at.Max)
		}
		if worst < 300e6 || *by["queued"].Rates[0].Value < 60 {
			t.Errorf("queued: the longest wait is %.0f ms, %.0f tokens/s", worst/1e6, *by["queued"].Rates[0].Value)
		}
		if len(got.Claims) != 1 || got.Claims[0].Value == nil || got.Claims[0].Holds != (*got.Claims[0].Value >= 2) {
			t.Errorf("%+v", got.Claims)
		}
		var b bytes.Buffer
		for format, want := range map[string]string{"terminal": "TTFT by the length of the prompt", "markdown": "| bursty |", "json": `"same_event_share"`} {
			b.Reset()
			if err := report.WriteStudy(format, &b, got, report.TerminalOptions{Width: 200}); err != nil || !strings.Contains(b.String(), want) || !strings.Contains(b.String(), bursty.From) {
				t.Errorf("%s: %v\n%s", format, err, b.String())
			}
		}
		s.Every = 20 * time.Second
		if _, err := AskHourly(context.Background(), s, o); err == nil || !strings.Contains(err.Error(), "holds rounds of other endpoints, or at other times") {
			t.Error(err)
		}
	})
}

func TestStudiesOfEndpointsThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"endpoints: [{name: a, url: here}]":                                             `endpoints[0].url: must begin with http`,
		"endpoints: [{url: \"http://h\"}]":                                              "endpoints[0].name: must be a word",
		"endpoints: [{name: a, url: \"http://h\"}, {name: a, url: \"http://h\"}]":       "endpoints[1].name: is given twice",
		"endpoints: [{name: a, url: \"http://h\"}]\nsystems: [{name: b, spec: x}]":      "systems: is for simulated systems",
		"endpoints: [{name: a, url: \"http://h\"}]\nevery: 2h\nfor: 1h":                 "for: must be from 2h",
		"systems: [{name: b, spec: x}]\nevery: 1h":                                      "every: is for endpoints",
		"endpoints: [{name: a, url: \"http://h\"}]\nevery: 1ms":                         "every: must be 1s or more",
		"endpoints: [{name: a, url: \"http://h\", set: {target.url: x}}]\nnothing: 1\n": "nothing",
	} {
		if _, err := spec.ReadStudy("s.yaml", []byte(text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
