package stats

import (
	"math"
	"testing"
)

// The ranks and coverages are scipy 1.17's binom (equal tails); 0 stands for no
// end.
func TestOrderIntervalsOfIndependentValues(t *testing.T) {
	for _, c := range []struct {
		n         int64
		p, level  float64
		low, high int64
		covers    float64
	}{
		{100, 0.5, 0.95, 40, 61, .9648},
		{100, 0.9, 0.95, 84, 96, .9557},
		{100, 0.99, 0.95, 97, 0, .9816},
		{100, 0.5, 0.99, 37, 64, .9934},
		{100, 0.9, 0.99, 82, 98, .9935},
		{100, 0.99, 0.99, 96, 0, .9966},
		{300, 0.5, 0.95, 133, 168, .9569},
		{300, 0.9, 0.95, 259, 281, .9662},
		{300, 0.99, 0.95, 293, 0, .9885},
		{300, 0.5, 0.99, 128, 173, .9907},
		{300, 0.9, 0.99, 256, 284, .9933},
		{300, 0.99, 0.99, 292, 0, .9964},
		{1000, 0.5, 0.95, 469, 532, .9537},
		{1000, 0.9, 0.95, 881, 919, .9549},
		{1000, 0.99, 0.95, 983, 997, .9761},
		{1000, 0.5, 0.99, 459, 542, .9914},
		{1000, 0.9, 0.99, 875, 925, .9917},
		{1000, 0.99, 0.99, 981, 998, .9940},
		{10000, 0.5, 0.95, 4902, 5099, .9512},
		{10000, 0.9, 0.95, 8941, 9059, .9508},
		{10000, 0.99, 0.95, 9880, 9920, .9558},
		{10000, 0.5, 0.99, 4871, 5130, .9904},
		{10000, 0.9, 0.99, 8922, 9078, .9907},
		{10000, 0.99, 0.99, 9873, 9926, .9923},
	} {
		low, high := OrderIntervalAt(c.n, c.p, float64(c.n), c.level)
		if low != c.low || high != c.high {
			t.Errorf("n %d, p %v at %v: %d … %d, want %d … %d", c.n, c.p, c.level, low, high, c.low, c.high)
		}
		// P(low <= B <= high-1)
		covers, n := 1.0, float64(c.n)
		if low > 0 {
			covers = Beta(c.p, float64(low), n-float64(low)+1)
		}
		if high > 0 {
			covers -= Beta(c.p, float64(high), n-float64(high)+1)
		}
		if math.Abs(covers-c.covers) > 5e-5 {
			t.Errorf("n %d, p %v at %v covers %.4f, want %.4f", c.n, c.p, c.level, covers, c.covers)
		}
	}
}

// From how many independent values on an interval has an upper end:
// ⌈log(half)/log(p)⌉.
func TestSmallestCountWithAnEnd(t *testing.T) {
	for _, c := range []struct {
		level float64
		p     []float64
		want  []int64
	}{
		{0.95, []float64{.5, .9, .95, .99, .999}, []int64{6, 36, 72, 368, 3688}},
		{0.99, []float64{.5, .9, .95, .99, .999}, []int64{8, 51, 104, 528, 5296}},
		{0.90, []float64{.5, .9, .95, .99, .999}, []int64{5, 29, 59, 299, 2995}}, // one-sided 95 %
		{0.98, []float64{.5, .9, .95, .99, .999}, []int64{7, 44, 90, 459, 4603}}, // one-sided 99 %
	} {
		for i, p := range c.p {
			if got := SmallestClosed(p, c.level); got != c.want[i] {
				t.Errorf("p%v at %v: %d, want %d", 100*p, c.level, got, c.want[i])
			}
			for n := c.want[i] - 1; n <= c.want[i]; n++ {
				if _, high := OrderIntervalAt(n, p, float64(n), c.level); (high > 0) != (n == c.want[i]) {
					t.Errorf("p%v at %v: %d values end at rank %d", 100*p, c.level, n, high)
				}
			}
		}
	}
}

// 10,000 values worth 1,000 have the ends of 1,000, ten ranks a rank, the last
// fraction of a rank outwards.
func TestEffectiveCount(t *testing.T) {
	for _, p := range []float64{.01, .5, .9, .99} {
		low, high := OrderIntervalAt(1000, p, 1000, Level)
		low10, high10 := OrderIntervalAt(10_000, p, 1000, Level)
		if low10 < 10*low || low10 >= 10*low+10 || high10 > 10*high || high10 <= 10*high-10 {
			t.Errorf("p%v: %d … %d of 10,000, but %d … %d of 1,000", 100*p, low10, high10, low, high)
		}
	}
	if low, high := OrderIntervalAt(10_000, 0.99, 367, Level); low == 0 || high != 0 {
		t.Errorf("worth 367: %d … %d; p99 has no upper end below 368", low, high)
	}
	if _, high := OrderIntervalAt(10_000, 0.99, 368, Level); high == 0 {
		t.Error("worth 368, and yet no upper end of p99")
	}
	if low, high := OrderIntervalAt(10_000, 0.5, 0.01, Level); low != 0 || high != 0 {
		t.Errorf("worth a hundredth of a value: %d … %d", low, high)
	}
}
