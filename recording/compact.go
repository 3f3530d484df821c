package recording

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
)

const (
	workFolder    = "compact"         // in the journal's folder, while compacting
	damagedFolder = "journal.damaged" // what a damaged journal is kept as
)

// A Report says what a recording came to when its journal was made into files.
type Report struct {
	Finished   bool     // there was nothing to do
	Requests   int64    // rows, one for each try of each request
	Incomplete int64    // of them, those without an end
	Arrivals   int64    // in all rows
	Torn       int64    // bytes after the last good frame: what the dying process was writing
	Damages    []Damage // places before that where frames were lost
	Orphans    int64    // requests whose begin and end were both lost
	Kept       string   // where a damaged journal was kept; empty otherwise
}

// damage is an error if frames were lost.
func (r Report) damage() error {
	if len(r.Damages) == 0 {
		return nil
	}
	places := make([]string, len(r.Damages))
	for i, d := range r.Damages {
		places[i] = d.String()
	}
	return fmt.Errorf("recording: the journal was damaged while it was written, and is kept in %s: %s", r.Kept, strings.Join(places, "; "))
}

// compactOptions say what a compaction must find.
type compactOptions struct {
	counted            bool // the recorder lives and has counted
	requests, arrivals int64
	memory             int // bytes that sorting may take; 0 means sortMemory
}

// A compaction turns the journal of a run folder into its files. The journal
// goes last, and requests.parquet appears just before, so that a death at any
// moment leaves either a journal to start again from or a finished recording.
type compaction struct {
	dir, journal, work string
	died               bool // the recorder did not finish it itself
	stitch             *stitcher
	requests, texts    *sorter
	series             *parquetFile[Sample]
	samples            int64
	textRows           int64
	seed               maphash.Seed
	digest             uint64 // sum over the traces, so that order does not matter
}

func compact(dir string, o compactOptions) (Report, error) {
	report, err := compactFolder(dir, o)
	if err != nil {
		return report, fmt.Errorf("recording: finishing %s (its journal is still there: \"fermata recover %s\" tries again): %w", dir, dir, err)
	}
	return report, nil
}

func compactFolder(dir string, o compactOptions) (report Report, err error) {
	journal := filepath.Join(dir, journalFolder)
	c := &compaction{dir: dir, died: !o.counted, journal: journal, work: filepath.Join(journal, workFolder), seed: maphash.MakeSeed()}
	if err := errors.Join(os.RemoveAll(c.work), os.Mkdir(c.work, 0o777)); err != nil {
		return report, err
	}
	defer func() {
		// The journal's folder may be gone by now, and that is well.
		err = errors.Join(err, os.RemoveAll(c.work))
	}()
	if o.memory == 0 {
		o.memory = sortMemory
	}
	found, err := c.read(o.memory)
	if err != nil {
		return report, err
	}
	s := c.stitch
	report = Report{
		Requests: s.requests, Incomplete: s.incomplete, Arrivals: s.arrivals,
		Torn: found.torn, Damages: found.damages, Orphans: s.orphans,
	}
	if o.counted && (s.requests != o.requests || s.events != o.arrivals) && len(found.damages) == 0 {
		return report, fmt.Errorf("the journal holds %d requests and %d arrivals, and %d and %d were recorded",
			s.requests, s.events, o.requests, o.arrivals)
	}
	if err := c.write(); err != nil {
		return report, err
	}
	if err := c.verify(); err != nil {
		return report, err
	}
	if err := c.publish(); err != nil {
		return report, err
	}
	if len(found.damages) > 0 {
		report.Kept = filepath.Join(dir, damagedFolder)
		return report, errors.Join(os.RemoveAll(c.work), os.Rename(journal, report.Kept))
	}
	return report, os.RemoveAll(journal)
}

// read replays the journal into the sorters and the series.
func (c *compaction) read(memory int) (replayed, error) {
	c.requests = newSorter(c.work, "requests", memory)
	c.texts = newSorter(c.work, "texts", memory)
	c.stitch = newStitcher(c.keep)
	c.stitch.sample = c.keepSample
	c.stitch.text = func(k key, fields []byte) error {
		c.textRows++
		return c.texts.add(order{0, k.index, k.try}, func(b []byte) []byte { return append(b, fields...) })
	}
	found, err := replay(c.journal, c.stitch.add, c.stitch.lost)
	if err == nil {
		err = c.stitch.rest()
	}
	if c.series != nil {
		err = errors.Join(err, c.series.close())
	}
	return found, err
}

func (c *compaction) keep(t *Trace) error {
	makeValid(t)
	return c.requests.add(order{t.Due, t.Index, t.Try}, func(b []byte) []byte {
		b = appendTrace(b, t)
		c.digest += maphash.Bytes(c.seed, b)
		return b
	})
}

func (c *compaction) keepSample(s Sample) (err error) {
	if c.series == nil {
		if c.series, err = createParquet[Sample](filepath.Join(c.work, SeriesFile), groupRows, seriesPage); err != nil {
			return err
		}
	}
	c.samples++
	return c.series.write(&s)
}

// write makes requests.parquet and text.parquet from what was sorted.
func (c *compaction) write() error {
	w, err := createRequests(filepath.Join(c.work, RequestsFile))
	if err != nil {
		return err
	}
	var t Trace
	err = c.requests.each(func(b []byte) error {
		in := cursor{b: b}
		if err := in.trace(&t); err != nil {
			return err
		}
		return w.add(&t)
	})
	if err != nil {
		return errors.Join(err, w.drop())
	}
	if err := w.finish(c.meta()); err != nil || c.textRows == 0 {
		return err
	}
	texts, err := createParquet[textRow](filepath.Join(c.work, TextFile), groupRows, pageSize)
	if err != nil {
		return err
	}
	err = c.texts.each(func(b []byte) error {
		in := cursor{b: b}
		k := in.key()
		row := textRow{Index: k.index, Try: k.try, Prompt: validText(in.bytes()), Answer: validText(in.bytes()), Reasoning: validText(in.bytes())}
		if in.bad {
			return errPayload
		}
		return texts.write(&row)
	})
	return errors.Join(err, texts.close())
}

// meta is what the run said last. A run whose process died never said that it
// was interrupted.
func (c *compaction) meta() Meta {
	m := c.stitch.meta
	if c.died && m.Interrupted == "" && (c.stitch.incomplete > 0 || !m.WindowEnd.OK) {
		m.Interrupted = "the process that recorded it died"
	}
	return m
}

func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// verify reads the files back and compares them with the journal.
func (c *compaction) verify() error {
	r := &Recording{path: filepath.Join(c.work, RequestsFile)}
	if err := r.open(); err != nil {
		return errors.Join(err, r.Close())
	}
	var rows, arrivals int64
	var digest uint64
	var b []byte
	var t Trace // one for all: a pointer to it is kept while it is written
	for t = range r.Traces(AllColumns) {
		rows, arrivals = rows+1, arrivals+int64(t.Len())
		b = appendTrace(b[:0], &t)
		digest += maphash.Bytes(c.seed, b)
	}
	if err := errors.Join(r.Err(), r.Close()); err != nil {
		return err
	}
	if rows != c.stitch.requests || arrivals != c.stitch.arrivals || digest != c.digest {
		return fmt.Errorf("what was written differs from the journal: %d rows of %d, %d arrivals of %d", rows, c.stitch.requests, arrivals, c.stitch.arrivals)
	}
	return errors.Join(c.verifyRows(SeriesFile, c.samples), c.verifyRows(TextFile, c.textRows))
}

func (c *compaction) verifyRows(name string, rows int64) error {
	if rows == 0 {
		return nil
	}
	f, err := os.Open(filepath.Join(c.work, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return fmt.Errorf("reading %s back: %w", name, err)
	}
	if p.NumRows() != rows {
		return fmt.Errorf("%s has %d rows of %d", name, p.NumRows(), rows)
	}
	return nil
}

// publish moves the files to their names, requests.parquet last.
func (c *compaction) publish() error {
	for _, name := range []string{SeriesFile, TextFile, RequestsFile} {
		err := os.Rename(filepath.Join(c.work, name), filepath.Join(c.dir, name))
		if err != nil && (name == RequestsFile || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return syncFolder(c.dir)
}

// Recover finishes a recording whose process died: everything that the recorder
// had acknowledged is in the files afterwards. It refuses while the writer lives,
// and on a finished recording there is nothing to do.
func Recover(dir string) (Report, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return Report{}, missing(dir)
	} else if err != nil {
		return Report{}, fmt.Errorf("recording: recovering: %w", err)
	}
	lock, err := Lock(dir)
	if errors.Is(err, ErrHeld) {
		return Report{}, &ErrUnfinished{Dir: dir, Writing: true}
	}
	if err != nil {
		return Report{}, fmt.Errorf("recording: locking %s: %w", dir, err)
	}
	report, err := recoverFolder(dir)
	return report, errors.Join(err, lock.Close())
}

func recoverFolder(dir string) (Report, error) {
	journal := filepath.Join(dir, journalFolder)
	_, err := os.Stat(journal)
	hasJournal := err == nil
	if _, err := os.Stat(filepath.Join(dir, RequestsFile)); err == nil {
		// It appears only when it is whole and verified; if the process died
		// after that, all that is left to do is to remove the journal.
		r, err := Open(dir)
		if err == nil {
			report := Report{Finished: true, Requests: r.Rows()}
			if err := r.Close(); err != nil {
				return report, fmt.Errorf("recording: closing %s: %w", r.path, err)
			}
			if err := os.RemoveAll(journal); err != nil {
				return report, fmt.Errorf("recording: removing the journal of a finished recording: %w", err)
			}
			return report, nil
		}
		if !hasJournal {
			return Report{}, err
		}
	}
	if !hasJournal {
		return Report{}, empty(dir)
	}
	return compact(dir, compactOptions{})
}
