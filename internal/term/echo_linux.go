package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// quietControls keeps the terminal from writing ^C where the cursor is, which would
// stand in the middle of a view. What it returns gives it its modes back.
func quietControls(f *os.File) (restore func()) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || was.Lflag&unix.ECHOCTL == 0 {
		return func() {}
	}
	now := *was
	now.Lflag &^= unix.ECHOCTL
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &now); err != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) } // a terminal that is gone needs no modes
}
