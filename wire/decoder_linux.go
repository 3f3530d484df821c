package wire

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"
	"unsafe"

	"fermata/recording"

	"golang.org/x/sys/unix"
)

// A decoder tells the followers of a loop's calls what the loop has logged, in the
// log's order, on a goroutine of its own. What the bytes mean is found there, off
// the timed path.
type decoder struct {
	loop  *loop
	slots slots
	bell  int // rung by the loop without the runtime, which would queue the decoder behind it
	heads heads
	over  atomic.Bool // the loop logs nothing more
	done  chan struct{}
}

func newDecoder(l *loop) *decoder {
	return &decoder{loop: l, done: make(chan struct{})}
}

// wake has it look at the log. It never waits.
func (d *decoder) wake() {
	one := [8]byte{1}
	unix.RawSyscall(unix.SYS_WRITE, uintptr(d.bell), uintptr(unsafe.Pointer(&one)), uintptr(len(one)))
}

func (d *decoder) run() {
	defer close(d.done)
	var rings [8]byte
	for over := false; !over; {
		_, _ = unix.Read(d.bell, rings[:]) // an early return is followed by a look
		over = d.over.Load()
		d.loop.log.each(d.take)
	}
}

// take tells one entry of the log.
func (d *decoder) take(e *entry, b *block) {
	c := d.slots.at(e.slot)
	if e.kind == wasEnd {
		d.slots.free(e.slot)
		c.tellEnd()
		return
	}
	if c.wrong != nil {
		return // nobody wants to hear the rest
	}
	var err error
	switch e.kind {
	case wasDue:
		err = c.follower.Due()
	case wasSent:
		err = c.follower.Sent(e.stamp.At, e.connected())
	case wasRead:
		err = c.tellRead(e, b, &d.heads)
	}
	if err != nil {
		c.wrong = err
		c.Cut(err)
	}
}

// connected is when a call's connection was made, if it was made for it.
func (e *entry) connected() recording.Maybe[int64] {
	return recording.Maybe[int64]{V: e.stamp.EarlierNs, OK: e.fresh}
}

func (c *call) tellRead(e *entry, b *block, known *heads) error {
	if e.head > 0 || e.apart {
		text := b.bytes[e.at : e.at+e.head]
		if e.apart {
			text = c.part
		}
		h, err := known.headers(text)
		if err != nil {
			c.atHead = true
			return err
		}
		at := e.stamp
		at.ErrorNs = at.EarlierNs
		if err := c.follower.Head(int(c.frame.status), h, at); err != nil {
			return err
		}
	}
	if e.data == 0 {
		return nil
	}
	return c.follower.Data(b.bytes[e.from:e.from+e.data], e.stamp)
}

// A heads reads one head after the other into the same fields. Those that come together
// are alike as a rule, and are read once.
type heads struct {
	text   []byte // of the last one; empty if it was wrong
	fields http.Header
}

// headers are the fields of a whole head, until the next one is read.
func (k *heads) headers(text []byte) (http.Header, error) {
	if len(k.text) > 0 && bytes.Equal(k.text, text) {
		return k.fields, nil
	}
	if k.fields == nil {
		k.fields = http.Header{}
	}
	clear(k.fields)
	k.text = k.text[:0]
	if err := readFields(k.fields, text); err != nil {
		return nil, err
	}
	k.text = append(k.text, text...)
	return k.fields, nil
}

// tellEnd tells the result. What its follower, or a bad head, found wrong comes
// before what the loop made of the rest.
func (c *call) tellEnd() {
	r := c.result
	if c.wrong != nil {
		r.Err, r.Step = c.wrong, recording.AtMidStream
		if c.atHead {
			r.Step = recording.AtHeaders
		}
	}
	c.follower.End(r)
}

// slots are the numbers by which a log without pointers names calls.
type slots struct {
	mu     sync.Mutex
	calls  []*call
	vacant []uint32
}

func (s *slots) take(c *call) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.vacant); n > 0 {
		i := s.vacant[n-1]
		s.vacant = s.vacant[:n-1]
		s.calls[i] = c
		return i
	}
	s.calls = append(s.calls, c)
	return uint32(len(s.calls) - 1)
}

func (s *slots) at(i uint32) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[i]
}

func (s *slots) free(i uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[i] = nil
	s.vacant = append(s.vacant, i)
}
