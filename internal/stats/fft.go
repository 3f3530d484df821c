package stats

import (
	"math"
	"math/bits"
	"math/cmplx"
)

// autocovariance is Σ (x_i - mean)(x_(i+k) - mean) for the lags k = 0 … lags, all
// at once: the inverse Fourier transform of the power spectrum, with enough zeros
// behind x that no lag wraps round (Wiener–Khinchin).
func autocovariance(x []float64, lags int) []float64 {
	size := 1 << bits.Len(uint(len(x)+lags))
	f := make([]complex128, size)
	mean := meanOf(x)
	for i, v := range x {
		f[i] = complex(v-mean, 0)
	}
	fourier(f)
	for i, v := range f {
		re, im := real(v), imag(v)
		f[i] = complex(re*re+im*im, 0)
	}
	// The spectrum is real and even: its inverse transform is its transform.
	fourier(f)
	out := make([]float64, lags+1)
	for k := range out {
		out[k] = real(f[k]) / float64(size)
	}
	return out
}

// fourier is the discrete Fourier transform in place; the length is a power of
// two (Cooley–Tukey).
func fourier(f []complex128) {
	n := len(f)
	shift := 64 - bits.TrailingZeros(uint(n))
	for i := range f {
		if j := int(bits.Reverse64(uint64(i)) >> shift); n > 1 && i < j {
			f[i], f[j] = f[j], f[i]
		}
	}
	turns := make([]complex128, n/2)
	for i := range turns {
		turns[i] = cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n))
	}
	for half := 1; half < n; half *= 2 {
		step := n / (2 * half)
		for from := 0; from < n; from += 2 * half {
			lo, hi := f[from:from+half], f[from+half:from+2*half]
			for i := range lo {
				v := hi[i] * turns[i*step]
				lo[i], hi[i] = lo[i]+v, lo[i]-v
			}
		}
	}
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
