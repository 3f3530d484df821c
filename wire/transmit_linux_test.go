package wire

import (
	"net"
	"testing"
	"time"

	"fermata/internal/calm"
)

// onSocket runs f with the descriptor of c.
func onSocket(t testing.TB, c *net.TCPConn, f func(fd uintptr)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(f); err != nil {
		t.Fatal(err)
	}
}

// The kernel's time of sending lies between the clock before the write and the
// kernel's receipt of the bytes, and belongs to the last byte written.
func TestTransmitStamps(t *testing.T) {
	if !stampsOf(false).transmit {
		t.Skip("this system's kernel does not stamp what it sends")
	}
	a, b, err := loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	var x transmitter
	onSocket(t, a, func(fd uintptr) {
		if err := askForStamps(int(fd), true); err != nil {
			t.Fatal(err)
		}
	})
	c, err := newConn(b, NewClock(), stampsOf(false), &meter{})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for i, n := range []int{1, 5000, 300, 40_000} {
		before := time.Now()
		for half := range 2 {
			size := n/2 + half*(n-n/2-n/2)
			if _, err := a.Write(buf[:size]); err != nil {
				t.Fatal(err)
			}
			x.wrote(size)
		}
		after := time.Now()
		for got := 0; got < n; {
			k, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += k
		}
		onSocket(t, a, func(fd uintptr) {
			at, ok := x.last(fd)
			if !ok {
				t.Fatalf("write %d: no time of its sending", i)
			}
			if at < before.UnixNano() || at > after.UnixNano() {
				t.Errorf("write %d: sent %d ns after the clock before it, which stood at %d ns after it", i, at-before.UnixNano(), after.Sub(before))
			}
			if _, again := x.last(fd); again {
				t.Errorf("write %d: told twice", i)
			}
		})
	}
}

// Whether one segment brought a read is known, not guessed.
func TestSegments(t *testing.T) {
	calm.Try(t, func(t testing.TB) {
		a, b, err := loopback()
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		defer b.Close()
		_ = a.SetNoDelay(true)
		var s segments
		buf := make([]byte, 1024)
		read := func(want int) (single bool) {
			got, err := b.Read(buf)
			if err != nil || got != want {
				t.Fatalf("read %d bytes, %v; want %d", got, err, want)
			}
			s.note(got, true)
			onSocket(t, b, func(fd uintptr) { single = s.single(fd) })
			return single
		}
		write := func(n int) {
			if _, err := a.Write(buf[:n]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		write(100)
		if !read(100) {
			t.Error("one write, one read: not one segment")
		}
		write(100)
		write(50)
		if read(150) {
			t.Error("two segments in one read taken for one")
		}
		write(70)
		if !read(70) {
			t.Error("one segment after two: not one")
		}
		// Two reads without a look between, of a segment each, are known by counting.
		write(10)
		if n, _ := b.Read(buf); n != 10 {
			t.Fatalf("read %d bytes", n)
		}
		s.note(10, true)
		write(20)
		if !read(20) {
			t.Error("two segments in two reads: not one each")
		}
		write(10)
		write(10)
		n, _ := b.Read(buf)
		s.note(n, true)
		write(20)
		if read(20) {
			t.Error("three segments in two reads taken for one each")
		}
	})
}
