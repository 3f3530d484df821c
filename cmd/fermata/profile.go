package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fermata/deadline"
	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/internal/term"
	"fermata/spec"
)

// profiled are the flags of the run file that a profile has too: whom to ask, and
// what it may cost.
var profiled = []string{"model", "api", "transport", "api-key-env", "header", "timeout", "silence-timeout", "wait-ready", "prices", "max-cost", "seed"}

func newProfile(s streams) *cobra.Command {
	var plan, out, format, within string
	var yes bool
	var p experiment.ProfilePlan
	var h experiment.HostedPlan
	c := &cobra.Command{
		Use:   "profile URL",
		Short: "The prefill curve of a server, and first-token deadlines from it",
		Long: `Profile measures how long a server without load takes to its first token, by the
length of the prompt. Requests go out one at a time, their prompts share no
beginning, their answers have one token.

--plan isolated is for a server that nobody else uses: seven lengths in random
order, ten rounds or more after one that is thrown away, until the band around
the curve is within 5 %. --plan hosted is for an endpoint that others use too:
short canaries at random times over hours or days, a long prompt at once where
the canary was fast, and a fit that tells the queue from the curve. It says
first how many tokens and, with --prices, how much money that takes, ends before
--max-cost is passed, and keeps every probe in its folder: the same command with
--out goes on where a killed one ended.

It writes deadlines.yaml, the FILE that run and report take, beside what is
known of all probes. Slack above the curve comes from what is declared:
--lengths is the workload and --utilisation the load at which waiting is still
acceptable, --class the user, whose patience caps it (interactive 1 s, medium 3
s, low 10 s).

Exit codes: 0 fine; 1 nothing was measured; 2 wrong usage; 4 the curve is
flagged, or its band did not get as narrow as asked; 130 interrupted.`,
		Example: `  fermata profile http://127.0.0.1:8000 --lengths lmsys --class interactive
  fermata profile https://api.example.com/v1 --model m --api-key-env KEY \
      --plan hosted --over 24h --prices prices.yaml --max-cost 1.00
  fermata run http://127.0.0.1:8000 --rate 4 --requests 1000 \
      --deadlines runs/…/deadlines.yaml`,
		Args: takes(1, 1, "one URL"),
	}
	flags := addSpecFlags(c, func(f spec.Flag) bool { return slices.Contains(profiled, f.Name) })
	c.Flags().StringVar(&plan, "plan", "isolated", "`PLAN` of probing: isolated or hosted")
	c.Flags().Int32Var(&p.Shortest, "shortest", 0, "shortest prompt, `TOKENS` (default 256, hosted 512)")
	c.Flags().Int32Var(&p.Longest, "longest", 0, "longest prompt, `TOKENS` (default 8192, hosted 32768)")
	c.Flags().IntVar(&p.Lengths, "points", 7, "how many lengths: `N`")
	c.Flags().IntVar(&p.Rounds, "rounds", 10, "isolated: rounds before the curve is first looked at, 10 at least: `N`")
	c.Flags().IntVar(&p.Most, "most", 40, "isolated: rounds in all, where the band is not narrow enough before: `N`")
	c.Flags().IntVar(&h.Requests, "requests", 100, "hosted: canaries and long prompts in all, where the curve is not good enough before: `N`")
	c.Flags().DurationVar(&h.Over, "over", 24*time.Hour, "hosted: `TIME` over which they are spread")
	c.Flags().BoolVar(&yes, "yes", false, "hosted: begin without asking, on a terminal too")
	c.Flags().StringVar(&within, "within", "5%", "half width of the band that is narrow enough: `SHARE`")
	slack := addSlackFlags(c, &p.Slack)
	c.Flags().StringVar(&out, "out", "", "`DIR` for deadlines.yaml and the recordings (default runs/TIME-profile)")
	c.Flags().StringVarP(&format, "output-format", "o", "terminal", "`FORMAT` of what is printed: terminal, or yaml for the deadlines file")
	completes(c, "plan", isolatedPlan, hostedPlan)
	completes(c, "output-format", "terminal", "yaml")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := planned(c, plan); err != nil {
			return err
		}
		if err := above(c, "rounds", "most", "requests", "over", "points", "shortest", "longest"); err != nil {
			return err
		}
		if plan == hostedPlan {
			p.Rounds, p.Most, p.Hosted = 0, 0, &h
			if h.Begin = nil; !yes {
				h.Begin = s.agree
			}
		}
		if format != "terminal" && format != "yaml" {
			return usagef("--output-format must be terminal or yaml, not %q", format)
		}
		var err error
		if p.Within, err = shareOf("--within", within); err != nil {
			return err
		}
		if err := slack(); err != nil {
			return err
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
		line := newLive(s)
		o := s.options(out, stop)
		line.watch(&o)
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
	c.AddCommand(newReference(s))
	return c
}

// addSlackFlags gives a command the flags that say how slack comes about; what it
// returns reads them.
func addSlackFlags(c *cobra.Command, p *experiment.SlackPlan) func() error {
	var utilisation, share string
	c.Flags().StringVar(&p.Lengths, "lengths", "", "published `LENGTHS` of the workload that the slack is for: lmsys, sharegpt, arxiv, azure-conv or azure-code")
	c.Flags().StringVar(&utilisation, "utilisation", "0.6", "`LOAD` at which waiting is still acceptable")
	c.Flags().StringVar(&share, "share", "95%", "`SHARE` of requests that wait no longer than the slack at that load")
	c.Flags().StringVar(&p.Class, "class", "", "`CLASS` of user: interactive, medium or low")
	completes(c, "lengths", spec.Flag{Name: "lengths"}.Values()...)
	completes(c, "class", "interactive", "medium", "low")
	return func() (err error) {
		if p.Promise.Share, err = shareOf("--share", share); err != nil {
			return err
		}
		if p.Promise.Load, err = shareOf("--utilisation", utilisation); err != nil {
			return err
		}
		if n := p.Lengths; n != "" && !slices.Contains(spec.Flag{Name: "lengths"}.Values(), n) {
			return usagef("--lengths must be %s, not %q", strings.Join(spec.Flag{Name: "lengths"}.Values(), ", "), n)
		}
		if p.Class != "" {
			if _, err := deadline.Cap(p.Class); err != nil {
				return usagef("--class: %v", err)
			}
		}
		return nil
	}
}

// newReference is `fermata profile reference`.
func newReference(s streams) *cobra.Command {
	var p experiment.SlackPlan
	c := &cobra.Command{
		Use:   "reference FILE FILE…",
		Short: "One deadlines file to rank several endpoints of a model by",
		Long: `Reference makes one deadlines file of several, one of each endpoint of a model:
at each length the least of their curves, over the lengths that all of them are
valid for, and one slack for all. Judged by its own curve an endpoint is
forgiven for being slow, which tells queueing apart but ranks nobody; judged by
the reference they can be ranked. Files whose curve is flagged are left out. It
is printed on standard output.`,
		Example: `  fermata profile reference a/deadlines.yaml b/deadlines.yaml --lengths lmsys \
      --class interactive > reference.yaml
  fermata report runs/… --deadlines reference.yaml`,
		Args: takes(2, -1, "two deadlines files or more"),
	}
	slack := addSlackFlags(c, &p)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := slack(); err != nil {
			return err
		}
		f, err := experiment.Reference(args, p, s.say)
		if missing := experiment.MissingFile(""); errors.As(err, &missing) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		data, err := f.Write()
		if err == nil {
			_, err = s.out.Write(data)
		}
		if err != nil {
			return fmt.Errorf("printing the deadlines: %w", err)
		}
		if r := f.SlackRule; r != nil {
			s.say("slack %s: %s", span(int64(*f.Slack)), slackText(r))
		}
		return nil
	}
	return c
}

// Plans of probing.
const (
	isolatedPlan = "isolated"
	hostedPlan   = "hosted"
)

// ofPlan are the flags that only one plan has.
var ofPlan = map[string][]string{
	isolatedPlan: {"rounds", "most"},
	hostedPlan:   {"requests", "over", "yes"},
}

// planned checks that there is such a plan, and that it has the flags that are
// given.
func planned(c *cobra.Command, plan string) error {
	if _, ok := ofPlan[plan]; !ok {
		return usagef("--plan must be isolated or hosted, not %q", plan)
	}
	for other, names := range ofPlan {
		for _, name := range names {
			if other != plan && c.Flags().Changed(name) {
				return usagef("--%s is for --plan %s", name, other)
			}
		}
	}
	return nil
}

// above refuses a 0 that was written, which is no default.
func above(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			return usagef("--%s 0: it must be above 0; leave it out for its default of %s", name, f.DefValue)
		}
	}
	return nil
}

// agree asks whoever sits at a terminal whether to begin; elsewhere nobody is there
// to answer, and what was said has to do.
func (s streams) agree(string) error {
	if terminal(s.err) == nil || !term.IsTerminal(os.Stdin) {
		return nil
	}
	fmt.Fprint(s.err, "begin? [y/N] ")
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was asked (--yes begins without the question)")
	}
	return nil
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
	return writeProfile(s.out, p, look(s.out).Width)
}

// profileKey is where the text of a line about the curve begins.
const profileKey = 17

// writeProfile prints the curve and what it is worth, folded to a width; 0 leaves
// lines alone.
func writeProfile(w io.Writer, p *experiment.Profiled, width int) error {
	d := p.Diagnosis
	var b strings.Builder
	fact := func(key, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		lines := []string{text}
		if width > 0 && profileKey+term.Cells(text) > width {
			lines = term.Wrap(text, max(width, 60)-profileKey)
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "  %-15s%s\n", key, line)
			key = ""
		}
	}
	fmt.Fprintf(&b, "Prefill curve (%s, %s): TTFT from the sending, network included\n\n", p.Curve.Shape(), curveText(p.File))
	fmt.Fprintf(&b, "  %8s  %5s  %10s  %10s  %10s  %s\n", "tokens", "n", "least", "median", "curve", "band (90 %)")
	for _, l := range p.Lengths {
		fmt.Fprintf(&b, "  %8s  %5d  %10s  %10s  %10s  [%s, %s]\n", term.Count(int64(l.Tokens)), l.N, span(l.LeastNs), span(l.Mid), span(l.Fit), span(l.Low), span(l.High))
	}
	b.WriteByte('\n')
	t := d.UndelayedThirds
	fact("undelayed", "%.0f %% of %d probes; the wait of all was %s at the median, %s at p90, %s at p99", 100*d.Undelayed, d.Probes, wait(d.DelayNs[0]), wait(d.DelayNs[1]), wait(d.DelayNs[2]))
	fact("", "about %.0f of the short ones, %.0f of the middle, %.0f of the long", t[0], t[1], t[2])
	if s := p.File.Source; s != nil {
		fact("spent", "%s prompt tokens in %s", term.Count(s.Tokens), term.Duration(s.Hours*3600e9))
	}
	fact("band", "within %.1f %%", 100*d.HalfWidth)
	fact("noise", "%s and %.2g %%", span(int64(d.NoiseNs)), 100*d.NoiseShare)
	fact("intercept", "%s, of which network and overhead are part", span(int64(p.Curve.InterceptNs())))
	if d.TokensPerS > 0 {
		fact("prefill", "%s tokens/s at the longest prompt", term.Number(d.TokensPerS, false))
	}
	if r := p.File.SlackRule; r != nil {
		fact("slack", "%s: %s", span(int64(*p.File.Slack)), slackText(r))
		if n := len(r.Shared); n > 0 {
			fact("shared", "compute that others share at load %.3g: due after %s at %s tokens, %s at %s",
				r.Load, span(int64(r.Shared[0].Time)), term.Count(int64(r.Shared[0].Tokens)), span(int64(r.Shared[n-1].Time)), term.Count(int64(r.Shared[n-1].Tokens)))
		}
	} else {
		fact("slack", "none was declared: give --lengths, --class or both")
	}
	flags := "none"
	if len(d.Flags) > 0 {
		flags = strings.Join(d.Flags, ", ")
	}
	fact("flags", "%s", flags)
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return fmt.Errorf("printing the curve: %w", err)
	}
	return nil
}

// wait is a delay, which has no end where no answer came.
func wait(ns float64) string {
	if math.IsInf(ns, 0) {
		return "no end (failed probes)"
	}
	return span(int64(ns))
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
