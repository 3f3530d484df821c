package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journalOptions are what tests change about a journal.
type journalOptions struct {
	size   int                             // the most of a segment
	write  bool                            // never map
	run    [16]byte                        // id of the run
	clocks func() (wall int64, mono int64) // read together
}

// A journal appends frames to segments. Its methods want the recorder's lock,
// which also guards the fields, except where they say otherwise.
type journal struct {
	dir     string
	options journalOptions
	cur     *segment
	number  int        // of cur
	full    []*segment // those that the syncer shall finish
	err     error      // the first failure: nothing can be appended after it

	mu    *sync.Mutex // the recorder's
	spare chan made   // the next segment, made ahead
	stop  chan struct{}
	work  sync.WaitGroup
}

// A made is what the maker has: a segment, or why there is none.
type made struct {
	s   *segment
	err error
}

// syncEvery bounds what a death of the machine, not of the process, can lose.
const syncEvery = time.Second

func newJournal(dir string, mu *sync.Mutex, o journalOptions) (*journal, error) {
	j := &journal{dir: dir, options: o, mu: mu, spare: make(chan made), stop: make(chan struct{})}
	s, err := j.make(0, j.size(0))
	if err != nil {
		return nil, j.explain(err)
	}
	j.cur = s
	j.work.Go(j.makeAhead)
	j.work.Go(j.syncAlways)
	return j, nil
}

// size is that of an ordinary segment. The pages of the one in use and of the next
// are in memory, so a run that records little maps little, and one that records much
// seldom makes another.
func (j *journal) size(number int) int { return min((1+number/4)*segmentStep, j.options.size) }

// make needs no lock.
func (j *journal) make(number, size int) (*segment, error) {
	wall, mono := j.options.clocks()
	h := segmentHeader{Number: number, Run: j.options.run, Wall: wall, Mono: mono}
	s, err := makeSegment(j.dir, h, size, !j.options.write)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(j.dir); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

// makeAhead always has the next segment ready, so that no append waits for it.
func (j *journal) makeAhead() {
	for number := 1; ; number++ {
		s, err := j.make(number, j.size(number))
		select {
		case j.spare <- made{s, err}:
		case <-j.stop:
			if s != nil {
				_ = s.discard() // an empty segment does no harm either
			}
			return
		}
	}
}

// syncAlways brings the journal to the disk once a second and finishes full
// segments.
func (j *journal) syncAlways() {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.sync()
		case <-j.stop:
			return
		}
	}
}

// sync takes the lock only to see what there is. Only it and close, which comes
// after it, let go of segments, so that cur stays mapped meanwhile. That cur cannot
// be synced is no error: what reached the kernel is safe from the death of the
// process, and a machine that stays alive is asked again a second later.
func (j *journal) sync() {
	j.mu.Lock()
	full, cur := j.full, j.cur
	j.full = nil
	used := cur.off
	j.mu.Unlock()
	for _, s := range full {
		if err := errors.Join(s.sync(s.off), s.finish()); err != nil {
			j.mu.Lock()
			j.err = errors.Join(j.err, fmt.Errorf("recording: finishing a segment of the journal: %w", err))
			j.mu.Unlock()
		}
	}
	_ = cur.sync(used)
}

// append puts a payload into the journal. When it returns without an error the
// frame survives the death of the process.
func (j *journal) append(payload []byte) error {
	if j.err != nil {
		return j.err
	}
	if n := frameSize(len(payload)); !j.cur.room(n) {
		if j.err = j.next(n); j.err != nil {
			return j.err
		}
	}
	if err := j.cur.append(payload); err != nil {
		j.err = j.explain(err)
	}
	return j.err
}

// next goes on to the next segment, which has room for a frame of n bytes.
func (j *journal) next(n int) error {
	spare := <-j.spare
	number := j.number + 1
	size := max(j.size(number), headerSize+n+nextFrameSize)
	if spare.err == nil && spare.s.size < size {
		spare.err = spare.s.discard()
		spare.s = nil
	}
	s := spare.s
	if s == nil {
		// Too small for this frame, or the disk was full when it was made: it
		// may have room now.
		var err error
		if s, err = j.make(number, size); err != nil {
			return j.explain(err)
		}
	}
	if err := j.cur.append([]byte{kindNext}); err != nil {
		return j.explain(errors.Join(err, s.discard()))
	}
	j.full = append(j.full, j.cur)
	j.cur, j.number = s, number
	return nil
}

func (j *journal) explain(err error) error {
	if diskFull(err) {
		return fmt.Errorf("recording: the disk is full: no room for the journal in %s; what was recorded before is safe: %w", j.dir, err)
	}
	return fmt.Errorf("recording: writing the journal in %s: %w", j.dir, err)
}

// close finishes all segments. It takes no lock: nothing is appended any more.
func (j *journal) close() error {
	close(j.stop)
	j.work.Wait()
	var err error
	for _, s := range append(j.full, j.cur) {
		err = errors.Join(err, s.finish())
	}
	j.full = nil
	if err != nil {
		return fmt.Errorf("recording: finishing the journal: %w", err)
	}
	return nil
}

// syncFolder makes the names in a folder last.
func syncFolder(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
