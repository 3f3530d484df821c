package wire

// records follows the framing of TLS records in what a socket reads. TLS hands
// over one record at a time, however many a read brought, so that only a read
// which ended exactly one record has a stamp that is that record's own.
type records struct {
	head [5]byte // type, version, length
	have int     // bytes of the head so far
	left int     // bytes of the record still to come
	lost bool    // the bytes are no TLS, or were not followed from the start
}

// feed takes what a read brought. Alone says that it ended one record and held
// nothing after that.
func (r *records) feed(b []byte) (alone bool) {
	ended := 0
	for len(b) > 0 && !r.lost {
		if r.left > 0 {
			n := min(r.left, len(b))
			r.left -= n
			b = b[n:]
			if r.left == 0 {
				ended++
			}
			continue
		}
		r.head[r.have] = b[0]
		r.have++
		b = b[1:]
		if r.have == len(r.head) {
			r.have = 0
			r.left = int(r.head[3])<<8 | int(r.head[4])
			// Content types are 20 to 24, and every version of TLS says 3.x here.
			r.lost = r.head[0] < 20 || r.head[0] > 24 || r.head[1] != 3 || r.left == 0
		}
	}
	return !r.lost && ended == 1 && r.left == 0 && r.have == 0
}
