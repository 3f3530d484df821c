package wire

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"time"

	"fermata/recording"
)

// canaryEvery is how often a canary sings.
const canaryEvery = 10 * time.Millisecond

// A canary measures how late stamps are where the kernel does not tell: while a
// run goes on, a thread sends events over a loopback connection that carry the
// time just before their sending, and they are read and stamped as any others.
// What the difference holds besides the stamp's error is the sending itself.
type canary struct {
	stop chan struct{}
	both sync.WaitGroup
}

// newCanary starts one; nil where there is no loopback. Errors go into heard.
func newCanary(clock Clock, heard *recording.LiveHistogram) *canary {
	from, to, err := loopback()
	if err != nil {
		return nil
	}
	reader, err := newConn(to, clock, stamps{}, &meter{})
	if err != nil {
		from.Close()
		to.Close()
		return nil
	}
	c := &canary{stop: make(chan struct{})}
	c.both.Go(func() {
		defer from.Close()
		c.sing(clock, from)
	})
	c.both.Go(func() {
		defer reader.Close()
		heed(reader, heard)
	})
	return c
}

func (c *canary) sing(clock Clock, to io.Writer) {
	runtime.LockOSThread() // its sleeps are the system's
	defer runtime.UnlockOSThread()
	var event [8]byte
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		nap(int64(canaryEvery))
		binary.LittleEndian.PutUint64(event[:], uint64(clock.Now()))
		if _, err := to.Write(event[:]); err != nil {
			return
		}
	}
}

// heed stamps events until their connection is closed.
func heed(c *conn, heard *recording.LiveHistogram) {
	turn := c.begin(false, nil)
	buf := make([]byte, readSize)
	have := 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		at := turn.take(0, false).At
		all := buf[:have+n]
		for ; len(all) >= 8; all = all[8:] {
			heard.Add(at - int64(binary.LittleEndian.Uint64(all)))
		}
		have = copy(buf, all)
	}
}

// Close ends it and waits until it has ended.
func (c *canary) Close() {
	if c != nil {
		close(c.stop)
		c.both.Wait()
	}
}
