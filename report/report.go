// Package report writes results for people and for programs: a terminal page,
// Markdown, CSV, JSON, JUnit and Prometheus. It computes no metric: what it prints stands in
// metrics.Result, and no number appears without what it rests on.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"fermata/metrics"
)

// TerminalOptions say how a terminal page looks. The zero value is 100 columns
// without colour.
type TerminalOptions struct {
	Width  int  // columns; 0 means 100, less than 60 is taken as 60
	Colour bool // ANSI colours; see internal/term.Colour for when they are welcome
}

// writers are those of ResultFormats.
var writers = map[string]func(io.Writer, []*metrics.Result, TerminalOptions) error{
	"terminal":   Terminal,
	"json":       func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return JSON(w, rs) },
	"csv":        func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return CSV(w, rs) },
	"markdown":   func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return Markdown(w, rs) },
	"junit":      func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return JUnit(w, rs) },
	"prometheus": func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return Prometheus(w, rs) },
}

// Write writes results in the named format; the options matter to "terminal"
// alone.
func Write(format string, w io.Writer, results []*metrics.Result, o TerminalOptions) error {
	if err := ResultFormats.Check(format); err != nil {
		return err
	}
	if err := writers[format](w, results, o); err != nil {
		return fmt.Errorf("writing the report as %s: %w", format, err)
	}
	return nil
}

var errNoResults = errors.New("there is no result to report")

// JSON writes one result as an object, several as an array, in the published
// schema (see Schema). Lists without elements are written as [], never null.
func JSON(w io.Writer, results []*metrics.Result) error {
	var document any
	switch len(results) {
	case 0:
		return errNoResults
	case 1:
		document = whole(reflect.ValueOf(results[0])).Interface()
	default:
		document = whole(reflect.ValueOf(results)).Interface()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("encoding results: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// whole is a deep copy of v in which lists and maps that are nil are empty.
func whole(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(whole(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(whole(v.Field(i)))
			}
		}
	case reflect.Slice:
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			c.Index(i).Set(whole(v.Index(i)))
		}
	case reflect.Map:
		c.Set(reflect.MakeMap(v.Type()))
		for _, k := range v.MapKeys() {
			c.SetMapIndex(k, whole(v.MapIndex(k)))
		}
	default:
		c.Set(v)
	}
	return c
}
