package deadline

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFirst(t *testing.T) {
	for _, c := range []struct {
		text, shape string
		prompt      int32
		want        int64
	}{
		{"fixed:300ms", "fixed", 0, 300_000_000},
		{"fixed:300ms", "fixed", 8192, 300_000_000},
		{"fixed:0.3s", "fixed", 1, 300_000_000},
		{"fixed:0.5ns", "fixed", 1, 1},
		{"fixed:0.4999ns", "fixed", 1, 0},
		{"linear:50ms,40us", "linear", 512, 70_480_000},
		{"quadratic:50ms,40us,1ns", "quadratic", 1000, 91_000_000},
		{"quadratic:50ms, 40us, 0.5ns", "quadratic", 3, 50_120_005}, // 4.5 ns, a half up
		{"quadratic:0,0,0.001ns", "quadratic", 1000, 1000},
		{"quadratic:1.25ms,0.333µs,0", "quadratic", 7, 1_252_331},
		{"quadratic:0,0,1s", "quadratic", math.MaxInt32, math.MaxInt64}, // saturates
		{"linear:1m,0", "linear", -5, 60_000_000_000},
	} {
		d, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := d.First(c.prompt); got != c.want || d.Shape() != c.shape || d.Text() != c.text {
			t.Errorf("%s at %d tokens: %d (%s, %s), want %d", c.text, c.prompt, got, d.Shape(), d.Text(), c.want)
		}
	}
}

func TestFirstIsExact(t *testing.T) {
	coefficient := rapid.StringMatching(`(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?(ns|us|ms)`)
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{coefficient.Draw(t, "a"), coefficient.Draw(t, "b"), coefficient.Draw(t, "c")}
		p := rapid.Int32Range(0, 200_000).Draw(t, "P")
		d, err := Parse("quadratic:" + strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		want, power := new(big.Rat), big.NewRat(1, 1)
		for _, s := range parts {
			number := strings.TrimRight(s, "nums")
			unit := map[string]int64{"ns": 1, "us": 1000, "ms": 1000000}[s[len(number):]]
			v, _ := new(big.Rat).SetString(number)
			v.Mul(v, big.NewRat(unit, 1)).Mul(v, power)
			want.Add(want, v)
			power.Mul(power, big.NewRat(int64(p), 1))
		}
		want.Add(want, big.NewRat(1, 2))
		floor := new(big.Int).Quo(want.Num(), want.Denom())
		ns := int64(math.MaxInt64)
		if floor.IsInt64() {
			ns = floor.Int64()
		}
		if got := d.First(p); got != ns {
			t.Fatalf("%v at %d tokens: %d, want %d", parts, p, got, ns)
		}
	})
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "known forms are fixed:300ms"},
		{"deadlines.yaml", "known forms"},
		{"cubic:1ms", "known forms"},
		{"fixed", "write fixed:300ms"},
		{"fixed:", "write fixed:300ms"},
		{"fixed:300", "300ms"},
		{"fixed:-3ms", "negative"},
		{"fixed:1e3ms", "no duration"},
		{"fixed:ms", "no duration"},
		{"fixed:1.2.3ms", "no duration"},
		{"fixed:5h", "no duration"},
		{"linear:1ms", "linear takes 2 durations"},
		{"quadratic:1ms,2us", "quadratic takes 3 durations"},
		{"quadratic:1ms,2us,", "no duration"},
		{"fixed:99999999999999999999s", "too large"},
		{"fixed:0.00000000000000000000001ns", "too many decimals"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want something about %q", c.text, err, c.says)
		}
	}
}
