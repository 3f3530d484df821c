package deadline

import (
	"math"
	"testing"
)

// What is written of a curve says the same as the curve: as a polynomial to the
// nanosecond, between knots as near as lines come to it.
func TestWrittenCurves(t *testing.T) {
	for shape, c := range map[string]struct {
		server string
		within float64
	}{Linear: {"small", 1e-6}, Quadratic: {"yi", 1e-6}, Hinges: {"chunk", 0.005}, Monotone: {"pool", 1e-6}} {
		curve, d, err := Fit(probesOf(c.server, "idle", 42, 0), FitOptions{Shape: shape, Resamples: 5})
		if err != nil {
			t.Fatal(err)
		}
		data, err := curve.File(d).Write()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read("f", data)
		if err != nil {
			t.Fatalf("%s: %v\n%s", shape, err, data)
		}
		o := Options{Name: "f", File: *f}
		got, err := o.Deadlines()
		if err != nil || got.Shape() != shape || !got.Banded() {
			t.Fatalf("%s: %v, %+v", shape, err, got)
		}
		if from, to, ok := got.Range(); from != 256 || to != 36044 || !ok { // half of 512, a tenth over 32768
			t.Errorf("%s: valid from %d to %d", shape, from, to)
		}
		for p := int32(256); p <= 36044; p += 97 {
			want := curve.At(float64(p))
			if at := float64(got.Due(EdgeFit, 0, p)); math.Abs(at-want) > c.within*want+1 {
				t.Errorf("%s at %d tokens: %.0f ns, the curve %.0f", shape, p, at, want)
			}
			low, high := got.Due(EdgeLow, 0, p), got.Due(EdgeHigh, 0, p)
			if at := got.First(p); low > at || high < at {
				t.Errorf("%s at %d tokens: %d outside [%d, %d]", shape, p, at, low, high)
			}
		}
		for _, b := range f.Band {
			low, high := curve.Band(float64(b.Tokens))
			if float64(b.Low) > low || float64(b.High) < high {
				t.Errorf("%s at %d tokens: [%v, %v] within [%.0f, %.0f]", shape, b.Tokens, b.Low, b.High, low, high)
			}
		}
	}
}
