package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A dial that failed for want of something on this machine is told from one that
// failed at the other end, however deep the system's error lies.
func TestNoRoom(t *testing.T) {
	dial := func(call string, errno syscall.Errno) error {
		return fmt.Errorf("dialling: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError(call, errno)})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{dial("socket", syscall.EMFILE), true},
		{dial("socket", syscall.ENFILE), true},
		{dial("connect", syscall.EADDRNOTAVAIL), true},
		{dial("socket", syscall.ENOMEM), true},
		{dial("connect", syscall.ENOBUFS), true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "dial udp 10.0.0.1:53: socket: too many open files", Name: "host"}}, true},
		{dial("connect", syscall.ECONNREFUSED), false},
		{dial("connect", syscall.EHOSTUNREACH), false},
		{dial("connect", syscall.ETIMEDOUT), false},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "host", IsNotFound: true}}, false},
	} {
		var got *ErrNoRoom
		err := orNoRoom(c.err)
		if errors.As(err, &got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v became %v", c.err, err)
		}
	}
	if orNoRoom(nil) != nil {
		t.Error("no error became one")
	}
}

// Which limit it was, how much there is of it, and what to do.
func TestRemedy(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		err    error
		want   string
	}{
		{Limits{Files: 64}, syscall.EMFILE, "may open 64 files: raise the limit (ulimit -n)"},
		{Limits{}, syscall.EMFILE, "ulimit -n"},
		{Limits{Ports: 28232}, syscall.EADDRNOTAVAIL, "has 28232 ports for connections to one address: widen their range"},
		{Limits{}, syscall.EADDRNOTAVAIL, "ask for fewer streams"},
		{Limits{Files: 64}, syscall.ENFILE, "fs.file-max"},
		{Limits{Files: 64}, syscall.ENOBUFS, "ask for fewer streams"},
	} {
		if got := c.limits.remedy(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%+v, %v: %q", c.limits, c.err, got)
		}
	}
}
