package main

import (
	"github.com/spf13/cobra"

	"fermata/compare"
	"fermata/experiment"
	"fermata/report"
)

func newCompare(s streams) *cobra.Command {
	var failOn string
	var as told
	var show []string
	c := &cobra.Command{
		Use:   "compare A B [C…]",
		Short: "What differs between runs, and how sure that is",
		Long: `Compare says what differs between systems that were offered the same load. The
others are compared with the first. Each is a run's folder or requests.parquet,
a folder of repeats, or several of either with commas between them; one argument
alone is a folder of such folders, as a run against another server makes it.

Runs with the same seed and load are pairs, and their requests are matched by
index. With 5 runs a side or more, runs are the unit of the tests; with fewer,
means and shares are tested by 20 batches of requests, and percentiles are not
resolved. All that is asked is one family (Holm). docs/compare.md has the rules.

With --prices, or prices in the run files, costs are compared too.

Runs that cannot be compared are refused with the reason: other workloads or
rates, runs in which this machine was the bottleneck, a run with itself.

Exit codes: 0 compared; 1 the tool failed; 2 wrong usage; 3 with --fail-on
worse, a further system is worse in something; 4 refused.`,
		Example: `  fermata compare runs/before runs/after
  fermata compare runs/ab
  fermata compare runs/ab/a runs/ab/b --fail-on worse
  fermata compare runs/a1,runs/a2,runs/a3 runs/b1,runs/b2,runs/b3
  fermata compare runs/before runs/after --prices prices.yaml
  fermata compare runs/before runs/after --metric ttft_due.mean -o json`,
		Args: takes(1, -1, "two runs or more, or one folder that holds them"),
	}
	flags := addSpecFlags(c, isReported)
	c.Flags().Lookup("scenario").Usage = judgedScenario
	c.Flags().StringArrayVar(&show, "metric", nil, "`METRIC` that is asked about, such as ttft_due.p99, e2e.mean, failed_share or slo1.share (default a choice)")
	c.Flags().StringVar(&failOn, "fail-on", "", "`WHAT` gives exit code 3: worse")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"worse"}, cobra.ShellCompDirectiveNoFileComp))
	addTold(c, &as, report.ComparisonFormats)
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("fail-on") && failOn != "worse" {
			return usagef("--fail-on takes worse, not %q", failOn)
		}
		if err := as.check(c, report.ComparisonFormats); err != nil {
			return err
		}
		sets, err := flags.settings(c, nil)
		if err != nil {
			return err
		}
		asked := experiment.Comparison{Sides: args, Sets: sets, Metrics: show, Version: version()}
		out, err := asked.Compare()
		if err != nil {
			return err
		}
		if err := s.pageOfComparison(as.html, asked, out); err != nil {
			return err
		}
		return s.compared(as.format, out, failOn != "")
	}
	return c
}

// compared prints a comparison and gives it its exit code.
func (s streams) compared(format string, c *compare.Comparison, failOnWorse bool) error {
	if err := report.WriteComparison(format, s.out, c, look(s.out)); err != nil {
		return err
	}
	switch {
	case c.Refused != "":
		return status(exitUnclear)
	case failOnWorse && c.Worse():
		return status(exitMissed)
	}
	return nil
}
