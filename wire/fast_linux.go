package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fermata/recording"

	"golang.org/x/sys/unix"
)

// lead is how long before they are due the loops want requests: enough that
// whoever hands them over may be late, too little to matter when the run stops.
const lead = 50 * time.Millisecond

// Fast is the transport of our own: HTTP/1.1 over plain TCP. Each of its event
// loops takes a thread to itself, on which it waits for due times, connects, sends,
// receives and undoes chunks; what it received goes into a log, and a decoder
// beside it tells the followers.
type Fast struct {
	clock  Clock
	stamps stamps
	meter  meter
	loops  []*loop
	canary *canary
	procs  int // GOMAXPROCS before

	mu     sync.Mutex
	places map[string]*place
	drafts sync.Pool // of heads
}

// newFast is a Fast with so many loops; 0 means one for every two cores, as
// finding the meaning takes about as long as receiving.
func newFast(clock Clock, loops int) (*Fast, error) {
	if loops <= 0 {
		loops = max(1, runtime.NumCPU()/2)
	}
	f := &Fast{clock: clock, stamps: stampsOf(false), places: map[string]*place{}}
	f.drafts.New = func() any { return new([]byte) }
	for range loops {
		l, err := newLoop(clock, f.stamps, &f.meter)
		if err != nil {
			for _, l := range f.loops {
				l.shut()
			}
			return nil, err
		}
		f.loops = append(f.loops, l)
	}
	// A loop never gives its place among the running back, so it gets one on top.
	f.procs = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(f.procs + loops)
	warmThreads(f.procs + 2*loops + 2)
	for _, l := range f.loops {
		l.start()
	}
	if !f.stamps.receive {
		f.canary = f.newCanary()
	}
	return f, nil
}

// Vitals implements Monitored.
func (f *Fast) Vitals() Vitals {
	v := f.meter.take(f.stamps)
	var longest int64
	for _, l := range f.loops {
		longest = max(longest, l.longest.Swap(0))
	}
	v.Turn = recording.Some(longest)
	return v
}

// Timed implements Looped.
func (f *Fast) Timed() (ns int64) {
	for _, l := range f.loops {
		ns += l.seat.timed.Load()
	}
	return ns
}

// Lead implements Transport.
func (f *Fast) Lead() time.Duration { return lead }

// Halt implements Transport.
func (f *Fast) Halt() {
	for _, l := range f.loops {
		l.post(note{what: haltAll})
	}
}

// Close implements Transport.
func (f *Fast) Close() {
	f.canary.Close()
	for _, l := range f.loops {
		l.close()
	}
	if f.procs > 0 {
		runtime.GOMAXPROCS(f.procs)
		f.procs = 0
	}
}

// A place is where requests go: one URL, looked up once.
type place struct {
	uri, host string
	peer      *peer
}

// A peer is a server's address, whose connections are shared by all URLs there.
type peer struct {
	name  string
	addrs []address
}

// An address is as the kernel takes it.
type address struct {
	family int
	raw    [unix.SizeofSockaddrInet6]byte
	size   int
	net    *net.TCPAddr // for errors
}

// Start implements Transport.
func (f *Fast) Start(req *Request, follower Follower) Call {
	c := &call{follower: follower, due: req.Due, body: req.Body, aside: req.Aside, made: f.clock.Now()}
	l := f.quietest()
	c.loop = l
	to, err := f.place(req.URL)
	if err == nil {
		c.to = to.peer
		c.head, err = f.headOf(req, to)
		c.length = len(c.head) + len(c.body)
	}
	c.result.Err = err
	l.active.Add(1)
	l.post(note{what: startCall, call: c})
	return c
}

// headOf is a request's head, no longer than it must be: many wait at once.
func (f *Fast) headOf(req *Request, to *place) ([]byte, error) {
	draft := f.drafts.Get().(*[]byte)
	defer f.drafts.Put(draft)
	var err error
	*draft, err = appendHead((*draft)[:0], req, to.uri, to.host)
	return bytes.Clone(*draft), err
}

// quietest is the loop with the fewest requests under way, so that as few
// connections as possible are opened: each loop keeps its own.
func (f *Fast) quietest() *loop {
	best := f.loops[0]
	for _, l := range f.loops[1:] {
		if l.active.Load() < best.active.Load() {
			best = l
		}
	}
	return best
}

// place looks a URL up. Names are resolved once: a run asks the same server.
func (f *Fast) place(text string) (*place, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.places[text]; p != nil {
		return p, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.Hostname() == "" {
		return nil, fmt.Errorf("the fast transport speaks plain http:// only, not to %s", u.Redacted())
	}
	p := &place{uri: u.RequestURI(), host: u.Host}
	key := "peer " + u.Host
	if known := f.places[key]; known != nil {
		p.peer = known.peer
	} else {
		if p.peer, err = lookUp(u); err != nil {
			return nil, err
		}
		f.places[key] = p
	}
	f.places[text] = p
	return p, nil
}

func lookUp(u *url.URL) (*peer, error) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	port := u.Port()
	if port == "" {
		port = "80"
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	p := &peer{name: net.JoinHostPort(u.Hostname(), strconv.Itoa(number))}
	for _, ip := range ips {
		p.addrs = append(p.addrs, newAddress(netip.AddrPortFrom(ip, uint16(number))))
	}
	return p, nil
}

func newAddress(at netip.AddrPort) address {
	a := address{net: net.TCPAddrFromAddrPort(at)}
	ip := at.Addr()
	native, port := a.raw[:], at.Port()
	a.raw[2], a.raw[3] = byte(port>>8), byte(port)
	if ip.Is4() || ip.Is4In6() {
		v4 := ip.Unmap().As4()
		a.family, a.size = unix.AF_INET, unix.SizeofSockaddrInet4
		copy(native[4:], v4[:])
	} else {
		v6 := ip.As16()
		a.family, a.size = unix.AF_INET6, unix.SizeofSockaddrInet6
		copy(native[8:], v6[:])
		zone := uint32(0)
		if ip.Zone() != "" {
			if i, err := net.InterfaceByName(ip.Zone()); err == nil {
				zone = uint32(i.Index)
			}
		}
		putNative32(native[24:], zone)
	}
	putNative16(native, uint16(a.family))
	return a
}

// Exchange implements Transport.
func (f *Fast) Exchange(ctx context.Context, req *Request, sink Sink) Result {
	w := &waiter{Sink: sink, done: make(chan Result, 1)}
	c := f.Start(req, w)
	stop := context.AfterFunc(ctx, func() { c.Cut(context.Cause(ctx)) })
	defer stop()
	return <-w.done
}

// A waiter is the follower of whoever waits for the end.
type waiter struct {
	Sink
	done chan Result
}

func (w *waiter) Due() error   { return nil }
func (w *waiter) End(r Result) { w.done <- r }

// A call is one request under way. Its loop has it until the log says that it has
// ended; then the decoder has. Many wait at once, so that small fields stand together.
type call struct {
	loop     *loop
	follower Follower
	to       *peer
	head     []byte // both nil once they cannot be wanted again
	body     []byte
	due      int64 // at once if past
	made     int64
	length   int // of head and body
	aside    bool
	cut      atomic.Bool

	// The loop's.
	state  callState
	told   bool // when it was sent is known …
	said   bool // … and logged
	again  bool // sent anew, since a kept connection was dead
	atHead bool // the decoder's: wrong is of the head
	slot   uint32
	place  int32 // in the heap of due times
	heads  int32 // bytes of interim ones
	reads  int32
	frame  head
	chunks chunked
	link   *link
	wrote  int   // bytes of head and body
	last   int64 // before the last write
	part   []byte
	result Result // its Err, before it begins: why it cannot even be written down; later: why the server stopped listening

	// The decoder's.
	wrong error // what its follower said, or a head that none could read
}

type callState uint8

const (
	waiting    callState = iota // for its due time
	connecting                  // for its connection
	sending
	hearing // for the head
	bodied  // has its head
	ended
)

// Cut implements Call.
func (c *call) Cut(cause error) {
	if c.cut.CompareAndSwap(false, true) {
		c.loop.post(note{what: cutCall, call: c, err: cause})
	}
}

// step is how far it came.
func (c *call) step() recording.Step {
	switch c.state {
	case waiting, connecting:
		return recording.AtConnect
	case sending:
		return recording.AtSend
	case hearing:
		return recording.AtHeaders
	}
	return recording.AtMidStream
}

var errTooManyHeads = errors.New("too many interim responses")
