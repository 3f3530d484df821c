package beacon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/place"
)

const ms = int64(time.Millisecond)

// start starts a beacon as a process.
func start(t *testing.T) *Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "BEACON_TEST_PROCESS=1")
	cmd.Stderr = os.Stderr
	p, err := Start(cmd, place.Place{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// An event is what a plain client sees.
type event struct {
	ID    string `json:"id"`
	TS    int64  `json:"ts"`
	at    int64
	size  int
	Usage *struct {
		Prompt int `json:"prompt_tokens"`
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Choices []struct {
		Delta  struct{ Content string }
		Text   string
		Finish string `json:"finish_reason"`
	}
}

type answer struct {
	header http.Header
	events []event // with ts
	rest   []event
	done   bool
}

func ask(t *testing.T, p *Process, path, body string, plan Plan) (a answer) {
	t.Helper()
	query := ""
	if plan != (Plan{}) {
		query = "?" + plan.Query()
	}
	resp, err := http.Post("http://"+p.Address+path+query, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return a
	}
	defer resp.Body.Close()
	a.header = resp.Header
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.done = true
			continue
		}
		e := event{at: time.Now().UnixNano(), size: len(data) + len("data: \n\n")}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if e.TS != 0 {
			a.events = append(a.events, e)
		} else {
			a.rest = append(a.rest, e)
		}
	}
	return a
}

// What a client sees, what the log says and what the plan asks for are one thing.
func TestAnswerLogAndPlan(t *testing.T) {
	p := start(t)
	began := time.Now().UnixNano()
	body := `{"model":"beacon","max_tokens": 7,"stream":true,"stream_options":{"include_usage":true}}`
	plan := Plan{TTFT: 20 * time.Millisecond, Gap: 5 * time.Millisecond, Tail: 30 * time.Millisecond}
	for n, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		a := ask(t, p, path, body, plan)
		r, err := p.Report()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Log) != 1 || r.Requests != 1 || r.Writes != 7 || r.Stuck != 0 {
			t.Fatalf("the report has %d requests, %d writes, %d stuck", len(r.Log), r.Writes, r.Stuck)
		}
		q := r.Log[0]
		if want := (&request{body: []byte(body)}).sum(); q.Number != int64(n) || q.Body != want || q.Bunch != 1 {
			t.Errorf("request %d has number %d, sum %x (want %x), bunch %d", n, q.Number, q.Body, want, q.Bunch)
		}
		if q.FirstNs != q.ReceivedNs+20*ms || q.StepNs != 5*ms || q.ReceivedNs < began || q.ReceivedNs > a.events[0].at {
			t.Errorf("received %d ns after the beginning, first due %d later, then every %d", q.ReceivedNs-began, q.FirstNs-q.ReceivedNs, q.StepNs)
		}
		if got := a.header.Get("X-Fermata-Received-Ns"); got != fmt.Sprint(q.ReceivedNs) {
			t.Errorf("the header says %s, the log %d", got, q.ReceivedNs)
		}
		if len(a.events) != 7 || !a.done || len(a.rest) != 2 {
			t.Fatalf("%d events, %d others, done %v", len(a.events), len(a.rest), a.done)
		}
		for i, e := range a.events {
			if e.TS != q.SentNs[i] || e.ID != ID(q.Number) || e.size != defaultSize {
				t.Errorf("event %d of %s: time %d, the log has %d; %d bytes", i, e.ID, e.TS, q.SentNs[i], e.size)
			}
			if due := q.FirstNs + int64(i)*q.StepNs; e.TS < due || e.at < e.TS || q.TookNs[i] < 0 {
				t.Errorf("event %d was due at %d, sent at %d, seen at %d; the write took %d", i, due, e.TS, e.at, q.TookNs[i])
			}
			if text := e.Choices[0].Delta.Content + e.Choices[0].Text; text != " tok" {
				t.Errorf("event %d brings %q", i, text)
			}
		}
		if end := q.FirstNs + 6*q.StepNs + 30*ms; a.rest[0].at < end {
			t.Errorf("the end came %d ns too early", end-a.rest[0].at)
		}
		if n == 1 { // the plan may also begin the path
			b := ask(t, p, "/"+Plan{Events: 3, Gap: time.Millisecond}.Query()+path, body, Plan{})
			if _, err := p.Report(); err != nil || len(b.events) != 3 {
				t.Errorf("%d events of a plan in the path, %v", len(b.events), err)
			}
		}
		if a.rest[0].Choices[0].Finish != "length" || a.rest[1].Usage == nil || a.rest[1].Usage.Output != 7 || a.rest[1].Usage.Prompt != len(body) {
			t.Errorf("the end is %+v", a.rest)
		}
	}
}

// Streams that wait for each other are spread over a gap, or stand on one grid.
func TestPhases(t *testing.T) {
	p := start(t)
	const n = 8
	for _, phase := range []string{Spread, Step} {
		plan := Plan{Events: 4, Gap: 40 * time.Millisecond, Phase: phase, Wait: n, Bunch: 2}
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if a := ask(t, p, "/v1/chat/completions", "{}", plan); len(a.events) != 4 || a.events[0].TS != a.events[1].TS || a.events[1].TS == a.events[2].TS {
					t.Errorf("%s: %d events, not in two writes of two: %+v", phase, len(a.events), a.events)
				}
			})
		}
		all.Wait()
		r, err := p.Report()
		if err != nil {
			t.Fatal(err)
		}
		var first []int64
		var received []int64
		for _, q := range r.Log {
			first, received = append(first, q.FirstNs), append(received, q.ReceivedNs)
			if q.StepNs != 80*ms || len(q.SentNs) != 2 {
				t.Errorf("%s: %d writes, %d ns apart", phase, len(q.SentNs), q.StepNs)
			}
		}
		slices.Sort(first)
		for i, at := range first {
			want := first[0]
			if phase == Spread {
				want += 40 * ms * int64(i) / n
			}
			if at != want || phase == Step && at%(40*ms) != 0 {
				t.Errorf("%s: stream %d begins %d ns after the first", phase, i, at-first[0])
			}
		}
		slices.Sort(received) // the last to be read need not be the last that came
		after := first[0] - int64(settle)
		if phase == Spread && !slices.Contains(received, after) || after < received[0] {
			t.Errorf("%s: the first stream began %d ns after the last had asked", phase, first[0]-received[n-1])
		}
	}
}

func TestOtherRequests(t *testing.T) {
	p := start(t)
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/v1/models", 200, `"beacon"`},
		{"GET", "/health", 200, "{}"},
		{"POST", "/v1/embeddings", 404, "answers"},
		{"POST", "/v1/completions?phase=odd", 400, "phase"},
		{"POST", "/v1/completions?evens=3", 400, "evens"},
	} {
		q, err := http.NewRequest(c.method, "http://"+p.Address+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(b), c.says) {
			t.Errorf("%s %s: %d %q %v", c.method, c.path, resp.StatusCode, b, err)
		}
	}
	if r, err := p.Report(); err != nil || r.Requests != 0 {
		t.Errorf("%d requests in the log, %v", r.Requests, err)
	}
}

// A client that leaves takes its stream with it, and nobody waits for it.
func TestClientLeaves(t *testing.T) {
	p := start(t)
	plan := Plan{Events: 100_000, Gap: 10 * time.Millisecond}
	resp, err := http.Post("http://"+p.Address+"/v1/completions?"+plan.Query(), "", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	for range 3000 { // a minute, which is much less than the stream would last
		r, err := p.Report()
		if err != nil {
			t.Fatal(err)
		}
		if r.Streams == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the stream goes on although its client has left")
}

func TestQueryRoundTrip(t *testing.T) {
	for _, p := range []Plan{
		{Gap: 50 * time.Millisecond, Phase: Own, Bunch: 1, Size: defaultSize},
		{Events: 3, TTFT: time.Second, Gap: 1500 * time.Microsecond, Phase: Step, Wait: 9, Bunch: 8, Size: 300, Tail: time.Millisecond},
	} {
		got, err := parsePlan(p.Query())
		if d := cmp.Diff(p, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", p.Query(), err, d)
		}
	}
}

func TestReportRoundTrip(t *testing.T) {
	want := Report{Streams: 2, Requests: 2, Writes: 3, Stuck: 1, CPUNs: 5, Log: []Request{
		{Number: 7, Body: 1 << 63, ReceivedNs: 1, FirstNs: 2, StepNs: 3, Bunch: 8, SentNs: []int64{4, 5, 6}, TookNs: []int64{7, 8, 9}},
		{Number: 8, SentNs: []int64{}, TookNs: []int64{}},
	}}
	var b bytes.Buffer
	if err := writeReport(&b, &want); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(bufio.NewReader(&b))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

// The queue gives streams in order of their times, whatever is moved or taken out.
func TestQueue(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	var q due
	in := map[*stream]bool{}
	for range 20_000 {
		switch {
		case len(q) == 0 || draw.IntN(3) == 0:
			s := &stream{next: draw.Int64N(1000)}
			in[s] = true
			q.push(s)
		case draw.IntN(2) == 0:
			s := q[draw.IntN(len(q))]
			delete(in, s)
			q.remove(s)
		default:
			q[0].next += draw.Int64N(100)
			q.fix(0, q[0])
		}
		if len(q) != len(in) {
			t.Fatalf("%d streams in the queue, %d were put there", len(q), len(in))
		}
		for i, s := range q {
			if s.place != i || !in[s] || i > 0 && q[(i-1)/4].next > s.next {
				t.Fatalf("place %d: %+v", i, s)
			}
		}
		if len(q) > 60 {
			q, in = nil, map[*stream]bool{}
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("POST /v1/completions?gap=1ms HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET /"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\ncontent-length:  18\r\n\r\n{\"max_tokens\": 12}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, n, err := parseRequest(b)
		if n < 0 || n > len(b) || err != nil && n != 0 {
			t.Fatalf("%d of %d bytes, %v", n, len(b), err)
		}
		if n > 0 {
			// The same request is found wherever the bytes after it are cut off.
			again, m, err := parseRequest(b[:n])
			if m != n || err != nil || again.path != a.path || !bytes.Equal(again.body, a.body) {
				t.Fatalf("%d bytes, then %d, %v", n, m, err)
			}
			_, _ = parsePlan(a.query)
		}
	})
}
