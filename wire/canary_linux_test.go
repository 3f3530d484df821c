package wire

import (
	"testing"
)

func init() {
	transports[FastName] = func(t testing.TB, c Clock) listening {
		f, err := newFast(c, 1)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}
