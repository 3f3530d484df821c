package wire

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever takes the core away between the two clocks, a pair that is said to be
// read together is: the distance of the clocks does not jump from one pair to the
// next by more than it may.
func TestBothClocksAreReadTogether(t *testing.T) {
	var over atomic.Bool
	var busy sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		busy.Go(func() {
			for !over.Load() {
			}
		})
	}
	defer busy.Wait()
	defer over.Store(true)

	clock := NewClock()
	var last, lastAt int64
	apart := 0
	for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; {
		pair, ok := clock.both()
		if !ok {
			apart++
			continue
		}
		at := clock.At(pair)
		distance := at - pair.UnixNano()
		// A wall clock that is being adjusted moves by at most 1 part in 1,000.
		may := int64(clocksWithin) + (at-lastAt)/1000
		if jump := distance - last; lastAt != 0 && (jump > may || -jump > may) {
			t.Fatalf("the clocks are %d ns further apart than in the pair before", jump)
		}
		last, lastAt = distance, at
	}
	t.Logf("%d tries found no pair", apart)
}
