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
	kernelNs int64 // wall clock, Unix ns: when the kernel received the newest segment; 0 if it does not say
	drained  bool  // the kernel says that nothing was left in the queue
}

// A conn is a TCP connection that stamps what it reads and writes. Where the
// kernel says when it received the last byte of a read, that is its stamp;
// elsewhere it is the time at which the read returned. Two things are known of
// the true arrival. If the kernel's stamp belongs to the last byte that was
// read, it is exact for what ends there. For anything else the queue was empty
// when the reader last looked: the bound goes back to then.
type conn struct {
	net.Conn
	raw   syscall.RawConn
	clock Clock
	stood int64 // when the connection stood

	mu   sync.Mutex // after a body's end net/http's own goroutine reads ahead
	at   int64      // stamp of the last read
	turn *turn      // of the request that has the connection

	tls     bool    // TLS lies above
	records records // of TLS, if any

	reader reader // the system's way of reading, with a look at the empty queue
}

// A turn is what one request sees of its connection. net/http may hand the
// connection to the next request as soon as it has read an answer's end, before
// whoever asked has looked at the stamp of its last bytes.
type turn struct {
	c       *conn
	reads   int32
	at      int64  // stamp of the last read
	firstAt int64  // stamp of the first read
	lo      int64  // nothing of what was read since the last take arrived before
	fresh   bool   // something was read since the last take
	exact   bool   // by one read, which emptied the queue and has a kernel stamp
	last    Stamp  // of the last take
	head    bool   // the last take was of a response's head: bytes of the body may share its read
	wrote   int64  // stamp before the last write
	after   func() // called after a write; may be nil
}

func newConn(c net.Conn, clock Clock) (net.Conn, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("wire: %T gives no access to its socket", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("wire: reach the socket: %w", err)
	}
	n := &conn{Conn: c, raw: raw, clock: clock, stood: clock.Now()}
	n.turn = &turn{c: n} // a TLS handshake's, until the first request
	n.reader.init(n)
	return n, nil
}

// begin gives the connection to a new request, whose writes after is told of.
func (c *conn) begin(tls bool, after func()) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tls = tls
	c.turn = &turn{c: c, at: c.at, last: Stamp{At: c.at}, after: after}
	return c.turn
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	got, err := c.reader.read(b)
	if got.n <= 0 {
		return got.n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, kernel := c.stamp(got)
	alone := c.records.feed(b[:got.n]) || !c.tls
	if at < c.at { // never backwards, though a user-time stamp may have been late
		at, kernel = c.at, false
	}
	c.at = at
	t := c.turn
	t.at = at
	t.reads++
	if t.firstAt == 0 {
		t.firstAt = at
	}
	t.exact = kernel && alone && got.drained && !t.fresh
	if !t.fresh {
		t.lo, t.fresh = got.after, true
	}
	return got.n, err
}

// stamp is when a read's last byte arrived: by the kernel if it says so and what
// it says is possible, else now.
func (c *conn) stamp(got receipt) (at int64, kernel bool) {
	now := time.Now()
	at = c.clock.At(now)
	if got.kernelNs == 0 {
		return at, false
	}
	// Both clocks are read together, so that a clock that is being adjusted
	// matters only for as long as the bytes waited.
	received := at - (now.UnixNano() - got.kernelNs)
	if received > at || received < got.after-mostWait {
		return at, false // the wall clock was set in between
	}
	return received, true
}

// mostWait is how much earlier than the last look at an empty queue a kernel's
// stamp may seem to be, by the two clocks' reading.
const mostWait = int64(time.Millisecond)

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	done := 0
	for {
		piece := b[done:min(len(b), done+writePiece)]
		c.mu.Lock()
		c.turn.wrote = c.clock.Now()
		after := c.turn.after
		c.mu.Unlock()
		n, err := c.Conn.Write(piece)
		done += n
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

// take is the stamp of what was read since the last take; where nothing was,
// of the read before, which brought it. Nothing of an answer can have arrived
// before its request was sent.
func (t *turn) take(sent int64) Stamp {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if !t.fresh {
		if !t.head {
			t.last.ErrorNs = t.last.EarlierNs // its read was shared out already
		}
		t.head = false
		return t.last
	}
	t.fresh, t.head = false, false
	t.last = Stamp{At: t.at, Read: t.reads, EarlierNs: t.at - min(t.at, max(t.lo, sent))}
	t.last.ErrorNs = t.last.EarlierNs
	if bound, ok := kernelStamps(); ok && t.exact {
		t.last.ErrorNs = min(t.last.EarlierNs, bound)
	}
	return t.last
}

// takeHead is the stamp of a response's head. What the body holds of the same
// read is taken by the next take, and ends later.
func (t *turn) takeHead(sent int64) Stamp {
	at := t.take(sent)
	t.c.mu.Lock()
	t.head = true
	t.c.mu.Unlock()
	return at
}

func (t *turn) first() int64 {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.firstAt
}

// left is when the request left: before its last write, or where a server
// answered sooner than that, when it did.
func (t *turn) left() int64 {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.firstAt != 0 && (t.wrote == 0 || t.firstAt < t.wrote) {
		return t.firstAt
	}
	return t.wrote
}
