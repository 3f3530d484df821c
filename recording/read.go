package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ErrUnfinished says that a folder holds only the journal of a recording.
type ErrUnfinished struct {
	Dir     string
	Writing bool // its writer lives
}

// Error says what to do about it.
func (e *ErrUnfinished) Error() string {
	if e.Writing {
		return fmt.Sprintf("%s is still being recorded: wait for its end", e.Dir)
	}
	return fmt.Sprintf("%s was not finished, its process died: run \"fermata recover %s\" first", e.Dir, e.Dir)
}

// A Recording is a finished recording, open for reading. It implements Source.
// It is not for several goroutines at once.
type Recording struct {
	path string
	f    *os.File
	file *parquet.File
	meta Meta
	err  error
}

// Open opens the recording of a run folder, or a requests.parquet by itself. A
// folder that was not finished gives an *ErrUnfinished.
func Open(path string) (*Recording, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(path)
	}
	if err != nil {
		return nil, fmt.Errorf("recording: looking at %s: %w", path, err)
	}
	if info.IsDir() {
		if path, err = findRequests(path); err != nil {
			return nil, err
		}
	} else if dir := filepath.Dir(path); filepath.Ext(path) != ".parquet" {
		if _, err := os.Stat(filepath.Join(dir, RequestsFile)); err == nil { // its result.json, say
			return nil, barren(fmt.Sprintf("%s is no recording, but the folder that it is in: name %s", path, dir))
		}
	}
	r := &Recording{path: path}
	if err := r.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("recording: reading %s: %w", path, err), r.Close())
	}
	return r, nil
}

// ErrNone is what errors of Open are that say that there is no recording: nothing
// is at that path, or something else.
var ErrNone = errors.New("no recording")

// missing is the error for a run that is not there; it is ErrNone and fs.ErrNotExist.
type missing string

// Error says what is not there.
func (m missing) Error() string { return "there is no folder or file " + string(m) }

// Is makes it fs.ErrNotExist too.
func (m missing) Is(err error) bool { return err == fs.ErrNotExist || err == ErrNone }

// barren is the error for a folder without a recording; it is ErrNone.
type barren string

// Error says what is there instead.
func (b barren) Error() string { return string(b) }

// Is makes it ErrNone.
func (b barren) Is(err error) bool { return err == ErrNone }

// empty is the error for a folder without a recording. It names the runs that
// the folder holds, since that is what was probably meant.
func empty(dir string) error {
	var runs []string
	for _, name := range []string{RequestsFile, journalFolder} {
		found, err := filepath.Glob(filepath.Join(dir, "*", name))
		if err != nil {
			continue // a folder with wildcards in its name
		}
		for _, f := range found {
			runs = append(runs, filepath.Dir(f))
		}
	}
	if len(runs) == 0 {
		return barren(fmt.Sprintf("%s holds no recording: it has neither %s nor a journal", dir, RequestsFile))
	}
	if len(runs) > 5 {
		runs = append(runs[:5], "…")
	}
	return barren(fmt.Sprintf("%s is no recording, but holds some: name one of %s", dir, strings.Join(runs, ", ")))
}

// findRequests is the path of the requests in a run folder.
func findRequests(dir string) (string, error) {
	path := filepath.Join(dir, RequestsFile)
	_, err := os.Stat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, nil // an error comes back when it is opened
	}
	if _, err := os.Stat(filepath.Join(dir, journalFolder)); err != nil {
		return "", empty(dir)
	}
	lock, err := Lock(dir)
	if err == nil {
		lock.Close()
	}
	return "", &ErrUnfinished{Dir: dir, Writing: errors.Is(err, ErrHeld)}
}

// readBuffer is that of each column: most are short, and the pages of the others go
// past it.
const readBuffer = 4 << 10

func (r *Recording) open() error {
	var err error
	if r.f, err = os.Open(r.path); err != nil {
		return err
	}
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	if err := guarded(func() error {
		r.file, err = parquet.OpenFile(r.f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(readBuffer))
		return err
	}); err != nil {
		return fmt.Errorf("it is no Parquet file, or not a whole one: %w", err)
	}
	for _, name := range []string{"index", "due_ns", "outcome"} {
		if _, ok := r.file.Schema().Lookup(name); !ok {
			return fmt.Errorf("it is no recording of requests: the column %s is missing", name)
		}
	}
	if err := r.checkColumns(); err != nil {
		return err
	}
	r.meta, err = parseMeta(r.file.Lookup)
	return err
}

// checkColumns refuses what would be read wrong without a word: columns of
// another type than ours, and LZ4, which the Parquet library misreads.
func (r *Recording) checkColumns() error {
	for _, leaf := range r.file.Schema().Columns() {
		column, _ := r.file.Schema().Lookup(leaf...)
		kind := column.Node.Type().Kind()
		fits := func(kinds ...parquet.Kind) error {
			if slices.Contains(kinds, kind) {
				return nil
			}
			return fmt.Errorf("its column %s is of type %s, where docs/recording.md has another", strings.Join(leaf, "."), kind)
		}
		var err error
		switch name := leaf[0]; {
		case name == "slow":
			err = fits(parquet.Boolean)
		case name == "notes", scalarTexts[name]:
			err = fits(parquet.ByteArray)
		case scalarFields[name] != nil, listColumns[name]:
			err = fits(parquet.Int32, parquet.Int64)
		}
		if err != nil {
			return err
		}
	}
	for _, group := range r.file.Metadata().RowGroups {
		for _, c := range group.Columns {
			if codec := c.MetaData.Codec; codec == format.Lz4Raw {
				return fmt.Errorf("it is compressed with LZ4, which cannot be read reliably: write it with zstd or snappy")
			}
		}
	}
	return nil
}

// scalarTexts are the flat columns of text.
var scalarTexts = map[string]bool{
	"session": true, "phase": true, "agent": true, "target": true, "outcome": true, "failed_at": true, "error": true,
	"finish_reason": true, "response_id": true, "prompt_tokens_source": true, "output_tokens_source": true,
	"check": true, "check_detail": true, "arrival_tokens_source": true,
}

// listColumns are the lists of whole numbers.
var listColumns = map[string]bool{
	"delta_ns": true, "tokens": true, "read": true, "stamp_error_ns": true, "channel": true, "text_bytes": true,
}

// guarded turns a panic of the Parquet library over a damaged file into an
// error.
func guarded(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errColumn, p)
		}
	}()
	return read()
}

// parseMeta reads the key-value metadata, the inverse of Meta.pairs.
func parseMeta(look func(string) (string, bool)) (Meta, error) {
	get := func(name string) string {
		v, _ := look(name)
		return v
	}
	m := Meta{Schema: get(keySchema), RunYAML: get(keyRun), Tool: get(keyTool), Interrupted: get(keyInterrupted), DataSet: get(keyDataSet), Simulation: get(keySimulation)}
	if family, version, _ := strings.Cut(m.Schema, "/"); m.Schema != "" && family+"/"+version != SchemaName {
		return m, fmt.Errorf("its format is %s, and this fermata reads %s: a newer fermata wrote it", m.Schema, SchemaName)
	}
	if s := get(keyZero); s != "" {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return m, fmt.Errorf("its %s: %w", keyZero, err)
		}
		m.ZeroWallNs = Some(v)
	}
	m.TimeScale = 1
	if s := get(keyScale); s != "" {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0) {
			return m, fmt.Errorf("its %s is %q, not a positive number", keyScale, s)
		}
		m.TimeScale = v
	}
	if s := get(keyLabels); s != "" {
		if err := json.Unmarshal([]byte(s), &m.Labels); err != nil {
			return m, fmt.Errorf("its %s: %w", keyLabels, err)
		}
	}
	if s := get(keyWindow); s != "" {
		var w window
		if err := json.Unmarshal([]byte(s), &w); err != nil {
			return m, fmt.Errorf("its %s: %w", keyWindow, err)
		}
		m.WindowWhy = w.Why
		if w.Start != nil {
			m.WindowStart = Some(*w.Start)
		}
		if w.End != nil {
			m.WindowEnd = Some(*w.End)
		}
	}
	return m, nil
}

// Meta is what the recording says about itself; its time scale is never 0.
func (r *Recording) Meta() Meta { return r.meta }

// Rows is the number of traces: one for each try of each request.
func (r *Recording) Rows() int64 { return r.file.NumRows() }

// Arrivals is the number of arrivals in all traces, as the file says; 0 where it does
// not.
func (r *Recording) Arrivals() int64 {
	v, _ := r.file.Lookup(keyArrivals)
	n, _ := strconv.ParseInt(v, 10, 64)
	return max(n, 0)
}

// Lists says which of the wanted lists the file has. Traces leaves the others
// empty, as a file of another origin may lack them.
func (r *Recording) Lists() Columns {
	var have Columns
	for _, l := range []struct {
		bit   Columns
		names []string
	}{
		{Times, []string{"delta_ns", "tokens"}},
		{Reads, []string{"read"}},
		{Errors, []string{"stamp_error_ns"}},
		{Channels, []string{"channel"}},
		{Bytes, []string{"text_bytes"}},
	} {
		have |= l.bit
		for _, name := range l.names {
			if _, ok := listLeaf(r.file, name); !ok {
				have &^= l.bit
			}
		}
	}
	return have
}

// Samples are the seconds of the instrument, from series.parquet beside the
// requests; none where there is no such file.
func (r *Recording) Samples() ([]Sample, error) {
	path := filepath.Join(filepath.Dir(r.path), SeriesFile)
	var samples []Sample
	err := guarded(func() (err error) {
		samples, err = parquet.ReadFile[Sample](path)
		for i := range samples {
			if err == nil {
				err = samples[i].check()
			}
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recording: reading %s: %w", path, err)
	}
	return samples, nil
}

// Answer is the text of the last try of a request, from text.parquet beside the
// requests; false where it was not kept.
func (r *Recording) Answer(index int64) (text string, ok bool, err error) {
	path := filepath.Join(filepath.Dir(r.path), TextFile)
	err = guarded(func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		rows := parquet.NewGenericReader[textRow](f)
		defer rows.Close()
		some := make([]textRow, 16)
		for {
			n, err := rows.Read(some)
			for _, row := range some[:n] {
				if row.Index == index {
					text, ok = strings.Clone(row.Answer), true
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("recording: reading %s: %w", path, err)
	}
	return text, ok, nil
}

// Close closes the file.
func (r *Recording) Close() error {
	if r.f == nil {
		return nil
	}
	return r.f.Close()
}

// Err is what ended the last loop over Traces early, if not the loop itself.
func (r *Recording) Err() error { return r.err }

// Traces implements Source. Each loop reads the file again; only the wanted
// lists are decoded.
func (r *Recording) Traces(want Columns) iter.Seq[Trace] {
	return func(yield func(Trace) bool) {
		r.err = nil
		if want &= r.Lists(); want&^Times != 0 {
			want |= Times // their length is the measure of the other lists
		}
		rows := make([]Trace, 256)
		buf := make([]parquet.Value, len(rows))
		for i, group := range r.file.RowGroups() {
			more, err := readGroup(r.file, group, want, rows, buf, yield)
			if err != nil {
				r.err = fmt.Errorf("recording: reading %s, row group %d: %w", r.path, i, err)
			}
			if err != nil || !more {
				return
			}
		}
	}
}
