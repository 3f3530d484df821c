package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/load"
	"fermata/metrics"
	"fermata/report"
	"fermata/spec"
)

func newSim(s streams) *cobra.Command {
	var out string
	var as told
	var set, grid, show []string
	var seeds, parallel int
	var printSpec bool
	c := &cobra.Command{
		Use:   "sim SPEC",
		Short: "The simulator in virtual time: any schedule, any system, no GPU",
		Long: `Sim plays a load against a simulated serving system, iteration by iteration, and
writes an ordinary run: every metric and report works on it. Beside the
recording it writes the truth: of every gap between two tokens what it consisted
of (truth_gaps.parquet), and what every iteration did
(truth_iterations.parquet). The same spec and seed give the same bytes.
docs/simulator.md describes the spec, the model behind it and what it cannot
say.

With --seeds or --grid many runs are played at once and not kept; a table shows
the median and the range over the seeds of each metric. Several --grid multiply.
Keys are those of the spec, dotted, or a last part that is clear by itself.

Exit codes as of run.`,
		Example: `  fermata sim examples/systems/yi34b-2xh100-prefill-first-2024.yaml
  fermata report runs/20261129-120000-yi34b --why 347
  fermata sim system.yaml --set scheduler.chunk=1024 --slo "tbt.p99<=100ms @99%"
  fermata sim system.yaml --seeds 40 --grid chunk=512,1024,1536 \
      --grid rate=1.4,1.5`,
		Args: takes(1, 1, "one simulator spec"),
	}
	flags := addSpecFlags(c, isSimulated)
	c.Flags().StringArrayVar(&set, "set", nil, "`KEY=VALUE` of the spec, such as scheduler.chunk=1024")
	c.Flags().BoolVar(&printSpec, "print-spec", false, "print the spec with its defaults, and stop")
	c.Flags().IntVar(&seeds, "seeds", 0, "play `N` seeds, from the spec's on, and show medians and ranges")
	c.Flags().StringArrayVar(&grid, "grid", nil, "`KEY=VALUES`: play each of the values, such as chunk=512,1024,1536")
	c.Flags().StringArrayVar(&show, "metric", nil, "`METRIC` of the table, such as ttft.p99, gap_longest.max or scheduling_delay.over25s (default a choice)")
	c.Flags().IntVar(&parallel, "parallel", 0, "runs at once: `N` (default as many as there are cores)")
	c.Flags().StringVar(&out, "out", "", "`DIR` for the recording (default runs/TIME-NAME)")
	addTold(c, &as, report.ResultFormats)
	addQuiet(c, &s.quiet)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.ResultFormats); err != nil {
			return err
		}
		if err := atLeastOne(c, "seeds", "parallel"); err != nil {
			return err
		}
		sets, err := flags.settings(c, set)
		if err != nil {
			return err
		}
		many := seeds > 0 || len(grid) > 0
		for i := range sets {
			sets[i].Path = spec.SimKey(sets[i].Path)
		}
		data, err := readSim(args[0])
		if err != nil {
			return err
		}
		if many {
			if as.html != "" {
				return usagef("--html is for one run; of --seeds and --grid nothing is kept but the table")
			}
			if out != "" {
				return usagef("--out is for one run; of --seeds and --grid nothing is kept but the table, which -o json prints")
			}
			g := experiment.Grid{File: args[0], Data: data, Sets: sets, Seeds: seeds, Axes: grid, Statistics: show, Parallel: parallel}
			return s.simulateGrid(c.Context(), g, as.format)
		}
		if len(show) > 0 {
			return usagef("--metric is for the table of --seeds and --grid")
		}
		one, err := spec.ReadSim(args[0], data, sets)
		if err != nil {
			return err
		}
		if printSpec {
			text, err := one.YAMLIn("") // it may be kept anywhere
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		}
		return s.simulate(c.Context(), one, out, as)
	}
	return c
}

// atLeastOne refuses numbers below 1, where such flags are given.
func atLeastOne(c *cobra.Command, names ...string) error {
	for _, name := range names {
		if n, err := c.Flags().GetInt(name); err == nil && n < 1 && c.Flags().Changed(name) {
			return usagef("--%s must be 1 or more, not %d; leave it out for the default", name, n)
		}
	}
	return nil
}

// isSimulated says that a flag means something to a simulated run.
func isSimulated(f spec.Flag) bool {
	for _, room := range []string{"schedule.", "workload.", "judge.", "mlperf."} {
		if strings.HasPrefix(f.Path, room) {
			return true
		}
	}
	return isPricing(f) || f.Path == "slo" || f.Path == "name" || f.Path == "seed" || f.Path == "labels"
}

func readSim(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, usagef("there is no simulator spec %s; examples/systems has some", file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the simulator spec: %w", err)
	}
	return data, nil
}

// simulate plays one spec and reports it.
func (s streams) simulate(ctx context.Context, one *spec.Sim, out string, as told) error {
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // there is nothing to wait for
	defer release()
	bar := newCounter(s, "requests")
	o := s.options(out, nil)
	o.Live = func(l load.Live, p experiment.Plan) { bar.show(int(l.MeasuredDone), int(p.Measured)) }
	done, err := experiment.Simulate(ctx, one, o)
	bar.end()
	if err != nil {
		return err
	}
	if err := s.report(as.format, []*metrics.Result{done.Result}); err != nil {
		return err
	}
	s.recordedIn("", done.Dir, out)
	if err := s.pageOfRuns(as.html, done); err != nil {
		return err
	}
	return judged(done.Result)
}

// simulateGrid plays many runs and prints their table.
func (s streams) simulateGrid(ctx context.Context, g experiment.Grid, format string) error {
	if err := checkFormat(format, report.DocumentFormats); err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	bar := newCounter(s, "runs")
	study, err := g.Simulate(ctx, version(), bar.show)
	bar.end()
	if err != nil {
		return err
	}
	return s.study(format, study)
}

// study prints a table over many runs.
func (s streams) study(format string, study *report.Study) error {
	if err := report.WriteStudy(format, s.out, study, look(s.out)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// A counter is the progress of things that end one by one: rewritten on a
// terminal, a line every ten seconds elsewhere.
type counter struct {
	s        streams
	what     string
	terminal bool
	shown    time.Time
	open     bool
}

func newCounter(s streams, what string) *counter {
	return &counter{s: s, what: what, terminal: terminal(s.err) != nil, shown: time.Now()}
}

func (c *counter) show(done, all int) {
	text := fmt.Sprintf("%d of %d %s", done, all, c.what)
	if all == 0 {
		text = fmt.Sprintf("%d %s", done, c.what)
	}
	c.tell(text)
}

// tell rewrites the line on a terminal, and adds one every ten seconds elsewhere.
func (c *counter) tell(text string) {
	if c.s.quiet || !c.terminal && time.Since(c.shown) < 10*time.Second {
		return
	}
	c.shown = time.Now()
	if !c.terminal {
		c.s.say("%s", text)
		return
	}
	fmt.Fprintf(c.s.err, "\r\x1b[K%s", text)
	c.open = true
}

func (c *counter) end() {
	if c.open {
		fmt.Fprint(c.s.err, "\r\x1b[K")
	}
}
