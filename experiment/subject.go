package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/schedule"
	"fermata/sim"
	"fermata/spec"
)

// A Subject is a run, or a simulated one, that is played again and again with
// other settings over it.
type Subject struct {
	File string // of the spec; empty where the settings are all there is
	Data []byte
	Sets []conf.Setting
}

// simulated says that the spec is a simulator's.
func (s *Subject) simulated() bool { return s.File != "" && !spec.NamesTarget(s.Data) }

// read makes a play of the subject with further settings.
func (s *Subject) read(more ...conf.Setting) (*play, error) {
	sets := append(slices.Clone(s.Sets), more...)
	if s.simulated() {
		var served conf.Mistakes
		for i := range sets {
			if sets[i].Path = spec.SimKey(sets[i].Path); spec.OfServers(sets[i].Path) {
				served = append(served, conf.Mistake{File: sets[i].From, Path: sets[i].Path, Text: "is for a server, and " + s.File + " is a simulator's spec, played in virtual time: leave it out"})
			}
		}
		if err := served.Err(); err != nil {
			return nil, err
		}
		one, err := spec.ReadSim(s.File, s.Data, sets)
		if err != nil {
			return nil, err
		}
		return &play{run: one.Run(), sim: one}, nil
	}
	run, err := spec.Read(s.File, s.Data, sets)
	if err != nil {
		return nil, err
	}
	return &play{run: run}, nil
}

// A play is one run of a subject, before it is played.
type play struct {
	run *spec.Run // of a simulated one, all but the system
	sim *spec.Sim // nil of a real one

	server string // command by which the server was started; empty where it was not
}

// sum tells plays apart by everything that is in their spec.
func (p *play) sum() string {
	text := p.run.YAML()
	if p.sim != nil {
		text = p.sim.YAML()
	}
	sum := sha256.Sum256(append(text, p.server...))
	return hex.EncodeToString(sum[:])
}

// into plays it into a folder.
func (p *play) into(ctx context.Context, dir string, o Options) (*Done, error) {
	o.Out = dir
	if p.sim != nil { // there are no answers to wait for
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-o.Stop:
				cancel()
			case <-ended:
			}
		}()
		return Simulate(ctx, p.sim, o)
	}
	one := *p.run
	return Run(ctx, &one, o)
}

// system says in a few words what is measured.
func (p *play) system() string {
	if p.sim != nil {
		return "simulated: " + p.sim.System()
	}
	if len(p.run.Targets) > 0 {
		return fmt.Sprintf("%d targets", len(p.run.Targets))
	}
	return p.run.PublicURL()
}

// gpus are those of the system, and who says so; 1 by nobody where no one does.
func (p *play) gpus(flag int) (n int, from string) {
	switch {
	case flag > 0:
		return flag, "flag"
	case p.run.Prices.GPU != nil:
		return p.run.Prices.GPU.Count, "prices"
	case p.sim != nil:
		return simulatedGPUs(&p.sim.Options), "spec"
	}
	return 1, "nobody"
}

func simulatedGPUs(o *sim.Options) int {
	instances := max(1, o.Replicas)
	if d := o.Disaggregation; d != nil {
		instances = max(1, d.Prefill) + max(1, d.Decode)
	}
	return instances * max(1, o.TP)
}

// length is how many requests a play measures, and how many seconds its load goes
// on; 0 where its answers decide.
func (p *play) length() (requests int64, seconds float64, err error) {
	prompts, arrivals, err := open(p.run)
	if err != nil {
		return 0, 0, err
	}
	requests, known := arrivals.MeasuredTotal()
	s := &p.run.Schedule
	if !known && s.Duration == 0 && prompts.Timed() == 0 {
		return 0, 0, conf.Mistakes{{Text: "nothing says when a load ends: give --requests or --duration"}}
	}
	seconds = s.Duration.Seconds()
	if seconds <= 0 && s.Rate > 0 && s.Kind != schedule.All {
		seconds = float64(requests) / s.Rate
	}
	if requests == 0 && s.Rate > 0 {
		requests = int64(s.Rate * seconds)
	}
	return requests, seconds, nil
}

// A series is plays in one folder, of which those that ended stay: who begins it
// again goes on where it ended. Its plan is a file beside them.
type series struct {
	dir  string
	plan seriesPlan
	held *os.File // keeps other processes out of the folder
}

// seriesFile is the plan of a series in its folder.
const seriesFile = "series.json"

type seriesPlan struct {
	Schema string            `json:"schema"`
	Seed   uint64            `json:"seed"`
	Port   int               `json:"port,omitempty"` // on which servers are started
	Plays  map[string]string `json:"plays"`          // sum of each one's spec, by label
}

const seriesSchema = "fermata.series/1"

// openSeries reads the plan in a folder, or begins one with a seed. Until end the
// folder is this process's alone: another would move the run under way aside.
func openSeries(dir string, seed uint64) (_ *series, err error) {
	s := &series{dir: dir, plan: seriesPlan{Schema: seriesSchema, Seed: seed, Plays: map[string]string{}}}
	if exists(dir) {
		if s.held, err = alone(dir); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				s.end()
			}
		}()
	}
	data, err := os.ReadFile(filepath.Join(dir, seriesFile))
	if errors.Is(err, fs.ErrNotExist) {
		if exists(filepath.Join(dir, "requests.parquet")) || exists(filepath.Join(dir, "journal")) {
			return nil, conf.Mistakes{{File: "--out", Text: dir + " holds a run: give another folder, or leave --out away"}}
		}
		if err := writable(dir); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was measured before: %w", err)
	}
	if err := json.Unmarshal(data, &s.plan); err != nil || s.plan.Schema != seriesSchema || s.plan.Plays == nil {
		return nil, misusef("%s is not what this tool wrote: give another folder with --out", filepath.Join(dir, seriesFile))
	}
	return s, nil
}

// admit takes a play into the plan; one of its label must have been the same.
func (s *series) admit(label string, p *play) error {
	sum := p.sum()
	if before, known := s.plan.Plays[label]; known && before != sum {
		return conf.Mistakes{{File: "--out", Text: fmt.Sprintf("%s was measured in %s under another spec: give another folder, or the spec, flags and seed of before", label, s.dir)}}
	}
	s.plan.Plays[label] = sum
	return nil
}

// end lets other processes into the folder.
func (s *series) end() {
	if s.held != nil {
		s.held.Close()
	}
}

// begin writes the plan down.
func (s *series) begin() (err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the runs: %w", err)
	}
	if s.held == nil {
		if s.held, err = alone(s.dir); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(s.plan, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, seriesFile), append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing down what is measured: %w", err)
	}
	return nil
}

// kept is the result of a play that ended before; nil where it has to be played.
func (s *series) kept(label, version string) *metrics.Result {
	dir := filepath.Join(s.dir, label)
	if !exists(filepath.Join(dir, "result.json")) {
		return nil
	}
	r, err := Judge(dir, nil, version)
	if err != nil || r.Run.Interrupted != "" || penniless(r) {
		return nil
	}
	return r
}

// play plays one, unless it ended before. What is there of one that did not end
// is moved aside: somebody may want to look at it.
func (s *series) play(ctx context.Context, label string, p *play, o Options) (d *Done, kept bool, err error) {
	dir := filepath.Join(s.dir, label)
	if r := s.kept(label, o.Version); r != nil {
		return &Done{Dir: dir, Result: r}, true, nil
	}
	if exists(dir) {
		aside := dir + ".unfinished"
		for n := 2; exists(aside); n++ {
			aside = fmt.Sprintf("%s.unfinished-%d", dir, n)
		}
		if err := os.Rename(dir, aside); err != nil {
			return nil, false, fmt.Errorf("moving an unfinished run aside: %w", err)
		}
		o.Say("%s had not ended; what there is of it is now in %s", label, aside)
	}
	d, err = p.into(ctx, dir, o)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", label, err)
	}
	return d, false, nil
}
