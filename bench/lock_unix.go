//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// alone waits until no other bench runs on this machine: each would spoil the
// other's figures. The file is let go of when this process ends.
func (b *bench) alone() error {
	path := filepath.Join(os.TempDir(), "fermata-bench.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("making the lock of benchmarks: %w", err)
	}
	for told := false; syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil; {
		if !told {
			b.say("another bench runs on this machine; waiting for its end")
			told = true
		}
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(time.Second / 5):
		}
	}
	b.lock = f
	return nil
}
