package wire

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
)

// An ErrNoRoom says that this machine had no room for a connection, so that the
// request never left: no free file descriptor, port or memory.
type ErrNoRoom struct{ Err error }

// Error is what was missing, how much of it there is, and what to do.
func (e *ErrNoRoom) Error() string {
	text := "this machine had no room for a connection: " + e.Err.Error()
	if remedy := machine().remedy(e.Err); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// Unwrap gives the system's error.
func (e *ErrNoRoom) Unwrap() error { return e.Err }

// noRooms are the errors of a machine that has no room for a connection.
var noRooms = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOMEM, syscall.ENOBUFS}

func isNoRoom(errno syscall.Errno) bool {
	for _, e := range noRooms {
		if errno == e {
			return true
		}
	}
	return false
}

// orNoRoom makes an ErrNoRoom of the error of a dial that is one. Looking a name
// up takes a socket too, and keeps of its error only the text.
func orNoRoom(err error) error {
	var known *ErrNoRoom
	var errno syscall.Errno
	var lookup *net.DNSError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &lookup):
		for _, e := range noRooms {
			if strings.Contains(lookup.Err, e.Error()) {
				return &ErrNoRoom{errors.Join(err, e)}
			}
		}
	case errors.As(err, &errno) && isNoRoom(errno):
		return &ErrNoRoom{err}
	}
	return err
}

// spareFiles are descriptors that connections leave to the rest of the process:
// what records the run has files to open in the middle of it.
const spareFiles = 8

// isSpare says that a connection is not to have this descriptor. The system gives
// out the lowest that is free, so that one so high is among the last.
func isSpare(fd int) bool {
	files := machine().Files
	return files > 0 && int64(fd) >= files-spareFiles
}

// leaveSpare is isSpare for a net.Dialer.
func leaveSpare(_, _ string, c syscall.RawConn) error {
	var spare bool
	if err := c.Control(func(fd uintptr) { spare = isSpare(int(fd)) }); err != nil {
		return err
	}
	if spare {
		return syscall.EMFILE
	}
	return nil
}

// Limits are what this machine lets one process do; 0 where it does not say.
type Limits struct {
	Files int64 // open at once
	Ports int64 // of connections to one address
}

// machine is MachineLimits, looked at once.
var machine = sync.OnceValue(MachineLimits)

// remedy says which limit err ran into, and what to do.
func (l Limits) remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE) && l.Files > 0:
		return fmt.Sprintf("this process may open %d files: raise the limit (ulimit -n), or ask for fewer streams", l.Files)
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files (ulimit -n), or ask for fewer streams"
	case errors.Is(err, syscall.ENFILE):
		return "all processes together have opened what the system allows: raise that limit (fs.file-max on Linux)"
	case errors.Is(err, syscall.EADDRNOTAVAIL) && l.Ports > 0:
		return fmt.Sprintf("this machine has %d ports for connections to one address: widen their range (net.ipv4.ip_local_port_range on Linux), or ask for fewer streams", l.Ports)
	}
	return "close other programs or ask for fewer streams"
}
