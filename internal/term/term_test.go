package term

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		ns   float64
		want string
	}{
		{0, "0 s"},
		{1, "1.00 ns"},
		{850e3, "850 µs"},
		{999.4e3, "999 µs"},
		{999.6e3, "1.00 ms"},
		{12.34e6, "12.3 ms"},
		{-12.34e6, "-12.3 ms"},
		{20833334, "20.8 ms"},
		{999.6e6, "1.00 s"},
		{1.5e9, "1.50 s"},
		{25e9, "25.0 s"},
		{600e9, "600 s"},
		{1500e9, "25.0 min"},
		{86400e9, "24.0 h"},
		{math.Inf(1), None},
		{math.NaN(), None},
	} {
		if got := Duration(c.ns); got != c.want {
			t.Errorf("Duration(%g) = %q, want %q", c.ns, got, c.want)
		}
	}
}

func TestBound(t *testing.T) {
	for ns, want := range map[int64]string{
		25e6: "25 ms", 100e6: "100 ms", 1e9: "1 s", 25e9: "25 s", 0: "0 s",
		166_666_667: "166.667 ms", 1_500_000: "1.5 ms", 500: "500 ns",
	} {
		if got := Bound(ns); got != want {
			t.Errorf("Bound(%d) = %q, want %q", ns, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	p := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		low, high *float64
		want      string
	}{
		{p(580e6), p(710e6), "[580, 710] ms"},
		{p(580e6), p(1.21e9), "[0.580, 1.21] s"},
		{p(25e6), p(33.4e6), "[25, 33.4] ms"},
		{p(580e6), nil, "[580, –] ms"},
		{nil, nil, "[–, –] s"},
	} {
		if got := Interval(c.low, c.high); got != c.want {
			t.Errorf("Interval = %q, want %q", got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0, false), "0"},
		{Number(4, false), "4.00"},
		{Number(4, true), "4"},
		{Number(4.5, true), "4.50"},
		{Number(1234.5, false), "1,234"},
		{Number(1e6, true), "1,000,000"},
		{Number(0.012345, false), "0.0123"},
		{Number(-1234567, false), "-1,234,567"},
		{Number(math.NaN(), false), "NaN"},
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(-1000), "-1,000"},
		{Count(1234567), "1,234,567"},
		{ShortCount(99_999), "99,999"},
		{ShortCount(102_400), "102k"},
		{ShortCount(999_499), "999k"},
		{ShortCount(999_999), "1.00M"},
		{ShortCount(20_000_000), "20.0M"},
		{ShortCount(7_120_000_000), "7.12G"},
		{Percent(0), "0%"},
		{Percent(1), "100%"},
		{Percent(0.155), "15.5%"},
		{Percent(0.9996), "99.96%"},
		{Percent(0.99999999), ">99.9999%"},
		{Percent(0.0004), "0.04%"},
		{Percent(1e-9), "<0.0001%"},
		{Index(1), "1"},
		{Index(0.9), "0.900"},
		{Index(0.99996), "0.99996"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCellsAndPadding(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "12.3 µs": 7, "–": 1, "e\u0301": 1, "世界": 4,
		"\x1b[1;31mred\x1b[0m": 3, "🙂": 2,
	} {
		if got := Cells(s); got != want {
			t.Errorf("Cells(%q) = %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{Left("世", 4), "世  "},
		{Right("µs", 4), "  µs"},
		{Right("longer", 2), "longer"},
		{Cut("abcdef", 4), "abc…"},
		{Cut("世界x", 4), "世…"},
		{Cut("abc", 3), "abc"},
		{Plain("a\x1b[31m\nb\u202e\tc"), "a[31m b c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("the quick brown fox  http://example.com/very/long jumps", 10)
	want := []string{"the quick", "brown fox", "http://example.com/very/long", "jumps"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if Wrap(" \n ", 10) != nil {
		t.Error("blank text should have no lines")
	}
}

func TestFold(t *testing.T) {
	got := Fold("see http://example.com/very/long 世界世界世 x", 10)
	want := []string{"see", "http://exa", "mple.com/v", "ery/long", "世界世界世", "x"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"世", "界"}, Fold("世界", 3)); d != "" {
		t.Error(d)
	}
	for name, want := range map[string][]string{
		"scheduling_delay.p50":   {"scheduling_delay", ".p50"},
		"normalized_latency.p50": {"normalized_", "latency.p50"},
		"output_tokens_per_s":    {"output_tokens_", "per_s"},
		"a_verylongwordofitsown": {"a_verylongwordof", "itsown"},
	} {
		if d := cmp.Diff(want, Fold(name, 16)); d != "" {
			t.Error(name, d)
		}
	}
}

func TestColumns(t *testing.T) {
	for value, want := range map[string]int{
		"": 0, "120": 120, " 80 ": 80, "20": 20, "19": 0, "-5": 0, "10000": 10_000, "10001": 0, "wide": 0,
	} {
		t.Setenv("COLUMNS", value)
		if got := Columns(); got != want {
			t.Errorf("COLUMNS=%q: %d, want %d", value, got, want)
		}
	}
}

func TestColour(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true},
		{map[string]string{"NO_COLOR": "1"}, false},
		{map[string]string{"NO_COLOR": ""}, true},
		{map[string]string{"TERM": "dumb"}, false},
	} {
		if got := colourWelcome(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
	if got := Paint("x", Bad, true); got != "\x1b[1;31mx\x1b[0m" {
		t.Errorf("Paint = %q", got)
	}
	if Paint("x", Bad, false) != "x" || Paint("x", Normal, true) != "x" {
		t.Error("Paint coloured what must stay plain")
	}
}

func TestFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || Colour(f) || Width(f) != 0 {
		t.Error("a file passed for a terminal")
	}
}
