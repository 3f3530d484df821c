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
	last     int64
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
	if l.quiet || !l.terminal && now.TimeNs-l.last < quietly {
		return
	}
	l.last = now.TimeNs
	text := fmt.Sprintf("%s  sent %d  in flight %d  finished %d", time.Duration(now.TimeNs).Round(time.Second), now.Sent, now.InFlight, now.Finished)
	if p.Measured > 0 {
		text += fmt.Sprintf("  measured %d of %d", now.MeasuredDone, p.Measured)
	}
	if now.Failed > 0 {
		text += fmt.Sprintf("  failed %d", now.Failed)
	}
	if now.Waiting > 0 {
		text += fmt.Sprintf("  waiting %d", now.Waiting)
	}
	text += fmt.Sprintf("  tokens %d", now.Tokens)
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

// end clears the line.
func (l *live) end() {
	if l.shown {
		fmt.Fprint(l.s.err, "\r\x1b[K")
	}
}
