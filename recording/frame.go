package recording

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// The byte format of the journal; docs/journal.md describes it for readers.
const (
	segmentMagic   = "fermataj"
	segmentVersion = 1
	headerSize     = 64
	segmentSize    = 4 << 20 // the most of a segment, but for one that holds a bigger frame
	segmentStep    = 1 << 20 // the first four have this, the next four twice that, and so on
	maxFrame       = 1 << 30 // longer than any frame: what claims to be longer is damage
	crcSize        = 4
)

// Kinds of frames. A kind byte with the arrival bit is an arrival, and its other
// bits belong to it.
const (
	kindMeta      = 1
	kindBegin     = 2
	kindSent      = 3
	kindFirstByte = 4
	kindEnd       = 5
	kindText      = 6
	kindSample    = 7
	kindNext      = 8 // the last frame of a full segment: more follows in the next

	arrivalBit   = 0x80
	arrivalTry   = 0x40 // a try number other than 0 follows the index
	arrivalText  = 0x20
	tokensMask   = 0x18
	tokensAny    = 0x00 // not known yet
	tokensOne    = 0x08
	tokensGiven  = 0x10 // a number follows
	channelMask  = 0x07
	channelGiven = 0x07 // a number follows
)

// nextFrameSize is the room that every segment keeps for its kindNext frame.
const nextFrameSize = 1 + crcSize + 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A segmentHeader opens every segment file.
type segmentHeader struct {
	Number int
	Run    [16]byte // the same in all segments of a recording
	Wall   int64    // Unix ns
	Mono   int64    // ns since the journal was created, read together with Wall
}

func (h segmentHeader) append(b []byte) []byte {
	start := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint16(b, segmentVersion)
	b = binary.LittleEndian.AppendUint16(b, headerSize)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Number))
	b = append(b, h.Run[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Wall))
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Mono))
	b = append(b, make([]byte, headerSize-crcSize-(len(b)-start))...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

var errVersion = errors.New("the journal was written by another version of fermata")

// parseHeader reads the header of a segment and says how many bytes it takes.
func parseHeader(b []byte) (segmentHeader, int, error) {
	var h segmentHeader
	if len(b) < headerSize || string(b[:8]) != segmentMagic {
		return h, 0, errors.New("not a segment of a journal")
	}
	if crc32.Checksum(b[:headerSize-crcSize], castagnoli) != binary.LittleEndian.Uint32(b[headerSize-crcSize:]) {
		return h, 0, errors.New("damaged header")
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != segmentVersion {
		return h, 0, errVersion
	}
	h.Number = int(binary.LittleEndian.Uint32(b[12:]))
	copy(h.Run[:], b[16:32])
	h.Wall = int64(binary.LittleEndian.Uint64(b[32:]))
	h.Mono = int64(binary.LittleEndian.Uint64(b[40:]))
	return h, headerSize, nil
}

// frameSize is the number of bytes that a payload of n bytes takes.
func frameSize(n int) int { return uvarintLen(uint64(n)) + crcSize + n }

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// putFrame writes a frame into m, which has exactly its size. The first byte of
// the length is stored last: it is what makes the frame visible, so that a
// process killed in the middle leaves the end of the segment behind.
func putFrame(m, payload []byte) {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(payload)))
	copy(m[n+crcSize:], payload)
	binary.LittleEndian.PutUint32(m[n:], crc32.Checksum(payload, castagnoli))
	for i := n - 1; i >= 0; i-- {
		m[i] = length[i]
	}
}

// nextFrame is the payload of the first frame in b and the bytes that the frame
// takes. At the end of the frames, or where they are damaged, n is 0.
func nextFrame(b []byte) (payload []byte, n int) {
	length, k := binary.Uvarint(b)
	if k <= 0 || length == 0 || length > maxFrame || uint64(len(b)-k) < length+crcSize {
		return nil, 0
	}
	payload = b[k+crcSize : k+crcSize+int(length)]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(b[k:]) {
		return nil, 0
	}
	return payload, k + crcSize + int(length)
}

// lastNonZero is the number of bytes of b up to its last one that is not zero.
func lastNonZero(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return n
}
