package deadline

import (
	"math"
	"strings"
	"testing"
	"time"
)

func lined(a, b string, from, to int32, flags ...string) *File {
	return &File{
		Schema: Schema, Shape: Linear, Curve: &Coefficients{A: a, B: b}, Flags: flags, Valid: Valid{PromptTokens: []int32{from, to}},
		Band: []BandPoint{{from, time.Millisecond, time.Minute}, {to, time.Millisecond, time.Minute}},
	}
}

// 100 ms and 1 ms a token, 300 ms and 0.5 ms a token: they cross at 400 tokens.
func TestReferenceIsTheLeastOfAll(t *testing.T) {
	names := []string{"a.yaml", "b.yaml", "c.yaml"}
	f, skipped, err := Reference([]*File{lined("100ms", "1ms", 100, 2000), lined("300ms", "0.5ms", 200, 4000), lined("1ms", "1us", 1, 9000, WideBand)}, names)
	if err != nil || len(skipped) != 1 || skipped[0] != "c.yaml (wide-band)" {
		t.Fatal(skipped, err)
	}
	if v := f.Valid.PromptTokens; v[0] != 200 || v[1] != 2000 {
		t.Errorf("valid for %v", v)
	}
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	if f, err = Read("r.yaml", data); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	for tokens, want := range map[float64]float64{200: 300e6, 2000: 1300e6} {
		if got := f.CurveAt(tokens); math.Abs(got-want) > 0.5 {
			t.Errorf("%v tokens: %v, want %v", tokens, got, want)
		}
	}
	for _, k := range f.Knots {
		want := min(100*time.Millisecond+time.Duration(k.Tokens)*time.Millisecond, 300*time.Millisecond+time.Duration(k.Tokens)*time.Millisecond/2)
		if k.Time != want {
			t.Errorf("%d tokens: %v, want %v", k.Tokens, k.Time, want)
		}
	}
	for want, files := range map[string][]*File{
		"two without flags are needed; left out: b.yaml (wide-band)": {lined("1ms", "1ms", 1, 10), lined("1ms", "1ms", 1, 10, WideBand)},
		"no prompt length is valid for all of them":                  {lined("1ms", "1ms", 1, 10), lined("1ms", "1ms", 20, 30)},
	} {
		if _, _, err := Reference(files, names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
