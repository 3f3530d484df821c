package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"fermata/internal/calm"
	"fermata/recording"

	"golang.org/x/sys/unix"
)

func newTestFast(t testing.TB, clock Clock) *Fast {
	t.Helper()
	f, err := newFast(clock, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// A counter is a follower that keeps nothing but numbers.
type counter struct {
	due, sent, heads, pieces, bytes int
	result                          Result
	over                            chan struct{}
}

func (c *counter) Due() error                               { c.due++; return nil }
func (c *counter) Sent(int64, recording.Maybe[int64]) error { c.sent++; return nil }
func (c *counter) Head(int, http.Header, Stamp) error       { c.heads++; return nil }
func (c *counter) Data(b []byte, _ Stamp) error             { c.pieces++; c.bytes += len(b); return nil }
func (c *counter) End(r Result)                             { c.result = r; close(c.over) }

// Events cost no allocation: neither the loop's nor the decoder's.
func TestEventsAllocateNothing(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		const streams, events = 20, 2000
		event := []byte("a\r\ndata: abc\n\r\n1\r\n\n\r\n")
		begin, finish := make(chan struct{}), make(chan struct{})
		var ready sync.WaitGroup
		ready.Add(streams)
		s := play(t, func(_ int, c *playing) {
			if !c.request() {
				return
			}
			c.say(stream)
			for i := range events {
				if i == 100 { // by then every pool is filled
					ready.Done()
					<-begin
				}
				if _, err := c.Write(event); err != nil {
					return
				}
				if i%50 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			<-finish
			c.say(last)
		})
		f := newTestFast(t, NewClock())
		var all []*counter
		for range streams {
			c := &counter{over: make(chan struct{})}
			all = append(all, c)
			f.Start(post("http://"+s.Addr().String(), "q"), c)
		}
		ready.Wait()
		time.Sleep(50 * time.Millisecond)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		close(begin)
		time.Sleep(300 * time.Millisecond)
		runtime.ReadMemStats(&after)
		close(finish)
		got := 0
		for _, c := range all {
			<-c.over
			got += c.bytes
			if c.result.Err != nil || c.bytes != events*len("data: abc\n\n") || c.due != 1 || c.sent != 1 || c.heads != 1 {
				t.Errorf("%+v", c)
			}
		}
		// What else runs in this process allocates now and then: its timers, the blocks
		// of the log while they are not yet as many as a busy machine needs.
		n := after.Mallocs - before.Mallocs
		t.Logf("%d allocations in %d events", n, streams*(events-100))
		if n > streams*(events-100)/100 {
			t.Errorf("%d allocations in %d events", n, streams*(events-100))
		}
	})
}

// A stream that waits costs less than a KiB of this process's memory.
func TestStreamsAreSmall(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		const streams = 2000
		ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}) // the system connects without us
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		f := newTestFast(t, NewClock())
		url := "http://" + ln.Addr().String() + "/v1/chat/completions"
		body := []byte(`{"model": "m"}`)
		header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer key"}}
		shared := &Request{Method: http.MethodPost, URL: url, Header: header, Body: body}
		use := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc + m.StackInuse
		}
		followers := make([]counter, streams)
		calls := make([]Call, streams)
		before := use()
		for i := range calls {
			followers[i].over = make(chan struct{})
			calls[i] = f.Start(shared, &followers[i])
		}
		for f.loops[0].opened.Load() < streams {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // the decoder's turn
		log := f.loops[0].log
		log.mu.Lock()
		blocks := uint64(0) // besides the first
		for b := log.free; b != nil; b = b.next.Load() {
			blocks++
		}
		log.mu.Unlock()
		took := use() - before - streams*96 - blocks*uint64(unsafe.Sizeof(block{})) // the channels are ours
		t.Logf("%d bytes a stream besides %d blocks of the log", took/streams, blocks)
		if took/streams > 1024 {
			t.Errorf("%d bytes a stream", took/streams)
		}
		enough := errors.New("enough")
		for i := range calls {
			calls[i].Cut(enough)
		}
		for i := range followers {
			<-followers[i].over
			if r := followers[i].result; !errors.Is(r.Err, enough) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// A request leaves when it is due, not before; the kernel says when.
func TestDueTimes(t *testing.T) {
	s := play(t, func(_ int, c *playing) {
		for c.request() {
			c.say(stream + chunk("data: a\n\n") + last)
		}
	})
	clock := NewClock()
	f := newTestFast(t, clock)
	var all []*counter
	base := clock.Now() + int64(20*time.Millisecond)
	for _, i := range []int64{5, 3, 4, 0, 2, 1} { // in any order
		c := &counter{over: make(chan struct{})}
		all = append(all, c)
		req := post("http://"+s.Addr().String(), "q")
		req.Due = base + i*int64(3*time.Millisecond)
		f.Start(req, c)
		defer func() {
			if r := c.result; r.Err != nil || r.Sent.V < req.Due {
				t.Errorf("due at %d: %+v", req.Due, r)
			}
		}()
	}
	for _, c := range all {
		<-c.over
	}
}

// What is no part of a load costs a turn for each thing that happens, not one for
// every millisecond.
func TestAsideSleepsUntilSomethingComes(t *testing.T) {
	const quiet = 300 * time.Millisecond
	s := play(t, func(_ int, c *playing) {
		if c.request() {
			time.Sleep(quiet)
			c.say(stream + chunk("data: a\n\n"))
			time.Sleep(quiet)
			c.say(last)
		}
	})
	f := newTestFast(t, NewClock())
	req := post("http://"+s.Addr().String(), "q")
	req.Aside = true
	before := f.loops[0].turns.Load()
	got := &heard{}
	if r := f.Exchange(t.Context(), req, got); r.Err != nil || len(got.data) != 1 {
		t.Fatalf("%v, %d pieces", r.Err, len(got.data))
	}
	if n := f.loops[0].turns.Load() - before; n < 1 || n > 100 { // 600 or more if it swept
		t.Errorf("%d turns", n)
	}
}

// What is not due when the transport is halted leaves no trace; what was goes on.
func TestHalt(t *testing.T) {
	release := make(chan struct{})
	s := play(t, func(_ int, c *playing) {
		if c.request() {
			<-release
			c.say(stream + chunk("data: a\n\n") + last)
		}
	})
	clock := NewClock()
	f := newTestFast(t, clock)
	now, later := &counter{over: make(chan struct{})}, &counter{over: make(chan struct{})}
	f.Start(post("http://"+s.Addr().String(), "q"), now)
	req := post("http://"+s.Addr().String(), "q")
	req.Due = clock.Now() + int64(time.Hour)
	f.Start(req, later)
	f.Halt()
	<-later.over
	if !errors.Is(later.result.Err, ErrWithdrawn) || later.due != 0 {
		t.Errorf("%+v", later)
	}
	close(release)
	<-now.over
	if now.result.Err != nil || now.due != 1 {
		t.Errorf("%+v", now)
	}
	tail := &counter{over: make(chan struct{})}
	f.Start(req, tail)
	if <-tail.over; !errors.Is(tail.result.Err, ErrWithdrawn) {
		t.Errorf("%+v", tail)
	}
}

// Who halts a run and cuts what is left of it leaves no trace of what was not due either,
// though the loop hears of both at once.
func TestHaltAndCut(t *testing.T) {
	f := newTestFast(t, NewClock())
	l := f.loops[0]
	for _, handed := range []bool{true, false} { // before the halt, and after it
		later := &counter{over: make(chan struct{})}
		c := &call{loop: l, follower: later, due: f.clock.Now() + int64(time.Hour), made: f.clock.Now()}
		notes := []note{{what: startCall, call: c}, {what: haltAll}, {what: cutCall, call: c, err: errCutByTest}}
		if !handed {
			notes[0], notes[1] = notes[1], notes[0]
		}
		l.active.Add(1)
		l.mu.Lock()
		l.notes = append(l.notes, notes[:2]...)
		l.mu.Unlock()
		l.post(notes[2])
		if <-later.over; !errors.Is(later.result.Err, ErrWithdrawn) || later.due != 0 {
			t.Errorf("%+v", later)
		}
	}
}

// A follower that has heard enough ends its request, and hears nothing more.
func TestFollowerStops(t *testing.T) {
	s := play(t, func(_ int, c *playing) {
		c.request()
		c.say(stream)
		for c.SetWriteDeadline(time.Now().Add(5*time.Second)) == nil {
			if _, err := io.WriteString(c, chunk("data: a\n\n")); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	f := newTestFast(t, NewClock())
	enough := errors.New("enough")
	got := &heard{fail: enough}
	if r := f.Exchange(t.Context(), post("http://"+s.Addr().String(), "q"), got); !errors.Is(r.Err, enough) || len(got.data) != 1 || r.Step != recording.AtMidStream {
		t.Errorf("%+v, %d pieces", r, len(got.data))
	}
}

// Without a free file descriptor a request never leaves, and says why.
func TestNoDescriptor(t *testing.T) {
	s := play(t, func(_ int, c *playing) { c.request() })
	f := newTestFast(t, NewClock())
	if r := f.Exchange(t.Context(), post("http://"+s.Addr().String(), "q"), &heard{}); r.Step != recording.AtHeaders {
		t.Fatal(r.Step, r.Err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	next, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: was.Max}); err != nil {
		t.Skip(err)
	}
	r := f.Exchange(t.Context(), post("http://"+s.Addr().String(), "q"), &heard{})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	var lack *ErrNoRoom
	if !errors.As(r.Err, &lack) || r.Step != recording.AtConnect || r.Sent.OK {
		t.Errorf("%q at %q, sent %v", r.Err, r.Step, r.Sent)
	}
}

// What is chosen says why.
func TestChoose(t *testing.T) {
	for _, v := range []string{"HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(v, "")
	}
	if !stampsOf(false).receive {
		t.Skip("this system's kernel does not stamp")
	}
	for _, c := range []struct {
		asked string
		o     Options
		urls  []string
		name  string
		why   string // part of
	}{
		{"", Options{}, []string{"http://127.0.0.1:1/v1"}, FastName, "plain HTTP"},
		{"", Options{}, []string{"http://127.0.0.1:1/v1", "https://h/v1"}, CompatibleName, "TLS"},
		{"", Options{UnixSocket: "/s"}, []string{"http://h"}, CompatibleName, "Unix socket"},
		{"", Options{HTTP2: true}, []string{"http://h"}, CompatibleName, "HTTP/2"},
		{"", Options{Proxy: "http://p:1"}, []string{"http://h"}, CompatibleName, "proxy"},
		{"", Options{Proxy: "off"}, []string{"http://h"}, FastName, "plain HTTP"},
		{CompatibleName, Options{}, []string{"http://h"}, CompatibleName, "asked"},
		{FastName, Options{}, []string{"http://h"}, FastName, "asked"},
		{FastName, Options{}, []string{"https://h"}, "", "TLS"},
	} {
		got, err := Choose(c.asked, c.o, c.urls...)
		switch {
		case c.name == "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%+v: %v", c, err)
		case c.name != "" && (err != nil || got.Name != c.name || !strings.Contains(got.Why, c.why)):
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// An exchange that is cut while it waits ends at once.
func TestCutBeforeDue(t *testing.T) {
	clock := NewClock()
	f := newTestFast(t, clock)
	ctx, cut := context.WithCancelCause(t.Context())
	req := post("http://127.0.0.1:9", "q")
	req.Due = clock.Now() + int64(time.Hour)
	time.AfterFunc(20*time.Millisecond, func() { cut(errCutByTest) })
	if r := f.Exchange(ctx, req, &heard{}); !errors.Is(r.Err, errCutByTest) || r.Step != recording.AtConnect || r.Sent.OK {
		t.Errorf("%+v", r)
	}
}

// An audit is a sink that keeps how each event was stamped. Events are "data: x\n\n".
type audit struct {
	at, bound []int64
}

// Sent implements Sink.
func (a *audit) Sent(int64, recording.Maybe[int64]) error { return nil }

// Head implements Sink.
func (a *audit) Head(int, http.Header, Stamp) error { return nil }

// Data implements Sink.
func (a *audit) Data(b []byte, at Stamp) error {
	for events := strings.Count(string(b), "\n\n"); events > 0; events-- {
		bound := at.EarlierNs
		if events == 1 {
			bound = at.ErrorNs
		}
		a.at, a.bound = append(a.at, at.At), append(a.bound, bound)
	}
	return nil
}

// A writing says when an event was written: before and after.
type writing struct{ before, after int64 }

// Bounds hold where several events come between two sweeps, which is where the
// sweeps make them narrow.
func TestBoundsOfBunches(t *testing.T) {
	calm.TryWithin(t, time.Duration(delivery), func(t testing.TB) {
		const streams, events, attempts = 4, 500, 3
		clock := NewClock()
		for range attempts { // a writer that is held up after its write makes a right bound look wrong
			var told [streams][events]writing
			var writers sync.WaitGroup
			writers.Add(streams)
			s := play(t, func(n int, c *playing) {
				if n >= streams || !c.request() {
					return
				}
				defer writers.Done()
				unsent := newUnsent(t, c.TCPConn)
				c.say(stream)
				runtime.LockOSThread() // its sleeps are the system's
				defer runtime.UnlockOSThread()
				piece := []byte(chunk("data: x\n\n"))
				for i := range events {
					told[n][i].before = clock.Now()
					if _, err := c.Write(piece); err != nil {
						return
					}
					unsent.wait()
					told[n][i].after = clock.Now()
					nap(int64(i%7) * 60_000)
				}
				c.say(last)
			})
			f := newTestFast(t, clock)
			var heard [streams]audit
			var readers sync.WaitGroup
			for n := range streams {
				readers.Go(func() {
					if r := f.Exchange(t.Context(), post("http://"+s.Addr().String(), "q"), &heard[n]); r.Err != nil {
						t.Error(r.Err)
					}
				})
				for s.connected() <= n { // connection n is stream n
					time.Sleep(time.Millisecond)
				}
			}
			readers.Wait()
			writers.Wait()
			n, exact, early, outside, width, worst := 0, 0, 0, 0, int64(0), int64(0)
			for k := range heard {
				for i, at := range heard[k].at {
					bound := heard[k].bound[i]
					n, width = n+1, width+bound
					if bound <= leastStampErr {
						exact++
					}
					if at < told[k][i].before {
						early++
					}
					if late := at - bound - told[k][i].after - delivery; late > 0 {
						outside, worst = outside+1, max(worst, late)
					}
				}
			}
			t.Logf("%d events, %d exact, mean bound %d ns: %d stamped too early, %d outside their bound, by %d ns at most", n, exact, width/int64(max(1, n)), early, outside, worst)
			if n != streams*events || early > 0 {
				t.Errorf("%d events of %d, %d stamped before they were sent", n, streams*events, early)
			}
			if outside == 0 {
				return
			}
		}
		t.Errorf("bounds were violated in each of %d attempts", attempts)
	})
}

// unsent looks at what was written to a connection and has not left: the sender's
// congestion window or its pacing may hold it back, which is no fault of a stamp.
type unsent struct{ look func() int }

func newUnsent(t testing.TB, c *net.TCPConn) unsent {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Error(err)
	}
	return unsent{func() (n int) {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD) })
		return n
	}}
}

func (u unsent) wait() {
	for u.look() > 0 {
		nap(20_000)
	}
}

func (p *player) connected() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
