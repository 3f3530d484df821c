//go:build !linux

package recording

import (
	"errors"
	"os"
	"syscall"
)

// Without fallocate a mapping could raise SIGBUS on a full disk, so that other
// systems write each frame.
func reserve(*os.File, int) error { return errors.ErrUnsupported }

func mapShared(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func syncMap([]byte) error { return nil }

func diskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
