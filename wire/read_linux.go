package wire

import (
	"io"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A reader reads a non-blocking socket by recvmsg, which tells besides the bytes
// when the kernel received them and whether more are queued. It also remembers
// when it last saw the queue empty, which net.Conn would not tell.
type reader struct {
	c     *conn
	look  func(fd uintptr) bool // made once, so that a read allocates nothing
	buf   []byte
	n     int
	errno unix.Errno
	tried int64 // before the last look
	empty int64 // the queue was empty at this time or later

	header  unix.Msghdr
	vector  unix.Iovec
	control [96]byte
}

func (r *reader) init(c *conn) {
	r.c, r.look, r.empty = c, r.try, c.stood
	r.header.Iov, r.header.Iovlen = &r.vector, 1
	if _, ok := kernelStamps(); ok {
		_ = c.raw.Control(func(fd uintptr) { _ = askForStamps(int(fd)) }) // without them stamps are user time
	}
}

// askForStamps makes the kernel stamp what it receives, and tell what is queued.
func askForStamps(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INQ, 1)
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
		return true
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
	queued := -1
	got.n = r.n
	got.kernelNs, queued = readControl(r.control[:r.header.Controllen])
	got.drained = queued == 0
	if queued == 0 || queued < 0 && r.n < len(b) {
		r.empty = r.tried // what comes later arrives after this look
	}
	return got, nil
}

// readControl finds the kernel's stamp (wall clock, 0 if none came) and the
// bytes still queued (-1 if it does not say). It walks the messages by hand, as
// the library's parser allocates.
func readControl(b []byte) (kernelNs int64, queued int) {
	queued = -1
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(b) {
			return kernelNs, queued
		}
		data := b[unix.SizeofCmsghdr:size]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			kernelNs = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		case h.Level == unix.IPPROTO_TCP && h.Type == unix.TCP_INQ && len(data) >= 4:
			queued = int(*(*int32)(unsafe.Pointer(&data[0])))
		}
		b = b[min(len(b), (size+7)&^7):]
	}
	return kernelNs, queued
}
