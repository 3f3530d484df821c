package recording

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Buckets of a Histogram: one for each ns up to 63, then 32 an octave, so that a
// value is known to within 1/32 of itself.
const (
	histogramBits    = 5
	histogramBuckets = (64 - histogramBits) << histogramBits
)

// HistogramError is by how much of itself a value is said too large at most: each
// stands for the upper end of its bucket.
const HistogramError = 1.0 / (1 << histogramBits)

// BucketOf is the bucket of a time in ns; below 0 counts as 0.
func BucketOf(ns int64) int32 {
	v := uint64(max(ns, 0))
	shift := max(0, bits.Len64(v)-1-histogramBits)
	return int32(shift<<histogramBits + int(v>>shift))
}

// BucketEnd is the largest time in a bucket, ns.
func BucketEnd(bucket int32) int64 {
	shift := max(0, int(bucket)>>histogramBits-1)
	return (int64(bucket)-int64(shift)<<histogramBits+1)<<shift - 1
}

// A Histogram counts times by bucket. As lists of buckets and their counts it is
// kept once a second in series.parquet; those of all seconds added up are the
// run's. The zero value is empty.
type Histogram struct {
	Buckets []int32 // ascending, those that are not empty
	Counts  []int64
}

// N is how many times were counted.
func (h *Histogram) N() int64 {
	if h == nil {
		return 0
	}
	var n int64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Check says what is wrong with a histogram that was read from a file.
func (h *Histogram) Check() error {
	if len(h.Buckets) != len(h.Counts) {
		return fmt.Errorf("%d buckets, but %d counts", len(h.Buckets), len(h.Counts))
	}
	for i, b := range h.Buckets {
		if b < 0 || b >= histogramBuckets || i > 0 && b <= h.Buckets[i-1] || h.Counts[i] < 0 {
			return fmt.Errorf("bucket %d, number %d, counts %d: they must ascend and be counts", b, i, h.Counts[i])
		}
	}
	return nil
}

// Merge adds what o counted.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil {
		return
	}
	for i, b := range o.Buckets {
		at, found := slices.BinarySearch(h.Buckets, b)
		if !found {
			h.Buckets = slices.Insert(h.Buckets, at, b)
			h.Counts = slices.Insert(h.Counts, at, 0)
		}
		h.Counts[at] += o.Counts[i]
	}
}

// Add counts a time in ns.
func (h *Histogram) Add(ns int64) { h.Merge(&Histogram{[]int32{BucketOf(ns)}, []int64{1}}) }

// At is the value of a rank from 1 on, as the upper end of its bucket; false
// where there are not so many.
func (h *Histogram) At(rank int64) (ns int64, ok bool) {
	if h == nil || rank < 1 {
		return 0, false
	}
	for i, c := range h.Counts {
		if rank -= c; rank <= 0 {
			return BucketEnd(h.Buckets[i]), true
		}
	}
	return 0, false
}

// A LiveHistogram counts while others look: one atomic addition a time. The zero
// value is empty.
type LiveHistogram struct {
	counts [histogramBuckets]atomic.Int64
}

// Add counts a time in ns.
func (h *LiveHistogram) Add(ns int64) { h.counts[BucketOf(ns)].Add(1) }

// Take is what was counted since the call before.
func (h *LiveHistogram) Take() *Histogram {
	var taken Histogram
	for i := range h.counts {
		if h.counts[i].Load() == 0 {
			continue
		}
		taken.Buckets = append(taken.Buckets, int32(i))
		taken.Counts = append(taken.Counts, h.counts[i].Swap(0))
	}
	return &taken
}
