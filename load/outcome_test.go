package load

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/internal/calm"
	"fermata/recording"
)

// Each way to end is a class of its own, with the step at which it failed, what
// had arrived by then, and a reason in one line.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, model string
		options     Options
		outcome     recording.Outcome
		step        recording.Step
		status      int32
		tokens      int32
		error       string // in the reason
		note        string
	}{
		{"well", "{}", Options{}, recording.OK, "", 200, tokens, "", ""},
		{"503", "{fail: {}}", Options{}, recording.HTTPError, recording.AtHeaders, 503, 0, "status 503: The script says: Service Unavailable", ""},
		{"429", "{fail: {status: 429, message: slow down}}", Options{}, recording.HTTPError, recording.AtHeaders, 429, 0, "status 429: slow down", ""},
		{"502 with a page", "{fail: {kind: html, status: 502}}", Options{}, recording.HTTPError, recording.AtHeaders, 502, 0, `an HTML page titled "Welcome"`, ""},

		{"cut before the head", "{fail: {kind: cut}}", Options{}, recording.StreamCut, recording.AtHeaders, 0, 0, "the connection broke before an answer", ""},
		{"cut before tokens", "{steps: [{at: 0ms, role: true}, {at: 20ms, close: cut}]}", Options{}, recording.StreamCut, recording.AtFirstToken, 200, 0, "the connection broke", ""},
		{"cut after tokens", "{gap: 10ms, fail: {kind: cut, after: 3}}", Options{}, recording.StreamCut, recording.AtMidStream, 200, 3, "the connection broke", ""},
		{"reset", "{gap: 150ms, fail: {kind: reset, after: 2}}", Options{}, recording.StreamCut, recording.AtMidStream, 200, 2, "connection reset", ""},
		{"no finish", "{fail: {kind: no_finish}}", Options{}, recording.StreamCut, recording.AtMidStream, 200, tokens, "without a finish reason", ""},
		{"ended early", "{steps: [{at: 0ms, text: a}, {at: 5ms, close: eof}]}", Options{}, recording.StreamCut, recording.AtMidStream, 200, 1, "without a finish reason", ""},
		{"no end marker", "{fail: {kind: no_done}}", Options{}, recording.OK, "", 200, tokens, "", recording.NoteNoDone},
		{"ends within an event", `{steps: [{at: 0ms, text: a}, {at: 5ms, raw: 'data: {"choices": [{"del'}]}`, Options{}, recording.StreamCut, recording.AtMidStream, 200, 1, "without a finish reason", recording.NoteUnfinishedTail},
		{"no blank line at the end", `{steps: [{at: 0ms, text: a}, {at: 5ms, finish: stop}, {at: 10ms, raw: "data: [DONE]"}]}`, Options{}, recording.OK, "", 200, 1, "", recording.NoteUnfinishedTail},

		{"error in the stream", "{fail: {kind: error, after: 2, message: out of memory}}", Options{}, recording.StreamError, recording.AtMidStream, 200, 2, "out of memory", ""},
		{"error before tokens", "{fail: {kind: error, message: out of memory}}", Options{}, recording.StreamError, recording.AtFirstToken, 200, 0, "out of memory", ""},
		{"error, then a finish", "{steps: [{at: 0ms, text: a}, {at: 5ms, error: oh}, {at: 10ms, finish: stop}, {at: 10ms, done: true}]}", Options{}, recording.StreamError, recording.AtMidStream, 200, 1, "oh", ""},
		{"error with its finish", `{steps: [{at: 0ms, text: a}, {at: 5ms, data: '{"error":{"message":"oh"},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'}, {at: 10ms, done: true}]}`, Options{}, recording.StreamError, recording.AtMidStream, 200, 1, "oh", ""},
		{"finish reason error", "{steps: [{at: 0ms, text: a}, {at: 5ms, finish: error}, {at: 5ms, done: true}]}", Options{}, recording.StreamError, recording.AtMidStream, 200, 1, "finish reason error", ""},
		{"finish, then an error", "{steps: [{at: 0ms, text: a}, {at: 5ms, finish: stop}, {at: 10ms, error: oh}, {at: 10ms, done: true}]}", Options{}, recording.OK, "", 200, 1, "", recording.NoteErrorAfter},
		{"error as the body", `{fail: {steps: [{status: 200, body: '{"error":{"message":"no such lora"}}'}]}}`, Options{}, recording.StreamError, recording.AtFirstToken, 200, 0, "no such lora", ""},

		{"mute", "{fail: {kind: mute}}", Options{Timeout: 200 * time.Millisecond}, recording.Timeout, recording.AtHeaders, 0, 0, "no end within the time-out", ""},
		{"silent", "{fail: {kind: silent}}", Options{Timeout: 200 * time.Millisecond}, recording.Timeout, recording.AtFirstToken, 200, 0, "no end within the time-out", ""},
		{"too long", "{gap: 150ms}", Options{Timeout: 450 * time.Millisecond}, recording.Timeout, recording.AtMidStream, 200, -1, "no end within the time-out", ""},
		{"stalled", "{fail: {kind: stall, after: 2}}", Options{SilenceTimeout: 250 * time.Millisecond}, recording.Timeout, recording.AtMidStream, 200, 2, "no token within the silence time-out", ""},
		{"stalled with pings", pings, Options{SilenceTimeout: 250 * time.Millisecond}, recording.Timeout, recording.AtMidStream, 200, 2, "no token within the silence time-out", ""},
		{"a long queue is no silence", "{ttft: 400ms}", Options{SilenceTimeout: 100 * time.Millisecond}, recording.OK, "", 200, tokens, "", ""},
		{"a finish is no silence", "{steps: [{at: 0ms, text: a}, {at: 0ms, finish: stop}, {at: 400ms, done: true}]}", Options{SilenceTimeout: 100 * time.Millisecond}, recording.OK, "", 200, 1, "", ""},

		{"page", "{fail: {kind: html}}", Options{}, recording.BadStream, recording.AtFirstToken, 200, 0, `an HTML page titled "Welcome"`, ""},
		{"page as a stream", `{fail: {steps: [{status: 200, type: text/event-stream, body: "<html><title>Hi</title></html>"}]}}`, Options{}, recording.BadStream, recording.AtFirstToken, 200, 0, `an HTML page titled "Hi"`, ""},
		{"JSON", "{fail: {kind: json}}", Options{}, recording.NotStreamed, recording.AtFirstToken, 200, 0, "one JSON body instead of a stream", ""},
		{"JSON as a stream", `{fail: {steps: [{status: 200, type: text/event-stream, body: '{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}'}]}}`, Options{}, recording.NotStreamed, recording.AtFirstToken, 200, 0, "one JSON body", ""},
		{"no JSON as JSON", `{fail: {steps: [{status: 200, body: "oops"}]}}`, Options{}, recording.BadStream, recording.AtFirstToken, 200, 0, "oops", ""},
		{"garbage", `{steps: [{at: 0ms, text: a}, {at: 5ms, data: "\x01garbage"}, {at: 9ms, finish: stop}, {at: 9ms, done: true}]}`, Options{}, recording.BadStream, recording.AtMidStream, 200, 1, "an event's data is not JSON", ""},
		{"empty", "{steps: [{at: 0ms, role: true}, {at: 5ms, finish: stop}, {at: 5ms, done: true}]}", Options{}, recording.Empty, recording.AtFirstToken, 200, 0, "without a token", ""},
		{"nothing", "{steps: [{at: 0ms, close: eof}]}", Options{}, recording.Empty, recording.AtFirstToken, 200, 0, "without a token", ""},
		{"filtered", "{tokens: 3, finish: content_filter}", Options{}, recording.Filtered, recording.AtMidStream, 200, 3, "content filter", ""},
		{"kept open", "{steps: [{at: 0ms, text: a}, {at: 0ms, finish: stop}, {at: 0ms, done: true}, {at: 5ms, close: silent}]}", Options{}, recording.OK, "", 200, 1, "", ""},
		{"end marker without a finish, kept open", "{steps: [{at: 0ms, text: a}, {at: 0ms, done: true}, {at: 5ms, close: silent}]}", Options{Timeout: 500 * time.Millisecond}, recording.StreamCut, recording.AtMidStream, 200, 1, "without a finish reason", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				url, truth := scripted(t, c.model)
				j := job(t, url, newTape(), once)
				j.Options = c.options
				end, r := offer(t, j)
				tr := r.traces[0]
				if tr.Outcome != c.outcome || tr.FailedAt != c.step || tr.HTTPStatus != c.status || !strings.Contains(tr.Error, c.error) {
					t.Errorf("%s at %q, status %d: %q; want %s at %q, status %d: %q", tr.Outcome, tr.FailedAt, tr.HTTPStatus, tr.Error, c.outcome, c.step, c.status, c.error)
				}
				if n := sum(tr.Tokens); n != c.tokens && c.tokens >= 0 || c.tokens < 0 && n == 0 {
					t.Errorf("%d tokens, want %d", n, c.tokens)
				}
				if c.note != "" && !slices.Contains(tr.Notes, c.note) || c.note == "" && len(tr.Notes) > 0 {
					t.Errorf("notes %q, want %q", tr.Notes, c.note)
				}
				if tr.Phase != recording.Measured || !tr.Sent.OK || !tr.End.OK || tr.End.V < tr.Sent.V {
					t.Errorf("phase %s, sent %v, end %v", tr.Phase, tr.Sent, tr.End)
				}
				if (c.outcome == recording.OK) != (end.Live.Failed == 0) || end.Live.Finished != 1 {
					t.Errorf("%d failed of %d", end.Live.Failed, end.Live.Finished)
				}
				// The server knows what left it. What it sent before a time-out has come.
				if line := truth.wait(t, 1)[0]; c.tokens > 0 && c.outcome != recording.NotStreamed && !strings.Contains(c.model, "data:") {
					sent := int32(0)
					for _, e := range line.Events {
						sent += int32(e.Tokens)
					}
					if sent != c.tokens {
						t.Errorf("the server sent %d tokens, %d came", sent, c.tokens)
					}
				}
			})
		})
	}
}

// pings keep a connection alive, and no answer.
var pings = func() string {
	s := "{steps: [{at: 0ms, text: a}, {at: 10ms, text: b}"
	for at := 50 * time.Millisecond; at < 4*time.Second; at += 50 * time.Millisecond {
		s += ", {at: " + at.String() + ", comment: keep-alive}"
	}
	return s + ", {at: 4s, text: c}, {at: 4s, finish: stop}, {at: 4s, done: true}]}"
}()

// Addresses at which no answer begins.
func TestUnreachable(t *testing.T) {
	plain, _ := scripted(t, "{}")
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	for _, c := range []struct {
		name, url string
		outcome   recording.Outcome
		step      recording.Step
		status    int32
		error     string
	}{
		{"nobody listens", "http://" + closedPort(t), recording.Refused, recording.AtConnect, 0, "connection refused"},
		{"no such host", "http://no..host:1/", recording.ConnectFailed, recording.AtConnect, 0, "no such host"},
		{"TLS to a plain port", strings.Replace(plain, "http:", "https:", 1), recording.TLSFailed, recording.AtTLS, 0, "does not look like a TLS handshake"},
		{"a certificate that nobody signed", secure.URL, recording.TLSFailed, recording.AtTLS, 0, "certificate"},
		{"plain to a TLS port that says so", strings.Replace(secure.URL, "https:", "http:", 1), recording.HTTPError, recording.AtHeaders, 400, "HTTP request to an HTTPS server"},
		{"plain to a TLS port that does not", "http://" + speaker(t, "\x15\x03\x01\x00\x02\x02\x16"), recording.BadStream, recording.AtHeaders, 0, "the answer is not HTTP"},
		{"something else", "http://" + speaker(t, "SSH-2.0-OpenSSH_9.6\r\n"), recording.BadStream, recording.AtHeaders, 0, "the answer is not HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := offer(t, job(t, c.url, newTape(), once))
			tr := r.traces[0]
			if tr.Outcome != c.outcome || tr.FailedAt != c.step || tr.HTTPStatus != c.status || !strings.Contains(tr.Error, c.error) {
				t.Errorf("%s at %q, status %d: %q; want %s at %q, status %d: %q", tr.Outcome, tr.FailedAt, tr.HTTPStatus, tr.Error, c.outcome, c.step, c.status, c.error)
			}
			if tr.FirstToken() >= 0 || tr.Len() > 0 || !tr.End.OK {
				t.Errorf("%d arrivals, end %v", tr.Len(), tr.End)
			}
		})
	}
}

// speaker answers whatever it is asked with the same bytes.
func speaker(t testing.TB, answer string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, answer)
			c.Close()
		}
	}()
	return ln.Addr().String()
}

// What an event brings: the counts of tokens, and where they come from.
func TestTokensOfEvents(t *testing.T) {
	each := map[string]any{"stream_options": map[string]any{"include_usage": true, "continuous_usage_stats": true}}
	for _, c := range []struct {
		name, model       string
		body              map[string]any
		tokens            []int32
		source            string
		reported, counted int32
		note              string
	}{
		{"one each", "{tokens: 3}", nil, []int32{1, 1, 1}, recording.ArrivalEvents, 3, 3, ""},
		{"four in an event, by usage", "{tokens: 6, per_chunk: 4}", each, []int32{4, 2}, recording.ArrivalUsage, 6, 6, ""},
		{"four in an event, by text", "{tokens: 6, per_chunk: 4}", nil, []int32{4, 2}, recording.ArrivalShared, 6, 2, recording.NoteUsageShared},
		{"more usage than text", "{tokens: 3, usage: +3}", nil, []int32{2, 2, 2}, recording.ArrivalShared, 6, 3, recording.NoteUsageShared},
		{"less usage than text", "{tokens: 4, usage: 3}", nil, []int32{1, 1, 1, 1}, recording.ArrivalAssumed, 3, 4, ""},
		{"no usage", "{tokens: 4, usage: false}", nil, []int32{1, 1, 1, 1}, recording.ArrivalAssumed, -1, 4, ""},
		{"a usage with no choices ends nothing", "{steps: [{at: 0ms, text: a}, {at: 5ms, usage: {prompt: 9, completion: 1, always: true}}, {at: 20ms, text: b}, {at: 20ms, finish: stop}, {at: 20ms, usage: {prompt: 9, completion: 2, always: true}}, {at: 20ms, done: true}]}", nil, []int32{1, 1}, recording.ArrivalEvents, 2, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, truth := scripted(t, c.model)
			j := job(t, url, newTape(), once)
			j.Dialect = chat(t, dialect.Options{Model: "m", Body: c.body})
			_, r := offer(t, j)
			tr := r.traces[0]
			if tr.Outcome != recording.OK || !slices.Equal(tr.Tokens, c.tokens) || tr.ArrivalSource != c.source {
				t.Errorf("%s %q, tokens %v from %q; want %v from %q", tr.Outcome, tr.Error, tr.Tokens, tr.ArrivalSource, c.tokens, c.source)
			}
			if got := tr.Output.Reported; got.OK != (c.reported >= 0) || got.OK && got.V != c.reported || tr.Output.Counted != recording.Some(c.counted) {
				t.Errorf("output %+v, want %d reported, %d counted", tr.Output, c.reported, c.counted)
			}
			if c.note != "" && !slices.Contains(tr.Notes, c.note) || c.note == "" && len(tr.Notes) > 0 {
				t.Errorf("notes %q, want %q", tr.Notes, c.note)
			}
			if n := len(truth.wait(t, 1)[0].Events); n != tr.Len() {
				t.Errorf("%d arrivals of %d events", tr.Len(), n)
			}
		})
	}
}

// A chunk with the role alone is no token, however early it comes.
func TestRoleIsNoToken(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		url, truth := scripted(t, "{ttft: 80ms, role: true}")
		_, r := offer(t, job(t, url, newTape(), once))
		tr := r.traces[0]
		if tr.Len() != tokens || len(r.told[0]) != tokens {
			t.Fatalf("%d arrivals, %d recorded, want %d", tr.Len(), len(r.told[0]), tokens)
		}
		first := at(&tr)[0]
		if wait := first - tr.Sent.V; wait < 80*ms {
			t.Errorf("the first token came %d ns after the request left: it was the role", wait)
		}
		if head := tr.FirstByte.V; head >= first || truth.wait(t, 1)[0].Events[0].Tokens != 1 {
			t.Errorf("first byte at %d, first token at %d", head, first)
		}
	})
}

// Reasons may repeat what was sent, but never a key.
func TestSecretsAreHidden(t *testing.T) {
	const key = "sk-0123456789abcdef"
	for _, said := range []string{
		"Incorrect API key provided: " + key + ".",
		strings.Repeat("x", 289) + " " + key, // the reason is shortened within the key
	} {
		url, _ := scripted(t, `{fail: {status: 401, message: "`+said+`"}}`)
		j := job(t, url, newTape(), once)
		j.Secrets = []string{key, ""}
		_, r := offer(t, j)
		if e := r.traces[0].Error; strings.Contains(e, key[:6]) || !strings.Contains(e, "[secret]") || !strings.Contains(e, "status 401") {
			t.Errorf("the reason is %q", e)
		}
	}
}

// A probe is judged as a request of a run is.
func TestProbe(t *testing.T) {
	t.Parallel()
	calm.Try(t, func(t testing.TB) {
		for _, c := range []struct {
			model   string
			outcome recording.Outcome
		}{
			{"{}", recording.OK},
			{"{steps: [{at: 0ms, close: silent}]}", recording.Timeout},
			{"{steps: [{at: 0ms, text: a}, {at: 0ms, error: oh}]}", recording.StreamError},
		} {
			url, _ := scripted(t, c.model)
			j := job(t, url, newTape(), once)
			p := probeOf(j)
			defer p.Transport.Close()
			q, _ := j.Prompts.At(0, 0, 0)
			tr, err := p.Ask(t.Context(), &q)
			if err != nil || tr.Outcome != c.outcome || tr.Prompt.Intended != recording.Some(int32(8)) {
				t.Errorf("%s: %s %q, %v; want %s", c.model, tr.Outcome, tr.Error, err, c.outcome)
			}
		}
	})
}

// Errors that end nothing well keep their class: the run's own cuts are no
// broken connections.
func TestOurCutsAreNotBroken(t *testing.T) {
	for _, err := range []error{errTimeout, errSilent, errEnough, errStopped} {
		if isBroken(err) || !isOurCut(err) {
			t.Errorf("%v is taken for a broken connection", err)
		}
	}
	if isOurCut(io.ErrUnexpectedEOF) || !isBroken(io.ErrUnexpectedEOF) || isBroken(tls.AlertError(40)) || isBroken(errors.New("malformed")) {
		t.Error("a broken connection is taken for something else")
	}
}
