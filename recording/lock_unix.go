//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package recording

import (
	"errors"
	"os"
	"syscall"
)

// Lock takes the advisory lock of a folder: it says that a writer lives, and the
// kernel lets go of it when the writer dies. The lock lasts until the file is
// closed. ErrHeld says that another writer has it. A Recorder has that of its folder;
// whatever else fills a folder over several sittings takes it too.
func Lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
