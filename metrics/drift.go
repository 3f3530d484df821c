package metrics

import (
	"fermata/internal/stats"
	"fermata/recording"
)

const (
	driftSkips = 500 // requests from the first on, of any phase, in which a system fills
	driftFrom  = 500 // measured requests after that without which nothing is said
)

// drift follows the number of requests under way as each new one finds it.
type drift struct {
	ends   heap
	all    int64     // requests of any phase
	under  []float64 // of measured requests
	spread bool      // not all requests are due at once
	due    int64
}

// see takes the next request in, in the order of due times.
func (d *drift) see(t *recording.Trace, measured bool) {
	d.spread = d.spread || d.all > 0 && t.Due > d.due
	d.due = t.Due
	for len(d.ends) > 0 && d.ends[0].at <= t.Due {
		d.ends.pop()
	}
	if d.all++; measured && d.all > driftSkips {
		d.under = append(d.under, float64(len(d.ends)))
	}
	d.ends.push(stay{at: t.End.Or(never)})
}

// result is nil where there is nothing to say.
func (d *drift) result() *Drift {
	if !d.spread || len(d.under) < driftFrom {
		return nil
	}
	r, ok := stats.DriftOf(d.under)
	if !ok {
		return nil
	}
	return &Drift{
		Requests: int64(len(d.under)), PerRequest: r.Slope, T: r.T, FirstHalf: r.First, SecondHalf: r.Second, Unsteady: r.Unsteady(),
	}
}

// growth is how much a time grew a request, over the requests that have it.
func growth(order []float32) *float64 {
	x := make([]float64, len(order))
	for i, v := range order {
		x[i] = float64(v)
	}
	d, ok := stats.DriftOf(x)
	return some(d.Slope, ok)
}
