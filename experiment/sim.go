package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
	"fermata/sim"
	"fermata/spec"
)

// Simulate plays the spec in virtual time, writes a run's folder with the truth
// beside the recording, and judges it. The same spec gives the same bytes.
func Simulate(ctx context.Context, s *spec.Sim, o Options) (*Done, error) {
	o.fill()
	v, err := newVirtual(s)
	if err != nil {
		return nil, err
	}
	for _, note := range append(v.prompts.Notes(), givenNotes(s.Run(), v.arrivals)...) {
		o.Say("%s", note)
	}
	dir, err := folder(o.Out, s.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	if o.Live != nil {
		plan := planOf(v.arrivals, s.Schedule.Duration)
		v.live = func(l load.Live) { o.Live(l, plan) }
	}
	again, err := s.YAMLIn(dir)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "run.yaml"), again, 0o644); err != nil {
		return nil, fmt.Errorf("writing the run file: %w", err)
	}
	if err := v.write(ctx, dir, s, o.Version); err != nil {
		return nil, err
	}
	result, err := Judge(dir, nil, o.Version)
	if err != nil {
		return nil, err
	}
	if err := writeResult(dir, result); err != nil {
		return nil, err
	}
	return &Done{Dir: dir, Result: result}, nil
}

// write plays the load into the files of a run.
func (v *virtual) write(ctx context.Context, dir string, s *spec.Sim, version string) error {
	truth, err := sim.CreateTruth(dir)
	if err != nil {
		return err
	}
	v.engine.Observe(sim.Observer{Ended: v.ended, Iteration: truth.Iteration})
	path := filepath.Join(dir, recording.RequestsFile)
	var failed error
	err = recording.WriteTraces(path, v.traces(ctx, s, &failed, truth.Record), func() recording.Meta {
		return v.meta(s, version)
	})
	if failed != nil {
		return errors.Join(failed, truth.Drop(), os.Remove(path), os.Remove(filepath.Join(dir, "run.yaml")))
	}
	if err != nil {
		return errors.Join(err, truth.Drop())
	}
	return truth.Close()
}

// traces are the records as a recording has them; see is shown each before.
func (v *virtual) traces(ctx context.Context, s *spec.Sim, failed *error, see func(*sim.Record)) func(func(recording.Trace) bool) {
	packing := ""
	if s.Speculation != nil {
		packing = s.Speculation.Packing
	}
	return func(yield func(recording.Trace) bool) {
		for r, err := range v.records(ctx) {
			if *failed = err; err != nil {
				return
			}
			if g, ok := r.Longest(); ok && (v.longest == nil || g.Ns > v.longest.Ns) {
				v.longest = &metrics.SimulatedGap{
					Index: g.Index, Token: g.Token, Ns: g.Ns, PrefillNs: g.PrefillNs,
					PrefillIterations: g.PrefillIterations, Prompts: distinct(g.Culprits),
				}
			}
			if see != nil {
				see(r)
			}
			if !yield(r.Trace(packing)) {
				return
			}
		}
	}
}

// meta is what the recording says about itself, once it is over.
func (v *virtual) meta(s *spec.Sim, version string) recording.Meta {
	m := recording.Meta{RunYAML: string(s.YAML()), Tool: "fermata " + version, TimeScale: 1, Labels: s.Labels}
	start, end, why := v.window()
	m.WindowStart, m.WindowEnd, m.WindowWhy = recording.Some(start), recording.Some(end), why
	b, err := json.Marshal(v.simulation(s))
	if err == nil { // numbers and a text always have JSON
		m.Simulation = string(b)
	}
	return m
}

// simulation sums up what the system did.
func (v *virtual) simulation(s *spec.Sim) *metrics.Simulation {
	all := v.engine.Usage()
	m := &metrics.Simulation{System: s.System(), LongestGap: v.longest}
	var busy, prefill, mixed, room int64
	held := 0.0
	for _, u := range all {
		m.EndNs = max(m.EndNs, u.EndNs)
		m.Iterations += u.Iterations
		m.Evictions += u.Evictions
		m.Recomputed += u.Recomputed
		busy, prefill, mixed = busy+u.BusyNs, prefill+u.PrefillNs, mixed+u.MixedNs
		held += u.BlockNs
		room += int64(u.Blocks) * u.BusyNs
	}
	if whole := float64(m.EndNs) * float64(len(all)); whole > 0 {
		m.BusyShare, m.PrefillShare, m.MixedShare = float64(busy)/whole, float64(prefill)/whole, float64(mixed)/whole
	}
	if room > 0 {
		share := held / float64(room)
		m.MemoryShare = &share
	}
	return m
}

// simulationOf is what a recording says of its simulated system; nil without one.
func simulationOf(m recording.Meta) (*metrics.Simulation, error) {
	if m.Simulation == "" {
		return nil, nil
	}
	s := &metrics.Simulation{}
	if err := json.Unmarshal([]byte(m.Simulation), s); err != nil {
		return nil, fmt.Errorf("reading what it says of the simulation: %w", err)
	}
	return s, nil
}

func distinct(all []int64) int {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}
