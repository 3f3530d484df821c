package wire

import (
	"fmt"
	"net"
	"sync"
	"syscall"
)

// writePiece bounds a single write, so that the stamp taken before the last
// piece of a long prompt is close to when its last byte left.
const writePiece = 16 << 10

// A conn is a TCP connection that stamps what it reads and writes. A read is
// stamped when it returns. What is known of the true arrival is that the
// queue was empty when the reader last looked: the bound goes back to then.
type conn struct {
	net.Conn
	raw   syscall.RawConn
	clock Clock
	stood int64 // when the connection stood

	mu      sync.Mutex // after a body's end net/http's own goroutine reads ahead
	reads   int32      // since the request was sent
	at      int64      // stamp of the last read
	firstAt int64      // stamp of the first read since the request was sent
	lo      int64      // nothing of what was read since the last take arrived before
	fresh   bool       // something was read since the last take
	width   int64      // bound of the last take
	wrote   int64      // stamp before the last write
	after   func()     // called after a write; nil before the first request

	reader reader // the system's way of reading, with a look at the empty queue
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
	n.reader.init(n)
	return n, nil
}

// arm starts the count of reads for a new request, whose writes after is told of.
func (c *conn) arm(after func()) {
	c.mu.Lock()
	c.reads, c.firstAt, c.fresh, c.after = 0, 0, false, after
	c.mu.Unlock()
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, lo, err := c.reader.read(b)
	if n <= 0 {
		return n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.clock.Now()
	c.reads++
	if c.firstAt == 0 {
		c.firstAt = c.at
	}
	if !c.fresh {
		c.lo, c.fresh = lo, true
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	done := 0
	for {
		piece := b[done:min(len(b), done+writePiece)]
		c.mu.Lock()
		c.wrote = c.clock.Now()
		after := c.after
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
func (c *conn) take(sent int64) Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fresh {
		c.width = c.at - min(c.at, max(c.lo, sent))
		c.fresh = false
	}
	return Stamp{At: c.at, ErrorNs: c.width, Read: c.reads}
}

func (c *conn) first() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.firstAt
}

// left is when the request left: before its last write, or where a server
// answered sooner than that, when it did.
func (c *conn) left() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.firstAt != 0 {
		return min(c.wrote, c.firstAt)
	}
	return c.wrote
}
