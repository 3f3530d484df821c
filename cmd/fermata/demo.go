package main

import (
	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/load"
	"fermata/metrics"
)

func newDemo(s streams) *cobra.Command {
	var out, format string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Two servers, one load: what the averages hide",
		Long: `Demo starts two servers of its own on 127.0.0.1 and offers both the same load.
Their TPOT and normalized latency agree; one of them freezes every reader for two
seconds. The report shows which metrics saw it. It takes half a minute.`,
		Args: takes(0, 0, ""),
	}
	c.Flags().StringVar(&out, "out", "", "`DIR` for the two recordings (default runs/TIME-demo)")
	addFormat(c, &format)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		ctx, stop, release := interrupts(c.Context(), s)
		defer release()
		line := newLive(s, false)
		o := experiment.Options{Out: out, Version: version(), Stop: stop, Say: s.say}
		o.Live = func(l load.Live, p experiment.Plan) { line.show(l, p) }
		runs, err := experiment.Demo(ctx, o)
		line.end()
		if err != nil {
			return err
		}
		results := make([]*metrics.Result, len(runs))
		for i, r := range runs {
			results[i] = r.Result
		}
		if err := s.report(format, results); err != nil {
			return err
		}
		for _, r := range runs {
			s.say("recorded in %s", r.Dir)
			if r.End.Interrupted != "" {
				return status(exitInterrupted)
			}
		}
		return nil
	}
	return c
}
