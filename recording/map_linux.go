package recording

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates the blocks of a file, so that a full disk is an error here
// and not a SIGBUS when a mapped page is first written.
func reserve(f *os.File, size int) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// mapShared maps a file whose blocks are reserved, and touches its pages, so
// that no append waits for a page fault.
func mapShared(f *os.File, size int) ([]byte, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	err = unix.Madvise(mem, unix.MADV_POPULATE_WRITE)
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: before Linux 5.14
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return mem, nil
}

func unmap(mem []byte) error { return unix.Munmap(mem) }

func syncMap(mem []byte) error { return unix.Msync(mem, unix.MS_SYNC) }

// diskFull says whether an error means that there is no room, which no other
// way of writing would help.
func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
