package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/metrics"
	"fermata/report"
)

func newDemo(s streams) *cobra.Command {
	var out, format, html string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Two servers, one load: what the averages hide",
		Long: `Demo offers one trace to two simulated servers on 127.0.0.1, ten times as fast
as the clock: Yi-34B on two H100 under two schedulers. Their medians of TBT and
of normalized latency agree, and by p95 of TBT prefill-first even looks better;
it lets its readers wait for nine seconds in the middle of an answer, stall-free
never for a fifth of a second, besides what this machine adds, ten times over.
The report names the blind spots: which metric hides what another shows; the
page beside the recordings draws them. It takes half a minute.`,
		Example: `  fermata demo
  fermata demo --out runs/demo --html page.html`,
		Args: takes(0, 0, ""),
	}
	c.Flags().StringVar(&out, "out", "", "`DIR` for the two recordings (default runs/TIME-demo)")
	addFormat(c, &format, report.ResultFormats)
	c.Flags().StringVar(&html, "html", "", "`PATH` of the page with pictures (default report.html beside the recordings)")
	_ = c.MarkFlagFilename("html", "html")
	addQuiet(c, &s.quiet)
	addProgress(c, &s.progress)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format, report.ResultFormats); err != nil {
			return err
		}
		if err := checkHTML(c, &html); err != nil {
			return err
		}
		if err := checkProgress(s.progress); err != nil {
			return err
		}
		ctx, stop, release := interrupts(c.Context(), s)
		defer release()
		line := newLive(s)
		o := s.options(out, stop)
		line.watch(&o)
		runs, err := experiment.Demo(ctx, o)
		line.end()
		if err != nil {
			return err
		}
		if err := s.demo(format, runs); err != nil {
			return err
		}
		if html == "" {
			html = filepath.Join(filepath.Dir(runs[0].Dir), "report.html")
		}
		if err := s.pageOfRuns(html, runs...); err != nil {
			return err
		}
		for _, r := range runs {
			s.recordedIn("", r.Dir, out)
			if r.End.Interrupted != "" {
				return status(exitInterrupted)
			}
		}
		return nil
	}
	return c
}

// demo shows the two runs: side by side for people, as results for programs.
func (s streams) demo(format string, runs []*experiment.Done) error {
	if report.DocumentFormats.Check(format) == nil && format != "json" {
		table, err := experiment.DemoTable(runs, version())
		if err != nil {
			return err
		}
		return s.study(format, table)
	}
	results := make([]*metrics.Result, len(runs))
	for i, r := range runs {
		results[i] = r.Result
	}
	metrics.Contrasts(results)
	return s.report(format, results)
}
