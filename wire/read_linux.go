package wire

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A reader reads a non-blocking socket and remembers when it last saw the queue
// empty, which net.Conn would not tell.
type reader struct {
	c     *conn
	look  func(fd uintptr) bool // made once, so that a read allocates nothing
	buf   []byte
	n     int
	err   error
	tried int64 // before the last look
	empty int64 // the queue was empty at this time or later
}

func (r *reader) init(c *conn) {
	r.c, r.look, r.empty = c, r.try, c.stood
}

// try is called until it returns true; false waits until the socket is readable.
func (r *reader) try(fd uintptr) bool {
	r.tried = r.c.clock.Now()
	for {
		r.n, r.err = unix.Read(int(fd), r.buf)
		if r.err != unix.EINTR {
			break
		}
	}
	if r.err == unix.EAGAIN {
		r.empty = r.tried
		return false
	}
	return true
}

// read reads into b; what it brought arrived after lo.
func (r *reader) read(b []byte) (n int, lo int64, err error) {
	if len(b) == 0 {
		return 0, 0, nil
	}
	r.buf = b
	err = r.c.raw.Read(r.look)
	r.buf = nil
	lo = r.empty
	switch {
	case err != nil:
		return 0, lo, err
	case r.err != nil:
		return 0, lo, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", r.err)}
	case r.n == 0:
		return 0, lo, io.EOF
	case r.n < len(b):
		// A short read empties the queue: what comes later arrives after it.
		r.empty = r.tried
	}
	return r.n, lo, nil
}
