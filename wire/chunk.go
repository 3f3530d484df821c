package wire

import (
	"errors"
	"fmt"
)

// chunkLine bounds the line with a chunk's size, and trailers all together.
const (
	chunkLine = 4 << 10
	trailers  = 64 << 10
)

// chunked undoes HTTP/1.1's chunks (RFC 9112, section 7.1) as the bytes come, in
// pieces of any size. Its zero value stands before the first chunk.
type chunked struct {
	left  uint64 // of the chunk: its size while the line is read, then what is still to come
	seen  int32  // bytes of the line with the size so far; of all trailers
	digit int8   // digits of the size so far
	step  chunkStep
	line  bool // the trailer line has begun
}

type chunkStep uint8

const (
	inSize      chunkStep = iota // digits of the size
	inExtension                  // what follows a semicolon
	inBlank                      // blanks after the size
	sizeLF                       // the LF after the size
	inData
	dataCR // the CR after the data
	dataLF
	inTrailer
	trailerLF // the LF after a CR among the trailers
	chunksOver
)

// decode takes the next bytes. What they hold of the body is moved together in
// place, so that data is a part of b; a read with one chunk moves nothing. Rest is
// what follows the body's end.
func (c *chunked) decode(b []byte) (data, rest []byte, err error) {
	first, end := 0, 0
	for i := 0; i < len(b); {
		if c.step == inData {
			n := int(min(c.left, uint64(len(b)-i)))
			if end == 0 {
				first, end = i, i
			}
			if end != i {
				copy(b[end:], b[i:i+n])
			}
			end, i = end+n, i+n
			if c.left -= uint64(n); c.left == 0 {
				c.step = dataCR
			}
			continue
		}
		if c.step == chunksOver {
			return b[first:end], b[i:], nil
		}
		if err := c.frame(b[i]); err != nil {
			return b[first:end], nil, err
		}
		i++
	}
	return b[first:end], nil, nil
}

// over says that the body has ended.
func (c *chunked) over() bool { return c.step == chunksOver }

// clean says that nothing follows the data decoded last but its own line end.
func (c *chunked) clean() bool {
	return c.step == inData || c.step == dataCR || c.step == dataLF || c.step == inSize && c.seen == 0
}

var (
	errChunk   = errors.New("malformed chunked encoding")
	errTrailer = fmt.Errorf("%w: its trailers are longer than %d KiB", errChunk, trailers>>10)
)

// frame takes a byte that is no data.
func (c *chunked) frame(b byte) error {
	switch c.step {
	case inSize, inExtension, inBlank, sizeLF:
		return c.size(b)
	case dataCR:
		if b != '\r' {
			return errChunk
		}
		c.step = dataLF
	case dataLF:
		if b != '\n' {
			return errChunk
		}
		*c = chunked{}
	default:
		return c.trailer(b)
	}
	return nil
}

// size takes a byte of the line with a chunk's size.
func (c *chunked) size(b byte) error {
	if c.seen++; c.seen > chunkLine {
		return fmt.Errorf("%w: a line of over %d KiB", errChunk, chunkLine>>10)
	}
	switch {
	case c.step == sizeLF:
		if b != '\n' {
			return errChunk
		}
		*c = chunked{left: c.left, step: inData}
		if c.left == 0 {
			c.step = inTrailer
		}
		return nil
	case b == '\r':
		if c.digit == 0 {
			return fmt.Errorf("%w: a chunk without a size", errChunk)
		}
		c.step = sizeLF
		return nil
	case b == '\n':
		return fmt.Errorf("%w: a line that ends in LF alone", errChunk)
	case c.step == inExtension:
		return nil
	}
	digit, ok := hexDigit(b)
	switch {
	case ok && c.digit < 16 && c.step == inSize:
		c.left, c.digit = c.left<<4|uint64(digit), c.digit+1
	case b == ' ' && c.digit > 0, b == '\t' && c.digit > 0:
		c.step = inBlank
	case b == ';' && c.digit > 0 && c.step == inSize:
		c.step = inExtension
	default:
		return fmt.Errorf("%w: a bad size", errChunk)
	}
	return nil
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}

// trailer takes a byte after the last chunk. What trailers say is not asked.
func (c *chunked) trailer(b byte) error {
	if c.seen++; c.seen > trailers {
		return errTrailer
	}
	switch {
	case c.step == trailerLF && b != '\n':
		return errChunk
	case b == '\r':
		c.step = trailerLF
	case b != '\n':
		c.line = true
	case c.line:
		c.line, c.step = false, inTrailer
	default:
		c.step = chunksOver
	}
	return nil
}
