//go:build !linux

package serve

import (
	"context"
	"time"
)

// An alarm wakes one goroutine at given times.
type alarm struct{ timer *time.Timer }

func newAlarm() (*alarm, error) { return &alarm{time.NewTimer(time.Hour)}, nil }

// wait returns at t, never before, or with ctx's error when ctx ends first.
func (a *alarm) wait(ctx context.Context, t time.Time) error {
	if err := ctx.Err(); err != nil || time.Until(t) <= 0 {
		return err
	}
	a.timer.Reset(time.Until(t))
	select {
	case <-a.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *alarm) close() { a.timer.Stop() }
