package main

import (
	"testing"
	"time"

	"fermata/experiment"
	"fermata/load"
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
		if got := lineOf(c.now, c.plan, c.pace); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
