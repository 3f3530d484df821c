package main

import (
	"io"
	"os"

	"fermata/internal/term"
	"fermata/report"
)

// terminal is the file behind w, if it is one, else nil.
func terminal(w io.Writer) *os.File {
	if c, ok := w.(*notices); ok {
		w = c.out
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(f) {
		return nil
	}
	return f
}

// look is how a report is laid out on w.
func look(w io.Writer) report.TerminalOptions {
	f := terminal(w)
	if f == nil {
		return report.TerminalOptions{Width: term.Columns()}
	}
	return report.TerminalOptions{Width: term.Width(f), Colour: term.Colour(f)}
}
