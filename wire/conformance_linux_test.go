package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/internal/sse"
	"fermata/recording"

	"github.com/google/go-cmp/cmp"
)

// A player is a server that writes what its script says, byte for byte.
type player struct {
	net.Listener
	script func(n int, c *playing) // of the n-th connection
	conns  sync.WaitGroup

	mu    sync.Mutex
	count int
	heard []string // bodies of the requests
}

// playing is one connection of a player.
type playing struct {
	*net.TCPConn
	in *bufio.Reader
	p  *player
}

func play(t testing.TB, script func(n int, c *playing)) *player {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &player{Listener: ln, script: script}
	p.conns.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			n := p.count
			p.count++
			p.mu.Unlock()
			p.conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				p.script(n, &playing{TCPConn: c.(*net.TCPConn), in: bufio.NewReader(c), p: p})
			})
		}
	})
	t.Cleanup(func() { ln.Close(); p.conns.Wait() })
	return p
}

// request reads one request; false is the end of the connection.
func (c *playing) request() bool {
	r, err := http.ReadRequest(c.in)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	c.p.mu.Lock()
	c.p.heard = append(c.p.heard, string(body))
	c.p.mu.Unlock()
	return err == nil
}

func (c *playing) say(parts ...string) {
	for i, s := range parts {
		if i > 0 {
			time.Sleep(time.Millisecond)
		}
		_, _ = io.WriteString(c, s)
	}
}

func (c *playing) reset() {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// A traced is what a client made of one exchange.
type traced struct {
	Status    int
	Header    http.Header
	Body      string
	Events    []string
	Step      recording.Step
	Failed    string // the kind of error
	Sent      bool
	Connected bool
	FirstByte bool
}

// kindOf sorts errors as whoever judges them does.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errCutByTest):
		return "cut"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case strings.Contains(err.Error(), "unexpected EOF reading trailer"): // net/http's is an error of its own
		return "broken"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "broken"
	}
	return "malformed"
}

var errCutByTest = errors.New("cut by the test")

// ask carries out requests one after the other.
func ask(t testing.TB, tr Transport, url string, requests int, body string, aside bool, cutAfter time.Duration) []traced {
	t.Helper()
	var all []traced
	for range requests {
		ctx, cut := context.WithCancelCause(t.Context())
		if cutAfter > 0 {
			time.AfterFunc(cutAfter, func() { cut(errCutByTest) })
		}
		got := &remembered{}
		req := post(url, body)
		req.Aside = aside
		r := tr.Exchange(ctx, req, got)
		cut(nil)
		one := traced{
			Status: got.status, Header: got.header, Body: got.text(), Step: r.Step, Failed: kindOf(r.Err),
			Sent: r.Sent.OK, Connected: r.Connected.OK, FirstByte: r.FirstByte.OK,
		}
		var split sse.Splitter
		event := func(ev sse.Event) error {
			one.Events = append(one.Events, string(ev.Name)+": "+string(ev.Data))
			return nil
		}
		for _, part := range got.data {
			if err := split.Feed([]byte(part), event); err != nil {
				one.Failed = "an event: " + err.Error()
			}
		}
		if _, err := split.Close(event); err != nil {
			one.Failed = "an event: " + err.Error()
		}
		if r.Sent.OK && r.FirstByte.OK && r.Sent.V > r.FirstByte.V || r.FirstByte.OK && r.FirstByte.V > r.End {
			t.Errorf("%T: times out of order: %+v", tr, r)
		}
		for i, at := range got.at {
			if at.ErrorNs < 0 || at.ErrorNs > at.EarlierNs || at.Read < 1 || i > 0 && (at.At < got.at[i-1].At || at.Read < got.at[i-1].Read) || at.At > r.End {
				t.Errorf("stamp %d is %+v after %+v; the end is %d", i, at, got.at[max(0, i-1)], r.End)
			}
		}
		all = append(all, one)
	}
	return all
}

// A remembered is a heard that keeps the header too.
type remembered struct {
	heard
	header http.Header
}

func (h *remembered) Head(status int, header http.Header, at Stamp) error {
	h.header = header.Clone()
	return h.heard.Head(status, header, at)
}

// conform has both transports meet the same server and compares what they made of
// it, to want where that is given.
func conform(t testing.TB, requests int, body string, cutAfter time.Duration, script func(n int, c *playing)) []traced {
	t.Helper()
	clock := NewClock()
	fast, err := newFast(clock, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	slow := NewHTTP(clock)
	defer slow.Close()
	ways := []struct {
		name  string
		by    Transport
		aside bool
	}{{"compatible", slow, false}, {"fast", fast, false}, {"fast, aside from a load", fast, true}}
	var results [3][]traced
	var heard [3][]string
	for i, w := range ways {
		p := play(t, script)
		results[i] = ask(t, w.by, "http://"+p.Addr().String()+"/v1/x?y=z", requests, body, w.aside, cutAfter)
		p.mu.Lock()
		heard[i] = p.heard
		p.mu.Unlock()
		if d := cmp.Diff(results[0], results[i]); d != "" {
			t.Errorf("the transports differ (-compatible +%s):\n%s", w.name, d)
		}
		if d := cmp.Diff(heard[0], heard[i]); d != "" {
			t.Errorf("the server heard different requests (-compatible +%s):\n%s", w.name, d)
		}
	}
	return results[1]
}

const stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Two: a\r\nx-two: b\r\nTransfer-Encoding: chunked\r\n\r\n"

// chunk is a chunk with its framing.
func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const last = "0\r\n\r\n"

// all kinds of line ends, comments, several data lines, names and runes of four bytes.
const medley = "data: one\n\ndata: two\r\n\r\ndata: three\r\r: a comment\n\nevent: name\ndata: a\ndata: b\n\ndata: \U0001F600\u00e9\n\ndata: [DONE]\n\n"

func TestConformance(t *testing.T) {
	always := func(f func(c *playing)) func(int, *playing) {
		return func(_ int, c *playing) {
			for c.request() {
				f(c)
			}
		}
	}
	long := strings.Repeat("x", 32<<20-6)
	for _, c := range []struct {
		name     string
		requests int
		body     string
		cut      time.Duration
		script   func(n int, c *playing)
		want     string // of the last answer's body; empty: whatever both say
	}{
		{"whole", 2, "q", 0, always(func(c *playing) { c.say(stream + chunk(medley) + last) }), medley},
		{"apart", 2, "q", 0, always(func(c *playing) { c.say(stream, chunk(medley), last) }), medley},
		{"a chunk an event", 1, "q", 0, always(func(c *playing) {
			c.say(stream)
			for _, ev := range strings.SplitAfter(medley, "\n\n") {
				if ev != "" {
					c.say("", chunk(ev))
				}
			}
			c.say(last)
		}), medley},
		{"extensions and trailers", 2, "q", 0, always(func(c *playing) {
			c.say(stream + "5;a=\"b\"\r\ndata:\r\n" + "4 \r\n x\n\n\r\n" + "000\r\nA: b\r\nC: d\r\n\r\n")
		}), "data: x\n\n"},
		{"upper-case sizes", 1, "q", 0, always(func(c *playing) { c.say(stream + "1A\r\n" + strings.Repeat("y", 26) + "\r\n" + last) }), strings.Repeat("y", 26)},
		{"length", 2, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") }), "hello"},
		{"length of nothing", 2, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }), ""},
		{"no content", 2, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 204 No Content\r\n\r\n") }), ""},
		{"length in pieces", 2, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 200 OK\r\nContent-Le", "ngth: 5\r\n", "\r\nhe", "llo") }), "hello"},
		{"until the end", 2, "q", 0, func(_ int, c *playing) {
			if c.request() {
				c.say("HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", "data: b\n\n")
			}
		}, "data: a\n\ndata: b\n\n"},
		{"HTTP/1.0", 2, "q", 0, func(_ int, c *playing) {
			if c.request() {
				c.say("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}, "ok"},
		{"HTTP/1.0 kept", 2, "q", 0, always(func(c *playing) { c.say("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok") }), "ok"},
		{"closes by word", 3, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok") }), "ok"},
		{"continue", 2, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", stream+chunk("data: a\n\n")+last)
		}), "data: a\n\n"},
		{"continue with the answer", 1, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 100 Continue\r\n\r\n" + stream + chunk("data: a\n\n") + last)
		}), "data: a\n\n"},
		{"many interim answers", 1, "q", 0, always(func(c *playing) {
			c.say(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 70), stream+chunk("data: a\n\n")+last)
		}), "data: a\n\n"},
		{"an error", 2, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}), "{}"},
		{"a redirect", 1, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
		}), ""},
		{"both length and chunks", 1, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("data: a\n\n") + last)
		}), "data: a\n\n"},
		{"a folded header", 1, "q", 0, always(func(c *playing) {
			c.say("HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\nContent-Length: 2\r\n\r\nok")
		}), "ok"},
		{"lines end in LF", 1, "q", 0, always(func(c *playing) { c.say("HTTP/1.1 200 OK\nContent-Length: 2\n\nok") }), "ok"},
		{"a long line", 1, "q", 0, always(func(c *playing) { c.say(stream + chunk("data: "+long+"\n\n") + last) }), "data: " + long + "\n\n"},
		{"a long line in chunks", 1, "q", 0, always(func(c *playing) {
			c.say(stream)
			for b := "data: " + long + "\n\n"; b != ""; {
				n := min(len(b), 50_001)
				c.say(chunk(b[:n]))
				b = b[n:]
			}
			c.say(last)
		}), "data: " + long + "\n\n"},
		{"a long question", 2, strings.Repeat("question ", 1<<20), 0, always(func(c *playing) { c.say(stream + chunk("data: a\n\n") + last) }), "data: a\n\n"},
		{"closes after each, silently", 4, "q", 0, func(_ int, c *playing) {
			if c.request() {
				c.say(stream + chunk("data: a\n\n") + last)
				_, _ = c.in.ReadByte()
			}
		}, "data: a\n\n"},
		{"closes kept connections at once", 4, "q", 0, func(_ int, c *playing) {
			if c.request() {
				c.say(stream + chunk("data: a\n\n") + last)
			}
		}, ""},
		{"more than was asked for", 1, "q", 0, func(_ int, c *playing) {
			if c.request() {
				c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
				_, _ = c.in.ReadByte()
			}
		}, "ok"},
		{"closed before a byte", 1, "q", 0, func(_ int, c *playing) { c.request() }, ""},
		{"closed within the head", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say("HTTP/1.1 200 OK\r\n") }, ""},
		{"closed before the body", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream) }, ""},
		{"closed within a chunk", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + "10\r\ndata: a\n\n") }, "data: a\n\n"},
		{"closed between chunks", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + chunk("data: a\n\n")) }, "data: a\n\n"},
		{"closed before the last line", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + chunk("data: a\n\n") + "0\r\n") }, "data: a\n\n"},
		{"closed within a length", 1, "q", 0, func(_ int, c *playing) {
			c.request()
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhell")
		}, "hell"},
		{"reset before a byte", 1, "q", 0, func(_ int, c *playing) { c.request(); c.reset() }, ""},
		{"reset before the body", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream, ""); c.reset() }, ""},
		{"reset within a chunk", 1, "q", 0, func(_ int, c *playing) {
			c.request()
			c.say(stream+"10\r\ndata: a\n\n", "")
			time.Sleep(20 * time.Millisecond) // until it was read: a reset overtakes
			c.reset()
		}, "data: a\n\n"},
		{"not HTTP", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say("hello\r\n\r\n"); c.request() }, ""},
		{"another version", 1, "q", 0, always(func(c *playing) { c.say("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok") }), ""},
		{"a bad status", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say("HTTP/1.1 2OO OK\r\n\r\n"); c.request() }, ""},
		{"a header without a colon", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say("HTTP/1.1 200 OK\r\nnothing\r\n\r\n"); c.request() }, ""},
		{"two lengths", 1, "q", 0, func(_ int, c *playing) {
			c.request()
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!")
			c.request()
		}, ""},
		{"an unknown encoding", 1, "q", 0, func(_ int, c *playing) {
			c.request()
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok!")
			c.request()
		}, ""},
		{"a bad size", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + chunk("data: a\n\n") + "xyz\r\n"); c.request() }, ""},
		{"a size too large", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + "12345678901234567\r\n"); c.request() }, ""},
		{"no size", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + "\r\n"); c.request() }, ""},
		{"a chunk too long", 1, "q", 0, func(_ int, c *playing) { c.request(); c.say(stream + "3\r\nabcd\r\n"); c.request() }, ""},
		{"silent", 1, "q", 150 * time.Millisecond, func(_ int, c *playing) { c.request(); c.request() }, ""},
		{"silent to a long prompt", 1, strings.Repeat("q", 300_000), 400 * time.Millisecond, func(_ int, c *playing) { c.request(); c.request() }, ""},
		{"silent after the head", 1, "q", 500 * time.Millisecond, func(_ int, c *playing) { c.request(); c.say(stream); c.request() }, ""},
		{"silent within", 1, "q", 500 * time.Millisecond, func(_ int, c *playing) { c.request(); c.say(stream + chunk("data: a\n\n")); c.request() }, "data: a\n\n"},
		{"deaf", 1, strings.Repeat("x", 64<<20), time.Second, func(_ int, _ *playing) { time.Sleep(4 * time.Second) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calm.Try(t, func(t testing.TB) {
				got := conform(t, c.requests, c.body, c.cut, c.script)
				if end := got[len(got)-1]; c.want != "" && end.Body != c.want {
					t.Errorf("the body is %.100q, want %.100q", end.Body, c.want)
				}
			})
		})
	}
}

// A chunk may end, and a segment may, after any byte.
func TestConformanceAtEveryByte(t *testing.T) {
	whole := stream + chunk(medley) + last
	for _, c := range []struct {
		name  string
		n     int
		parts func(i int) []string
	}{
		{"chunks", len(medley) - 1, func(i int) []string { return []string{stream + chunk(medley[:i]) + chunk(medley[i:]) + last} }},
		{"segments", len(whole) - 1, func(i int) []string { return []string{whole[:i], whole[i:]} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := 0
			var mu sync.Mutex
			got := conform(t, c.n, "q", 0, func(_ int, p *playing) {
				for p.request() {
					mu.Lock()
					k := i%c.n + 1
					i++
					mu.Unlock()
					p.say(c.parts(k)...)
				}
			})
			for k, one := range got {
				if one.Body != medley || len(one.Events) != 6 || one.Failed != "" {
					t.Errorf("parted at %d: %+v", k+1, one)
				}
			}
		})
	}
}

// A server may answer before it has read the request, and go on reading.
func TestConformanceEarlyAnswer(t *testing.T) {
	big := strings.Repeat("x", 16<<20)
	got := conform(t, 2, big, 0, func(_ int, c *playing) {
		head := make([]byte, 512)
		if _, err := io.ReadFull(c, head); err != nil || !bytes.HasPrefix(head, []byte("POST ")) {
			return
		}
		c.say("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo long")
		_, _ = io.Copy(io.Discard, c)
	})
	for _, one := range got {
		if one.Status != 413 || one.Body != "too long" || one.Failed != "" {
			t.Errorf("%+v", one)
		}
	}
}

// Nobody listens.
func TestConformanceRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	clock := NewClock()
	fast, err := newFast(clock, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	r := fast.Exchange(t.Context(), post("http://"+ln.Addr().String(), "q"), &heard{})
	want := NewHTTP(clock).Exchange(t.Context(), post("http://"+ln.Addr().String(), "q"), &heard{})
	if r.Step != want.Step || fmt.Sprint(r.Err) != fmt.Sprint(want.Err) || !errors.Is(r.Err, syscall.ECONNREFUSED) {
		t.Errorf("%q at %q, want %q at %q", r.Err, r.Step, want.Err, want.Step)
	}
}

// A kept connection is closed under the second request, and nobody listens any more:
// that request never left.
func TestConformanceRefusedAnew(t *testing.T) {
	clock := NewClock()
	fast, err := newFast(clock, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	slow := NewHTTP(clock)
	defer slow.Close()
	for _, tr := range []Transport{slow, fast} {
		s := listen(t) // it closes when the second request begins
		url := "http://" + s.Addr().String()
		if r := tr.Exchange(t.Context(), post(url, "q"), &heard{}); r.Err != nil {
			t.Fatalf("%T: %v", tr, r.Err)
		}
		s.Close()
		r := tr.Exchange(t.Context(), post(url, "q"), &heard{})
		if !errors.Is(r.Err, syscall.ECONNREFUSED) || r.Step != recording.AtConnect || r.Sent.OK || r.Connected.OK {
			t.Errorf("%T: %+v", tr, r)
		}
	}
}

// IPv6, by an address in brackets and on either transport.
func TestConformanceIPv6(t *testing.T) {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	hosts := make(chan string, 2)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts <- r.Host
		fmt.Fprint(w, "ok")
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln)
	}()
	defer func() { srv.Close(); <-served }()
	clock := NewClock()
	fast, err := newFast(clock, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	slow := NewHTTP(clock)
	defer slow.Close()
	for _, tr := range []Transport{slow, fast} {
		got := &heard{}
		if r := tr.Exchange(t.Context(), post("http://"+ln.Addr().String()+"/v1", "q"), got); r.Err != nil || got.text() != "ok" || !r.Sent.OK || !r.FirstByte.OK {
			t.Errorf("%T: %q, %+v", tr, got.text(), r)
			continue
		}
		if host := <-hosts; host != ln.Addr().String() {
			t.Errorf("%T: the host is %q, want %q", tr, host, ln.Addr())
		}
		if at := got.at[0]; at.At <= 0 || at.ErrorNs < 0 {
			t.Errorf("%T: a stamp of %+v", tr, at)
		}
	}
}
