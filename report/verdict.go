package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

const outcomeOK = "ok"

var verdictTones = map[string]term.Tone{metrics.Met: term.Good, metrics.Missed: term.Bad, metrics.Open: term.Care}

// failed is how many of the measured requests were not ok.
func failed(r *metrics.Result) int64 { return max(0, r.Load.Measured-r.Outcomes[outcomeOK]) }

// What is known of runs that did not reach their end.
const (
	codeInvalid      = "not_a_measurement"
	byUser           = "interrupted"              // ^C, or a signal to end
	byFailures       = "too many requests failed" // the run's own limit
	outcomeTruncated = "truncated_by_us"
	outcomeNotSent   = "not_sent"
)

// stopped says that a run was cut short and nothing else went wrong: what failed
// was under way or not yet sent when it was stopped.
func stopped(r *metrics.Result) bool {
	return r.Run.Interrupted != "" && !strings.Contains(r.Run.Interrupted, byFailures) &&
		failed(r) == r.Outcomes[outcomeTruncated]+r.Outcomes[outcomeNotSent]
}

// verdict is the first line of a page: whether this is a measurement at all, and
// if so what came of the objectives.
func verdict(r *metrics.Result) fact {
	measured, bad := r.Load.Measured, failed(r)
	good := measured - bad
	why := strings.TrimSuffix(term.Plain(r.Run.Interrupted), ".")
	var partial, client string
	switch {
	case stopped(r):
		partial = partialText(good, measured, why)
	case r.Run.Interrupted != "":
		partial = "Partial: the run was interrupted."
	}
	if r.Health.ClientBound {
		client = "Client-bound, so not a claim about the server."
	}
	var f fact
	switch {
	case r.Run.Interrupted != "" && measured == r.Outcomes[outcomeNotSent]:
		f, partial = fact{text: "Stopped before anything was measured.", tone: term.Bad}, ""
		if why != byUser {
			f.text = "Stopped before anything was measured: " + why + "."
		}
	case measured == 0:
		f = fact{text: "Nothing was measured: no request was due in the measured phase.", tone: term.Bad}
	case invalid(r): // that comes before everything else
		return fact{tone: term.Bad, text: joined(" ", fmt.Sprintf(
			"Not a measurement of the server's speed: %s of %s requests failed (%s).",
			term.Count(bad), term.Count(measured), term.Percent(float64(bad)/float64(measured))), partial, client)}
	case len(r.SLO) > 0:
		f = objectives(r.SLO)
	case stopped(r):
		f.tone = term.Care
	case r.MLPerf != nil:
		f = fact{tone: mlperfTones[r.MLPerf.Verdict], text: measuredText(good, measured) + "."}
	default:
		f = fact{tone: term.Strong, text: measuredText(good, measured) + "; no objective was given."}
	}
	if client != "" {
		f.tone = term.Bad
	}
	f.text = joined(" ", partial, client, f.text, mlperfText(r.MLPerf))
	return f
}

// measuredText says how many requests were good.
func measuredText(good, measured int64) string {
	return fmt.Sprintf("Measured: %s of %s requests ok (%s)", term.Count(good), term.Count(measured), term.Percent(float64(good)/float64(measured)))
}

// partialText says how far a stopped run had come.
func partialText(good, measured int64, why string) string {
	count := term.Count(good) + " of " + term.Count(measured)
	if good == measured {
		count = term.Count(good)
	}
	if why == byUser {
		return "Partial: the run was stopped by the user after " + count + " measured requests."
	}
	return "Partial: the run was cut short after " + count + " measured requests (" + why + ")."
}

// interruptedText is why a run was cut short.
func interruptedText(r *metrics.Result) string {
	if r.Run.Interrupted == byUser {
		return "by the user (^C)"
	}
	return term.Plain(r.Run.Interrupted)
}

// invalid says that so much failed that the rest says nothing of speed.
func invalid(r *metrics.Result) bool {
	return !stopped(r) && (2*failed(r) > r.Load.Measured ||
		slices.ContainsFunc(r.Warnings, func(w metrics.Warning) bool { return w.Code == codeInvalid }))
}

// objectives sums up verdicts, the worst first.
func objectives(slo []metrics.Verdict) fact {
	count := map[string]int{}
	for _, v := range slo {
		count[v.Verdict]++
	}
	worst := metrics.Met
	switch {
	case count[metrics.Missed] > 0:
		worst = metrics.Missed
	case count[metrics.Open] > 0:
		worst = metrics.Open
	}
	subject := "Objective"
	if len(slo) > 1 {
		subject = "Objectives"
	}
	text := fmt.Sprintf("%s %s", subject, worst)
	if len(slo) > 1 {
		text += fmt.Sprintf(" (%d met, %d missed, %d open)", count[metrics.Met], count[metrics.Missed], count[metrics.Open])
	}
	var named []string
	for i := range slo {
		if v := &slo[i]; v.Verdict == worst && (worst != metrics.Met || len(slo) == 1) {
			s := term.Plain(v.Objective)
			if v.Value != nil && (v.Unit == "ns" || v.Share == nil) { // a bare number says little where there is a share
				s += " (" + amount(v.Unit, *v.Value) + ")"
			} else if v.Share != nil {
				s += " (" + term.Percent(*v.Share) + " of requests)"
			}
			if text := notJudged(v); text != "" {
				s += ", " + text
			}
			named = append(named, s)
		}
	}
	if len(named) > 0 {
		text += ": " + strings.Join(named, "; ")
	}
	return fact{text: text + ".", tone: verdictTones[worst]}
}

// judgements are the objectives one by one, with the goodput of each.
func judgements(r *metrics.Result) block {
	b := block{title: "Objectives"}
	for i := range r.SLO {
		v := &r.SLO[i]
		b.facts = append(b.facts, fact{v.Verdict, judgement(v), verdictTones[v.Verdict]})
	}
	for i := range r.Goodput {
		g := &r.Goodput[i]
		parts := []string{}
		if g.RequestsS != nil {
			parts = append(parts, term.Number(*g.RequestsS, false)+" requests/s")
		}
		if g.TokensS != nil {
			parts = append(parts, term.Number(*g.TokensS, false)+" tokens/s")
		}
		of := " of measured requests"
		if g.NotJudged > 0 {
			of = fmt.Sprintf(" of the %s of %s measured requests that could be judged", term.Count(r.Load.Measured-g.NotJudged), term.Count(r.Load.Measured))
		}
		if g.Share == nil {
			parts = append(parts, "not known: no good answer could be judged")
		} else {
			parts = append(parts, strings.TrimSpace(term.Percent(*g.Share)+" "+interval("share", g.ShareLow, g.ShareHigh))+of)
		}
		b.fact("goodput", strings.Join(parts, " · ")+" — "+term.Plain(g.Objective))
	}
	return b
}

func judgement(v *metrics.Verdict) string {
	parts := []string{term.Plain(v.Objective)}
	if v.Value != nil {
		parts = append(parts, strings.TrimSpace("at "+amount(v.Unit, *v.Value)+" "+interval(v.Unit, v.Low, v.High)))
	}
	if text := notJudged(v); text != "" {
		parts = append(parts, text)
	}
	if v.Value == nil && v.Unit == "ns" && v.Verdict != metrics.Met {
		parts = append(parts, "at no time at all: so many requests failed that they are in the percentile")
	}
	if v.Share != nil {
		parts = append(parts, strings.TrimSpace(term.Percent(*v.Share)+" "+interval("share", v.ShareLow, v.ShareHigh))+
			" of requests")
	}
	if v.WithoutIt > 0 {
		parts = append(parts, term.Count(v.WithoutIt)+" good answers had no such value and count as meeting it")
	}
	if v.Status == statusAssumed {
		parts = append(parts, "~ interval by the bursts that this run saw")
	} else if v.Status == statusInsufficient && v.Verdict == metrics.Open && (v.Share != nil || v.NotJudged == 0) {
		parts = append(parts, "too few requests to judge by")
	}
	return strings.Join(parts, " · ")
}

// notJudged says how many requests an objective is judged by, where that is not all
// of them.
func notJudged(v *metrics.Verdict) string {
	switch {
	case v.NotJudged == 0:
		return ""
	case v.Share == nil || v.Judged == nil:
		return fmt.Sprintf("not judged: none of %s good answers has a first-token deadline for its prompt", term.Count(v.NotJudged))
	}
	return fmt.Sprintf("judged by %s of %s requests: %s good answers have no first-token deadline for their prompts",
		term.Count(*v.Judged), term.Count(*v.Judged+v.NotJudged), term.Count(v.NotJudged))
}

// outcomes are the classes in which measured requests ended; none is dropped.
func outcomes(r *metrics.Result) block {
	b := block{title: "Outcomes"}
	b.fact("requests", shares(r.Outcomes, r.Load.Measured))
	b.fact("finished by", shares(r.FinishReasons, 0))
	checked(&b, r.Checks)
	if r.Slow != nil {
		b.fact("slow", term.Count(*r.Slow)+" ok answers took longer than declared")
	}
	if s := r.Sessions; s != nil {
		b.fact("sessions", fmt.Sprintf("%s started, %s ended early, %s turns unsent",
			term.Count(s.Started), term.Count(s.EndedEarly), term.Count(s.TurnsUnsent)))
	}
	if len(r.Failures) == 0 {
		return b
	}
	b.table = &table{columns: []column{
		{head: "failure", left: true},
		{head: "at", left: true},
		{head: "HTTP"},
		{head: "requests"},
		{head: "tokens before"},
		{head: "first error", left: true, flex: true},
	}}
	for _, f := range r.Failures {
		status := term.None
		if f.HTTPStatus != 0 {
			status = fmt.Sprint(f.HTTPStatus)
		}
		b.table.rows = append(b.table.rows, []cell{
			{text: f.Outcome, tone: term.Bad},
			text(orNone(f.FailedAt)), text(status), text(term.Count(f.Count)),
			text(term.Count(f.Tokens)), text(orNone(term.Plain(f.Error))),
		})
	}
	return b
}

// checked says what the checks of answers came to, and shows one that failed.
func checked(b *block, c *metrics.Checks) {
	if c == nil {
		return
	}
	parts := []string{fmt.Sprintf("%s of %s answers passed", term.Count(c.Passed), term.Count(c.Passed+c.Failed+c.Unchecked))}
	if c.Failed > 0 {
		parts = append(parts, term.Count(c.Failed)+" failed")
	}
	if c.Unchecked > 0 {
		parts = append(parts, term.Count(c.Unchecked)+" unchecked")
	}
	b.fact("check", joined(": ", c.Kind, strings.Join(parts, " · ")))
	if e := c.Example; e != nil {
		b.fact("first wrong", fmt.Sprintf("request %d: %s", e.Index, term.Plain(e.Detail)))
		if e.Text != "" {
			b.fact("it said", fmt.Sprintf("%q", e.Text))
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return term.None
	}
	return s
}

// shares lists counts, the largest first and ok before all, with their shares of
// total where that is given.
func shares(counts map[string]int64, total int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		switch {
		case a == outcomeOK:
			return -1
		case b == outcomeOK:
			return 1
		case counts[a] != counts[b]:
			return int(counts[b] - counts[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, n := range names {
		s := term.Plain(n) + " " + term.Count(counts[n])
		if total > 0 {
			s += " (" + term.Percent(float64(counts[n])/float64(total)) + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " · ")
}
