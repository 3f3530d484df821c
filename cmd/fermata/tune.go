package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/report"
	"fermata/spec"
)

func newTune(s streams) *cobra.Command {
	var out string
	var as told
	var budget int
	c := &cobra.Command{
		Use:   "tune SPEC",
		Short: "Each system's best settings, before comparing",
		Long: `Tune tries out declared settings of servers (chunk size, batch limit, block
size, memory fraction …) under one load, with the same budget of requests for
every system, so that a comparison is not one of how well somebody guessed. A
system is a simulator's spec, or a command with placeholders that is started
again with every setting, awaited and ended.

The budget is spent by sequential halving on goodput: in each round the better
half goes on, and has twice the requests. The best settings come with their
goodput and its interval, beside those of the default settings, which are marked
so. Begun again with the same --out, what ended is kept. docs/tune.md describes
the file.

Exit codes: 0 tuned; 1 the tool failed; 2 wrong usage; 3 of a system nothing
could be measured; 130 interrupted, with what was measured kept.`,
		Example: `  fermata tune examples/tune/chunk.yaml
  fermata tune tune.yaml --budget 2000 --out runs/tuned`,
		Args: takes(1, 1, "one file of what is to be tuned"),
	}
	c.Flags().IntVar(&budget, "budget", 0, "measured `REQUESTS` of each system (default as the file says)")
	c.Flags().StringVar(&out, "out", "", "`DIR` for the runs (default runs/TIME-tune); one that was begun goes on")
	addTold(c, &as, report.DocumentFormats)
	addQuiet(c, &s.quiet)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.DocumentFormats); err != nil {
			return err
		}
		if err := atLeastOne(c, "budget"); err != nil {
			return err
		}
		data, err := os.ReadFile(args[0])
		if os.IsNotExist(err) {
			return usagef("there is no file %s; examples/tune has some", args[0])
		}
		if err != nil {
			return fmt.Errorf("reading what is to be tuned: %w", err)
		}
		t, err := spec.ReadTune(args[0], data, budget)
		if err != nil {
			return err
		}
		return s.tune(c.Context(), t, out, as)
	}
	return c
}

// tune tries the settings and reports them.
func (s streams) tune(ctx context.Context, t *spec.Tune, out string, as told) error {
	ctx, stop, release := interrupts(ctx, s)
	defer release()
	line := newLive(s)
	done, dir, err := experiment.Tune(ctx, t, line.series(out, stop))
	line.end()
	if err != nil {
		if dir != "" {
			s.say("what was measured is kept in %s; the same command with --out %s goes on", dir, dir)
		}
		return err
	}
	if err := report.WriteTuning(as.format, s.out, done, look(s.out)); err != nil {
		return err
	}
	if err := s.writeHTML(as.html, func(w io.Writer) error { return report.TuningHTML(w, done) }); err != nil {
		return err
	}
	s.recordedIn("", dir, out)
	if done.Cut {
		s.say("the same command with --out %s goes on", dir)
		return status(exitInterrupted)
	}
	for i := range done.Systems {
		if done.Systems[i].Unmeasured() {
			s.say("nothing of %s could be measured", done.Systems[i].Name)
			return status(exitMissed)
		}
	}
	return nil
}
