package report

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Formats are those in which something is written.
type Formats struct {
	of    string // what is written
	names []string
}

// The formats of Write; of WriteComparison, as a comparison has no objectives to gate
// by, and is no state to scrape; of WritePlan; and of what else is written.
var (
	ResultFormats     = Formats{"a report", []string{"terminal", "json", "csv", "markdown", "junit", "prometheus"}}
	ComparisonFormats = Formats{"a comparison", []string{"terminal", "json", "csv", "markdown"}}
	PlanFormats       = Formats{"a plan", []string{"terminal", "json"}}
	DocumentFormats   = Formats{"such a document", []string{"terminal", "json", "markdown"}}
)

// Names are those of the formats, in the order in which errors name them.
func (f Formats) Names() []string { return slices.Clone(f.names) }

// Check is the error of an unknown format, so that a command can refuse before it
// measures.
func (f Formats) Check(format string) error {
	if slices.Contains(f.names, format) {
		return nil
	}
	return fmt.Errorf("unknown format %q of %s: it is one of %s", format, f.of, strings.Join(f.names, ", "))
}

// writeDocument writes a document in one of DocumentFormats: as JSON itself, else its
// page. An error says what was written.
func writeDocument(what, format string, w io.Writer, document any, p func() *page, o TerminalOptions) error {
	if err := DocumentFormats.Check(format); err != nil {
		return err
	}
	var err error
	switch format {
	case "json":
		var b []byte
		if b, err = json.MarshalIndent(whole(reflect.ValueOf(document)).Interface(), "", "  "); err == nil {
			_, err = w.Write(append(b, '\n'))
		}
	case "markdown":
		err = drawMarkdown(w, p())
	default:
		err = drawTerminal(w, p(), o)
	}
	if err != nil {
		return fmt.Errorf("writing %s as %s: %w", what, format, err)
	}
	return nil
}
