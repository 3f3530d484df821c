package wire

import (
	"io"
	"net"
	"testing"
	"time"
)

// net/http gives a connection on as soon as it has read an answer's end. The
// stamp of the last bytes is still that of the request that they answered.
func TestStampOutlivesTheTurn(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	outer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	clock := NewClock()
	c, err := newConn(outer, clock, stampsOf(false), &meter{})
	if err != nil {
		t.Fatal(err)
	}
	one := c
	hear := func(text string) (sent int64) {
		t.Helper()
		time.Sleep(5 * time.Millisecond)
		sent = clock.Now()
		if _, err := io.WriteString(peer, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
		return sent
	}
	first := one.begin(false, nil)
	hear("a")
	first.take(0, false)
	sent := hear("b")
	second := one.begin(false, nil) // before the first has looked
	if at := first.take(0, false); at.Read != 2 || at.At < sent {
		t.Errorf("the last stamp is %+v, sent at %d: it was the one before", at, sent)
	}
	if at := second.take(0, false); at.Read != 0 || second.first() != 0 {
		t.Errorf("the second request begins with read %d", at.Read)
	}
	sent = hear("c")
	if at := second.take(0, false); at.Read != 1 || at.At < sent || second.first() != at.At {
		t.Errorf("the second request's first stamp is %+v, sent at %d", at, sent)
	}
	if at := first.take(0, false); at.Read != 2 {
		t.Errorf("the first request's last read is %d", at.Read)
	}
}

// On a shared connection bytes may come in between a body's read and the look at
// their stamp, be handed over, and wait for the next body read while others'
// bytes come: their bound must not begin after they came.
func TestSharedTurn(t *testing.T) {
	c := &conn{stamps: stamps{receive: true, errorNs: 50}}
	now := int64(1000)
	arrive := func() (at int64) { // a read of one segment, whose frames are handed over at once
		at = now
		c.at, c.after, c.next, c.exact, c.reads, c.waiting = at, at-90, at+5, true, c.reads+1, true
		now += 1000
		return at
	}
	covers := func(what string, s Stamp, at int64) {
		t.Helper()
		if at > s.At || at < s.At-s.ErrorNs || s.ErrorNs > s.EarlierNs {
			t.Errorf("%s arrived at %d, outside of [%d, %d]", what, at, s.At-s.ErrorNs, s.At)
		}
	}
	c.next, c.waiting = 10, true
	one := c.join()

	one.look()
	first := arrive()
	if s := one.take(0, false); s.ErrorNs != 50 {
		t.Errorf("alone since the request: %+v is not exact", s)
	} else {
		covers("the first", s, first)
	}

	one.look()
	second := arrive()
	third := arrive() // the body read has returned with the second, nobody has looked yet
	covers("the second", one.take(0, false), second)

	one.look()
	arrive() // another stream's
	covers("the third", one.take(0, false), third)

	one.look()
	fourth := arrive()
	covers("the fourth", one.take(0, true), fourth) // there was no room for all of it
	one.look()
	arrive()
	covers("the rest of the fourth", one.take(0, false), fourth)
}
