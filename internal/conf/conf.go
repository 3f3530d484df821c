// Package conf is the one strict reader of the YAML that people write. It
// finds all mistakes of a file at once, each with line, column and dotted
// path, and says in plain words what was expected.
//
// Destinations are structs with yaml tags (`yaml:"name"`, options inline and
// zero, "-" to leave a field out), maps with text keys, lists, pointers,
// text, numbers, bools, time.Duration, any, and types that implement
// encoding.TextUnmarshaler. Such a type is decoded from its scalar; where it
// is a struct, map or list too, it may be written either way. Text fields take
// any scalar as it was written, so that `warmup: 200` and `warmup: 10%` both
// are text.
package conf

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Mistake is one thing that is wrong with what somebody wrote. For a mistake
// in a Setting, File is where the setting came from and Line is 0.
type Mistake struct {
	File      string
	Line, Col int    // from 1; 0 where there is no position
	Path      string // dotted, list items as slo[1]; empty for the file as a whole
	Text      string // continues the path: "must be a number, not …"
}

// Error is the mistake as one line: file:line:col: path: text.
func (m Mistake) Error() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File)
		if m.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", m.Line, m.Col)
		}
		b.WriteString(": ")
	}
	if m.Path != "" {
		b.WriteString(printable(m.Path) + ": ")
	}
	b.WriteString(m.Text)
	return b.String()
}

// Mistakes are all the mistakes of a file and its settings, in order of
// position; those of settings come last.
type Mistakes []Mistake

// Error has one mistake a line.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, one := range m {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is nil where there is no mistake.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// A Problem is what a room's Check finds in its own options. Path is relative
// to those options; Text continues it ("must be more than 0, not -1").
type Problem struct{ Path, Text string }

// A Setting is one value from outside the file, such as a flag.
type Setting struct {
	Path   string // dotted path of the key
	Value  string // verbatim for text and durations, a comma-separated or YAML list for lists, else YAML
	From   string // named in mistakes instead of file and line: "--rate"
	Append bool   // add an item to a list, or "name: value" (or name=value) to a map
}

// A Doc is a file that was read: it knows where everything stands and which
// mistakes were found.
type Doc struct {
	file     string
	root     *node
	dst      reflect.Type
	mistakes Mistakes
	broken   bool // the syntax could not be read: nothing further can be said
}

// Read decodes one YAML document into dst, a pointer. The error is nil or
// Mistakes. The Doc is never nil, and after mistakes dst has what could be
// read, so that a caller can go on with Report and show everything at once.
// File is the name for messages; a named file without any content is a mistake.
func Read(file string, data []byte, dst any) (*Doc, error) {
	return ReadWith(file, data, nil, dst)
}

// ReadWith is Read with settings put over the file's values before decoding,
// in order. With an empty file name, data may be empty.
func ReadWith(file string, data []byte, sets []Setting, dst any) (*Doc, error) {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic("conf: dst must be a pointer")
	}
	d := &Doc{file: file, dst: v.Type().Elem()}
	d.parse(data)
	if d.broken {
		return d, d.Err()
	}
	for _, s := range sets {
		d.set(s)
	}
	if d.root.kind != empty {
		d.decode(d.root, v.Elem(), "")
	}
	return d, d.Err()
}

// Report adds a check's findings, with prefix (a dotted path, or empty) before
// their paths. A finding about a key that already has a mistake, or that lies
// below one, is dropped: it would be about a value that was never read.
func (d *Doc) Report(prefix string, problems []Problem) {
	if d.broken {
		return
	}
	known := len(d.mistakes)
	for _, p := range problems {
		path := join(prefix, p.Path)
		if !slices.ContainsFunc(d.mistakes[:known], func(m Mistake) bool { return within(path, m.Path) }) {
			d.mistakes = append(d.mistakes, d.At(path, p.Text))
		}
	}
}

// Err is all mistakes so far, as Mistakes sorted by position, or nil.
func (d *Doc) Err() error {
	sorted := slices.Clone(d.mistakes)
	slices.SortStableFunc(sorted, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(min(b.Line, 1), min(a.Line, 1)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return sorted.Err()
}

// Has says whether the file or a setting gives a value at path.
func (d *Doc) Has(path string) bool {
	if d.root == nil {
		return false
	}
	at, whole := d.root.find(path)
	return whole && at.value.kind != empty
}

// At gives text the position of path, or of its nearest ancestor that exists.
func (d *Doc) At(path, text string) Mistake {
	m := Mistake{File: d.file, Path: path, Text: text}
	if d.root == nil {
		return m
	}
	at, whole := d.root.find(path)
	if !whole && at.value.through { // what is missing is no mistake of the setting beside it
		at = entry{value: d.root}
	}
	// Of a mapping or list in block style the first line is the one below its
	// key; the key is where a reader looks.
	n := at.value
	if at.key != nil && n.kind != scalar {
		n = at.key
	}
	d.place(&m, n)
	return m
}

// place gives a mistake the position of n.
func (d *Doc) place(m *Mistake, n *node) {
	if n.from != "" {
		m.File, m.Line, m.Col = n.from, 0, 0
		return
	}
	m.File, m.Line, m.Col = d.file, n.line, n.col
}

func (d *Doc) mistake(n *node, path, format string, args ...any) {
	m := Mistake{Path: path, Text: fmt.Sprintf(format, args...)}
	d.place(&m, n)
	// A setting that is not YAML has no value either: one mistake, said once.
	if n.from != "" && slices.ContainsFunc(d.mistakes, func(o Mistake) bool { return o.File == n.from && o.Path == path }) {
		return
	}
	d.mistakes = append(d.mistakes, m)
}

// printable keeps what people cannot see out of a path.
func printable(path string) string {
	if strings.ContainsFunc(path, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(path)
	}
	return path
}

// join puts a key below a path.
func join(path, key string) string {
	if path == "" || key == "" || key[0] == '[' {
		return path + key
	}
	return path + "." + key
}

// within says whether path is parent or lies below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && parent != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
