package recording

import (
	"errors"
	"fmt"
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

// replay hands the payloads of a journal to visit, in order. Where frames are
// lost before the end it calls lost and goes on with the next segment. A frame
// that visit finds malformed (errPayload) is passed over as damage too; any other
// error ends the replay.
func replay(journalDir string, visit func(payload []byte) error, lost func()) (replayed, error) {
	var r replayed
	names, err := segmentsOf(journalDir)
	if err != nil {
		return r, err
	}
	var tail *Damage // how the segment before ended, if not with kindNext
	var run [16]byte
	expected := 0
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(journalDir, name))
		if err != nil {
			return r, err
		}
		h, off, headerErr := parseHeader(data)
		if errors.Is(headerErr, errVersion) {
			return r, fmt.Errorf("%s: %w", name, headerErr)
		}
		// What looks like the end of the journal is damage if more follows.
		more := headerErr == nil && holdsFrame(data[off:])
		if tail != nil && more {
			r.damages = append(r.damages, *tail)
			lost()
			tail = nil
		}
		n := segmentNumber(name)
		if n != expected && more {
			r.damages = append(r.damages, Damage{Segment: segmentName(expected), Why: "the segment is missing"})
			lost()
		}
		expected = n + 1
		if lastNonZero(data) <= off {
			// Made ahead and never used, unless more follows.
			tail = foldTail(&r, tail, Damage{Segment: name, Offset: int64(off), Why: "the segment is empty"})
			continue
		}
		if headerErr != nil {
			tail = foldTail(&r, tail, Damage{Segment: name, Bytes: int64(lastNonZero(data)), Why: headerErr.Error()})
			continue
		}
		if run == [16]byte{} {
			run = h.Run
		} else if h.Run != run {
			return r, fmt.Errorf("%s belongs to another recording", name)
		}
		good, ended, err := replaySegment(data, off, func(at int, payload []byte) error {
			err := visit(payload)
			if errors.Is(err, errPayload) {
				r.damages = append(r.damages, Damage{name, int64(at), int64(frameSize(len(payload))), err.Error()})
				lost()
				return nil
			}
			return err
		})
		if err != nil {
			return r, fmt.Errorf("reading %s: %w", name, err)
		}
		if !ended {
			d := Damage{Segment: name, Offset: int64(good), Bytes: int64(lastNonZero(data[good:])), Why: "the frame is torn or damaged"}
			if d.Bytes == 0 {
				d.Why = "the segment is cut off"
			}
			tail = foldTail(&r, tail, d)
		}
	}
	if tail != nil {
		r.torn += tail.Bytes
	}
	return r, nil
}

// foldTail keeps the first place after the last good frame; what stands in later
// ones is torn as well.
func foldTail(r *replayed, tail *Damage, d Damage) *Damage {
	if tail != nil {
		r.torn += d.Bytes
		return tail
	}
	return &d
}

func holdsFrame(b []byte) bool {
	_, n := nextFrame(b)
	return n > 0
}

// replaySegment visits the frames of one segment from off on. It says where the
// good ones end, and whether the segment ended as a full one does.
func replaySegment(data []byte, off int, visit func(at int, payload []byte) error) (good int, ended bool, err error) {
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
