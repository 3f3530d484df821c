package wire

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/internal/calm"
)

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
