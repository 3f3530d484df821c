package recording

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The names of a run folder.
const (
	journalFolder = "journal"
	RequestsFile  = "requests.parquet" // one row a request
	SeriesFile    = "series.parquet"   // one row a second
	TextFile      = "text.parquet"     // prompts and answers, if they were kept
)

// SchemaName is the version of the format of a recording.
const SchemaName = "fermata.recording/1"

// A Recorder writes a recording while the run goes on. What its methods took
// without an error survives the death of the process: Recover finishes it. They
// may be called from any number of goroutines; calls for one request come in
// the order of its life.
type Recorder struct {
	dir  string
	lock *os.File

	mu        sync.Mutex
	journal   *journal // nil once closed or abandoned
	scratch   []byte
	beginning Trace // that is written
	open      flights[progress]
	free      []*progress // for the next requests
	begun     int64
	arrivals  int64
}

// Create starts a recording in a folder, which is made if need be and must not
// hold one already. The folder stays locked until Close or Abandon.
func Create(dir string, meta Meta) (*Recorder, error) {
	var run [16]byte
	if _, err := rand.Read(run[:]); err != nil {
		return nil, fmt.Errorf("recording: choosing the id of the run: %w", err)
	}
	// The header of a segment ties the monotonic clock to the wall clock; no
	// clock of the run reaches this far down.
	start := time.Now()
	return create(dir, meta, journalOptions{size: segmentSize, run: run, clocks: func() (int64, int64) {
		now := time.Now()
		return now.UnixNano(), int64(now.Sub(start))
	}})
}

func create(dir string, meta Meta, o journalOptions) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("recording: making the folder of the run: %w", err)
	}
	lock, err := Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("recording: locking %s: %w", dir, err)
	}
	for _, name := range []string{RequestsFile, journalFolder} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			lock.Close()
			return nil, fmt.Errorf("recording: %s already holds a recording (%s): choose another folder", dir, name)
		}
	}
	r := &Recorder{dir: dir, lock: lock}
	journalDir := filepath.Join(dir, journalFolder)
	if err = os.Mkdir(journalDir, 0o777); err != nil {
		err = fmt.Errorf("recording: making the folder of the journal: %w", err)
	} else if r.journal, err = newJournal(journalDir, &r.mu, o); err == nil {
		err = r.SetMeta(meta)
	}
	if err != nil {
		if r.journal != nil {
			err = errors.Join(err, r.journal.close())
		}
		return nil, errors.Join(err, os.RemoveAll(journalDir), lock.Close())
	}
	return r, nil
}

var errClosed = errors.New("recording: the recorder is closed")

// append journals the payload that fill writes. It is for the rarer frames.
func (r *Recorder) append(fill func(b []byte) ([]byte, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appendLocked(fill)
}

func (r *Recorder) appendLocked(fill func(b []byte) ([]byte, error)) error {
	if r.journal == nil {
		return errClosed
	}
	b, err := fill(r.scratch[:0])
	if err != nil {
		return err
	}
	r.scratch = b
	return r.journal.append(b)
}

func (r *Recorder) inFlight(k key) (*progress, error) {
	p := r.open.at(k)
	if p == nil {
		return nil, fmt.Errorf("recording: request %d, try %d is not in flight: it was not begun, or has ended", k.index, k.try)
	}
	return p, nil
}

// Begin records that a request has become due: its place in the run and the
// counts that were intended.
func (r *Recorder) Begin(t *Trace) error {
	k := key{t.Index, t.Try}
	if k.index < 0 || k.try < 0 {
		return fmt.Errorf("recording: request %d, try %d: neither may be negative", k.index, k.try)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginning = Trace{ // there is but one: a trace is large
		Index: t.Index, Try: t.Try, Session: t.Session, Turn: t.Turn, Phase: t.Phase, Agent: t.Agent,
		Target: t.Target, Due: t.Due, Prompt: Count{Intended: t.Prompt.Intended}, Output: Count{Intended: t.Output.Intended},
	}
	if r.open.at(k) != nil {
		return fmt.Errorf("recording: request %d, try %d was begun twice", k.index, k.try)
	}
	err := r.appendLocked(func(b []byte) ([]byte, error) { return appendScalars(append(b, kindBegin), &r.beginning), nil })
	if err == nil {
		r.open.put(k, r.newProgress(t.Due))
		r.begun++
	}
	return err
}

func (r *Recorder) newProgress(due int64) *progress {
	p := new(progress)
	if n := len(r.free); n > 0 {
		p, r.free = r.free[n-1], r.free[:n-1]
	}
	*p = progress{last: due}
	return p
}

// Sent records that the last byte of a request left at, and when its connection
// stood if a new one was made.
func (r *Recorder) Sent(index int64, try int32, at int64, connected Maybe[int64]) error {
	k := key{index, try}
	return r.append(func(b []byte) ([]byte, error) {
		if _, err := r.inFlight(k); err != nil {
			return nil, err
		}
		return appendMaybe(appendInt(appendKey(append(b, kindSent), k), at), connected), nil
	})
}

// FirstByte records when the first byte of the response came.
func (r *Recorder) FirstByte(index int64, try int32, at int64) error {
	k := key{index, try}
	return r.append(func(b []byte) ([]byte, error) {
		if _, err := r.inFlight(k); err != nil {
			return nil, err
		}
		return appendInt(appendKey(append(b, kindFirstByte), k), at), nil
	})
}

// Arrive records one arrival. It allocates nothing.
func (r *Recorder) Arrive(index int64, try int32, a Arrival) error {
	k := key{index, try}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.journal == nil {
		return errClosed
	}
	p, err := r.inFlight(k)
	if err != nil {
		return err
	}
	r.scratch = p.appendArrival(r.scratch[:0], k, &a)
	if err := r.journal.append(r.scratch); err != nil {
		return err
	}
	p.took(&a)
	r.arrivals++
	return nil
}

// End records the whole of a request: what its scalars came to, and the settled
// arrivals, of which only the difference to what Arrive took is written.
func (r *Recorder) End(t *Trace) error {
	if err := checkLists(t); err != nil {
		return err
	}
	k := key{t.Index, t.Try}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.inFlight(k)
	if err != nil {
		return err
	}
	err = r.appendLocked(func(b []byte) ([]byte, error) {
		return p.appendSettled(appendScalars(append(b, kindEnd), t), t), nil
	})
	if err == nil {
		r.open.remove(k)
		r.free = append(r.free, p)
	}
	return err
}

// checkLists says whether the lists of a trace have one length.
func checkLists(t *Trace) error {
	n := t.Len()
	for _, m := range []int{len(t.Tokens), len(t.Read), len(t.StampErrorNs), len(t.Channel), len(t.TextBytes)} {
		if m != n {
			return fmt.Errorf("recording: request %d, try %d: its lists of arrivals differ in length (%d and %d)", t.Index, t.Try, n, m)
		}
	}
	return nil
}

// Text keeps the texts of a request, for runs that were asked to.
func (r *Recorder) Text(index int64, try int32, prompt, answer, reasoning string) error {
	return r.append(func(b []byte) ([]byte, error) {
		b = appendKey(append(b, kindText), key{index, try})
		return appendString(appendString(appendString(b, prompt), answer), reasoning), nil
	})
}

// Sample records the state of the instrument.
func (r *Recorder) Sample(s Sample) error {
	return r.append(func(b []byte) ([]byte, error) { return appendSample(append(b, kindSample), &s), nil })
}

// SetMeta replaces what the recording says about itself: a window that is known
// by now, why the run was interrupted.
func (r *Recorder) SetMeta(m Meta) error {
	return r.append(func(b []byte) ([]byte, error) { return appendMeta(append(b, kindMeta), &m), nil })
}

// take ends the use of the journal and hands it over.
func (r *Recorder) take() *journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.journal
	r.journal = nil
	return j
}

// Close ends the recording: the journal becomes requests.parquet, with
// series.parquet and text.parquet where there is something in them, and goes
// away once the files have been read back and agree with it. If it fails, the
// journal stays and Recover can try again.
func (r *Recorder) Close() error {
	j := r.take()
	if j == nil {
		return errClosed
	}
	err := j.close()
	if err == nil {
		var report Report
		if report, err = compact(r.dir, compactOptions{requests: r.begun, arrivals: r.arrivals, counted: true}); err == nil {
			err = report.damage()
		}
	}
	return errors.Join(err, r.lock.Close())
}

// Abandon lets go of the recording and leaves the journal as it is, as a crash
// would. After Close it does nothing.
func (r *Recorder) Abandon() error {
	j := r.take()
	if j == nil {
		return nil
	}
	return errors.Join(j.close(), r.lock.Close())
}
