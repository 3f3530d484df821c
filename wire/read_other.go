//go:build !linux

package wire

// probed: kernel stamps are not asked for on this system.
func probed() stamps { return stamps{} }

// askForStamps is never called where there are none.
func askForStamps(int, bool) error { return nil }

// A reader reads through net.Conn, which does not tell when the queue was
// empty: all that is known is when the read before began.
type reader struct {
	c     *conn
	empty int64
}

func (r *reader) init(c *conn) { r.c, r.empty = c, c.stood }

// read reads into b.
func (r *reader) read(b []byte) (got receipt, err error) {
	before := r.c.clock.Now()
	got.n, err = r.c.Conn.Read(b)
	got.after = r.empty
	if got.n < len(b) {
		r.empty = before
	}
	got.next = r.empty
	return got, err
}

// A writer is not told when the kernel sends.
type writer struct{}

func (w *writer) init(*conn) {}

func (w *writer) wrote(int) {}

func (w *writer) sent() (wallNs int64, ok bool) { return 0, false }
