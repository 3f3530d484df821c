// Package sse splits a server-sent event stream into its events as the bytes
// arrive, without copying them where an event lies within one read.
package sse

import (
	"bytes"
	"fmt"
)

// MaxLine is the longest line, and the most data of one event, in bytes. Real
// servers send whole answers and encrypted reasoning in one line.
const MaxLine = 32 << 20

// An Event is one event of the stream. Its bytes are valid during the call that
// hands it over.
type Event struct {
	Name []byte // of the event: field, empty without one; "error" for an error: field
	Data []byte // all data lines, joined by LF; never empty
}

// A Splitter takes the bytes of one stream in pieces of any size. Its zero value
// is ready. Lines end in LF, CRLF or CR; the fields id and retry and unknown ones
// are ignored; an event without data is none. The field error:, which old
// llama.cpp servers send, is an event named "error".
type Splitter struct {
	Comments int64 // comment lines so far: servers send them to keep a connection alive

	part    []byte // a line whose end has not come
	name    []byte
	data    []byte // data of the pending event; borrowed from the feed unless owned
	keep    []byte // memory of owned data
	owned   bool
	hasData bool
	skipLF  bool // the last line ended in CR: a LF that follows belongs to it
	begun   bool // the first line is over
	err     error
}

// Feed takes the next bytes and hands over each event that they complete. An
// error of emit stops it; after any error the splitter gives only that error.
func (s *Splitter) Feed(b []byte, emit func(ev Event) error) error {
	if s.err != nil {
		return s.err
	}
	lf := -1 // next LF at or after the position, looked for once
	for at := 0; at < len(b); {
		if s.skipLF {
			s.skipLF = false
			if b[at] == '\n' {
				at++
				continue
			}
		}
		if lf < at {
			if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
				lf = at + i
			} else {
				lf = len(b)
			}
		}
		end := lf
		if i := bytes.IndexByte(b[at:lf], '\r'); i >= 0 {
			end = at + i
			s.skipLF = true
		}
		if end == len(b) {
			return s.hold(b[at:])
		}
		if err := s.line(b[at:end], emit); err != nil {
			return err
		}
		at = end + 1
	}
	return s.hold(nil)
}

// Close ends the stream: a line or an event that was not finished is taken as
// if it were. It reports whether that gave an event.
func (s *Splitter) Close(emit func(ev Event) error) (unterminated bool, err error) {
	if s.err != nil {
		return false, s.err
	}
	if len(s.part) > 0 {
		if err := s.line(nil, emit); err != nil {
			return false, err
		}
	}
	unterminated = len(s.data) > 0
	return unterminated, s.dispatch(emit)
}

// hold keeps what the next feed would overwrite: the pending event's data and
// the beginning of a line.
func (s *Splitter) hold(tail []byte) error {
	if s.hasData && !s.owned {
		s.own()
	}
	if len(s.part)+len(tail) > MaxLine {
		return s.tooLong("a line")
	}
	s.part = append(s.part, tail...)
	return nil
}

func (s *Splitter) own() {
	s.keep = append(s.keep[:0], s.data...)
	s.data, s.owned = s.keep, true
}

func (s *Splitter) tooLong(what string) error {
	s.err = fmt.Errorf("splitting the event stream: %s is longer than %d MiB", what, MaxLine>>20)
	return s.err
}

// line takes one whole line: the part that is held and its rest.
func (s *Splitter) line(rest []byte, emit func(ev Event) error) error {
	l := rest
	if len(s.part) > 0 {
		s.part = append(s.part, rest...)
		l, s.part = s.part, s.part[:0] // nothing writes to part before hold has copied the data
	}
	if len(l) > MaxLine {
		return s.tooLong("a line")
	}
	if !s.begun {
		s.begun = true
		l = bytes.TrimPrefix(l, []byte("\xef\xbb\xbf"))
	}
	if len(l) == 0 {
		return s.dispatch(emit)
	}
	field, value, _ := bytes.Cut(l, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "":
		s.Comments++
	case "event":
		s.name = append(s.name[:0], value...)
	case "error":
		s.name = append(s.name[:0], "error"...)
		return s.addData(value)
	case "data":
		return s.addData(value)
	}
	return nil
}

func (s *Splitter) addData(value []byte) error {
	if !s.hasData {
		s.data, s.hasData, s.owned = value, true, false
		return nil
	}
	if len(s.data)+1+len(value) > MaxLine {
		return s.tooLong("an event")
	}
	if !s.owned {
		s.own()
	}
	s.keep = append(append(s.keep, '\n'), value...)
	s.data = s.keep
	return nil
}

func (s *Splitter) dispatch(emit func(ev Event) error) error {
	ev := Event{Name: s.name, Data: s.data}
	s.data, s.hasData, s.name = nil, false, s.name[:0]
	if len(ev.Data) == 0 {
		return nil
	}
	if err := emit(ev); err != nil {
		s.err = err
	}
	return s.err
}
