package conf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// explain says in plain words why the YAML could not be parsed, and where.
func explain(file string, data []byte, err error) Mistake {
	m := Mistake{File: file}
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		m.Text = "cannot be read as YAML: " + firstLine(err.Error())
		return m
	}
	m.Line, m.Col = le.Mark.Line, le.Mark.Column
	if m.Line == 0 {
		m.Line, m.Col = position(data, le.Mark.Index)
	}
	opened := func(what string) string {
		if le.ContextMark.Line == 0 {
			return what
		}
		return fmt.Sprintf("%s that was opened on line %d", what, le.ContextMark.Line)
	}
	message := le.Message
	switch {
	case strings.Contains(message, "cannot start any token"):
		m.Text = badStart(charAt(data, m.Line, m.Col))
	case strings.Contains(message, "mapping values are not allowed"):
		m.Text = "a colon is out of place: check the indentation, or put the text in quotes"
	case strings.Contains(message, "expected ',' or ']'"):
		m.Text = "expected a comma or ] in the " + opened("list")
	case strings.Contains(message, "expected ',' or '}'"):
		m.Text = "expected a comma or } in the " + opened("mapping")
	case strings.Contains(message, "unexpected end of stream"):
		m.Text = "the file ends inside the " + strings.Replace(opened("quotes"), "that was", "that were", 1)
	case strings.Contains(message, "unknown escape character"):
		m.Text = `an escape that YAML does not know; put the text in single quotes, or write \\ for a backslash`
	case strings.Contains(message, "unknown anchor"):
		m.Text = "a value that starts with * refers to an anchor, and there is none of that name; to mean the text, put it in quotes"
	case strings.Contains(message, "expected '-' indicator"):
		m.Text = "expected another item of the " + opened("list") + ": check the indentation"
	case strings.Contains(message, "could not find expected ':'"):
		m.Text = "expected a colon after the key"
	case strings.Contains(message, "expected key"):
		m.Text = "expected a key: check the indentation"
	case le.Stage == "reader":
		m.Text = "the file is not text in UTF-8: " + message
	default:
		m.Text = "cannot be read as YAML: " + firstLine(message)
	}
	return m
}

func badStart(c rune) string {
	switch c {
	case '\t':
		return "a tab cannot indent YAML; use spaces"
	case utf8.RuneError:
		return "a character that cannot start a value; put the value in quotes"
	}
	return fmt.Sprintf("a value cannot start with %c; put it in quotes", c)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// charAt is the character at a line and column, counted from 1.
func charAt(data []byte, line, col int) rune {
	for ; line > 1; line-- {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return utf8.RuneError
		}
		data = data[i+1:]
	}
	for ; col > 1 && len(data) > 0; col-- {
		_, size := utf8.DecodeRune(data)
		data = data[size:]
	}
	r, _ := utf8.DecodeRune(data)
	return r
}

// position is the line and column, from 1, of a byte offset.
func position(data []byte, offset int) (line, col int) {
	before := data[:min(max(offset, 0), len(data))]
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}
