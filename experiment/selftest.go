package experiment

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"fermata/beacon"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/report"
	"fermata/schedule"
)

// SelftestOptions say how the instrument is tested.
type SelftestOptions struct {
	Quick     bool                           // fewer and shorter loads
	Transport string                         // fast, compatible or empty: as a run would choose
	Version   string                         // of the tool
	Command   func(role ...string) *exec.Cmd // as NewRig's
	Say       func(format string, args ...any)
}

// perStream is how often a second each stream has an event: 50 ms between tokens.
const perStream = 20

// enough is how long loads may have taken for another to begin.
const enough = 45 * time.Second

// selftestLoads are the numbers of streams, rising.
func selftestLoads(quick bool) []int {
	if quick {
		return []int{50, 1000}
	}
	return []int{50, 250, 1000, 2500, 5000, 7500, 10_000}
}

// Selftest offers rising loads to a beacon and says how good the instrument's
// stamps are. It takes less than a minute.
func Selftest(ctx context.Context, o SelftestOptions) (*report.Selftest, error) {
	rig, err := NewRig(o.Command, false)
	if err != nil {
		return nil, err
	}
	s := &report.Selftest{Schema: report.SelftestSchemaName, Tool: metrics.Tool{Name: "fermata", Version: o.Version}, Quick: o.Quick, Machine: MachineOf(rig)}
	err = offerTrials(ctx, rig, s, o)
	if cerr := rig.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	judgeSelftest(s)
	return s, nil
}

// MachineOf is the machine that a rig stands on.
func MachineOf(rig *Rig) report.Machine {
	m := report.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernelVersion(), Processor: processorName(), Cores: runtime.NumCPU()}
	if rig.Beacon.Cores {
		m.ServerCores, m.ClientCores = rig.ServerCores, rig.ClientCores
	}
	m.Realtime = rig.Beacon.Realtime
	return m
}

// offerTrials makes the trials.
func offerTrials(ctx context.Context, rig *Rig, s *report.Selftest, o SelftestOptions) error {
	began := time.Now()
	span := 3 * time.Second
	if o.Quick {
		span = time.Second
	}
	for _, n := range selftestLoads(o.Quick) {
		if most := room(); n > most {
			s.Warnings = append(s.Warnings, metrics.Warning{
				Code: "selftest_limit", Text: fmt.Sprintf("this process may have %d connections at once: larger loads were left out", most),
				Help: "Raise the limit of open files (ulimit -n), or widen the range of ports.",
			})
			break
		}
		if time.Since(began) > enough {
			s.Warnings = append(s.Warnings, metrics.Warning{
				Code: "selftest_slow", Text: fmt.Sprintf("the loads up to here took longer than %s: larger ones were left out", enough),
				Help: "This machine is busy with something else. Run the self-test again when it is not.",
			})
			break
		}
		t := SpreadTrial(n, perStream, span)
		t.Transport, t.Collect = o.Transport, true
		o.Say("%s streams × %d events/s", term.Count(int64(n)), perStream)
		got, err := rig.Make(ctx, t)
		if err != nil {
			return err
		}
		s.Transport = got.Taken.Transport
		step := got.Step(&t)
		s.Steps = append(s.Steps, step)
		if k := len(s.Steps); k >= 2 && over(&s.Steps[k-1]) && over(&s.Steps[k-2]) {
			break // higher loads would say the same
		}
	}
	rate := 1000.0
	t := Trial{Rate: rate, Requests: int(rate * span.Seconds()), Wide: true, Transport: o.Transport, Plan: beacon.Plan{Events: 10, Gap: time.Second / perStream}}
	o.Say("%s requests/s", term.Count(int64(rate)))
	got, err := rig.Make(ctx, t)
	if err != nil {
		return err
	}
	s.Dispatch = got.Dispatch(&t)
	return nil
}

// SpreadTrial is a load of n independent streams, each with so many events a
// second, that lasts for span once all of them stand.
func SpreadTrial(n int, perS float64, span time.Duration) Trial {
	gap := time.Duration(float64(time.Second) / perS)
	return Trial{Streams: n, Plan: beacon.Plan{Events: int(span / gap), Gap: gap, Phase: beacon.Spread, Wait: n, Tail: gap}}
}

// Dispatch is an open loop's trial as the self-test shows it.
func (r *Trialed) Dispatch(t *Trial) *report.SelftestDispatch {
	d := &report.SelftestDispatch{Rate: t.Rate, Lateness: spread(r.Lateness), Wire: spread(r.Wire)}
	slices.Sort(r.Due)
	if plan, err := schedule.New(t.schedule(), 1); err == nil && len(r.Due) > 2 {
		g := plan.Realised(r.Due)
		d.Realised, d.CV = 1e9/g.MeanNs, g.CV
		if g.Asked != nil && g.Asked.Distance != nil {
			d.KS = *g.Asked.Distance
			d.Root = d.KS * math.Sqrt(float64(g.N))
		}
	}
	return d
}

// over says that a load's stamps are worse than 1 ms at p99.
func over(s *report.SelftestStep) bool { return s.Error.P99 > passNs }

// passNs is the error from which on a load counts as too high.
const passNs = int64(time.Millisecond)

// judgeSelftest says what may be quoted.
func judgeSelftest(s *report.Selftest) {
	worst, holds := int64(0), true
	for i := range s.Steps {
		t := &s.Steps[i]
		if t.Void {
			continue // its server was late: neither its load nor its truth is to be trusted
		}
		s.Violations += t.Violations
		s.HighestValid = &t.Sent
		if over(t) {
			holds = false
			if s.PassesHigh == nil {
				s.PassesHigh = &t.Sent
			}
			continue
		}
		if s.PassesHigh == nil {
			s.PassesLow = &t.Sent
		}
		p99 := max(t.Error.P99, t.GapError.P99, t.TTFTError.P99)
		if holds = holds && t.Failed == 0 && p99 <= passNs; holds {
			worst, s.Verdict.Streams = max(worst, p99), t.Streams
		}
	}
	if s.PassesHigh == nil {
		s.PassesLow = nil
	}
	if s.Violations > 0 {
		s.Verdict = report.SelftestVerdict{Text: fmt.Sprintf("This machine's figures cannot be quoted: %s arrivals lay outside the bounds of their stamps.", term.Count(s.Violations))}
		return
	}
	if s.Verdict.Streams == 0 {
		s.Verdict.Text = "This machine's figures cannot be quoted to a millisecond: already at the lowest load stamps, gaps or TTFT were further off at p99, or the server held no load."
		if slices.ContainsFunc(s.Steps, func(t report.SelftestStep) bool {
			return !t.Void && t.Failed == 0 && max(t.Error.P99, t.GapError.P99, t.TTFTError.P99) <= passNs
		}) {
			s.Verdict.Text += " A higher load kept to it, so something else held this machine up: run the self-test again, with nothing beside it."
		} else {
			s.Verdict.Text += " Other work on the machine has that effect: run the self-test again without it."
		}
		return
	}
	quoted := roundUp(worst)
	s.Verdict.ErrorNs = &quoted
	s.Verdict.Text = fmt.Sprintf("This machine can quote TTFT and gaps to ±%s up to %s streams at %d tokens/s each.", term.Bound(quoted), term.Count(int64(s.Verdict.Streams)), perStream)
}

// roundUp is the next of 1, 2, 5, 10, … µs.
func roundUp(ns int64) int64 {
	for unit := int64(1000); ; unit *= 10 {
		for _, k := range []int64{1, 2, 5} {
			if ns <= k*unit || k*unit > math.MaxInt64/20 {
				return k * unit
			}
		}
	}
}
