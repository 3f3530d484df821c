package stats

import (
	"math"
	"testing"
)

// Values of R 4: t.test(b, a) of the yields of Student's sleep data, which are
// published with R: t = 1.8608, df = 17.776, p = 0.07939, interval
// -0.2054832 … 3.3654832.
func TestWelchOfSleep(t *testing.T) {
	a := []float64{.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2}
	b := []float64{1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	r, ok := WelchT(a, b)
	if !ok {
		t.Fatal("two samples of ten are enough")
	}
	for _, x := range []struct {
		name      string
		got, want float64
		within    float64
	}{
		{"mean", r.Mean, 1.58, 1e-12},
		{"p", r.P, .07939, 5e-6},
		{"low", r.Low, -.2054832, 1e-6},
		{"high", r.High, 3.3654832, 1e-6},
		{"detects", r.Detects, 2.8 * 1.58 / 1.8608, 2e-4},
	} {
		if math.Abs(x.got-x.want) > x.within {
			t.Errorf("%s %g, not %g", x.name, x.got, x.want)
		}
	}
}

// Samples that do not vary differ for certain or not at all.
func TestWelchWithoutVariance(t *testing.T) {
	if r, ok := WelchT([]float64{1, 1}, []float64{2, 2, 2}); !ok || r.P > 0 || math.Abs(r.Low-1) > 0 || r.N != 2 {
		t.Errorf("%+v", r)
	}
	if r, _ := WelchT([]float64{1, 1}, []float64{1, 1}); math.Abs(r.P-1) > 0 {
		t.Errorf("%+v", r)
	}
	if _, ok := WelchT([]float64{1}, []float64{1, 2}); ok {
		t.Error("one value has no variance")
	}
}
