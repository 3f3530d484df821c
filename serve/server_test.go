package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A ledger is a truth log that tests can wait for. Each Write must be one line.
type ledger struct {
	mu    sync.Mutex
	lines []Truth
	wrong error
}

func (l *ledger) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var t Truth
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil || bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' {
		l.wrong = fmt.Errorf("not one line: %q (%v)", b, err)
	}
	l.lines = append(l.lines, t)
	return len(b), nil
}

// wait gives the first n lines.
func (l *ledger) wait(t testing.TB, n int) []Truth {
	t.Helper()
	for range 6000 {
		l.mu.Lock()
		lines, wrong := l.lines, l.wrong
		l.mu.Unlock()
		if wrong != nil {
			t.Fatal(wrong)
		}
		if len(lines) >= n {
			return lines
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the truth log has not %d lines after a minute", n)
	return nil
}

// start serves e and gives its base URL and its truth log.
func start(t testing.TB, e Engine) (string, *ledger) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	truth := &ledger{}
	s := New(e, Options{Truth: truth, Version: "1.2.3", Grace: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String(), truth
}

// ask posts body and reads the answer to its end.
func ask(t testing.TB, url, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

var changing = regexp.MustCompile(`"id":"(chatcmpl|cmpl)-[0-9a-f]{8}-[0-9]+","object":"([^"]+)","created":[0-9]{10}`)

// fixed is a body without what differs from run to run.
func fixed(body string) string { return changing.ReplaceAllString(body, `"id":"$1","object":"$2"`) }

func chat(more string) string {
	return `{"model":"m","messages":[{"role":"user","content":"one two three"}]` + more + `}`
}

func TestBodies(t *testing.T) {
	url, _ := start(t, script(t, `models: {m: {text: "a\"b ", tokens: 2}}`))
	tests := []struct{ name, path, body, want string }{
		{"chat", "/v1/chat/completions", chat(`,"stream":true,"stream_options":{"include_usage":true}`), `data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a\"b "},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a\"b "},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

`},
		{"chat without usage", "/v1/chat/completions", chat(`,"stream":true,"max_completion_tokens":1`), `data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a\"b "},"finish_reason":null}]}

data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}

data: [DONE]

`},
		{"completions", "/v1/completions", `{"model":"m","prompt":"x","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`, `data: {"id":"cmpl","object":"text_completion","model":"m","choices":[{"index":0,"text":"a\"b ","finish_reason":null}],"usage":null}

data: {"id":"cmpl","object":"text_completion","model":"m","choices":[{"index":0,"text":"a\"b ","finish_reason":"length"}],"usage":null}

data: {"id":"cmpl","object":"text_completion","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}

data: [DONE]

`},
		{"chat, whole", "/v1/chat/completions", chat(""), `{"id":"chatcmpl","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a\"b a\"b "},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}
`},
		{"completions, whole", "/v1/completions", `{"model":"m","prompt":"x"}`, `{"id":"cmpl","object":"text_completion","model":"m","choices":[{"index":0,"text":"a\"b a\"b ","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp, body, err := ask(t, url+test.path, test.body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, fixed(body)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			want := "application/json"
			if strings.Contains(test.body, `"stream":true`) {
				want = "text/event-stream; charset=utf-8"
			}
			if got := resp.Header.Get("Content-Type"); got != want {
				t.Errorf("content type %q", got)
			}
		})
	}
}

// Each event is one HTTP chunk; steps without a time share one.
func TestEventsAndChunks(t *testing.T) {
	url, truth := start(t, script(t, `models: {m: {steps: [
	  {at: 0ms, role: true}, {at: 10ms, text: a}, {at: 20ms, comment: ping}, {at: 30ms, text: b}, {text: c, tokens: 2}, {reasoning: d},
	  {at: 40ms, data: '{"x":1}', tokens: 3}, {at: 50ms, raw: "data: {\"y\""}, {at: 60ms, raw: ":2}\r\n\r\n"}, {at: 70ms, error: no}, {at: 80ms, finish: stop, text: e}, {usage: true}]}}`))
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := chat(`,"stream":true,"stream_options":{"include_usage":true}`)
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	r := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	var chunks []string
	for {
		var n int
		if _, err := fmt.Fscanf(r, "%x\r\n", &n); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		chunks = append(chunks, fixed(string(b[:n])))
	}
	const begin = `data: {"id":"chatcmpl","object":"chat.completion.chunk","model":"m","choices":[`
	choice := func(delta, finish string) string {
		return begin + `{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}],"usage":null}` + "\n\n"
	}
	want := []string{
		choice(`"role":"assistant","content":""`, "null"),
		choice(`"content":"a"`, "null"),
		": ping\n\n",
		choice(`"content":"b"`, "null") + choice(`"content":"c"`, "null") + choice(`"reasoning_content":"d"`, "null"),
		"data: {\"x\":1}\n\n",
		`data: {"y"`,
		":2}\r\n\r\n",
		`data: {"error":{"message":"no","type":"server_error"}}` + "\n\n",
		choice(`"content":"e"`, `"stop"`) + begin + `],"usage":{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12}}` + "\n\n",
	}
	if d := cmp.Diff(want, chunks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	checkTimes(t, truth.wait(t, 1)[0], []arrival{{10 * ms, 1}, {30 * ms, 1}, {30 * ms, 2}, {30 * ms, 1}, {40 * ms, 3}, {80 * ms, 1}})
}

// checkTimes compares what was really sent with what was to be: never early,
// and not so late that the server must have waited for something else.
func checkTimes(t testing.TB, got Truth, want []arrival) {
	t.Helper()
	if len(got.Events) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got.Events), len(want), got)
	}
	for i, e := range got.Events {
		late := time.Duration(e.SentNs-got.ReceivedNs) - want[i].At
		// The wall clock of two readings may be corrected in between.
		if e.Tokens != want[i].Tokens || late < -time.Millisecond || late > 5*time.Second {
			t.Errorf("event %d: %d tokens %v late, want %d tokens at %v", i, e.Tokens, late, want[i].Tokens, want[i].At)
		}
	}
}

func TestTruth(t *testing.T) {
	url, truth := start(t, script(t, "models: {m: {ttft: 60ms, gap: 10ms, per_chunk: 2, freeze: [{at: 3, for: 50ms}]}}"))
	resp, body, err := ask(t, url+"/v1/chat/completions", chat(`,"stream":true,"max_tokens":5`), "x-fermata-purpose", "preflight")
	if err != nil {
		t.Fatal(err)
	}
	got := truth.wait(t, 1)[0]
	checkTimes(t, got, []arrival{{60 * ms, 2}, {110 * ms, 2}, {120 * ms, 1}})
	if !strings.Contains(body, `"id":"`+got.ID+`"`) || got.ID == "" {
		t.Errorf("the truth has id %q, the answer is %s", got.ID, body)
	}
	if h := resp.Header.Get("x-fermata-received-ns"); h != fmt.Sprint(got.ReceivedNs) {
		t.Errorf("header x-fermata-received-ns %s, truth %d", h, got.ReceivedNs)
	}
	if last := got.Events[2].SentNs; got.EndedNs < last {
		t.Errorf("ended at %d, before the last event at %d", got.EndedNs, last)
	}
	want := Truth{
		Model: "m", API: Chat, Purpose: "preflight", End: EndDone, Status: 200, PromptTokens: 3, Finish: "length",
		ID: got.ID, ReceivedNs: got.ReceivedNs, EndedNs: got.EndedNs, Events: got.Events,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// An answer that is not streamed is one event of all its tokens, after the last is due.
	if _, _, err := ask(t, url+"/v1/chat/completions", chat(`,"max_tokens":5`)); err != nil {
		t.Fatal(err)
	}
	checkTimes(t, truth.wait(t, 2)[1], []arrival{{120 * ms, 5}})
}

// Many streams at once keep their times and do not mix.
func TestManyStreams(t *testing.T) {
	url, truth := start(t, script(t, "models: {m: {ttft: 20ms, gap: 5ms}}"))
	const streams = 40
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			_, body, err := ask(t, url+"/v1/chat/completions", chat(fmt.Sprintf(`,"stream":true,"max_tokens":%d`, 1+i)))
			if err != nil || strings.Count(body, `"tok "`) != 1+i || !strings.HasSuffix(body, "data: [DONE]\n\n") {
				t.Errorf("stream %d: error %v, body %s", i, err, body)
			}
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for _, line := range truth.wait(t, streams) {
		ids[line.ID] = true
		var want []arrival
		for i := range line.Events {
			want = append(want, arrival{20*ms + time.Duration(i)*5*ms, 1})
		}
		checkTimes(t, line, want)
	}
	if len(ids) != streams {
		t.Errorf("%d ids for %d streams", len(ids), streams)
	}
}

// A slow engine gives each event only when it is known; an event is sent without
// waiting for the next.
type slow struct{ next chan Event }

func (slow) Models() []string { return []string{"m"} }

func (s slow) Answer(ctx context.Context, q *Request) (iter.Seq[Event], error) {
	if q.MaxTokens == 7 {
		return nil, errors.New("seven is too many")
	}
	return func(yield func(Event) bool) {
		for {
			select {
			case e := <-s.next:
				if !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}, nil
}

func TestSlowEngine(t *testing.T) {
	e := slow{make(chan Event)}
	url, truth := start(t, e)
	if resp, body, err := ask(t, url+"/v1/chat/completions", chat(`,"max_tokens":7`)); err != nil || resp.StatusCode != 500 || !strings.Contains(body, "seven is too many") {
		t.Errorf("an engine's error: %v, %s", err, body)
	}
	go func() { e.next <- Event{Text: "now", Tokens: 1} }()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chat(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	b := bufio.NewReader(resp.Body)
	if line, err := b.ReadString('\n'); err != nil || !strings.Contains(line, `"now"`) {
		t.Errorf("first line %s, %v", line, err)
	}
	resp.Body.Close()
	if got := truth.wait(t, 2)[1]; got.End != EndClientGone || len(got.Events) != 1 {
		t.Errorf("truth %+v", got)
	}
}

// A caller may serve the handler itself; answers on one connection follow each
// other.
func TestHandlerAndReuse(t *testing.T) {
	s := New(script(t, "models: {m: {tokens: 1}}"), Options{})
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: s.Handler()}
	go h.Serve(ln)
	defer h.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	before := time.Now().UnixNano()
	for range 3 {
		req, _ := http.NewRequest("POST", "http://x/v1/chat/completions", strings.NewReader(chat(`,"stream":true`)))
		out, err := httputil.DumpRequestOut(req, true)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(out)
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(b), "[DONE]\n\n") {
			t.Errorf("%s, %v", b, err)
		}
		var at int64
		if fmt.Sscan(resp.Header.Get("x-fermata-received-ns"), &at); at < before-int64(ms) {
			t.Errorf("received at %d, before %d", at, before)
		}
	}
}

func TestListenErrors(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Listen(ln.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listening twice gave %v", err)
	}
}

func TestAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	ctx, cancel := context.WithCancel(context.Background())
	for _, d := range []time.Duration{-time.Hour, 0, 1, 50 * time.Microsecond, 3 * ms, 20 * ms} {
		due := time.Now().Add(d)
		if err := a.wait(ctx, due); err != nil || time.Now().Before(due) {
			t.Errorf("%v: error %v, %v early", d, err, time.Until(due))
		}
	}
	time.AfterFunc(20*ms, cancel)
	if err := a.wait(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait gave %v", err)
	}
	if err := a.wait(ctx, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait after the end gave %v", err)
	}
}
