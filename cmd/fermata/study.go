package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/report"
	"fermata/spec"
)

func newStudy(s streams) *cobra.Command {
	var format string
	var quiet bool
	var parallel int
	c := &cobra.Command{
		Use:   "study SPEC…",
		Short: "A list of simulated runs as one: systems, seeds, grids, claims",
		Long: `Study plays several simulated systems in virtual time, each at every point of a
grid and with several seeds, and shows their statistics side by side, with what was
published about them and whether it holds here. examples/ has three published
comparisons; docs/simulator.md describes the file.

Exit codes: 0 fine; 1 the tool failed; 2 wrong usage; 3 a claim does not hold; 130
interrupted.`,
		Example: `  fermata study examples/scheduling-delay.yaml
  fermata study examples/*.yaml`,
		Args: takes(1, -1, "one study or more"),
	}
	c.Flags().StringVarP(&format, "output-format", "o", "terminal", "`FORMAT` of the report: terminal, json or markdown")
	_ = c.RegisterFlagCompletionFunc("output-format", cobra.FixedCompletions(report.StudyFormats(), cobra.ShellCompDirectiveNoFileComp))
	c.Flags().IntVar(&parallel, "parallel", 0, "runs at once: `N` (default as many as there are cores)")
	c.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := report.CheckStudyFormat(format); err != nil {
			return usageError{err}
		}
		if err := atLeastOne(c, "parallel"); err != nil {
			return err
		}
		if format == "json" && len(args) > 1 {
			return usagef("-o json is for one study at a time")
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
		}
		ctx, release := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer release()
		hold := true
		for i, one := range studies {
			bar := newCounter(s, quiet, "runs")
			done, err := experiment.Study(ctx, one, parallel, version(), bar.show)
			bar.end()
			if err != nil {
				return err
			}
			if i > 0 {
				fmt.Fprintln(s.out)
			}
			if err := s.study(format, done); err != nil {
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
