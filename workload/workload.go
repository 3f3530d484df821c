package workload

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"fermata/internal/conf"
)

const (
	defaultInput  = 512
	defaultOutput = 128
	inputMax      = 16 << 20 // tokens; a slip of the pen above
)

// Filled is o with its defaults written out.
func (o Options) Filled() Options {
	if o.Dataset == "" {
		if o.Input == 0 {
			o.Input = defaultInput
		}
		if o.Output == 0 {
			o.Output = defaultOutput
		}
	}
	return o
}

// Check finds everything that is wrong with o, without opening its data set.
func (o *Options) Check() []conf.Problem {
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case o.Input < 0 || o.Input > inputMax:
		wrong("input", "must be between 1 and %d tokens, not %d", inputMax, o.Input)
	case o.Input > 0 && o.Dataset != "":
		wrong("input", "cannot be given beside dataset: its prompts have their own lengths")
	}
	if o.Output < 0 || o.Output > inputMax {
		wrong("output", "must be between 1 and %d tokens, not %d", inputMax, o.Output)
	}
	if o.Once && o.Dataset == "" {
		wrong("once", "is for data sets: synthetic prompts never end")
	}
	return found
}

// A Workload gives requests by their index. At and Rounds may be called from
// many goroutines at once. Open makes one.
type Workload struct {
	output    int32
	once      bool
	synthetic *synthetic   // of a data set, only for probes
	rows      []row        // of a data set; nil for synthetic prompts
	asked     atomic.Int64 // 1 + the highest index asked for
}

// Open makes the workload that o describes and reads its data set, which is
// held in memory. The same options and seed give the same requests; the seed
// is that of the run, from which Open derives its own.
func Open(o Options, runSeed uint64) (*Workload, error) {
	var lines []string
	for _, p := range o.Check() {
		lines = append(lines, p.Path+": "+p.Text)
	}
	if lines != nil {
		return nil, errors.New("making a workload: " + strings.Join(lines, "; "))
	}
	o = o.Filled()
	w := &Workload{output: int32(o.Output), once: o.Once, synthetic: newSynthetic(int32(o.Input), runSeed)}
	if o.Dataset == "" {
		return w, nil
	}
	rows, err := readFile(o.Dataset)
	if err != nil {
		return nil, fmt.Errorf("reading the data set: %w", err)
	}
	w.rows = rows
	return w, nil
}

// At is request number index, from 0: the same whenever it is asked for, in
// whatever order. Lengths above 0, such as those of a schedule file, replace
// the workload's own; those of the prompts of a data set cannot change, so
// there promptTokens only stands in for a length that the line does not have.
// False says that the workload has ended: only data sets played Once do.
func (w *Workload) At(index int64, promptTokens, outputTokens int32) (Request, bool) {
	if w.rows == nil {
		q := w.synthetic.at(index, promptTokens)
		q.OutputTokens = firstOf(outputTokens, w.output)
		return q, true
	}
	n := int64(len(w.rows))
	if w.once && index >= n {
		return Request{}, false
	}
	for {
		asked := w.asked.Load()
		if index < asked || w.asked.CompareAndSwap(asked, index+1) {
			break
		}
	}
	r := &w.rows[index%n]
	return Request{
		ID: index, Session: r.Session, Prompt: r.Prompt, Messages: r.Messages,
		PromptTokens: firstOf(r.PromptTokens, promptTokens),
		OutputTokens: firstOf(outputTokens, r.OutputTokens, w.output),
	}, true
}

func firstOf(lengths ...int32) int32 {
	for _, n := range lengths {
		if n > 0 {
			return n
		}
	}
	return 0
}

// Rows is the number of requests in the data set; 0 for synthetic prompts,
// which never end.
func (w *Workload) Rows() int64 { return int64(len(w.rows)) }

// Rounds is how often the data set was started over so far: 0 as long as no
// line was asked twice. A prefix cache may answer a line that was.
func (w *Workload) Rounds() int64 {
	if asked := w.asked.Load(); asked > 0 {
		return (asked - 1) / int64(len(w.rows))
	}
	return 0
}

// Times are the due times of the data set's lines in ns, ascending, where every
// line has at_s: request i belongs to time i. Then the data set is a schedule
// too.
func (w *Workload) Times() (due []int64, ok bool) {
	if len(w.rows) == 0 || w.rows[0].AtS == nil {
		return nil, false
	}
	due = make([]int64, len(w.rows))
	for i := range w.rows {
		due[i] = w.rows[i].due()
	}
	return due, true
}
