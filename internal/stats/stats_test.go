package stats

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRank(t *testing.T) {
	for _, c := range []struct {
		n    int64
		p    int
		want int64
	}{
		{0, 500, 0},
		{1, 1, 1},
		{1, 999, 1},
		{2, 500, 1},
		{3, 500, 2},
		{10, 900, 9},
		{10, 901, 10},
		{100, 990, 99},
		{101, 990, 100},
		{1000, 999, 999},
		{1001, 999, 1000},
		{130, 10, 2},
		{9_000_000_000_000, 999, 8_991_000_000_000},
	} {
		if got := Rank(c.n, c.p); got != c.want {
			t.Errorf("Rank(%d, %d) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

// The ends are scipy 1.17's binom.ppf(.025, n, p) and 1 + binom.ppf(.975, n, p);
// 0 stands for none.
func TestOrderInterval(t *testing.T) {
	for _, c := range []struct {
		n         int64
		p         int
		low, high int64
	}{
		{0, 500, 0, 0},
		{1, 500, 0, 0},
		{1, 990, 1, 0},
		{5, 500, 0, 0},
		{6, 500, 1, 6},
		{10, 500, 2, 9},
		{10, 10, 0, 2},
		{35, 900, 28, 0},
		{36, 900, 29, 36},
		{71, 950, 63, 0},
		{72, 950, 64, 72},
		{100, 500, 40, 61},
		{100, 900, 84, 96},
		{100, 990, 97, 0},
		{300, 500, 133, 168},
		{300, 900, 259, 281},
		{300, 990, 293, 0},
		{367, 990, 359, 0},
		{368, 990, 360, 368},
		{368, 10, 1, 9},
		{1000, 990, 983, 997},
		{1000, 10, 4, 18},
		{1000, 999, 997, 0},
		{3687, 999, 3679, 0},
		{3688, 999, 3680, 3688},
		{10000, 500, 4902, 5099},
		{10000, 990, 9880, 9920},
		{123457, 950, 117134, 117435},
		{20000000, 500, 9995617, 10004384},
		{20000000, 990, 19799127, 19800873},
		{20000000, 999, 19979722, 19980278},
	} {
		low, high := OrderInterval(c.n, c.p, float64(c.n))
		if low != c.low || high != c.high {
			t.Errorf("OrderInterval(%d, %d) = %d, %d, want %d, %d", c.n, c.p, low, high, c.low, c.high)
		}
	}
}

// The ends are scipy 1.17's beta.ppf.
func TestClopperPearson(t *testing.T) {
	for _, c := range []struct {
		k, n      int64
		low, high float64
	}{
		{0, 0, 0, 1},
		{0, 10, 0.0, 0.3084971078187607},
		{1, 10, 0.0025285785444617848, 0.4450161170281954},
		{5, 10, 0.18708602844739855, 0.8129139715526015},
		{10, 10, 0.6915028921812392, 1.0},
		{3, 7, 0.09898827844250786, 0.8159484323599169},
		{107, 130, 0.7464507751521718, 0.884415174919716},
		{990, 1000, 0.9816867569448875, 0.9951944893089507},
		{999, 1000, 0.9944410757201734, 0.9999746825125088},
		{50, 100000, 0.00037113170178349413, 0.0006591351958693719},
		{19990000, 20000000, 0.9994901049424494, 0.9995097499980474},
		{1, 20000000, 1.2658903984132546e-09, 2.7858213772622013e-07},
		{12345678, 20000000, 0.6170708411988142, 0.6174969248503528},
	} {
		low, high := ClopperPearson(float64(c.k), float64(c.n))
		if math.Abs(low-c.low) > 1e-10*c.low+1e-17 || math.Abs(high-c.high) > 1e-10*c.high {
			t.Errorf("ClopperPearson(%d, %d) = %v, %v, want %v, %v", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

func TestBucketsCoverEverything(t *testing.T) {
	var o Order
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		lo, width := span(o.bucket(v))
		if v < lo || (v-lo >= width && width > 0) {
			t.Fatalf("%d is in the bucket of %d … %d + %d", v, lo, lo, width)
		}
	})
	for _, v := range []int64{math.MinInt64, -513, -512, -1, 0, 1, 511, 512, 513, math.MaxInt64} {
		lo, width := span(o.bucket(v))
		if v < lo || v-lo >= width {
			t.Errorf("%d is in the bucket of %d … %d + %d", v, lo, lo, width)
		}
	}
}

var values = rapid.OneOf(
	rapid.Int64Range(-3, 3), rapid.Int64Range(0, 2000), rapid.Int64Range(20_000_000, 20_001_000),
	rapid.Int64Range(1<<40, 1<<41), rapid.Int64Range(-1<<40, 1<<40), rapid.Just(int64(math.MaxInt64)))

func TestRanksAreThoseOfSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(values, 1, 300).Draw(t, "values")
		o := Order{Limit: rapid.IntRange(1, 400).Draw(t, "limit")}
		half := rapid.IntRange(0, len(vs)).Draw(t, "half")
		for _, v := range vs[:half] {
			o.Add(v)
		}
		o.AddAll(vs[half:])
		ranks := rapid.SliceOfN(rapid.Int64Range(1, int64(len(vs))), 1, 20).Draw(t, "ranks")
		again := o.Seek(ranks...)
		if again != (len(vs) > o.Limit) && again {
			t.Fatalf("kept all %d and asks again", len(vs))
		}
		if again {
			for _, v := range vs {
				o.Again(v)
			}
		}
		slices.Sort(vs)
		for _, r := range ranks {
			if v, ok := o.At(r); !ok || v != vs[r-1] {
				t.Fatalf("rank %d is %d, %v, want %d", r, v, ok, vs[r-1])
			}
		}
		if _, ok := o.At(int64(len(vs)) + 1); ok {
			t.Fatal("there is a rank above n")
		}
	})
}

// Many values in one bucket are counted value by value, few are listed.
func TestCrowdedBuckets(t *testing.T) {
	const n = 200_000
	for _, at := range []int64{20_000_000, 1 << 33} {
		o := Order{Limit: 10}
		vs := make([]int64, n)
		x := uint64(1)
		for i := range vs {
			x = x*6364136223846793005 + 1442695040888963407
			vs[i] = at + int64(x>>33)%40_000
		}
		o.AddAll(vs)
		ranks := []int64{1, n / 2, n - 1, n}
		if !o.Seek(ranks...) {
			t.Fatal("does not ask again")
		}
		for _, v := range vs {
			o.Again(v)
		}
		slices.Sort(vs)
		for _, r := range ranks {
			if v, _ := o.At(r); v != vs[r-1] {
				t.Errorf("rank %d is %d, want %d", r, v, vs[r-1])
			}
		}
	}
}

func TestSumsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(values, 2, 50).Draw(t, "values")
		times := rapid.Int64Range(0, 1<<40).Draw(t, "times")
		d := NewInts(3, 0, 1000)
		half := rapid.IntRange(0, len(vs)).Draw(t, "half")
		d.AddAll(vs[:half])
		for _, v := range vs[half:] {
			d.Add(v)
		}
		if len(vs) > 3 {
			d.AddN(vs[0], times)
		} else {
			times = 0
		}
		sum, sq, n := new(big.Int), new(big.Int), int64(len(vs))+times
		above := int64(0)
		for i, v := range vs {
			k := int64(1)
			if i == 0 {
				k += times
			}
			b := big.NewInt(v)
			sum.Add(sum, new(big.Int).Mul(b, big.NewInt(k)))
			sq.Add(sq, new(big.Int).Mul(new(big.Int).Mul(b, b), big.NewInt(k)))
			if v > 1000 {
				above += k
			}
		}
		if d.Sum().Cmp(sum) != 0 || d.N() != n || d.Min() != slices.Min(vs) || d.Max() != slices.Max(vs) || d.Above(1) != above {
			t.Fatalf("sum %v n %d min %d max %d above %d, want %v %d … %d", d.Sum(), d.N(), d.Min(), d.Max(), d.Above(1), sum, n, above)
		}
		// var·n·(n-1) = n·Σv² - (Σv)²
		want := new(big.Int).Sub(new(big.Int).Mul(sq, big.NewInt(n)), new(big.Int).Mul(sum, sum))
		w, _ := new(big.Rat).SetFrac(want, new(big.Int).Mul(big.NewInt(n), big.NewInt(n-1))).Float64()
		if sd, ok := d.SD(); !ok || math.Abs(sd-math.Sqrt(w)) > 1e-12*math.Sqrt(w) {
			t.Fatalf("sd %v, want %v", sd, math.Sqrt(w))
		}
	})
}

func TestFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(0, 1e30), rapid.Just(0.0)), 1, 100).Draw(t, "values")
		d := NewFloats(rapid.IntRange(1, 120).Draw(t, "limit"))
		sum := new(big.Rat)
		for _, v := range vs {
			d.Add(v)
			sum.Add(sum, new(big.Rat).SetFloat64(v))
		}
		if d.Seek(1, int64(len(vs)), int64(len(vs)+1)/2) {
			for _, v := range vs {
				d.Again(v)
			}
		}
		want, _ := sum.Quo(sum, big.NewRat(int64(len(vs)), 1)).Float64()
		if m, _ := d.Mean(); math.Abs(m-want) > 1e-14*want {
			t.Fatalf("mean %v, want %v", m, want)
		}
		slices.Sort(vs)
		for _, r := range []int{1, len(vs), (len(vs) + 1) / 2} {
			if v, ok := d.At(int64(r)); !ok || math.Float64bits(v) != math.Float64bits(vs[r-1]) {
				t.Fatalf("rank %d is %v, want %v", r, v, vs[r-1])
			}
		}
	})
	// 1e9 + {1, 2, 3}: sd 1, where naive sums of squares lose everything.
	d := NewFloats(0)
	for _, v := range []float64{1e9 + 1, 1e9 + 2, 1e9 + 3} {
		d.Add(v)
	}
	if sd, ok := d.SD(); !ok || math.Abs(sd-1) > 1e-6 {
		t.Errorf("sd %v, want 1", sd)
	}
}

func TestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(values, 1, 200).Draw(t, "values")
		e := &Ends{Limit: rapid.IntRange(1, 300).Draw(t, "limit")}
		if rapid.Bool().Draw(t, "reserve") {
			e.Reserve(rapid.IntRange(0, 400).Draw(t, "room"))
		}
		half := rapid.IntRange(0, len(vs)).Draw(t, "half")
		for _, v := range vs[:half] {
			e.Add(v)
		}
		other := e.Clone()
		e.AddAll(vs[half:])
		if other.N() != int64(half) || e.N() != int64(len(vs)) {
			t.Fatalf("%d and %d numbers", other.N(), e.N())
		}
		for i, v := range vs {
			vs[i] = max(v, 0)
		}
		slices.Sort(vs)
		var ranks []int64
		for i := range vs {
			ranks = append(ranks, int64(i)+1)
		}
		e.Seek(ranks...)
		for i, v := range vs {
			lo, hi, ok := e.At(int64(i) + 1)
			if !ok || lo > v || v > hi || (hi-lo) > lo/4096 || len(vs) <= e.Limit && lo != hi {
				t.Fatalf("rank %d is %d, found %d to %d", i+1, v, lo, hi)
			}
		}
		if _, _, ok := e.At(0); ok {
			t.Fatal("there is a rank 0")
		}
	})
}

func TestCloneGoesItsOwnWay(t *testing.T) {
	for _, limit := range []int{1, 10} {
		d := NewInts(limit, 5)
		d.AddAll([]int64{1, 9})
		c := d.Clone()
		c.Add(100)
		if d.N() != 2 || d.Max() != 9 || d.Above(0) != 1 || c.N() != 3 || c.Max() != 100 || c.Above(0) != 2 {
			t.Errorf("limit %d: %d numbers up to %d, copy %d up to %d", limit, d.N(), d.Max(), c.N(), c.Max())
		}
	}
}

func TestNothing(t *testing.T) {
	d := NewInts(0)
	d.Seek(1)
	if _, ok := d.At(1); ok {
		t.Error("an empty distribution has a rank 1")
	}
	if _, ok := d.Mean(); ok {
		t.Error("an empty distribution has a mean")
	}
	if _, ok := d.SD(); ok {
		t.Error("an empty distribution has a deviation")
	}
}

func TestSortWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(values, 1, 40).Draw(t, "values")
		for len(vs) < 2*radixFrom && rapid.Bool().Draw(t, "more") { // beyond where comparing ends
			vs = append(vs, vs...)
		}
		want := slices.Clone(vs)
		slices.Sort(want)
		if sortWhole(vs); !slices.Equal(vs, want) {
			t.Fatalf("%v instead of %v", vs, want)
		}
	})
}

// Runs of small numbers are counted long before the limit, and a number that shares
// its bucket with others is still told exactly.
func TestRunsAreCounted(t *testing.T) {
	for _, c := range []struct {
		first int64 // a number before the runs
		kept  bool
	}{{1, false}, {511, false}, {512, true}, {-1, true}} {
		o := Order{Limit: 1 << 20}
		o.AddN(c.first, 1)
		for range 100 {
			o.AddN(2, 1000)
			o.AddN(3, 1000)
		}
		if _, kept := o.Kept(); kept != c.kept {
			t.Errorf("after %d numbers are kept: %v", c.first, kept)
		}
		o.Add(70_001)
		o.AddAll([]int64{70_003, 70_002})
		n := o.N()
		ranks := []int64{1, 2, 100_001, n - 4, n - 2, n - 1, n}
		if o.Seek(ranks...) {
			for _, run := range []struct{ v, times int64 }{{c.first, 1}, {2, 100_000}, {3, 100_000}, {70_001, 1}, {70_002, 1}, {70_003, 1}} {
				for range run.times {
					o.Again(run.v)
				}
			}
		}
		all := slices.Concat([]int64{c.first}, slices.Repeat([]int64{2}, 100_000), slices.Repeat([]int64{3}, 100_000), []int64{70_001, 70_002, 70_003})
		slices.Sort(all)
		for _, r := range ranks {
			if v, ok := o.At(r); !ok || v != all[r-1] {
				t.Errorf("after %d: rank %d is %d, %v, want %d", c.first, r, v, ok, all[r-1])
			}
		}
	}
}
