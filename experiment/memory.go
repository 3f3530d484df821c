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

// clearUp has the garbage of what is over collected, so that what follows uses the same
// memory, and gives it back to the system where it is much.
func clearUp() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapInuse > headroom/2 {
		debug.FreeOSMemory()
	} else {
		runtime.GC()
	}
}
