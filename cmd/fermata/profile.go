package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fermata/deadline"
	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/internal/term"
	"fermata/load"
	"fermata/spec"
)

// profiled are the flags of the run file that a profile has too: whom to ask, and
// what it may cost.
var profiled = []string{"model", "api", "transport", "api-key-env", "header", "timeout", "silence-timeout", "wait-ready", "prices", "max-cost", "seed"}

func newProfile(s streams) *cobra.Command {
	var plan, out, format, within, utilisation, share string
	var p experiment.ProfilePlan
	c := &cobra.Command{
		Use:   "profile URL",
		Short: "The prefill curve of a server, and first-token deadlines from it",
		Long: `Profile measures how long a server that nobody else uses takes to its first token,
by the length of the prompt: seven lengths in random order, ten rounds or more, one
request at a time, prompts that share no beginning, one token of answer. A first
round is thrown away. It goes on until the band around the curve is within 5 %.

It writes deadlines.yaml, the FILE that run and report take, beside the recordings of
all probes. Slack above the curve comes from what is declared: --lengths is the
workload and --utilisation the load at which waiting is still acceptable, --class the
user, whose patience caps it (interactive 1 s, medium 3 s, low 10 s).

The only plan so far is isolated. For a server under load, whose queue cannot be
seen, its curve is too high, and it says so.

Exit codes: 0 fine; 1 nothing was measured; 2 wrong usage; 4 the curve is flagged, or
its band did not get as narrow as asked; 130 interrupted.`,
		Example: `  fermata profile http://127.0.0.1:8000 --lengths lmsys --class interactive
  fermata run http://127.0.0.1:8000 --rate 4 --requests 1000 --deadlines runs/…/deadlines.yaml`,
		Args: takes(1, 1, "one URL"),
	}
	flags := addSpecFlags(c, func(f spec.Flag) bool { return slices.Contains(profiled, f.Name) })
	c.Flags().StringVar(&plan, "plan", "isolated", "`PLAN` of probing: isolated")
	c.Flags().Int32Var(&p.Shortest, "shortest", 256, "shortest prompt, `TOKENS`")
	c.Flags().Int32Var(&p.Longest, "longest", 8192, "longest prompt, `TOKENS`")
	c.Flags().IntVar(&p.Lengths, "points", 7, "how many lengths: `N`")
	c.Flags().IntVar(&p.Rounds, "rounds", 10, "rounds before the curve is first looked at: `N`")
	c.Flags().IntVar(&p.Most, "most", 40, "rounds in all, where the band is not narrow enough before: `N`")
	c.Flags().StringVar(&within, "within", "5%", "half width of the band that is narrow enough: `SHARE`")
	c.Flags().StringVar(&p.Slack.Lengths, "lengths", "", "published `LENGTHS` of the workload that the slack is for: lmsys, sharegpt, arxiv, azure-conv or azure-code")
	c.Flags().StringVar(&utilisation, "utilisation", "0.6", "`LOAD` at which waiting is still acceptable")
	c.Flags().StringVar(&share, "share", "95%", "`SHARE` of requests that wait no longer than the slack at that load")
	c.Flags().StringVar(&p.Slack.Class, "class", "", "`CLASS` of user: interactive, medium or low")
	c.Flags().StringVar(&out, "out", "", "`DIR` for deadlines.yaml and the recordings (default runs/TIME-profile)")
	c.Flags().StringVarP(&format, "output-format", "o", "terminal", "`FORMAT` of what is printed: terminal, or yaml for the deadlines file")
	c.RunE = func(c *cobra.Command, args []string) error {
		if plan != "isolated" {
			return usagef("--plan: there is no plan %q yet; the plan there is: isolated", plan)
		}
		if format != "terminal" && format != "yaml" {
			return usagef("--output-format must be terminal or yaml, not %q", format)
		}
		var err error
		if p.Within, err = shareOf("--within", within); err != nil {
			return err
		}
		if p.Slack.Promise.Share, err = shareOf("--share", share); err != nil {
			return err
		}
		if p.Slack.Promise.Load, err = shareOf("--utilisation", utilisation); err != nil {
			return err
		}
		if n := p.Slack.Lengths; n != "" && !slices.Contains(spec.Flag{Name: "lengths"}.Values(), n) {
			return usagef("--lengths must be %s, not %q", strings.Join(spec.Flag{Name: "lengths"}.Values(), ", "), n)
		}
		if err := p.Check(); err != nil {
			return usageError{err}
		}
		sets, err := flags.settings(c, nil)
		if err != nil {
			return err
		}
		if !strings.Contains(args[0], "://") {
			return usagef("%s is no URL (which begins with http:// or https://)", args[0])
		}
		sets = append([]conf.Setting{{Path: "target.url", Value: args[0], From: "the URL"}}, sets...)
		ctx, stop, release := interrupts(c.Context(), s)
		defer release()
		line := newLive(s, false)
		o := experiment.Options{Out: out, Version: version(), Stop: stop, Say: s.say}
		o.Live = func(l load.Live, plan experiment.Plan) { line.show(l, plan) }
		got, err := experiment.Profile(ctx, sets, p, o)
		line.end()
		if err != nil {
			return err
		}
		if err := s.profile(format, got); err != nil {
			return err
		}
		s.say("deadlines in %s", got.Path)
		if !got.Narrow || len(got.Diagnosis.Flags) > 0 {
			return status(exitUnclear)
		}
		return nil
	}
	return c
}

// shareOf reads a share between 0 and 1, such as 5% or 0.05.
func shareOf(flag, text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, usagef("%s must be a share such as 5%% or 0.05, not %q", flag, text)
	}
	return v, nil
}

// profile prints the curve on standard output.
func (s streams) profile(format string, p *experiment.Profiled) error {
	if format == "yaml" {
		data, err := os.ReadFile(p.Path)
		if err == nil {
			_, err = s.out.Write(data)
		}
		if err != nil {
			return fmt.Errorf("printing the deadlines: %w", err)
		}
		return nil
	}
	return writeProfile(s.out, p)
}

func writeProfile(w io.Writer, p *experiment.Profiled) error {
	d := p.Diagnosis
	var b strings.Builder
	fmt.Fprintf(&b, "Prefill curve (%s, %s): TTFT from the sending, network included\n\n", p.Curve.Shape(), curveText(p.File))
	fmt.Fprintf(&b, "  %8s  %5s  %10s  %10s  %10s  %s\n", "tokens", "n", "least", "median", "curve", "band (90 %)")
	for _, l := range p.Lengths {
		fmt.Fprintf(&b, "  %8d  %5d  %10s  %10s  %10s  [%s, %s]\n", l.Tokens, l.N, span(l.LeastNs), span(l.Mid), span(l.Fit), span(l.Low), span(l.High))
	}
	fmt.Fprintf(&b, "\n  undelayed      %.0f %% of %d probes; the others waited %s at the median of all, %s at p90\n", 100*d.Undelayed, d.Probes, span(int64(d.DelayNs[0])), span(int64(d.DelayNs[1])))
	fmt.Fprintf(&b, "  band           within %.1f %%\n", 100*d.HalfWidth)
	fmt.Fprintf(&b, "  noise          %s and %.2g %%\n", span(int64(d.NoiseNs)), 100*d.NoiseShare)
	fmt.Fprintf(&b, "  intercept      %s, of which network and overhead are part\n", span(int64(p.Curve.InterceptNs())))
	if d.TokensPerS > 0 {
		fmt.Fprintf(&b, "  prefill        %s tokens/s at the longest prompt\n", term.Number(d.TokensPerS, false))
	}
	if r := p.File.SlackRule; r != nil {
		fmt.Fprintf(&b, "  slack          %s: %s\n", span(int64(*p.File.Slack)), slackText(r))
	} else {
		b.WriteString("  slack          none was declared: give --lengths, --class or both\n")
	}
	flags := "none"
	if len(d.Flags) > 0 {
		flags = strings.Join(d.Flags, ", ")
	}
	fmt.Fprintf(&b, "  flags          %s\n", flags)
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("printing the curve: %w", err)
	}
	return nil
}

func span(ns int64) string { return term.Duration(float64(ns)) }

// curveText is a curve as it would be given.
func curveText(f *deadline.File) string {
	c := f.Curve
	switch {
	case c == nil:
		return fmt.Sprintf("%d knots", len(f.Knots))
	case c.C == "":
		return "a = " + brief(c.A) + ", b = " + brief(c.B) + " a token"
	}
	return "a = " + brief(c.A) + ", b = " + brief(c.B) + " a token, c = " + brief(c.C) + " a token²"
}

// brief is a decimal duration to four digits.
func brief(s string) string {
	unit := strings.TrimLeft(s, "0123456789.")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, unit), 64)
	if err != nil {
		return s
	}
	if unit == "ns" && v >= 1000 {
		v, unit = v/1000, "µs"
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}

// slackText says which of two terms binds.
func slackText(r *deadline.SlackRule) string {
	var terms []string
	if r.Workload != "" {
		terms = append(terms, fmt.Sprintf("%s by the load rule (%s prompts, load %.3g, %.3g %% of requests)", span(int64(r.ByLoad)), r.Workload, r.Load, 100*r.Share))
	}
	if r.Class != "" {
		terms = append(terms, fmt.Sprintf("%s at most for %s users", term.Bound(int64(r.Cap)), r.Class))
	}
	text := strings.Join(terms, ", ")
	if len(terms) == 2 {
		text += map[string]string{"load": "; the load binds", "cap": "; the cap binds"}[r.Binds]
	}
	return text
}
