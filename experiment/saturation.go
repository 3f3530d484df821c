package experiment

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fermata/capacity"
	"fermata/load"
	"fermata/recording"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// A probe of saturation asks for more than the server can do and looks at how fast
// it answers. It is no part of the run: nothing of it is recorded.
const (
	burstRequests = 600              // most requests, all at once unless load.max_in_flight says otherwise
	burstTime     = 60 * time.Second // after which those that are left are cut
	burstFrom     = 1 << 40          // number of its first request: no run gets so far, and made-up prompts differ by number
)

// probeSaturation finds the rate that the target serves while requests wait, before
// anything is measured, and writes it into the run file as if it had been given. It
// tells what it may cost. Without enough answers saturation stays unknown.
func probeSaturation(ctx context.Context, stop <-chan struct{}, s *spec.Run, t *target) error {
	if !s.Load.ProbeSaturation {
		return nil
	}
	s.Judging.Saturation = spec.Saturation{}
	users := burstRequests
	if most := s.Load.MaxInFlight; most > 0 {
		users = min(users, most)
	}
	t.step("probing saturation: up to %d requests, %d at a time, for at most %s, before the run and not recorded", burstRequests, users, burstTime)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	halted := make(chan struct{})
	defer close(halted)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-halted:
		}
	}()
	answers, err := t.burst(ctx, 0, burstRequests, users, burstTime)
	select {
	case <-stop:
		return ErrInterrupted
	default:
	}
	if err != nil {
		return err
	}
	ends := wholeEnds(answers)
	rps, ok := capacity.ServedRate(ends)
	if scale := max(t.scale, s.Load.TimeScale); scale > 0 {
		rps /= scale
	}
	if !ok {
		t.say("%d of %d requests of the probe were answered: too few to know the saturation, so intervals rest on what the run itself shows", len(ends), len(answers))
		return nil
	}
	s.Judging.Saturation = spec.Saturation{RPS: rps}
	t.step("saturated at %.4g requests/s (%d requests)", rps, len(ends))
	return nil
}

// burst asks n times with so many users who never think, and gives what became of
// those that were sent. Bursts before asked for the first so many. What has not ended
// by the limit is cut.
func (t *target) burst(ctx context.Context, before int64, n, users int, limit time.Duration) ([]recording.Trace, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d, err := t.dialect()
	if err != nil {
		return nil, err
	}
	clock := wire.NewClock()
	tr := t.choice.New(clock)
	defer tr.Close()
	p := load.Probe{
		Dialect: d, Transport: tr, Clock: clock, URL: t.url, Header: t.headerFor("saturation"),
		Timeout: min(t.spec.Load.Timeout, limit), Secrets: t.secrets,
	}
	requests := make([]workload.Request, 0, n)
	for i := range int64(n) {
		q, ok := t.prompts.At(burstFrom+before+i, 0, 0)
		if !ok {
			break // a data set that is played once; Err tells of one that cannot be read
		}
		requests = append(requests, q)
	}
	if err := t.prompts.Err(); err != nil {
		return nil, err
	}
	traces, errs := make([]recording.Trace, len(requests)), make([]error, len(requests))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(users, len(requests)) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(requests)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				traces[i], errs[i] = p.Ask(ctx, &requests[i])
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(traces, func(t recording.Trace) bool { return t.Outcome == "" }), errors.Join(errs...)
}

// firstSent is when the first of them was sent, of those that were.
func firstSent(traces []recording.Trace) int64 {
	first := int64(math.MaxInt64)
	for i := range traces {
		first = min(first, traces[i].Sent.Or(traces[i].Due))
	}
	return first
}

// wholeEnds are when those with a whole answer ended.
func wholeEnds(traces []recording.Trace) (ends []int64) {
	for i := range traces {
		if traces[i].Outcome == recording.OK {
			ends = append(ends, traces[i].End.V)
		}
	}
	return ends
}
