package term

import (
	"math"
	"strconv"
	"strings"
)

// None is printed where there is no value.
const None = "–"

// scales are the units of time, each with the nanoseconds that it holds. A
// minute begins at 1,000 s: below that, seconds compare better.
var scales = []struct {
	ns   float64
	from float64
	name string
}{
	{1, 0, "ns"},
	{1e3, 1e3, "µs"},
	{1e6, 1e6, "ms"},
	{1e9, 1e9, "s"},
	{60e9, 1000e9, "min"},
	{3600e9, 60000e9, "h"},
}

// Duration writes ns nanoseconds with three significant digits in the unit that
// suits them: 850 µs, 12.3 ms, 1.50 s, 25.0 min. Zero is "0 s"; what is no finite
// number is None.
func Duration(ns float64) string {
	switch {
	case ns == 0:
		return "0 s"
	case math.IsInf(ns, 0) || math.IsNaN(ns):
		return None
	}
	i := scaleOf(math.Abs(ns))
	return significant(ns/scales[i].ns, 3) + " " + scales[i].name
}

// Bound writes a duration that someone chose, such as a target gap: as Duration,
// with all digits up to the sixth and without closing zeros: 25 ms, 166.667 ms, 1 s.
func Bound(ns int64) string {
	v := float64(ns)
	i := scaleOf(math.Abs(v))
	return trim(significant(v/scales[i].ns, 6)) + " " + scales[i].name
}

// Interval writes a range of durations in one unit: [580, 710] ms. An absent end
// is an en dash.
func Interval(low, high *float64) string {
	widest := 0.0
	for _, p := range []*float64{low, high} {
		if p != nil {
			widest = max(widest, math.Abs(*p))
		}
	}
	i := scaleOf(widest)
	end := func(p *float64) string {
		if p == nil {
			return None
		}
		return trimWhole(significant(*p/scales[i].ns, 3))
	}
	return "[" + end(low) + ", " + end(high) + "] " + scales[i].name
}

// Number writes v with three significant digits and commas: 0.0123, 4.00, 1,230.
// Zero is "0"; whole numbers below 1,000 keep no decimals when whole is set.
func Number(v float64, whole bool) string {
	if v == 0 {
		return "0"
	}
	if whole && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return Count(int64(v))
	}
	return commas(significant(v, 3))
}

// Count writes n with commas: 12,345.
func Count(n int64) string { return commas(strconv.FormatInt(n, 10)) }

// ShortCount writes n in at most six cells: as Count below 100,000, then 102k,
// 3.40M, 7.12G.
func ShortCount(n int64) string {
	v := float64(n)
	for _, s := range []struct {
		from, unit float64
		name       string
	}{{999.5e6, 1e9, "G"}, {999.5e3, 1e6, "M"}, {1e5, 1e3, "k"}} {
		if v >= s.from {
			return significant(v/s.unit, 3) + s.name
		}
	}
	return Count(n)
}

// Percent writes a share of 0 to 1 as 12.3%. It says 0% and 100% only of exactly
// none and all: 0.99996 is 99.996%.
func Percent(share float64) string {
	return shareText(share*100, 1, 100) + "%"
}

// Index writes a fluidity index of 0 to 1 with three decimals. It says 1 and 0
// only of exactly that: 0.99996 is 0.99996.
func Index(f float64) string { return shareText(f, 3, 1) }

func shareText(v float64, decimals int, full float64) string {
	if v == 0 || v == full {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for d := decimals; d < decimals+4; d++ {
		s := strconv.FormatFloat(v, 'f', d, 64)
		if back, _ := strconv.ParseFloat(s, 64); back != 0 && back != full {
			return s
		}
	}
	step := math.Pow(10, -float64(decimals+3))
	if v > full/2 {
		return ">" + strconv.FormatFloat(full-step, 'f', decimals+3, 64)
	}
	return "<" + strconv.FormatFloat(step, 'f', decimals+3, 64)
}

// scaleOf is the scale for ns, chosen after rounding to three digits, so that
// 999.6 µs is 1.00 ms.
func scaleOf(ns float64) int {
	if ns > 0 {
		unit := math.Pow(10, math.Floor(math.Log10(ns))-2)
		ns = math.Round(ns/unit) * unit
	}
	best := 0
	for i, s := range scales {
		// The rounding above may leave 1e6 a hair short.
		if ns >= s.from*(1-1e-12) {
			best = i
		}
	}
	if ns == 0 {
		best = 3
	}
	return best
}

// significant writes v with n significant digits, never in exponent form; digits
// before the point are all kept.
func significant(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	e, err := strconv.Atoi(after(strconv.FormatFloat(v, 'e', n-1, 64), "e"))
	if err != nil { // Inf and NaN have no exponent
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', max(0, n-1-e), 64)
}

func after(s, sep string) string {
	_, tail, _ := strings.Cut(s, sep)
	return tail
}

func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// trimWhole drops the decimals of a whole number: 25.0 is 25, 25.50 stays.
func trimWhole(s string) string {
	if t := trim(s); !strings.Contains(t, ".") {
		return t
	}
	return s
}

func commas(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + fraction
	}
	return sign + whole
}
