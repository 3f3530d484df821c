package workload

import (
	"bufio"
	"bytes"
	"os"
	"slices"
)

// A TraceRow is one request of a published trace: when, and how long.
type TraceRow struct {
	DueNs        int64 // from the trace's beginning, see Workload.Times
	PromptTokens int32
	OutputTokens int32
}

// traceShapes are the published formats whose rows have times.
var traceShapes = []string{azure, burstGPT, mooncake}

// A Trace is a published trace's arrivals and lengths, in order of time, in a few
// bytes a row. ReadTrace makes one.
type Trace struct{ d *dataset }

// ReadTrace reads a published trace (Azure's, BurstGPT's, Mooncake's) for its
// arrivals and lengths alone; rows of requests that failed are
// left out. It returns nil for files of other formats, and for those that cannot be
// opened: they are somebody else's to read.
func ReadTrace(name string) (*Trace, error) {
	if !isTrace(name) {
		return nil, nil
	}
	d, err := openDataset(Options{Dataset: name})
	if err != nil {
		return nil, err
	}
	d.places = places{} // no row is read again
	return &Trace{d}, d.file.Close()
}

// Len is how many rows there are.
func (t *Trace) Len() int { return t.d.rows() }

// Failed is how many rows are of requests that failed, and are left out.
func (t *Trace) Failed() int64 { return t.d.skips.Empty }

// Rows gives row i, from 0; the function is for one goroutine.
func (t *Trace) Rows() func(i int) TraceRow {
	due, length := t.d.times(), t.d.lengths.reader()
	return func(i int) TraceRow {
		p := length(t.d.row(i))
		return TraceRow{due(i), p.input, p.output}
	}
}

// isTrace knows a published trace by its first line.
func isTrace(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 1<<20).ReadSlice('\n')
	if err != nil && len(line) == 0 {
		return false
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	if bytes.HasPrefix(line, []byte("{")) {
		return objectShape(line) == mooncake
	}
	columns, err := csvHeader(line)
	return err == nil && slices.Contains(traceShapes, columns.shape.name)
}
