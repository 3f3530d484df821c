package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fermata/internal/calm"
	"fermata/recording"
)

// A heard is a sink that keeps everything.
type heard struct {
	sent      int64
	connected recording.Maybe[int64]
	status    int
	head      Stamp
	data      []string
	at        []Stamp
	fail      error // returned by Data
}

func (h *heard) Sent(at int64, c recording.Maybe[int64]) error {
	h.sent, h.connected = at, c
	return nil
}

func (h *heard) Head(status int, _ http.Header, at Stamp) error {
	h.status, h.head = status, at
	return nil
}

func (h *heard) Data(b []byte, at Stamp) error {
	h.data, h.at = append(h.data, string(b)), append(h.at, at)
	return h.fail
}

func (h *heard) text() string { return strings.Join(h.data, "") }

func post(url, body string) *Request {
	return &Request{Method: http.MethodPost, URL: url, Header: http.Header{"X-Test": {"1"}}, Body: []byte(body)}
}

// A teller is a server that writes events one by one and notes when.
type teller struct {
	mu   sync.Mutex
	gap  time.Duration
	n    int
	sent []time.Time // just before each write
	done []time.Time // just after each flush

	proto    int
	encoding string // that the client says it takes
}

func (s *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.done, s.proto, s.encoding = nil, nil, r.ProtoMajor, r.Header.Get("Accept-Encoding")
	for i := range s.n {
		if i > 0 {
			time.Sleep(s.gap)
		}
		s.sent = append(s.sent, time.Now())
		fmt.Fprintf(w, "event %d\n", i)
		w.(http.Flusher).Flush()
		s.done = append(s.done, time.Now())
	}
}

// The stamp's promise: the truth lies in [At-ErrorNs, At]. A server can say when
// it began to write and when the write was over; the arrival lies between. It
// holds on every way to a server, over real ones.
func TestStampsBoundTheTruth(t *testing.T) {
	for _, way := range []struct {
		name  string
		tls   bool
		h2    bool
		unix  bool
		proxy bool
		user  bool // stamps of the reader alone
	}{
		{name: "plain"},
		{name: "tls", tls: true},
		{name: "http2 over tls", tls: true, h2: true},
		{name: "http2", h2: true},
		{name: "connect proxy", tls: true, proxy: true},
		{name: "http2 through a connect proxy", tls: true, h2: true, proxy: true},
		{name: "plain proxy", proxy: true},
		{name: "unix socket", unix: true},
		{name: "user time", user: true},
		{name: "user time, http2 over tls", user: true, tls: true, h2: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			calm.TryWithin(t, time.Duration(delivery), func(t testing.TB) {
				if way.user {
					t.Setenv(userStamps, "user")
				}
				s := &teller{gap: 10 * time.Millisecond, n: 30}
				srv := httptest.NewUnstartedServer(s)
				var o Options
				if way.unix {
					o.UnixSocket = filepath.Join(t.TempDir(), "s")
					l, err := net.Listen("unix", o.UnixSocket)
					if err != nil {
						t.Fatal(err)
					}
					srv.Listener.Close()
					srv.Listener = l
				}
				o.HTTP2, srv.EnableHTTP2 = way.h2, way.h2
				var srvWrote written
				srv.Listener = notedListener{srv.Listener, &srvWrote}
				srv.Config.Protocols = new(http.Protocols)
				srv.Config.Protocols.SetHTTP1(!way.h2)
				srv.Config.Protocols.SetHTTP2(way.h2)
				srv.Config.Protocols.SetUnencryptedHTTP2(way.h2)
				if way.tls {
					srv.StartTLS()
					o.CAFile = authority(t, srv)
				} else {
					srv.Start()
				}
				defer srv.Close()
				url := srv.URL
				if way.unix {
					url = "http://localhost"
				}
				var p *proxy
				if way.proxy {
					p = newProxy(t)
					o.Proxy = p.url
				}
				clock := NewClock()
				open, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				h := open(clock)
				defer h.Close()
				for try := range 2 { // the second request reuses the connection
					var got heard
					before := clock.Now()
					r := h.Exchange(t.Context(), post(url, "{}"), &got)
					if got.sent < before {
						t.Errorf("try %d: sent %d ns before it was asked for", try, before-got.sent)
					}
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					if kept := way.tls || !way.proxy; kept && got.connected.OK != (try == 0) {
						t.Errorf("try %d: connected %v; a reused connection has no time of connecting", try, got.connected)
					}
					s.mu.Lock()
					for i := range s.done {
						var total int
						s.done[i], total = srvWrote.flushed(s.done[i], way.h2)
						if p != nil { // what arrived here is what the proxy passed on
							s.done[i] = p.forward.reached(total)
						}
					}
					checkBounds(t, clock, s, &got, r)
					wantProto := 1
					if way.h2 {
						wantProto = 2
					}
					if s.proto != wantProto {
						t.Errorf("the server was spoken to by HTTP/%d, want %d", s.proto, wantProto)
					}
					if s.encoding != "" {
						t.Errorf("the server was told that it may compress: %q", s.encoding)
					}
					s.mu.Unlock()
				}
				if p != nil && p.used.Load() == 0 {
					t.Error("the proxy was not used")
				}
				v := h.(Monitored).Vitals()
				if v.Reads < int64(s.n) || (v.Lag != nil) != (v.Canary == nil) {
					t.Errorf("the transport says of itself %+v", v)
				}
			})
		})
	}
}

// authority writes the certificate of a test's server as a file of authorities.
func authority(t testing.TB, srv *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// written notes the writes to connections of which only one is written to at a
// time, as what a server's own writer returns from may not have left yet.
type written struct {
	mu  sync.Mutex
	all []struct {
		began, over time.Time
		total       int // bytes so far
	}
}

// A notedConn is a connection whose writes are noted, one after the other.
type notedConn struct {
	net.Conn
	in *written
}

func (w *written) conn(c net.Conn) io.Writer { return notedConn{c, w} }

func (c notedConn) Write(b []byte) (int, error) {
	began := time.Now()
	n, err := c.Conn.Write(b)
	w := c.in
	w.mu.Lock()
	defer w.mu.Unlock()
	total := n
	if k := len(w.all); k > 0 {
		total += w.all[k-1].total
	}
	w.all = append(w.all, struct {
		began, over time.Time
		total       int
	}{began, time.Now(), total})
	return n, err
}

// A notedListener is one whose connections are noted.
type notedListener struct {
	net.Listener
	in *written
}

func (l notedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return notedConn{c, l.in}, nil
}

// flushed is when what a handler had handed over by the time at was written for
// sure, and how many bytes were by then. HTTP/2's server returns from a flush
// before it.
func (w *written) flushed(at time.Time, after bool) (over time.Time, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over = at
	for _, one := range w.all {
		if !one.began.Before(at) && !after {
			break
		}
		if one.over.After(over) {
			over = one.over
		}
		total = one.total
		if !one.began.Before(at) {
			break
		}
	}
	return over, total
}

// reached is when so many bytes were written.
func (w *written) reached(total int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.total >= total {
			return one.over
		}
	}
	return time.Now()
}

// A proxy passes bytes on: to whom CONNECT names, or to the host of a plain
// request. It notes when it did, as it may be held up.
type proxy struct {
	url  string
	used atomic.Int64

	forward written // its writes towards the client
}

func newProxy(t testing.TB) *proxy {
	p := &proxy{}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.used.Add(1)
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	from, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	if r.Method != http.MethodConnect {
		r.Close = true // one request a connection is enough to be on the way
		if r.Write(to) == nil {
			p.pass(from, to)
		}
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() { _, _ = io.Copy(to, buffered); to.Close(); close(done) }()
	p.pass(from, to)
	from.Close()
	<-done
}

func (p *proxy) pass(client, server net.Conn) {
	_, _ = io.Copy(p.forward.conn(client), server)
}

// Streams that share a connection are bounded each by itself. A kernel that is held
// up keeps bytes on their way for longer than delivery, all streams' at once; so
// one of five tries must be within it. TestSharedTurn is about the rule itself.
func TestManyStreamsOnOneConnection(t *testing.T) {
	calm.TryWithin(t, time.Duration(delivery), func(t testing.TB) {
		for try := range 5 {
			late := manyStreams(t)
			if late == 0 {
				return
			}
			t.Logf("try %d: the bounds of %d events begin too late", try, late)
		}
		t.Error("bounds began too late in each of five tries")
	})
}

// manyStreams says how many bounds begin after their event was there.
func manyStreams(t testing.TB) (late int) {
	const streams, events = 20, 30
	type sending struct{ began, over time.Time }
	var mu sync.Mutex
	sent := map[string][]sending{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := range events {
			time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond)
			began := time.Now()
			fmt.Fprintf(w, "event %d\n", i)
			w.(http.Flusher).Flush()
			mu.Lock()
			sent[r.URL.Path] = append(sent[r.URL.Path], sending{began, time.Now()})
			mu.Unlock()
		}
	}))
	srv.EnableHTTP2 = true
	var srvWrote written
	srv.Listener = notedListener{srv.Listener, &srvWrote}
	srv.StartTLS()
	defer srv.Close()
	open, err := Open(Options{HTTP2: true, CAFile: authority(t, srv)})
	if err != nil {
		t.Fatal(err)
	}
	clock := NewClock()
	h := open(clock)
	defer h.Close()
	heards := make([]heard, streams)
	var group sync.WaitGroup
	for i := range heards {
		group.Go(func() {
			if r := h.Exchange(t.Context(), post(srv.URL+fmt.Sprintf("/%d", i), "{}"), &heards[i]); r.Err != nil {
				t.Error(r.Err)
			}
		})
	}
	group.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i := range heards {
		event := 0
		for k, at := range heards[i].at {
			event += strings.Count(heards[i].data[k], "\n")
			of := sent[fmt.Sprintf("/%d", i)][event-1]
			if began := clock.At(of.began); at.At < began {
				t.Errorf("stream %d: event %d is stamped %d ns before it was sent", i, event, began-at.At)
			}
			flushed, _ := srvWrote.flushed(of.over, true)
			if over := clock.At(flushed); at.At-at.ErrorNs > over+delivery {
				late++
			}
		}
		if event != events {
			t.Errorf("stream %d: %d events", i, event)
		}
	}
	return late
}

// Certificates are verified unless somebody says not to.
func TestCertificatesAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(&teller{n: 1})
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, c := range []struct {
		name string
		o    Options
		good bool
	}{
		{"nothing said", Options{}, false},
		{"insecure", Options{Insecure: true}, true},
		{"its own authority", Options{CAFile: authority(t, srv)}, true},
	} {
		open, err := Open(c.o)
		if err != nil {
			t.Fatal(err)
		}
		h := open(NewClock())
		r := h.Exchange(t.Context(), post(srv.URL, "{}"), &heard{})
		h.Close()
		var refused *tls.CertificateVerificationError
		if c.good != (r.Err == nil) || !c.good && !(errors.As(r.Err, &refused) && r.Step == recording.AtTLS) {
			t.Errorf("%s: failed at %q with %v", c.name, r.Step, r.Err)
		}
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		path string
		says string
	}{
		{Options{Proxy: "127.0.0.1:3128"}, "proxy", "http://127.0.0.1:3128"},
		{Options{Proxy: "ftp://h"}, "proxy", "URL of a proxy"},
		{Options{CAFile: empty}, "ca_file", "no certificate"},
		{Options{CAFile: filepath.Join(dir, "none")}, "ca_file", "no such file"},
		{Options{CAFile: empty, Insecure: true}, "insecure", "one of them"},
		{Options{UnixSocket: "s", Proxy: "http://h:1"}, "unix_socket", "one of them"},
	} {
		if got := c.o.Check()[c.path]; !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q, want it to say %q", c.o, got, c.says)
		}
	}
	secret := Options{Proxy: "ftp://user:hunter2@h"}
	if strings.Contains(secret.Check()["proxy"], "hunter2") {
		t.Error("an error repeats a password")
	}
	if found := (&Options{Proxy: "off", HTTP2: true}).Check(); len(found) != 0 {
		t.Errorf("good options: %v", found)
	}
}

// delivery is how long a kernel may keep bytes on their way, even on a loopback,
// after their write has returned.
const delivery = int64(500 * time.Microsecond)

func checkBounds(t testing.TB, clock Clock, s *teller, got *heard, r Result) {
	t.Helper()
	want := ""
	for i := range s.n {
		want += fmt.Sprintf("event %d\n", i)
	}
	if got.text() != want {
		t.Fatalf("got %q", got.text())
	}
	event, last := 0, int32(0)
	for i, at := range got.at {
		event += strings.Count(got.data[i], "\n")
		began, over := clock.At(s.sent[event-1]), clock.At(s.done[event-1])
		if at.At < began {
			t.Errorf("read %d is stamped %d ns before it was sent: stamps are late, never early", i, began-at.At)
		}
		if at.At-at.ErrorNs > over+delivery {
			t.Errorf("read %d: bound begins %d ns after the write was over", i, at.At-at.ErrorNs-over)
		}
		if at.Read < last {
			t.Errorf("read numbers fall: %d after %d", at.Read, last)
		}
		last = at.Read
		if at.ErrorNs < 0 || at.At-at.ErrorNs < got.sent {
			t.Errorf("read %d: bound of %d ns reaches before the sending", i, at.ErrorNs)
		}
	}
	if !r.FirstByte.OK || r.FirstByte.V < got.sent || r.FirstByte.V > got.at[0].At {
		t.Errorf("first byte at %v, sent at %d, first data at %d", r.FirstByte, got.sent, got.at[0].At)
	}
	if r.Sent.V != got.sent || r.End < got.at[len(got.at)-1].At {
		t.Errorf("result %+v does not fit sent %d", r, got.sent)
	}
}

// What came in one read of the socket shares its number and its stamp.
func TestReadsAreNumbered(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			buf := make([]byte, 1024)
			_, _ = c.Read(buf)
			write := func(s string) { _, _ = io.WriteString(c, s); time.Sleep(50 * time.Millisecond) }
			write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			write("2\r\nab\r\n2\r\ncd\r\n")
			write("2\r\nef\r\n")
			write("0\r\n\r\n")
		}()
		h := NewHTTP(NewClock())
		defer h.Close()
		var got heard
		if r := h.Exchange(t.Context(), post("http://"+ln.Addr().String(), ""), &got); r.Err != nil {
			t.Fatal(r.Err)
		}
		if got.text() != "abcdef" {
			t.Fatalf("got %q", got.text())
		}
		var reads []int32
		for i, d := range got.data {
			for range d {
				reads = append(reads, got.at[i].Read)
			}
		}
		if want := []int32{2, 2, 2, 2, 3, 3}; fmt.Sprint(reads) != fmt.Sprint(want) {
			t.Errorf("bytes came in reads %v, want %v", reads, want)
		}
		if got.head.Read != 1 {
			t.Errorf("the head came in read %d, want 1", got.head.Read)
		}
	})
}

func TestFailuresNameTheirStep(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/cut":
			w.(http.Flusher).Flush()
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "4\r\nhalf")
				c.Close()
			}
		}
	}))
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()

	cut := errors.New("cut by the test")
	for _, c := range []struct {
		name, url string
		step      recording.Step
		is        func(error) bool
	}{
		{"refused", nobody, recording.AtConnect, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"tls to a plain port", strings.Replace(plain.URL, "http:", "https:", 1), recording.AtTLS, func(err error) bool {
			var r tls.RecordHeaderError
			return errors.As(err, &r) || strings.Contains(err.Error(), "HTTP response to HTTPS client")
		}},
		{"silent", plain.URL + "/silent", recording.AtHeaders, func(err error) bool { return errors.Is(err, cut) }},
		{"cut", plain.URL + "/cut", recording.AtMidStream, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			calm.Try(t, func(t testing.TB) {
				ctx, stop := context.WithCancelCause(t.Context())
				if c.name == "silent" {
					time.AfterFunc(100*time.Millisecond, func() { stop(cut) })
				}
				defer stop(nil)
				h := NewHTTP(NewClock())
				defer h.Close()
				r := h.Exchange(ctx, post(c.url, "{}"), &heard{})
				if r.Step != c.step || r.Err == nil || !c.is(r.Err) {
					t.Errorf("failed at %q with %v, want %q", r.Step, r.Err, c.step)
				}
			})
		})
	}
}

// A sink can stop an exchange, and its error comes back.
func TestSinkStopsExchange(t *testing.T) {
	s := &teller{gap: time.Millisecond, n: 100}
	srv := httptest.NewServer(s)
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	enough := errors.New("enough")
	got := &heard{fail: enough}
	if r := h.Exchange(t.Context(), post(srv.URL, ""), got); !errors.Is(r.Err, enough) || len(got.data) != 1 {
		t.Errorf("error %v after %d reads", r.Err, len(got.data))
	}
}

// A server may answer before it has read the request.
func TestEarlyAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too long")
	}))
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	var got heard
	r := h.Exchange(t.Context(), post(srv.URL, strings.Repeat("x", 8<<20)), &got)
	if r.Err == nil && (got.status != 413 || got.text() != "too long") {
		t.Errorf("status %d, %q", got.status, got.text())
	}
	if r.Err != nil && got.status == 0 && r.Step != recording.AtSend && r.Step != recording.AtHeaders {
		t.Errorf("failed at %q: %v", r.Step, r.Err)
	}
	if !r.Sent.OK || r.Sent.V > r.End {
		t.Errorf("sent %v, end %d", r.Sent, r.End)
	}
}

func TestFetch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Test"))
	}))
	defer srv.Close()
	h := NewHTTP(NewClock())
	defer h.Close()
	page, err := Fetch(t.Context(), h, srv.URL+"/version", http.Header{"X-Test": {"yes"}})
	if err != nil || page.Status != 200 || string(page.Body) != "GET /version yes" {
		t.Errorf("got %+v, %v", page, err)
	}
}

// Waiting never returns early.
func TestWaitUntil(t *testing.T) {
	c := NewClock()
	for _, d := range []int64{-1, 0, 50_000, 3_000_000, 12_000_000} {
		at := c.Now() + d
		c.WaitUntil(at, func() bool { return false })
		if now := c.Now(); now < at {
			t.Errorf("returned %d ns early", at-now)
		}
	}
	c.WaitUntil(c.Now()+int64(time.Hour), func() bool { return true })
}

// Tokens that come with a response's head in one read are stamped as well as any.
func TestFirstTokenWithHead(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		if !stampsOf(false).receive {
			t.Skip("this system's kernel does not stamp")
		}
		s := &teller{gap: 20 * time.Millisecond, n: 2}
		srv := httptest.NewServer(s)
		defer srv.Close()
		h := NewHTTP(NewClock())
		defer h.Close()
		for range 5 { // a busy machine may part the head from the body, or read late
			var got heard
			if r := h.Exchange(t.Context(), post(srv.URL, ""), &got); r.Err != nil {
				t.Fatal(r.Err)
			}
			if got.head.Read == got.at[0].Read && got.at[0].ErrorNs < int64(time.Millisecond) {
				return
			}
		}
		t.Error("no first event in the read of its head had an exact stamp in five requests")
	})
}

// Who asks for HTTP/2 gets that or an error, never something else.
func TestHTTP2IsNotReplaced(t *testing.T) {
	for _, kind := range []string{"plain", "tls", "tls without agreement"} {
		srv := httptest.NewUnstartedServer(&teller{n: 1})
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		switch kind {
		case "plain":
			srv.Start()
		case "tls":
			srv.StartTLS()
		default:
			srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: srv.TLS.Certificates}, nil // which knows no protocols
			}}
			srv.StartTLS()
		}
		open, err := Open(Options{HTTP2: true, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		for range 5 { // a server that hangs up at once may be gone before its answer is read
			h := open(NewClock())
			r = h.Exchange(t.Context(), post(srv.URL, "{}"), &heard{})
			h.Close()
			if !errors.Is(r.Err, syscall.EPIPE) && !errors.Is(r.Err, syscall.ECONNRESET) {
				break
			}
		}
		srv.Close()
		if r.Err == nil || !strings.Contains(r.Err.Error(), "http2: ") && !strings.Contains(r.Err.Error(), "no application protocol") {
			t.Errorf("%s: failed at %q with %v", kind, r.Step, r.Err)
		}
	}
}
