package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"
)

// latestS is the latest time that a line may give, in seconds: 285 years, the
// most that 64 bits of nanoseconds hold.
const latestS = 9e9

// A row is one line of a data set.
type row struct {
	Prompt       string            `json:"prompt"`
	Messages     []json.RawMessage `json:"messages"`
	AtS          *float64          `json:"at_s"` // due time, seconds from the start of the trace
	PromptTokens int32             `json:"prompt_tokens"`
	OutputTokens int32             `json:"output_tokens"`
	Session      string            `json:"session"`

	line int
}

func (r *row) due() int64 { return int64(math.Round(*r.AtS * 1e9)) }

func readFile(name string) ([]row, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := readRows(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
}

// readRows reads JSON lines, strictly. Lines with times are put in their order,
// so that the index of a request is that of its arrival.
func readRows(r io.Reader) ([]row, error) {
	var rows []row
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			one, bad := parse(line)
			if bad != nil {
				return nil, fmt.Errorf("line %d: %w", n, bad)
			}
			one.line = n
			rows = append(rows, one)
		}
		if err == io.EOF {
			break
		}
	}
	if len(rows) == 0 {
		return nil, errors.New("no prompts in it")
	}
	for i := range rows {
		if (rows[i].AtS == nil) != (rows[0].AtS == nil) {
			with, without := rows[0].line, rows[i].line
			if rows[0].AtS == nil {
				with, without = without, with
			}
			return nil, fmt.Errorf("line %d has at_s and line %d has none: either all lines have it or none", with, without)
		}
	}
	if rows[0].AtS != nil {
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.due(), b.due()) })
	}
	return rows, nil
}

func parse(line []byte) (row, error) {
	var r row
	if !utf8.Valid(line) {
		return r, errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = errors.New("the JSON object is cut off")
		}
		return r, err
	}
	if _, err := d.Token(); err != io.EOF {
		return r, errors.New("more than one JSON object")
	}
	switch {
	case r.Prompt == "" && len(r.Messages) == 0:
		return r, errors.New("neither a prompt nor messages")
	case r.Prompt != "" && len(r.Messages) > 0:
		return r, errors.New("both a prompt and messages")
	case r.PromptTokens < 0 || r.OutputTokens < 0:
		return r, errors.New("a length must not be negative")
	case r.AtS != nil && !(*r.AtS >= 0 && *r.AtS <= latestS):
		return r, fmt.Errorf("at_s must be between 0 and %.0f seconds, not %v", float64(latestS), *r.AtS)
	}
	for i, m := range r.Messages {
		var message struct {
			Role string `json:"role"`
		}
		if err := json.Unmarshal(m, &message); err != nil || message.Role == "" {
			return r, fmt.Errorf("messages[%d] is not an object with a role", i)
		}
	}
	return r, nil
}
