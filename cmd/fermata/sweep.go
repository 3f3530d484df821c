package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/report"
	"fermata/spec"
)

func newSweep(s streams) *cobra.Command {
	var out string
	var as told
	var set, rates, users []string
	var gpus int
	var offline, common bool
	c := &cobra.Command{
		Use:   "sweep URL|SPEC",
		Short: "The same load at several rates: goodput, frontier, knee",
		Long: `Sweep offers one load at several rates, or with several numbers of users, one
after the other, and says what they come to together: the throughput-latency
frontier, the knee, DistServe's goodput per GPU (the highest rate per GPU at
which 90 % and 99 % of the requests meet an objective, all its terms jointly),
and with --offline what each promise costs beside everything at once.

SPEC is a run file, or a simulator's spec, which is played in virtual time. Each
load is an ordinary run in a folder of its own. Begun again with the same --out,
a sweep keeps what it measured and goes on. Each load has another seed, so that
no cache has seen its prompts; with --common-seed all have the same.
docs/sweep.md has the rules. --max-cost is of the whole sweep.

Exit codes: 0 measured; 1 the tool or its first request failed; 2 wrong usage; 4
the money was spent before the last load; 130 interrupted, with what was
measured kept.`,
		Example: `  fermata sweep http://127.0.0.1:8000 --rates 1,2,4,8 --requests 500 \
      --slo "ttft<=2s and tbt.p99<=100ms"
  fermata sweep http://127.0.0.1:8000 --concurrency 1,4,16 --requests 300 \
      --gpus 2 --out runs/sweep
  fermata sweep system.yaml --rates 0.5,1,1.5,2 --requests 2000 --offline \
      --slo "fluidity>=0.9 gap=50ms"`,
		Args: takes(1, 1, "one URL, run file or simulator spec"),
	}
	flags := addSpecFlags(c, isSwept)
	c.Flags().StringSliceVar(&rates, "rates", nil, "`RATES` to offer, requests a second, such as 1,2,4,8")
	c.Flags().StringSliceVar(&users, "concurrency", nil, "numbers of `USERS` of closed loops instead, such as 1,4,16")
	c.Flags().BoolVar(&offline, "offline", false, "one run more with everything at once, to compare with")
	c.Flags().BoolVar(&common, "common-seed", false, "the same seed at every load")
	c.Flags().IntVar(&gpus, "gpus", 0, "GPUs of the system: `N` (default as prices or a simulator's spec say, else 1)")
	c.Flags().StringArrayVar(&set, "set", nil, "`KEY=VALUE` of the spec, such as schedule.warmup=0")
	c.Flags().StringVar(&out, "out", "", "`DIR` for the runs (default runs/TIME-NAME); one that was begun goes on")
	addTold(c, &as, report.DocumentFormats)
	addQuiet(c, &s.quiet)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.DocumentFormats); err != nil {
			return err
		}
		if (len(rates) > 0) == (len(users) > 0) {
			return usagef("give the loads with --rates 1,2,4 or with --concurrency 1,4,16")
		}
		if err := atLeastOne(c, "gpus"); err != nil {
			return err
		}
		sets, err := flags.settings(c, set)
		if err != nil {
			return err
		}
		subject, err := readSubject(args[0], sets)
		if err != nil {
			return err
		}
		w := experiment.Sweep{Subject: subject, Rates: trimmed(rates), Users: trimmed(users), Offline: offline, Common: common, GPUs: gpus}
		return s.sweep(c.Context(), &w, out, as)
	}
	return c
}

// isSwept says that a flag means something to a sweep, which sets the loads itself.
func isSwept(f spec.Flag) bool {
	return !slices.Contains([]string{"rate", "concurrency", "schedule", "scenario", "benchmark", "min-duration", "min-queries", "trace", "speedup"}, f.Name)
}

func trimmed(all []string) []string {
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// readSubject is a URL or a spec, with settings over it.
func readSubject(arg string, sets []conf.Setting) (experiment.Subject, error) {
	if strings.Contains(arg, "://") {
		url := conf.Setting{Path: "target.url", Value: arg, From: "the URL"}
		return experiment.Subject{Sets: append([]conf.Setting{url}, sets...)}, nil
	}
	data, err := os.ReadFile(arg)
	switch {
	case os.IsNotExist(err) && hostPort.MatchString(arg):
		return experiment.Subject{}, usagef("%s is no file; for a server write http://%s", arg, arg)
	case os.IsNotExist(err):
		return experiment.Subject{}, usagef("%s is neither a run file, a simulator's spec nor a URL (which begins with http:// or https://)", arg)
	case err != nil:
		return experiment.Subject{}, fmt.Errorf("reading the spec: %w", err)
	}
	return experiment.Subject{File: arg, Data: data, Sets: sets}, nil
}

// sweep plays the loads and reports them.
func (s streams) sweep(ctx context.Context, w *experiment.Sweep, out string, as told) error {
	ctx, stop, release := interrupts(ctx, s)
	defer release()
	line := newLive(s)
	done, dir, err := w.Run(ctx, line.series(out, stop))
	line.end()
	if done != nil && (err == nil || len(done.Points) > 0) {
		if err := report.WriteSweep(as.format, s.out, done, look(s.out)); err != nil {
			return err
		}
		if err := s.writeHTML(as.html, func(w io.Writer) error { return report.SweepHTML(w, done) }); err != nil {
			return err
		}
	}
	if err != nil {
		if dir != "" {
			s.say("what was measured is kept in %s; the same command with --out %s goes on", dir, dir)
		}
		return err
	}
	s.recordedIn("", dir, out)
	switch {
	case done.Cut:
		s.say("the same command with --out %s goes on", dir)
		return status(exitInterrupted)
	case done.Stopped != "":
		s.say("%s", done.Stopped)
		s.say("the same command with a higher --max-cost and --out %s goes on", dir)
		return status(exitUnclear)
	}
	return nil
}
