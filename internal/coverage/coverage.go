// Package coverage measures how often an interval of a percentile holds the truth,
// on plants whose truth is known. Tests use it; what they find is published in
// docs/evidence.
package coverage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"fermata/internal/stats"
)

// A Plant makes runs of a system in its steady state.
type Plant struct {
	Name  string
	Load  float64                            // ratio of the offered rate to saturation
	Truth func(p float64) float64            // the percentile, 0 < p < 1
	Run   func(n int, seed uint64) []float32 // latencies of n requests, in the order of due times
}

// MM1 is the time that customers spend in a queue with exponential gaps and
// service times of mean 1 (Lindley's recursion), begun in its steady state.
func MM1(load float64) Plant {
	return Plant{
		Name: fmt.Sprintf("M/M/1 at %.2g", load), Load: load,
		Truth: func(p float64) float64 { return -math.Log1p(-p) / (1 - load) },
		Run: func(n int, seed uint64) []float32 {
			rng := rand.New(rand.NewPCG(seed, uint64(1000*load)))
			wait := 0.0
			if rng.Float64() < load {
				wait = rng.ExpFloat64() / (1 - load)
			}
			times := make([]float32, n)
			for i := range times {
				service := rng.ExpFloat64()
				times[i] = float32(wait + service)
				wait = max(0, wait+service-rng.ExpFloat64()/load)
			}
			return times
		},
	}
}

// A Cell is what came of the runs of one plant, length and percentile. Shares are
// of the runs.
type Cell struct {
	Plant string
	N     int
	P     int // thousandths
	Runs  int

	Recommended float64 // intervals that hold the truth, the load being known
	Assumed     float64 // … the load being unknown
	Independent float64 // … requests taken as independent
	OK          float64 // figures of status ok, the load being known
	OKHolds     float64 // of those, intervals that hold the truth; NaN where there are none
	Stated      float64 // figures of status assumed, the load being unknown
	StatedHolds float64 // of those, intervals that hold the truth; NaN where there are none
}

// Measure makes so many runs for each plant and length, and looks at each
// percentile of them. Plants work side by side, each on a goroutine of its own.
func Measure(plants []Plant, lengths, percentiles []int, runs int) []Cell {
	of := make([][]Cell, len(plants))
	var all sync.WaitGroup
	for i, plant := range plants {
		all.Go(func() { of[i] = measure(plant, lengths, percentiles, runs) })
	}
	all.Wait()
	return slices.Concat(of...)
}

func measure(plant Plant, lengths, percentiles []int, runs int) (cells []Cell) {
	for _, n := range lengths {
		counts := make([]count, len(percentiles))
		for run := range runs {
			counts = look(plant, n, uint64(run)<<32|uint64(n), percentiles, counts)
		}
		for i, p := range percentiles {
			cells = append(cells, counts[i].cell(Cell{Plant: plant.Name, N: n, P: p, Runs: runs}))
		}
	}
	return cells
}

// count counts the runs of a cell.
type count struct{ recommended, assumed, independent, ok, okHolds, stated, statedHolds int }

func look(plant Plant, n int, seed uint64, percentiles []int, counts []count) []count {
	values := plant.Run(n, seed)
	own := stats.TauOf(values, stats.UpperTail, false)
	known := own.Or(stats.Relaxation(plant.Load))
	slices.Sort(values)
	for i, p := range percentiles {
		truth, c := plant.Truth(float64(p)/1000), &counts[i]
		holds := func(tau float64) (held, stated bool) {
			nEff := float64(n) / tau
			low, high := stats.OrderInterval(int64(n), p, nEff)
			held = (low == 0 || float64(values[low-1]) <= truth) && (high == 0 || truth < float64(values[high-1]))
			return held, low > 0 && high > 0 && stats.Sufficient(int64(n), tau, nEff, p)
		}
		add := func(held, stated bool, all, some, someHeld *int) {
			if held {
				*all++
			}
			if stated {
				*some++
			}
			if held && stated {
				*someHeld++
			}
		}
		held, stated := holds(known.V)
		add(held, stated, &c.recommended, &c.ok, &c.okHolds)
		held, stated = holds(own.V)
		add(held, stated, &c.assumed, &c.stated, &c.statedHolds)
		if held, _ = holds(1); held {
			c.independent++
		}
	}
	return counts
}

func (c count) cell(into Cell) Cell {
	share := func(k, n int) float64 { return float64(k) / float64(n) }
	into.Recommended, into.Assumed, into.Independent = share(c.recommended, into.Runs), share(c.assumed, into.Runs), share(c.independent, into.Runs)
	into.OK, into.OKHolds = share(c.ok, into.Runs), share(c.okHolds, c.ok)
	into.Stated, into.StatedHolds = share(c.stated, into.Runs), share(c.statedHolds, c.stated)
	return into
}

// Mean is the mean of a figure over cells.
func Mean(cells []Cell, of func(Cell) float64) float64 {
	sum := 0.0
	for _, c := range cells {
		sum += of(c)
	}
	return sum / float64(len(cells))
}

// Markdown is the cells as a table.
func Markdown(cells []Cell) string {
	var b strings.Builder
	b.WriteString("| plant | n | percentile | load known | load unknown | as if independent | `ok` | of `ok` | `assumed` | of `assumed` |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	figure := func(v float64) string {
		if math.IsNaN(v) {
			return "–"
		}
		return fmt.Sprintf("%.3f", v)
	}
	for _, c := range cells {
		fmt.Fprintf(&b, "| %s | %d | p%g | %s | %s | %s | %s | %s | %s | %s |\n", c.Plant, c.N, float64(c.P)/10,
			figure(c.Recommended), figure(c.Assumed), figure(c.Independent), figure(c.OK), figure(c.OKHolds), figure(c.Stated), figure(c.StatedHolds))
	}
	return b.String()
}
