package wire

import (
	"io"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A reader reads a non-blocking socket by recvmsg, which tells besides the bytes
// when the kernel received them and whether more are queued. It also remembers
// when it last saw the queue empty, which net.Conn would not tell, and counts
// segments.
type reader struct {
	c        *conn
	look     func(fd uintptr) bool // made once, so that a read allocates nothing
	buf      []byte
	n        int
	queued   int
	kernelNs int64
	single   bool
	errno    unix.Errno
	tried    int64 // before the last look
	empty    int64 // the queue was empty at this time or later

	header   unix.Msghdr
	vector   unix.Iovec
	control  [160]byte
	segments segments
}

func (r *reader) init(c *conn) {
	r.c, r.look, r.empty = c, r.try, c.stood
	r.header.Iov, r.header.Iovlen = &r.vector, 1
}

// try is called until it returns true; false waits until the socket is readable.
func (r *reader) try(fd uintptr) bool {
	r.tried = r.c.clock.Now()
	r.vector.Base = &r.buf[0]
	r.vector.SetLen(len(r.buf))
	r.header.Control = &r.control[0]
	r.header.SetControllen(len(r.control))
	r.header.Flags = 0
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.header)), unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		r.n, r.errno = int(n), errno
		if errno == unix.EAGAIN {
			r.empty = r.tried
			return false
		}
		if errno == 0 && r.n > 0 {
			r.took(fd)
		}
		return true
	}
}

// took finds out what is known of the bytes just read.
func (r *reader) took(fd uintptr) {
	r.kernelNs, r.queued = readControl(r.control[:r.header.Controllen])
	r.single = false
	if r.c.stamps.receive {
		if time.Now().UnixNano()-r.kernelNs > 2*r.c.stamps.errorNs && reordered(fd) {
			r.kernelNs = 0
		}
		r.segments.note(r.n, r.queued == 0)
		r.single = r.queued == 0 && r.segments.single(fd)
	}
}

// read reads into b.
func (r *reader) read(b []byte) (got receipt, err error) {
	if len(b) == 0 {
		return receipt{}, nil
	}
	r.buf = b
	err = r.c.raw.Read(r.look)
	r.buf = nil
	got.after = r.empty
	switch {
	case err != nil:
		return got, err
	case r.errno != 0:
		return got, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("recvmsg", r.errno)}
	case r.n == 0:
		return got, io.EOF
	}
	got.n, got.kernelNs, got.single = r.n, r.kernelNs, r.single
	got.drained, got.left = r.queued == 0, r.queued > 0
	if got.drained || r.queued < 0 && r.n < len(b) {
		r.empty = r.tried // what comes later arrives after this look
	}
	got.next = r.empty
	return got, nil
}

// readControl finds the kernel's stamp (wall clock, 0 if none came) and the
// bytes still queued (-1 if it does not say).
func readControl(b []byte) (kernelNs int64, queued int) {
	queued = -1
	for h, data := range messages(b) {
		switch {
		case h.Level == unix.SOL_SOCKET && (h.Type == unix.SCM_TIMESTAMPING || h.Type == unix.SCM_TIMESTAMPNS) && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			kernelNs = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano() // the first of three is the software's
		case h.Level == unix.IPPROTO_TCP && h.Type == unix.TCP_INQ && len(data) >= 4:
			queued = int(*(*int32)(unsafe.Pointer(&data[0])))
		}
	}
	return kernelNs, queued
}

// A writer knows when the kernel sent the last byte that was written.
type writer struct {
	raw   interface{ Control(func(uintptr)) error }
	fetch func(fd uintptr) // made once, so that a write allocates nothing
	x     transmitter
	at    int64
	ok    bool
}

func (w *writer) init(c *conn) {
	w.raw, w.fetch = c.raw, func(fd uintptr) { w.at, w.ok = w.x.last(fd) }
}

// wrote notes that n more bytes were written.
func (w *writer) wrote(n int) { w.x.wrote(n) }

// sent is when the kernel sent the last byte written (Unix ns); ok is false if it
// has not said so yet.
func (w *writer) sent() (wallNs int64, ok bool) {
	w.ok = false
	if w.raw.Control(w.fetch) != nil {
		return 0, false
	}
	return w.at, w.ok
}
