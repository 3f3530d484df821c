package wire

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// writePiece bounds a single write, so that the stamp taken before the last
// piece of a long prompt is close to when its last byte left.
const writePiece = 16 << 10

// A receipt is what one read of a socket brought.
type receipt struct {
	n        int
	after    int64 // on the clock: the bytes arrived after this, when the queue was last seen empty
	next     int64 // … and those of later reads after this
	kernelNs int64 // wall clock, Unix ns: when the kernel received the newest segment; 0 if it does not say
	drained  bool  // the kernel says that nothing was left in the queue …
	left     bool  // … or that something was
	single   bool  // the kernel says that one segment brought all of it, and nothing was left
}

// A conn is a connection that stamps what it reads and writes. Where the kernel
// says when it received the last byte of a read, that is its stamp; elsewhere it
// is the time at which the read returned. What is known of the true arrival: if
// the kernel's stamp belongs to the last byte that was read, it is exact for what
// ends there, and if one segment brought all of the read, for all of it. For
// anything else the queue was empty when the reader last looked: the bound goes
// back to then.
type conn struct {
	net.Conn
	raw    syscall.RawConn
	clock  Clock
	stamps stamps
	meter  *meter
	stood  int64 // when the connection stood

	mu      sync.Mutex // after a body's end net/http's own goroutine reads ahead
	at      int64      // stamp of the last read
	after   int64      // what it brought arrived after this …
	next    int64      // … and what comes later after this
	reads   int32      // so far
	exact   bool       // all of the last read arrived at its stamp
	waiting bool       // somebody reads: what came before has been handed on
	wroteAt int64      // stamp before the last write, or the kernel's of its sending
	owed    bool       // the kernel has not said yet when it sent the last write
	writing bool       // a write has begun and not ended
	turn    *turn      // of the request that has the connection

	tls     bool    // TLS lies above
	records records // of TLS, if any

	reader reader // the system's way of reading, with a look at the empty queue
	writer writer
}

func newConn(c net.Conn, clock Clock, known stamps, m *meter) (*conn, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("wire: %T gives no access to its socket", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("wire: reach the socket: %w", err)
	}
	n := &conn{Conn: c, raw: raw, clock: clock, stood: clock.Now(), meter: m}
	if _, tcp := c.(*net.TCPConn); tcp && known.receive { // of other sockets the kernel stamps nothing
		var refused error
		if err := raw.Control(func(fd uintptr) { refused = askForStamps(int(fd), known.transmit) }); err == nil && refused == nil {
			n.stamps = known
		}
	}
	n.reader.init(n)
	n.writer.init(n)
	n.after, n.next = n.stood, n.stood
	n.turn = &turn{c: n} // a TLS handshake's, until the first request
	return n, nil
}

// begin gives the connection to a new request, whose writes after is told of.
func (c *conn) begin(tls bool, after func()) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tls = tls
	c.turn = &turn{c: c, at: c.at, last: Stamp{At: c.at}, wroteFn: after}
	return c.turn
}

// longBody is the most that is taken to fit into a socket's buffer.
const longBody = 32 << 10

// forgoTransmits has the kernel tell no times of sending any more. It tells them
// through the error queue, and the runtime takes a socket that has something
// there, and room for nothing else, for broken.
func (c *conn) forgoTransmits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamps.transmit {
		c.stamps.transmit = false
		_ = c.raw.Control(func(fd uintptr) { _ = askForStamps(int(fd), false) })
	}
}

// join makes a new request one of many on the connection, as HTTP/2 has them.
func (c *conn) join() *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &turn{c: c, shared: true, from: c.reads, prev: c.glance(), now: c.glance()}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	c.waiting = true
	c.mu.Unlock()
	got, err := c.reader.read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if got.n <= 0 {
		return got.n, err
	}
	at, kernel := c.stamp(got)
	alone := c.records.feed(b[:got.n]) || !c.tls
	if at < c.at { // never backwards, though a user-time stamp may have been late
		at, kernel = c.at, false
	}
	c.at, c.after, c.next, c.exact = at, got.after, got.next, kernel && got.single
	c.reads++
	t := c.turn
	t.at = at
	t.reads++
	if t.firstAt == 0 {
		t.firstAt = at
	}
	t.exact = kernel && alone && got.drained && !t.fresh
	t.whole = c.exact && !t.fresh
	if !t.fresh {
		t.lo, t.fresh = got.after, true
	}
	return got.n, err
}

// stamp is when a read's last byte arrived: by the kernel if it says so and what
// it says is possible, else now.
func (c *conn) stamp(got receipt) (at int64, kernel bool) {
	now, together := c.clock.both()
	at = c.clock.At(now)
	if got.kernelNs != 0 && together {
		// Both clocks are read at the stamp, so that a clock that is being adjusted
		// matters only for as long as the bytes waited. If the wall clock was set in
		// between, what the kernel says is not possible.
		received := at - (now.UnixNano() - got.kernelNs)
		if kernel = received <= at && received >= got.after-mostWait; kernel {
			c.meter.read(got, at-received, true)
			return received, true
		}
	}
	c.meter.read(got, 0, false)
	return at, false
}

// mostWait is how much earlier than the last look at an empty queue a kernel's
// stamp may seem to be, by the two clocks' reading.
const mostWait = int64(time.Millisecond)

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	done := 0
	for {
		piece := b[done:min(len(b), done+writePiece)]
		before := c.clock.Now()
		c.mu.Lock()
		c.wroteAt, c.owed, c.writing = before, false, true
		c.turn.wrote, c.turn.owed = before, false
		after := c.turn.wroteFn
		c.mu.Unlock()
		n, err := c.Conn.Write(piece)
		done += n
		c.mu.Lock()
		c.writing = false
		c.writer.wrote(n)
		if err == nil && done == len(b) && c.stamps.transmit {
			c.owed, c.turn.owed = true, true
			c.settle()
		}
		c.mu.Unlock()
		switch {
		case err != nil:
			return done, err
		case done == len(b):
			if after != nil {
				after()
			}
			return done, nil
		}
	}
}

// settle asks when the last write was sent, if that is not known. The kernel
// tells before the write returns where nothing holds the bytes up.
func (c *conn) settle() {
	if !c.owed {
		return
	}
	wallNs, ok := c.writer.sent()
	if !ok {
		return
	}
	now, together := c.clock.both()
	at := c.clock.At(now)
	sent := at - (now.UnixNano() - wallNs)
	c.owed = false
	if !together || sent < c.wroteAt || sent > at { // the wall clock was set in between
		c.turn.owed = false
		return
	}
	c.wroteAt = sent
	if c.turn.owed {
		c.turn.wrote, c.turn.owed = sent, false
	}
}
