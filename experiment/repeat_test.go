package experiment

import (
	"strings"
	"testing"
)

// Two systems take turns as ABBA: each pair holds both, and either comes first as
// often as the other.
func TestTurns(t *testing.T) {
	var order strings.Builder
	seen := map[[2]int]bool{}
	for i := range 8 {
		pair, side := turn(i, 2)
		order.WriteByte("AB"[side])
		seen[[2]int{pair, side}] = true
	}
	if order.String() != "ABBAABBA" || len(seen) != 8 {
		t.Errorf("%s, %v", order.String(), seen)
	}
	for i := range 4 {
		if pair, side := turn(i, 1); pair != i || side != 0 {
			t.Errorf("run %d of one system is of pair %d, side %d", i, pair, side)
		}
	}
}
