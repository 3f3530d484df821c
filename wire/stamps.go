package wire

import (
	"os"
	"sync/atomic"

	"fermata/recording"
)

// stamps say what this system's kernel tells of the times of bytes. The zero
// value is a system that tells nothing: times are then those of the reader.
type stamps struct {
	receive  bool  // when they were received …
	errorNs  int64 // … which is late by this much at most
	transmit bool  // when they were sent
}

// userStamps in the environment makes stamps those of the reader even where the
// kernel tells, as on other systems: FERMATA_STAMPS=user. It is for tests.
const userStamps = "FERMATA_STAMPS"

// stampsOf is what a transport works with; user leaves the kernel out.
func stampsOf(user bool) stamps {
	if user || os.Getenv(userStamps) == "user" {
		return stamps{}
	}
	return probed()
}

// Settle finds out what this system's stamps are worth, which takes some
// milliseconds. A run does it before its clock starts.
func Settle() { stampsOf(false) }

// Vitals say how the instrument itself fared since somebody last asked.
type Vitals struct {
	Reads int64                // of sockets, that brought something
	Left  int64                // of them, those that left data queued: the reader was behind
	Lag   *recording.Histogram // from the kernel's receipt of bytes to their reading, ns; nil where the kernel does not stamp
	Turn  recording.Maybe[int64]
	// Turn is the longest turn of an event loop, ns, from when it was to begin; absent
	// where there is none.

	// Canary is how late events of a known time were stamped, ns, where the
	// kernel does not stamp; else nil.
	Canary *recording.Histogram
}

// Monitored is a transport that tells how it fares.
type Monitored interface {
	// Vitals are those since the call before. One goroutine calls it.
	Vitals() Vitals
}

// Looped is a transport with event loops.
type Looped interface {
	// Timed is the processor time that they have used, ns.
	Timed() int64
}

// A meter counts for Vitals. It is for concurrent use and costs a few atomic
// additions a read.
type meter struct {
	reads, left atomic.Int64
	lag, canary recording.LiveHistogram
}

func (m *meter) read(got receipt, lagNs int64, kernel bool) {
	m.reads.Add(1)
	if got.left {
		m.left.Add(1)
	}
	if kernel {
		m.lag.Add(lagNs)
	}
}

// take is what came since the call before.
func (m *meter) take(s stamps) Vitals {
	v := Vitals{Reads: m.reads.Swap(0), Left: m.left.Swap(0)}
	if s.receive {
		v.Lag = m.lag.Take()
	} else {
		v.Canary = m.canary.Take()
	}
	return v
}
