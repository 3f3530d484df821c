package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fermata/capacity"
	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/report"
	"fermata/spec"
)

func newCapacity(s streams) *cobra.Command {
	var o experiment.CapacityOptions
	var precision, out, rejudge string
	var as told
	var set []string
	c := &cobra.Command{
		Use:   "capacity URL|SPEC",
		Short: "The highest rate at which an objective holds, with its interval",
		Long: `Capacity finds the highest rate at which an objective (--slo) holds in steady
state. It asks for many requests at once, which shows the saturation, then
steers the rate of one continuous run by the requests that miss, and holds the
rate that it found for an interval. How many requests that takes is fixed and
told before it begins. Each of several objectives is searched for by itself, and
a table sets them side by side: they often disagree. docs/capacity.md has the
formulas.

--rejudge says what the recording of a search tells of another objective, near
the rate that it held.

A server (a URL, or a run file) is asked in one run that is recorded, after a
burst that is not. Its folder (--out) holds what fermata report takes: the run
at the rate found is the measured phase, everything before it warm-up. ^C keeps
all that; the same command with the same --out goes on. --max-cost stops a
search before it costs more. A simulator's spec (see sim) is searched in virtual
time. Of any schedule only the scatter of the gaps matters: the rate is what is
sought.

A precision over 10% takes far fewer requests, and its result is marked rough.
--method bisect is the search of other tools: a trial of fixed length a rate,
which decides for good. What it finds is too high near saturation.

Exit codes: 0 found; 1 the tool failed; 2 wrong usage; 3 the objective does not
hold at any rate, or nothing was answered; 4 the search ended without a
capacity, or this machine was the bottleneck; 130 interrupted.`,
		Example: `  fermata capacity http://127.0.0.1:8000 \
      --slo "ttft<=2s and tbt.p99<=100ms @p90" --precision 10%
  fermata capacity https://api.example.com/v1 --model m --api-key-env KEY \
      --slo "ttft<=2s @p90" \
      --precision 25% --prices prices.yaml --max-cost 5
  fermata capacity --rejudge runs/…-capacity --slo "ttft<=1s @p90"
  fermata capacity examples/systems/llama3-8b-1xh100-stall-free.yaml \
      --slo "ttft<=2s @p99"
  fermata capacity system.yaml --slo "fluidity.decode>=0.9 gap=25ms" \
      --slo "tbt.p99<=50ms" --slo "tpot<=30ms"
  fermata capacity system.yaml --slo "ttft<=1s and tpot<=25ms @90%" \
      --precision 10% --seeds 3 -o json
  fermata capacity system.yaml --slo "ttft<=2s" --method bisect --trial 1000`,
		Args: takes(0, 1, "one URL, run file or simulator's spec"),
	}
	flags := addSpecFlags(c, isSearched)
	f := c.Flags()
	f.StringVar(&precision, "precision", "5%", "half-width of the interval aimed at, a `SHARE` such as 5% or 10%")
	f.StringVar(&o.Search.Method, "method", capacity.HTRM, "`METHOD` of the search: "+capacity.HTRM+" or "+capacity.Bisect)
	f.IntVar(&o.Search.TrialRequests, "trial", 1000, "requests of each trial of --method bisect: `N`")
	f.Float64Var(&o.Search.Start, "start", 1, "first `RATE` of --method bisect, in requests a second")
	f.IntVar(&o.Seeds, "seeds", 1, "search `N` times for each objective, with other arrivals and prompts")
	f.StringVar(&out, "out", "", "`DIR` for the recording of a server's search, in which an interrupted one goes on (default runs/TIME-capacity)")
	f.StringVar(&rejudge, "rejudge", "", "judge the requests of the server's search in `DIR` by other objectives, and ask nothing")
	f.StringVar(&o.State, "state", "", "`FILE` that keeps what is known of a simulator, from which an interrupted search goes on")
	f.StringArrayVar(&set, "set", nil, "`KEY=VALUE` of the spec, such as scheduler.chunk=1024")
	addTold(c, &as, report.DocumentFormats)
	addQuiet(c, &s.quiet)
	fixed := func(flag string, values ...string) {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	fixed("method", capacity.HTRM, capacity.Bisect)
	fixed("precision", "5%", "10%", "25%")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := as.check(c, report.DocumentFormats); err != nil {
			return err
		}
		if err := atLeastOne(c, "seeds", "trial"); err != nil {
			return err
		}
		if o.Search.Precision, err = shareOf("--precision", precision); err != nil {
			return err
		}
		for _, name := range []string{"trial", "start"} {
			if c.Flags().Changed(name) && o.Search.Method != capacity.Bisect {
				return usagef("--%s is for --method bisect; leave it out, or choose that", name)
			}
		}
		sets, err := flags.settings(c, set)
		if err != nil {
			return err
		}
		if rejudge != "" {
			return s.rejudge(c, rejudge, args, sets, as)
		}
		if len(args) == 0 {
			return usagef("say what to search: a URL such as http://127.0.0.1:8000, a run file or a simulator's spec")
		}
		data, server, err := isServer(args[0])
		if err != nil {
			return err
		}
		if server {
			if o.State != "" {
				return usagef("--state is for simulators; a server's search keeps what it knows in its folder: give that with --out")
			}
			return s.searchServer(c.Context(), args[0], sets, o, out, as)
		}
		if err := onlyOfServers(c); err != nil {
			return err
		}
		site, err := simulatedSite(args[0], data, sets)
		if err != nil {
			return err
		}
		return s.capacity(c.Context(), site, o, as)
	}
	return c
}

// isSteered says that a flag means something where the rate is what is sought.
func isSteered(f spec.Flag) bool {
	switch f.Path {
	case "slo", "seed", "prices", "schedule.burstiness", "schedule.shape":
		return true
	}
	return strings.HasPrefix(f.Path, "workload.") || f.Path == "judge.deadlines" || f.Path == "judge.pace"
}

// onlyOfServers says which flag means nothing for a simulator.
func onlyOfServers(c *cobra.Command) error {
	if c.Flags().Changed("out") {
		return usagef("--out is for servers: the search of a simulator has no recording")
	}
	for _, f := range spec.Flags() {
		if isSearched(f) && !isSteered(f) && c.Flags().Changed(f.Name) {
			return usagef("--%s is for servers, and this is a simulator's spec", f.Name)
		}
	}
	return nil
}

// simulatedSite is a simulator's spec that is searched.
func simulatedSite(file string, data []byte, sets []conf.Setting) (experiment.CapacitySite, error) {
	for i := range sets {
		sets[i].Path = spec.SimKey(sets[i].Path)
	}
	one, err := spec.ReadSteeredSim(file, data, sets)
	if err != nil {
		return nil, err
	}
	return experiment.SimulatedSite(one), nil
}

// capacity searches, reports and gives the command its exit code.
func (s streams) capacity(ctx context.Context, site experiment.CapacitySite, o experiment.CapacityOptions, as told) error {
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	bar := newCounter(s, "requests")
	o.Say, o.Step = s.above(bar.end)
	o.Progress = func(_ string, state *capacity.State, b capacity.Budget) { bar.show(int(state.Sent), b.Total) }
	results, err := experiment.Capacity(ctx, site, o)
	bar.end()
	if len(results) > 0 {
		if err := s.tellCapacity(as, results); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return searched(results, o.State, s)
}

// tellCapacity prints what was found on standard output, and writes its page.
func (s streams) tellCapacity(as told, results []*capacity.Result) error {
	if err := report.WriteCapacity(as.format, s.out, results, look(s.out)); err != nil {
		return err
	}
	return s.writeHTML(as.html, func(w io.Writer) error { return report.CapacityHTML(w, results, version()) })
}

// searched is the exit code of what was found.
func searched(results []*capacity.Result, state string, s streams) error {
	worst := exitFine
	for _, r := range results {
		code := exitUnclear
		switch r.Ending {
		case capacity.Found, capacity.NeverMissed:
			if code = exitFine; r.ClientBound {
				code = exitUnclear
			}
		case capacity.AlwaysMiss, capacity.Unanswered:
			code = exitMissed
		case capacity.Interrupted:
			if state != "" {
				s.say("the same command goes on from %s", state)
			}
			return status(exitInterrupted)
		}
		worst = max(worst, code)
	}
	if worst == exitFine {
		return nil
	}
	return status(worst)
}
