package workload

import (
	"bufio"
	"bytes"
	"os"
	"slices"
)

// A TraceRow is one request of a published trace: when, and how long.
type TraceRow struct {
	DueNs        int64 // from the trace's beginning, see Workload.Time
	PromptTokens int32
	OutputTokens int32
}

// traceShapes are the published formats whose rows have times.
var traceShapes = []string{azure, burstGPT, mooncake}

// ReadTrace reads a published trace (Azure's, BurstGPT's, Mooncake's) for its
// arrivals and lengths alone, in order of time; rows of requests that failed are
// left out. It returns nil for files of other formats, and for those that cannot be
// opened: they are somebody else's to read.
func ReadTrace(name string) ([]TraceRow, error) {
	if !isTrace(name) {
		return nil, nil
	}
	d, err := openDataset(Options{Dataset: name})
	if err != nil {
		return nil, err
	}
	defer d.file.Close()
	rows := make([]TraceRow, d.rows())
	for i := range rows {
		p := d.lengths.at(d.row(i))
		rows[i] = TraceRow{d.time(i), p.input, p.output}
	}
	return rows, nil
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
