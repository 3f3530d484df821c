package workload

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A csvShape says which columns of a CSV format hold what.
type csvShape struct {
	name          string
	input, output []string // names that the column has
	at            []string
	clock         bool // at is a wall clock, and the trace begins with its first row
	optional      bool // at may be missing
}

var csvShapes = []csvShape{
	{name: azure, input: []string{"ContextTokens"}, output: []string{"GeneratedTokens"}, at: []string{"TIMESTAMP"}, clock: true},
	{name: burstGPT, input: []string{"Request tokens"}, output: []string{"Response tokens"}, at: []string{"Timestamp"}},
	{
		name: lengthCSV, input: []string{"prompt_tokens", "num_prefill_tokens"}, output: []string{"output_tokens", "num_decode_tokens"},
		at: []string{"at_s", "arrival_s", "arrived_at"}, optional: true,
	},
}

// csvColumns are where in a line a shape's values stand; -1 for no times. It
// reads lines without allocating: a trace has millions, and what is garbage
// until it is collected counts as memory too.
type csvColumns struct {
	shape             *csvShape
	input, output, at int
	n                 int
	fields            [][]byte // of the line at hand
	layout            int      // of the clock times seen last
}

// errSession is that a column would be passed over that changes what is measured.
var errSession = errors.New("the column session is not read from a data set in CSV: give the file as schedule.file (--trace), with at_s for its times, where a session shares its cache and its replica; or as JSONL, where rows of one session are turns that follow answers; or remove the column")

// csvHeader recognises a format by its header line.
func csvHeader(line []byte) (csvColumns, error) {
	var names []string
	for _, f := range csvFields(nil, line) {
		names = append(names, string(f))
	}
	find := func(wanted []string) int {
		return slices.IndexFunc(names, func(name string) bool { return slices.Contains(wanted, name) })
	}
	for i := range csvShapes {
		s := &csvShapes[i]
		c := csvColumns{shape: s, input: find(s.input), output: find(s.output), at: find(s.at), n: len(names)}
		if c.input >= 0 && c.output >= 0 && (c.at >= 0 || s.optional) {
			if s.name == lengthCSV && slices.Contains(names, "session") {
				return c, errSession
			}
			return c, nil
		}
	}
	var known []string
	for _, s := range csvShapes {
		columns := []string{s.at[0], s.input[0], s.output[0]}
		if s.optional {
			columns = columns[1:]
		}
		known = append(known, strings.Join(columns, ",")+" ("+s.name+")")
	}
	return csvColumns{}, fmt.Errorf("neither JSON nor Parquet, nor a CSV file with one of these headers: %s", strings.Join(known, "; "))
}

// csvFields are the fields of a line, put into fields; of the formats that are
// read here none has a comma inside one.
func csvFields(fields [][]byte, line []byte) [][]byte {
	for more := true; more; {
		var f []byte
		f, line, more = bytes.Cut(line, []byte(","))
		fields = append(fields, bytes.Trim(f, " \t\r\n\""))
	}
	return fields
}

func (c *csvColumns) parse(line []byte) (item, error) {
	if bytes.Count(line, []byte(`"`))%2 != 0 {
		return item{}, errors.New("a quote is opened and never closed")
	}
	c.fields = csvFields(c.fields[:0], line)
	if len(c.fields) != c.n {
		return item{}, fmt.Errorf("%d fields, where the header has %d", len(c.fields), c.n)
	}
	var it item
	var err error
	if it.promptTokens, err = csvTokens(c.shape.input[0], c.fields[c.input]); err != nil {
		return it, err
	}
	if it.outputTokens, err = csvTokens(c.shape.output[0], c.fields[c.output]); err != nil {
		return it, err
	}
	it.empty = it.promptTokens == 0 || it.outputTokens == 0
	if c.at < 0 {
		return it, nil
	}
	it.timed = true
	if c.shape.clock {
		it.due, err = c.wallClock(c.fields[c.at])
		return it, err
	}
	at, err := strconv.ParseFloat(string(c.fields[c.at]), 64)
	if err != nil {
		return it, fmt.Errorf("%s must be a number of seconds, not %q", c.shape.at[0], c.fields[c.at])
	}
	it.due, err = fromSeconds(c.shape.at[0], at)
	return it, err
}

func csvTokens(name string, text []byte) (int32, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(text, []byte(".0"))), 10, 32)
	if err != nil || n < 0 || n > inputMax {
		return 0, fmt.Errorf("%s must be a whole number of tokens up to %d, not %q", name, inputMax, text)
	}
	return int32(n), nil
}

var clockLayouts = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339, "2006-01-02T15:04:05"}

// wallClock is a time of day in ns since 1970, UTC unless it says otherwise. All
// times of a file have one layout, as a rule.
func (c *csvColumns) wallClock(text []byte) (int64, error) {
	for i := range clockLayouts {
		k := (c.layout + i) % len(clockLayouts)
		t, err := time.Parse(clockLayouts[k], string(text))
		if err != nil {
			continue
		}
		if year := t.Year(); year < 1970 || year > 2200 {
			break
		}
		c.layout = k
		return t.UnixNano(), nil
	}
	return 0, fmt.Errorf("%s must be a time such as 2023-11-16 18:15:46.6805900, not %q", c.shape.at[0], text)
}
