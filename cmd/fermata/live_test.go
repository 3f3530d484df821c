package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"fermata/experiment"
	"fermata/internal/term"
	"fermata/load"
	"fermata/metrics"
)

func TestLiveLine(t *testing.T) {
	now := load.Live{TimeNs: 12e9, InFlight: 9, Finished: 39, MeasuredDone: 20, Tokens: 4711}
	open := experiment.Plan{Measured: 100}
	pace := experiment.Pace{Offered: 4, Achieved: 3.875, Left: 20400 * time.Millisecond, LeftKnown: true}
	due := pace
	due.Left = 0
	checking := now
	checking.InFlight, checking.Unchecked = 0, 3
	for _, c := range []struct {
		now  load.Live
		plan experiment.Plan
		pace experiment.Pace
		want string
	}{
		{now, open, pace, "12s  about 20s left  offered 4.00/s  achieved 3.88/s  in flight 9  finished 39  measured 20 of 100  tokens 4711"},
		{now, open, due, "12s  awaiting the last answers  offered 4.00/s  achieved 3.88/s  in flight 9  finished 39  measured 20 of 100  tokens 4711"},
		{checking, open, due, "12s  checking the last answers  offered 4.00/s  achieved 3.88/s  in flight 0  finished 39  measured 20 of 100  to check 3  tokens 4711"},
		{now, experiment.Plan{Users: 8}, experiment.Pace{Achieved: 3.5}, "12s  achieved 3.50/s  in flight 9  finished 39  tokens 4711"},
	} {
		if got := lineOf(c.now, c.plan, c.pace, false); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Once somebody stopped the run nothing is left of it but answers.
func TestStoppedRun(t *testing.T) {
	stop := make(chan struct{})
	l := &live{}
	l.watch(&experiment.Options{Stop: stop})
	if l.stopped() || (&live{}).stopped() {
		t.Error("stopped from the start")
	}
	close(stop)
	if !l.stopped() {
		t.Error("not stopped")
	}
	now, pace := load.Live{TimeNs: 12e9}, experiment.Pace{Left: 20 * time.Second, LeftKnown: true}
	want := "12s · stopping, awaiting the answers under way"
	if got := (&frame{now: now, pace: pace, stopped: true}).clock(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want = "12s  stopping, awaiting the answers under way  offered"
	if got := lineOf(now, experiment.Plan{}, pace, true); !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What the view says, and that no line is wider than the terminal.
func TestFrame(t *testing.T) {
	f := &frame{
		now:  load.Live{TimeNs: 62e9, Phase: "measured", InFlight: 9, Finished: 140, Failed: 4, MeasuredDone: 120, Tokens: 4711, Waiting: 2},
		plan: experiment.Plan{Measured: 200},
		pace: experiment.Pace{Offered: 4, Achieved: 3.98, Left: 20 * time.Second, LeftKnown: true},
		glimpse: metrics.Glimpse{
			Ended: 140, TTFT: []int64{120e6, 310e6, 840e6}, TBT: []int64{20_100_000, 22e6, 48e6},
			Fluid:    []metrics.FluidSoFar{{GapNs: 25e6, Share: .125}, {GapNs: 50e6, Share: 1}},
			Failures: map[string]int64{"timeout": 1, "http_error": 3},
		},
	}
	want := []string{
		"1m2s · measured · about 20s left",
		"██████████████████░░░░░░░░░░░░  measured 120 of 200",
		"offered 4.00/s · achieved 3.98/s · in flight 9 · finished 140 · tokens 4,711 ·…",
		"             p50       p90       p99   of 140 that have ended",
		"TTFT      120 ms    310 ms    840 ms",
		"TBT      20.1 ms   22.0 ms   48.0 ms",
		"F ≥ 0.9  12.5% at 25 ms  100% at 50 ms",
		"failed: http_error 3 · timeout 1",
	}
	plain := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for i, line := range f.lines(80) {
		if got := plain.ReplaceAllString(line, ""); i >= len(want) || got != want[i] {
			t.Errorf("line %d: %s", i, got)
		}
	}
	for _, width := range []int{20, 40, 79, 200} {
		for _, line := range f.lines(width) {
			if n := term.Cells(line); n >= width {
				t.Errorf("%d cells of %d: %s", n, width, line)
			}
		}
	}
	early := &frame{now: load.Live{TimeNs: 1e9, Failed: 2}, plan: experiment.Plan{Users: 3}, pace: experiment.Pace{Achieved: 1}}
	if got := strings.Join(early.lines(80), "\n"); !strings.Contains(got, "measured 0 requests\nachieved 1.00/s") || !strings.Contains(got, "no request has ended yet") || !strings.Contains(got, "failed 2") {
		t.Error(got)
	}
}
