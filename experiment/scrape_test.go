package experiment

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/internal/calm"
	"fermata/metrics"
	"fermata/recording"
	"fermata/serve"
)

// A told server answers questions, and on /metrics says so in vLLM's words: its
// preemptions grow by one a look. Without the key it says nothing.
type toldServer struct {
	answers http.Handler
	key     string
	inside  atomic.Int64
	looks   atomic.Int64
	dumb    bool
}

func (s *toldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		s.inside.Add(1)
		defer s.inside.Add(-1)
		s.answers.ServeHTTP(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.key || s.dumb {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, "vllm:num_requests_running{engine=\"0\"} %d\nvllm:num_requests_waiting 0\nvllm:num_preemptions_total %d\n", s.inside.Load(), s.looks.Add(1))
}

func newTold(t testing.TB) *toldServer {
	t.Helper()
	engine, err := serve.NewScript("test.yaml", []byte("{api_key: sk-scrape-1, models: {m: {ttft: 20ms, gap: 20ms, tokens: max}}}"))
	if err != nil {
		t.Fatal(err)
	}
	return &toldServer{answers: serve.New(engine, serve.Options{}).Handler(), key: "sk-scrape-1"}
}

const scraped = `
target: {url: %q, api_key_env: KEY}
workload: {input: 16, output: 40}
schedule: {concurrency: 4, duration: 3500ms, warmup: "0", drain: quiet}
record: {scrape: %s}
connect: {%s}
`

// What the server says of itself stands beside the client's figures, on one time
// axis, by itself where it tells.
func TestScrape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, scrape string
		dumb         bool
		there        bool
		looks        int64 // at least
	}{
		{"by itself", "auto", false, true, 3},
		{"asked for", "URL", false, true, 3},
		{"not wanted", `"off"`, false, false, 0},
		{"the server tells nothing", "auto", true, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				s := newTold(t)
				s.dumb = c.dumb
				server := httptest.NewServer(s)
				defer server.Close()
				where := strings.ReplaceAll(c.scrape, "URL", server.URL+"/metrics")
				done, said, err := asking(t, fmt.Sprintf(scraped, server.URL, where, ""), map[string]string{"KEY": s.key})
				if err != nil {
					t.Fatal(err)
				}
				if looks := s.looks.Load(); looks < c.looks || c.looks == 0 && looks != 0 {
					t.Errorf("%d looks at the server's page", looks)
				}
				got := done.Result.Server
				if !c.there {
					if got != nil || slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "figures") }) {
						t.Errorf("nobody told: %+v, said %q", got, said)
					}
					return
				}
				if got == nil || got.Names != "vllm" || got.Seconds < 2 || got.RunningMean == nil || got.KVUsageMean != nil {
					t.Fatalf("the server's figures: %+v", got)
				}
				if *got.RunningMax < 1 || *got.RunningMax > 4 || got.InFlightMax < 1 || got.InFlightMax > 4 {
					t.Errorf("of 4 users: running %v, in flight %v", *got.RunningMax, got.InFlightMax)
				}
				if p := *got.Preemptions; p < 1 || p > float64(s.looks.Load()) {
					t.Errorf("%v preemptions in the phase, one a look, of %d looks", p, s.looks.Load())
				}
				checkTold(t, done.Dir)
			})
		})
	}
}

// checkTold checks the series of a run: the time of asking is on the run's clock.
func checkTold(t testing.TB, dir string) {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	samples, err := rec.Samples()
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, s := range samples {
		if s.Server == nil {
			continue
		}
		told++
		if *s.Server != "vllm" || *s.ServerTimeNs > s.TimeNs+1e8 || s.TimeNs-*s.ServerTimeNs > 4e9 || s.ServerKV != nil {
			t.Errorf("in second %d the server was asked at %d", s.TimeNs, *s.ServerTimeNs)
		}
	}
	if told < 2 {
		t.Errorf("it told something in %d of %d seconds", told, len(samples))
	}
}

// A certificate that nobody vouches for stops a run before it begins; with
// connect.insecure the report says so, and with its authority there is nothing to
// say.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s := newTold(t)
	server := httptest.NewTLSServer(s)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(connect string) (*Done, error) {
		file := fmt.Sprintf(scraped, server.URL, "auto", connect)
		file = strings.ReplaceAll(file, "duration: 3500ms", "requests: 8")
		done, _, err := asking(t, file, map[string]string{"KEY": s.key})
		return done, err
	}
	if _, err := run(""); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	warned := func(r *metrics.Result) bool {
		return slices.ContainsFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == "insecure" })
	}
	for connect, want := range map[string]bool{"insecure: true": true, "ca_file: " + ca: false} {
		done, err := run(connect)
		if err != nil {
			t.Fatalf("%s: %v", connect, err)
		}
		if done.Result.Outcomes["ok"] != 8 || warned(done.Result) != want {
			t.Errorf("%s: outcomes %v, warnings %+v", connect, done.Result.Outcomes, done.Result.Warnings)
		}
		again, err := Judge(done.Dir, nil, "test")
		if err != nil || warned(again) != want {
			t.Errorf("%s: judged again: %v, %+v", connect, err, again)
		}
	}
}
