//go:build !linux

package wire

// A reader reads through net.Conn, which does not tell when the queue was
// empty: all that is known is when the read before began.
type reader struct {
	c     *conn
	empty int64
}

func (r *reader) init(c *conn) { r.c, r.empty = c, c.stood }

// read reads into b; what it brought arrived after lo.
func (r *reader) read(b []byte) (n int, lo int64, err error) {
	before := r.c.clock.Now()
	n, err = r.c.Conn.Read(b)
	lo = r.empty
	if n < len(b) {
		r.empty = before
	}
	return n, lo, err
}
