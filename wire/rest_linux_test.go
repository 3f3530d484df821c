package wire

import (
	"math/rand/v2"
	"testing"
)

// The spin settles where one sleep of fifty ends later than it, within what a core
// may be asked for.
func TestSpin(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name        string
		late        func() int64
		least, most spin
	}{
		{"even up to 150 µs", func() int64 { return draw.Int64N(150_000) }, 140_000, 150_000},
		{"exponential, mean 30 µs", func() int64 { return int64(30_000 * draw.ExpFloat64()) }, 105_000, 130_000}, // 30 ln 50 = 117
		{"never", func() int64 { return 0 }, spinLeast, spinLeast},
		{"always", func() int64 { return 5_000_000 }, spinMost, spinMost},
	} {
		s, sum, n := spin(spinLeast), 0.0, 20_000
		for i := range 2 * n {
			s.learn(c.late())
			if i >= n {
				sum += float64(s)
			}
		}
		if mean := spin(sum / float64(n)); mean < c.least || mean > c.most {
			t.Errorf("late %s: spins %d ns on average, want %d to %d", c.name, mean, c.least, c.most)
		}
	}
	s := spin(0)
	s.learn(1000)
	if s != 0 {
		t.Errorf("the only core spins for %d ns", s)
	}
}
