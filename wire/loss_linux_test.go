package wire

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A tunnel is the far end of a network of its own: a server that writes its TCP
// segments by hand, in whatever order.
type tunnel struct {
	*os.File
	in   []byte // the client's last packet
	next uint32 // the client's next byte
	base uint32 // number of our first byte
}

const (
	lostAddress = "10.9.0.2"
	lostPort    = 80
	flagFIN     = 1
	flagSYN     = 2
	flagACK     = 16
)

// newTunnel makes a tunnel to lostAddress in this process's network.
func newTunnel() (*tunnel, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	device, err := unix.NewIfreq("lost0")
	if err != nil {
		return nil, err
	}
	device.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, device); err != nil {
		return nil, err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	for _, name := range []string{"lo", "lost0"} {
		i, err := unix.NewIfreq(name)
		if err != nil {
			return nil, err
		}
		if name != "lo" {
			here := errors.Join(i.SetInet4Addr([]byte{10, 9, 0, 1}), unix.IoctlIfreq(s, unix.SIOCSIFADDR, i))
			there := errors.Join(i.SetInet4Addr([]byte{10, 9, 0, 2}), unix.IoctlIfreq(s, unix.SIOCSIFDSTADDR, i))
			if err := errors.Join(here, there); err != nil {
				return nil, err
			}
		}
		i.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, i); err != nil {
			return nil, err
		}
	}
	return &tunnel{File: os.NewFile(uintptr(fd), "tun"), in: make([]byte, 2000)}, nil
}

// receive reads packets until one of a TCP connection comes.
func (u *tunnel) receive() (flags byte, data []byte, err error) {
	for {
		n, err := u.Read(u.in[:cap(u.in)])
		if err != nil {
			return 0, nil, err
		}
		u.in = u.in[:n]
		if n < 40 || u.in[0]>>4 != 4 || u.in[9] != unix.IPPROTO_TCP {
			continue
		}
		tcp := u.in[int(u.in[0]&15)*4:]
		return tcp[13], tcp[int(tcp[12]>>4)*4:], nil
	}
}

// send sends a segment of our bytes from number at on.
func (u *tunnel) send(flags byte, at uint32, data []byte) error {
	was := u.in[int(u.in[0]&15)*4:]
	p := make([]byte, 40, 40+len(data))
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(p[2:], uint16(40+len(data)))
	copy(p[12:16], u.in[16:20])
	copy(p[16:20], u.in[12:16])
	binary.BigEndian.PutUint16(p[10:], checksum(p[:20], 0))
	tcp := p[20:]
	copy(tcp[0:2], was[2:4])
	copy(tcp[2:4], was[0:2])
	binary.BigEndian.PutUint32(tcp[4:], u.base+at)
	binary.BigEndian.PutUint32(tcp[8:], u.next)
	tcp[12], tcp[13] = 5<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 0xffff)
	p = append(p, data...)
	tcp = p[20:]
	pseudo := append(append([]byte{}, p[12:20]...), 0, unix.IPPROTO_TCP, byte(len(tcp)>>8), byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], checksum(tcp, sum(pseudo)))
	_, err := u.Write(p)
	return err
}

// serve answers the next request with five events. The third is lost at first: the
// fourth comes before it. It says when each was sent.
func (u *tunnel) serve(clock Clock) (sent [5]writing, err error) {
	const gap = 30 * time.Millisecond
	at := uint32(1)
	var pieces [5][]byte
	pieces[0] = []byte(stream)
	var from [5]uint32
	for i := range pieces {
		pieces[i] = append(pieces[i], chunk("data: x\n\n")...)
		from[i], at = at, at+uint32(len(pieces[i]))
	}
	for {
		flags, data, err := u.receive()
		if err != nil {
			return sent, err
		}
		number := binary.BigEndian.Uint32(u.in[int(u.in[0]&15)*4+4:])
		switch {
		case flags&flagSYN != 0:
			u.base, u.next = 1e6, number+1
			err = u.send(flagSYN|flagACK, 0, nil)
		case len(data) > 0:
			u.next = number + uint32(len(data))
			for _, i := range []int{0, 1, 3, 2, 4} {
				sent[i].before = clock.Now()
				if err := u.send(flagACK, from[i], pieces[i]); err != nil {
					return sent, err
				}
				sent[i].after = clock.Now()
				time.Sleep(gap)
			}
			return sent, errors.Join(u.send(flagACK, at, []byte(last)), u.send(flagACK|flagFIN, at+uint32(len(last)), nil))
		}
		if err != nil {
			return sent, err
		}
	}
}

func sum(b []byte) (s uint32) {
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		s += uint32(b[len(b)-1]) << 8
	}
	return s
}

func checksum(b []byte, s uint32) uint16 {
	for s += sum(b); s > 0xffff; s = s>>16 + s&0xffff {
	}
	return ^uint16(s)
}

const inTunnel = "FERMATA_TEST_TUNNEL"

// A segment that is lost holds up those behind it, which have their stamps already: a
// reader has none of them before it is sent again.
func TestStampsOfLostSegments(t *testing.T) {
	if os.Getenv(inTunnel) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStampsOfLostSegments$", "-test.v")
		cmd.Env = append(os.Environ(), inTunnel+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			t.Skip("this system lets nobody have a network of their own")
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	u, err := newTunnel()
	if err != nil {
		t.Skipf("this system has no tunnels: %v", err)
	}
	defer u.Close()
	clock := NewClock()
	fast, compatible := newTestFast(t, clock), NewHTTP(clock)
	defer compatible.Close()
	for name, tr := range map[string]Transport{"fast": fast, "compatible": compatible} {
		sent := make(chan [5]writing, 1)
		go func() {
			at, err := u.serve(clock)
			if err != nil {
				t.Error(err)
			}
			sent <- at
		}()
		var got audit
		r := tr.Exchange(t.Context(), post("http://"+lostAddress+"/", "q"), &got)
		if r.Err != nil || len(got.at) != 5 {
			t.Fatalf("%s: %d events, %v", name, len(got.at), r.Err)
		}
		at := <-sent
		at[3] = at[2] // nobody could read it earlier
		for i, stamp := range got.at {
			t.Logf("%s: event %d stamped %d ns after it could be read, bound %d ns", name, i, stamp-at[i].before, got.bound[i])
			if stamp < at[i].before || stamp-got.bound[i] > at[i].after+delivery {
				t.Errorf("%s: event %d could be read from between %d and %d on, and was stamped %d with a bound of %d ns", name, i, at[i].before, at[i].after, stamp, got.bound[i])
			}
		}
	}
}

// A sweep that passed a socket by says that nothing was there, unless what is read
// later had been stamped long before.
func TestEmptyBefore(t *testing.T) {
	const ms = int64(time.Millisecond)
	l := &loop{swept: 10 * ms}
	for _, c := range []struct {
		k        link
		at, want int64
	}{
		{link{lo: ms}, 11 * ms, 9 * ms},
		{link{lo: ms}, 9*ms + 1, 9 * ms},
		{link{lo: ms}, 9*ms - 1, ms},
		{link{lo: 9*ms + 5}, 11 * ms, 9*ms + 5},
		{link{lo: ms, behind: true}, 11 * ms, ms},
	} {
		if got := l.emptyBefore(&c.k, c.at); got != c.want {
			t.Errorf("lo %d, behind %v, stamped at %d: empty before %d, want %d", c.k.lo, c.k.behind, c.at, got, c.want)
		}
	}
}
