package wire

import (
	"testing"
	"time"
)

// Waiting never returns early.
func TestWaitUntil(t *testing.T) {
	c := NewClock()
	for _, d := range []int64{-1, 0, 50_000, 3_000_000, 12_000_000} {
		at := c.Now() + d
		c.WaitUntil(at, func() bool { return false })
		if now := c.Now(); now < at {
			t.Errorf("returned %d ns early", at-now)
		}
	}
	c.WaitUntil(c.Now()+int64(time.Hour), func() bool { return true })
}
