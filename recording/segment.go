package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrHeld says that a folder has a writer already.
var ErrHeld = errors.New("another process is writing it")

func segmentName(number int) string { return fmt.Sprintf("%06d.log", number) }

var segmentPattern = regexp.MustCompile(`^\d{6,}\.log$`)

// segmentsOf lists the segment files of a journal in order of their numbers.
func segmentsOf(journalDir string) ([]string, error) {
	entries, err := os.ReadDir(journalDir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if segmentPattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return segmentNumber(a) - segmentNumber(b) })
	return names, nil
}

func segmentNumber(name string) int {
	n, _ := strconv.Atoi(name[:len(name)-len(".log")])
	return n
}

// A segment is one file of the journal, open for writing. The kernel owns the
// mapped pages, so that a store that happened survives the death of the process
// without a system call.
type segment struct {
	f      *os.File
	mem    []byte // nil where frames are written instead
	size   int
	off    int // bytes used
	synced int // of them, those that are on the disk
	buf    []byte
}

// makeSegment creates a segment file with its header. It is mapped unless that
// is not wanted or not possible; a full disk is an error.
func makeSegment(journalDir string, h segmentHeader, size int, mapped bool) (*segment, error) {
	path := filepath.Join(journalDir, segmentName(h.Number))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	s := &segment{f: f, size: size}
	if mapped {
		err = s.mapFile()
	}
	if err == nil {
		err = s.put(h.append(nil))
	}
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

// mapFile maps the segment, or leaves it to be written where the file system
// cannot.
func (s *segment) mapFile() error {
	err := reserve(s.f, s.size)
	if err == nil {
		s.mem, err = mapShared(s.f, s.size)
	}
	if err == nil || diskFull(err) {
		return err
	}
	s.mem = nil
	return s.f.Truncate(0)
}

// room says whether a frame of n bytes fits and leaves room for the last one.
func (s *segment) room(n int) bool { return s.off+n+nextFrameSize <= s.size }

// put stores bytes that are no frame.
func (s *segment) put(b []byte) error {
	if s.mem != nil {
		copy(s.mem[s.off:], b)
	} else if err := s.write(b); err != nil {
		return err
	}
	s.off += len(b)
	return nil
}

// append stores a frame; the caller has made sure of the room.
func (s *segment) append(payload []byte) error {
	n := frameSize(len(payload))
	if s.mem != nil {
		putFrame(s.mem[s.off:s.off+n], payload)
		s.off += n
		return nil
	}
	s.buf = slices.Grow(s.buf[:0], n)[:n]
	putFrame(s.buf, payload)
	return s.put(s.buf)
}

// write makes one system call. What it wrote of a frame that did not fit on the
// disk is taken back, best effort: the checksum would tell it anyway.
func (s *segment) write(b []byte) error {
	n, err := s.f.WriteAt(b, int64(s.off))
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		_ = s.f.Truncate(int64(s.off))
	}
	return err
}

// finish cuts the file to the bytes used and lets go of it.
func (s *segment) finish() error {
	var err error
	if s.mem != nil {
		err = unmap(s.mem)
		s.mem = nil
	}
	return errors.Join(err, s.f.Truncate(int64(s.off)), s.f.Close())
}

// sync brings what was written so far to the disk. It runs beside append.
func (s *segment) sync(used int) error {
	if used == s.synced {
		return nil
	}
	var err error
	if s.mem != nil {
		err = syncMap(s.mem)
	} else {
		err = s.f.Sync()
	}
	if err == nil {
		s.synced = used
	}
	return err
}

// discard lets go of a segment that was never used and removes its file.
func (s *segment) discard() error {
	var err error
	if s.mem != nil {
		err = unmap(s.mem)
		s.mem = nil
	}
	return errors.Join(err, s.f.Close(), os.Remove(s.f.Name()))
}
