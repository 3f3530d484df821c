package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"fermata/recording"
)

// readSize is the most that one read of a body takes. net/http's own buffer has
// the same size, so that one read of the socket is one read of the body.
const readSize = 64 << 10

// HTTP is the transport over net/http: it speaks to anything that net/http speaks
// to and stamps every read of the socket, below TLS and HTTP/2.
type HTTP struct {
	clock  Clock
	inner  *http.Transport
	dialer net.Dialer
	bufs   sync.Pool
	stamps stamps
	meter  meter
	socket string // path of a Unix socket that stands for all addresses
	canary *canary
}

// NewHTTP is a transport with the options' zero value, whose stamps are on clock.
func NewHTTP(clock Clock) *HTTP {
	var w ways
	w.proxy = http.ProxyFromEnvironment
	return newHTTP(clock, w)
}

func newHTTP(clock Clock, w ways) *HTTP {
	h := &HTTP{clock: clock, stamps: stampsOf(false), socket: w.UnixSocket}
	h.dialer.Control = leaveSpare
	h.inner = &http.Transport{
		Proxy:               w.proxy,
		DialContext:         h.dial,
		DisableCompression:  true, // a compressing proxy would bunch the tokens
		MaxIdleConnsPerHost: 1 << 16,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, // a plain port waits for more
		ReadBufferSize:      readSize,
		WriteBufferSize:     writePiece,                                                    // more goes out in such pieces anyway
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: w.Insecure, RootCAs: w.roots}, // the report says so
		Protocols:           new(http.Protocols),
	}
	// One or the other: where the server chooses, nobody knows what was measured.
	h.inner.Protocols.SetHTTP1(!w.HTTP2)
	h.inner.Protocols.SetHTTP2(w.HTTP2)
	h.inner.Protocols.SetUnencryptedHTTP2(w.HTTP2)
	h.bufs.New = func() any { b := make([]byte, readSize); return &b }
	if !h.stamps.receive {
		h.canary = newCanary(clock, &h.meter.canary)
	}
	return h
}

// ErrNotHTTP2 ends a request that was to be answered by HTTP/2 and was not.
var ErrNotHTTP2 = errors.New("http2: the server answered by HTTP/1.1")

// Vitals implements Monitored.
func (h *HTTP) Vitals() Vitals { return h.meter.take(h.stamps) }

// Close closes idle connections.
func (h *HTTP) Close() {
	h.inner.CloseIdleConnections()
	h.canary.Close()
}

func (h *HTTP) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if h.socket != "" {
		network, addr = "unix", h.socket
	}
	c, err := h.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, orNoRoom(err)
	}
	n, err := newConn(c, h.clock, h.stamps, &h.meter)
	if err != nil {
		c.Close()
		return nil, err
	}
	return n, nil
}

// Exchange implements Transport.
func (h *HTTP) Exchange(ctx context.Context, req *Request, sink Sink) Result {
	x := &exchange{clock: h.clock, sink: sink, step: recording.AtConnect, many: h.inner.Protocols.HTTP2(), long: len(req.Body) > longBody}
	hr, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, x.hooks()), req.Method, req.URL, bytes.NewReader(req.Body))
	if err != nil {
		return x.fail(recording.AtConnect, err)
	}
	hr.Header = again(req.Header)
	resp, err := h.inner.RoundTrip(hr)
	if err != nil {
		x.allLeft()
		return x.fail(x.reached(), cause(ctx, err))
	}
	defer resp.Body.Close()
	x.tellSent()
	switch {
	case h.inner.Protocols.HTTP2() && resp.ProtoMajor != 2:
		return x.fail(recording.AtHeaders, ErrNotHTTP2)
	case !x.shares() && resp.ProtoMajor != 1: // a status line may say anything
		return x.fail(recording.AtHeaders, fmt.Errorf("%w: %q", errHead, resp.Proto+" "+resp.Status))
	}
	buf := h.bufs.Get().(*[]byte)
	defer h.bufs.Put(buf)
	return x.read(ctx, resp, *buf)
}

// again lets net/http send a request anew, on another connection, where a kept
// one turns out to be closed before a byte of the answer came: some servers close
// after each stream although they promise to keep the connection, and whoever
// asks at once loses that race. On a new connection nothing is sent twice. The
// key without a value asks for it and does not go out.
func again(h http.Header) http.Header {
	h = maps.Clone(h)
	if h == nil {
		h = http.Header{}
	}
	if _, ok := h["Idempotency-Key"]; !ok {
		h["Idempotency-Key"] = nil
	}
	return h
}

// An exchange is one request under way.
type exchange struct {
	clock Clock
	sink  Sink

	mu        sync.Mutex // the hooks run on net/http's goroutines
	step      recording.Step
	turn      *turn // on its connection
	sentIn    *turn // the turn that sent is about
	connected recording.Maybe[int64]
	sent      recording.Maybe[int64]
	many      bool // others share the connection: HTTP/2
	long      bool // the body may not fit into the socket at once
	flushing  bool // the request is written but for net/http's buffer
	told      bool
	sinkErr   error
	result    Result
}

func (x *exchange) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { // once more where a kept one turns out to be closed
			x.mu.Lock()
			defer x.mu.Unlock()
			x.step, x.flushing, x.turn = recording.AtConnect, false, nil
			x.sent, x.connected = recording.Maybe[int64]{}, recording.Maybe[int64]{}
		},
		TLSHandshakeStart: func() { x.reach(recording.AtTLS) },
		GotConn: func(info httptrace.GotConnInfo) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.step, x.flushing = recording.AtSend, false
			conn := below(info.Conn)
			if x.long {
				conn.forgoTransmits()
			}
			x.connected = recording.Maybe[int64]{}
			if !info.Reused {
				x.connected = recording.Some(conn.stood)
			}
			secure, isTLS := info.Conn.(*tls.Conn)
			if x.many || isTLS && secure.ConnectionState().NegotiatedProtocol == "h2" {
				x.many = true
				x.turn = conn.join()
				return
			}
			x.turn = conn.begin(isTLS, x.wrote)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			x.mu.Lock()
			x.flushing = info.Err == nil
			left := x.flushing && x.many
			x.mu.Unlock()
			if left { // HTTP/2 reports it when it has been flushed
				x.turn.leave()
				x.reach(recording.AtHeaders)
				x.tellSent()
			}
		},
	}
}

// wrote is told of each write to the connection. net/http reports a request as
// written when it stands in its buffer; the write after that is the last one.
func (x *exchange) wrote() {
	x.mu.Lock()
	last := x.flushing
	x.mu.Unlock()
	if last {
		x.reach(recording.AtHeaders)
		x.tellSent()
	}
}

// allLeft notes of a request without an answer that it has left. Of a long body
// nothing may stand in net/http's buffer when it is reported as written, and then
// no further write tells.
func (x *exchange) allLeft() {
	x.mu.Lock()
	left := x.flushing && x.step == recording.AtSend && !x.turn.writing()
	x.mu.Unlock()
	if left {
		x.reach(recording.AtHeaders)
		x.tellSent()
	}
}

// below finds our connection under net/http's, which may be TLS, and TLS in TLS
// through a proxy.
func below(c net.Conn) *conn {
	for {
		t, ok := c.(*tls.Conn)
		if !ok {
			return c.(*conn) // dial made it
		}
		c = t.NetConn()
	}
}

// shares says that other requests use the connection too: it speaks HTTP/2.
func (x *exchange) shares() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.many
}

func (x *exchange) reach(s recording.Step) {
	x.mu.Lock()
	x.step = s
	x.mu.Unlock()
}

func (x *exchange) reached() recording.Step {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.step
}

// tellSent tells the sink once when the request left. A server may answer
// before net/http reports the write, so it is called from both sides. Of a
// request that was sent anew the result has the last time.
func (x *exchange) tellSent() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.turn == nil || x.sentIn == x.turn {
		return
	}
	x.sentIn, x.sent = x.turn, recording.Some(x.turn.left())
	if x.told {
		return
	}
	x.told = true
	x.sinkErr = x.sink.Sent(x.sent.V, x.connected)
}

func (x *exchange) read(ctx context.Context, resp *http.Response, buf []byte) Result {
	x.reach(recording.AtMidStream)
	if x.sinkErr != nil {
		return x.fail(recording.AtMidStream, x.sinkErr)
	}
	x.mu.Lock()
	x.sent = recording.Some(x.turn.left()) // by the kernel's word, if that came only now
	x.mu.Unlock()
	at := x.turn.takeHead(x.sent.V)
	x.result.FirstByte = recording.Some(x.turn.first())
	if err := x.sink.Head(resp.StatusCode, resp.Header, at); err != nil {
		return x.fail(recording.AtMidStream, err)
	}
	for {
		x.turn.look()
		n, err := resp.Body.Read(buf)
		at = x.turn.take(x.sent.V, n == len(buf))
		if err != nil {
			at.ErrorNs = at.EarlierNs // the end came in the same read, after these bytes
		}
		if n > 0 {
			if serr := x.sink.Data(buf[:n], at); serr != nil {
				return x.fail(recording.AtMidStream, serr)
			}
		}
		if errors.Is(err, io.EOF) {
			r := x.fail("", nil)
			r.End = at.At
			return r
		}
		if err != nil {
			return x.fail(recording.AtMidStream, cause(ctx, err))
		}
	}
}

func (x *exchange) fail(step recording.Step, err error) Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.result
	r.Sent, r.Connected, r.Step, r.Err = x.sent, x.connected, step, err
	r.End = x.clock.Now()
	return r
}

// cause is why the context was cut, if it was, else err.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}
