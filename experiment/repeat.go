package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fermata/spec"
)

// sideFolders are what the folders of two systems' runs are called.
var sideFolders = []string{"a", "b"}

// A Repeat is runs of one load, again and again with other seeds: on one system, or
// on two in turns.
type Repeat struct {
	Systems []*spec.Run // one or two
	Times   int         // of each
}

// Repeated is what came of a Repeat.
type Repeated struct {
	Dir  string
	Runs [][]*Done // of each system, in order of their seeds
	Cut  *Done     // the last one, where it was interrupted or stopped by its failures
}

// Run makes the runs, each in a folder of its own: DIR/01 and so on for one system,
// DIR/a/01 and DIR/b/01 for two. Two systems take turns as ABBA, so that what drifts
// slowly hits both alike; both get the same seed in each pair, which is one more
// than that of the pair before. A run that is interrupted, or stopped by its
// failures, is the last.
func (r Repeat) Run(ctx context.Context, o Options) (*Repeated, error) {
	if len(r.Systems) < 1 || len(r.Systems) > len(sideFolders) || r.Times < 1 {
		return nil, errors.New("repeating a run: it takes one system or two, and at least one run")
	}
	o.fill()
	dir, err := folder(o.Out, r.Systems[0].Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the runs: %w", err)
	}
	out := &Repeated{Dir: dir, Runs: make([][]*Done, len(r.Systems))}
	seed, all := r.Systems[0].Seed, r.Times*len(r.Systems)
	for i := range all {
		pair, side := turn(i, len(r.Systems))
		one := *r.Systems[side]
		one.Seed = seed + uint64(pair)
		at := o
		at.Out = filepath.Join(dir, fmt.Sprintf("%02d", pair+1))
		name := one.PublicURL()
		if len(r.Systems) > 1 {
			at.Out = filepath.Join(dir, sideFolders[side], filepath.Base(at.Out))
			name = sideFolders[side] + " " + name
		}
		o.Step("run %d of %d: %s, seed %d", i+1, all, name, one.Seed)
		done, err := Run(ctx, &one, at)
		if err != nil {
			if i > 0 {
				o.Say("the runs before are kept in %s", dir)
			}
			return nil, fmt.Errorf("run %d of %d: %w", i+1, all, err)
		}
		out.Runs[side] = append(out.Runs[side], done)
		if done.End.Interrupted != "" {
			out.Cut = done
			break
		}
	}
	return out, nil
}

// turn is whose i-th run it is, and of which pair: A, B, B, A, A, B, B, A …
func turn(i, systems int) (pair, side int) {
	pair, side = i/systems, i%systems
	if pair%2 == 1 {
		side = systems - 1 - side
	}
	return pair, side
}
