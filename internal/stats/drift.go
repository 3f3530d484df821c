package stats

import "math"

// A Drift is whether something that each request saw kept growing over a run: the
// slope over means of ten batches.
type Drift struct {
	Slope         float64 // growth a request
	T             float64 // slope over its standard error, 8 degrees of freedom
	First, Second float64 // means of the halves
}

const driftBatches = 10

// DriftOf measures the growth of x, one value a request in the order of due times;
// ok is false for fewer than 20.
func DriftOf(x []float64) (d Drift, ok bool) {
	m := len(x) / driftBatches
	if m < 2 {
		return d, false
	}
	var y [driftBatches]float64
	for i := range y {
		y[i] = meanOf(x[i*m : (i+1)*m])
	}
	mean := meanOf(y[:])
	var sxx, sxy, rest float64
	at := func(i int) float64 { return (float64(i) - (driftBatches-1)/2.) * float64(m) }
	for i, v := range y {
		sxx += at(i) * at(i)
		sxy += at(i) * v
	}
	d.Slope = sxy / sxx
	for i, v := range y {
		r := v - mean - d.Slope*at(i)
		rest += r * r
	}
	if se := math.Sqrt(rest / (driftBatches - 2) / sxx); se > 0 {
		d.T = d.Slope / se
	} else if d.Slope > 0 || d.Slope < 0 {
		d.T = math.Copysign(math.MaxFloat64, d.Slope)
	}
	half := len(x) / 2
	d.First, d.Second = meanOf(x[:half]), meanOf(x[half:])
	return d, true
}

// Unsteady says of the number of requests under way, as each new one finds it,
// that it grew without end: by over a two-hundredth a request, over five standard
// errors, and to over 1.25 times in the second half. Of runs at .82 of saturation
// none is flagged, at .91 one in twenty of 1000 requests and none of 8000, at 1.05
// two thirds of 2000 and 99 in 100 of 8000.
func (d Drift) Unsteady() bool {
	return d.Slope > 0.005 && d.T > 5 && d.Second > 1.25*d.First
}
