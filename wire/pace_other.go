//go:build !linux

package wire

import "time"

// nap sleeps for about ns.
func nap(ns int64) { time.Sleep(time.Duration(ns)) }
