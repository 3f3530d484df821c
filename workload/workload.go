package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	o.Prefix = o.Prefix.filled()
	if o.Dataset != "" || o.Lengths != "" {
		return o
	}
	if o.Input == "" {
		o.Input = Tokens(defaultInput)
	}
	// The rows of a file bring the lengths of their answers along.
	if o.Output == "" && !strings.HasPrefix(string(o.Input), empirical+":") {
		o.Output = Tokens(defaultOutput)
	}
	return o
}

// Check finds everything that is wrong with o, without opening its data set.
func (o *Options) Check() []conf.Problem {
	var found []conf.Problem
	wrong := func(path, format string, args ...any) {
		found = append(found, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	for _, one := range []struct {
		path string
		l    Lengths
	}{{"input", o.Input}, {"output", o.Output}} {
		if one.l == "" {
			continue
		}
		if _, err := one.l.parse(); err != nil {
			wrong(one.path, "%v", err)
		}
		if o.Lengths != "" {
			wrong(one.path, "cannot be given beside lengths, which draws prompts and answers together")
		}
	}
	if o.Input != "" && o.Dataset != "" {
		wrong("input", "cannot be given beside dataset: its prompts have their own lengths")
	}
	switch _, ok := presets[o.Lengths]; {
	case o.Lengths != "" && !ok:
		wrong("lengths", "must be %s, not %q", list(Presets()), o.Lengths)
	case o.Lengths != "" && o.Dataset != "":
		wrong("lengths", "cannot be given beside dataset: its prompts have their own lengths")
	}
	if o.Turns < 0 || o.Turns > turnsMax {
		wrong("turns", "must be between 1 and %d turns of a conversation, not %d", turnsMax, o.Turns)
	}
	switch share := o.SessionShare; {
	case share == 0:
	case !(share > 0 && share <= 1):
		wrong("session_share", "must be more than 0 and at most 1, such as 0.3, not %v", share)
	case o.Dataset != "":
		wrong("session_share", "is for made-up prompts: of a data set its rows say which are conversations")
	case o.Turns < 2:
		wrong("session_share", "is for conversations: give turns")
	}
	o.Prefix.check(o, wrong)
	o.checkDataset(wrong)
	o.checkFilters(wrong)
	return found
}

func (o *Options) checkDataset(wrong func(path, format string, args ...any)) {
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		wrong("format", "must be %s, not %q", list(Formats()), o.Format)
	}
	if o.Dataset != "" {
		return
	}
	if o.Once {
		wrong("once", "is for data sets: synthetic prompts never end")
	}
	if o.SkipBad {
		wrong("skip_bad", "is for data sets: there is nothing to read without one")
	}
	if o.Format != "" {
		wrong("format", "is for data sets: there is nothing to read without one")
	}
}

func (o *Options) checkFilters(wrong func(path, format string, args ...any)) {
	for _, one := range []struct {
		path  string
		bound int
	}{
		{"min_input", o.MinInput},
		{"max_input", o.MaxInput},
		{"min_output", o.MinOutput},
		{"max_output", o.MaxOutput},
		{"max_total", o.MaxTotal},
	} {
		if one.bound < 0 || one.bound > 2*inputMax {
			wrong(one.path, "must be between 1 and %d tokens, not %d; 0 means no bound", 2*inputMax, one.bound)
		}
	}
	if o.MaxInput > 0 && o.MinInput > o.MaxInput {
		wrong("min_input", "is %d, above max_input %d: nothing would be left", o.MinInput, o.MaxInput)
	}
	if o.MaxOutput > 0 && o.MinOutput > o.MaxOutput {
		wrong("min_output", "is %d, above max_output %d: nothing would be left", o.MinOutput, o.MaxOutput)
	}
	if o.MaxTotal > 0 && o.MinInput+o.MinOutput > o.MaxTotal {
		wrong("max_total", "is %d, below min_input and min_output together: nothing would be left", o.MaxTotal)
	}
}

// A Workload gives requests by their index. At and Err may be called
// from many goroutines at once. Open makes one.
type Workload struct {
	options   Options
	drawer    *drawer
	synthetic *synthetic // of a data set with texts, only for probes
	data      *dataset   // nil without one
	mixture   *mixture   // of made-up conversations with requests that stand alone; nil without one
	typical   pair       // median lengths of synthetic prompts and their answers
	cut       Cut        // of drawn lengths
	failed    atomic.Pointer[error]
}

// Open makes the workload that o describes and reads its data set through. The
// seed is that of the run, from which Open derives its own.
func Open(o Options, runSeed uint64) (*Workload, error) {
	var lines []string
	for _, p := range o.Check() {
		lines = append(lines, p.Path+": "+p.Text)
	}
	if lines != nil {
		return nil, errors.New("making a workload: " + strings.Join(lines, "; "))
	}
	o = o.Filled()
	w := &Workload{options: o, synthetic: newSynthetic(runSeed)}
	if o.SessionShare > 0 && o.SessionShare < 1 {
		w.mixture = newMixture(o.Turns, o.SessionShare, runSeed)
	}
	var err error
	if w.drawer, err = newDrawer(o, runSeed); err != nil {
		return nil, fmt.Errorf("reading lengths: %w", err)
	}
	if o.Dataset != "" {
		if w.data, err = openDataset(o); err != nil {
			return nil, fmt.Errorf("reading the data set: %w", err)
		}
	} else if w.drawer.filter.any() {
		if w.cut, err = w.drawer.tryFilter(); err != nil {
			return nil, fmt.Errorf("making a workload: %w", err)
		}
	}
	w.typical = w.medians()
	return w, nil
}

// typicalOf is how many requests show what is typical.
const typicalOf = 1000

func (w *Workload) medians() pair {
	if w.data != nil {
		return pair{w.data.medianInput(), 0}
	}
	if w.drawer.fixed() {
		return w.drawer.at(0)
	}
	var t tally
	for i := range int64(typicalOf) {
		t.add(w.drawer.at(i), passes)
	}
	after := t.cut().After
	return pair{int32(after.Input), int32(after.Output)}
}

// At is request number index, from 0: the same whenever it is asked for, in
// whatever order. Lengths above 0, such as those of a schedule file, replace
// the workload's own; those of the prompts of a data set cannot change, so
// there promptTokens only stands in for a length that the row does not have.
// False says that the workload has ended: data sets played Once do, and those
// that cannot be read again, which Err tells.
func (w *Workload) At(index int64, promptTokens, outputTokens int32) (Request, bool) {
	q, it, ok := w.shape(index, promptTokens, outputTokens)
	switch {
	case !ok:
	case it.text():
		if w.data.shape == ownJSONL && q.Messages != nil {
			var err error
			if q.Messages, err = w.data.attach(q.Messages); err != nil {
				w.failed.CompareAndSwap(nil, &err)
				return q, false
			}
		}
	case it.hashes != nil:
		q.Prompt = w.synthetic.blocks(index, index/w.Rows(), it.hashes, q.PromptTokens)
	default:
		q.Prompt = w.made(&q)
		w.share(&q)
	}
	return q, ok
}

// shape is a request without its made-up prompt, and the row that it comes from.
func (w *Workload) shape(index int64, promptTokens, outputTokens int32) (q Request, it item, ok bool) {
	drawn := w.drawer.at(index)
	if w.data == nil {
		q = Request{ID: index, PromptTokens: firstOf(promptTokens, drawn.input), OutputTokens: firstOf(outputTokens, drawn.output)}
		if w.Conversing() {
			w.place(&q)
		}
		return q, it, true
	}
	n := w.Rows()
	if w.options.Once && index >= n {
		return q, it, false
	}
	it, err := w.data.item(w.data.row(int(index % n)))
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
		return q, it, false
	}
	q = Request{
		ID: index, Session: it.session, Think: it.think, Thinks: it.thinks, Prompt: it.prompt, Messages: it.messages, Params: it.params,
		PromptTokens: firstOf(it.promptTokens, promptTokens),
		OutputTokens: firstOf(outputTokens, it.outputTokens, drawn.output, it.estimateOutput),
	}
	if w.Conversing() {
		w.place(&q)
	}
	return q, it, true
}

// A Shape is a request as its lengths and what its prompt shares with others, for
// who needs no text.
type Shape struct {
	Request      // without a prompt
	Prefix       string
	PrefixTokens int32   // that all requests with this prefix begin with
	Hashes       []int64 // of the prompt's blocks of HashTokens tokens, equal for equal beginnings
	HashTokens   int32
}

// Shape is At without the making of prompts. Lengths that only a text tells are
// estimated from it.
func (w *Workload) Shape(index int64, promptTokens, outputTokens int32) (Shape, bool) {
	q, it, ok := w.shape(index, promptTokens, outputTokens)
	if !ok {
		return Shape{}, false
	}
	q.Prompt, q.Messages = "", nil
	q.PromptTokens = firstOf(q.PromptTokens, it.estimateInput)
	s := Shape{Request: q, Hashes: it.hashes}
	if it.hashes != nil {
		s.HashTokens = blockTokens
	}
	if p := w.options.Prefix; p != nil && w.data == nil && q.Turn == 0 {
		if n, ok := w.synthetic.group(p, w.conversation(&q)); ok {
			s.Prefix, s.PrefixTokens = strconv.FormatInt(n, 10), int32(p.Tokens)
			s.PromptTokens += s.PrefixTokens
		}
	}
	return s, true
}

// made is the made-up prompt of a request.
func (w *Workload) made(q *Request) string {
	if q.Turn > 0 {
		return w.synthetic.later(q.ID, q.PromptTokens)
	}
	return w.synthetic.prompt(q.ID, q.PromptTokens)
}

func firstOf(lengths ...int32) int32 {
	for _, n := range lengths {
		if n > 0 {
			return n
		}
	}
	return 0
}

// Err is why At said false although the workload has not ended: its data set
// could not be read again.
func (w *Workload) Err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Synthetic says that all prompts are made up for their length, by Calibrate's
// measure, as without a data set and for one of lengths alone. How long an
// answer gets is then the workload's to say, not the model's.
func (w *Workload) Synthetic() bool { return w.data == nil || w.data.synthetic }

// Typical are the median lengths of synthetic prompts and, where they are drawn
// or fixed, of their answers: what to prepare a server with. 0 is unknown.
func (w *Workload) Typical() (promptTokens, outputTokens int32) {
	return w.typical.input, w.typical.output
}

// Rows is the number of requests in the data set; 0 without one: synthetic
// prompts never end.
func (w *Workload) Rows() int64 {
	if w.data == nil {
		return 0
	}
	return int64(w.data.rows())
}

// Rounds is how often the data set was started over for that many requests from
// the first: 0 as long as no row was asked twice. A prefix cache may answer one
// that was.
func (w *Workload) Rounds(requests int64) int64 {
	if rows := w.Rows(); rows > 0 && requests > 0 {
		return (requests - 1) / rows
	}
	return 0
}

// Timed is how many due times the data set has, one a request, or, where there are
// conversations, one each; 0 without times. Then the data set is a schedule too.
func (w *Workload) Timed() int {
	if w.data == nil {
		return 0
	}
	return w.data.timed()
}

// Times gives due time i, from 0, in ns and ascending: that of request i, or of
// conversation i. Times of day begin with the file's first row. It is for workloads
// that are Timed, and the function for one goroutine.
func (w *Workload) Times() func(i int) int64 { return w.data.times() }

// Cut says what the filters dropped; false without filters.
func (w *Workload) Cut() (c Cut, ok bool) {
	switch {
	case !w.drawer.filter.any():
		return c, false
	case w.data != nil:
		return w.data.tally.cut(), true
	}
	return w.cut, true
}

// Estimated is how many rows of the data set have lengths that are estimated from
// their text.
func (w *Workload) Estimated() int64 {
	if w.data == nil {
		return 0
	}
	return w.data.estimated
}

// Skipped are the rows of the data set that cannot be asked.
func (w *Workload) Skipped() Skips {
	if w.data == nil {
		return Skips{}
	}
	return w.data.skips
}

// Notes say what a reader of the run should know about what is asked, one line
// each: where published lengths come from, what was left out and why, what is
// estimated. Nothing where there is nothing to say.
func (w *Workload) Notes() []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if w.options.Lengths != "" {
		say("lengths: %s", w.Source())
	}
	if m := w.mixture; m != nil {
		say("sessions: %.4g %% of the requests are turns of conversations of %d, which %.4g %% of the arrivals begin; the others stand alone", 100*w.options.SessionShare, m.turns, 100*m.p)
	}
	if p := w.options.Prefix; p != nil {
		say("prompts: %s", p)
	}
	if w.data != nil && w.data.starts != nil {
		say("%d conversations of %d turns in all", len(w.data.starts), w.data.rows())
	}
	if c, ok := w.Cut(); ok {
		say("%s", c)
	}
	if w.data == nil {
		return notes
	}
	if s := w.data.skips; s.Bad > 0 {
		say("%d rows of the data set cannot be read and were skipped; the first: %s", s.Bad, s.FirstBad)
	}
	if n := w.data.skips.Empty; n > 0 {
		say("%d rows of the data set have nothing to ask and were skipped", n)
	}
	if n := w.data.estimated; n > 0 {
		say("lengths of %d rows are estimated from their text, at four letters a token", n)
	}
	return notes
}

// Format is that of the data set; empty without one.
func (w *Workload) Format() string {
	if w.data == nil {
		return ""
	}
	return w.data.shape
}

// Source says where the lengths come from, in one line.
func (w *Workload) Source() string {
	switch o := &w.options; {
	case w.data != nil:
		return fmt.Sprintf("%s (format %s)", o.Dataset, w.data.shape)
	case o.Lengths != "":
		return PresetSource(o.Lengths)
	case w.drawer.joint != nil:
		return fmt.Sprintf("prompts and answers drawn together from %s", w.drawer.input.file)
	default:
		return fmt.Sprintf("prompts %s; answers %s", w.drawer.input, w.drawer.output)
	}
}

// Unlimited is how many rows of the data set say nothing of how long their answers
// may get, where the options do not either.
func (w *Workload) Unlimited() (n int64) {
	if w.data == nil || w.drawer.output.kind != "" {
		return 0
	}
	length := w.data.lengths.reader()
	for i := range w.data.rows() {
		if length(i).output == 0 {
			n++
		}
	}
	return n
}
