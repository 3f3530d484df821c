package wire

import (
	"testing"
)

// Reading, stamping and writing allocate nothing.
func TestConnAllocatesNothing(t *testing.T) {
	a, b, err := loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	c, err := newConn(b, NewClock(), stampsOf(false), &meter{})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 512)
	event := make([]byte, 260)
	if n := testing.AllocsPerRun(500, func() {
		if _, err := a.Write(event); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
	if n := testing.AllocsPerRun(500, func() {
		if _, err := c.Write(event); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Read(buf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a write", n)
	}
}

// BenchmarkRead is one event of 260 bytes, written and read.
func BenchmarkRead(b *testing.B) {
	for _, kind := range []string{"stamped", "by the reader"} {
		b.Run(kind, func(b *testing.B) {
			from, to, err := loopback()
			if err != nil {
				b.Fatal(err)
			}
			defer from.Close()
			defer to.Close()
			c, err := newConn(to, NewClock(), stampsOf(kind != "stamped"), &meter{})
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, 512)
			event := make([]byte, 260)
			for b.Loop() {
				if _, err := from.Write(event); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
