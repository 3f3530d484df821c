package schedule

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// latestS is the latest time that a file may give, in seconds: 285 years, the
// most that 64 bits of nanoseconds hold. No schedule has a later one.
const (
	latestS  = 9e9
	latestNs = int64(9e18)
)

// tokensMax is the greatest length that a file may give: a slip of the pen above.
const tokensMax = 16 << 20

// lineMax bounds a line of JSONL, in bytes.
const lineMax = 16 << 20

// readFile reads given times from a file: CSV with a header, or JSONL.
func readFile(name string) (*table, error) {
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

// readRows reads JSONL where the first byte that is not blank is a brace, else CSV.
func readRows(r io.Reader) (*table, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if head, _ := in.Peek(len(byteOrder)); string(head) == byteOrder {
		_, _ = in.Discard(len(byteOrder))
	}
	head, err := in.Peek(in.Size())
	if err != nil && err != io.EOF {
		return nil, err
	}
	read := readCSV
	if bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) {
		read = readJSONL
	}
	var rows table
	if err := read(in, &rows); err != nil {
		return nil, err
	}
	if rows.rows() == 0 {
		return nil, errors.New("no times in it")
	}
	rows.sort()
	return &rows, nil
}

// byteOrder is a mark that spreadsheets write at the beginning of a file.
const byteOrder = "\ufeff"

func readJSONL(r io.Reader, rows *table) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMax)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		a, err := parseJSON(lines.Bytes())
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		rows.add(a)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d bytes", n, lineMax)
	}
	return lines.Err()
}

func parseJSON(line []byte) (Arrival, error) {
	var row struct {
		AtS          *float64 `json:"at_s"`
		PromptTokens int32    `json:"prompt_tokens"`
		OutputTokens int32    `json:"output_tokens"`
		Session      string   `json:"session"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // a misspelt field would be silently lost
	if err := d.Decode(&row); err != nil {
		return Arrival{}, plain(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Arrival{}, errors.New("more than one JSON object")
	}
	if row.AtS == nil {
		return Arrival{}, errors.New("at_s is missing")
	}
	due, err := fromSeconds(*row.AtS)
	if err != nil {
		return Arrival{}, err
	}
	for _, n := range []int32{row.PromptTokens, row.OutputTokens} {
		if n < 0 || n > tokensMax {
			return Arrival{}, fmt.Errorf("a length must be between 0 and %d tokens, not %d", tokensMax, n)
		}
	}
	return Arrival{Due: due, Session: row.Session, PromptTokens: row.PromptTokens, OutputTokens: row.OutputTokens}, nil
}

var columns = []string{"at_s", "prompt_tokens", "output_tokens", "session"}

func readCSV(in io.Reader, rows *table) error {
	r := csv.NewReader(in)
	header, err := r.Read()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err // it names the line
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if !slices.Contains(columns, name) {
			return fmt.Errorf("line 1: unknown column %q; there are %s (a trace with columns of its own is a data set: see --dataset)", name, strings.Join(columns, ", "))
		}
		if slices.Contains(header[:i], name) {
			return fmt.Errorf("line 1: column %s stands there twice", name)
		}
		header[i] = name
	}
	if !slices.Contains(header, "at_s") {
		return errors.New("line 1: column at_s is missing")
	}
	r.ReuseRecord = true
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return nil
		}
		var wrong *csv.ParseError
		if errors.As(err, &wrong) && (errors.Is(err, csv.ErrQuote) || errors.Is(err, csv.ErrBareQuote)) {
			return fmt.Errorf("line %d: a quote is opened and never closed, or stands where none belongs", wrong.StartLine)
		}
		if err != nil {
			return err
		}
		a, err := parseFields(header, fields)
		if err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		rows.add(a)
	}
}

func parseFields(header, fields []string) (Arrival, error) {
	var a Arrival
	for i, name := range header {
		text := strings.TrimSpace(fields[i])
		var err error
		switch name {
		case "at_s":
			a.Due, err = parseSeconds(text)
		case "prompt_tokens":
			a.PromptTokens, err = parseTokens(name, text)
		case "output_tokens":
			a.OutputTokens, err = parseTokens(name, text)
		case "session":
			a.Session = text
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// parseTokens reads a length; an empty field is an unknown one, 0.
func parseTokens(name, text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > tokensMax {
		return 0, fmt.Errorf("%s must be a whole number of tokens up to %d, not %q", name, tokensMax, text)
	}
	return int32(n), nil
}

func parseSeconds(text string) (int64, error) {
	at, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("at_s must be a number of seconds, not %q", text)
	}
	return fromSeconds(at)
}

func fromSeconds(at float64) (int64, error) {
	if !(at >= 0 && at <= latestS) {
		return 0, fmt.Errorf("at_s must be between 0 and %.0f seconds, not %v", float64(latestS), at)
	}
	return int64(math.Round(at * 1e9)), nil
}

// plain is an error of encoding/json for people, with the fields that there are.
func plain(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s; a row has at_s, and may have prompt_tokens, output_tokens and session", text)
	}
	return err
}
