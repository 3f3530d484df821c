package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFailures(t *testing.T) {
	tests := []struct {
		fail, end string
		status    int    // of the response; 0 where there is none
		err       error  // of reading its body, or of the exchange
		has       string // in the body
		tokens    int    // in the truth
	}{
		{"{}", EndHTTPError, 503, nil, `{"error":{"message":"The script says: Service Unavailable","type":"server_error"}}`, 0},
		{"{status: 429, message: slow down}", EndHTTPError, 429, nil, `{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}`, 0},
		{"{kind: html}", EndPage, 200, nil, "<!DOCTYPE html>", 0},
		{"{kind: json}", EndDone, 200, nil, `"message":{"role":"assistant","content":"tok tok tok "}`, 3},
		{"{kind: cut, after: 2}", EndCut, 200, io.ErrUnexpectedEOF, `"tok "`, 2},
		{"{kind: reset, after: 2}", EndReset, 200, syscall.ECONNRESET, ``, 2},
		{"{kind: error, after: 1, message: oh}", EndDone, 200, nil, "data: {\"error\":{\"message\":\"oh\",\"type\":\"server_error\"}}\n\ndata: [DONE]\n\n", 1},
		{"{kind: no_finish}", EndDone, 200, nil, `"finish_reason":null}]}` + "\n\ndata: [DONE]\n\n", 3},
		{"{kind: no_done}", EndDone, 200, nil, `"finish_reason":"length"}]}` + "\n\n", 3},
		{"{steps: [{status: 401}]}", EndHTTPError, 401, nil, `"code":"invalid_api_key"`, 0},
		{"{steps: [{status: 200, body: '[]', type: text/plain}]}", EndPage, 200, nil, "[]", 0},
		{"{steps: [{close: cut}]}", EndCut, 0, io.EOF, "", 0},
		{"{steps: [{close: eof}]}", EndDone, 200, nil, "", 0},
	}
	for _, test := range tests {
		t.Run(test.fail, func(t *testing.T) {
			url, truth := start(t, script(t, "models: {m: {ttft: 20ms, fail: "+test.fail+"}}"))
			resp, body, err := ask(t, url+"/v1/chat/completions", chat(`,"stream":true,"max_tokens":3`))
			if !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			// A reset may overtake the head of the response on its way.
			lost := resp == nil && test.end == EndReset
			if !lost && (resp == nil) != (test.status == 0) || resp != nil && resp.StatusCode != test.status {
				t.Errorf("response %+v, want status %d", resp, test.status)
			}
			if !strings.Contains(body, test.has) {
				t.Errorf("no %s in body %s", test.has, body)
			}
			if strings.Contains(test.fail, "no_done") && strings.Contains(body, "[DONE]") {
				t.Error("the end marker came")
			}
			got := truth.wait(t, 1)[0]
			tokens := 0
			for _, e := range got.Events {
				tokens += e.Tokens
			}
			if got.End != test.end || got.Status != test.status || tokens != test.tokens {
				t.Errorf("truth %+v, want end %s, status %d, %d tokens", got, test.end, test.status, test.tokens)
			}
		})
	}
}

// A client that leaves ends its line at once, whatever the server was doing:
// waiting for the next token, or saying nothing for ever.
func TestClientLeaves(t *testing.T) {
	for _, test := range []struct {
		model string
		head  bool // the response's head comes
		lines int  // events that come
	}{
		{"{gap: 1h}", true, 1},
		{"{ttft: 1h, role: true}", true, 0},
		{"{fail: {kind: silent}}", true, 0},
		{"{fail: {kind: mute}}", false, 0},
		{"{fail: {kind: stall, after: 2}}", true, 2},
	} {
		t.Run(test.model, func(t *testing.T) {
			url, truth := start(t, script(t, "models: {m: "+test.model+"}"))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(chat(`,"stream":true,"max_tokens":3`)))
			if err != nil {
				t.Fatal(err)
			}
			if !test.head {
				go func() {
					for ctx.Err() == nil {
						if resp, err := http.Get(url + "/metrics"); err == nil {
							b, _ := io.ReadAll(resp.Body)
							resp.Body.Close()
							if bytes.Contains(b, []byte("in_flight 1")) {
								cancel()
							}
						}
					}
				}()
			}
			resp, err := http.DefaultClient.Do(req)
			if (err == nil) != test.head {
				t.Fatalf("the exchange gave %v", err)
			}
			if err == nil {
				defer resp.Body.Close()
				s := bufio.NewScanner(resp.Body)
				for n := 0; n < test.lines && s.Scan(); {
					if strings.Contains(s.Text(), "tok ") {
						n++
					}
				}
				cancel()
			}
			if got := truth.wait(t, 1)[0]; got.End != EndClientGone || len(got.Events) != test.lines {
				t.Errorf("truth %+v, want %s after %d events", got, EndClientGone, test.lines)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	url, _ := start(t, script(t, "api_key: secret\nreject: [ignore_eos]\nmodels: {m: {}, a: {}}"))
	key := []string{"Authorization", "Bearer secret"}
	for _, test := range []struct {
		name, path, body string
		header           []string
		status           int
		want             string
	}{
		{"no key", "/v1/chat/completions", chat(""), nil, 401, `"type":"invalid_request_error","code":"invalid_api_key"}}`},
		{"wrong key", "/v1/completions", chat(""), []string{"Authorization", "Bearer other"}, 401, `"message":"Incorrect API key provided."`},
		{"unknown model", "/v1/chat/completions", `{"model":"x","messages":[]}`, key, 404, "{\"error\":{\"message\":\"The model `x` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"param\":\"model\",\"code\":\"model_not_found\"}}"},
		{"wrong path", "/chat/completions", chat(""), key, 404, `"Invalid URL (POST /chat/completions)"`},
		{"no JSON", "/v1/chat/completions", "hello", key, 400, "The body is not a JSON object"},
		{"no messages", "/v1/chat/completions", `{"model":"m"}`, key, 400, `"param":"messages"`},
		{"no prompt", "/v1/completions", `{"model":"m"}`, key, 400, `"param":"prompt"`},
		{"bad prompt", "/v1/completions", `{"model":"m","prompt":{}}`, key, 400, `"param":"prompt"`},
		{"bad type", "/v1/chat/completions", chat(`,"max_tokens":"many"`), key, 400, `"param":"max_tokens"`},
		{"none", "/v1/chat/completions", chat(`,"max_tokens":0`), key, 400, `max_tokens must be at least 1, got 0`},
		{"none in new words", "/v1/chat/completions", chat(`,"max_completion_tokens":0`), key, 400, `max_completion_tokens must be at least 1, got 0`},
		{"more than most", "/v1/chat/completions", chat(`,"max_tokens":3,"min_tokens":4`), key, 400, `min_tokens must be less than or equal to max_tokens=3, got 4`},
		{"a number for a prompt", "/v1/completions", `{"model":"m","prompt":5}`, key, 400, `a number: token ids come in a list`},
		{"negative", "/v1/chat/completions", chat(`,"max_tokens":-1`), key, 400, `must not be negative`},
		{"rejected field", "/v1/chat/completions", chat(`,"ignore_eos":true`), key, 400, `"param":"ignore_eos","code":"unknown_parameter"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, body, err := ask(t, url+test.path, test.body, test.header...)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.status || !strings.Contains(body, test.want) {
				t.Errorf("status %d, body %s, want %d with %s", resp.StatusCode, body, test.status, test.want)
			}
		})
	}
}

func TestOtherPages(t *testing.T) {
	url, _ := start(t, script(t, "models: {m: {tokens: 5}, a: {}}"))
	if _, _, err := ask(t, url+"/v1/chat/completions", chat("")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/health":    "",
		"/version":   `{"version":"1.2.3"}` + "\n",
		"/v1/models": `{"data":[{"id":"a","object":"model","created":0,"owned_by":"fermata"},{"id":"m","object":"model","created":0,"owned_by":"fermata"}],"object":"list"}` + "\n",
		"/metrics": "# HELP fermata_serve_requests_total Completions asked for.\n# TYPE fermata_serve_requests_total counter\nfermata_serve_requests_total 1\n" +
			"# HELP fermata_serve_requests_in_flight Completions under way.\n# TYPE fermata_serve_requests_in_flight gauge\nfermata_serve_requests_in_flight 0\n" +
			"# HELP fermata_serve_tokens_total Tokens sent.\n# TYPE fermata_serve_tokens_total counter\nfermata_serve_tokens_total 5\n",
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(b) != want {
			t.Errorf("%s: status %d, body %q, error %v", path, resp.StatusCode, b, err)
		}
	}
	resp, err := http.Get(url + "/v1/completions")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET of completions: %d", resp.StatusCode)
	}
}

// When a server stops, what is under way is cut, and the log still has it.
func TestStop(t *testing.T) {
	for _, model := range []string{"{gap: 1h}", "{fail: {kind: stall, after: 1}}"} {
		ln, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		truth := &ledger{}
		s := New(script(t, "models: {m: "+model+"}"), Options{Truth: truth, Grace: 20 * time.Millisecond})
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, ln) }()
		resp, err := http.Post("http://"+ln.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(chat(`,"stream":true`)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for range 3 { // the role chunk, a blank line, the first token
			if !lines.Scan() {
				t.Fatal("no token came")
			}
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if got := truth.lines; len(got) != 1 || got[0].End != EndStopped || len(got[0].Events) != 1 {
			t.Errorf("%s: truth %+v, want one line that ends with %s", model, got, EndStopped)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("%s: the stream ended well", model)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTruthLogFails(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(script(t, "models: {m: {}}"), Options{Truth: fullDisk{}})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	if _, _, err := ask(t, "http://"+ln.Addr().String()+"/v1/chat/completions", chat("")); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-served; !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Serve gave %v", err)
	}
}
