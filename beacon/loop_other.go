//go:build !linux

package beacon

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"
)

// A conn is one connection, with a goroutine of its own.
type conn struct {
	net.Conn
	ready chan struct{} // its stream's times are settled
}

// serve runs until ctx ends. asked gets a channel for each report that is wanted.
// The runtime's timers end it a millisecond late now and then: such a beacon holds
// fewer streams than Linux's, and says so by its lateness.
func serve(ctx context.Context, ln *net.TCPListener, asked chan chan Report) error {
	l := &ledger{}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() {
		for {
			select {
			case answer := <-asked:
				answer <- l.report()
			case <-time.After(time.Second):
				wake(l.overdue())
			case <-ctx.Done():
				ln.Close()
				return
			}
		}
	})
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		running.Go(func() {
			defer context.AfterFunc(ctx, func() { c.Close() })()
			defer c.Close()
			l.answer(ctx, &conn{Conn: c, ready: make(chan struct{}, 1)})
		})
	}
}

func wake(all []*stream) {
	for _, s := range all {
		s.conn.ready <- struct{}{}
	}
}

// answer takes the requests of a connection one by one.
func (l *ledger) answer(ctx context.Context, c *conn) {
	l.count(1)
	defer l.count(-1)
	var in []byte
	buf := make([]byte, 64<<10)
	for {
		a, n, err := parseRequest(in)
		if err != nil {
			return
		}
		if n == 0 {
			got, err := c.Read(buf)
			if err != nil {
				return
			}
			in = append(in, buf[:got]...)
			continue
		}
		received := wall()
		p, err := parsePlan(a.query)
		switch {
		case !a.streams():
			_, err = c.Write(a.page())
		case err != nil:
			_, err = c.Write(response("400 Bad Request", `{"error":{"message":`+strconv.Quote(err.Error())+`}}`))
		default:
			if _, err = c.Write(append(strconv.AppendInt([]byte(head), received, 10), "\r\n\r\n"...)); err == nil {
				s, ready := l.begin(c, &a, p, received)
				wake(ready)
				err = l.play(ctx, s)
			}
		}
		if err != nil {
			return
		}
		in = in[n:]
	}
}

func (l *ledger) play(ctx context.Context, s *stream) error {
	select {
	case <-s.conn.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	var out []byte
	for {
		time.Sleep(time.Duration(s.next - wall()))
		now := wall()
		out = s.write(out[:0], now)
		if _, err := s.conn.Write(out); err != nil {
			return err
		}
		l.mu.Lock()
		s.wrote(now, wall())
		l.mu.Unlock()
		if s.left == 0 {
			time.Sleep(s.plan.Tail)
			_, err := s.conn.Write(s.end())
			return err
		}
	}
}

func (l *ledger) count(n int) {
	l.mu.Lock()
	l.conns += n
	l.mu.Unlock()
}

func wall() int64 { return time.Now().UnixNano() }

func processCPU() int64 { return 0 }
