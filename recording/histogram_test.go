package recording

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Buckets ascend without gaps, and a value is said too large by 1/32 at most,
// never too small.
func TestBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []int64{0, 1, 63, 64, 65, 127, 128, math.MaxInt64}
	for range 20_000 {
		values = append(values, r.Int64()>>r.IntN(63))
	}
	for _, v := range values {
		b := BucketOf(v)
		end := BucketEnd(b)
		if end < v || float64(end-v) > HistogramError*float64(v) {
			t.Errorf("%d stands in a bucket that ends at %d", v, end)
		}
		if b > 0 && BucketEnd(b-1) >= v {
			t.Errorf("%d stands in bucket %d, but the one before ends at %d", v, b, BucketEnd(b-1))
		}
	}
	if BucketOf(-5) != 0 {
		t.Error("a time below 0 is not 0")
	}
	if last := BucketOf(math.MaxInt64); int(last) >= histogramBuckets {
		t.Errorf("bucket %d of %d", last, histogramBuckets)
	}
}

// Seconds added up have the ranks of all times together, to within a bucket.
func TestHistogramsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var live LiveHistogram
	var sum Histogram
	var all []int64
	for range 5 {
		for range 1000 {
			v := int64(math.Exp(r.NormFloat64()*3 + 10))
			all = append(all, v)
			live.Add(v)
		}
		second := live.Take()
		if err := second.Check(); err != nil || second.N() != 1000 {
			t.Fatalf("a second holds %d times, %v", second.N(), err)
		}
		sum.Merge(second)
	}
	if again := live.Take(); again.N() != 0 {
		t.Errorf("%d times were taken twice", again.N())
	}
	slices.Sort(all)
	for _, rank := range []int64{1, 50, 2500, 4950, 5000} {
		got, ok := sum.At(rank)
		want := all[rank-1]
		if !ok || BucketOf(got) != BucketOf(want) {
			t.Errorf("rank %d: %d, want %d", rank, got, want)
		}
	}
	if _, ok := sum.At(5001); ok {
		t.Error("there is a value beyond the last")
	}
}

func TestHistogramCheck(t *testing.T) {
	for _, h := range []Histogram{
		{Buckets: []int32{1}, Counts: nil},
		{Buckets: []int32{2, 1}, Counts: []int64{1, 1}},
		{Buckets: []int32{-1}, Counts: []int64{1}},
		{Buckets: []int32{1}, Counts: []int64{-1}},
		{Buckets: []int32{histogramBuckets}, Counts: []int64{1}},
	} {
		if h.Check() == nil {
			t.Errorf("%+v passes for a histogram", h)
		}
	}
}
