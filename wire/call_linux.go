package wire

import (
	"bytes"
	"io"
	"net"
	"os"
	"unsafe"

	"fermata/recording"

	"golang.org/x/sys/unix"
)

func some(at int64) recording.Maybe[int64] { return recording.Some(at) }

func bytesAt(b []byte) unsafe.Pointer { return unsafe.Pointer(&b[0]) }

const (
	sureWithin = int64(1e9) // ns: how long the kernel's time of sending is waited for
)

// enter gives a call its place in the log.
func (l *loop) enter(c *call) {
	c.slot = l.decoder.slots.take(c)
	l.note(wasDue, c)
}

// note logs that something happened to a call.
func (l *loop) note(k kind, c *call) *entry {
	l.unread = true
	return l.log.add(k, c.slot)
}

// tellSent logs when the request left: when the kernel sent its last byte, else
// before it was written. False says that the kernel has not told yet, unless there
// is no time to wait for it.
func (l *loop) tellSent(c *call, now bool) bool {
	if c.told || c.wrote == 0 {
		return true
	}
	at := c.last
	if l.stamps.transmit && c.wrote == c.length {
		wall, ok := l.move.transmitted(c.link.fd, c.link.sent-1)
		sent := wall - l.ahead
		switch {
		case ok && sent >= c.last-mostWait && sent <= l.clock.Now()+mostWait:
			at = max(at, sent)
		case !ok && !now:
			return false
		}
	}
	if first := c.result.FirstByte; first.OK {
		at = min(at, first.V)
	}
	c.told, c.result.Sent = true, some(at)
	if !c.said {
		c.said = true
		e, made := l.note(wasSent, c), c.result.Connected
		e.stamp.At, e.stamp.EarlierNs, e.fresh = at, made.V, made.OK
	}
	return true
}

// askAgain asks the kernel when those left that it has not told of.
func (l *loop) askAgain() {
	kept := l.unsure[:0]
	for _, c := range l.unsure {
		if c.link != nil && !c.told && !l.tellSent(c, l.began-c.last > sureWithin) {
			kept = append(kept, c)
		}
	}
	clear(l.unsure[len(kept):])
	l.unsure = kept
}

// hear reads until the socket is empty; to its end, if it is known to have one.
func (l *loop) hear(k *link, gone bool) {
	c := k.call
	for range readsAtOnce {
		b := l.log.room(readLeast)
		room := b.bytes[b.used:min(b.used+readMost, len(b.bytes))]
		n, kernelNs, queued, errno := l.move.receive(k.fd, room)
		switch {
		case errno == unix.EAGAIN:
			k.behind, k.lo = false, max(k.lo, l.began)
			return
		case errno != 0:
			l.broke(c, &net.OpError{Op: "read", Net: "tcp", Addr: k.peer.addrs[k.addr].net, Err: os.NewSyscallError("recvmsg", errno)})
			return
		case n == 0:
			l.closed(c)
			return
		}
		l.heard(k, b, room[:n], kernelNs, queued)
		if k.call != c {
			return // it has ended
		}
		if queued == 0 || queued < 0 && n < len(room) {
			k.behind = false
			if !gone {
				return
			}
			continue
		}
		k.behind = true
	}
	k.behind = true
	l.behind = append(l.behind, k)
}

// stampOf is when the last byte of a read arrived: by the kernel if it says so and
// what it says is possible, else now.
func (l *loop) stampOf(k *link, kernelNs int64) (at int64, kernel bool) {
	now := l.clock.Now()
	if kernelNs == 0 {
		return max(now, k.at), false
	}
	at = kernelNs - l.ahead
	switch {
	case at > now || at < k.lo-mostWait: // the wall clock was set in between
		return max(now, k.at), false
	case at < k.at: // never backwards, though a user-time stamp may have been late
		return k.at, false
	case at < l.swept && reordered(uintptr(k.fd)): // a sweep found nothing to read when it was there already
		return now, false
	}
	return at, true
}

// sweepSlack is how long bytes that the kernel has stamped may take to become
// readable. With 0.2 ms one bound in a million was wrong on a busy machine.
const sweepSlack = 1_000_000

// emptyBefore is when a link's queue was last known to be empty before bytes came
// that are stamped at: when it was read to its end, or when a sweep last passed it by,
// unless the kernel is seen to take longer than the slack.
func (l *loop) emptyBefore(k *link, at int64) int64 {
	if passed := l.swept - sweepSlack; !k.behind && at >= passed {
		return max(k.lo, passed)
	}
	return k.lo
}

// heard takes what a read brought.
func (l *loop) heard(k *link, b *block, raw []byte, kernelNs int64, queued int) {
	c := k.call
	l.reads++
	c.reads++
	at, kernel := l.stampOf(k, kernelNs)
	k.at = at
	lo := l.emptyBefore(k, at)
	drained := queued == 0
	if !c.aside {
		l.meter.read(receipt{left: queued > 0}, l.clock.Now()-at, kernel)
	}
	k.segs.note(len(raw), drained)
	if drained {
		k.lo = max(k.lo, l.began)
		if kernel {
			k.lo = max(k.lo, at)
		}
	}
	if !c.result.FirstByte.OK {
		c.result.FirstByte = some(at)
		l.tellSent(c, true)
		c.result.Sent.V = min(c.result.Sent.V, at) // a server may answer before it has the whole request
	}
	width := at - min(at, max(lo, c.result.Sent.V))
	e := entry{kind: wasRead, slot: c.slot, at: uint32(b.used), stamp: Stamp{At: at, Read: c.reads, ErrorNs: width, EarlierNs: width}}
	body, from := raw, b.used
	if c.state < bodied {
		n, err := l.takeHead(c, raw, &e)
		if err != nil {
			l.fail(c, err)
			return
		}
		if c.state < bodied {
			return
		}
		body, from = raw[n:], b.used+n
	}
	l.takeBody(c, b, &e, body, from, kernel && drained, queued > 0)
}

// takeHead looks for the response's head in a read. It says how many bytes of the
// read come before the body.
func (l *loop) takeHead(c *call, raw []byte, e *entry) (n int, err error) {
	buf := raw
	if len(c.part) > 0 {
		c.part = append(c.part, raw...)
		buf = c.part
	}
	for whole := buf; ; {
		end := headEnd(buf)
		if end == 0 {
			return 0, c.holdHead(buf)
		}
		if c.frame, err = parseHead(buf[:end]); err != nil {
			return 0, err
		}
		if !c.frame.interim() {
			c.state = bodied
			n = len(raw) - (len(buf) - end)
			if len(c.part) > 0 {
				c.part, e.apart = buf[:end], true
			} else {
				e.at += uint32(len(whole) - len(buf))
				e.head = uint32(end)
			}
			return n, nil
		}
		if c.heads += int32(end); c.heads > mostHead {
			return 0, errTooManyHeads
		}
		buf = buf[end:]
	}
}

// holdHead keeps the beginning of a head until the rest comes.
func (c *call) holdHead(b []byte) error {
	if len(b) > mostHead {
		return errHead
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		var h head
		if _, err := h.statusLine(bytes.TrimSuffix(b[:i], []byte("\r"))); err != nil {
			return err
		}
	}
	c.part = append([]byte(nil), b...)
	return nil
}

// takeBody logs what a read brought of the body, which stands at from in b. More
// says that it left something in the socket.
func (l *loop) takeBody(c *call, b *block, e *entry, body []byte, from int, exact, more bool) {
	data, over, clean, keep, err := c.unframe(body)
	e.from, e.data = uint32(from), uint32(len(data))
	if len(data) > 0 {
		e.from += uint32(offset(body, data))
	}
	switch {
	case !exact:
	case clean && !severalEvents(data):
		e.stamp.ErrorNs = min(e.stamp.EarlierNs, l.stamps.errorNs)
	case c.link.segs.single(uintptr(c.link.fd)): // then all of it arrived together
		e.stamp.EarlierNs = min(e.stamp.EarlierNs, l.stamps.errorNs)
		e.stamp.ErrorNs = e.stamp.EarlierNs
	case clean:
		e.stamp.ErrorNs = min(e.stamp.EarlierNs, l.stamps.errorNs)
	}
	if e.head > 0 || e.data > 0 || e.apart {
		*l.note(wasRead, c) = *e
		b.used = int(max(e.at+e.head, e.from+e.data))
	}
	switch {
	case err != nil:
		l.fail(c, err)
	case over:
		c.result.End, c.result.Err = e.stamp.At, nil
		l.release(c, keep && !more && c.frame.keep && c.wrote == c.length)
		l.finish(c)
	}
}

// severalEvents says that a blank line stands before the end of the data, so that
// more than one event may have come.
func severalEvents(data []byte) bool {
	i := bytes.Index(data, blankLine)
	return i >= 0 && i < len(data)-len(blankLine)
}

var blankLine = []byte("\n\n")

// offset is where part begins in whole.
func offset(whole, part []byte) int { return cap(whole) - cap(part) }

// unframe takes a part of the body as it was sent. Clean says that nothing follows
// the data, over that the body has ended, keep that nothing came after that.
func (c *call) unframe(b []byte) (data []byte, over, clean, keep bool, err error) {
	switch {
	case c.frame.chunked:
		var rest []byte
		data, rest, err = c.chunks.decode(b)
		return data, c.chunks.over(), c.chunks.clean(), len(rest) == 0, err
	case c.frame.left < 0:
		return b, false, true, false, nil
	}
	n := min(c.frame.left, int64(len(b)))
	c.frame.left -= n
	alone := n == int64(len(b))
	return b[:n], c.frame.left == 0, alone, alone, nil
}

// closed takes the end of the connection.
func (l *loop) closed(c *call) {
	switch {
	case c.state == bodied && c.frame.left < 0 && !c.frame.chunked:
		c.result.End, c.result.Err = c.link.at, nil
		l.release(c, false)
		l.finish(c)
	case c.state == bodied:
		l.broke(c, io.ErrUnexpectedEOF)
	case len(c.part) > 0:
		err := io.ErrUnexpectedEOF
		line, _ := cutLine(c.part)
		if _, bad := new(head).statusLine(line); bad != nil {
			err = bad
		}
		l.broke(c, err)
	default:
		l.broke(c, io.EOF)
	}
}

// broke takes an error of the connection.
func (l *loop) broke(c *call, err error) {
	if l.anew(c) {
		return
	}
	if c.result.Err != nil && c.state < bodied {
		err = c.result.Err
	}
	l.fail(c, err)
}

// cut ends a call because somebody said so.
func (l *loop) cut(c *call, cause error) {
	switch {
	case c.state == ended:
	case c.place >= 0 && l.tooEarly(c): // who halts a run and cuts it tells both at once
		l.takeBack(c)
	case c.place >= 0: // not begun
		l.dues.remove(c)
		l.enter(c)
		l.fail(c, cause)
	default:
		l.fail(c, cause)
	}
}

// fail ends a call that did not go well.
func (l *loop) fail(c *call, err error) {
	c.result.Step, c.result.Err, c.result.End = c.step(), err, l.clock.Now()
	if c.wrote == c.length && c.link != nil {
		l.tellSent(c, true)
	}
	if c.state < bodied {
		c.result.FirstByte = recording.Maybe[int64]{} // of an answer that was none
	}
	l.release(c, false)
	l.finish(c)
}

// finish logs the end of a call, which is then the decoder's.
func (l *loop) finish(c *call) {
	c.state = ended
	c.head, c.body = nil, nil
	l.note(wasEnd, c)
	l.ended = true
	l.active.Add(-1)
}

// dues are calls that wait for their due time: a heap, the next one first.
type dues []*call

func (d dues) swap(i, k int) {
	d[i], d[k] = d[k], d[i]
	d[i].place, d[k].place = int32(i), int32(k)
}

func (d *dues) push(c *call) {
	c.place = int32(len(*d))
	*d = append(*d, c)
	d.up(len(*d) - 1)
}

func (d dues) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d[parent].due <= d[i].due {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d dues) down(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(d); k++ {
			if d[k].due < d[least].due {
				least = k
			}
		}
		if least == i {
			return
		}
		d.swap(i, least)
		i = least
	}
}

func (d *dues) pop() *call {
	c := (*d)[0]
	d.remove(c)
	return c
}

func (d *dues) remove(c *call) {
	i, last := int(c.place), len(*d)-1
	d.swap(i, last)
	(*d)[last] = nil
	*d = (*d)[:last]
	if i < last {
		d.up(i)
		d.down(i)
	}
	c.place = -1
}
