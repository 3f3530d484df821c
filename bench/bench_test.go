package main

import (
	"testing"

	"fermata/beacon"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 2, 1, 3}, 2}} {
		if got := median(c.of, itself); got != c.want {
			t.Errorf("the median of %v is %g, not %g", c.of, c.want, got)
		}
	}
}

func TestParseLoad(t *testing.T) {
	if n, rate, err := parseLoad("1000x2.5"); n != 1000 || rate != 2.5 || err != nil {
		t.Errorf("%d, %g, %v", n, rate, err)
	}
	for _, bad := range []string{"", "100", "x20", "0x20", "10x", "10x0", "ax20"} {
		if _, _, err := parseLoad(bad); err == nil {
			t.Errorf("%q is taken for a load", bad)
		}
	}
}

// Processor time is used evenly from look to look.
func TestUsage(t *testing.T) {
	u := usage{at: []int64{10, 20, 30}, cpu: []float64{1, 5, 7}}
	for _, c := range []struct {
		from, to int64
		want     float64
	}{{10, 20, 4}, {5, 25, 5}, {20, 99, 2}, {99, 100, 0}} {
		if got := u.between(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %g, not %g", c.from, c.to, got, c.want)
		}
	}
	if got := (&usage{}).between(1, 2); got != 0 {
		t.Errorf("without a look: %g", got)
	}
}

func TestLateness(t *testing.T) {
	r := beacon.Report{Log: []beacon.Request{{FirstNs: 100, StepNs: 10}}}
	for k := range int64(100) {
		r.Log[0].SentNs = append(r.Log[0].SentNs, 100+10*k+k) // 0, 1, … 99 late
	}
	if got := lateness(&r); got != 98 { // of rank ⌈0.99 · 100⌉
		t.Errorf("%d", got)
	}
	if c := (cell{sender: 999_999}); c.void() {
		t.Error("a load that was nearly a millisecond late is void")
	}
	if c := (cell{sender: 1_000_000}); !c.void() {
		t.Error("a load that was a millisecond late is not void")
	}
}
