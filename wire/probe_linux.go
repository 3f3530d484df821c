package wire

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	probes        = 200
	leastStampErr = 50_000    // ns: what a stamp's error is never said to be less than
	mostStampErr  = 2_000_000 // ns: a stamp further off than this is not to be trusted
)

// probed is what this system's kernel stamps are worth. It is found out once, on
// a loopback pair that stays open: the kernel starts stamping for the first
// socket on the host that asks, a moment later, and stops with the last.
var probed = sync.OnceValue(func() (s stamps) {
	a, b, err := loopback()
	if err != nil {
		return stamps{}
	}
	s.errorNs, s.receive = probeReceipts(a, b)
	if !s.receive {
		a.Close()
		b.Close()
		return s
	}
	s.transmit = probeTransmits(b)
	return s
})

// probeReceipts sends bytes through the pair and compares the kernel's stamp of
// their arrival with the time of their sending.
func probeReceipts(a, b *net.TCPConn) (errorNs int64, ok bool) {
	c, err := newConn(b, NewClock(), stamps{receive: true, transmit: true}, &meter{})
	if err != nil || a.SetDeadline(time.Now().Add(time.Second)) != nil || b.SetDeadline(time.Now().Add(time.Second)) != nil {
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

// probeTransmits says whether the kernel tells when it sent what is written to b,
// and what it tells is possible.
func probeTransmits(b *net.TCPConn) bool {
	raw, err := b.SyscallConn()
	if err != nil {
		return false
	}
	var x transmitter
	var buf [1]byte
	for range probes / 10 {
		before := time.Now()
		if _, err := b.Write(buf[:]); err != nil {
			return false
		}
		after := time.Now()
		x.wrote(1)
		var at int64
		var ok bool
		if err := raw.Control(func(fd uintptr) { at, ok = x.last(fd) }); err != nil || !ok {
			return false
		}
		if at < before.UnixNano() || at > after.UnixNano()+mostStampErr {
			return false
		}
	}
	return true
}

// askForStamps makes the kernel stamp what it receives and, if wanted, what it
// sends, and tell what is queued.
func askForStamps(fd int, transmits bool) error {
	flags := receiveStamps
	if transmits {
		flags |= transmitStamps
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INQ, 1)
}
