package report

import (
	"fmt"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// instrument says how far the measuring side can be trusted.
func instrument(r *metrics.Result) block {
	h := &r.Health
	b := block{title: "Instrument"}
	if h.ExactShare != nil {
		b.fact("stamps", term.Percent(*h.ExactShare)+" of arrivals have an exact time, last events of answers aside")
	}
	if d := h.BoundedWidth; d != nil {
		b.fact("others late by", "up to "+quantilesText(d, 0.5, 0.99))
	} else if d := h.BoundWidth; d != nil {
		b.fact("late by", "up to "+quantilesText(d, 0.5, 0.99))
	}
	if h.ReadLag != nil {
		b.fact("read lag", quantilesText(h.ReadLag, 0.5, 0.99)+left(h.ReadsLeftShare))
	}
	if h.Canary != nil {
		b.fact("canary", "reader's times late by "+quantilesText(h.Canary, 0.5, 0.99))
	}
	if h.LoopTurnMax != nil {
		b.fact("loop turn", "at most "+term.Duration(float64(*h.LoopTurnMax)))
	}
	if h.CPUMax != nil {
		text := term.Number(*h.CPUMax, false) + " cores in the busiest second"
		if h.CPUPressureMax != nil {
			text += " · some task of this machine waited for a core in up to " + term.Percent(*h.CPUPressureMax) + " of a second"
		}
		b.fact("CPU", text)
	}
	if h.GCPauseMax != nil {
		text := "at most " + term.Duration(float64(*h.GCPauseMax))
		if h.GCCycles != nil {
			text += " · " + term.Count(*h.GCCycles) + " collections"
		}
		b.fact("GC pause", text)
	}
	if h.ClockStepMax != nil {
		b.fact("clock", "moved by "+term.Duration(float64(*h.ClockStepMax))+" a second at most")
	}
	verdict := "not the bottleneck"
	if h.ClientBound {
		verdict = "the bottleneck: " + strings.Join(h.Reasons, "; ")
	}
	b.fact("this machine", verdict)
	b.fact("made by", joined(" ", r.Tool.Name, r.Tool.Version))
	return b
}

func left(share *float64) string {
	if share == nil {
		return ""
	}
	return " · " + term.Percent(*share) + " of reads left data"
}

// server is what the server said of itself, beside the client's own count.
func server(r *metrics.Result) block {
	s := r.Server
	if s == nil {
		return block{}
	}
	b := block{title: "The server, as it says"}
	figure := func(mean, most *float64, share bool) string {
		switch {
		case mean == nil || most == nil:
			return ""
		case share:
			return term.Percent(*mean) + " on average, " + term.Percent(*most) + " at most"
		}
		return term.Number(*mean, false) + " on average, " + term.Number(*most, true) + " at most"
	}
	running := figure(s.RunningMean, s.RunningMax, false)
	if running != "" {
		running += " (in flight here: " + figure(&s.InFlightMean, &s.InFlightMax, false) + ")"
	}
	b.fact("running", running)
	b.fact("waiting", figure(s.WaitingMean, s.WaitingMax, false))
	b.fact("KV cache", figure(s.KVUsageMean, s.KVUsageMax, true))
	if s.Preemptions != nil {
		b.fact("preemptions", term.Number(*s.Preemptions, true))
	}
	if s.PrefixHitShare != nil {
		b.fact("prefix hits", term.Percent(*s.PrefixHitShare)+" of prompt tokens looked up")
	}
	b.fact("asked", fmt.Sprintf("in %s seconds of the phase, names of %s", term.Count(s.Seconds), term.Plain(s.Names)))
	return b
}

// arrivalsText sets how requests came beside what was asked for.
func arrivalsText(a *metrics.Arrivals, conversations bool) string {
	asked := func(text string, v *float64) string {
		if v == nil {
			return text
		}
		return text + " of " + term.Number(*v, false)
	}
	mean := term.Duration(float64(a.MeanNs))
	if a.AskedMeanNs != nil {
		mean += " of " + term.Duration(float64(*a.AskedMeanNs))
	}
	gaps := "gaps "
	if conversations {
		gaps = "gaps between the beginnings of conversations "
	}
	parts := []string{gaps + mean + " on average", asked("CV "+term.Number(a.CV, false), a.AskedCV)}
	if a.Dispersion != nil {
		parts = append(parts, asked("dispersion "+term.Number(*a.Dispersion, false), a.AskedDispersion))
	}
	text := strings.Join(parts, " · ")
	if a.AskedMeanNs != nil {
		text += " (seen of asked)"
	}
	return text
}

// sentText is how requests left, and whether that still is the Poisson process
// that was asked for.
func sentText(a *metrics.Arrivals, conversations bool) string {
	s := a.Sent
	if s == nil || s.MeanNs <= 0 {
		return ""
	}
	rate := "sent " + term.Number(1e9/float64(s.MeanNs), false)
	if a.AskedMeanNs != nil && *a.AskedMeanNs > 0 {
		rate += " of " + term.Number(1e9/float64(*a.AskedMeanNs), false)
	}
	unit := " requests/s"
	if conversations {
		unit = " conversations/s"
	}
	text := rate + unit + " · CV " + term.Number(s.CV, false)
	if s.KS == nil || s.KSP == nil {
		return text
	}
	verdict := "as Poisson"
	if *s.KSP < unlikely {
		verdict = "unlike Poisson"
	}
	return text + fmt.Sprintf(" · %s (Kolmogorov–Smirnov D %s, p %s)", verdict, term.Number(*s.KS, false), term.Number(*s.KSP, false))
}

// unlikely is the chance below which gaps are said not to be those asked for.
const unlikely = 0.05
