package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/report"
	"fermata/spec"
)

func newStudy(s streams) *cobra.Command {
	var out string
	var as told
	var every, last time.Duration
	var parallel int
	c := &cobra.Command{
		Use:   "study SPEC…",
		Short: "Many runs as one: systems and grids, or endpoints over hours",
		Long: `Study plays several simulated systems in virtual time, each at every point of a
grid and with several seeds, and shows their statistics side by side, with what
was published about them and whether it holds here. examples/ has three
published comparisons; docs/simulator.md describes the file.

A study of endpoints asks each of them again and again, by default every hour
for a day, and sets side by side how fast they are by TPOT, by the tail of TBT
and by the fluid rate, with intervals, the spread over rounds and the dates.
Every round is a run in the study's folder: the same command with --out goes on
where a killed one ended. examples/hosted.yaml is Etalon's study of public
endpoints.

Several studies of simulated systems are played one after the other; --html and
-o json take one, and a study of endpoints is given alone.

Exit codes: 0 fine; 1 the tool failed; 2 wrong usage; 3 a claim does not hold;
130 interrupted.`,
		Example: `  fermata study examples/scheduling-delay.yaml
  fermata study examples/tbt-crossing.yaml examples/fluidity-capacity.yaml
  fermata study examples/hosted.yaml --out study`,
		Args: takes(1, -1, "one study or more"),
	}
	addTold(c, &as, report.DocumentFormats)
	c.Flags().IntVar(&parallel, "parallel", 0, "runs at once: `N` (default as many as there are cores)")
	c.Flags().StringVar(&out, "out", "", "of endpoints: `DIR` for the rounds (default runs/TIME-study)")
	c.Flags().DurationVar(&every, "every", 0, "of endpoints: `TIME` from one round to the next, instead of the study's")
	c.Flags().DurationVar(&last, "for", 0, "of endpoints: `TIME` that it lasts, instead of the study's")
	addQuiet(c, &s.quiet)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.DocumentFormats); err != nil {
			return err
		}
		if err := atLeastOne(c, "parallel"); err != nil {
			return err
		}
		if as.format == "json" && len(args) > 1 {
			return usagef("-o json is for one study at a time")
		}
		if as.html != "" && len(args) > 1 {
			return usagef("--html is for one study at a time")
		}
		studies := make([]*spec.Study, len(args))
		for i, file := range args {
			data, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				return usagef("there is no study %s", file)
			}
			if err != nil {
				return fmt.Errorf("reading the study: %w", err)
			}
			if studies[i], err = spec.ReadStudy(file, data); err != nil {
				return err
			}
			if err := hourly(c, studies[i], len(args), every, last); err != nil {
				return err
			}
		}
		if len(studies[0].Endpoints) > 0 {
			return s.askHourly(c, as, out, studies[0])
		}
		ctx, release := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		hold := true
		for i, one := range studies {
			bar := newCounter(s, "runs")
			done, err := experiment.Study(ctx, one, parallel, version(), bar.show)
			bar.end()
			if err != nil {
				return err
			}
			if i > 0 {
				fmt.Fprintln(s.out)
			}
			if err := s.tellStudy(as, done); err != nil {
				return err
			}
			hold = hold && done.AllHold()
		}
		if !hold {
			return status(exitMissed)
		}
		return nil
	}
	return c
}

// tellStudy prints a study and writes its page.
func (s streams) tellStudy(as told, done *report.Study) error {
	if err := s.study(as.format, done); err != nil {
		return err
	}
	return s.writeHTML(as.html, func(w io.Writer) error { return report.StudyHTML(w, done) })
}

// hourly puts the times of the command line into a study of endpoints, and says
// what is wrong with the flags of another.
func hourly(c *cobra.Command, one *spec.Study, studies int, every, last time.Duration) error {
	if len(one.Endpoints) == 0 {
		for _, name := range []string{"out", "every", "for"} {
			if c.Flags().Changed(name) {
				return usagef("--%s is for a study of endpoints", name)
			}
		}
		return nil
	}
	if c.Flags().Changed("parallel") {
		return usagef("--parallel is for a study of simulated systems: endpoints are asked one after the other")
	}
	if studies > 1 {
		return usagef("a study of endpoints takes its time: give it alone")
	}
	if c.Flags().Changed("every") {
		one.Every = every
	}
	if c.Flags().Changed("for") {
		one.For = last
	}
	if one.Every < time.Second || one.For < one.Every {
		return usagef("--every %s, --for %s: rounds are 1s or more apart, and the study lasts one of them at least", one.Every, one.For)
	}
	return nil
}

// askHourly runs a study of endpoints.
func (s streams) askHourly(c *cobra.Command, as told, out string, one *spec.Study) error {
	ctx, stop, release := interrupts(c.Context(), s)
	defer release()
	done, err := experiment.AskHourly(ctx, one, s.options(out, stop))
	if keys := experiment.MissingKeys(""); errors.As(err, &keys) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if err := s.tellStudy(as, done); err != nil {
		return err
	}
	if !done.AllHold() {
		return status(exitMissed)
	}
	return nil
}
