package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A listener hands out connections that know when they were last read.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// A conn remembers when its last read returned: the earliest that a server can
// know that a request has come, before its headers are parsed and a handler runs.
type conn struct {
	net.Conn
	last atomic.Pointer[time.Time]
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		now := moment()
		c.last.Store(&now)
	}
	return n, err
}

// connKey finds the conn of a request in its context.
type connKey struct{}

// received is when the last byte of r was read. The body must have been read to
// its end just before.
func received(r *http.Request) time.Time {
	if c := connOf(r.Context()); c != nil {
		if t := c.last.Load(); t != nil {
			return *t
		}
	}
	return moment()
}

// moment is the present on both clocks. time.Now reads the wall clock, then the
// monotonic one: a thread that loses its core between the two gets a pair that is
// off by that long, and with it every planned time that the log tells from it.
// Two pairs in a row that agree were both read at once.
func moment() time.Time {
	t := time.Now()
	for range 10 {
		next := time.Now()
		if apart := next.Round(0).Sub(t.Round(0)) - next.Sub(t); apart.Abs() < clocksWithin {
			return t
		}
		t = next
	}
	return t
}

// clocksWithin is how far apart the readings of both clocks may be.
const clocksWithin = 20 * time.Microsecond

// connOf is the connection of a request; nil where a server of another made it.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// reset makes closing c send a reset where c allows it.
func reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if wrapped, ok := c.(*conn); ok {
		c = wrapped.Conn
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

// Listen opens addr, such as 127.0.0.1:8000; port 0 takes a free one.
func Listen(addr string) (net.Listener, error) {
	// Go turns Nagle's algorithm off on every connection, so that each write
	// leaves at once.
	return net.Listen("tcp", addr)
}
