package wire

// A turn is what one request sees of its connection. net/http may hand the
// connection to the next request as soon as it has read an answer's end, before
// whoever asked has looked at the stamp of its last bytes.
//
// In HTTP/2 many requests share a connection, whose frames a goroutine of
// net/http's sorts out. A stamp is then that of the connection's latest read when
// a body's bytes were handed over: late by what else the connection brought in
// the meantime. What is known of the arrival is that the bytes were not there
// when the body read before this one began, which took all that was: the bound
// goes back to the connection's state at that moment.
type turn struct {
	c       *conn
	reads   int32
	at      int64  // stamp of the last read
	firstAt int64  // stamp of the first read
	lo      int64  // nothing of what was read since the last take arrived before
	fresh   bool   // something was read since the last take
	exact   bool   // by one read, which emptied the queue and has a kernel stamp
	whole   bool   // … and one segment brought all of it
	last    Stamp  // of the last take
	head    bool   // the last take was of a response's head: bytes of the body may share its read
	wrote   int64  // stamp before the last write, or the kernel's of its sending
	owed    bool   // the kernel's is not known yet
	wroteFn func() // called after a write; may be nil

	shared    bool   // one of many on the connection
	from      int32  // reads of the connection before it
	prev, now glance // before the last body read but one, and before the last
	more      bool   // the last one left something
}

// A glance is how far a connection was read at one moment.
type glance struct {
	reads int32
	quiet bool  // all that they brought had been handed on by then
	after int64 // what has not been handed on arrived after this
}

// take is the stamp of what was read since the last take; where nothing was,
// of the read before, which brought it. Nothing of an answer can have arrived
// before its request was sent. More says that there was no room for all of it.
func (t *turn) take(sent int64, more bool) Stamp {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.shared {
		return t.takeShared(sent, more)
	}
	if !t.fresh {
		if !t.head {
			t.last.ErrorNs = t.last.EarlierNs // its read was shared out already
		}
		t.head = false
		return t.last
	}
	t.fresh, t.head = false, false
	t.last = t.bounded(Stamp{At: t.at, Read: t.reads}, sent, t.exact, t.whole)
	return t.last
}

// bounded puts bounds to a stamp: of what ends with its read's last byte, and of
// what ends earlier.
func (t *turn) bounded(s Stamp, sent int64, exact, whole bool) Stamp {
	s.EarlierNs = s.At - min(s.At, max(t.lo, sent))
	s.ErrorNs = s.EarlierNs
	if whole {
		s.EarlierNs = min(s.EarlierNs, t.c.stamps.errorNs)
	}
	if whole || exact {
		s.ErrorNs = min(s.ErrorNs, t.c.stamps.errorNs)
	}
	return s
}

// takeShared is take where others share the connection.
func (t *turn) takeShared(sent int64, more bool) Stamp {
	c := t.c
	if t.firstAt == 0 {
		t.firstAt = c.at
	}
	t.more = more
	t.lo = t.prev.after
	one := t.prev.quiet && c.reads-t.prev.reads == 1
	if one {
		t.lo = c.after
	}
	return t.bounded(Stamp{At: c.at, Read: c.reads - t.from}, sent, one && c.exact, one && c.exact)
}

// look is called before each read of a body.
func (t *turn) look() {
	if !t.shared {
		return
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if !t.more {
		t.prev = t.now
	}
	t.now = t.c.glance()
}

func (c *conn) glance() glance {
	g := glance{c.reads, c.waiting, c.after}
	if g.quiet {
		g.after = c.next
	}
	return g
}

// takeHead is the stamp of a response's head. What the body holds of the same
// read is taken by the next take, and ends later.
func (t *turn) takeHead(sent int64) Stamp {
	at := t.take(sent, false)
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

// leave notes that the request has been written, on a connection with others: the
// last write was its own or one after it.
func (t *turn) leave() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.settle()
	t.wrote = t.c.wroteAt
}

// left is when the request left: by the kernel's time of sending its last byte
// where that is known, else before its last write, or where a server answered
// sooner than that, when it did.
func (t *turn) left() int64 {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.owed && t.c.turn == t {
		t.c.settle()
	}
	if t.shared && t.wrote == 0 { // the answer came before anybody said that the request was written
		t.wrote = t.c.wroteAt
	}
	if t.firstAt != 0 && (t.wrote == 0 || t.firstAt < t.wrote) {
		return t.firstAt
	}
	return t.wrote
}

// writing says that a write to the connection has begun and not ended.
func (t *turn) writing() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.writing
}
