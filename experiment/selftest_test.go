package experiment

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/beacon"
	"fermata/internal/calm"
	"fermata/recording"
	"fermata/report"
)

// The test binary is also the beacon and the client of trials.
func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv("EXPERIMENT_TEST_ROLE"); role {
	case "beacon":
		err = BeaconMain(os.Getenv("EXPERIMENT_TEST_FOLDER"), os.Stdin, os.Stdout)
	case "trial":
		err = TrialMain(os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func rig(t testing.TB) *Rig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRig(func(role ...string) *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "EXPERIMENT_TEST_ROLE="+role[0])
		if len(role) > 1 {
			cmd.Env = append(cmd.Env, "EXPERIMENT_TEST_FOLDER="+role[1])
		}
		cmd.Stderr = os.Stderr
		return cmd
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// disturbed is how often a trial may be disturbed by a machine that is busy
// otherwise: between the server's reading of the clock and its write.
const disturbed = 5

// What is recorded lies within its bounds, whatever the load looks like, and each
// event of each answer is there.
func TestTrialsKeepTheirBounds(t *testing.T) {
	r := rig(t)
	second := time.Second
	for _, c := range []struct {
		name   string
		trial  Trial
		events int
	}{
		{"independent", SpreadTrial(40, 20, second), 40 * 20},
		{"in step", Trial{Streams: 40, Plan: beacon.Plan{Events: 20, Gap: 40 * time.Millisecond, Phase: beacon.Step, Wait: 40}}, 40 * 20},
		{"closed loop", Trial{Streams: 8, Requests: 24, Plan: beacon.Plan{Events: 10, TTFT: 30 * time.Millisecond, Gap: 10 * time.Millisecond}}, 24 * 10},
		{"bunches", Trial{Streams: 10, Plan: beacon.Plan{Events: 44, Gap: 10 * time.Millisecond, Bunch: 8}}, 10 * 44},
		{"open loop", Trial{Rate: 100, Requests: 60, Plan: beacon.Plan{Events: 5, Gap: 20 * time.Millisecond}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			calm.Try(t, func(t testing.TB) {
				for try := 1; ; try++ {
					got, err := r.Make(t.Context(), c.trial)
					if err != nil {
						t.Fatal(err)
					}
					events := c.events
					if c.trial.Rate > 0 { // its warm-up has as many requests as come in a second
						events = got.Requests * c.trial.Plan.Events
						if len(got.Due) != c.trial.Requests || got.Requests <= c.trial.Requests {
							t.Fatalf("%d requests, of which %d are measured", got.Requests, len(got.Due))
						}
					}
					if len(got.Error) != events || got.Failed != 0 {
						t.Fatalf("%d arrivals, %d requests failed; %d events were sent", len(got.Error), got.Failed, events)
					}
					if got.Early > 0 {
						t.Errorf("%d stamps lie before the time of sending", got.Early)
					}
					t.Logf("error %+v, sender %+v, exact %d", spread(got.Error), spread(got.Sender), len(got.Exact))
					if got.Violations == 0 {
						return
					}
					if try == disturbed {
						t.Fatalf("%d of %d arrivals outside their bounds, in the last of %d trials", got.Violations, events, try)
					}
				}
			})
		})
	}
}

// A client that is to end ends, and its rig goes on.
func TestTrialIsCutShort(t *testing.T) {
	r := rig(t)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := r.Make(ctx, SpreadTrial(5, 20, 20*time.Second)); err != ErrInterrupted {
		t.Errorf("%v", err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	if got, err := r.Make(t.Context(), SpreadTrial(5, 20, time.Second/2)); err != nil || len(got.Error) != 50 {
		t.Errorf("the next trial: %v", err)
	}
}

// A recording made by hand, whose differences from the truth are known.
func TestJudgeTrial(t *testing.T) {
	const ms, us = int64(time.Millisecond), int64(time.Microsecond)
	const wall = int64(1_800_000_000_000_000_000)
	told := beacon.Report{Requests: 2, Log: []beacon.Request{
		{ // bunches of two
			Number: 3, ReceivedNs: wall + 1*ms, FirstNs: wall + 10*ms, StepNs: 20 * ms, Bunch: 2,
			SentNs: []int64{wall + 10*ms + 5*us, wall + 30*ms + 9*us}, TookNs: []int64{us, us},
		},
		{
			Number: 4, ReceivedNs: wall + 2*ms, FirstNs: wall + 12*ms, StepNs: 10 * ms, Bunch: 1,
			SentNs: []int64{wall + 12*ms, wall + 22*ms, wall + 32*ms}, TookNs: []int64{us, us, 30 * us},
		},
	}}
	traces := []recording.Trace{
		{
			Index: 0, Phase: recording.Measured, Due: 500 * us, Sent: recording.Some(900 * us), Outcome: recording.OK, ResponseID: beacon.ID(3),
			Arrivals: arrived(500*us, [][2]int64{
				{10*ms + 7*us, 50 * us},  // 2 µs late, exact
				{10*ms + 7*us, 40 * ms},  // the same, bounded
				{30*ms + 12*us, 50 * us}, // 3 µs late: the gap is 1 µs too long
			}),
		},
		{
			Index: 1, Phase: recording.Measured, Due: 600 * us, Sent: recording.Some(2 * ms), Outcome: recording.OK, ResponseID: beacon.ID(4),
			Arrivals: arrived(600*us, [][2]int64{
				{12*ms + 100*us, 40 * us}, // within what the truth is good for
				{22*ms - 2*us, 50 * us},   // early
				{33 * ms, 50 * us},        // a millisecond late, but said to be exact
			}),
		},
		{Index: 2, Phase: recording.Measured, Due: 700 * us, Outcome: recording.HTTPError, FailedAt: recording.AtHeaders},
	}
	dir := t.TempDir()
	if err := recording.WriteParquet(filepath.Join(dir, recording.RequestsFile), recording.Meta{}, slices.Values(traces)); err != nil {
		t.Fatal(err)
	}
	taken := &Taken{ZeroWallNs: wall, SpanNs: 100 * ms, Marks: []Mark{
		{At: 0, CPU: 0, Timed: -1, Memory: 1000},
		{At: 5 * ms, CPU: 100, Timed: -1, Memory: 9000},
		{At: 14 * ms, CPU: 300, Timed: 100, Memory: 0},
		{At: 30 * ms, CPU: 700, Timed: 200, Memory: 0},
		{At: 99 * ms, CPU: 9999, Timed: 300, Memory: 0},
	}}
	got, err := judgeTrial(&Trial{Streams: 2, Dir: dir}, taken, &told)
	if err != nil {
		t.Fatal(err)
	}
	if got.Failed != 1 || got.Early != 1 || got.Violations != 2 {
		t.Errorf("%d failed, %d early, %d violations: want 1, 1 and 2", got.Failed, got.Early, got.Violations)
	}
	check := func(what string, got []int64, want ...int64) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	check("sender", got.Sender, 5*us, 9*us, 0, 0, 0)
	check("errors", got.Error, 2*us, 2*us, 3*us, 100*us, -2*us, ms)
	check("errors of exact ones", got.Exact, 2*us, 3*us, -2*us, ms)
	check("gaps", got.Gap, us, 102*us, ms+2*us)
	check("TTFT", got.TTFT, abs(10*ms+7*us-900*us-(9*ms+5*us)), abs(12*ms+100*us-2*ms-10*ms))
	check("lateness", got.Lateness, 400*us, 1400*us)
	check("to the wire", got.Wire, 500*us, 1400*us)
	// An eighth of the 23 ms from the first to the last is left out at both ends: of
	// the marks, those at 14 and 30 ms remain, with one arrival between them.
	if got.CPUPerEvent != 400 || got.TimedPerEvent != 100 || got.SetupCPU != 50 || got.Memory != 4000 {
		t.Errorf("CPU %g and %g an event, %g a stream, memory %g", got.CPUPerEvent, got.TimedPerEvent, got.SetupCPU, got.Memory)
	}
	wantFlight := float64(30*ms+9*us-ms+32*ms-2*ms) / float64(32*ms-ms)
	if math.Abs(got.InFlight-wantFlight) > 1e-9 || math.Abs(got.EventsPerS-7/(float64(22*ms-5*us)/1e9)) > 1e-6 {
		t.Errorf("%g in flight, want %g; %g events/s", got.InFlight, wantFlight, got.EventsPerS)
	}
	// A clock that gained 1 ms in the run is taken back in proportion.
	taken.DriftNs = ms
	if at := taken.clock()(wall + 50*ms); at != 50*ms-ms/2 {
		t.Errorf("50 ms of a clock that gains 1 ms in 100 are %d ns", at)
	}
}

// arrived are arrivals at times with bounds.
func arrived(due int64, all [][2]int64) (a recording.Arrivals) {
	for _, one := range all {
		a.DeltaNs = append(a.DeltaNs, one[0]-due)
		due = one[0]
		a.StampErrorNs = append(a.StampErrorNs, one[1])
		a.Tokens, a.Read = append(a.Tokens, 1), append(a.Read, int32(len(a.Read)+1))
		a.Channel, a.TextBytes = append(a.Channel, 0), append(a.TextBytes, 4)
	}
	return a
}

func TestVerdictOfSelftest(t *testing.T) {
	step := func(streams int, p99 time.Duration, void bool, violations int64) report.SelftestStep {
		return report.SelftestStep{Streams: streams, Sent: float64(20 * streams), Void: void, Violations: violations, Error: report.Spread{P99: int64(p99)}}
	}
	const us = time.Microsecond
	for _, c := range []struct {
		name      string
		steps     []report.SelftestStep
		streams   int
		errorNs   int64 // 0: none
		low, high float64
	}{
		{"all good", []report.SelftestStep{step(50, 8*us, false, 0), step(1000, 17*us, false, 0)}, 1000, 20_000, 0, 0},
		{"one passes", []report.SelftestStep{step(50, 8*us, false, 0), step(1000, 1500*us, false, 0)}, 50, 10_000, 1000, 20_000},
		{"the first passes", []report.SelftestStep{step(50, 2000*us, false, 0)}, 0, 0, 0, 1000},
		{"only the first passes", []report.SelftestStep{step(50, 2000*us, false, 0), step(1000, 9*us, false, 0)}, 0, 0, 0, 1000},
		{"void", []report.SelftestStep{step(50, 8*us, false, 0), step(1000, 1500*us, true, 0)}, 50, 10_000, 0, 0},
		{"gaps pass", []report.SelftestStep{step(50, 8*us, false, 0), {Streams: 250, GapError: report.Spread{P99: int64(2000 * us)}}, step(1000, 9*us, false, 0)}, 50, 10_000, 0, 0},
		{"all void", []report.SelftestStep{step(50, 8*us, true, 0)}, 0, 0, 0, 0},
		{"violated in a void load", []report.SelftestStep{step(50, 8*us, false, 0), step(1000, 9*us, true, 3)}, 50, 10_000, 0, 0},
		{"violated", []report.SelftestStep{step(50, 8*us, false, 1)}, 0, 0, 0, 0},
	} {
		s := &report.Selftest{Steps: c.steps, Transport: "fast"}
		judgeSelftest(s)
		value := func(p *float64) float64 {
			if p == nil {
				return 0
			}
			return *p
		}
		quoted := int64(0)
		if s.Verdict.ErrorNs != nil {
			quoted = *s.Verdict.ErrorNs
		}
		if s.Verdict.Streams != c.streams || quoted != c.errorNs || value(s.PassesHigh) != c.high || c.name == "one passes" && value(s.PassesLow) != c.low {
			t.Errorf("%s: %d streams, %d ns, passes between %g and %g: %s", c.name, s.Verdict.Streams, quoted, value(s.PassesLow), value(s.PassesHigh), s.Verdict.Text)
		}
		if again := strings.Contains(s.Verdict.Text, "A higher load kept to it"); again != (c.name == "only the first passes") {
			t.Errorf("%s: %s", c.name, s.Verdict.Text)
		}
	}
}
