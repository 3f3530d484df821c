package capacity

import (
	"math"
	"testing"
)

func TestServedRate(t *testing.T) {
	// 10 ms apart from the 51st to the 171st of 200; before and behind, a second.
	ends, at := make([]int64, 200), int64(0)
	for i := range ends {
		if at += 1e9; i > 50 && i <= 170 {
			at += 10e6 - 1e9
		}
		ends[i] = at
	}
	if rps, ok := ServedRate(ends); !ok || math.Abs(rps-100) > 1e-9 {
		t.Errorf("%v %v", rps, ok)
	}
	if _, ok := ServedRate(ends[:39]); ok {
		t.Error("39 answers are too few")
	}
}
