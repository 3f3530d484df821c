package wire

import (
	"net"
	"sync"
	"time"
)

const (
	probes        = 200
	leastStampErr = 50_000    // ns: what a stamp's error is never said to be less than
	mostStampErr  = 2_000_000 // ns: a stamp further off than this is not to be trusted
)

// kernelStamps says whether this system's kernel stamps can be trusted, and how
// late they may be, in ns. It is found out once, on a loopback pair that stays
// open: the kernel starts stamping for the first socket on the host that asks,
// a moment later, and stops with the last.
var kernelStamps = sync.OnceValues(func() (errorNs int64, ok bool) {
	a, b, err := loopback()
	if err != nil {
		return 0, false
	}
	errorNs, ok = probeStamps(a, b)
	if !ok {
		a.Close()
		b.Close()
	}
	return errorNs, ok
})

// loopback is a connected pair of sockets.
func loopback() (a, b *net.TCPConn, err error) {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if a, err = net.DialTCP("tcp", nil, ln.Addr().(*net.TCPAddr)); err != nil {
		return nil, nil, err
	}
	if b, err = ln.AcceptTCP(); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// probeStamps sends bytes through the pair and compares the kernel's stamp of
// their arrival with the time of their sending.
func probeStamps(a, b *net.TCPConn) (errorNs int64, ok bool) {
	raw, err := b.SyscallConn()
	if err != nil {
		return 0, false
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { asked = askForStamps(int(fd)) }); err != nil || asked != nil {
		return 0, false
	}
	c := &conn{Conn: b, raw: raw, clock: NewClock()}
	c.reader.c, c.reader.look = c, c.reader.try
	c.reader.header.Iov, c.reader.header.Iovlen = &c.reader.vector, 1
	if a.SetDeadline(time.Now().Add(time.Second)) != nil || b.SetDeadline(time.Now().Add(time.Second)) != nil {
		return 0, false
	}
	buf := make([]byte, 64)
	good := 0
	for i := 0; i < probes; i++ {
		before := time.Now()
		if _, err := a.Write(buf[:1]); err != nil {
			return 0, false
		}
		took := time.Since(before)
		got, err := c.reader.read(buf)
		if err != nil {
			return 0, false
		}
		late := got.kernelNs - before.UnixNano()
		switch {
		case got.kernelNs == 0:
			time.Sleep(time.Millisecond) // stamping may not have begun
		case took > leastStampErr:
			// The sender was held up: what it says of the time of sending is no measure.
		case late < 0 || late > mostStampErr:
			return 0, false
		default:
			good++
			errorNs = max(errorNs, late)
		}
	}
	forever := time.Time{}
	if good < probes/10 || b.SetDeadline(forever) != nil {
		return 0, false
	}
	return max(errorNs, leastStampErr), true
}
