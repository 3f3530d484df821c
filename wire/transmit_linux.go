package wire

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a socket is asked for: the kernel's time of receipt with what is read, and
// its time of transmission of each write, by the number of its last byte and
// without a copy of the bytes.
const (
	receiveStamps  = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE
	transmitStamps = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
)

// A transmitter reads when the kernel sent the bytes that were written to a
// socket, which it tells through the socket's error queue. It allocates nothing.
type transmitter struct {
	written uint32 // bytes so far, modulo 2^32, as the kernel numbers them
	header  unix.Msghdr
	control [160]byte
}

// wrote notes that n more bytes were written.
func (x *transmitter) wrote(n int) { x.written += uint32(n) }

// last is the time (Unix ns) at which the last byte written so far was sent; ok is
// false if the kernel has not told yet. Stamps of earlier writes are dropped.
func (x *transmitter) last(fd uintptr) (wallNs int64, ok bool) {
	for {
		x.header.Control = &x.control[0]
		x.header.SetControllen(len(x.control))
		x.header.Flags = 0
		_, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&x.header)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		default:
			return wallNs, ok
		}
		number, at, sent := readTransmit(x.control[:x.header.Controllen])
		if sent && number == x.written-1 && !ok { // a second one is of bytes sent again
			wallNs, ok = at, true
		}
	}
}

// readTransmit reads one message of the error queue: which byte was sent last
// (counted from 0 since stamps were asked for), and when (Unix ns).
func readTransmit(control []byte) (number uint32, wallNs int64, ok bool) {
	known := false
	for h, data := range messages(control) {
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPING && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			wallNs = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		case (h.Level == unix.SOL_IP && h.Type == unix.IP_RECVERR || h.Level == unix.SOL_IPV6 && h.Type == unix.IPV6_RECVERR) &&
			len(data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})):
			e := (*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
			known = e.Origin == unix.SO_EE_ORIGIN_TIMESTAMPING && e.Info == unix.SCM_TSTAMP_SND
			number = e.Data
		}
	}
	return number, wallNs, known && wallNs != 0
}

// messages walks the control messages of a recvmsg. The library's parser
// allocates, and so would a slice of them.
func messages(b []byte) func(yield func(h *unix.Cmsghdr, data []byte) bool) {
	return func(yield func(h *unix.Cmsghdr, data []byte) bool) {
		for len(b) >= unix.SizeofCmsghdr {
			h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
			size := int(h.Len)
			if size < unix.SizeofCmsghdr || size > len(b) || !yield(h, b[unix.SizeofCmsghdr:size]) {
				return
			}
			b = b[min(len(b), (size+7)&^7):]
		}
	}
}

// segments counts the data segments that a socket received, so as to know of a
// read whether one segment brought all of it: then all of it arrived at the
// kernel's stamp, not only its last byte. The zero value is that of a new socket.
//
// A read that follows an emptied queue brought at least one segment. So if there
// were as many segments as such reads, each read was one.
type segments struct {
	read    uint32 // bytes, modulo 2^32
	reads   uint32 // since the count of segments was last looked at, each of which emptied the queue
	seen    uint32 // segments at that look
	unknown bool   // which read brought which of them
}

// note takes a read of n bytes.
func (s *segments) note(n int, drained bool) {
	s.read += uint32(n)
	s.reads++
	s.unknown = s.unknown || !drained
}

// single says that the read noted last, and each other since the look before, was
// one segment. It costs a system call.
func (s *segments) single(fd uintptr) bool {
	var info unix.TCPInfo
	if tcpInfo(fd, &info) < unsafe.Offsetof(info.Data_segs_in)+unsafe.Sizeof(info.Data_segs_in) {
		s.unknown = true
		return false
	}
	// More came since the read: of which read are the segments?
	if uint32(info.Bytes_received) != s.read {
		s.unknown = true
		return false
	}
	one := !s.unknown && info.Data_segs_in-s.seen == s.reads
	s.seen, s.reads, s.unknown = info.Data_segs_in, 0, false
	return one
}

// reordered says that segments came out of order at a socket. Those behind a lost one
// have their stamps when it is sent again, and no reader gets at them before: what a
// read brings then arrived later than its stamp. Without an answer of the kernel's (it
// has one from Linux 5.4 on) nothing did.
func reordered(fd uintptr) bool {
	var info unix.TCPInfo
	return tcpInfo(fd, &info) >= unsafe.Offsetof(info.Rcv_ooopack)+unsafe.Sizeof(info.Rcv_ooopack) && info.Rcv_ooopack > 0
}

// tcpInfo asks what the kernel knows of a connection, and says how much of info it
// filled in.
func tcpInfo(fd uintptr, info *unix.TCPInfo) uintptr {
	size := uint32(unsafe.Sizeof(*info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uintptr(size)
}
