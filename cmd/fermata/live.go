package main

import (
	"fmt"
	"time"

	"fermata/experiment"
	"fermata/internal/term"
	"fermata/load"
)

// A live line says how a run goes: rewritten every second on a terminal, a line
// of its own every ten seconds elsewhere.
type live struct {
	s        streams
	quiet    bool
	terminal bool
	width    int
	shown    bool
	last     int64 // when it was shown
	at       int64 // of what was told last
	progress experiment.Progress
}

const quietly = int64(10 * time.Second)

func newLive(s streams, quiet bool) *live {
	l := &live{s: s, quiet: quiet}
	if f := terminal(s.err); f != nil {
		l.terminal, l.width = true, term.Width(f)
	}
	return l
}

func (l *live) show(now load.Live, p experiment.Plan) {
	if now.TimeNs < l.at { // the next run's
		l.last, l.progress = 0, experiment.Progress{}
	}
	l.at = now.TimeNs
	l.progress.Plan = p
	pace := l.progress.Take(now)
	if l.quiet || !l.terminal && now.TimeNs-l.last < quietly {
		return
	}
	l.last = now.TimeNs
	text := lineOf(now, p, pace)
	if !l.terminal {
		l.s.say("%s", text)
		return
	}
	if l.width > 0 && len(text) >= l.width {
		text = text[:l.width-1]
	}
	fmt.Fprintf(l.s.err, "\r\x1b[K%s", text)
	l.shown = true
}

// lineOf is the live line, what matters most first: narrow terminals cut it.
func lineOf(now load.Live, p experiment.Plan, pace experiment.Pace) string {
	text := time.Duration(now.TimeNs).Round(time.Second).String()
	switch {
	case pace.LeftKnown && pace.Left <= 0 && now.Unchecked > now.InFlight:
		text += "  checking the last answers"
	case pace.LeftKnown && pace.Left <= 0:
		text += "  awaiting the last answers"
	case pace.LeftKnown:
		text += "  about " + pace.Left.Round(time.Second).String() + " left"
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

// end clears the line.
func (l *live) end() {
	if l.shown {
		fmt.Fprint(l.s.err, "\r\x1b[K")
	}
}
