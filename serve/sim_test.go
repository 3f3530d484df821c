package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/sim"
)

// A simulated is a server of a simulator under test.
type simulated struct {
	url   string
	lines func() []Truth // stops it
}

func startSim(t testing.TB, text string, o SimOptions, so Options) *simulated {
	t.Helper()
	s, err := NewSim("test.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	so.Truth = &log
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(s, so).Serve(ctx, ln) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return &simulated{url: "http://" + ln.Addr().String(), lines: func() []Truth {
		stop()
		var all []Truth
		for line := range bytes.Lines(log.Bytes()) {
			var one Truth
			if err := json.Unmarshal(line, &one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		return all
	}}
}

// post asks and gives the status and the whole body.
func (s *simulated) post(t testing.TB, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		b = append(b, "\ncut: "+err.Error()...)
	}
	return resp.StatusCode, string(b)
}

func asking(max int) string {
	return fmt.Sprintf(`{"model":"m","prompt":"a b c","max_tokens":%d,"stream":true,"ignore_eos":true,"stream_options":{"include_usage":true}}`, max)
}

const tinySystem = `
model: Llama-3-8B
host: {fixed: 6ms, per_seq: 100us}
memory: {tokens: 6000}
scheduler: {policy: stall-free, chunk: 256, max_num_seqs: 6}
serve: {model: m}
seed: 3
`

// A server may read its first request before the system's axis has begun.
func TestRequestBeforeTheSystemRuns(t *testing.T) {
	s, err := NewSim("test.yaml", []byte(tinySystem), SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	q := &Request{Model: "m", API: Completions, PromptTokens: 100, MaxTokens: 3, IgnoreEOS: true, Stream: true, Received: time.Now()}
	var all sync.WaitGroup
	all.Go(func() {
		defer cancel()
		events, err := s.Answer(ctx, q)
		if err != nil {
			t.Error(err)
			return
		}
		for range events {
		}
	})
	time.Sleep(20 * time.Millisecond)
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
	if m := q.Simulated; m == nil || m.ArrivalNs != 0 || m.FirstScheduledNs == nil || *m.FirstScheduledNs != 0 {
		t.Errorf("%+v, want an arrival at 0, scheduled at 0", m)
	}
}

// Playing the arrival times that a real run logged in virtual time gives the
// identical schedule, with queueing, memory pressure and all.
func TestVirtualRerun(t *testing.T) {
	s := startSim(t, tinySystem, SimOptions{TimeScale: 10}, Options{})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			s.post(t, "/v1/completions", asking(20+i), fmt.Sprintf("%s: %d", promptTokensHeader, 100+37*i))
		})
		time.Sleep(2 * time.Millisecond) // on a machine of a third of the speed they queue as well
	}
	all.Wait()
	lines := s.lines()
	slices.SortFunc(lines, func(a, b Truth) int { return int(a.Simulated.ArrivalNs - b.Simulated.ArrivalNs) })
	text, err := readSim("test.yaml", []byte(tinySystem), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sim.New(text.Options)
	if err != nil {
		t.Fatal(err)
	}
	records := map[int64]*sim.Record{}
	again.Observe(sim.Observer{Ended: func(r *sim.Record) { records[r.Request.Index] = r.Clone() }})
	err = again.Run(func(yield func(sim.Request) bool) {
		for _, l := range lines {
			m := l.Simulated
			if !yield(sim.Request{Index: m.Index, Arrival: m.ArrivalNs, Prompt: m.Prompt, Output: m.Output, Session: m.Session}) {
				return
			}
		}
	})
	if err != nil || len(lines) != 40 {
		t.Fatalf("%d lines: %v", len(lines), err)
	}
	queued := 0
	for _, l := range lines {
		m, r := l.Simulated, records[l.Simulated.Index]
		if *m.FirstScheduledNs != r.FirstScheduled || *m.FirstTokenNs != r.PrefillEnd || m.EndNs != r.End || m.Evictions != r.Evictions {
			t.Errorf("request %d: %+v, in virtual time scheduled at %d, first token at %d, end at %d", m.Index, m, r.FirstScheduled, r.PrefillEnd, r.End)
		}
		if r.FirstScheduled > r.Request.Arrival+1e6 {
			queued++
		}
		if len(l.Events) != len(r.Tokens) {
			t.Fatalf("request %d: %d events of %d tokens", m.Index, len(l.Events), len(r.Tokens))
		}
		for i, e := range l.Events {
			// The wall clock of the log and the monotonic one drift by less than this.
			if planned := m.ZeroWallNs + r.Tokens[i].At/10; planned-e.PlannedNs > 2e5 || e.PlannedNs-planned > 2e5 {
				t.Fatalf("request %d, token %d: planned at %d, by the system at %d", m.Index, i, e.PlannedNs, planned)
			}
			if e.SentNs < e.PlannedNs-2e5 {
				t.Fatalf("request %d, token %d left %d ns early", m.Index, i, e.PlannedNs-e.SentNs)
			}
		}
	}
	if queued < 10 {
		t.Errorf("only %d requests queued: the system was not loaded", queued)
	}
}

// A reader who does not read is cut, and nobody else notices.
func TestSlowReader(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		s := startSim(t, "cost: {flat: {ttft: 1ms, itl: 20us}}\nserve: {model: m, buffer: 64}\n", SimOptions{}, Options{})
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		const endless = 400_000 // tokens: more than any socket buffers
		body := asking(endless)
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		time.Sleep(50 * time.Millisecond)
		status, got := s.post(t, "/v1/completions", asking(40))
		if status != 200 || strings.Count(got, "tok ") != 40 || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("beside a slow reader: status %d, %d tokens", status, strings.Count(got, "tok "))
		}
		deadline := time.Now().Add(20 * time.Second)
		for running := true; running; { // the system gives the place back
			if time.Now().After(deadline) {
				t.Fatal("the slow reader was not cut")
			}
			time.Sleep(20 * time.Millisecond)
			resp, err := http.Get(s.url + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			running = !strings.Contains(string(b), `vllm:num_requests_running{engine="0",model_name="m"} 0`)
		}
		for _, l := range s.lines() {
			if l.Simulated.Output == endless && (len(l.Events) >= endless || l.End != EndCut) {
				t.Errorf("the slow reader got %d events and ended as %s", len(l.Events), l.End)
			}
		}
	})
}

// What does not fit into the queue is refused, and leaves no trace in the system.
func TestQueueLimit(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		s := startSim(t, "cost: {flat: {ttft: 300ms, itl: 1ms}}\nscheduler: {max_num_seqs: 1}\nqueue_limit: 1\nserve: {model: m}\n", SimOptions{}, Options{})
		var all sync.WaitGroup
		statuses := make([]int, 3)
		for i := range statuses {
			all.Go(func() { statuses[i], _ = s.post(t, "/v1/completions", asking(2)) })
			time.Sleep(60 * time.Millisecond)
		}
		all.Wait()
		if !slices.Equal(statuses, []int{200, 200, 429}) {
			t.Errorf("statuses %v, want two answers and a refusal", statuses)
		}
	})
}

func TestSimulatedAnswers(t *testing.T) {
	const system = "cost: {flat: {ttft: 5ms, itl: 2ms}}\nmax_model_len: 100\nserve: {model: m, answers: \"7\"%s}\n"
	chunks := func(t *testing.T, body string) int { t.Helper(); return strings.Count(body, `"text":"tok `) }
	for _, c := range []struct {
		name, serve, body string
		tokens, events    int
		wants             string
	}{
		{"to the end", "", asking(9), 9, 9, `"finish_reason":"length"`},
		{"by itself", "", strings.Replace(asking(9), `"ignore_eos":true,`, "", 1), 7, 7, `"finish_reason":"stop"`},
		{"at least", "", strings.Replace(asking(9), `"ignore_eos":true,`, `"min_tokens":8,`, 1), 8, 8, `"finish_reason":"stop"`},
		{"in bunches", ", tokens_per_event: 4", asking(9), 9, 3, `"finish_reason":"length"`},
		{"in writes", ", events_per_write: 4", asking(9), 9, 9, `"finish_reason":"length"`},
		{"comments", ", comments: 1ms", asking(9), 9, 9, ": waiting\n\n"},
		{"slow", ", slow: {share: 1, gap: 4ms}", asking(9), 9, 9, `"finish_reason":"length"`},
		{"cut", ", errors: {share: 1, kinds: [cut]}", asking(9), -1, -1, "cut: unexpected EOF"},
		{"reset", ", errors: {share: 1, kinds: [reset]}", asking(9), -1, -1, "cut: "},
		{"error", ", errors: {share: 1, kinds: [error]}", asking(9), -1, -1, `"error":{`},
		{"status", ", errors: {share: 1, status: 500}", asking(9), 0, 0, `"error":{`},
		{"no finish", ", errors: {share: 1, kinds: [no_finish]}", asking(9), 9, 9, "[DONE]"},
		{"too long", "", asking(120), 0, 0, "max_model_len"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startSim(t, fmt.Sprintf(system, c.serve), SimOptions{}, Options{})
			began := time.Now()
			_, got := s.post(t, "/v1/completions", c.body)
			if c.tokens >= 0 && (strings.Count(got, "tok ") != c.tokens || chunks(t, got) != c.events) {
				t.Errorf("%d tokens in %d events, want %d in %d\n%s", strings.Count(got, "tok "), chunks(t, got), c.tokens, c.events, got)
			}
			if !strings.Contains(got, c.wants) {
				t.Errorf("no %q in\n%s", c.wants, got)
			}
			if c.name == "slow" && time.Since(began) < 8*4*time.Millisecond {
				t.Errorf("9 events with gaps of 4 ms in %v", time.Since(began))
			}
			if c.name == "no finish" && strings.Contains(got, `"finish_reason":"length"`) {
				t.Error("there is a finish reason")
			}
		})
	}
}

// The usage tells the way through the system, and what a cache had.
func TestSimulatedUsage(t *testing.T) {
	s := startSim(t, "host: ideal\nprefix_cache: true\nserve: {model: m}\n", SimOptions{TimeScale: 4}, Options{})
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`,
		strings.Repeat("word ", 170))
	_, first := s.post(t, "/v1/chat/completions", body)
	_, second := s.post(t, "/v1/chat/completions", body)
	if !strings.Contains(first, `"cached_tokens":0`) || !strings.Contains(second, `"prompt_tokens":170`) || !strings.Contains(second, `"cached_tokens":160`) {
		t.Errorf("the same prompt again:\n%s\n%s", first, second)
	}
	for _, l := range s.lines() {
		want := (*l.Simulated.FirstTokenNs - *l.Simulated.FirstScheduledNs) / 4
		at := strings.Index(first+second, fmt.Sprintf(`"received_ns":%d,`, l.ReceivedNs))
		if at < 0 {
			t.Fatalf("no usage tells of %d", l.ReceivedNs)
		}
		var told struct {
			Prefill int64 `json:"prefill_ns"`
		}
		object := "{" + (first + second)[at:]
		if err := json.NewDecoder(strings.NewReader(object)).Decode(&told); err != nil || told.Prefill-want > 1 || want-told.Prefill > 1 {
			t.Errorf("prefill of %d ns, want %d: %v", told.Prefill, want, err)
		}
	}
}

func TestSimulatedServerOverTLS(t *testing.T) {
	cert, err := Certificate("", "", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s := startSim(t, "cost: {flat: {ttft: 1ms, itl: 1ms}}\nserve: {model: m}\n", SimOptions{TimeScale: 2}, Options{TLS: &cert, APIKey: "k"})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := strings.Replace(s.url, "http", "https", 1)
	for key, want := range map[string]int{"": 401, "x": 401, "k": 200} {
		r, _ := http.NewRequest(http.MethodPost, url+"/v1/completions", strings.NewReader(asking(3)))
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || resp.Header.Get("X-Fermata-Time-Scale") != "2" {
			t.Errorf("key %q: status %d, time scale %q", key, resp.StatusCode, resp.Header.Get("X-Fermata-Time-Scale"))
		}
		if n := strings.Count(readAll(t, resp), "tok "); want == 200 && n != 3 {
			t.Errorf("%d tokens over TLS", n)
		}
	}
}

func readAll(t testing.TB, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	var b strings.Builder
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		b.WriteString(lines.Text() + "\n")
	}
	return b.String()
}

func TestSimulatedMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"model: Llama-3-70B\n": "take more GPUs",
		"serve: {errors: {share: 2, kinds: [odd]}, slow: {share: -1}}\n": "serve.errors.share: must be from 0 to 1, not 2",
		"max_num_seqs: 4\nscheduler: {max_num_seqs: 5}\n":                "is scheduler.max_num_seqs, which is given too",
		"serv: {}\n":                      "serv",
		"serve: {answers: \"nothing\"}\n": "serve.answers",
	} {
		if _, err := NewSim("x.yaml", []byte(text), SimOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
