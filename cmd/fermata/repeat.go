package main

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
	"fermata/spec"
)

// repeating is what --repeat and --against say.
type repeating struct {
	times   int
	against string
}

const (
	usualRepeats = 10
	mostRepeats  = 1000
)

func (r *repeating) wanted() bool { return r.times > 0 || r.against != "" }

func (r *repeating) check(c *cobra.Command, format string) error {
	if r.against != "" {
		if err := checkFormat(format, report.ComparisonFormats); err != nil {
			return err
		}
	}
	if c.Flags().Changed("repeat") && (r.times < 1 || r.times > mostRepeats) {
		return usagef("--repeat takes 1 to %d runs, not %d", mostRepeats, r.times)
	}
	if c.Flags().Changed("against") && r.against == "" {
		return usagef("--against needs the URL of a server")
	}
	if r.against != "" && r.times == 0 {
		r.times = usualRepeats
	}
	return nil
}

// measureAgain makes the run several times, reports all, and compares where there
// are two systems.
func (s streams) measureAgain(ctx context.Context, again *repeating, r *spec.Run, args []string, sets []conf.Setting, out string, as told) error {
	job := experiment.Repeat{Systems: []*spec.Run{r}, Times: again.times}
	if again.against != "" {
		url := conf.Setting{Path: "target.url", Value: again.against, From: "--against"}
		other, err := readSpec(args, append(slices.Clone(sets), url), false)
		if err != nil {
			return err
		}
		job.Systems = append(job.Systems, other)
	}
	ctx, stop, release := interrupts(ctx, s)
	defer release()
	line := newLive(s)
	done, err := job.Run(ctx, line.series(out, stop))
	line.end()
	if err != nil {
		return err
	}
	defer s.recordedIn("", done.Dir, out)
	var results []*metrics.Result
	var all []*experiment.Done
	for _, side := range done.Runs {
		for _, one := range side {
			results, all = append(results, one.Result), append(all, one)
		}
	}
	switch {
	case done.Cut == nil && len(done.Runs) > 1:
		return s.compareRepeats(done.Dir, as, results)
	case len(done.Runs) > 1:
		s.say("not all runs were made; `fermata compare %s` compares those that were", done.Dir)
	}
	if err := s.report(as.format, results); err != nil {
		return err
	}
	if err := s.pageOfRuns(as.html, all...); err != nil {
		return err
	}
	if done.Cut != nil {
		return verdict(done.Cut)
	}
	return worst(results)
}

// compareRepeats compares two systems' runs, and gives their own exit code where
// the comparison has none.
func (s streams) compareRepeats(dir string, as told, results []*metrics.Result) error {
	sides := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	asked := experiment.Comparison{Sides: sides, Version: version()}
	c, err := asked.Compare()
	if err != nil {
		return err
	}
	if err := s.pageOfComparison(as.html, asked, c); err != nil {
		return err
	}
	if err := s.compared(as.format, c, false); err != nil {
		return err
	}
	return worst(results)
}
