package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/spec"
)

func newWorkload(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "workload",
		Short: "Look at a workload without sending anything",
		Args:  takes(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return usagef("say what to do: `fermata workload show`") },
	}
	c.AddCommand(newWorkloadShow(s))
	return c
}

func newWorkloadShow(s streams) *cobra.Command {
	var set []string
	var trace string
	var requests int
	c := &cobra.Command{
		Use:   "show [SPEC]",
		Short: "What would be asked: lengths, their correlation, arrivals",
		Long: `Show reads the workload of a run file or of the flags, and prints where its
lengths come from, their quantiles and histograms, how prompt and answer lengths
go together, what filters dropped, what prompts share, how conversations grow,
and when requests would come. Nothing is sent.`,
		Example: `  fermata workload show --lengths lmsys
  fermata workload show --dataset trace.csv --max-input 4096`,
		Args: takes(0, 1, "one run file at most"),
	}
	flags := addSpecFlags(c, isAsking)
	c.Flags().StringVar(&trace, "trace", "", "the same as --dataset, for a `FILE` that run takes as --trace")
	c.Flags().StringArrayVar(&set, "set", nil, "`KEY=VALUE` of the run file, such as workload.once=true")
	c.Flags().IntVar(&requests, "requests", 0, "look at the first `N` requests (default the data set, or 10,000)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("requests") && requests < 1 {
			return usagef("--requests must be 1 or more, not %d", requests)
		}
		if c.Flags().Changed("trace") {
			if c.Flags().Changed("dataset") {
				return usagef("--trace and --dataset are the same here: give one of them")
			}
			if err := c.Flags().Set("dataset", trace); err != nil {
				return usagef("--trace: %w", err)
			}
		}
		sets, err := flags.settings(c, set)
		if err != nil {
			return err
		}
		if len(args) == 0 { // how fast does not matter here
			sets = append(sets, conf.Setting{Path: "schedule.rate", Value: "1", From: "the default rate"})
		}
		r, err := readUntargeted(args, sets)
		if err != nil {
			return err
		}
		w, summary, err := experiment.DescribeWorkload(r, requests)
		if err != nil {
			return err
		}
		if _, err = fmt.Fprint(s.out, summary.Text(look(s.out).Width)); err != nil || len(args) == 0 {
			return err
		}
		when, err := experiment.DescribeSchedule(r, w)
		if err == nil && when != "" {
			_, err = fmt.Fprintf(s.out, "\nschedule\n%s", when)
		}
		return err
	}
	return c
}

// readUntargeted reads a run whose target does not matter: where it has none, or
// no whole one, any will do, unless it has several.
func readUntargeted(args []string, sets []conf.Setting) (*spec.Run, error) {
	url := conf.Setting{Path: "target.url", Value: "http://127.0.0.1:8000", From: "the default URL"}
	r, err := readSpec(args, append([]conf.Setting{url}, sets...), true)
	if err == nil || len(args) == 0 {
		return r, err
	}
	own, ownErr := readSpec(args, sets, true)
	var mistakes, ownMistakes conf.Mistakes
	if ownErr == nil || errors.As(err, &mistakes) && errors.As(ownErr, &ownMistakes) && len(ownMistakes) < len(mistakes) {
		return own, ownErr
	}
	return r, err
}

// isAsking says that a flag is about what is asked.
func isAsking(f spec.Flag) bool {
	return f.Path == "seed" || len(f.Path) > len("workload.") && f.Path[:len("workload.")] == "workload."
}
