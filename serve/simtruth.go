package serve

import (
	"fmt"
	"slices"
	"sync"

	"fermata/sim"
)

// A simTruth writes the parquet files of the truth on a goroutine of its own, so
// that the system never waits for a disk.
type simTruth struct {
	files *sim.Truth
	done  chan struct{}
	wake  sync.Cond
	mu    sync.Mutex
	ended bool
	// What waits to be written.
	records    []*sim.Record
	iterations []*sim.Iteration
}

func newSimTruth(dir string) (*simTruth, error) {
	files, err := sim.CreateTruth(dir)
	if err != nil {
		return nil, err
	}
	t := &simTruth{files: files, done: make(chan struct{})}
	t.wake.L = &t.mu
	go t.write()
	return t, nil
}

func (t *simTruth) record(r *sim.Record) {
	c := r.Clone()
	t.mu.Lock()
	t.records = append(t.records, c)
	t.mu.Unlock()
	t.wake.Signal()
}

func (t *simTruth) iteration(it *sim.Iteration) {
	c := *it
	c.Chunks = slices.Clone(it.Chunks)
	t.mu.Lock()
	t.iterations = append(t.iterations, &c)
	t.mu.Unlock()
	t.wake.Signal()
}

func (t *simTruth) write() {
	defer close(t.done)
	for {
		t.mu.Lock()
		for len(t.records)+len(t.iterations) == 0 && !t.ended {
			t.wake.Wait()
		}
		records, iterations, ended := t.records, t.iterations, t.ended
		t.records, t.iterations = nil, nil
		t.mu.Unlock()
		for _, it := range iterations {
			t.files.Iteration(it)
		}
		for _, r := range records {
			t.files.Record(r)
		}
		if ended && len(records)+len(iterations) == 0 {
			return
		}
	}
}

// close writes the rest and completes the files.
func (t *simTruth) close() error {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wake.Signal()
	<-t.done
	if err := t.files.Close(); err != nil {
		return fmt.Errorf("writing the truth: %w", err)
	}
	return nil
}
