package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/term"
	"fermata/load"
	"fermata/metrics"
)

// How a run's progress is told.
const (
	progressAuto  = "auto"  // a view on a terminal that can be coloured, else lines
	progressPlain = "plain" // lines
)

func addProgress(c *cobra.Command, how *string) {
	c.Flags().StringVar(how, "progress", progressAuto, "`HOW` progress is told: auto (a live view on a terminal) or plain (lines)")
	_ = c.RegisterFlagCompletionFunc("progress", cobra.FixedCompletions([]string{progressAuto, progressPlain}, cobra.ShellCompDirectiveNoFileComp))
}

func checkProgress(how string) error {
	if how != progressAuto && how != progressPlain {
		return usagef("--progress takes auto or plain, not %q", how)
	}
	return nil
}

// A live tells how a run goes: in a view that is drawn every second on a terminal,
// by a line every ten seconds elsewhere.
type live struct {
	s        streams
	view     *notices // nil for lines
	last     int64    // when a line was told
	at       int64    // of what was told last
	progress experiment.Progress
	stop     <-chan struct{} // closed when somebody stops the run; nil where nobody can
	glance   *metrics.Glance // of the run under way; nil without a view
}

const quietly = int64(10 * time.Second)

func newLive(s streams) *live {
	l := &live{s: s}
	c, ok := s.err.(*notices)
	if f := terminal(s.err); ok && f != nil && !s.quiet && s.progress != progressPlain && term.Colour(f) {
		l.view = c
	}
	return l
}

// watch makes a run tell l how it goes.
func (l *live) watch(o *experiment.Options) {
	o.Live, l.stop = l.show, o.Stop
	if l.view != nil {
		o.Glance = func(g *metrics.Glance) { l.glance = g }
	}
}

// series are the options of runs one after the other: whatever is said between two
// of them takes the view of the first away.
func (l *live) series(out string, stop <-chan struct{}) experiment.Options {
	o := l.s.options(out, stop)
	o.Say, o.Step = l.s.above(l.end)
	l.watch(&o)
	return o
}

func (l *live) show(now load.Live, p experiment.Plan) {
	if now.TimeNs < l.at { // the next run's
		l.last, l.progress = 0, experiment.Progress{}
	}
	l.at = now.TimeNs
	l.progress.Plan = p
	pace := l.progress.Take(now)
	stopped := l.stopped()
	switch {
	case l.s.quiet:
	case l.view != nil:
		frame := &frame{now: now, plan: p, pace: pace, stopped: stopped}
		if l.glance != nil {
			frame.glimpse = l.glance.Now()
		}
		l.view.show(frame.lines)
	case now.TimeNs-l.last >= quietly:
		l.last = now.TimeNs
		l.s.say("%s", lineOf(now, p, pace, stopped))
	}
}

// stopped says whether somebody has stopped the run, of which nothing more is due then.
func (l *live) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// end takes the view away.
func (l *live) end() {
	if l.view != nil {
		l.view.clear()
	}
}

// A frame is what the view shows at a moment.
type frame struct {
	now     load.Live
	plan    experiment.Plan
	pace    experiment.Pace
	stopped bool // by somebody, so that nothing more is due
	glimpse metrics.Glimpse
}

// lines are the frame's, for a terminal so wide.
func (f *frame) lines(width int) []string {
	all := []string{f.clock(), f.bar(width), f.rates()}
	all = append(all, f.times()...)
	if errors := f.errors(); errors != "" {
		all = append(all, term.Paint(term.Cut(errors, width-1), term.Bad, true))
	}
	for i, line := range all {
		if !strings.Contains(line, "\x1b") {
			all[i] = term.Cut(line, width-1)
		}
	}
	return all
}

// clock is how far the run is.
func (f *frame) clock() string {
	text := time.Duration(f.now.TimeNs).Round(time.Second).String()
	if phase := f.now.Phase; phase != "" {
		text += " · " + phase
	}
	if left := leftText(f.now, f.pace, f.stopped); left != "" {
		text += " · " + left
	}
	if f.now.Spent != nil {
		text += " · spent " + f.now.Spent.Short()
		if f.plan.MaxCost != "" {
			text += " of " + f.plan.MaxCost
		}
		text += " " + f.plan.Currency
	}
	return text
}

// leftText is how long the run goes on.
func leftText(now load.Live, pace experiment.Pace, stopped bool) string {
	switch {
	case stopped:
		return "stopping, awaiting the answers under way"
	case pace.LeftKnown && pace.Left <= 0 && now.Unchecked > now.InFlight:
		return "checking the last answers"
	case pace.LeftKnown && pace.Left <= 0:
		return "awaiting the last answers"
	case pace.LeftKnown:
		return "about " + pace.Left.Round(time.Second).String() + " left"
	}
	return ""
}

// barWidth is how many cells the bar of progress has.
const barWidth = 30

// bar is the share of the measured requests that have ended or, where nobody knows
// how many there will be, their number.
func (f *frame) bar(width int) string {
	done, all := f.now.MeasuredDone, f.plan.Measured
	if all <= 0 {
		return fmt.Sprintf("measured %s requests", term.Count(done))
	}
	text := fmt.Sprintf("  measured %s of %s", term.Count(done), term.Count(all))
	cells := min(barWidth, width-1-term.Cells(text))
	if cells < 5 {
		return strings.TrimSpace(text)
	}
	full := int(min(done, all) * int64(cells) / all)
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full) + text
}

func (f *frame) rates() string {
	var parts []string
	if f.plan.Users == 0 {
		parts = append(parts, "offered "+term.Number(f.pace.Offered, false)+"/s")
	}
	parts = append(parts, "achieved "+term.Number(f.pace.Achieved, false)+"/s", "in flight "+term.Count(f.now.InFlight),
		"finished "+term.Count(f.now.Finished), "tokens "+term.Count(f.now.Tokens))
	if f.now.Waiting > 0 {
		parts = append(parts, "waiting "+term.Count(f.now.Waiting))
	}
	if f.now.Unchecked > 0 {
		parts = append(parts, "to check "+term.Count(f.now.Unchecked))
	}
	return strings.Join(parts, " · ")
}

// times are the percentiles and the fluidity of requests that have ended.
func (f *frame) times() []string {
	g := &f.glimpse
	if g.Ended == 0 {
		return []string{"no request has ended yet"}
	}
	row := func(name string, values []int64) string {
		text := term.Left(name, 6)
		for i := range 3 {
			v := term.None
			if i < len(values) {
				v = term.Duration(float64(values[i]))
			}
			text += term.Right(v, 10)
		}
		return text
	}
	all := []string{
		term.Left("", 6) + term.Right("p50", 10) + term.Right("p90", 10) + term.Right("p99", 10) + "   of " + term.Count(g.Ended) + " that have ended",
		row("TTFT", g.TTFT), row("TBT", g.TBT),
	}
	if len(g.Fluid) > 0 {
		text := "F ≥ 0.9"
		for _, x := range g.Fluid {
			text += "  " + term.Percent(x.Share) + " at " + term.Bound(x.GapNs)
		}
		all = append(all, text)
	}
	return all
}

// errors are the failures by class, the most frequent first.
func (f *frame) errors() string {
	classes := f.glimpse.Failures
	if len(classes) == 0 {
		if f.now.Failed > 0 {
			return fmt.Sprintf("failed %s", term.Count(f.now.Failed))
		}
		return ""
	}
	names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		if classes[a] != classes[b] {
			return int(classes[b] - classes[a])
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = name + " " + term.Count(classes[name])
	}
	return "failed: " + strings.Join(names, " · ")
}

// lineOf is a line of progress, what matters most first.
func lineOf(now load.Live, p experiment.Plan, pace experiment.Pace, stopped bool) string {
	text := time.Duration(now.TimeNs).Round(time.Second).String()
	if left := leftText(now, pace, stopped); left != "" {
		text += "  " + left
	}
	if p.Users == 0 {
		text += "  offered " + term.Number(pace.Offered, false) + "/s"
	}
	text += "  achieved " + term.Number(pace.Achieved, false) + "/s"
	text += fmt.Sprintf("  in flight %d  finished %d", now.InFlight, now.Finished)
	if p.Measured > 0 {
		text += fmt.Sprintf("  measured %d of %d", now.MeasuredDone, p.Measured)
	}
	if now.Spent != nil {
		text += "  spent " + now.Spent.Short()
		if p.MaxCost != "" {
			text += " of " + p.MaxCost
		}
		text += " " + p.Currency
	}
	if now.Failed > 0 {
		text += fmt.Sprintf("  failed %d", now.Failed)
	}
	if now.Waiting > 0 {
		text += fmt.Sprintf("  waiting %d", now.Waiting)
	}
	if now.Unchecked > 0 {
		text += fmt.Sprintf("  to check %d", now.Unchecked)
	}
	return text + fmt.Sprintf("  tokens %d", now.Tokens)
}
