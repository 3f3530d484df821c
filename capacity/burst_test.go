package capacity_test

import (
	"context"
	"math"
	"testing"

	"fermata/capacity"
)

// A batching server takes so many at once for a second each, so that it serves as many
// a second; of a burst each batch ends together but for a few ms.
type batching struct {
	*mm1
	slots  int
	bursts []int
	most   int // requests that somebody pays for at once; 0 for any number
}

func (b *batching) Burst(_ context.Context, n int) (capacity.Burst, error) {
	b.bursts = append(b.bursts, n)
	if b.most > 0 && n > b.most {
		return capacity.Burst{}, nil
	}
	burst := capacity.Burst{Asked: n, Began: 5e9}
	for i := range n {
		burst.Ends = append(burst.Ends, 5e9+int64(1+i/b.slots)*1e9+int64(i%b.slots)*1e6)
	}
	return burst, nil
}

// A burst within one batch says nothing of saturation: it is doubled until it is
// several batches, and where it never is, the average is a lower bound that is called
// one. 1,200 are nine batches of 140, and not one of 1,300.
func TestBurstThatFitsIntoOneBatch(t *testing.T) {
	for _, c := range []struct {
		slots, most, last, sent int
		guessed                 bool
	}{
		{slots: 10, last: 150, sent: 150},
		{slots: 140, last: 1200, sent: 2250},
		{slots: 1300, last: 1200, sent: 2250, guessed: true},
		{slots: 140, most: 200, last: 150, sent: 150, guessed: true},
	} {
		p := &batching{mm1: newMM1(float64(c.slots), 1e9, 3), slots: c.slots, most: c.most}
		r, err := capacity.Search(context.Background(), p, capacity.Options{Allowed: .1, Precision: .25}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Probe.Asked != c.last || r.Requests != int64(r.Budget.Total-r.Budget.Probe+c.sent) || r.Probe.Guessed != c.guessed || warned(r, "saturation_guessed") != c.guessed {
			t.Errorf("%d at once: %+v of bursts %v, %d requests", c.slots, r.Probe, p.bursts, r.Requests)
		}
		off := math.Log(*r.SaturationRPS / float64(c.slots))
		if !c.guessed && math.Abs(off) > .2 || c.guessed && off > .01 {
			t.Errorf("%d at once: saturated at %.4g", c.slots, *r.SaturationRPS)
		}
	}
}

// 100 answers, the last in each 10 ms from 1.01 s on: 86 by 1.86 s, and 60 of them in
// .6 s. From a start of 1 s before, the average is half of that.
func TestSaturationOfABurst(t *testing.T) {
	b := capacity.Burst{Asked: 100}
	for i := range int64(100) {
		b.Ends = append(b.Ends, 1e9+(i+1)*10e6)
	}
	if rps, sure := b.Saturation(); sure || math.Abs(rps-86/1.86) > 1e-9 {
		t.Errorf("%v %v", rps, sure)
	}
	b.Began = 1e9
	if rps, sure := b.Saturation(); !sure || math.Abs(rps-100) > 1e-9 {
		t.Errorf("%v %v", rps, sure)
	}
	b.Ends = b.Ends[:39]
	if rps, sure := b.Saturation(); sure || rps != 0 {
		t.Errorf("%v %v", rps, sure)
	}
}

// A cliff is a queue of which nothing misses up to a rate, and everything above it.
type cliff struct {
	*mm1
	edge  float64
	rates []float64
}

func (c *cliff) Send(ctx context.Context, n int, rate float64) error {
	for range n {
		c.rates = append(c.rates, rate)
	}
	return c.mm1.Send(ctx, n, rate)
}

func (c *cliff) Outcomes() []capacity.Outcome {
	from := c.told
	known := c.mm1.Outcomes()
	for i := range known {
		known[i].Missed = c.rates[from+i] > c.edge
	}
	return known
}

// Where misses break off, the slope of a queue leads both ends past the truth: the
// interval holds its point and the truth all the same, and it is told.
func TestIntervalAtACliff(t *testing.T) {
	holds, outside := 0, 0
	const searches = 20
	for seed := range uint64(searches) {
		r, err := capacity.Search(context.Background(), &cliff{mm1: newMM1(100, 1e9, seed), edge: 60}, capacity.Options{Allowed: .1, Precision: .1}, nil)
		if err != nil || r.Capacity == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		c := r.Capacity
		if *c.Low > .9*c.RPS+1e-9 || *c.High < 1.1*c.RPS-1e-9 {
			t.Errorf("seed %d: %.4g lies in %.4g–%.4g", seed, c.RPS, *c.Low, *c.High)
		}
		if *c.Low <= 60 && 60 <= *c.High {
			holds++
		}
		if warned(r, "outside") {
			outside++
		}
	}
	if holds < searches-1 || outside == 0 {
		t.Errorf("%d of %d intervals hold the truth, %d are told to lead away", holds, searches, outside)
	}
}

// What never missed holds at least at the rate that was held: more was not tried.
func TestLowerBoundWasHeld(t *testing.T) {
	for seed := range uint64(5) {
		r, err := capacity.Search(context.Background(), newMM1(10, 1e9, seed), capacity.Options{Allowed: .01, Precision: .25}, nil)
		if err != nil || r.Ending != capacity.NeverMissed || r.Capacity.RPS > r.Held.Rate || *r.Capacity.Low > r.Capacity.RPS {
			t.Errorf("%+v, %+v, %v", r.Capacity, r.Held, err)
		}
	}
}
