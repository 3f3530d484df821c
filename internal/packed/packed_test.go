package packed

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestColumn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, next := range map[string]func(before int64) int64{
		"ascending": func(b int64) int64 { return b + r.Int64N(1e9) },
		"anything":  func(int64) int64 { return int64(r.Uint64()) },
		"ends":      func(b int64) int64 { return []int64{math.MinInt64, math.MaxInt64, 0}[r.IntN(3)] },
		"equal":     func(b int64) int64 { return b },
	} {
		var c Column
		var want []int64
		for v := int64(0); len(want) < 50_000; v = next(v) {
			c.Add(v)
			want = append(want, v)
		}
		for i, v := range want {
			if c.At(i) != v {
				t.Fatalf("%s: value %d is %d, want %d", name, i, c.At(i), v)
			}
		}
		if c.Len() != len(want) {
			t.Errorf("%s: %d values", name, c.Len())
		}
	}
}

// Small differences take a byte each, and a quarter more for finding them.
func TestSize(t *testing.T) {
	var c Column
	for i := range int64(1 << 20) {
		c.Add(20 * i)
	}
	bytes := len(c.chunks)*chunk + 16*len(c.runs)
	if each := float64(bytes) / (1 << 20); each < 1 || each > 1.4 {
		t.Errorf("%.2f bytes a value", each)
	}
}
