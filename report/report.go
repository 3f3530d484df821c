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
	"slices"
	"strings"

	"fermata/metrics"
)

// TerminalOptions say how a terminal page looks. The zero value is 100 columns
// without colour.
type TerminalOptions struct {
	Width  int  // columns; 0 means 100, less than 60 is taken as 60
	Colour bool // ANSI colours; see internal/term.Colour for when they are welcome
}

// formats are what Write knows, in the order in which errors name them.
var formats = []struct {
	name  string
	write func(io.Writer, []*metrics.Result, TerminalOptions) error
}{
	{"terminal", Terminal},
	{"json", func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return JSON(w, rs) }},
	{"csv", func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return CSV(w, rs) }},
	{"markdown", func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return Markdown(w, rs) }},
	{"junit", func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return JUnit(w, rs) }},
	{"prometheus", func(w io.Writer, rs []*metrics.Result, _ TerminalOptions) error { return Prometheus(w, rs) }},
}

// Formats are the names that Write knows.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// ComparisonFormats are the names that WriteComparison knows: a comparison has no
// objectives to gate by, and is no state to scrape.
func ComparisonFormats() []string {
	return slices.DeleteFunc(Formats(), func(f string) bool { return f == "junit" || f == "prometheus" })
}

// CheckComparisonFormat is the error of WriteComparison for an unknown format.
func CheckComparisonFormat(format string) error {
	if slices.Contains(ComparisonFormats(), format) {
		return nil
	}
	return fmt.Errorf("unknown format %q of a comparison: it is one of %s", format, strings.Join(ComparisonFormats(), ", "))
}

// CheckFormat is the error of Write for an unknown format, so that a command can
// refuse before it measures.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	return fmt.Errorf("unknown report format %q: it is one of %s", format, strings.Join(Formats(), ", "))
}

// Write writes results in the named format; the options matter to "terminal"
// alone.
func Write(format string, w io.Writer, results []*metrics.Result, o TerminalOptions) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	i := slices.Index(Formats(), format)
	if err := formats[i].write(w, results, o); err != nil {
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
