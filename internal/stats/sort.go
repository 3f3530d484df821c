package stats

import "slices"

// radixFrom is how many numbers are sorted by their bytes rather than by comparing
// them, which takes ten times as long once they are a hundred thousand.
const radixFrom = 1 << 9

// sortWhole sorts v, byte by byte from the last; bytes that all have in common cost
// nothing. It takes as much memory again.
func sortWhole(v []int64) {
	if len(v) < radixFrom {
		slices.Sort(v)
		return
	}
	var differ uint64
	for _, k := range v {
		differ |= uint64(k ^ v[0])
	}
	from, to := v, make([]int64, len(v))
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var at [256]int
		for _, k := range from {
			at[digit(k, shift)]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, k := range from {
			d := digit(k, shift)
			to[at[d]] = k
			at[d]++
		}
		from, to = to, from
	}
	if &from[0] != &v[0] {
		copy(v, from)
	}
}

// digit is a byte of k in an order in which negative numbers come first.
func digit(k int64, shift int) byte { return byte((uint64(k) ^ 1<<63) >> shift) }

// grow makes room for n more numbers. Room doubles, for it to be copied seldom.
func grow(v []int64, n int) []int64 {
	if cap(v)-len(v) < n {
		v = slices.Grow(v, max(n, len(v)))
	}
	return v
}
