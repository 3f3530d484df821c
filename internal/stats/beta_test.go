package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The values are mpmath 1.3's betainc(regularized=True) at 40 digits.
func TestBeta(t *testing.T) {
	for _, c := range []struct{ x, a, b, want float64 }{
		{0.5, 1, 1, 0.5},
		{0.3, 2, 3, 0.34829999999999998},
		{0.01, 0.5, 0.5, 0.063768560858519849},
		{0.9, 45, 6, 0.61612300772427711},
		{0.99, 990, 11, 0.58304080330109709},
		{0.5, 5000, 5001, 0.50398932306969108},
		{0.99, 9900.5, 100.25, 0.49663185830261857},
		{0.999, 199820, 181, 0.082123312334339843},
		{0.1, 0.001, 7, 0.99961586306597862},
		{0.98, 100000, 2000, 0.18280887197073963},
		{0.0001, 3, 40000, 0.76194065112495504},
		{0.97, 123.456, 3.25, 0.31906510043484985},
	} {
		if got := Beta(c.x, c.a, c.b); math.Abs(got-c.want) > 2e-13*c.want {
			t.Errorf("Beta(%v, %v, %v) = %v, want %v", c.x, c.a, c.b, got, c.want)
		}
	}
}

// I_x(k, n-k+1) is the sum of the binomial probabilities from k on.
func TestBetaIsABinomialTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		p := rapid.Float64Range(0.001, 0.999).Draw(t, "p")
		want := 0.0
		for j := k; j <= n; j++ {
			lg := func(v int) float64 { l, _ := math.Lgamma(float64(v) + 1); return l }
			want += math.Exp(lg(n) - lg(j) - lg(n-j) + float64(j)*math.Log(p) + float64(n-j)*math.Log1p(-p))
		}
		if got := Beta(p, float64(k), float64(n-k+1)); math.Abs(got-want) > 1e-11 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func TestBetaInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := math.Exp(rapid.Float64Range(-1, 14).Draw(t, "log a"))
		b := math.Exp(rapid.Float64Range(-1, 14).Draw(t, "log b"))
		p := rapid.Float64Range(0.0005, 0.9995).Draw(t, "p")
		x := BetaInverse(p, a, b)
		if x < 0 || x > 1 {
			t.Fatalf("%v is no share", x)
		}
		// The search ends within 1e-15 of x, which moves I_x by this much.
		step := betaDensity(x, 1-x, a, b) * 2e-15
		if got := Beta(x, a, b); math.Abs(got-p) > 1e-11+step {
			t.Fatalf("Beta(BetaInverse(%v, %v, %v) = %v) = %v", p, a, b, x, got)
		}
	})
}

func TestNormal(t *testing.T) {
	for p, want := range map[float64]float64{0.5: 0, 0.975: 1.959963984540054, 0.995: 2.5758293035489004, 0.025: -1.959963984540054, 0.8: 0.8416212335729143} {
		if got := Normal(p); math.Abs(got-want) > 1e-12 {
			t.Errorf("Normal(%v) = %v, want %v", p, got, want)
		}
	}
}
