package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fermata/capacity"
	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/internal/term"
	"fermata/load"
	"fermata/spec"
)

// sought are the keys that a search has no use for: what it seeks, and what follows
// from that.
var sought = []string{
	"schedule.rate", "schedule.concurrency", "schedule.think", "schedule.file", "schedule.speedup", "schedule.requests", "schedule.duration",
	"schedule.kind", "schedule.warmup", "schedule.drain", "workload.turns", "workload.session_share",
	"judge.saturation", "judge.capacity", "judge.verdict", "judge.utilisation", "judge.billed_failures",
	"load.stop_at_precision", "load.probe_saturation",
}

// isSearched says that a flag is one of a search: of a server, or of a simulator too.
func isSearched(f spec.Flag) bool {
	return isSteered(f) || !slices.Contains(sought, f.Path) && !strings.HasPrefix(f.Path, "mlperf.")
}

// isServer says that an argument names a server, or a run file, which does.
func isServer(arg string) (data []byte, ok bool, err error) {
	if strings.Contains(arg, "://") {
		return nil, true, nil
	}
	if !fileExists(arg) && hostPort.MatchString(arg) {
		return nil, false, usagef("%s is no file; for a server write http://%s", arg, arg)
	}
	if data, err = readSim(arg); err != nil {
		return nil, false, err
	}
	return data, spec.NamesTarget(data), nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// searchServer searches a server and gives the command its exit code.
func (s streams) searchServer(parent context.Context, arg string, sets []conf.Setting, o experiment.CapacityOptions, out string, as told) error {
	given := slices.ContainsFunc(sets, func(one conf.Setting) bool { return one.Path == "seed" })
	if seed, ok := experiment.SearchSeed(out); ok && !given {
		sets = append(sets, conf.Setting{Path: "seed", Value: fmt.Sprint(seed), From: "the search in " + out})
	}
	// The rate is what is sought; one that is set takes the place of any other schedule.
	sets = append(sets, conf.Setting{Path: "schedule.rate", Value: "1", From: "the search"})
	r, err := readSpec([]string{arg}, sets, false)
	if err != nil {
		return err
	}
	ctx, stop, release := interrupts(parent, s)
	defer release()
	line := &searchLine{counter: *newCounter(s, "")}
	defer line.clear()
	o.Say, o.Step = s.above(line.clear)
	options := s.options(out, stop)
	options.Say, options.Step, options.Live = o.Say, o.Step, line.live
	site, err := experiment.OpenServer(ctx, r, options)
	if err != nil {
		return err
	}
	site.Several = len(slices.Compact(slices.Sorted(slices.Values(r.SLO))))*max(1, o.Seeds) > 1
	line.scale = site.Scale()
	o.State, o.Begin, o.Progress = site.State(), site.Begin, line.progress
	search, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-search.Done():
		}
	}()
	results, err := experiment.Capacity(search, site, o)
	line.clear()
	if len(results) > 0 {
		if kept := site.Keep(results); kept != nil && err == nil {
			err = kept
		}
		if failed := s.tellCapacity(as, results); failed != nil {
			return failed
		}
		s.recordedIn("", site.Dir(), out)
	}
	if err != nil {
		return err
	}
	return searched(results, "--out "+site.Dir(), s)
}

// rejudge tells what a search's recording says of other objectives.
func (s streams) rejudge(c *cobra.Command, dir string, args []string, sets []conf.Setting, as told) error {
	if len(args) > 0 {
		return usagef("--rejudge asks nobody: leave %s out", args[0])
	}
	for _, f := range spec.Flags() {
		if c.Flags().Changed(f.Name) && !isJudging(f) {
			return usagef("--%s is about what is asked, and --rejudge asks nothing; leave it out", f.Name)
		}
	}
	for _, name := range []string{"precision", "method", "trial", "start", "seeds", "out", "state"} {
		if c.Flags().Changed(name) {
			return usagef("--%s is about a search, and --rejudge makes none; leave it out", name)
		}
	}
	results, err := experiment.RejudgeCapacity(dir, sets)
	if err != nil {
		return err
	}
	if err := s.tellCapacity(as, results); err != nil {
		return err
	}
	return searched(results, "", s)
}

// A searchLine says how the search of a server goes: what matters most first.
type searchLine struct {
	mu sync.Mutex // told by the search, and once a second by its load
	counter
	scale float64
	text  string
}

func (l *searchLine) progress(_ string, s *capacity.State, b capacity.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = searchText(s, b, l.scale)
	l.tell(l.text)
}

func (l *searchLine) live(now load.Live, _ experiment.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return
	}
	text := l.text + fmt.Sprintf("  in flight %d  finished %s", now.InFlight, term.Count(now.Finished))
	if now.Failed > 0 {
		text += fmt.Sprintf("  failed %s", term.Count(now.Failed))
	}
	if now.Spent != nil {
		text += "  spent " + now.Spent.Short()
	}
	l.tell(text)
}

// clear takes the line away.
func (l *searchLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// searchText is how far a search is.
func searchText(s *capacity.State, b capacity.Budget, scale float64) string {
	left := max(0, int64(b.Total)-s.Sent)
	rate := s.Rate()
	text := fmt.Sprintf("%.4g/s", rate)
	switch n := len(s.Steps); {
	case s.Fixed.Requests > 0:
		text += fmt.Sprintf("  held for %s of %s, %s missed", term.Count(int64(s.Fixed.Requests)), term.Count(int64(b.Fixed)), term.Count(int64(len(s.Fixed.Misses))))
	case n > 0:
		last := s.Steps[n-1]
		text += fmt.Sprintf("  block %d of %d  %d of %d missed", n, b.Search/max(1, capacity.BlockRequests), last.Misses, last.Requests)
	}
	text += fmt.Sprintf("  %s requests left", term.Count(left))
	if rate > 0 {
		wait := time.Duration(float64(left) / rate / max(scale, 1e-9) * 1e9)
		text += ", about " + wait.Round(time.Second).String()
	}
	return text
}
