package serve

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm wakes one goroutine at given times. It is a kernel timer in the
// runtime's poller: the runtime's own timers are rounded to milliseconds once
// the process is idle, and spinning would take the cores that the client needs.
type alarm struct{ file *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer: %w", err)
	}
	return &alarm{os.NewFile(uintptr(fd), "timer")}, nil
}

// wait returns at t, never before, or with ctx's error when ctx ends first.
func (a *alarm) wait(ctx context.Context, t time.Time) error {
	if err := ctx.Err(); err != nil || time.Until(t) <= 0 {
		return err
	}
	// A deadline in the past wakes the read below. It is gone before the next wait,
	// whose context may be another.
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		a.file.SetReadDeadline(time.Unix(1, 0))
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken
			a.file.SetReadDeadline(time.Time{})
		}
	}()
	var expirations [8]byte
	for d := time.Until(t); d > 0; d = time.Until(t) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		raw, err := a.file.SyscallConn()
		if err != nil {
			return fmt.Errorf("setting a timer: %w", err)
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil {
			return fmt.Errorf("setting a timer: %w", err)
		}
		if failed != nil {
			return fmt.Errorf("setting a timer: %w", failed)
		}
		if _, err := a.file.Read(expirations[:]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("waiting for a timer: %w", err)
		}
	}
	return nil
}

func (a *alarm) close() { a.file.Close() }
