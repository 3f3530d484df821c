package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exampleFrames are payloads of all kinds, as a recorder writes them.
func exampleFrames(t testing.TB) [][]byte {
	t.Helper()
	dir := t.TempDir()
	r, err := create(dir, fullMeta(), journalOptions{size: 1 << 16, write: true, clocks: func() (int64, int64) { return 1, 2 }})
	must(t, err)
	tr := fullTrace()
	play(t, r, &tr)
	must(t, r.Text(1, 0, "p", "a", "r"))
	must(t, r.Sample(Sample{TimeNs: 1}))
	must(t, r.Abandon())
	var frames [][]byte
	_, err = replay(filepath.Join(dir, journalFolder), func(p []byte) error {
		frames = append(frames, bytes.Clone(p))
		return nil
	}, func() { t.Error("damage in a whole journal") })
	must(t, err)
	return frames
}

// FuzzReplay damages a journal at any place, or cuts it there: the frames before
// the damage stay, nothing panics. It also feeds payloads of any content, with
// right checksums, to the stitcher.
func FuzzReplay(f *testing.F) {
	frames := exampleFrames(f)
	data := segmentHeader{}.append(nil)
	ends := []int{len(data)}
	for _, p := range frames {
		n := frameSize(len(p))
		data = append(data, make([]byte, n)...)
		putFrame(data[len(data)-n:], p)
		ends = append(ends, len(data))
	}
	whole := len(data)
	data = append(data, make([]byte, 100)...)
	for _, p := range frames {
		f.Add(uint(len(p)*3), byte(1), false, p)
	}
	f.Add(uint(whole), byte(0xff), true, []byte{kindEnd, 7, 1})
	f.Fuzz(func(t *testing.T, at uint, flip byte, cut bool, payload []byte) {
		at = headerSize + at%uint(len(data)-headerSize)
		damaged := bytes.Clone(data)
		if damaged[at] ^= flip; cut {
			damaged = damaged[:at]
		}
		intact, _ := slices.BinarySearch(ends, int(at)+1)
		if intact--; flip == 0 && !cut {
			intact = len(frames)
		}
		seen := 0
		good, _, err := replaySegment(damaged, headerSize, func(_ int, p []byte) error {
			if seen < intact && !bytes.Equal(p, frames[seen]) {
				t.Errorf("frame %d is %x, want %x", seen, p, frames[seen])
			}
			seen++
			return nil
		})
		if err != nil || seen < intact || good < ends[intact] {
			t.Errorf("%d frames up to byte %d after damage at %d, want %d up to %d (%v)", seen, good, at, intact, ends[intact], err)
		}
		s := newStitcher(func(tr *Trace) error { return checkLists(tr) })
		for _, p := range append(frames[:len(frames):len(frames)], payload) {
			if len(p) == 0 {
				continue
			}
			if err := s.add(p); err != nil && !errors.Is(err, errPayload) {
				t.Errorf("payload %x: %v", p, err)
			}
			s.lost()
		}
		if err := s.rest(); err != nil && !errors.Is(err, errPayload) {
			t.Error(err)
		}
	})
}

// damagedRun leaves a journal of many small segments, one request each after
// another with three arrivals, and one request that lasts for all of them.
func damagedRun(t *testing.T, requests int) (dir string, segments []string) {
	t.Helper()
	dir = t.TempDir()
	r, err := create(dir, Meta{}, journalOptions{size: 1024, clocks: func() (int64, int64) { return 1, 2 }})
	must(t, err)
	must(t, r.Begin(&Trace{Index: 1000}))
	for i := range int64(requests) {
		tr := Trace{Index: i, Due: i, Outcome: OK, Arrivals: Arrivals{
			DeltaNs: []int64{1, 2, 3}, Tokens: []int32{1, 1, 1}, Read: []int32{1, 2, 3},
			StampErrorNs: []int64{0, 0, 0}, Channel: []int8{0, 0, 0}, TextBytes: []int32{1, 1, 1},
		}}
		play(t, r, &tr)
		must(t, r.Arrive(1000, 0, Arrival{At: i, Tokens: 1}))
	}
	must(t, r.Abandon())
	segments, err = segmentsOf(filepath.Join(dir, journalFolder))
	must(t, err)
	if len(segments) < 5 {
		t.Fatalf("only %d segments", len(segments))
	}
	return dir, segments
}

func edit(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(b), 0o666))
}

func TestDamage(t *testing.T) {
	const requests = 60
	for _, c := range []struct {
		name    string
		segment int // of those that are damaged
		change  func(b []byte) []byte
		why     string // of the damage reported; empty for a torn tail
		offset  int64
	}{
		{"flipped bit", 1, func(b []byte) []byte { b[500] ^= 4; return b }, "torn or damaged", -1},
		{"overwritten with zeros", 1, func(b []byte) []byte { clear(b[300:600]); return b }, "torn or damaged", -1},
		{"cut", 2, func(b []byte) []byte { return b[:headerSize] }, "empty", headerSize},
		{"header", 1, func(b []byte) []byte { b[20]++; return b }, "damaged header", 0},
		{"cut between frames", 2, func(b []byte) []byte {
			_, n := nextFrame(b[headerSize:])
			return b[:headerSize+n]
		}, "cut off", -1},
		{"no header", 1, func(b []byte) []byte { return b[:10] }, "not a segment", 0},
		{"missing", 2, nil, "missing", 0},
		{"all zeros", 2, func(b []byte) []byte { clear(b); return b }, "empty", 0},
		{"torn tail", -1, func(b []byte) []byte { return b[:len(b)-3] }, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, segments := damagedRun(t, requests)
			at := c.segment
			if at < 0 {
				at = len(segments) - 1
			}
			path := filepath.Join(dir, journalFolder, segments[at])
			if c.change == nil {
				must(t, os.Remove(path))
			} else {
				edit(t, path, c.change)
			}
			report, err := Recover(dir)
			must(t, err)
			if c.why == "" {
				if len(report.Damages) != 0 || report.Torn == 0 || report.Kept != "" {
					t.Fatalf("report %+v", report)
				}
			} else {
				if len(report.Damages) != 1 || !strings.Contains(report.Damages[0].Why, c.why) || report.Damages[0].Segment != segments[at] {
					t.Fatalf("damages %v, want %s: %s", report.Damages, segments[at], c.why)
				}
				if c.offset >= 0 && report.Damages[0].Offset != c.offset {
					t.Errorf("at byte %d, want %d", report.Damages[0].Offset, c.offset)
				}
				if _, err := os.Stat(filepath.Join(report.Kept, segments[0])); err != nil {
					t.Errorf("the damaged journal was not kept: %v", err)
				}
			}
			_, got := readAll(t, dir)
			whole := 0
			for _, g := range got {
				switch {
				case g.Outcome == OK:
					whole++
					if !slices.Equal(g.DeltaNs, []int64{1, 2, 3}) {
						t.Errorf("request %d: gaps %v", g.Index, g.DeltaNs)
					}
				case g.Index == 1000:
					for i, d := range g.DeltaNs { // a prefix, without a gap where frames were lost
						if d != min(int64(i), 1) {
							t.Errorf("arrival %d of the long request comes %d ns after the one before", i, d)
						}
					}
					if damaged := c.why != ""; slices.Contains(g.Notes, NoteDamaged) != damaged {
						t.Errorf("notes of the long request: %v", g.Notes)
					}
				}
			}
			// A segment holds about ten requests; one or two more are cut.
			if whole < requests-14 || (c.why != "" && whole >= requests) {
				t.Errorf("%d whole requests of %d", whole, requests)
			}
		})
	}
}

func TestJournalOfOtherVersion(t *testing.T) {
	dir, segments := damagedRun(t, 60)
	path := filepath.Join(dir, journalFolder, segments[0])
	edit(t, path, func(b []byte) []byte {
		b = bytes.Clone(b)
		h := segmentHeader{}.append(nil)
		h[8] = 9
		return append(fixHeader(h), b[headerSize:]...)
	})
	if _, err := Recover(dir); !errors.Is(err, errVersion) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the journal is gone: %v", err)
	}
}

// A death of the process in the middle of compaction, or before the journal is
// removed, leaves a folder that Recover finishes.
func TestInterruptedCompaction(t *testing.T) {
	dir, _ := damagedRun(t, 60)
	work := filepath.Join(dir, journalFolder, workFolder)
	must(t, os.Mkdir(work, 0o777))
	must(t, os.WriteFile(filepath.Join(work, RequestsFile), []byte("PAR1 half"), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, SeriesFile), []byte("of the try before"), 0o666))
	kept := filepath.Join(t.TempDir(), journalFolder)
	must(t, os.CopyFS(kept, os.DirFS(filepath.Join(dir, journalFolder))))
	report, err := Recover(dir)
	if err != nil || report.Requests != 61 || report.Incomplete != 1 {
		t.Fatalf("report %+v, %v", report, err)
	}
	_, want := readAll(t, dir)
	must(t, os.CopyFS(filepath.Join(dir, journalFolder), os.DirFS(kept)))
	if report, err = Recover(dir); err != nil || !report.Finished {
		t.Fatalf("report %+v, %v", report, err)
	}
	if _, err := os.Stat(filepath.Join(dir, journalFolder)); err == nil {
		t.Error("the journal of a finished recording is still there")
	}
	if _, got := readAll(t, dir); len(got) != len(want) {
		t.Errorf("%d traces, want %d", len(got), len(want))
	}
}

func fixHeader(h []byte) []byte {
	var fixed segmentHeader
	other := fixed.append(nil)
	copy(other, h)
	sum := crc32.Checksum(other[:headerSize-crcSize], castagnoli)
	binary.LittleEndian.PutUint32(other[headerSize-crcSize:], sum)
	return other
}
