package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"

	"fermata/recording"
)

// newCanary is a canary whose events are the answer to a request that one of the
// loops carries out as any other; nil where there is no loopback.
func (f *Fast) newCanary() *canary {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil
	}
	c := &canary{stop: make(chan struct{})}
	c.both.Go(func() { c.answer(f.clock, ln) })
	e := &ear{heard: &f.meter.canary, over: make(chan struct{})}
	f.Start(&Request{Method: http.MethodGet, URL: "http://" + ln.Addr().String() + "/", Aside: true}, e)
	c.both.Go(func() {
		<-e.over
		ln.Close()
	})
	return c
}

// answer sings to whoever asks first.
func (c *canary) answer(clock Clock, ln net.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); err == nil {
		c.sing(clock, chunks{conn})
	}
}

// chunks frame what is written to them for chunked transfer coding.
type chunks struct{ to io.Writer }

func (c chunks) Write(b []byte) (int, error) {
	if _, err := c.to.Write(fmt.Appendf(nil, "%x\r\n%s\r\n", len(b), b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// An ear is the follower of a canary's song.
type ear struct {
	heard *recording.LiveHistogram
	part  []byte // of an event
	over  chan struct{}
}

func (e *ear) Due() error                               { return nil }
func (e *ear) Sent(int64, recording.Maybe[int64]) error { return nil }
func (e *ear) Head(int, http.Header, Stamp) error       { return nil }
func (e *ear) End(Result)                               { close(e.over) }

func (e *ear) Data(b []byte, at Stamp) error {
	all := append(e.part, b...)
	for ; len(all) >= 8; all = all[8:] {
		e.heard.Add(at.At - int64(binary.LittleEndian.Uint64(all)))
	}
	e.part = append(e.part[:0], all...)
	return nil
}
