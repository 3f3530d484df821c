package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"fermata/recording"
)

// A closer answers like llama.cpp: it promises to keep the connection and closes
// it. The second request on a connection may be read or not, but is not answered.
type closer struct {
	net.Listener
	answered atomic.Int64
	mute     atomic.Bool // answer nothing any more, close at once
	conns    sync.WaitGroup
}

func listen(t testing.TB) *closer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &closer{Listener: l}
	c.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.conns.Go(func() { c.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); c.conns.Wait() })
	return c
}

func (c *closer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if c.mute.Load() {
		return
	}
	c.answered.Add(1)
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
	_, _ = in.ReadByte() // until the next request begins, which then meets a closed connection
}

// A kept connection that its server closed costs a new connection, not a
// failure: the request goes out once more, and its times are those of that.
func TestKeptConnectionClosed(t *testing.T) {
	s := listen(t)
	h := NewHTTP(NewClock())
	defer h.Close()
	const requests = 20
	for i := range requests {
		before := h.clock.Now()
		var heard heard
		r := h.Exchange(context.Background(), post("http://"+s.Addr().String(), "question"), &heard)
		if r.Err != nil || heard.text() != "abc" {
			t.Fatalf("request %d: %v, answer %q", i, r.Err, heard.text())
		}
		if !r.Connected.OK || r.Connected.V < before {
			t.Errorf("request %d: connected %+v, wanted a new connection", i, r.Connected)
		}
		if !(before <= r.Connected.V && r.Connected.V <= r.Sent.V && r.Sent.V <= r.FirstByte.V && r.FirstByte.V <= r.End) {
			t.Errorf("request %d: began %d, connected %d, sent %d, first byte %d and end %d are out of order", i, before, r.Connected.V, r.Sent.V, r.FirstByte.V, r.End)
		}
	}
	if n := s.answered.Load(); n != requests {
		t.Errorf("the server answered %d requests, wanted %d", n, requests)
	}
	// On a new connection the same is a failure: nobody knows what the server did.
	s.mute.Store(true)
	var heard heard
	if r := h.Exchange(context.Background(), post("http://"+s.Addr().String(), "question"), &heard); r.Err == nil || r.Step != recording.AtHeaders {
		t.Errorf("a server that closes without an answer: error %v at %q, wanted one at %q", r.Err, r.Step, recording.AtHeaders)
	}
}
