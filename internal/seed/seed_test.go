package seed

import "testing"

// The values come from coreutils, for example
// printf '\x2a\0\0\0\0\0\0\0schedule: gaps' | sha256sum.
func TestDerive(t *testing.T) {
	for _, c := range []struct {
		seed    uint64
		purpose string
		want    uint64
	}{
		{42, "schedule: gaps", 0xe1beb5f44a0213f6},
		{0, "", 0x7a0b81a1f57055af},
	} {
		if got := Derive(c.seed, c.purpose); got != c.want {
			t.Errorf("Derive(%d, %q) = %#x, want %#x", c.seed, c.purpose, got, c.want)
		}
	}
}

func TestPurposesDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(100) {
		for _, purpose := range []string{"a", "b", "a "} {
			seen[Derive(seed, purpose)] = true
		}
	}
	if len(seen) != 300 {
		t.Errorf("300 pairs of seed and purpose gave %d seeds", len(seen))
	}
}

func TestRand(t *testing.T) {
	a, b, other := Rand(7, "x"), Rand(7, "x"), Rand(7, "y")
	same := 0
	for range 100 {
		v := a.Uint64()
		if w := b.Uint64(); v != w {
			t.Fatalf("the same seed and purpose gave %d and %d", v, w)
		}
		if v == other.Uint64() {
			same++
		}
	}
	if same > 0 {
		t.Errorf("two purposes agreed on %d of 100 values", same)
	}
}
