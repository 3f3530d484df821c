package deadline

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// A polynomial is a + b·P + c·P², in ns over scale, exact.
type polynomial struct{ a, b, c, scale uint64 }

// maxCoefficient bounds coefficients and their common scale, so that at needs no
// more than 128 bits.
var maxCoefficient = new(big.Int).SetUint64(math.MaxInt64)

// newPolynomial reads up to three coefficients, a first.
func newPolynomial(parts []string) (*polynomial, error) {
	var values [3]*big.Rat
	scale := big.NewInt(1)
	for i := range values {
		values[i] = new(big.Rat)
		if i < len(parts) {
			v, err := duration(strings.TrimSpace(parts[i]))
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		// Least common multiple of the denominators.
		gcd := new(big.Int).GCD(nil, nil, scale, values[i].Denom())
		scale.Mul(scale, new(big.Int).Quo(values[i].Denom(), gcd))
	}
	p := &polynomial{}
	out := []*uint64{&p.a, &p.b, &p.c}
	for i, v := range values {
		n := new(big.Int).Mul(v.Num(), scale)
		n.Quo(n, v.Denom())
		if n.Cmp(maxCoefficient) > 0 || scale.Cmp(maxCoefficient) > 0 {
			return nil, fmt.Errorf("%s is too large, or written with too many decimals", strings.TrimSpace(parts[min(i, len(parts)-1)]))
		}
		*out[i] = n.Uint64()
	}
	p.scale = scale.Uint64()
	return p, nil
}

// at rounds to the nearest ns, a half up, and ends at the longest time there is.
func (p *polynomial) at(tokens int64) int64 {
	n := uint64(tokens)
	hi, lo := bits.Mul64(p.c, n*n)
	h, l := bits.Mul64(p.b, n)
	var carry uint64
	lo, carry = bits.Add64(lo, l, 0)
	hi += h + carry
	lo, carry = bits.Add64(lo, p.a, 0)
	hi += carry
	lo, carry = bits.Add64(lo, p.scale/2, 0)
	hi += carry
	if hi >= p.scale {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, p.scale)
	return int64(min(q, math.MaxInt64))
}

var units = []struct {
	name string
	ns   int64
}{
	{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9},
}

// duration reads a decimal duration such as 40us or 0.5ns, exactly, in ns.
func duration(s string) (*big.Rat, error) {
	number := strings.TrimRight(s, "nuµμms")
	unit := s[len(number):]
	if s == "0" {
		return new(big.Rat), nil
	}
	if strings.HasPrefix(number, "-") {
		return nil, fmt.Errorf("%s is negative", s)
	}
	if number == "" || len(number) > 40 || strings.Trim(number, "0123456789.") != "" || strings.Count(number, ".") > 1 || number == "." {
		return nil, fmt.Errorf("%q is no duration, write it as 300ms, 40us or 0.5ns", s)
	}
	v, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, fmt.Errorf("%q is no duration, write it as 300ms, 40us or 0.5ns", s)
	}
	for _, u := range units {
		if u.name == unit {
			return v.Mul(v, new(big.Rat).SetInt64(u.ns)), nil
		}
	}
	return nil, fmt.Errorf("%q lacks a unit, write it as %sms, %sus or %sns", s, number, number, number)
}
