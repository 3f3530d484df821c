package load

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
)

// An unpacker undoes the gzip of a body as its bytes arrive: what a read
// completes comes out at once, so that it keeps that read's stamp. A server that
// compresses a stream flushes after each event, and a flush can be decoded to
// its last byte.
type unpacker struct {
	packed []byte // what was fed and not yet taken
	closed bool   // nothing more will be fed
	next   func() (piece, bool)
	stop   func()
	err    error
}

// A piece is what the decoder gave: bytes, or word that it needs more to go on.
type piece struct {
	b      []byte
	hungry bool
}

// errLeft tells the decoder that nobody waits for it any more.
var errLeft = errors.New("the answer has ended")

// unpackerFor is the unpacker that a response's head asks for; nil where its
// body comes as it is. An error says that it cannot be undone.
func unpackerFor(h http.Header) (*unpacker, error) {
	switch enc := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))); enc {
	case "", "identity":
		return nil, nil
	case "gzip", "x-gzip":
		u := &unpacker{}
		u.next, u.stop = iter.Pull(u.run)
		return u, nil
	default:
		return nil, fmt.Errorf("the answer is compressed with %q, though it was asked for as it is; turn compression off in the server or the proxy before it", enc)
	}
}

// feed takes the next bytes and hands over what they complete.
func (u *unpacker) feed(b []byte, emit func(b []byte) error) error {
	u.packed = b
	for u.err == nil {
		p, ok := u.next()
		if !ok || p.hungry {
			break
		}
		if err := emit(p.b); err != nil {
			return err
		}
	}
	return u.err
}

// close ends the body and hands over what was still held back.
func (u *unpacker) close(emit func(b []byte) error) error {
	u.closed = true
	return u.feed(nil, emit)
}

// run is the decoder. It is a coroutine, as gzip wants to read and we can only
// feed it: where it would read beyond what was fed, it yields.
func (u *unpacker) run(yield func(piece) bool) {
	in := source{u: u, yield: yield}
	z, err := gzip.NewReader(&in)
	for buf := make([]byte, 32<<10); err == nil; {
		var n int
		if n, err = z.Read(buf); n > 0 && !yield(piece{b: buf[:n]}) {
			return
		}
	}
	// A body that ends too early is judged by what it brought.
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errLeft) {
		u.err = fmt.Errorf("the answer says that it is gzip, and is not: %w", err)
	}
}

// A source is what the decoder reads from: what was fed, and no further.
type source struct {
	u     *unpacker
	yield func(piece) bool
}

// more waits for something to read.
func (s *source) more() error {
	for len(s.u.packed) == 0 {
		if s.u.closed {
			return io.EOF
		}
		if !s.yield(piece{hungry: true}) {
			return errLeft
		}
	}
	return nil
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	if err := s.more(); err != nil {
		return 0, err
	}
	n := copy(b, s.u.packed)
	s.u.packed = s.u.packed[n:]
	return n, nil
}

// ReadByte implements io.ByteReader, so that the decoder takes no more than it
// needs.
func (s *source) ReadByte() (byte, error) {
	if err := s.more(); err != nil {
		return 0, err
	}
	b := s.u.packed[0]
	s.u.packed = s.u.packed[1:]
	return b, nil
}
