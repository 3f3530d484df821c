package experiment

import (
	"runtime"
	"runtime/debug"
)

// headroom is how much memory a run takes beside the data set that it keeps: for
// requests that stand ready or are under way, and for garbage. Go's collector would
// let it double what is kept, which of a large data set is a lot, and columns of
// numbers cost it nothing to look through again.
const headroom = 64 << 20

// holdMemory keeps a run that keeps much at headroom beside that, until release is
// called. The collector never takes more than half of the time for it.
func holdMemory() (release func()) {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > headroom/2 {
		runtime.GC() // of the reading of the data set
		runtime.ReadMemStats(&m)
	}
	if m.HeapAlloc <= headroom/2 {
		return func() {}
	}
	before := debug.SetMemoryLimit(int64(m.HeapAlloc) + headroom)
	return func() { debug.SetMemoryLimit(before) }
}

// readFrugally makes the collector work often while a data set or a trace is read,
// until release is called: what is kept of one has next to no pointers, so that
// looking through it is cheap, and the garbage of reading would double it.
func readFrugally() (release func()) {
	before := debug.SetGCPercent(20)
	return func() { debug.SetGCPercent(before) }
}

// collectSeldom makes the collector work half as often until release is called: a
// recording is finished and judged in bounded memory and in a moment, of which the
// collector would take a tenth. Who has set GOGC keeps it.
func collectSeldom() (release func()) {
	before := debug.SetGCPercent(seldom)
	if before != usual {
		debug.SetGCPercent(before)
	}
	return func() { debug.SetGCPercent(before) }
}

// By how many per cent the heap grows until it is looked through: Go's own choice, and
// ours while the load is over.
const (
	usual  = 100
	seldom = 200
)

// giveBack gives the system what is no longer used, where that may be much: a small
// heap is used again, and looking through it costs more than it gives.
func giveBack() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapInuse > headroom/2 {
		debug.FreeOSMemory()
	}
}
