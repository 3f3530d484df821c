package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/load"
	"fermata/metrics"
	"fermata/report"
	"fermata/spec"
)

func newRun(s streams) *cobra.Command {
	var out string
	var as told
	var printSpec bool
	var set []string
	var again repeating
	c := &cobra.Command{
		Use:   "run URL|SPEC",
		Short: "Offer a load, record every token, print what can be claimed",
		Long: `Run offers a load to a streaming endpoint (OpenAI-compatible Chat Completions or
Completions) and records when every token arrived. The load is an open loop by
default: requests leave when they are due, however slow the server is, and
latencies count from the due time.

Everything can stand in a run file instead of flags; --print-spec shows the file
that the flags mean, and --set reaches every key of it. ^C once stops asking and
waits up to 30 s for answers; twice, SIGTERM and SIGHUP cut them. Either way
everything recorded is kept and reported.

With --repeat the run is made again with other seeds. With --against another
server takes turns with it (ABBA), under the same load, seeds, model, key and
headers, and the two are compared as by fermata compare.

Exit codes: 0 fine; 1 the tool or its first request failed; 2 wrong usage; 3 an
objective or a limit of MLPerf's was missed, or no request succeeded; 4 the
measurement cannot carry the claim (this machine was the bottleneck, an
objective is open, MLPerf's rules make it INVALID for another reason than its
limits, or failures stopped the run); 130 interrupted. Where several hold: 130,
1, 4, 3.`,
		Example: `  fermata run http://127.0.0.1:8000 --rate 4 --requests 200
  fermata run http://127.0.0.1:8000/v1 --concurrency 8 --duration 60s \
      --input 1024 --output 256
  fermata run https://api.example.com/v1 --model m --api-key-env KEY \
      --rate 0.5 \
      --slo "ttft<=2s and tbt.p99<=100ms @99%"
  fermata run http://127.0.0.1:8000 --scenario offline,server \
      --benchmark llama2-70b --rate 4
  fermata run experiment.yaml --set schedule.rate=8
  fermata run http://127.0.0.1:8000 --rate 4 --requests 500 --repeat 10 \
      --against http://127.0.0.1:8001`,
		Args: takes(0, 1, "one URL or run file"),
	}
	flags := addSpecFlags(c, func(spec.Flag) bool { return true })
	c.Flags().StringArrayVar(&set, "set", nil, "`KEY=VALUE` of the run file, such as schedule.rate=4")
	c.Flags().BoolVar(&printSpec, "print-spec", false, "print the run file that the flags mean, and stop")
	c.Flags().StringVar(&out, "out", "", "`DIR` for the recording (default runs/TIME-NAME)")
	c.Flags().IntVar(&again.times, "repeat", 0, "make the run `N` times, each with the seed after that of the one before (with --against 10 unless said)")
	c.Flags().StringVar(&again.against, "against", "", "the same with the server at `URL` in turns, and a comparison")
	addTold(c, &as, report.ResultFormats)
	addQuiet(c, &s.quiet)
	addProgress(c, &s.progress)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := as.check(c, report.ResultFormats); err != nil {
			return err
		}
		if err := checkProgress(s.progress); err != nil {
			return err
		}
		sets, err := flags.settings(c, set)
		if err != nil {
			return err
		}
		if err := again.check(c, as.format); err != nil {
			return err
		}
		if scenarios := scenariosOf(sets); len(scenarios) > 1 {
			if printSpec || again.wanted() {
				return usagef("--print-spec, --repeat and --against are about one scenario, not about %d", len(scenarios))
			}
			return s.measureScenarios(c.Context(), args, sets, scenarios, out, as)
		}
		r, err := readSpec(args, sets, printSpec)
		if err != nil {
			return err
		}
		if again.wanted() && !printSpec {
			return s.measureAgain(c.Context(), &again, r, args, sets, out, as)
		}
		if printSpec {
			_, err := s.out.Write(r.YAML())
			return err
		}
		return s.measure(c.Context(), r, out, as)
	}
	return c
}

// hostPort is a server that somebody wrote without its scheme.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)(/.*)?$`)

// readSpec reads the run file, or makes one for a URL.
func readSpec(args []string, sets []conf.Setting, printing bool) (*spec.Run, error) {
	switch {
	case len(args) == 0 && printing:
		url := conf.Setting{Path: "target.url", Value: "http://127.0.0.1:8000", From: "the default URL"}
		return spec.Read("", nil, append([]conf.Setting{url}, sets...))
	case len(args) == 0:
		return nil, usagef("say whom to measure: a URL such as http://127.0.0.1:8000, or a run file")
	case strings.Contains(args[0], "://"):
		url := conf.Setting{Path: "target.url", Value: args[0], From: "the URL"}
		return spec.Read("", nil, append([]conf.Setting{url}, sets...))
	}
	data, err := os.ReadFile(args[0])
	if os.IsNotExist(err) && hostPort.MatchString(args[0]) {
		return nil, usagef("%s is no run file; for a server write http://%s", args[0], args[0])
	}
	if os.IsNotExist(err) {
		return nil, usagef("%s is neither a run file nor a URL (which begins with http:// or https://)", args[0])
	}
	if err != nil {
		return nil, fmt.Errorf("reading the run file: %w", err)
	}
	return spec.Read(args[0], data, sets)
}

// measure runs, reports and gives the run its exit code.
func (s streams) measure(ctx context.Context, r *spec.Run, out string, as told) error {
	done, err := s.offer(ctx, r, out)
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
	return verdict(done)
}

// offer runs and records.
func (s streams) offer(ctx context.Context, r *spec.Run, out string) (*experiment.Done, error) {
	ctx, stop, release := interrupts(ctx, s)
	defer release()
	o := s.options(out, stop)
	line := newLive(s)
	line.watch(&o)
	done, err := experiment.Run(ctx, r, o)
	line.end()
	return done, err
}

// verdict is the exit code of a finished run.
func verdict(d *experiment.Done) error {
	switch {
	case d.End.Interrupted != "" && !d.End.ByFailures:
		return status(exitInterrupted)
	case d.End.ByFailures:
		return status(exitUnclear)
	}
	return judged(d.Result)
}

// judged is the exit code that a result alone asks for.
func judged(r *metrics.Result) error {
	missed, open := r.Outcomes["ok"] == 0, r.Health.ClientBound || r.Run.Interrupted == load.TooManyFailed
	if m := r.MLPerf; m != nil && m.Verdict == metrics.Invalid {
		missed, open = missed || m.Missed(), open || !m.Missed()
	}
	for _, v := range r.SLO {
		missed = missed || v.Verdict == "missed"
		open = open || v.Verdict == "open"
	}
	switch {
	case open:
		return status(exitUnclear)
	case missed:
		return status(exitMissed)
	}
	return nil
}

// report prints results on standard output.
func (s streams) report(format string, results []*metrics.Result) error {
	metrics.MLPerfLosses(results)
	if err := report.Write(format, s.out, results, look(s.out)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
