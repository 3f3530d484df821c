package cost

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// An Amount is money in some currency, exact: a decimal, as prices are. The zero
// value is nothing. Amounts never change.
type Amount struct{ r *big.Rat }

// digitsMax bounds what people write: enough for any price, too few to be slow.
const digitsMax = 30

// ParseAmount reads a decimal such as 2.50, which must not be negative.
func ParseAmount(text string) (Amount, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if whole == "" || digits == "" || strings.HasSuffix(text, ".") || strings.Trim(digits, "0123456789") != "" {
		return Amount{}, fmt.Errorf("must be an amount such as 2.50, not %q", text)
	}
	if len(digits) > digitsMax {
		return Amount{}, errors.New("has more digits than money has")
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return Amount{}, fmt.Errorf("must be an amount such as 2.50, not %q", text)
	}
	return Amount{r}, nil
}

func (a Amount) rat() *big.Rat {
	if a.r == nil {
		return new(big.Rat)
	}
	return a.r
}

// Plus is the sum.
func (a Amount) Plus(b Amount) Amount { return Amount{new(big.Rat).Add(a.rat(), b.rat())} }

// Minus is the difference.
func (a Amount) Minus(b Amount) Amount { return Amount{new(big.Rat).Sub(a.rat(), b.rat())} }

// times is so many thousandths of thousandths of it.
func (a Amount) millionths(n int64) Amount {
	return Amount{new(big.Rat).Mul(a.rat(), big.NewRat(n, 1_000_000))}
}

// scaled is f times it; false where that is no amount.
func (a Amount) scaled(f float64) (Amount, bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) || f < 0 {
		return Amount{}, false
	}
	return Amount{new(big.Rat).Mul(a.rat(), new(big.Rat).SetFloat64(f))}, true
}

// Share is the price of so many where a million cost this.
func (a Amount) Share(n int64) Amount { return a.millionths(n) }

// per is the price of a million where so many cost it.
func (a Amount) per(n int64) Amount {
	return Amount{new(big.Rat).Mul(a.rat(), big.NewRat(1_000_000, n))}
}

// Float is the nearest floating-point number.
func (a Amount) Float() float64 {
	f, _ := a.rat().Float64()
	return f
}

// Figures is the amount as a decimal of about six significant digits, with two
// behind the point at least: what a quotient that has no end is told as.
func (a Amount) Figures() string {
	digits := 2
	if f := a.Float(); f > 0 {
		digits = min(30, max(2, 5-int(math.Floor(math.Log10(f)))))
	}
	text := a.rat().FloatString(digits)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 {
		text = text[:len(text)-1]
	}
	return text
}

// Cmp is negative, 0 or positive as a is below b, equal or above.
func (a Amount) Cmp(b Amount) int { return a.rat().Cmp(b.rat()) }

// String is the exact decimal, with two digits behind the point at least.
func (a Amount) String() string {
	n, _ := a.rat().FloatPrec() // exact: sums of decimals times millionths are decimals
	return a.rat().FloatString(max(2, n))
}

// Short is the amount to about three digits, for people.
func (a Amount) Short() string {
	text := a.rat().FloatString(2)
	for digits := 3; digits <= 12 && len(strings.TrimLeft(strings.Replace(text, ".", "", 1), "-0")) < 3; digits++ {
		text = a.rat().FloatString(digits)
	}
	if a.rat().Sign() == 0 {
		return "0.00"
	}
	return text
}
