package packed

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
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

// A reader gives what the column does, in whatever order it is asked.
func TestReader(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var c Column
	for range 5_000 {
		c.Add(r.Int64N(1e12))
	}
	reader := c.Reader()
	for i := range c.Len() {
		if got, want := reader.At(i), c.At(i); got != want {
			t.Fatalf("in order: value %d is %d, want %d", i, got, want)
		}
	}
	for i := range 20_000 {
		k := r.IntN(c.Len())
		if i%3 == 0 {
			k = reader.i // again
		}
		if got, want := reader.At(k), c.At(k); got != want {
			t.Fatalf("value %d is %d, want %d", k, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var c Texts
	var want []string
	for i := range 20_000 {
		text := strings.Repeat("é", r.IntN(4))
		switch {
		case i%5_000 == 17:
			text = strings.Repeat("long", chunk)
		case i%4 == 0:
			text = strconv.Itoa(r.IntN(1e9))
		}
		c.Add(text)
		want = append(want, text)
	}
	for i, text := range want {
		if c.At(i) != text {
			t.Fatalf("text %d is %.40q, want %.40q", i, c.At(i), text)
		}
	}
	if c.Len() != len(want) {
		t.Errorf("%d texts", c.Len())
	}
}
