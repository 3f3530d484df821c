package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// elementMax bounds one line, or one element of an array: its size has 24 bits
// in a place.
const elementMax = 1<<24 - 1

var errLong = fmt.Errorf("longer than %d bytes", elementMax)

// An element is one row of a data set as it stands in the file.
type element struct {
	offset int64
	line   int64 // from 1; of Parquet, the row
	row    int64 // of an array, from 1; 0 elsewhere
	data   []byte
	err    error  // it cannot be read at all; data is empty
	id     string // that such a row begins with
}

// bad says where in the file it is that err was found: a line of an array may hold
// all of its rows, so that the row and its id are said too.
func (e *element) bad(err error) error {
	err = fmt.Errorf("line %d: %w", e.line, err)
	if e.row == 0 {
		return err
	}
	id := e.id
	if id == "" {
		id = idOf(e.data)
	}
	if id != "" {
		return fmt.Errorf("%w (row %d, id %q)", err, e.row, id)
	}
	return fmt.Errorf("%w (row %d)", err, e.row)
}

var idPattern = regexp.MustCompile(`"(?:id|conversation_id|question_id)"\s*:\s*"?([^"\\,}\s]{1,80})`)

// idOf is the id that a row begins with, which need not be good JSON; empty for
// none.
func idOf(data []byte) string {
	if m := idPattern.FindSubmatch(data[:min(len(data), 256)]); m != nil {
		return string(m[1])
	}
	return ""
}

// splitLines calls each for every line that is not blank, until it fails. The
// data are good until it returns.
func splitLines(r io.Reader, each func(element) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	var long []byte
	offset := int64(0)
	for n := int64(1); ; n++ {
		e := element{offset: offset, line: n}
		part, err := in.ReadSlice('\n')
		offset += int64(len(part))
		e.data = part
		if err == bufio.ErrBufferFull {
			long = append(long[:0], part...)
			for err == bufio.ErrBufferFull {
				part, err = in.ReadSlice('\n')
				offset += int64(len(part))
				if len(long) <= elementMax {
					long = append(long, part...)
				}
			}
			e.data = long
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			if rest := bytes.TrimPrefix(e.data, []byte("\ufeff")); len(rest) < len(e.data) {
				e.offset, e.data = 3, rest
			}
		}
		if len(e.data) > elementMax {
			e.data, e.err = nil, errLong
		}
		e.data = bytes.TrimRight(e.data, " \t\r\n")
		if len(e.data) > 0 || e.err != nil {
			if bad := each(e); bad != nil {
				return bad
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// splitArray calls each for every element of one JSON array of objects, which
// is never in memory as a whole. It only matches brackets; whether an element
// is good JSON is for its reader to say. What stands between elements other
// than commas is an element that cannot be read.
func splitArray(r io.Reader, each func(element) error) error {
	s := &arraySplitter{in: bufio.NewReaderSize(r, 1<<16), line: 1}
	row := int64(0)
	for {
		c, err := s.next()
		if err != nil {
			return errors.New("it does not begin with [")
		}
		if c == '[' {
			break
		}
	}
	for {
		c, err := s.next()
		switch {
		case err == io.EOF:
			return each(element{line: s.line, err: errors.New("the file ends before the array's closing ]")})
		case err != nil:
			return fmt.Errorf("line %d: %w", s.line, err)
		case c == ']':
			return nil
		case c == ',' || blank(c):
			continue
		}
		e, end, err := s.element(c)
		if err != nil {
			return err
		}
		row++
		e.row = row
		if bad := each(e); bad != nil || end {
			return bad
		}
	}
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

type arraySplitter struct {
	in     *bufio.Reader
	offset int64 // of the next byte
	line   int64 // of the next byte
	buf    []byte
}

func (s *arraySplitter) next() (byte, error) {
	c, err := s.in.ReadByte()
	if err == nil {
		s.offset++
		if c == '\n' {
			s.line++
		}
	}
	return c, err
}

// element reads the element that begins with c; end says that the file ended in
// it, or the array right behind it.
func (s *arraySplitter) element(c byte) (e element, end bool, err error) {
	e = element{offset: s.offset - 1, line: s.line}
	s.buf = s.buf[:0]
	depth, quoted, escaped := 0, false, false
	for {
		if len(s.buf) <= elementMax {
			s.buf = append(s.buf, c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth <= 0 && !quoted && (c == '}' || c == ']') {
			break
		}
		if depth == 0 && !quoted {
			// A bare value ends before what follows it.
			peek, err := s.in.Peek(1)
			if err != nil || peek[0] == ',' || peek[0] == ']' || peek[0] == '\n' {
				break
			}
		}
		if c, err = s.next(); err == io.EOF {
			e.err, e.id = errors.New("the object that begins here is never closed"), idOf(s.buf)
			return e, true, nil
		} else if err != nil {
			return e, true, fmt.Errorf("line %d: %w", s.line, err)
		}
	}
	if len(s.buf) > elementMax {
		e.err, e.id = errLong, idOf(s.buf)
		return e, false, nil
	}
	e.data = s.buf
	return e, false, nil
}
