package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A Damage is a place in the journal where frames were lost. The frames before
// it and those of the segments after it are kept.
type Damage struct {
	Segment string // file name
	Offset  int64  // of the first byte that is no good frame
	Bytes   int64  // lost from there on, as far as they can be counted
	Why     string
}

// String says where the damage is.
func (d Damage) String() string {
	return fmt.Sprintf("%s at byte %d: %s (%d bytes lost)", d.Segment, d.Offset, d.Why, d.Bytes)
}

// A replayed tells what a replay went through.
type replayed struct {
	torn    int64    // bytes after the last good frame of the journal
	damages []Damage // anywhere before that
}

// A replayer goes through the segments of a journal in order.
type replayer struct {
	replayed
	visit    func(payload []byte) error
	lost     func()
	tail     *Damage // where good frames ended, unless that segment was full
	run      [16]byte
	expected int // number of the next segment
}

// replay hands the payloads of a journal to visit, in order; each is valid until
// visit returns. Where frames are lost before the end it calls lost and goes on with
// the next segment. A frame that visit finds malformed (errPayload) is passed over as
// damage too; any other error ends the replay.
func replay(journalDir string, visit func(payload []byte) error, lost func()) (replayed, error) {
	r := replayer{visit: visit, lost: lost}
	names, err := segmentsOf(journalDir)
	if err != nil {
		return r.replayed, err
	}
	var data []byte
	for _, name := range names {
		data, err = readSegment(filepath.Join(journalDir, name), data)
		if err == nil {
			err = r.segment(name, data)
		}
		if err != nil {
			return r.replayed, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	if r.tail != nil {
		r.torn += r.tail.Bytes
	}
	return r.replayed, nil
}

// readSegment reads a file into buf, which grows as it must.
func readSegment(path string, buf []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return buf, err
	}
	if n := int(info.Size()); n <= cap(buf) {
		buf = buf[:n]
	} else {
		buf = make([]byte, n)
	}
	_, err = io.ReadFull(f, buf)
	return buf, err
}

func (r *replayer) damage(d Damage) {
	r.damages = append(r.damages, d)
	r.lost()
}

// segment replays one file.
func (r *replayer) segment(name string, data []byte) error {
	h, off, headerErr := parseHeader(data)
	if errors.Is(headerErr, errVersion) {
		return headerErr
	}
	// What looks like the end of the journal is damage if more follows.
	more := headerErr == nil && holdsFrame(data[off:])
	if r.tail != nil && more {
		r.damage(*r.tail)
		r.tail = nil
	}
	n := segmentNumber(name)
	if n != r.expected && more {
		r.damage(Damage{Segment: segmentName(r.expected), Why: "the segment is missing"})
	}
	r.expected = n + 1
	if lastNonZero(data) <= off {
		// Made ahead and never used, unless more follows.
		r.ends(Damage{Segment: name, Offset: int64(off), Why: "the segment is empty"})
		return nil
	}
	if headerErr != nil {
		r.ends(Damage{Segment: name, Bytes: int64(lastNonZero(data)), Why: headerErr.Error()})
		return nil
	}
	if r.run == [16]byte{} {
		r.run = h.Run
	} else if h.Run != r.run {
		return errors.New("it belongs to another recording")
	}
	good, full, err := replaySegment(data, off, func(at int, payload []byte) error {
		err := r.visit(payload)
		if err != nil && errors.Is(err, errPayload) {
			r.damage(Damage{name, int64(at), int64(frameSize(len(payload))), err.Error()})
			return nil
		}
		return err
	})
	if err != nil || full {
		return err
	}
	d := Damage{Segment: name, Offset: int64(good), Bytes: int64(lastNonZero(data[good:])), Why: "the frame is torn or damaged"}
	if d.Bytes == 0 {
		d.Why = "the segment is cut off"
	}
	r.ends(d)
	return nil
}

// ends keeps the first place after the last good frame; what stands in later
// ones is torn as well.
func (r *replayer) ends(d Damage) {
	if r.tail != nil {
		r.torn += d.Bytes
		return
	}
	r.tail = &d
}

func holdsFrame(b []byte) bool {
	_, n := nextFrame(b)
	return n > 0
}

// replaySegment visits the frames of one segment from off on. It says where the
// good ones end, and whether the segment was full.
func replaySegment(data []byte, off int, visit func(at int, payload []byte) error) (good int, full bool, err error) {
	for {
		payload, n := nextFrame(data[off:])
		if n == 0 {
			return off, false, nil
		}
		if payload[0] == kindNext {
			return off + n, true, nil
		}
		if err := visit(off, payload); err != nil {
			return off, false, err
		}
		off += n
	}
}
